"""Files that are changed together with their digests, as by somebody who writes new ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.files.digest import digest


def recorded(folder: Path) -> None:
    """Let a folder's record have the digests of its files as they are now."""
    records.describe(folder, *records.require(folder).contents)


def artefact(
    folder: Path, change: Callable[[dict[str, Any]], object] = lambda content: None
) -> None:
    """Change an artefact's record, let it have the digests of its contents as they are now, and
    seal it.
    """
    content = json.loads((folder / records.FILE).read_text())
    change(content)
    there = {
        name: records.digest_of(folder / name)
        for name in content["contents"]
        if (folder / name).exists()
    }
    records.save(folder, records.Record.model_validate(content | {"contents": there}))


def copied(store: Path, copy: Path) -> None:
    """Copy a store of scores as one that was written under the copy's name."""
    shutil.copytree(store, copy)
    made = records.load(copy)
    records.save(copy, made.changed(request=made.request | {"name": copy.stem}))


def entry(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a ledger entry, and seal it."""
    content = json.loads(file.read_text())
    content.pop("seal")
    change(content)
    file.write_text(
        json.dumps(content | {"seal": digest(content)}, ensure_ascii=False, sort_keys=True)
    )
