"""A head on another data set than it was trained on: embed, score, rescore, compare, by names
alone.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.foundation.manifest import Manifest
from pipeline.judge.systems.scores.system import System

pytestmark = pytest.mark.slow

HEAD = "vse2ad-region-bigru-s0"
SYSTEM = f"sample-{HEAD}"
ON = ("--dataset", "other")


@pytest.fixture
def other(project: Path, scenes: Manifest, pipeline: Any) -> Path:
    """The same images under another name, embedded as by default: all splits."""
    Manifest(scenes.table, "other", scenes.images_folder).save(Path("data/other.parquet"))
    shutil.copytree("features/sample/region.zarr", "features/other/region.zarr")
    shutil.copytree(
        "heads/sample", "heads/other"
    )  # another head of the same name, trained on this data set
    Path("heads/other", HEAD, "best.safetensors").write_bytes(b"another head")
    assert pipeline("embed", "other", "--system", HEAD, "--trained-on", "sample")[0] == 0
    return project


@pytest.mark.usefixtures("other")
def test_the_whole_chain_needs_no_path_and_gives_the_numbers_of_the_heads_own_data(
    pipeline: Any,
) -> None:
    assert pipeline("embed", "sample", "--system", HEAD)[0] == 0
    assert pipeline("rescore", HEAD, "--by", "nnn")[0] == 0
    for command in (
        ("score", "--system", SYSTEM, *ON),
        ("rescore", SYSTEM, "--by", "nnn", "--bank", "train", *ON),
    ):
        code, _, err = pipeline(*command)
        assert code == 0, err
        assert "nothing to do" in pipeline(*command)[1]
    code, out, err = pipeline("compare", SYSTEM, f"{SYSTEM}+nnn", *ON, "--json")
    assert code == 0, err
    same = pipeline("compare", HEAD, f"{HEAD}+nnn", "--json", "--protocol", "all")[1]
    mine, theirs = (json.loads(text)[0] for text in (out, same))
    assert mine["RSUM"] == theirs["RSUM"]
    steps = json.loads(pipeline("trace", f"similarities/other/{SYSTEM}.zarr", "--json")[1])
    assert {
        step["verdict"]
        for step in steps
        if "photograph" not in step["what"] and "images" not in step["what"]
    } == {"matches"}
    assert {
        "embedded again",
        f"its vectors, by {SYSTEM}",
        f"the head of {SYSTEM}",
        f"the features of {SYSTEM}",
        f"the features of {HEAD}",
    } <= {step["what"] for step in steps}


@pytest.mark.usefixtures("other")
def test_each_split_has_a_record_of_its_own(pipeline: Any, refused: Callable[..., str]) -> None:
    assert pipeline("score", "--system", SYSTEM, *ON)[0] == 0
    assert pipeline("score", "--system", SYSTEM, *ON, "-S", "score.split=val")[0] == 0
    test, val = (
        System.open(Path("similarities/other", part, f"{SYSTEM}.zarr")).made_from
        for part in ("", "val")
    )
    assert (test.split, val.split) == ("test", "val")
    assert test.members[0].content != val.members[0].content
    own = System.open(Path("similarities/sample", f"{HEAD}.zarr")).made_from.members[0]
    assert test.members[0] == own


@pytest.mark.usefixtures("other")
def test_a_name_or_a_path_and_the_data_set_that_it_is_of(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    store = Path("embeddings/other", f"{SYSTEM}.zarr")
    assert "holds embeddings of other" in refused("score", "--system", store, "--dataset", "sample")
    assert pipeline("score", "--system", store, *ON)[0] == 0
    shutil.rmtree(store)
    said = refused("rescore", SYSTEM, "--by", "nnn", "--bank", "train", *ON)
    assert f"`pipeline embed other --system {HEAD} --trained-on sample`" in said
    assert (
        pipeline("embed", "other", "--system", HEAD, "--trained-on", "sample", "--split", "val")[0]
        == 0
    )
    assert "holds val, not test; embed it again without --split" in refused(
        "score", "--system", SYSTEM, *ON
    )


def test_a_head_that_was_copied_needs_nothing_of_its_training(
    project: Path, scenes: Manifest, pipeline: Any
) -> None:
    Manifest(scenes.table, "other", scenes.images_folder).save(Path("data/other.parquet"))
    shutil.copytree("features/sample/region.zarr", "features/other/region.zarr")
    shutil.copytree(Path("heads/sample", HEAD), Path("mine/a-head"))
    kept = System.open(Path("similarities/sample", f"{HEAD}.zarr")).similarity[:]
    for gone in ("heads", "similarities", "features/sample"):
        shutil.rmtree(gone)
    Path("data/sample.parquet").unlink()
    assert pipeline("score", "--system", "mine/a-head", *ON)[0] == 0
    assert (System.open(Path("similarities/other/sample-a-head.zarr")).similarity[:] == kept).all()
    code, _, err = pipeline("evaluate", "--dataset", "other")
    warned, failed = " ".join(err.split()).split("error: ")
    assert "warning: left out, of heads trained on sample: sample-a-head; " in warned
    assert failed.startswith("other: all that is scored on test is of heads trained on sample; ")
    assert code == 2
    typed = failed.split("`pipeline evaluate '")[1].removesuffix("'`")
    assert pipeline("evaluate", typed)[0] == 0
    assert pipeline("embed", "other", "--system", "mine/a-head")[0] == 0
    assert Path("embeddings/other/sample-a-head.zarr").is_dir()
    code, out, err = pipeline(
        "lab", "hard-negatives", "--system", "mine/a-head", "--images-of", "other"
    )
    assert (code, "question" in out) == (0, True), err
