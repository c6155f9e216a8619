"""The machine and libraries that made a result, recorded beside it as `made_with` and never
compared.
"""

import subprocess
import sys
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path

from pipeline.foundation.compute import machine

# What a commit of this code is compared with
CODE = (
    "benchmarks",
    "manifests",
    "pipeline",
    "stages",
)


def record() -> dict[str, str | int]:
    """Describe this process: the processor; and if torch is loaded its version and threads."""
    made: dict[str, str | int] = {"processor": machine.processor()}
    torch = sys.modules.get("torch")
    if torch:
        made |= {"torch": torch.__version__, "threads": torch.get_num_threads()}
    return made


def today() -> dict[str, str | int]:
    """Describe the day, this version and the machine, of results for which torch computes
    nothing.
    """
    known = {}
    if commit():
        known["commit"] = commit()
    return {
        "date": date.today().isoformat(),
        "pipeline": version("vse-pipeline"),
        **known,
        "numpy": version("numpy"),
        "processor": machine.processor(),
    }


@cache
def commit() -> str:
    """Name the commit of this code, and whether it was changed since; "" outside a clone."""
    root = Path(__file__).parents[3]

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "--no-optional-locks", *words],
            cwd=root,
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout.strip()

    try:
        if not (root / ".git").exists():
            return ""
        name = git("rev-parse", "--short=8", "HEAD")
        if name and git("status", "--porcelain", "--", *CODE):
            return f"{name} and changes"
        return name
    except (OSError, subprocess.SubprocessError):  # there is no git
        return ""
