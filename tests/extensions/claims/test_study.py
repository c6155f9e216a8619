"""`pipeline lab study`: trains what claims need, goes on where it was, and says which hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import forged
import pytest

from pipeline.extensions.claims import claims, stage
from pipeline.foundation.evaluation.statistics import contrast, families
from pipeline.foundation.evaluation.statistics.all_pairs import Corrected
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.make.training.divergence import Diverged
from stages.commands.heads import TrainOptions

pytestmark = pytest.mark.slow
TINY = [
    word
    for change in (
        "training.sample.dimension=16",
        "training.sample.word_dimension=8",
        "training.sample.batch_size=16",
        "training.sample.epochs=1",
        "training.sample.decay_epoch=1",
        "run.features=[region]",
        "evaluate.resamples=100",
    )
    for word in ("-S", change)
]

LOADED = claims.load


@pytest.fixture(autouse=True)
def _two_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    every = {claim.claim: claim for claim in claims.load(Path())}
    kept = [every["AdPool is better than mean pooling"], every["Grids add to regions"]]
    monkeypatch.setattr(claims, "load", lambda root: kept)


def test_it_trains_what_is_missing_and_tests_the_claims(project: Path, pipeline: Any) -> None:
    scored = project / "similarities" / "sample" / "vse2ad-region-bigru-s0.zarr" / "zarr.json"
    on_test = scored.read_bytes()
    code, out, err = pipeline("lab", "study", *TINY, "-S", "run.seeds=[0,1]")
    assert code == 0, err
    assert scored.read_bytes() == on_test
    assert "heads/sample/vse2ad-region-bigru-s0: nothing to do" in out
    found = json.loads((project / "results" / "claims.json").read_text())
    assert [each["verdict"] == "not tested" for each in found] == [False, True]
    measured = found[0]["measured"]
    assert measured["over"] == ["images", "seeds"]
    assert measured["images"] == 4
    assert found[0]["published_difference"] == 7.8
    assert {each["split"] for each in found} == {"val"}
    assert (project / "results" / "claims.md").read_text().count("\n| ") == 3
    assert "1  AdPool is better than mean pooling: " in out
    code, out, err = pipeline("lab", "study", *TINY, "-S", "run.seeds=[0,1]", "--split", "test")
    assert code == 0, err
    assert out.count("nothing to do") == 5  # four heads, and the scores of test that were there
    assert "sample, test; region features (R), bigru, d = 16" in out
    compared = json.loads(
        pipeline(
            "compare",
            "vse2ad-noadpool-region-bigru",
            "vse2ad-region-bigru",
            "--json",
            "-S",
            "evaluate.resamples=100",
        )[1]
    )[0]
    again = json.loads((project / "results" / "claims.json").read_text())[0]["measured"]
    assert again["RSUM"] == compared["RSUM"]


def test_without_training_only_heads_that_are_there_are_measured(
    project: Path, pipeline: Any
) -> None:
    code, _, err = pipeline("lab", "study", *TINY, "--no-training")
    assert code == 0, err
    assert {
        each["verdict"] for each in json.loads((project / "results" / "claims.json").read_text())
    } == {"not tested"}
    assert not (project / "heads" / "sample" / "vse2ad-noadpool-region-bigru-s0").exists()


def test_a_head_whose_training_fails_is_left_out_and_named(
    project: Path, pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = stage.train

    def failing(paths: Paths, chosen: Settings, head: TrainOptions) -> None:
        if "vse2ad-noadopt" in head.recipes:
            raise Diverged("the loss stays at its collapsed value")
        train(paths, chosen, head)

    every = {claim.claim: claim for claim in LOADED(Path())}
    kept = [
        every["AdOpt is better than the hard triplet loss"],
        every["AdPool is better than mean pooling"],
    ]
    monkeypatch.setattr(claims, "load", lambda root: kept)
    monkeypatch.setattr(stage, "train", failing)
    code, out, err = pipeline("lab", "study", *TINY)
    assert code == 0, err
    verdicts = [
        each["verdict"] for each in json.loads((project / "results" / "claims.json").read_text())
    ]
    assert verdicts[0] == "not tested"
    assert verdicts[1] != "not tested"
    assert (
        "Training failed: vse2ad-noadopt, seed 0: the loss stays at its collapsed value"
        in " ".join(out.split())
    )
    assert "warning: vse2ad-noadopt, seed 0: the loss" in err


def test_ps_are_corrected_for_all_claims(
    project: Path, pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_p(*_: Any) -> families.Correction:
        """Four images alone give a p of 1, which no correction changes."""
        corrected = Corrected(0.06, 0.03)
        return families.Correction([corrected] * 12, families.MAX_T)

    first = LOADED(Path())[0]
    monkeypatch.setattr(claims, "load", lambda root: [first, first])
    monkeypatch.setattr(contrast, "correct", with_p)
    code, _, err = pipeline("lab", "study", *TINY)
    assert code == 0, err
    found = json.loads((project / "results" / "claims.json").read_text())
    assert [each["measured"]["RSUM"]["adjusted"] for each in found] == [0.06, 0.06]
    assert [each["verdict"].partition(";")[0] for each in found] == ["cannot tell", "cannot tell"]
    assert "| 0.06 | cannot tell; " in (project / "results" / "claims.md").read_text()


def test_without_training_each_system_is_measured_with_the_seeds_that_it_has(
    project: Path, pipeline: Any
) -> None:
    for recipe, seeds in (("vse2ad", (0, 1)), ("vse2ad-noadpool", (0,))):
        chosen = [word for seed in seeds for word in ("--seed", str(seed))]
        assert pipeline("train", "--feature", "region", "--recipe", recipe, *chosen, *TINY)[0] == 0
    other = (
        "-S",
        "run.seeds=[0,1]",
        "-S",
        "training.sample.epochs=7",
        "-S",
        "training.sample.decay_epoch=5",
    )
    code, out, err = pipeline("lab", "study", *TINY, *other, "--no-training")
    assert code == 0, err
    assert json.loads((project / "results" / "claims.json").read_text())[0]["measured"][
        "seeds"
    ] == {"a": 1, "b": 2}
    assert "seeds 1, 2)" in " ".join(out.split())
    assert "d = 16, batch 16, 1 epoch, rate × 0.1 after 1 epoch, " in " ".join(
        out.split()
    )  # as the heads were trained
    forged.artefact(
        project / "heads" / "sample" / "vse2ad-region-bigru-s1",
        lambda content: content["request"]["training"].update(decay_epoch=3),
    )
    code, out, err = pipeline("lab", "study", *TINY, "-S", "run.seeds=[0,1]", "--no-training")
    assert code == 0, err
    assert re.search(
        r"heads differ: .* after 1 epoch, \w+ \([^)]*\); .* after 3 epochs, \w+ "
        r"\(vse2ad-region-bigru-s1\); ",
        " ".join(out.split()),
    )


def test_heads_whose_training_goes_on_are_left_out(project: Path, pipeline: Any) -> None:
    assert pipeline("train", "--feature", "region", "--recipe", "vse2ad", *TINY)[0] == 0
    assert pipeline("train", "--feature", "region", "--recipe", "vse2ad-noadpool", *TINY)[0] == 0
    for finished in (True, False):
        forged.artefact(
            project / "heads" / "sample" / "vse2ad-noadpool-region-bigru-s0",
            partial(dict.update, finished=finished),
        )
        code, _, err = pipeline("lab", "study", *TINY, "--no-training")
        assert code == 0, err
        verdicts = {
            each["verdict"]
            for each in json.loads((project / "results" / "claims.json").read_text())
        }
        assert (verdicts == {"not tested"}) == (not finished)


def test_a_recipe_that_is_not_there_is_refused_first(
    project: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = LOADED(Path())[0].model_copy(update={"worse": claims.SystemOfClaim(recipe="none")})
    monkeypatch.setattr(claims, "load", lambda root: [odd])
    assert "none" in refused("lab", "study", *TINY)


def test_a_system_is_measured_with_the_seeds_of_which_all_heads_are_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unfinished = {"vse2ad-grid-bigru-s0", "vse2ad-region-bigru-s2"}
    monkeypatch.setattr(
        stage.training.HeadArtefact,
        "is_finished",
        staticmethod(lambda folder: folder.name not in unfinished),
    )
    paths: Any = SimpleNamespace(head=lambda dataset, name: Path(dataset, name))
    run: Any = SimpleNamespace(
        dataset="sample", features=("region", "grid"), texts=("bigru",), seeds=(0, 1, 2)
    )
    one = claims.SystemOfClaim(recipe="vse2ad")
    both = claims.SystemOfClaim(recipe="vse2ad", features="RG")
    found = stage._finished(paths, run, [one, both])
    assert list(found) == [(one, 0), (one, 1), (both, 1)]
    names = [folder.name for folder in found[both, 1]]
    assert names == ["vse2ad-region-bigru-s1", "vse2ad-grid-bigru-s1"]
