"""Write a trained head, or a tuned dual encoder, for other libraries."""

from __future__ import annotations

from pathlib import Path

from pipeline.foundation.artefacts import Artefact
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.make import dual_encoders, training
from pipeline.make.training.exporters import EXPORTERS
from stages.arguments import Source
from stages.commands.export import ExportOptions
from stages.progress import Progress, say


def export(paths: Paths, settings: Settings, options: ExportOptions) -> None:
    """Write a head as ONNX graphs or a model of sentence-transformers, a tuned encoder as a model
    of its library.
    """
    if options.head.is_encoder:
        _export_encoder(paths, options.head, options.to, options.dataset, options.out)
        return
    dataset = options.dataset or settings.run.dataset
    folder = options.head.head or paths.head(dataset, options.head.named)
    # A missing one is refused before torch is imported.
    artefact = training.HeadArtefact.open(folder)
    if options.to not in EXPORTERS:
        raise InputError(
            f"{options.head.named}: a head is written --to {' or '.join(EXPORTERS)}; {options.to} is for tuned:FOLDER"
        )
    dataset = options.dataset or artefact.dataset
    place = options.out or paths.exported(dataset, f"{folder.name}-{options.to}")
    from pipeline.make.training.exporters.base import export as write

    with Progress(f"export {folder.name}", "step"):
        about = write(folder, options.to, place)
    sides = " and ".join(side for side in ("images", "captions") if side in about)
    say(f"{place}: {sides} of {about['head']} as {about['dimension']} numbers each", err=False)


def _export_encoder(
    paths: Paths, encoder: Source, to: str, dataset: str | None, out: Path | None
) -> None:
    kind, place = dual_encoders.check(encoder.named)
    if kind != "tuned":
        raise InputError(
            f"{encoder.named}: was not trained on here, and is a model of another library already; "
            "expected a head or tuned:FOLDER"
        )
    facts = Artefact.open(Path(place)).record.facts
    trained_on = dataset or facts.get("trained_on", "")  # none of an unfinished one
    place_out = out or paths.exported(trained_on, f"{encoder.called}-{to}")
    from pipeline.make.dual_encoders.tuning import tuned  # and with it torch

    with Progress(f"export {encoder.called}", "step"):
        prompt = tuned.export(Path(place), to, place_out)
    said = f"{place_out}: {encoder.called} as a model of {to}"
    if prompt != "{}":
        said += f"; it was trained with the prompt {prompt!r}, so give it captions in this text"
    say(said, err=False)
