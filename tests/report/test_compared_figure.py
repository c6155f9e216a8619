"""The figure of a comparison: its numbers, counted by brute force; its bands, those of `evaluate`;
its files.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.foundation.evaluation.metrics import STATISTICS, evaluate
from pipeline.foundation.evaluation.metrics.base import Statistic, at
from pipeline.foundation.evaluation.retrieval import Protocol
from pipeline.foundation.evaluation.statistics import contrast, intervals, power
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.figures import compared

OWNER = np.arange(120) // 2
SYSTEMS = ("theirs", "ours", "third")


@pytest.fixture(autouse=True)
def _few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would suffice is simulated with few cases; it is not drawn."""
    monkeypatch.setattr(power, "CASES", 20)
    monkeypatch.setattr(power, "TEST_SETS", 20)


def scores(noise: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    right: np.ndarray = np.eye(60).repeat(2, axis=1)
    return right + noise * rng.normal(size=right.shape)


def pool(groups: Sequence[Sequence[np.ndarray]], protocol: str = "all") -> compared.ComparedPool:
    ranked = [[evaluate(each, OWNER, protocol) for each in group] for group in groups]
    pairs = [(a, b) for at, a in enumerate(ranked) for b in ranked[at + 1 :]]
    return compared.ComparedPool(ranked, *contrast.together([pairs], 1000, 0))


def hits(matrix: np.ndarray, way: str, k: int) -> float:
    """A recall in percent, counted by sorting each row."""
    found = []
    if way == "i2t":
        for image, row in enumerate(matrix):
            found.append(image in OWNER[np.argsort(-row)[:k]])
    else:
        for caption, column in enumerate(matrix.T):
            found.append(OWNER[caption] in np.argsort(-column)[:k])
    return 100 * float(np.mean(found))


def test_recalls_are_those_counted_and_bands_those_of_evaluate() -> None:
    matrices = [[scores(0.7, 1)], [scores(0.6, 2), scores(0.8, 3)], [scores(0.5, 4)]]
    given = pool(matrices)
    rows = compared.draw(SYSTEMS, [given], 16).numbers.to_dict("records")
    recalls = {(row["system"], row["metric"]): row for row in rows if row["shown"] == "recall"}
    assert len(recalls) == 3 * 2 * 10
    for name, group in zip(SYSTEMS, matrices, strict=True):
        for way in ("i2t", "t2i"):
            for k in range(1, 11):
                row = recalls[name, f"{way} R@{k}"]
                assert row["value"] == pytest.approx(np.mean([hits(m, way, k) for m in group]))
                assert row["low"] < row["value"] < row["high"]
    for name, (metrics,) in zip(SYSTEMS[::2], given.ranked[::2], strict=True):
        for statistic, expected in intervals(metrics).items():
            if statistic.direction:
                row = recalls[name, str(statistic)]
                assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))
    differences = {}
    for row in rows:
        if row["shown"] == "difference":
            differences[row["system"], row["minus"], row["metric"]] = row
    pairs = (("ours", "theirs"), ("third", "theirs"), ("third", "ours"))
    for (system, minus), tested in zip(pairs, given.contrasts, strict=True):
        for statistic in STATISTICS:
            row = differences[system, minus, str(statistic)]
            printed = at(tested, statistic)
            assert row["value"] == printed["difference"]
            assert [row["low"], row["high"]] == printed["interval"]
            assert row["p"] == printed["p"]
            assert row["adjusted"] == printed["adjusted"]


def test_equal_seeds_have_the_band_of_one_and_folds_their_mean() -> None:
    one = evaluate(scores(0.7, 1), OWNER)
    for k in (1, 3, 10):
        alone = compared.recall([one], "t2i", k)
        together = compared.recall([one] * 3, "t2i", k)
        for end in ("value", "low", "high"):
            assert getattr(together, end) == pytest.approx(getattr(alone, end))
    folds = evaluate(scores(0.7, 1), OWNER, Protocol("2fold", folds=2))
    expected = intervals(folds)[Statistic("i2t", "R@5")]
    drawn = compared.recall([folds], "i2t", 5)
    assert (drawn.value, drawn.low, drawn.high) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )


