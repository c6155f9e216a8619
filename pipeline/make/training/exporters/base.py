"""What can be exported of a head, and the README and export.json that say what goes into the
folder's files.
"""

import json
from pathlib import Path
from typing import Any

from pipeline.foundation.compute import made_with
from pipeline.foundation.files import atomic
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.extractors.tower import TextTower
from pipeline.make.heads.two_tower import TwoTower
from pipeline.make.text.features import FeatureText
from pipeline.make.training.exporters import EXPORTERS
from pipeline.make.training.head import Head

ABOUT = "export.json"


def tower_of(head: Head) -> TextTower | None:
    """The pretrained tokenizer and network that read a head's captions, or made the stored features
    of these.
    """
    if isinstance(head.text, FeatureText):
        return getattr(head.text.engine.engine, "tower", None)
    if isinstance(head.text, TextTower):
        return head.text
    return None


def export(folder: Path, to: str, out: Path) -> dict[str, Any]:
    """Write the head of a folder for another library, a key of `EXPORTERS`, and return what
    export.json says.

    An earlier export in `out` is replaced.
    """
    head = Head.open(folder)
    unfit = ""
    if not isinstance(head.model, TwoTower):
        unfit = f"its architecture {head.recipe.architecture.name} compares pairs"
    elif head.model.backbone is not None:
        unfit = "it reads photographs by a network of its own"
    if unfit:
        raise InputError(
            f"{folder}: cannot be exported: {unfit}; heads of two towers on stored features can"
        )
    extras.require(to, f"pipeline export --to {to}")
    with atomic.creating(out) as making:
        written = EXPORTERS.find(to)(head, making)
        features = head.artefact.facts.items
        about = {
            "head": head.artefact.name,
            "record": head.artefact.reference.identity,
            **made_with.record(),
            "dimension": head.model.dimension,
            "scores": "dot products of the unit vectors",
            "features": features and features.compared,
            **written,
        }
        text = json.dumps(about, indent=1, ensure_ascii=False)
        (making / ABOUT).write_text(text, encoding="utf-8")
    return about
