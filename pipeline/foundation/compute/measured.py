"""Measurements of this CPU, kept in the user's cache folder.

Near a threshold, two measurements may lead to different choices. Each is taken once, so all
processes choose the same.
"""

import fcntl
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field, TypeAdapter

from pipeline.foundation.compute import machine
from pipeline.foundation.files import locks
from pipeline.foundation.files.atomic import NOT_WRITTEN, write_text
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.parts.errors import InputWarning

# The environment variable that names another folder.
FOLDER = "VSE_PIPELINE_CACHE"
MEASUREMENTS = TypeAdapter(
    dict[str, dict[str, Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]]]
)
# The version of the measurements. A higher number has every CPU measured again.
VERSION = 1

_known: dict[tuple[Path, str, str], float] = {}  # in this process


def once(what: str, measure: Callable[[], float]) -> float:
    """Measure something of this CPU, once per machine."""
    key = kept_in(), cpu(), what
    if key not in _known:
        _known[key] = _kept(*key, measure)
    return _known[key]


def kept_in() -> Path:
    """The file of the measurements: cpu.json in the folder that `FOLDER` names, or else in the
    user's cache folder.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    return Path(os.environ.get(FOLDER) or cache / "vse-pipeline") / "cpu.json"


def cpu() -> str:
    """Name the CPU and the libraries for which a measurement holds."""
    allowed = os.environ.get("ONEDNN_MAX_CPU_ISA", "all")
    return (
        f"{machine.processor()}, flags {machine.flags()}, {torch.backends.cpu.get_cpu_capability()}, "
        f"oneDNN {allowed}, torch {torch.__version__}, measurements {VERSION}"
    )


def _kept(file: Path, cpu: str, what: str, measure: Callable[[], float]) -> float:
    value = _read(file).get(cpu, {}).get(what)
    if value is not None:
        return value
    try:
        if not file.is_absolute():
            raise NotADirectoryError("not an absolute path")
        file.parent.mkdir(parents=True, exist_ok=True)
        lock_file = file.with_name(f".{file.name}.lock")
        with open(lock_file, "a", opener=locks.opener) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two that begin at once take the answer of the first
            stored = _read(file)
            value = stored.get(cpu, {}).get(what)
            if value is None:
                value = measure()
                stored.setdefault(cpu, {})[what] = value
                write_text(file, json.dumps(stored, indent=1), durable=False)
            return value
    except NOT_WRITTEN as error:
        why = getattr(error, "strerror", None) or error
        warnings.warn(
            InputWarning(
                f"{file}: cannot be written ({why}), so each command measures this CPU again and may "
                f"choose another precision; name a folder in {FOLDER}"
            ),
            stacklevel=2,
        )
        if value is None:
            return measure()
        return value


def _read(file: Path) -> dict[str, dict[str, float]]:
    """CPU -> what was measured of it -> the value; nothing where the file is missing or damaged."""
    try:
        return MEASUREMENTS.validate_python(from_json(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


# Two short calculations are compared by the minimum of their times, over at least this many runs
# and seconds. Beside other work the minimum of a few runs differs by a factor of two, that of
# hundreds by 5 %.
REPEATS = 4
SECONDS = 0.3


def least_seconds(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Measure the minimum time of two calculations, called in turn: processor time of one thread,
    after a warm-up.
    """
    times: tuple[list[float], list[float]] = ([], [])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        begun = time.thread_time()
        while len(times[0]) <= REPEATS or time.thread_time() - begun < SECONDS:
            for calculate, taken in zip((first, second), times, strict=True):
                start = time.thread_time()
                calculate()
                taken.append(time.thread_time() - start)
    finally:
        torch.set_num_threads(threads)
    return min(times[0][1:]), min(times[1][1:])
