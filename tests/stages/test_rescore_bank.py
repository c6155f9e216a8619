"""`pipeline rescore --bank train`, with a tiny head that is really trained: made, measured, traced,
refused.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import saved
import tampering
import yaml
import zarr
from tiny_project import ROOT

from pipeline.foundation.manifest import Manifest
from pipeline.judge.systems.scores.layout import DIRECTIONS
from pipeline.judge.systems.scores.sources import Matrices
from pipeline.judge.systems.scores.system import System

pytestmark = pytest.mark.slow

HEAD = "vse2ad-region-bigru-s0"
RUN = (
    "-S",
    "run.features=[region]",
    "-S",
    "run.ensembles=[]",
    "-S",
    "run.ablations=[]",
    "-S",
    "run.rescorers=[{name: qb-norm}]",
)
BANK = Path("embeddings/sample", f"sample-{HEAD}.zarr")


def store(name: str) -> System:
    return System.open(Path("similarities/sample", f"{HEAD}+{name}.zarr"))


@pytest.fixture
def embedded(pipeline: Any, project: Path) -> None:
    assert pipeline("embed", "sample", "--system", HEAD)[0] == 0


@pytest.mark.usefixtures("project")
def test_without_embeddings_it_says_how_to_make_them(refused: Callable[..., str]) -> None:
    said = refused("rescore", HEAD, "--by", "nnn")
    assert f"`pipeline embed sample --system {HEAD}`" in said
    assert "--bank test" in said
    for bank in ("train", "test"):
        assert "csls takes no --bank; leave it out" in refused(
            "rescore", HEAD, "--by", "csls", "--bank", bank
        )
    assert "unknown rescorer 'clss'; did you mean csls?" in refused(
        "rescore", HEAD, "--by", "clss", "--bank", "test"
    )


@pytest.mark.usefixtures("embedded")
def test_a_bank_of_train_is_the_heads_own_vectors_of_train(pipeline: Any, scenes: Manifest) -> None:
    code, _, err = pipeline("rescore", HEAD, "--by", "nnn")
    assert code == 0, err
    own, made = System.open(Path("similarities/sample", f"{HEAD}.zarr")), store("nnn")
    assert made.made_from.steps == [{"name": "nnn", "bank": "train"}]
    group = zarr.open_group(BANK, mode="r")
    train = scenes.split("train")
    captions = group["caption_embeddings"][:][np.isin(group["caption_ids"][:], train.caption_ids)]
    images = group["image_embeddings"][:][np.isin(group["image_ids"][:], train.image_ids)]
    vectors = own.embeddings()
    rows = np.sort(vectors.images @ captions.T, 1)[:, -128:].mean(1)
    columns = np.sort(images @ vectors.captions.T, 0)[-128:].mean(0)
    np.testing.assert_allclose(
        made.similarity[:], own.similarity[:] - 0.75 * rows[:, None] - 0.75 * columns, atol=1e-5
    )


@pytest.mark.usefixtures("embedded")
def test_two_matrices_are_measured_and_traced_and_the_bank_is_compared(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    for command in ("rescore", "evaluate"):
        code, _, err = pipeline(command, *RUN)
        assert code == 0, err
    kind = store("qb-norm").kind
    assert isinstance(kind, Matrices)
    assert kind.how is not None
    assert kind.how.method == DIRECTIONS
    assert "nothing to do" in pipeline("rescore", *RUN)[1]
    assert f"{HEAD}+qb-norm" in json.loads(Path("results/metrics.json").read_text())
    code, out, err = pipeline("trace", "results/metrics.json", f"{HEAD}+qb-norm")
    assert code == 0, out + err
    assert f"← {HEAD}, corrected by qb-norm (bank: train)" in out
    saved.changed(BANK, request={"another": "head"})
    assert pipeline("trace", "results/metrics.json", f"{HEAD}+qb-norm")[0] == 2


@pytest.mark.usefixtures("embedded")
def test_a_bank_that_was_edited_is_neither_used_nor_traced(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    assert pipeline("rescore", HEAD, "--by", "nnn")[0] == 0
    record = BANK / "record.json"
    kept = record.read_bytes()
    record.write_bytes(kept.replace(b'"training": 1', b'"training": 2'))
    assert f"{record}: was edited" in refused("rescore", HEAD, "--by", "db-norm")
    assert pipeline("trace", f"similarities/sample/{HEAD}+nnn.zarr")[0] == 2
    record.write_bytes(kept)
    vectors = zarr.open_array(BANK / "caption_embeddings", mode="r+")
    vectors[:] = vectors[:][::-1]
    assert "has changed since it was written; put it back, or delete" in refused(
        "rescore", HEAD, "--by", "db-norm"
    )
    assert pipeline("trace", f"similarities/sample/{HEAD}+nnn.zarr")[0] == 2


@pytest.mark.usefixtures("embedded")
def test_a_bank_of_another_head_is_refused(refused: Callable[..., str]) -> None:
    saved.sealed_anew(BANK, lambda facts: facts["member"].update(checkpoint="0" * 64))
    assert "was embedded by another head" in refused("rescore", HEAD, "--by", "nnn")


@pytest.mark.usefixtures("project")
def test_a_run_embeds_the_banks_that_it_needs_itself(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    """The commands of dvc.yaml's stage, as they stand there."""
    commands = yaml.safe_load(Path(ROOT, "dvc.yaml").read_text())["stages"]["score"]["cmd"]
    alone = ("-S", "run.features=[region]", "-S", "run.ensembles=[R]", "-S", "run.ablations=[]")
    assert "no bank of train in the run: nothing to do" in pipeline("embed", *alone)[1]
    assert not list(Path("embeddings/sample").iterdir())  # dvc.yaml names it
    run = (*alone, "-S", "run.rescorers=[{name: nnn, bank: train}]")
    for command in commands:
        code, _, err = pipeline(*command.split()[1:], *run)
        assert code == 0, (command, err)
    assert store("nnn").made_from.steps == [{"name": "nnn", "bank": "train"}]
    assert f"{BANK}: nothing to do" in pipeline("embed", *run)[1]
    tampering.rolled(BANK / "image_embeddings")
    assert "image_embeddings: has changed" in refused("rescore", HEAD, "--by", "db-norm")
    shutil.rmtree(BANK)
    assert "nothing to do" not in pipeline("embed", *run)[1]
    assert pipeline("rescore", HEAD, "--by", "db-norm")[0] == 0


@pytest.mark.usefixtures("project")
def test_a_bank_of_the_ranked_queries_says_so_in_its_name(pipeline: Any) -> None:
    for name in ("inverted-softmax", "dual-softmax", "db-norm"):
        code, _, err = pipeline("rescore", HEAD, "--by", name, "--bank", "test")
        assert code == 0, err
        assert store(f"{name}-test").made_from.steps == [{"name": name, "bank": "test"}]
