"""results/recorded.json: numbers of single stores, of larger pools and of heads that were trained on other data.

The run's own systems are in results/metrics.json, which each `pipeline evaluate` writes anew. Here entries stay.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.files.atomic import write_text
from pipeline.files.digest import digest
from pipeline.files.results import read_json
from pipeline.parts.errors import InputError
from pipeline.provenance import results
from pipeline.systems.scores.system import System

COMMAND = "evaluate --system STORE --record"


def add(path: Path, pool: System, distractors: Sequence[System], evaluated_with: Mapping[str, Any],
        numbers: Mapping[str, Any]) -> str:
    """Write the numbers of one pool beside those of others. An entry of the same name is replaced.

    Args:
        path: The file; it may not exist.
        pool: What was measured.
        distractors: What its own images and captions were ranked among.
        evaluated_with: The settings that are needed to compute the numbers again.
        numbers: The numbers by the pool's protocol.

    Returns:
        The entry's name.

    Raises:
        InputError: If the pool does not say what made it, or the file was changed by hand.
    """
    if not pool.made_from:
        raise InputError(f"{pool.name}: does not record what made it, so it cannot be kept; leave out --record")
    among = [{"dataset": each.made_from["dataset"], "split": each.made_from["split"], "seal": digest(each.made_from),
              "images": len(each.image_ids), "captions": len(each.caption_ids)} for each in distractors]
    name = ", among ".join((f"{pool.name} on {pool.made_from['dataset']}",
                            *(f"{each['dataset']} {each['split']}" for each in among)))
    entries = read(path) if path.exists() else {}
    kept = results.protocols(entries.get(name, {})) if entries.get(name, {}).get("made_from") == pool.made_from else {}
    entries[name] = results.entry(pool.made_from, {**evaluated_with, "distractors": among},
                                  {**kept, numbers["protocol"]: numbers})
    write_text(path, json.dumps(entries, indent=1, ensure_ascii=False))
    return name


def read(path: Path) -> dict[str, Any]:
    """Read the file.

    Args:
        path: The file.

    Returns:
        Name -> entry, as in results/metrics.json.

    Raises:
        InputError: If it is no such file, or an entry is not as it was measured.
    """
    entries = read_json(path, COMMAND)
    for name, found in entries.items():
        if not isinstance(found, dict) or found.get("digest") != results.digest_of(found):
            raise InputError(f"{path}: the entry of {name} is not as it was measured; delete it, and run `pipeline "
                             f"{COMMAND}` again")
    return entries
