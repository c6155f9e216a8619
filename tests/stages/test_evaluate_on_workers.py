"""`pipeline evaluate --scheduler`: the files and the text of a run on this machine, to the byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from folders import tree
from scored import CAPTIONS, IMAGES, score

from pipeline.evaluation.retrieval import workers
from pipeline.manifest import Manifest

NAME = "vse2ad-region-bigru-s0"
RUN = ("-S", "run.features=[region]", "-S", "run.ensembles=[R]")
METRICS = ("--metric", "AP", "--metric", "nDCG@10", "--metric", "MRR")


@pytest.fixture(scope="module")
def address(forkserver: str) -> Iterator[str]:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started:
        yield started.scheduler_address


@pytest.fixture
def run(pipeline: Any) -> Any:
    """A head and an ensemble, of captions in two languages."""
    rows = [{"image_id": 10 * (image + 1), "file": f"{image}.png", "bytes": 1, "split": "test",
             "caption_id": 100 + CAPTIONS * image + number, "caption": "a caption",
             "language": "en" if number < 3 else "de"} for image in range(IMAGES) for number in range(CAPTIONS)]
    made = Manifest(pd.DataFrame(rows), "sample", Path())
    made.save(Path("data/sample.parquet"))
    score("region", manifest=made.digest, languages=made.languages)
    assert pipeline("ensemble", "R")[0] == 0
    Path("judged.qrels").write_text("".join(
        f"image:{10 * (image + 1)} 0 caption:{100 + (7 * image + number) % (IMAGES * CAPTIONS)} {1 + number % 2}\n"
        for image in range(IMAGES) for number in range(4)))
    vectors = np.random.default_rng(0).standard_normal((60, 8)).astype(np.float32)
    np.save("images.npy", vectors[:12])
    np.save("captions.npy", vectors)
    return pipeline


@pytest.mark.parametrize("arguments", [
    RUN, (*RUN, *METRICS, "--per-query", "queries.csv"), (*RUN, "--qrels", "judged.qrels", *METRICS),
    ("--system", NAME, "--folds", "3", "--ties", "pessimistic", "--json"),
    ("--embeddings", "images.npy", "captions.npy", *METRICS, "--json")],
    ids=["run", "metrics", "qrels", "folds", "npy"])
def test_the_same_bytes(arguments: tuple[str, ...], run: Any, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code, here, err = run("evaluate", *arguments)
    assert code == 0, err
    files = tree(Path())

    def fail(*arguments: Any) -> None:
        raise AssertionError("a block was counted here")

    monkeypatch.setattr(workers, "share", fail)
    monkeypatch.setattr(workers, "CELLS_A_TASK", 200)
    code, there, err = run("evaluate", *arguments, "--scheduler", address)
    assert code == 0, err
    assert there == here
    assert tree(Path()) == files


def test_no_address_and_no_cluster_are_one_line(refused: Any) -> None:
    np.save("m.npy", np.zeros((2, 10)))
    assert "expected an address such as" in refused("evaluate", "--system", "m.npy", "--scheduler", "there")
    assert "no dask scheduler answers" in refused("evaluate", "--system", "m.npy", "--scheduler", "tcp://127.0.0.1:1")