@pytest.mark.slow
def test_files_are_the_same_bytes_with_fonts_that_papers_take(tmp_path: Path) -> None:
    count = 5
    long = "a system with a name that is much longer than a legend of a column has room for, "
    names = [f"{long}$x_{number}$ [final]" for number in range(count)]
    groups = [[scores(0.5 + number / 20, number)] for number in range(count)]
    both = [pool(groups)] * 2
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        picture = compared.draw(names, both, 17.5)
        for ending in (".pdf", ".svg") if folder == "a" else (".svg", ".pdf"):
            compared.write(picture, tmp_path / folder / f"f{ending}", "sans")
    for ending in ("pdf", "svg", "csv"):
        content = (tmp_path / "a" / f"f.{ending}").read_bytes()
        assert content == (tmp_path / "b" / f"f.{ending}").read_bytes()
        assert b"/Type3" not in content
    assert picture.figure.get_figwidth() == pytest.approx(17.5 / 2.54)
    legend = picture.figure.axes[-1].get_legend()
    assert legend is not None
    assert legend.get_window_extent().x1 <= picture.figure.bbox.x1
    labels = [text.get_text() for text in legend.get_texts()]
    assert [label.split("  ")[0] for label in labels] == [*"12345"]
    assert len(pd.read_csv(tmp_path / "a" / "f.csv")) == 2 * (
        count * 20 + count * (count - 1) // 2 * 7
    )


def test_what_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("name,grade\nAda,1\n")
    (tmp_path / "earlier.csv").write_text(f"{compared.HEADING}\n")
    (tmp_path / "folder.csv").mkdir()
    for file, said in {
        "notes.pdf": "notes.csv: exists, and is not the numbers of a figure",
        "folder.pdf": "folder.csv: exists, and is not the numbers of a figure",
        "none/f.pdf": "there is no folder",
    }.items():
        with pytest.raises(InputError, match=r"^[^\n]*$") as refused:
            compared.check(2, [tmp_path / "new.svg", tmp_path / file], 16)
        assert said in str(refused.value), file
    with pytest.raises(InputError, match="draws 12 systems at most, received 13"):
        compared.check(13, [tmp_path / "f.pdf"], 16)
    for file in ("earlier.pdf", "earlier.csv", "new.svg", "notes.csv"):
        compared.check(12, [tmp_path / file], 7)
    with pytest.raises(InputError, match=r"^typesetting.text_width 6.9: [^\n]* at least 7 cm$"):
        compared.check(2, [tmp_path / "f.pdf"], 6.9)
    assert (tmp_path / "notes.csv").read_text().startswith("name,grade")


@pytest.mark.slow
def test_it_is_as_wide_as_the_text_and_nothing_lies_outside(tmp_path: Path) -> None:
    names = [f"a system with a long name, {number}" for number in range(6)]
    given = {count: pool([[scores(0.6, each)] for each in range(count)]) for count in (2, 6)}
    for width, count in ((7, 2), (7, 6), (12.1, 2), (30, 2)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # matplotlib's where a panel has no room
            picture = compared.draw(names[:count], [given[count]], width)
            figure = picture.figure
            bounds = figure.get_tightbbox()
        assert figure.get_figwidth() == pytest.approx(width / 2.54)
        assert bounds.x0 >= 0
        assert bounds.x1 <= width / 2.54 + 0.02, (width, count)
        for axes in figure.axes[:-1]:
            assert axes.get_window_extent().width > 0.5 * figure.dpi, (width, count)
        where = "Below" if (width, count) in ((7, 2), (12.1, 2)) else "Right"
        assert f". {where}: differences" in picture.caption


def test_a_difference_has_the_line_of_no_system() -> None:
    given = pool([[scores(0.6, 1)], [scores(0.7, 2)]])
    of_recalls, _, *forests, _ = compared.draw(SYSTEMS[:2], [given], 16).figure.axes
    of_systems = {(line.get_color(), line.get_marker()) for line in of_recalls.lines}
    for axes in forests:
        for line in axes.lines:
            assert line.get_color() in ("black", "#555555")
            assert line.get_marker() not in {marker for _, marker in of_systems}
