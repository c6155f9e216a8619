"""Stores that grow, by command: a split alone, listed images alone, rewriting without a network."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
from folders import tree
from safetensors.torch import save_file

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.manifest import Manifest, with_checksums
from pipeline.make.features.extractors.new_items import NewItems
from pipeline.make.features.store import FeatureStore, ItemFormat

pytestmark = pytest.mark.slow

STORE = Path("features", "sample", "grid.zarr")
MANIFEST = Path("data", "sample.parquet")
ENGINE = "features.light.grid={engine: grid, network: test_efficientnet, weights: untrained, image_size: 64, grid: 2}"
Extract = Callable[..., str]


@pytest.fixture
def extract(pipeline: Any, scenes: Manifest) -> Extract:
    """`pipeline extract` of the scenes in the working directory, an image a batch: its last
    line.
    """
    scenes.save(MANIFEST)

    def run(*arguments: str | Path, shard_images: int = 5) -> str:
        code, out, err = pipeline(
            "extract",
            "--feature",
            "grid",
            "-S",
            ENGINE,
            "-S",
            "extract.batch_size=1",
            "-S",
            f"extract.shard_images={shard_images}",
            *arguments,
        )
        assert code == 0, err
        return str(out.strip().splitlines()[-1])

    return run


def images(manifest: Manifest, path: Path = STORE) -> np.ndarray:
    return FeatureStore(path).require(manifest).read(np.arange(len(manifest.images)))[0]


def fewer(manifest: Manifest, gone: int) -> Manifest:
    """Without the first images."""
    left = manifest.images["image_id"].to_numpy()[gone:]
    return replace(
        manifest,
        source=manifest.table[manifest.table["image_id"].isin(left)].reset_index(drop=True),
    )


def test_a_split_first_and_the_others_later(extract: Extract, scenes: Manifest) -> None:
    test = scenes.split("test").store_rows
    assert f"{len(test)} images extracted" in extract("--split", "test")
    assert "nothing to do" in extract("--split", "test")
    assert np.flatnonzero(FeatureStore(STORE).require(scenes).done).tolist() == sorted(
        test.tolist()
    )
    others = len(scenes.images) - len(test)
    assert f"{len(test)} kept, {others} images extracted" in extract()
    assert "nothing to do" in extract()
    extract("--out", "at_once.zarr")
    assert np.array_equal(images(scenes), images(scenes, Path("at_once.zarr")))


def test_a_card_counts_the_images_and_no_row_that_is_not_used(
    extract: Extract, pipeline: Any, scenes: Manifest
) -> None:
    def described() -> str:
        code, _, err = pipeline("store", "export", "croissant", str(STORE), "--out", "cards")
        assert code == 0, err
        file = Path("cards", f"sample-{STORE.stem}.croissant.json")
        return str(json.loads(file.read_text(encoding="utf-8"))["description"])

    extract("--split", "test")
    of_test = len(scenes.split("test").store_rows)
    assert f" features of {of_test} images, " in described()
    extract()
    assert f" features of {len(scenes.images)} images, " in described()


def test_weights_are_known_by_their_bytes_wherever_their_file_is(
    extract: Extract, refused: Callable[..., str], tmp_path: Path
) -> None:
    def with_weights(file: Path) -> tuple[str, str]:
        return "-S", ENGINE.replace("untrained", str(file))

    first, second = (
        tmp_path / "first" / "mine.safetensors",
        tmp_path / "second" / "renamed.safetensors",
    )
    first.parent.mkdir()
    second.parent.mkdir()
    save_file(timm.create_model("test_efficientnet", num_classes=0).state_dict(), first)
    assert "images extracted" in extract(*with_weights(first))
    before, record = FeatureStore(STORE), records.load(STORE)
    first.rename(second)
    assert "nothing to do" in extract(*with_weights(second))
    moved = FeatureStore(STORE)
    assert moved.place == {"weights": str(second)}
    assert moved.identity == before.identity
    assert records.load(STORE).request == record.request
    assert str(tmp_path) not in f"{moved.fingerprint} {record.request}"
    assert NewItems(ItemFormat.of(moved)).engine.weights == moved.fingerprint["weights"]
    network = timm.create_model("test_efficientnet", num_classes=0)
    save_file({name: value + 1 for name, value in network.state_dict().items()}, first)
    assert "weights" in refused("extract", "--feature", "grid", "-S", with_weights(first)[1])


def test_listed_images_alone(
    extract: Extract, scenes: Manifest, refused: Callable[..., str]
) -> None:
    ids = scenes.images["image_id"].tolist()
    Path("ids.txt").write_text(f"{ids[3]}\n{ids[20]}\n")
    assert "2 images extracted" in extract("--only", "ids.txt")
    assert np.flatnonzero(FeatureStore(STORE).require(scenes).done).tolist() == [3, 20]
    Path("ids.txt").write_text("a photograph\n")
    assert "expected the id of an image" in refused(
        "extract", "--feature", "grid", "--only", "ids.txt"
    )


def test_a_store_is_the_one_that_is_made_at_once_whatever_the_manifest_was_before(
    extract: Extract, pipeline: Any, scenes: Manifest
) -> None:
    """To the byte: three images went, came again, and a split came first."""
    extract("--out", "of_all.zarr")
    fewer(scenes, gone=3).save(MANIFEST)
    extract("--out", "of_few.zarr")
    scenes.save(MANIFEST)
    of_all, of_few = (
        tree(Path(path)) | {"record.json": b""} for path in ("of_all.zarr", "of_few.zarr")
    )
    extract("--split", "val")
    assert "images extracted" in extract()
    assert tree(STORE) | {"record.json": b""} == of_all
    fewer(scenes, gone=3).save(MANIFEST)
    assert "nothing to do" in extract()
    assert tree(STORE) | {"record.json": b""} == of_few
    assert "nothing to do" in pipeline("store", "rewrite", STORE)[1]
    scenes.save(MANIFEST)
    assert "3 images extracted" in extract()
    assert tree(STORE) | {"record.json": b""} == of_all
    assert pipeline("store", "verify", STORE)[0] == 0


def test_rewrite_makes_the_store_that_an_extraction_with_these_settings_makes(
    extract: Extract, pipeline: Any, scenes: Manifest, refused: Callable[..., str]
) -> None:
    assert "24 images extracted" in extract("-S", "extract.dtype=float32")
    code, out, err = pipeline(
        "store",
        "rewrite",
        STORE,
        "--dtype",
        "float16",
        "--compressor",
        "zstd",
        "--shard-images",
        "8",
    )
    assert (code, "24 images in 3 shards of float16, compressor zstd" in out) == (0, True), (
        out + err
    )
    assert "nothing to do" in pipeline("store", "rewrite", STORE, "--dtype", "float16")[1]
    assert pipeline("store", "verify", STORE)[0] == 0
    assert (
        "24 images in 1 shard of" in pipeline("store", "rewrite", STORE, "--shard-images", "24")[1]
    )
    assert (
        "24 images in 3 shards of" in pipeline("store", "rewrite", STORE, "--shard-images", "8")[1]
    )
    assert "nothing to do" in extract("-S", "extract.compressor=zstd", shard_images=8)
    extract("-S", "extract.compressor=zstd", "--out", "at_once.zarr", shard_images=8)
    rewritten, at_once = tree(STORE), tree(Path("at_once.zarr"))
    assert {name: value for name, value in rewritten.items() if name != "record.json"} == {
        name: value for name, value in at_once.items() if name != "record.json"
    }
    assert "of which exact float32 cannot be made" in refused(
        "store", "rewrite", STORE, "--dtype", "float32"
    )


def test_rewrite_says_that_a_store_is_of_other_images_now(
    extract: Extract, pipeline: Any, scenes: Manifest
) -> None:
    extract()
    others = replace(fewer(scenes, gone=3), dataset="others")
    with_checksums(others, Path("known")).save(Path("others.parquet"))
    code, out, err = pipeline("store", "rewrite", STORE, "--manifest", "others.parquet")
    assert code == 0, err
    assert out == (
        f"{STORE}: 21 images in 5 shards of float16, compressor none; 3 rows left out; "
        "of the images of others now\n"
    )


def test_another_layout_of_the_same_features_is_left_as_it_is(
    extract: Extract, pipeline: Any
) -> None:
    extract()
    for layout in (("--compressor", "zstd"), ("--shard-images", "8")):
        assert pipeline("store", "rewrite", STORE, *layout)[0] == 0
        before = tree(STORE)
        assert "nothing to do" in extract("--if-changed", "redo")
        assert tree(STORE) == before
        records.update(
            STORE, finished=False
        )  # so that the network is loaded and the store compared
        assert "nothing to do" in extract("--if-changed", "redo")
        assert {**tree(STORE), "record.json": b""} == {**before, "record.json": b""}
    assert pipeline("store", "rewrite", STORE, "--dtype", "float16")[0] == 0
    assert "24 images extracted" in extract("--if-changed", "redo", "-S", "extract.dtype=float32")


def test_a_store_that_was_rounded_is_not_the_one_that_was_asked_for(
    extract: Extract, pipeline: Any, refused: Callable[..., str]
) -> None:
    extract("-S", "extract.dtype=float32")
    assert pipeline("store", "rewrite", STORE, "--compressor", "zstd")[0] == 0
    assert "asked" in records.load(STORE).facts
    assert pipeline("store", "rewrite", STORE, "--dtype", "float16")[0] == 0
    said = refused("extract", "--feature", "grid", "-S", ENGINE, "-S", "extract.dtype=float32")
    assert "row.dtype was float16, is float32; --if-changed redo replaces it" in said


@pytest.mark.usefixtures("forkserver")
def test_what_verify_removes_is_extracted_again(
    extract: Extract, pipeline: Any, refused: Callable[..., str]
) -> None:
    extract()
    whole = tree(STORE)
    for lost, said in (
        ("features/c/1/0/0", "5 images extracted"),
        ("zarr.json", "nothing to do"),
        ("ids/c/0", "nothing to do"),
    ):
        (STORE / lost).unlink()
        refused("store", "verify", STORE)
        if lost != "zarr.json":
            code, out, err = pipeline("store", "verify", STORE, "--repair", "--workers", "2")
            assert (code, "run the command that made the store again" in out) == (0, True), (
                out + err
            )
        assert said in extract()
        assert pipeline("store", "verify", STORE)[0] == 0
        assert tree(STORE) | {"record.json": b""} == whole | {"record.json": b""}
