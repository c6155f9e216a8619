"""A dual encoder as a system: the images and captions that a user names are embedded, and nothing is stored."""

from pathlib import Path

from pipeline.dual_encoders import load
from pipeline.dual_encoders.base import Usage
from pipeline.dual_encoders.embedding import embed_part
from pipeline.evaluation import retrieval
from pipeline.files import remote
from pipeline.manifest import Manifest, build
from pipeline.parts.errors import InputError
from pipeline.systems.scores.judged import Columns
from pipeline.systems.scores.sources import Given
from pipeline.systems.scores.system import System

BATCH = 64


def open_encoder(model: str, columns: Columns) -> System:
    """Embed a split's images and captions with an encoder, KIND:PLACE, as its own files say."""
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
    vectors = embed_part(load(model, Usage()), files, split.captions.tolist(), BATCH)
    scores = retrieval.Embeddings(vectors.images, vectors.captions)
    return System(split.image_ids, split.caption_ids, split.caption_image, name=Path(model.partition(":")[2]).name,
                  kind=Given(lambda: scores), split=split.name, languages=split.languages,
                  read_as=f"a model, with {len(split.image_ids)} images and {len(split.caption_ids)} captions")
