"""`pipeline score` and `embed`: products of the vectors beside them; the same bytes piece by piece
and on workers.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import saved
from folders import tree

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.files import regular
from pipeline.foundation.manifest import Manifest
from pipeline.judge.systems.scores.system import System
from pipeline.make import training
from pipeline.make.training import pieces

pytestmark = pytest.mark.slow


@pytest.mark.specification
def test_similarities_are_summed_in_float64_and_rounded_once(
    pipeline: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = np.random.default_rng(0)
    shutil.rmtree("similarities")  # else there is nothing to do

    def long(model: Any, some: Any, chosen: Any, *rest: Any) -> np.ndarray:
        """Vectors whose products depend on the order of summation in float32."""
        return draws.standard_normal((len(chosen), 4096)).astype(np.float32)

    monkeypatch.setattr(pieces, "embed_images", long)
    monkeypatch.setattr(
        pieces, "embed_captions", lambda model, captions, *rest: long(model, None, captions.lengths)
    )
    code, out, err = pipeline(
        "score",
        "--feature",
        "region",
        *(
            word
            for change in (
                "dimension=16",
                "word_dimension=8",
                "batch_size=16",
                "epochs=1",
                "decay_epoch=1",
            )
            for word in ("-S", f"training.sample.{change}")
        ),
    )
    assert code == 0, err
    assert len(re.findall(r"unknown words of test: \d+\.\d %", out + err)) == 1
    store = System.open(next(Path("similarities", "sample").glob("*.zarr")))
    vectors = store.embeddings()
    exact = np.asarray(vectors.images, np.float64) @ np.asarray(vectors.captions, np.float64).T
    np.testing.assert_array_equal(store.similarity[:], exact.astype(np.float32))


HEAD, LATE = "vse2ad-region-bigru-s0", "late-region-bigru-s0"
SMALL = ("-S", "score.batch_size=2")
TINY = [
    word
    for change in ("dimension=16", "word_dimension=8", "batch_size=16", "epochs=1", "decay_epoch=1")
    for word in ("-S", f"training.sample.{change}")
]


def train_late(pipeline: Any) -> None:
    code, _, err = pipeline("train", "--feature", "region", "--recipe", "late", *TINY)
    assert code == 0, err


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    """Pieces so small that 4 images and 20 captions are several."""
    for name, size in (("AT_ONCE", 2), ("COMPARED", 2), ("WITH_CAPTIONS", 6)):
        monkeypatch.setattr(pieces, name, size)


def opened(name: str) -> tuple[training.Head, training.ImageSource]:
    head = training.Head.open(Path("heads/sample", name))
    return head, head.images(
        Manifest.load(Path("data/sample.parquet")), Path("features/sample/region.zarr")
    )


@pytest.mark.usefixtures("many")
def test_pieces_have_the_batches_of_the_whole(pipeline: Any) -> None:
    code, _, err = pipeline("score", "--feature", "region", *SMALL)
    assert code == 0, err
    head, source = opened(HEAD)
    part = Manifest.load(Path("data/sample.parquet")).split("test")
    whole = head.embed(source, part, 2)
    found = System.open(Path("similarities/sample", f"{HEAD}.zarr")).embeddings()
    for mine, all_at_once in zip((found.images, found.captions), whole, strict=True):
        np.testing.assert_array_equal(mine, all_at_once)
    train_late(pipeline)
    assert pipeline("score", "--feature", "region", "--recipe", "late", *SMALL)[0] == 0
    head, source = opened(LATE)
    np.testing.assert_array_equal(
        System.open(Path("similarities/sample", f"{LATE}.zarr")).similarity[:],
        head.score(source, part, 2),
    )


@pytest.mark.usefixtures("many", "forkserver")
def test_workers_write_the_same_bytes(pipeline: Any, refused: Any) -> None:
    train_late(pipeline)
    folder = Path("similarities", "sample")
    heads = ("--feature", "region", "--recipe", "vse2ad", "--recipe", "late")
    embed = ("embed", "sample", "--system", HEAD, *SMALL, "--out")
    for command in (("score", *heads, *SMALL), (*embed, "one.zarr")):
        code, _, err = pipeline(*command)
        assert code == 0, err
    alone = {name: tree(folder / f"{name}.zarr") for name in (HEAD, LATE)}
    shutil.rmtree(folder)
    for command in (("score", *heads, *SMALL), (*embed, "two.zarr")):
        code, _, err = pipeline(*command, "--workers", "2")
        assert code == 0, err
    assert {name: tree(folder / f"{name}.zarr") for name in (HEAD, LATE)} == alone
    assert tree(Path("one.zarr")) == tree(Path("two.zarr"))
    assert "nothing to do" in pipeline("score", *heads, *SMALL, "--workers", "2")[1]
    assert not list(Path().rglob("*.pieces"))
    both = ("--workers", "2", "--scheduler", "tcp://127.0.0.1:1")
    assert "give one" in refused("score", "--feature", "region", *both)
    assert "give one" in refused("embed", "sample", "--system", HEAD, *both)
    assert "cannot be given with a store of embeddings" in refused(
        "score", "--system", "one.zarr", "--workers", "2"
    )


def test_a_head_that_scores_pairs_alone_embeds_nothing(
    pipeline: Any, refused: Any, project: Path
) -> None:
    train_late(pipeline)
    assert pipeline("score", "--feature", "region", *SMALL)[0] == 0
    shutil.move(f"similarities/sample/{HEAD}.zarr", "similarities/sample/whole.zarr")
    for command in (("embed", "sample"), ("lab", "hard-negatives"), ("search", "a ball")):
        said = refused(*command, "--system", LATE, *TINY)
        assert "scores pairs and has no vectors of images and captions" in said, command


@pytest.mark.specification
@pytest.mark.usefixtures("many")
def test_an_interrupted_run_goes_on(pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("embed", "sample", "--system", HEAD, *SMALL, "--out")
    assert pipeline(*command, "whole.zarr")[0] == 0
    done: list[int] = []
    original = pieces.embed_images

    def cut(model: Any, source: Any, rows: np.ndarray, batch_size: int) -> np.ndarray:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(len(rows))
        return original(model, source, rows, batch_size)

    with monkeypatch.context() as patched:
        patched.setattr(pieces, "embed_images", cut)
        assert pipeline(*command, "cut.zarr")[0] != 0
    assert not Path("cut.zarr").exists()
    assert sorted(file.name for file in Path("cut.zarr.pieces").glob("*.npz")) == [
        "00000.npz",
        "00001.npz",
    ]
    monkeypatch.setattr(pieces, "embed_images", lambda *given: done.append(-1) or original(*given))
    code, out, _ = pipeline(*command, "cut.zarr")
    assert (code, "; 12 images kept from an interrupted run" in " ".join(out.split())) == (0, True)
    assert done == [6, 6, -1, -1, -1]  # train 16: 6, 6, 4; val 4; test 4
    assert tree(Path("cut.zarr")) == tree(Path("whole.zarr"))
    assert not Path("cut.zarr.pieces").exists()


@pytest.mark.usefixtures("project")
def test_finished_scores_of_a_head_whose_record_was_edited_are_not_passed_over(
    pipeline: Any, refused: Any
) -> None:
    assert pipeline("score", "--feature", "region", *SMALL)[0] == 0
    record = Path("heads", "sample", HEAD, "record.json")
    record.write_bytes(record.read_bytes().replace(b'"training": 1', b'"training": 2'))
    assert f"{record}: was edited" in refused("score", "--feature", "region", *SMALL)


@pytest.mark.usefixtures("project")
def test_what_a_manifest_left_out_stands_with_the_numbers(pipeline: Any, scenes: Manifest) -> None:
    lacking = replace(scenes, left_out={"no caption": 2}).save(Path("data/sample.parquet"))
    head = Path("heads", "sample", HEAD)
    saved.changed(head, made_from=records.load(head).made_from | {"manifest": lacking.reference})
    shutil.rmtree("similarities")
    run = ("-S", "run.features=[region]", "-S", "run.ensembles=[R]", "-S", "run.ablations=[]")
    for command in (("score", "--feature", "region"), ("ensemble", "R")):
        assert pipeline(*command)[0] == 0
    code, out, err = pipeline("evaluate", *run)
    assert code == 0, err
    assert "left out of the data set or this pool: no caption: 2" in out
    metrics = json.loads(Path("results/metrics.json").read_text(encoding="utf-8"))
    assert [entry["all"]["left_out"] for entry in metrics.values()] == [{"no caption": 2}]
    code, _, err = pipeline("report", *run)
    assert code == 0, err
    assert "no caption: 2" in Path("results/report.html").read_text(encoding="utf-8")


def test_what_is_up_to_date_is_not_read(
    pipeline: Any, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, ensemble = "vse2ad-region-bigru-s0", "vse2ad-R-bigru-s0"
    commands = (
        ("score", "--feature", "region"),
        ("ensemble", "R"),
        ("rescore", head, "--by", "csls"),
        (
            "rerank",
            "--retriever",
            ensemble,
            "--with",
            head,
            "--k",
            "3",
            "--name",
            "a-reranked",
            "--if-changed",
            "redo",
        ),
    )
    for command in commands:
        assert pipeline(*command)[0] == 0
    opened, read = regular.opened, list[Path]()

    def watched(path: Path | str) -> Any:
        read.append(Path(path))
        return opened(path)

    monkeypatch.setattr(regular, "opened", watched)
    for command in commands:
        code, out, err = pipeline(*command)
        assert code == 0, err
        assert "nothing to do" in out
    assert read
    assert [path for path in read if "c" in path.parts] == []
