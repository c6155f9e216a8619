"""Synthetic pooling patterns: their coefficients, the errors against them, and that generators
learn.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads.pooling.gpo import GPO
from pipeline.make.heads.pooling.options import GPOOptions
from pipeline.run.studies import synthetic
from stages.cli import cli

PARAMS = Path(__file__).parents[2] / "params.yaml"
FEW = (
    "synthetic.steps=60",
    "synthetic.sets=8",
    "synthetic.dimension=8",
    "synthetic.learning_rate=0.02",
    "synthetic.seen=[4, 8]",
    "synthetic.tested=[2, 10]",
)
SMALL = settings.load(PARAMS, FEW).synthetic


@pytest.mark.specification
@pytest.mark.parametrize(
    ("pattern", "size", "expected"),
    [
        ("A", 4, [0.25, 0.25, 0.25, 0.25]),
        ("M-1", 3, [1, 0, 0]),
        ("M-10", 12, [0.1] * 10 + [0, 0]),
        ("M-10", 4, [0.25] * 4),
        ("T-50%", 4, [0.5, 0.5, 0, 0]),
        ("T-50%", 5, [1 / 3, 1 / 3, 1 / 3, 0, 0]),
        ("L", 4, [3 / 6, 2 / 6, 1 / 6, 0]),
        ("L", 2, [1, 0]),
    ],
)
def test_patterns_by_hand(pattern: str, size: int, expected: list[float]) -> None:
    found = synthetic.coefficients(pattern, torch.tensor([size, 20]))
    assert found[0].tolist() == pytest.approx([*expected, *[0] * (20 - size)])
    assert found.sum(1).tolist() == pytest.approx([1, 1])


def test_sets_of_all_seen_sizes_are_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: set[int] = set()
    coefficients = GPO.coefficients

    def noted(gpo: GPO, counts: torch.Tensor, *others: Any) -> torch.Tensor:
        trained.update(counts.tolist())
        return coefficients(gpo, counts, *others)

    monkeypatch.setattr(GPO, "coefficients", noted)
    synthetic.train(next(iter(synthetic.DESIGNS)), "A", SMALL.model_copy(update={"steps": 12}))
    assert trained == {4, 5, 6, 7, 8}


def test_errors_are_root_mean_squares_over_the_sizes_they_name() -> None:
    gpo = GPO(4, GPOOptions(generator="interpolated"))  # a new one averages
    assert synthetic.errors(gpo, "A", SMALL) == pytest.approx(
        dict.fromkeys(("rmse_seen", "rmse_unseen_smaller", "rmse_unseen_larger"), 0), abs=1e-7
    )
    found = synthetic.errors(gpo, "M-1", SMALL)

    def mean_square(size: int) -> float:
        return ((1 - 1 / size) ** 2 + (size - 1) / size**2) / size

    for name, sizes in (
        ("rmse_seen", range(4, 9)),
        ("rmse_unseen_smaller", range(2, 4)),
        ("rmse_unseen_larger", range(9, 11)),
    ):
        expected = (sum(map(mean_square, sizes)) / len(sizes)) ** 0.5
        assert found[name] == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("design", synthetic.DESIGNS, ids="/".join)
def test_every_generator_comes_nearer(design: tuple[str, str]) -> None:
    before = synthetic.errors(GPO(8, GPOOptions(**synthetic.DESIGNS[design])), "M-1", SMALL)[
        "rmse_seen"
    ]
    losses: list[float] = []
    trained = synthetic.train(design, "M-1", SMALL, losses.append)
    assert len(losses) == 60
    assert losses[-1] < losses[0] / 4
    assert synthetic.errors(trained, "M-1", SMALL)["rmse_seen"] < before / 2


@pytest.mark.slow
@pytest.mark.parametrize("design", synthetic.DESIGNS, ids="/".join)
def test_every_generator_is_drawn_and_trained_the_same_again(design: tuple[str, str]) -> None:
    few = SMALL.model_copy(update={"steps": 3})
    trained, again = (synthetic.train(design, "M-1", few) for _ in range(2))
    for one, other in zip(trained.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.slow
def test_the_command_goes_on_where_it_stopped_and_feeds_the_table(tmp_path: Path) -> None:
    changes = [part for change in FEW for part in ("-S", change)]
    common = [
        "--root",
        str(tmp_path),
        "--params",
        str(PARAMS),
        *changes,
        "-S",
        "tables=[vse_infty_table11]",
    ]

    def run(*arguments: str) -> dict[tuple[str, str], Any]:
        ran = CliRunner().invoke(
            cli, ["lab", "synthetic", "--generator", "Index/Interp.", *arguments, *common]
        )
        assert ran.exit_code == 0, ran.output
        assert "(0.065)" in ran.output  # M-1 on seen sizes, as published
        assert max(map(len, ran.output.replace(str(tmp_path), "").splitlines())) <= 80
        rows = json.loads((tmp_path / "results" / "synthetic.json").read_text())["rows"]
        return {(row["decoder"], row["pattern"]): row["rmse_seen"] for row in rows}

    first = run("--pattern", "M-1")
    file = tmp_path / "results" / "synthetic.json"
    assert (
        synthetic.complete_rows(json.loads(file.read_text())) == []
    )  # one pattern of five is no row of the table
    marked = json.loads(file.read_text())
    marked["rows"][0]["rmse_seen"] = 0.5
    file.write_text(json.dumps(marked))
    every = run()
    assert (len(first), len(every), every["Interp.", "M-1"]) == (
        1,
        5,
        0.5,
    )  # what was there was not done again
    assert len(synthetic.complete_rows(json.loads(file.read_text()))) == 5
    assert run("--pattern", "M-1", "-S", "synthetic.seed=1").keys() == {
        ("Interp.", "M-1")
    }  # other settings: again
    with pytest.raises(InputError, match="pipeline lab synthetic"):
        synthetic.complete_rows({"rows": [{}]})


@pytest.mark.parametrize(
    "change", ["seen=[20, 130]", "seen=[100, 20]", "tested=[20, 120]", "seen=[1, 5]"]
)
def test_sizes_without_sense_are_refused(change: str) -> None:
    with pytest.raises(InputError, match="synthetic"):
        settings.load(PARAMS, (f"synthetic.{change}",))
