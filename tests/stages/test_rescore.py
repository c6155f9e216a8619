"""`pipeline rescore`: a step between ensemble and evaluate, recorded, measured, set in tables and
traced.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import saved
from scored import score

from pipeline.foundation import settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.made import Rescored
from pipeline.judge.systems.scores.system import System
from stages import scores
from stages.commands.scores import RescoreOptions

pytestmark = pytest.mark.slow

RUN = (
    "-S",
    "run.features=[region, grid]",
    "-S",
    "run.ablations=[]",
    "-S",
    "run.rescorers=[{name: csls, neighbours: 3}]",
)
RG = "vse2ad-RG-bigru-s0"


def path(name: str) -> Path:
    return Path("similarities", "sample", f"{name}.zarr")


@pytest.fixture
def made(pipeline: Any) -> None:
    for feature in ("region", "grid"):
        score(feature)
    for command in ("ensemble", "rescore"):
        assert pipeline(command, *RUN)[0] == 0


@pytest.mark.specification
@pytest.mark.usefixtures("made")
def test_every_system_of_the_run_is_rescored_once(pipeline: Any) -> None:
    source, store = System.open(path(RG)), System.open(path(f"{RG}+csls"))
    assert store.made_from.steps == [{"name": "csls", "bank": "test", "neighbours": 3}]
    assert store.made_from == Rescored(
        source=source.made_from,
        system=RG,
        rescorer="csls",
        bank="test",
        options={"neighbours": 3},
    )
    assert store.store.record.made_from == {"source": source.reference}
    assert not np.array_equal(store.similarity[:], source.similarity[:])
    assert pipeline("rescore", *RUN)[1].count("nothing to do") == 4  # two heads, R, RG
    score("grid", noise=2.0)
    pipeline("ensemble", *RUN)
    assert pipeline("rescore", *RUN)[1].count("nothing to do") == 2


@pytest.mark.usefixtures("made")
def test_it_is_measured_and_named_in_tables(pipeline: Any, tmp_path: Path) -> None:
    assert pipeline("evaluate", *RUN)[0] == 0
    measured = json.loads(Path("results/metrics.json").read_text())
    assert {RG, f"{RG}+csls"} <= measured.keys()
    assert pipeline("tables", *RUN)[0] == 0
    table = Path("results/tables/vse2ad_table1.md").read_text()
    rescored = [line for line in table.splitlines() if "csls (bank test, neighbours 3)" in line]
    assert rescored
    assert all("‡" in line and "**" not in line for line in rescored)
    assert "transductive" in table


@pytest.mark.usefixtures("made")
def test_an_older_source_is_refused(refused: Callable[..., str]) -> None:
    store = System.open(path(RG))
    saved.save(
        path(RG),
        [store.scores],
        store.image_ids,
        store.caption_ids,  # type: ignore[list-item]
        store.caption_image,
        store.made_from.changed(untrained=["grid"]),
    )
    assert (
        f"is made of an older {RG} than the current one; run `pipeline rescore {RG} --by csls --dataset "
        "sample` again" in refused("evaluate", *RUN)
    )


@pytest.mark.usefixtures("made")
def test_what_cannot_be_rescored_is_refused(refused: Callable[..., str]) -> None:
    assert "expected --by NAME, of csls" in refused("rescore", RG)
    assert "'cls'" in refused("rescore", RG, "--by", "cls")
    assert "no similarity store there" in refused("rescore", "nothing", "--by", "csls")
    twice = refused("rescore", "-S", "run.rescorers=[{name: csls}, {name: csls, neighbours: 2}]")
    assert "'+csls' is named twice" in twice


def test_a_rescorer_has_the_options_of_the_settings_also_with_another_bank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(
        scores,
        "_rescore",
        lambda paths, dataset, split, made, system, step: asked.append((made, step.options)),
    )
    chosen = settings.load(
        Path(__file__).parents[2] / "params.yaml",
        ("run.rescorers=[{name: nnn, neighbours: 7}]", "run.rerank=[]"),
    )
    for name, bank in (("nnn", None), ("nnn", "test"), ("qb-norm", "test")):
        options = RescoreOptions(system="mine", name=name, bank=bank)
        scores.rescore(Paths(tmp_path), chosen, options)
    assert asked == [
        ("mine+nnn", {"neighbours": 7}),
        ("mine+nnn-test", {"neighbours": 7, "bank": "test"}),
        ("mine+qb-norm-test", {"bank": "test"}),
    ]
