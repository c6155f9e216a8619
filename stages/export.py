"""Write a trained head for other libraries."""

from __future__ import annotations

from pathlib import Path

from pipeline import training
from pipeline.settings import Settings
from pipeline.settings.paths import Paths
from stages.arguments import Source
from stages.progress import Progress, say


def export(paths: Paths, settings: Settings, head: Source, to: str, dataset: str | None = None,
           out: Path | None = None) -> None:
    """Write a head of a data set as ONNX graphs, or as a model of sentence-transformers."""
    folder = head.head or paths.head(dataset or settings.run.dataset, head.named)
    place = out or paths.exported(dataset or settings.run.dataset, f"{folder.name}-{to}")
    training.HeadArtefact.open(folder)  # a missing one is refused before torch is imported
    from pipeline.training.exporters.base import export as write

    with Progress(f"export {folder.name}", "step"):
        about = write(folder, to, place)
    sides = " and ".join(side for side in ("images", "captions") if side in about)
    say(f"{place}: {sides} of {about['head']} as {about['dimension']} numbers each", err=False)
