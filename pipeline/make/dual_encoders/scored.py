"""A dual encoder on the images and captions that a user names, of which nothing is stored."""

import warnings
from pathlib import Path

from pipeline.foundation.evaluation.retrieval import Embeddings, Similarity
from pipeline.foundation.evaluation.retrieval.blocks import Matrix
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import Manifest, Split, build
from pipeline.foundation.parts.errors import InputError, InputWarning, counted
from pipeline.judge.systems.scores.judged import Columns
from pipeline.make import dual_encoders

BATCH = 64


def open_encoder(model: str, columns: Columns, batch_size: int = BATCH) -> tuple[Split, Similarity]:
    """Compare a split's images and captions by an encoder, KIND:PLACE, used as the columns say."""
    if columns.manifest is not None:
        manifest = Manifest.load(columns.manifest)
    elif columns.images is not None and columns.captions is not None:
        manifest = _given(columns.images, columns.captions)
    else:
        raise InputError(
            f"{model}: is a model; name what it is to embed: --images FOLDER --captions FILE, or "
            "--manifest"
        )
    manifest.require_photographs("a dual encoder")
    split = manifest.split(columns.split or "test")
    files = manifest.gallery(columns.images, split.store_rows.tolist())
    from pipeline.make.dual_encoders.embedding import embed_part  # and with it torch

    encoder = dual_encoders.load(model, dual_encoders.Usage(**columns.usage), per_token=True)
    if encoder.trained_on and columns.manifest is None:
        warnings.warn(
            f"{model}: was trained on {encoder.trained_on}, whose photographs of train are no test; name "
            "the --manifest, whose split test is measured",
            InputWarning,
            stacklevel=2,
        )
    captions = split.captions.tolist()
    for note in encoder.notes_on_cut(sum(encoder.is_cut(captions)), len(captions)):
        warnings.warn(f"{model}: {note}", InputWarning, stacklevel=2)
    if encoder.per_token:
        from pipeline.make.dual_encoders import per_token  # and with it heads

        return split, Matrix(per_token.scores(encoder, files, captions, batch_size))
    piece = embed_part(encoder, files, captions, batch_size)
    return split, Embeddings(piece.images, piece.captions)


def _given(images: Path, captions: Path) -> Manifest:
    """Pair photographs with captions, and warn of what was left out, and where no other split is
    named.
    """
    left_out = LeftOut()
    manifest = build("given", images, captions, left_out=left_out)
    lines = left_out.lines()
    if set(manifest.images["split"]) == {"test"}:
        lines.append(
            f"all its {counted(len(manifest.images), 'image')} are measured, as the split test"
        )
    for line in lines:
        warnings.warn(f"{captions}: {line}", InputWarning, stacklevel=3)
    return manifest
