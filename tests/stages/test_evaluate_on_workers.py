"""`pipeline evaluate --scheduler`: the files and the text of a run on this machine, to the byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from folders import tree
from scored import CAPTIONS, IMAGES, score

from pipeline.foundation.compute import cluster
from pipeline.foundation.evaluation.retrieval import workers
from pipeline.foundation.manifest import Manifest

pytestmark = pytest.mark.slow

NAME = "vse2ad-region-bigru-s0"
RUN = ("-S", "run.features=[region]", "-S", "run.ensembles=[R]")
METRICS = ("--metric", "AP", "--metric", "nDCG@10", "--metric", "MRR")
OTHER = "vse2ad-grid-bigru-s0"
FOLDS = ("--folds", "3")
FUSED = ("mean", "zscore", "rank", "combsum", "combmnz")
RESCORED = ("csls", "dual-softmax-test", "qb-norm-test")
RERANKED = {
    "of-a-head": (NAME,),
    "of-ranks": ("rank",),
    "of-z-scores": ("zscore",),
    "in-folds": (NAME, *FOLDS),
}
ENSEMBLES = {"fused-reranked": "of-a-head", "fused-in-folds": "in-folds"}


@pytest.fixture(scope="module")
def address(forkserver: str) -> Iterator[str]:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started:
        yield started.scheduler_address


@pytest.fixture
def run(pipeline: Any) -> Any:
    """A head and an ensemble, of captions in two languages."""
    rows = [
        {
            "image_id": 10 * (image + 1),
            "file": f"{image}.png",
            "bytes": 1,
            "split": "test",
            "caption_id": 100 + CAPTIONS * image + number,
            "caption": "a caption",
            "language": "en" if number < 3 else "de",
        }
        for image in range(IMAGES)
        for number in range(CAPTIONS)
    ]
    made = Manifest(pd.DataFrame(rows), "sample", Path())
    made.save(Path("data/sample.parquet"))
    score("region", manifest=made.digest, languages=made.languages)
    assert pipeline("ensemble", "R")[0] == 0
    Path("judged.qrels").write_text(
        "".join(
            f"image:{10 * (image + 1)} 0 caption:{100 + (7 * image + number) % (IMAGES * CAPTIONS)} {1 + number % 2}\n"
            for image in range(IMAGES)
            for number in range(4)
        )
    )
    vectors = np.random.default_rng(0).standard_normal((60, 8)).astype(np.float32)
    np.save("images.npy", vectors[:12])
    np.save("captions.npy", vectors)
    return pipeline


@pytest.fixture
def systems(pipeline: Any) -> Any:
    """Two heads, and what `ensemble`, `rescore` and `rerank` make of them."""
    for feature, noise in (("region", 2.0), ("grid", 1.5)):
        score(feature, noise=noise)
    of_both = ("--member", NAME, "--member", OTHER, "--fusion")
    made = [("ensemble", name, *of_both, name) for name in FUSED]
    made += [
        (
            "rescore",
            NAME,
            "--by",
            by.removesuffix("-test"),
            *(("--bank", "test") if "-test" in by else ()),
        )
        for by in RESCORED
    ]
    made += [
        ("rerank", "--retriever", *of, "--with", OTHER, "--k", "3", "--name", name)
        for name, of in RERANKED.items()
    ]
    made += [
        ("ensemble", name, "--member", member, "--member", OTHER, "--fusion", "rank")
        for name, member in ENSEMBLES.items()
    ]
    for command in made:
        code, _, err = pipeline(*command)
        assert code == 0, err
    return pipeline


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, this process counts no block itself, and a task is a block or two."""

    def fail(*arguments: Any) -> None:
        raise AssertionError("a block was counted here")

    def set_up() -> None:
        monkeypatch.setattr(workers, "share", fail)
        monkeypatch.setattr(workers, "CELLS_A_TASK", 400)

    return set_up


def _same_there(
    run: Any, asked: list[tuple[str, ...]], address: str, nothing_here: Callable[[], None]
) -> None:
    """Evaluate here, then on workers: the same text is printed, and all files stay the same."""
    here = [_printed(run, *arguments) for arguments in asked]
    files = tree(Path())
    nothing_here()
    assert [_printed(run, *arguments, "--scheduler", address) for arguments in asked] == here
    assert tree(Path()) == files


def _printed(run: Any, *arguments: str) -> str:
    code, out, err = run("evaluate", *arguments)
    assert code == 0, err
    return str(out)


def test_the_same_bytes(run: Any, address: str, nothing_here: Callable[[], None]) -> None:
    asked = [
        RUN,
        (*RUN, *METRICS, "--per-query", "queries.csv"),
        (*RUN, "--qrels", "judged.qrels", *METRICS),
        ("--system", NAME, "--folds", "3", "--ties", "pessimistic", "--json"),
        ("--embeddings", "images.npy", "captions.npy", *METRICS, "--json"),
    ]
    _same_there(run, asked, address, nothing_here)


def test_every_kind_of_system(systems: Any, address: str, nothing_here: Callable[[], None]) -> None:
    rescored = [f"{NAME}+{by}" for by in RESCORED]
    whole = [*FUSED, *rescored, "of-a-head", "of-ranks", "of-z-scores", "fused-reranked"]
    in_folds = ["mean", "zscore", "in-folds", "fused-in-folds"]
    of_another = score("region", noise=2.0, dataset="other")
    asked = [
        (*whole, *METRICS, "--json"),
        (*in_folds, *FOLDS, "--json"),
        ("--system", NAME, "--distractors", str(of_another), *METRICS, "--json"),
    ]
    _same_there(systems, asked, address, nothing_here)


def test_no_address_and_no_cluster_are_one_line(
    refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "running", partial(cluster.running, timeout=0.05))
    np.save("m.npy", np.zeros((2, 10)))
    assert "expected an address such as" in refused(
        "evaluate", "--system", "m.npy", "--scheduler", "there"
    )
    assert "no dask scheduler answers" in refused(
        "evaluate", "--system", "m.npy", "--scheduler", "tcp://127.0.0.1:1"
    )
