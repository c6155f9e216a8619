"""A dual encoder on the images and captions that a user names, of which nothing is stored."""

from pathlib import Path

from pipeline.dual_encoders import load
from pipeline.dual_encoders.base import Usage
from pipeline.dual_encoders.embedding import embed_part
from pipeline.evaluation.retrieval import Embeddings, Similarity
from pipeline.evaluation.retrieval.blocks import Matrix
from pipeline.files import remote
from pipeline.manifest import Manifest, Split, build
from pipeline.parts.errors import InputError
from pipeline.systems.scores.judged import Columns

BATCH = 64


def open_encoder(model: str, columns: Columns) -> tuple[Split, Similarity]:
    """Compare a split's images and captions by an encoder, KIND:PLACE, used as the columns say."""
    if columns.manifest is not None:
        manifest = Manifest.load(columns.manifest)
    elif columns.images is not None and columns.captions is not None:
        manifest = build("given", columns.images, columns.captions)
    else:
        raise InputError(f"{model}: is a model; name what it is to embed: --images FOLDER --captions FILE, or "
                         "--manifest")
    manifest.require_photographs("a dual encoder")
    split, folder = manifest.split(columns.split or "test"), remote.absolute(columns.images or manifest.images_folder)
    files = [Path(folder) / name for name in manifest.images["file"].iloc[split.store_rows]]
    encoder, captions = load(model, Usage(**columns.usage), per_token=True), split.captions.tolist()
    if encoder.per_token:
        from pipeline.dual_encoders import per_token  # and with it heads

        return split, Matrix(per_token.scores(encoder, files, captions, BATCH))
    piece = embed_part(encoder, files, captions, BATCH)
    return split, Embeddings(piece.images, piece.captions)
