"""Results on disk: each system's numbers, how they were measured, what made them, and a digest.

They include the hits of each image, by which tables test systems against each other. The run's own systems are in
results/metrics.json, which each `pipeline evaluate` rewrites. results/recorded.json keeps its entries: those of single
stores, of larger pools and of heads that were trained on other data.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.artefacts import Reference
from pipeline.evaluation.metrics.numbers import STATISTICS, at
from pipeline.files.atomic import exclusive, write_json
from pipeline.files.digest import digest
from pipeline.files.results import read_json
from pipeline.parts.errors import InputError
from pipeline.systems.scores.system import System

COMMAND = "evaluate --system STORE --record"
# The key of an entry with the hits of each image, by protocol, see `pipeline.evaluation.statistics.image_hits`.
HITS = "image_hits"
# The keys of an entry that are not protocols.
BESIDE = ("system", "made_from", "evaluated_with", HITS, "digest")


def entry(system: System, evaluated_with: Mapping[str, Any], numbers: Mapping[str, Any],
          hits: Mapping[str, Any]) -> dict[str, Any]:
    """Compose an entry. evaluated_with: the settings that give the numbers again. numbers, hits: by protocol."""
    found = {"system": system.reference.model_dump(), "made_from": system.made_from.recorded(),
             "evaluated_with": dict(evaluated_with), **numbers, HITS: dict(hits)}
    return found | {"digest": digest(found)}


def system(found: Mapping[str, Any]) -> Reference:
    """Read which system an entry is of, as it was when it was measured."""
    return Reference.model_validate(found["system"])


def protocols(found: Mapping[str, Any]) -> dict[str, Any]:
    """Select the numbers of an entry."""
    return {name: numbers for name, numbers in found.items() if name not in BESIDE}


def headline(found: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The numbers that a reader looks at first: system -> {"RSUM": ..., "i2t R@1": ..., ...}, in percent.

    With captions in several languages, also mR of each and their mean. A split other than `test` and a protocol other
    than `all` are appended to the system's name.
    """
    return {_named(name, measured["made_from"]["split"], protocol): {
        str(statistic): at(numbers, statistic) for statistic in STATISTICS} | _by_language(numbers)
        for name, measured in found.items() for protocol, numbers in protocols(measured).items()}


def _named(name: str, split: str, protocol: str) -> str:
    parts = [name]
    if split != "test":
        parts.append(split)
    if protocol != "all":
        parts.append(protocol)
    return "-".join(parts)


def _by_language(numbers: Mapping[str, Any]) -> dict[str, float]:
    mean = {"mR": numbers["mean_of_languages"]["mR"]} if "languages" in numbers else {}
    return {f"{language} mR": found["mR"] for language, found in numbers.get("languages", {}).items()} | mean


def digest_of(found: Mapping[str, Any]) -> str:
    """Compute the digest that an entry must have."""
    return digest({key: value for key, value in found.items() if key != "digest"})


def refuse_edited(path: Path, metrics: Mapping[str, Any], similarity: Callable[[str, str, str], Path]) -> None:
    """Refuse entries that were edited, or whose scores were made again since.

    No scores are read. similarity: from a data set, a system's name and a split to its store, which need not exist.
    """
    for name, found in metrics.items():
        if not isinstance(found, Mapping) or not isinstance(found.get("made_from"), Mapping):
            raise InputError(f"{path}: the entry of {name} does not say what made it; run `pipeline evaluate` again")
        made_from = found["made_from"]
        if found.get("digest") != digest_of(found):
            raise InputError(f"{path}: the entry of {name} is not as it was measured; run `pipeline evaluate` again")
        store = similarity(str(made_from.get("dataset")), name, str(made_from.get("split")))
        if store.exists() and System.open(store).reference != system(found):
            raise InputError(f"{path}: {name} was scored again after it was measured; run `pipeline evaluate`")


def record(path: Path, pool: System, distractors: Sequence[System], evaluated_with: Mapping[str, Any],
           numbers: Mapping[str, Any], hits: Mapping[str, Any]) -> str:
    """Write one pool's numbers and hits into results/recorded.json instead of an earlier entry; return its name."""
    if not pool.made_from.is_known:
        raise InputError(f"{pool.name}: does not record what made it, so it cannot be kept; leave out --record")
    among = [{"dataset": each.made_from.dataset, "split": each.split, **each.reference.model_dump(),
              "images": len(each.image_ids), "captions": len(each.caption_ids)} for each in distractors]
    name = ", among ".join((f"{pool.name} on {pool.made_from.dataset}",
                            *(f"{each['dataset']} {each['split']}" for each in among)))
    with exclusive(path):  # another process may add an entry of its own
        entries = read_recorded(path) if path.exists() else {}
        before = entries.get(name, {})
        kept = before if before.get("system") == pool.reference.model_dump() else {}
        entries[name] = entry(pool, {**evaluated_with, "distractors": among},
                              {**protocols(kept), numbers["protocol"]: numbers},
                              {**kept.get(HITS, {}), numbers["protocol"]: hits})
        write_json(path, entries)
    return name


def read_recorded(path: Path) -> dict[str, Any]:
    """Read results/recorded.json, refusing entries that are not as they were measured."""
    entries = read_json(path, COMMAND)
    for name, found in entries.items():
        if not isinstance(found, dict) or found.get("digest") != digest_of(found):
            raise InputError(f"{path}: the entry of {name} is not as it was measured; delete it, and run `pipeline "
                             f"{COMMAND}` again")
    return entries
