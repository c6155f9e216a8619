"""Heads, dual encoders and scorers of pairs as models of mteb: its numbers are ours where nothing
ties.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tiny_dual_encoders
from PIL import Image
from tiny_bert import tiny_bert

from pipeline.extensions.mteb.models import Images, MtebCrossEncoder, MtebEncoder, of_split
from pipeline.foundation import settings
from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.files import images
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.reranking.base import PairSource
from pipeline.make import training
from pipeline.make.features.store import FeatureStore
from pipeline.make.training.pair_scorers import CrossScorer, LateScorer
from pipeline.make.training.source import stored

pytestmark = pytest.mark.slow
SETTINGS = settings.load(
    Path(__file__).parents[3] / "params.yaml",
    ("training.sample.batch_size=16", "training.sample.epochs=1", "training.sample.decay_epoch=1"),
)


@pytest.fixture(scope="module")
def paths(scenes: Manifest, store: FeatureStore, tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """The scenes with a head that embeds, `vectors`, one that scores pairs, `pairs`, and a late
    one, `late`.
    """
    paths = Paths(tmp_path_factory.mktemp("project"))
    scenes.save(paths.manifest("sample"))
    shutil.copytree(store.path, paths.features("sample", "region"))
    bert = str(tiny_bert(paths.root / "bert"))
    for recipe, text, name in (
        ("vse2ad", "bigru", "vectors"),
        ("ce", "bert", "pairs"),
        ("late", "bigru", "late"),
    ):
        named = SETTINGS.recipe(recipe)
        training.train(
            training.TrainingJob(
                scenes,
                stored(paths.features("sample", "region"), scenes, named),
                "region",
                text,
                recipe,
                named,
                SETTINGS.training_of("sample").model_copy(update={"bert": bert}),
                0,
                paths.head("sample", name),
            )
        )
    return paths


def hit_rates(
    model: MtebEncoder | MtebCrossEncoder, scenes: Manifest, direction: str
) -> dict[int, float]:
    import mteb  # takes seconds

    result = mteb.evaluate(
        model, of_split(scenes, "train", direction), cache=None, show_progress_bar=False
    )
    scores = result.task_results[0].scores["train"][0]
    return {k: scores[f"hit_rate_at_{k}"] for k in (1, 5, 10)}


def opened(paths: Paths, name: str) -> tuple[training.Head, training.ImageSource]:
    head = training.Head.open(paths.head("sample", name))
    return head, head.images(
        Manifest.load(paths.manifest("sample")), paths.features("sample", head.feature)
    )


def test_its_hit_rate_is_our_recall(paths: Paths, scenes: Manifest) -> None:
    head, source = opened(paths, "vectors")
    part = scenes.split("train")
    found = retrieval.Embeddings(*head.embed(source, part, 8))
    model = MtebEncoder.of_head(paths, "sample", "vectors")
    low, high = (
        evaluate(found, part.caption_image, ties=ties) for ties in ("pessimistic", "optimistic")
    )
    for direction in ("i2t", "t2i"):
        for k, rate in hit_rates(model, scenes, direction).items():
            least, most = (found[direction, f"R@{k}"] for found in (low, high))
            assert least - 1e-3 <= 100 * rate <= most + 1e-3  # mteb rounds to five places
            assert (
                direction == "i2t" or least == most
            )  # no two images tie: this direction is compared exactly


def test_a_dual_encoder_gives_its_own_vectors(scenes: Manifest, tmp_path: Path) -> None:
    model = MtebEncoder.of_model(f"clip:{tiny_dual_encoders.clip(tmp_path / 'tiny-clip')}")
    assert model.mteb_model_meta.name == "vse-pipeline/tiny-clip"
    revision = str(model.mteb_model_meta.revision)
    assert len(revision) == 40  # as long as a commit's
    photographs = [Image.new("RGB", (40, 30), color) for color in ("red", "blue")]
    both = model.encode([{"image": photographs, "text": ["a circle", "a square"]}])
    apart = model.encode([{"image": photographs}]) + model.encode(
        [{"text": ["a circle", "a square"]}]
    )
    np.testing.assert_allclose(both, apart, atol=1e-6)
    assert model.similarity(both, both).shape == (2, 2)
    np.testing.assert_allclose(model.similarity(both, both).diagonal(), 1, atol=1e-6)
    np.testing.assert_allclose(model.similarity_pairwise(both, apart), 1, atol=1e-6)
    with pytest.raises(InputError, match="inputs with audio: expected image or text"):
        model.encode([{"audio": [1]}])


def test_pairs_score_as_stored_features_do(paths: Paths, scenes: Manifest) -> None:
    files, captions = (
        scenes.images["file"].to_numpy()[[0, 3, 0]],
        scenes.table["caption"].tolist()[:3],
    )
    photographs = [images.decode(scenes.images_folder / file) for file in files]
    source = PairSource(paths, "sample", "sample", "sample")
    ids = scenes.images["image_id"].to_numpy()[[0, 3, 0]], scenes.table["caption_id"].to_numpy()[:3]
    for scorer in (CrossScorer("pairs", source), LateScorer("late", source)):
        if isinstance(scorer, CrossScorer):
            scorer.precision = "fp32"
        model = MtebCrossEncoder(paths, "sample", scorer.name)
        found = model.predict(
            [{"image": photographs[:2]}, {"image": photographs[2:]}], [{"text": captions}]
        )
        np.testing.assert_allclose(found, scorer.score(*ids), atol=1e-4)
        np.testing.assert_allclose(
            model.predict([{"text": captions}], [{"image": photographs}]), found, atol=1e-5
        )
        with pytest.raises(
            InputError, match="expected as many images as texts, got 3 of image and 2 of text"
        ):
            model.predict([{"image": photographs}], [{"text": captions[:2]}])


def test_images_are_told_apart_by_their_pixels_and_their_shape() -> None:
    asked: list[tuple[int, int]] = []

    def items(batch: list[Image.Image]) -> tuple[np.ndarray, np.ndarray]:
        asked.append(batch[0].size)
        return np.zeros((1, 2, 3)), np.array([2])

    new: Any = SimpleNamespace(items=items)
    images = Images(new)
    shown = [
        Image.new("RGB", size, colour)
        for size, colour in (((2, 8), "red"), ((8, 2), "red"), ((2, 8), "blue"))
    ]
    assert [images.row(image) for image in [*shown, *shown]] == [0, 1, 2, 0, 1, 2]
    assert asked == [(2, 8), (8, 2), (2, 8)]


def test_images_of_any_mode_are_read_as_from_their_files(
    paths: Paths, scenes: Manifest, tmp_path: Path
) -> None:
    shown = images.decode(scenes.images_folder / scenes.images["file"].iloc[0])
    clear, palette, turned = shown.copy(), shown.quantize(8), Image.Exif()
    clear.putalpha(Image.linear_gradient("L").resize(shown.size))
    other = palette.copy()  # the same bytes as `palette`, in other colours
    other.putpalette([255 - value for value in palette.getpalette() or []])
    turned[0x0112] = 6
    kinds = [shown.convert("L"), shown.convert("CMYK"), clear, palette, other]
    files = [tmp_path / f"{number}.tif" for number in range(len(kinds) + 1)]
    for kind, file in zip(kinds, files, strict=False):
        kind.save(file)
    shown.save(files[-1], exif=turned)
    read, handed = [images.decode(file) for file in files], [Image.open(file) for file in files]
    texts = ["a circle"] * len(files)
    for model in (
        MtebEncoder.of_head(paths, "sample", "vectors"),
        MtebCrossEncoder(paths, "sample", "late"),
    ):
        found, expected = (
            model.encode([{"image": each}])
            if isinstance(model, MtebEncoder)
            else model.predict([{"image": each}], [{"text": texts}])
            for each in (handed, read)
        )
        np.testing.assert_array_equal(found, expected)
        assert len(np.unique(found, axis=0)) == len(files)


def test_what_is_right_in_a_task_is_what_the_split_says() -> None:
    """Caption 2 belongs to no image; image 0 has two captions; rows are those of the files."""
    from datasets import Image as Undecoded  # with mteb it takes seconds

    part = SimpleNamespace(
        store_rows=np.array([2, 0]),
        captions=["a", "b", "c", "d"],
        caption_image=np.array([0, 1, -1, 0]),
    )
    files = pd.DataFrame({"file": ["x.png", "y.png", "z.png"]})
    manifest: Any = SimpleNamespace(
        dataset="mine", images=files, images_folder=Path("f"), split=lambda name: part
    )
    right = {("image-0", "caption-0"), ("image-0", "caption-3"), ("image-1", "caption-1")}
    for direction in ("i2t", "t2i"):
        task = of_split(manifest, "val", direction)  # type: ignore[arg-type]
        task.load_data()
        data = task.dataset["default"]["val"]
        sides = (data["queries"], data["corpus"])
        images, captions = sides if direction == "i2t" else sides[::-1]
        found = set()
        for query, matches in data["relevant_docs"].items():
            for match in matches:
                found.add((query, match) if direction == "i2t" else (match, query))
        assert found == right
        assert captions["text"] == ["a", "b", "c", "d"]
        paths = [
            image["path"] for image in images.cast_column("image", Undecoded(decode=False))["image"]
        ]
        assert paths == [str(Path("f") / name) for name in ("z.png", "x.png")]


def test_mteb_reranks_with_a_cross_encoder(paths: Paths, scenes: Manifest) -> None:
    import mteb  # takes seconds

    task = of_split(scenes, "val", "t2i")
    task.load_data()
    data = task.dataset["default"]["val"]
    every = list(data["corpus"]["id"])
    data["top_ranked"] = dict.fromkeys(data["queries"]["id"], every)
    result = mteb.evaluate(
        MtebCrossEncoder(paths, "sample", "late"), task, cache=None, show_progress_bar=False
    )
    rates = result.task_results[0].scores["val"][0]
    head, source = opened(paths, "late")
    part = scenes.split("val")
    ours = evaluate(head.score(source, part, 8), part.caption_image)
    assert 100 * rates["hit_rate_at_1"] == pytest.approx(ours["t2i", "R@1"], abs=1e-3)


def test_a_head_of_the_other_kind_is_refused(paths: Paths) -> None:
    with pytest.raises(
        InputError, match="late: scores pairs and embeds nothing; make a cross-encoder of it"
    ):
        MtebEncoder.of_head(paths, "sample", "late")
    with pytest.raises(
        InputError, match="vectors: embeds images and captions apart; make an encoder of it"
    ):
        MtebCrossEncoder(paths, "sample", "vectors")
