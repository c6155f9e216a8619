"""`pipeline trace`: from a figure to the shard, every step verified; whatever is changed, it says which."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.manifest import Manifest
from pipeline.retrieval import Embeddings
from pipeline.scores import similarity_store
from pipeline.scores.similarity_store import SimilarityStore
from pipeline.store import FeatureStore, ledger

HEAD = "vse2ad-region-bigru-s0"
RUN = ("-S", "run.features=[region]")


@pytest.fixture
def measured(pipeline: Any, scenes: Manifest, store: FeatureStore, rng: np.random.Generator) -> Manifest:
    """All that a run leaves, from the manifest to metrics.json; the head is bytes, its vectors are drawn."""
    scenes.save(Path("data/sample.parquet"))
    shutil.copytree(store.path, "features/sample/region.zarr")
    head = Path("heads/sample", HEAD)
    head.mkdir(parents=True)
    (head / "best.safetensors").write_bytes(b"a head")
    (head / "head.json").write_text(json.dumps({"feature": "region", "manifest": scenes.digest,
                                                "store": store.identity}))
    split = scenes.split("test")
    vectors = [rng.standard_normal((len(ids), 4)).astype(np.float32) for ids in (split.image_ids, split.caption_ids)]
    made_from = {"dataset": "sample", "split": "test", "recipe": "vse2ad", "ensemble": None,
                 "features": {"region": store.fingerprint["recipe"]}, "text": "bigru", "seed": 0,
                 "untrained": ["region"], "manifest": scenes.digest,
                 "members": [{"head": HEAD, "checkpoint": hashlib.sha256(b"a head").hexdigest(),
                              "store": store.identity, "weights": store.fingerprint["weights"]}]}
    similarity_store.save(Path("similarities/sample", f"{HEAD}.zarr"), [Embeddings(*vectors, double=True)],
                          split.image_ids, split.caption_ids, split.caption_image, made_from)
    for command in (("ensemble", "R"), ("evaluate", *RUN)):
        code, _, err = pipeline(*command)
        assert code == 0, err
    return scenes


def traced(pipeline: Any, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    code, out, err = pipeline("trace", *arguments, "--json")
    return code, json.loads(out), err


ENSEMBLE = ("results/metrics.json", "vse2ad-R-bigru-s0")


def test_every_step_from_the_figure_to_the_shard_matches(pipeline: Any, measured: Manifest) -> None:
    split = measured.split("test")
    caption, image = int(split.caption_ids[-1]), int(split.image_ids[split.caption_image[-1]])
    code, steps, _ = traced(pipeline, *ENSEMBLE, "--caption", str(caption))
    assert (code, {step["verdict"] for step in steps}) == (0, {"matches"})
    row = int(np.flatnonzero(measured.images["image_id"] == image)[0])
    assert f"features/sample/region.zarr/features/c/{row // 10}/0/0" in [step["path"] for step in steps]
    assert steps[-1]["path"] == str(measured.images_folder / measured.images["file"][row])
    assert traced(pipeline, *ENSEMBLE, "--image", str(image))[1] == steps
    out = pipeline("trace", *ENSEMBLE, "--image", str(image))[1]
    assert f"BLAKE2b of shard {row // 10}, with image row {row}" in out
    similarity = SimilarityStore.open(Path("similarities/sample/vse2ad-R-bigru-s0.zarr")).similarity[:]
    own = similarity[split.caption_image[-1], split.caption_image == split.caption_image[-1]].max()
    rank = 1 + int((similarity[split.caption_image[-1]] > own).sum())
    assert f"image {image}: the best of its captions has rank {rank} of {len(split.caption_ids)}" in out
    rank = 1 + int((similarity[:, -1] > similarity[split.caption_image[-1], -1]).sum())
    out = pipeline("trace", *ENSEMBLE, "--caption", str(caption))[1]
    assert f"caption {caption}: its image {image} has rank {rank} of {len(split.image_ids)}" in out
    # A store by itself is traced from there on: no numbers to measure again.
    alone = traced(pipeline, "similarities/sample/vse2ad-R-bigru-s0.zarr", "--image", str(image))[1]
    assert alone == [step for step in steps if "measured again" not in step["what"]]


def retrain() -> None:
    Path("heads/sample", HEAD, "best.safetensors").write_bytes(b"another head")


def lose_the_head() -> None:
    shutil.rmtree(Path("heads/sample", HEAD))


def raise_a_number() -> None:
    path = Path("results/metrics.json")
    metrics = json.loads(path.read_text())
    metrics["vse2ad-R-bigru-s0"]["all"]["t2i"]["r1"] += 1
    path.write_text(json.dumps(metrics))


def change_a_feature() -> None:
    for shard in range(3):
        file = ledger.shard_file(Path("features/sample/region.zarr"), "features", shard, 3)
        file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])


def mislay_the_features() -> None:
    Path("features/sample/region.zarr").rename("features/sample/other.zarr")


def change_a_caption() -> None:
    manifest = Manifest.load(Path("data/sample.parquet"))
    manifest.table.loc[0, "caption"] = "something else"
    manifest.save(Path("data/sample.parquet"))


@pytest.mark.parametrize(("change", "where", "verdict"), [
    (retrain, "best.safetensors: SHA-256", "differs"),
    (lose_the_head, "best.safetensors: SHA-256", "not there"),
    (raise_a_number, "measured again, all", "differs"),
    (change_a_feature, "BLAKE2b of shard", "differs"),
    (mislay_the_features, "region.zarr: what made it", "not there"),
    (change_a_caption, "sample.parquet: digest of every row", "differs"),
])
def test_what_was_changed_is_named(pipeline: Any, measured: Manifest, change: Callable[[], None], where: str,
                                   verdict: str) -> None:
    change()
    code, steps, err = traced(pipeline, *ENSEMBLE, "--image", str(measured.split("test").image_ids[0]))
    wrong = [step for step in steps if step["verdict"] != "matches"]
    assert code == 2
    assert where in f"{wrong[0]['path']}: {wrong[0]['what']}"
    assert wrong[0]["verdict"] == verdict
    assert f"{len(wrong)} of {len(steps)} steps do not match" in err


def test_what_cannot_be_traced_is_refused(refused: Callable[..., str], measured: Manifest) -> None:
    train = str(measured.split("train").image_ids[0])
    assert "name one of its systems: vse2ad-region-bigru-s0, vse2ad-R-bigru-s0" in refused("trace", ENSEMBLE[0])
    assert "no result there" in refused("trace", "results/nothing.json", "x")
    assert "leave out x" in refused("trace", "similarities/sample/vse2ad-R-bigru-s0.zarr", "x")
    assert "is in its split train" in refused("trace", *ENSEMBLE, "--image", train)
    assert "is not in its manifest" in refused("trace", *ENSEMBLE, "--image", "-1")
    assert "no caption -1" in refused("trace", *ENSEMBLE, "--caption", "-1")
    assert "give one" in refused("trace", *ENSEMBLE, "--caption", "1", "--image", "1")
    Path("results/metrics.json").write_text('{"vse2ad-R-bigru-s0": 7}')
    assert "neither what `pipeline evaluate` writes" in refused("trace", *ENSEMBLE)
