"""The steps of one dual encoder behind a result: its files, some of its vectors computed again, the photographs."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.dual_encoders import embedding, record
from pipeline.evaluation.retrieval import Embeddings
from pipeline.files.digest import digest, of_files
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.provenance.of_head import another
from pipeline.provenance.step import Step
from pipeline.systems.scores import ENCODER
from pipeline.systems.scores.system import System


def steps(member: Mapping[str, Any], made_from: Mapping[str, Any], store: Path, manifest: Manifest, drawn: int,
          image: int | None, batch_size: int) -> Iterator[Step]:
    """Compare an encoder and what it read with the result's entry of it."""
    model = member[ENCODER]["model"]
    try:
        encoder = record.load_recorded(member)
    except InputError:
        yield Step(Path(model), "the encoder's files", member["checkpoint"], None)
        return
    for name in dict.fromkeys((*member["files"], *encoder.files)):
        yield Step(Path(model) / name, "SHA-256", member["files"].get(name, "no such file"), encoder.files.get(name))
    yield Step(Path(model), "the encoder and its usage", member["checkpoint"], record.identity(model, encoder))
    said = member[ENCODER]
    yield Step(Path(model), "what it is called", digest(dict(said)),
               digest(record.described(model, encoder, said.get("trained_on"))))
    if drawn:
        yield _embedded_again(encoder, store, manifest, drawn, image, batch_size)
    for split in made_from["split"].split("+"):
        yield _photographs(member, split, manifest)


def _embedded_again(encoder: Any, store: Path, manifest: Manifest, drawn: int, image: int | None, batch_size: int
                    ) -> Step:
    what = "embedded again"
    try:
        scores = System.open_either(store)
        whole = manifest.split(scores.made_from["split"])
        ids = np.intersect1d(whole.image_ids, scores.image_ids)
        chosen = [*np.random.default_rng().permutation(ids)[:drawn].tolist(), *([] if image is None else [image])]
        part = whole.only(np.isin(whole.image_ids, chosen))
        told = f"{len(part.image_ids)} images, {len(part.captions)} captions"
        names = manifest.images["file"].to_numpy()[part.store_rows]
        piece = embedding.embed_part(encoder, [manifest.images_folder / name for name in names], part.captions,
                                     batch_size)
        return Step(store, what, told, another(scores, part, Embeddings(piece.images, piece.captions)) or told)
    except InputError as error:
        return Step(store, what, f"{drawn} images", str(error) if store.exists() else None)


def _photographs(member: Mapping[str, Any], split: str, manifest: Manifest) -> Step:
    """The photographs of the split that was scored; all of them, for the digest is over all."""
    files = [manifest.images_folder / name
             for name in manifest.images["file"].to_numpy()[manifest.split(split).store_rows]]
    found = digest(list(of_files(files))) if all(file.is_file() for file in files) else None
    return Step(manifest.images_folder, f"SHA-256 of the images of {split}", member["splits"][split]["content"], found)
