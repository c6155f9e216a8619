"""The cache that mteb's own wrapper writes: its vectors, found by the content of each item."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from pipeline.extensions.leaderboards.mteb_cache import of_image
from pipeline.foundation import settings
from pipeline.foundation.files import images
from pipeline.foundation.manifest import build
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import measured
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns

pytestmark = pytest.mark.slow
SETTINGS = settings.load(Path(__file__).parents[3] / "params.yaml")
IMAGES, EACH, DIMENSION = 8, 2, 6
TURNED = 0x0112


class Made:
    """Images in many modes with captions, their vectors, and mteb's cache of both."""

    def __init__(self, folder: Path, rng: np.random.Generator) -> None:
        self.cache = folder / "cache" / "Made"
        self.manifest = folder / "made.parquet"
        self.files = [folder / "images" / f"{each}.png" for each in range(IMAGES - 1)]
        self.files.append(folder / "images" / "turned.jpg")
        (folder / "images").mkdir()
        shades = rng.integers(0, 256, (IMAGES, 9, 7, 3), np.uint8)
        modes = ["RGB", "L", "P", "RGBA", "LA", "1", "P", "RGB"]
        for file, pixels, mode in zip(self.files, shades, modes, strict=True):
            image = Image.fromarray(pixels).convert(mode)
            asked: dict[str, Any] = {}
            if file == self.files[6]:
                asked["transparency"] = bytes([0, 128])
            if file.suffix == ".jpg":
                asked["exif"] = image.getexif()
                asked["exif"][TURNED] = 6
            image.save(file, **asked)
        self.owner = np.repeat(np.arange(IMAGES), EACH)
        self.texts = [f"Caption {each} says Grüße." for each in range(IMAGES * EACH)]
        names = [self.files[each].name for each in self.owner]
        table = pd.DataFrame({"image": names, "caption": self.texts, "split": "test"})
        table.to_csv(folder / "captions.csv", index=False)
        build("made", folder / "images", folder / "captions.csv").save(self.manifest)
        self.of_images = rng.normal(size=(IMAGES, DIMENSION)).astype(np.float32)
        noise = rng.normal(size=(IMAGES * EACH, DIMENSION))
        self.of_texts = (self.of_images[self.owner] + noise).astype(np.float32)

    def items(self) -> tuple[Any, Any]:
        """The images and texts as mteb's data sets hold them."""
        import datasets

        files = [str(file) for file in self.files]
        held = datasets.Dataset.from_dict({"image": files})
        pictures = held.cast_column("image", datasets.Image())
        return pictures, datasets.Dataset.from_dict({"text": self.texts})

    def encode(self, of_queries: str) -> None:
        """Have mteb's wrapper keep the vectors of both sides, the last ones first."""
        from mteb.models.cache_wrappers import CachedEmbeddingWrapper
        from mteb.types import PromptType

        sides = dict(zip(("image", "text"), self.items(), strict=True))
        vectors = {"image": self.of_images, "text": self.of_texts}
        for side, dataset in sides.items():
            role = PromptType.query if side == of_queries else PromptType.document
            turned = vectors[side][::-1]
            model = SimpleNamespace(encode=lambda *_, v=turned, **__: v, mteb_model_meta=None)
            wrapper: Any = CachedEmbeddingWrapper(model, self.cache.parent)  # type: ignore[arg-type]
            backend = wrapper._get_or_create_cache("Made", role)
            backend.initial_vectors = 64
            items = [dataset[row] for row in range(len(dataset))][::-1]
            backend.add(items, turned)
            backend.save()
            wrapper.close()

    def recalls(self, way: str) -> float:
        """R@1 by plain NumPy, in percent."""
        scores = self.of_images @ self.of_texts.T
        if way == "t2i":
            return 100 * float(np.mean(scores.argmax(0) == self.owner))
        return 100 * float(np.mean(self.owner[scores.argmax(1)] == np.arange(IMAGES)))


@pytest.fixture
def made(tmp_path: Path, rng: np.random.Generator) -> Made:
    return Made(tmp_path, rng)


@pytest.mark.parametrize("of_queries", ["text", "image"])
def test_vectors_are_found_by_the_content_of_texts_and_images(made: Made, of_queries: str) -> None:
    from mteb._content_hashes import hash_image

    pictures, _ = made.items()
    for file, row in zip(made.files, pictures, strict=True):
        assert of_image(images.upright(file)) == hash_image(row["image"]), file
    made.encode(of_queries)
    system = open_system(str(made.cache), Columns(manifest=made.manifest))
    numbers = measured.measure(system, "all", "expected", SETTINGS.evaluate).numbers
    for way in ("t2i", "i2t"):
        assert 0 < made.recalls(way) < 100
        assert numbers[way]["R@1"] == pytest.approx(made.recalls(way))
    said = {"text": "captions are queries", "image": "images are queries"}
    assert system.read_as.endswith(said[of_queries])


def test_each_direction_has_its_own_vectors_where_both_were_encoded(made: Made) -> None:
    made.encode("text")
    scores = {"t2i": made.recalls("t2i")}
    made.of_images = made.of_images[::-1].copy()  # images as queries have other vectors
    made.encode("image")
    scores["i2t"] = made.recalls("i2t")
    system = open_system(str(made.cache), Columns(manifest=made.manifest))
    numbers = measured.measure(system, "all", "expected", SETTINGS.evaluate).numbers
    assert {way: numbers[way]["R@1"] for way in scores} == pytest.approx(scores)
    assert system.read_as.endswith("captions are queries and images are queries")


def test_what_is_missing_or_damaged_is_refused_in_one_line(made: Made) -> None:
    made.encode("text")
    columns = Columns(manifest=made.manifest)
    folder = made.cache / "document"
    index = json.loads((folder / "index.json").read_text())
    first = next(iter(index))
    cut = (folder / "vectors.npy").read_bytes()[:-1]
    cases: list[tuple[str, bytes, str]] = [
        ("vectors.npy", cut, "bytes, no whole rows of 6 float32"),
        ("vectors.npy", b"", "has 0 bytes"),
        ("dimension", b"many", "expected the size of a vector"),
        ("dimension", b"0", "expected the size of a vector"),
        ("dimension", b"\xff", "is no text"),
        ("index.json", b"{", "is damaged"),
        ("index.json", b"[1]", "expected the row of each content"),
        ("index.json", json.dumps(index | {first: 64}).encode(), "the row 64, expected 0 to 63"),
        ("index.json", json.dumps(index | {first: -1}).encode(), "the row -1"),
        ("index.json", json.dumps(index | {first: 1.0}).encode(), "the row 1.0"),
        ("index.json", json.dumps(index | {first: True}).encode(), "the row True"),
        (
            "index.json",
            json.dumps({key: row for key, row in index.items() if key != first}).encode(),
            "lacks 1 of the 8 images as documents of the manifest's test split .*resized",
        ),
    ]
    for name, content, said in cases:
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(content)
        with pytest.raises(InputError, match=said) as refused:
            open_system(str(made.cache), columns)
        assert "\n" not in str(refused.value)
        (folder / name).write_bytes(whole)
    open_system(str(made.cache), columns)
    with pytest.raises(InputError, match="has no ids; name the --manifest"):
        open_system(str(made.cache))
    with pytest.raises(InputError, match=r"one side of .* name the folder that it is in, .*Made$"):
        open_system(str(folder), columns)
    (folder / "vectors.npy").unlink()
    with pytest.raises(InputError, match=r"document: holds no vectors\.npy"):
        open_system(str(made.cache), columns)
