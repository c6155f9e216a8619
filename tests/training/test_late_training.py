"""Late interaction from training to a matrix of similarities and to scores of pairs, from
the command line.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tiny_bert import tiny_bert

from pipeline.foundation import settings
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems import reranking
from pipeline.judge.systems.reranking.base import PairSource
from pipeline.judge.systems.scores.system import System
from pipeline.make import training
from pipeline.make.features.store import FeatureStore
from pipeline.make.training import scoring
from pipeline.run.provenance import of_head
from pipeline.run.provenance.context import Context
from stages.cli import cli

SMALL = (
    "dimension=16",
    "word_dimension=8",
    "batch_size=16",
    "epochs=2",
    "steps=4",
    "decay_epoch=1",
    "minimum_count=1",
)


@pytest.fixture
def paths(scenes: Manifest, store: FeatureStore, tmp_path: Path) -> Paths:
    paths = Paths(tmp_path)
    scenes.save(paths.manifest("sample"))
    shutil.copytree(store.path, paths.features("sample", "region"))
    return paths


def run(paths: Paths, *arguments: str) -> None:
    sizes = (*SMALL, f"bert={paths.root / 'bert'}")
    changes = [part for change in sizes for part in ("-S", f"training.sample.{change}")]
    ran = CliRunner().invoke(
        cli, [*arguments, "--feature", "region", "--root", str(paths.root), *changes]
    )
    assert ran.exit_code == 0, ran.output + str(ran.exception)


@pytest.mark.parametrize(
    ("recipe", "text", "atol"),
    [
        ("late", "bigru", 1e-6),
        ("late-scan", "bigru", 1e-6),
        ("ce", "bert", 0.05),
    ],
)
def test_a_head_without_embeddings_is_scored_pair_by_pair(
    paths: Paths,
    scenes: Manifest,
    recipe: str,
    text: str,
    atol: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scoring, "PRODUCTS", 500)
    tiny_bert(paths.root / "bert", layers=1)
    run(paths, "train", "--recipe", recipe, "--text", text)
    run(paths, "score", "--recipe", recipe, "--text", text)
    name = f"{recipe}-region-{text}-s0"
    kept = System.open(paths.similarity("sample", name, "test"))
    matrix = np.asarray(kept.similarity[:])
    assert matrix.std() > 0
    source = PairSource(paths, "sample", "sample", "sample", batch_size=7)
    scorer = reranking.build(*reranking.resolve(name, source), source)
    image, caption = (part.ravel() for part in np.indices(matrix.shape))
    found = scorer.score(kept.image_ids[image], kept.caption_ids[caption])
    np.testing.assert_allclose(found.reshape(matrix.shape), matrix, atol=atol)
    manifest = Manifest.load(paths.manifest("sample"))
    step = of_head.embedded_again(
        paths.head("sample", name),
        kept.path,
        manifest,
        paths.features("sample", "region"),
        Context(paths, [], "sample", 3, None, 8),
    )
    assert step.recorded == step.found
    assert step.what == "scored again"


def test_a_batch_in_pieces_is_refused(
    scenes: Manifest, store: FeatureStore, tmp_path: Path
) -> None:
    chosen = settings.load(Path(__file__).parents[2] / "params.yaml", ("training.sample.pieces=2",))
    with pytest.raises(InputError, match=r"set training\.NAME\.pieces and processes to 1"):
        training.train(
            training.TrainingJob(
                scenes,
                store,
                "region",
                "bigru",
                "late",
                chosen.recipe("late"),
                chosen.training_of("sample"),
                0,
                tmp_path / "head",
            )
        )
