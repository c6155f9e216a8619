"""HGR from training to a matrix of similarities and to scores of pairs, from
the command line.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

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

pytestmark = pytest.mark.slow

SMALL = (
    "dimension=16",
    "word_dimension=8",
    "batch_size=16",
    "epochs=2",
    "decay_epoch=1",
    "minimum_count=1",
)


@pytest.fixture
def paths(scenes: Manifest, store: FeatureStore, tmp_path: Path) -> Paths:
    paths = Paths(tmp_path)
    graphs = [
        json.dumps(
            [[["V", [1]], ["ARG0", [0]], ["ARG1", [len(caption.split()) - 1]]], [[0, 1], [0, 2]]]
        )
        for caption in scenes.table["caption"]
    ]
    Manifest(scenes.table.assign(role_graph=graphs), "sample", scenes.images_folder).save(
        paths.manifest("sample")
    )
    shutil.copytree(store.path, paths.features("sample", "region"))
    return paths


def run(paths: Paths, *arguments: str) -> None:
    changes = [part for change in SMALL for part in ("-S", f"training.sample.{change}")]
    ran = CliRunner().invoke(
        cli, [*arguments, "--feature", "region", "--root", str(paths.root), *changes]
    )
    assert ran.exit_code == 0, ran.output + str(ran.exception)


def test_it_is_scored_pair_by_pair(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "PRODUCTS", 500)
    run(paths, "train", "--recipe", "hgr", "--text", "bigru")
    run(paths, "score", "--recipe", "hgr", "--text", "bigru")
    name = "hgr-region-bigru-s0"
    kept = System.open(paths.similarity("sample", name, "test"))
    matrix = np.asarray(kept.similarity[:])
    assert matrix.std() > 0
    source = PairSource(paths, "sample", "sample", "sample", batch_size=7)
    scorer = reranking.build(*reranking.resolve(name, source), source)
    image, caption = (part.ravel() for part in np.indices(matrix.shape))
    found = scorer.score(kept.image_ids[image], kept.caption_ids[caption])
    np.testing.assert_allclose(found.reshape(matrix.shape), matrix, atol=1e-6)
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


def test_hgr_cut_and_resumed_drops_the_same_and_is_bit_identical(
    paths: Paths, store: FeatureStore
) -> None:
    changes = tuple(f"training.sample.{change}" for change in SMALL)
    chosen = settings.load(Path(__file__).parents[3] / "params.yaml", changes)
    recipe = chosen.recipe("hgr")
    assert recipe.dropout
    whole, cut = (
        training.TrainingJob(
            Manifest.load(paths.manifest("sample")),
            store,
            "region",
            "bigru",
            "hgr",
            recipe,
            chosen.training_of("sample"),
            0,
            paths.root / name,
        )
        for name in ("whole", "cut")
    )
    training.train(whole)

    def stop(epoch: int, step: int, log: object) -> None:
        if (epoch, step) == (2, 3):
            raise InterruptedError

    with pytest.raises(InterruptedError):
        training.train(cut, on_step=stop)
    training.train(cut)
    for name in ("best.safetensors", "last.safetensors", "history.csv"):
        assert (cut.folder / name).read_bytes() == (whole.folder / name).read_bytes()


def test_captions_without_role_graphs_are_refused_in_one_line(
    scenes: Manifest, store: FeatureStore, tmp_path: Path
) -> None:
    chosen = settings.load(Path(__file__).parents[3] / "params.yaml")
    with pytest.raises(
        InputError, match=r"captions have none, such as .*; give HGR's sent2rolegraph"
    ) as refused:
        training.train(
            training.TrainingJob(
                scenes,
                store,
                "region",
                "bigru",
                "hgr",
                chosen.recipe("hgr"),
                chosen.training_of("sample"),
                0,
                tmp_path / "head",
            )
        )
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "head" / "record.json").exists()
