"""One rule of bold in all outputs of the same systems: the best, and every system not significantly
worse than it; none where that is all of them, and where there is one row.

What is bold is compared with tests by NumPy alone, on matrices of scores: of single runs and of
several seeds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from invented import built, headlines, system
from jinja2 import Environment, PackageLoader

from pipeline.foundation.evaluation.metrics import STATISTICS, evaluate
from pipeline.foundation.evaluation.statistics import ImageHits, pack
from pipeline.judge.tables import latex, markdown
from pipeline.judge.tables.bold import PUBLISHED, Contender
from pipeline.judge.tables.evaluated import Series
from pipeline.judge.tables.table import TableRequest, TableRow, from_to
from pipeline.run.report import rows as rows_of_papers

IMAGES = 40
CAPTIONS = 2  # of each image
NAMES = ("vse2ad", "vse2ad-noadopt", "vse2ad-noemb", "vse2ad-notok")
# How strong each system's signal is.
SIGNALS = (2.6, 2.55, 2.0, 1.0)
END = "-R-bigru-s0 sample"  # of a name in results/metrics.json
COLUMNS = 7  # six recalls and RSUM
# The rows that are bold, column by column.
Marked = list[set[int]]


def matrices() -> list[np.ndarray]:
    return [of_seeds[0] for of_seeds in seeds_of(1, 60)]


def seeds_of(count: int, draw: int) -> list[list[np.ndarray]]:
    """The scores of each system's seeds."""
    generator = np.random.default_rng(draw)
    owner = np.repeat(np.arange(IMAGES), CAPTIONS)
    right = np.arange(IMAGES)[:, None] == owner
    common = generator.normal(size=right.shape)
    systems = []
    for signal in SIGNALS:
        seeds = []
        for _ in range(count):
            noise = 0.7 * common + 0.7 * generator.normal(size=right.shape)
            seeds.append(signal * right + noise)
        systems.append(seeds)
    return systems


# The scores of the systems of `NAMES`: of one run each, of three seeds each, and of three seeds but
# for the last system, so that all are tested by images alone.
CASES = {
    "one run each": seeds_of(1, 60),
    "three seeds each": seeds_of(3, 53),
    "seeds and one run": [*seeds_of(3, 54)[:-1], seeds_of(3, 54)[-1][:1]],
}


def hits(scores: np.ndarray) -> np.ndarray:
    """The mean hit of each image's queries at 1, 5 and 10, both ways, and their sum: [I, 7]."""
    owner = np.repeat(np.arange(IMAGES), CAPTIONS)
    columns = []
    best_captions = np.argsort(-scores, axis=1)
    for k in (1, 5, 10):
        columns.append((owner[best_captions[:, :k]] == np.arange(IMAGES)[:, None]).any(1))
    best_images = np.argsort(-scores, axis=0)
    for k in (1, 5, 10):
        of_captions = (best_images[:k] == owner).any(0)
        columns.append(of_captions.reshape(IMAGES, CAPTIONS).mean(1))
    six = 100 * np.stack(columns, 1)
    return np.hstack([six, six.sum(1, keepdims=True)])


# Of 50,000 random swaps.
SIGNS = np.random.default_rng(1).choice([-1.0, 1.0], (50_000, IMAGES))


def by_images(of_systems: Sequence[np.ndarray]) -> dict[tuple[int, int], float]:
    """The p of the randomisation test of every two systems, [images] each, stepped down: with the
    same swaps for all pairs.
    """
    measured = {}
    swapped = {}
    for pair in combinations(range(len(of_systems)), 2):
        apart = of_systems[pair[0]] - of_systems[pair[1]]
        length = np.sqrt((apart**2).sum()) or 1.0
        measured[pair] = abs(apart.sum()) / length
        swapped[pair] = np.abs(SIGNS @ apart) / length
    corrected = {}
    largest = 0.0
    left = sorted(measured, key=measured.__getitem__)
    while left:
        reached = np.max([swapped[pair] for pair in left], axis=0)
        pair = left.pop()
        largest = max(largest, float((reached >= measured[pair] - 1e-9).mean()))
        corrected[pair] = largest
    return corrected


def by_seeds(one: np.ndarray, other: np.ndarray, most: float) -> float:
    """The p of Welch's test of two systems, [seeds, images] each, with the variance over images
    that all seeds have in common; by draws of Student's t.

    One image that hits or misses all counts 0.1 of an image in the variance over images.
    """
    parts = []
    freedoms = [IMAGES - 1.0]
    of_images = ((one.mean(0) - other.mean(0)).var() * IMAGES + 0.1 * most**2) / (
        IMAGES * (IMAGES - 1)
    )
    for runs in (one, other):
        parts.append(runs.mean(1).var(ddof=1) / len(runs))
        freedoms.append(len(runs) - 1.0)
        centred = runs - runs.mean(1, keepdims=True)
        of_images -= centred.var(0, ddof=1).sum() / len(runs) / (IMAGES - 1) / IMAGES
    parts.insert(0, max(0.0, of_images))
    variance = sum(parts)
    freedom = variance**2 / sum(np.square(parts) / freedoms)
    drawn = np.abs(np.random.default_rng(1).standard_t(freedom, 100_000))
    return float((drawn >= abs(one.mean() - other.mean()) / variance**0.5).mean())


def by_holm(p: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """Holm's correction of p."""
    corrected = {}
    largest = 0.0
    for before, pair in enumerate(sorted(p, key=p.__getitem__)):
        largest = max(largest, min(1.0, (len(p) - before) * p[pair]))
        corrected[pair] = largest
    return corrected


def by_the_rule(of_systems: Sequence[np.ndarray]) -> Marked:
    """The bold rows of each column, from the hits of each system's seeds, [seeds, images, 7]: by
    one test for all, over seeds where every system has several.
    """
    pairs = list(combinations(range(len(of_systems)), 2))
    over_seeds = min(map(len, of_systems)) > 1
    bold = []
    for column in range(COLUMNS):
        most = 600.0 if column == COLUMNS - 1 else 100.0
        of_column = [each[:, :, column] for each in of_systems]
        if over_seeds:
            p = {pair: by_seeds(*(of_column[place] for place in pair), most) for pair in pairs}
            corrected = by_holm(p)
        else:
            corrected = by_images([each.mean(0) for each in of_column])
        for largest in corrected.values():
            assert not 0.04 < largest < 0.06, "as near to 5 % other draws decide otherwise"
        means = [each[:, :, column].mean() for each in of_systems]
        best = int(np.argmax(means))
        rows = {best}
        for pair, of_pair in corrected.items():
            if best in pair and of_pair >= 0.05:
                rows |= {*pair}
        bold.append(rows if len(rows) < len(of_systems) else set())
    return bold


def of_rows(rows: Sequence[TableRow]) -> Marked:
    """The bold rows of each column of the last seven, by the place of the system in `NAMES`."""
    bold: Marked = []
    for at in range(-COLUMNS, 0):
        column = [row for row in rows if row.cells[at].bold]
        bold.append({NAMES.index(row.sources[0].removesuffix(END)) for row in column})
    return bold


def of_lines(lines: Iterable[Sequence[str]], marks: str) -> Marked:
    """The bold rows by the texts of their cells: of lines that begin with a system's name."""
    bold: Marked = [set() for _ in range(COLUMNS)]
    seen = set()
    for name, *cells in lines:
        if name in NAMES:
            seen.add(name)
            assert len(cells) == COLUMNS, cells
            for column, cell in zip(bold, cells, strict=True):
                if re.search(marks, cell):
                    column.add(NAMES.index(name))
    assert seen == {*NAMES}
    return bold


def words(text: str) -> Iterator[list[str]]:
    """The cells of each line of a terminal; intervals and deviations are left out."""
    for line in re.sub(r" \[[^\[\]]*\d\]| ± [\d.]+", "", text).splitlines():
        yield line.split() or [""]


def split(text: str, separator: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        yield [cell.strip() for cell in line.strip(" |").split(separator)] or [""]


@pytest.fixture(scope="module", params=CASES)
def scores(request: pytest.FixtureRequest) -> list[list[np.ndarray]]:
    """The scores of each system's seeds."""
    return CASES[request.param]


@pytest.fixture(scope="module")
def found(scores: list[list[np.ndarray]]) -> dict[str, Any]:
    """The same systems as entries of results/metrics.json."""
    owner = np.repeat(np.arange(IMAGES), CAPTIONS)
    ids = (np.arange(IMAGES), np.arange(len(owner)))
    entries = {}
    for recipe, of_seeds in zip(NAMES, scores, strict=True):
        for seed, of_seed in enumerate(of_seeds):
            metrics = evaluate(of_seed, owner)
            ((name, entry),) = system(
                "sample",
                "all",
                recipe=recipe,
                seed=seed,
                features={"region": "small"},
                images=IMAGES,
                captions=IMAGES * CAPTIONS,
            ).items()
            entry["all"] |= metrics.as_dict()
            entry["image_hits"] = {"all": pack(metrics, *ids)}
            entries[name] = entry
    return entries


@pytest.fixture(scope="module")
def rule(scores: list[list[np.ndarray]]) -> Marked:
    bold = by_the_rule([np.array([*map(hits, of_seeds)]) for of_seeds in scores])
    assert len({frozenset(rows) for rows in bold}) > 2, "columns differ in what is bold"
    return bold


@pytest.fixture
def files(scores: list[list[np.ndarray]], tmp_path: Path) -> list[str]:
    """The systems as a command takes them: NAME=SEED,SEED."""
    named = []
    for name, of_seeds in zip(NAMES, scores, strict=True):
        of_system = []
        for seed, of_seed in enumerate(of_seeds):
            np.save(tmp_path / f"{name}-{seed}.npy", of_seed)
            of_system.append(str(tmp_path / f"{name}-{seed}.npy"))
        named.append(f"{name}={','.join(of_system)}")
    return named


def test_every_form_of_evaluate_prints_in_bold_what_the_rule_says(
    pipeline: Any, rule: Marked, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    said = "Bold: the best of a column, and every system not significantly worse than it"
    for forms, cells_of, mark in (
        ((), words, r"\x1b\[1m"),
        (("--latex",), lambda text: split(text.replace(r" \\", ""), "&"), r"\\bfseries"),
        (("--markdown",), lambda text: split(text, "|"), r"\*\*"),
    ):
        _, out, _ = pipeline("evaluate", *files, "--captions-per-image", "2", *forms)
        assert of_lines(cells_of(out), mark) == rule, forms
        assert said in " ".join(out.split()), forms


def test_tables_and_the_page_print_in_bold_what_the_rule_says(
    found: dict[str, Any], rule: Marked
) -> None:
    said = "Bold: the best of a column, and every system not significantly worse than it"
    (headline,) = headlines(found)
    for table in (
        built("systems", found, TableRequest(rows="measured", letters=True)),
        built("vse2ad_table3", found, TableRequest(rows="measured")),
        headline.table,
    ):
        panel = table.panels[-1]
        rows = [row for group in panel.groups for row in group.rows]
        shown = [[cell for cell in row.cells if cell.number is not None] for row in rows]
        numbers = [
            TableRow(tuple(cells), row.sources) for row, cells in zip(rows, shown, strict=True)
        ]
        order = [column.key[1] for column in panel.columns if column.kind == "number"]
        order = [statistic for statistic in order if statistic in STATISTICS]
        by_statistic = dict(zip(order, of_rows(numbers), strict=True))
        assert [by_statistic[statistic] for statistic in STATISTICS] == rule, table.name
        source = latex.to_latex(table)
        marked = dict.fromkeys(NAMES, 0)
        for line in source.splitlines():
            name = line.rpartition("% ")[2].split(", ")[0].removesuffix(END)
            if r"\\ % " in line and name in marked:
                marked[name] += line.count(r"\bfseries")
        assert list(marked.values()) == counts(rule), table.name
        assert markdown.to_markdown(table).count("**") == 2 * sum(counts(rule)), table.name
        assert said in " ".join([panel.caption, *(note.text for note in panel.notes)])
        assert said in source
    templates = Environment(loader=PackageLoader("pipeline.run.report.page", ""))
    number = templates.get_template("cells.html").module.number  # type: ignore[attr-defined]
    of_page = dict.fromkeys(NAMES, 0)
    for row in headline.rows:
        html = "".join(number(row.numbers[statistic]) for statistic in STATISTICS)
        of_page[row.systems[0].removesuffix(END)] = html.count("<strong>")
    assert list(of_page.values()) == counts(rule)


def counts(bold: Marked) -> list[int]:
    """How many bold numbers each system has."""
    return [sum(place in column for column in bold) for place in range(len(NAMES))]


def test_letters_say_of_rsum_what_bold_says(
    found: dict[str, Any], rule: Marked, files: list[str], pipeline: Any
) -> None:
    """A row is bold exactly if it shares a letter with the best, unless all do; also by the letters
    of `compare`, whose ranks are the page's where all are tested alike.
    """
    (headline,) = headlines(found)
    of_page = {row.systems[0].removesuffix(END): row.letters for row in headline.rows}
    ranks_of_page = {row.systems[0].removesuffix(END): row.rank for row in headline.rows}
    _, out, _ = pipeline("compare", *files, "--captions-per-image", "2", "--json")
    of_compare = {}
    ranks_of_compare = {}
    for pair in json.loads(out):
        for side, (name,) in pair["systems"].items():
            of_compare[name] = pair["letters"][side]
            ranks_of_compare[name] = from_to(pair["ranks"][side])
    assert ranks_of_page == ranks_of_compare
    assert len(set(ranks_of_page.values())) > 1
    for letters in (of_page, of_compare):
        of_best = set(letters[headline.ranked[0].systems[0].removesuffix(END)])
        shared = {NAMES.index(name) for name, of_row in letters.items() if of_best & set(of_row)}
        assert (shared if len(shared) < len(NAMES) else set()) == rule[-1]


def test_beside_published_rows_each_panel_has_its_own_best(
    scores: list[list[np.ndarray]], rule: Marked
) -> None:
    owner = np.repeat(np.arange(IMAGES), CAPTIONS)
    results = []
    for name, of_seeds in zip(NAMES, scores, strict=True):
        for seed, of_seed in enumerate(of_seeds):
            metrics = evaluate(of_seed, owner)
            packed = pack(metrics, np.arange(IMAGES), np.arange(len(owner)))
            numbers = metrics.as_dict() | {"contender": Contender((ImageHits(packed),))}
            if len(of_seeds) > 1:
                numbers |= {"series": Series(name, name), "seed": seed}
            results.append((name, numbers))
    (panel,) = rows_of_papers.table(results, beside="flickr30k").panels
    *published, measured = panel.groups
    assert of_rows([replace(row, sources=(row.cells[0].text,)) for row in measured.rows]) == rule
    printed = [row for group in published for row in group.rows]
    for at in range(-COLUMNS, 0):
        numbers_of_column = [row.cells[at].number for row in printed]
        largest = max(number for number in numbers_of_column if number is not None)
        bold = [bool(row.cells[at].bold) for row in printed]
        assert bold == [number == largest for number in numbers_of_column]
    assert panel.caption.endswith(PUBLISHED)


def test_one_row_and_rows_that_all_tie_have_no_bold(
    pipeline: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    first = matrices()[0]
    files = []
    for place in range(2):
        np.save(tmp_path / f"{place}.npy", first + 1e-6 * place)
        files.append(tmp_path / f"{place}.npy")
    for named in (files[:1], files):
        for form in ((), ("--latex",), ("--markdown",)):
            _, out, _ = pipeline("evaluate", *named, "--captions-per-image", "2", *form)
            assert not re.search(r"\x1b\[1m|\\bfseries|\*\*", out), (named, form)
            assert "Bold" not in out, (named, form)


def test_what_is_bold_is_said_where_it_is_shown(pipeline: Any, tmp_path: Path) -> None:
    files = []
    for place, scores in enumerate(matrices()[::3]):
        np.save(tmp_path / f"{place}.npy", scores)
        files.append(tmp_path / f"{place}.npy")
    beside = ("--beside", "flickr30k:VSE∞ RG")
    np.save(tmp_path / "whole.npy", np.eye(1000).repeat(5, 1))
    for arguments in (
        (*files, "--captions-per-image", "2"),
        (tmp_path / "whole.npy", *beside),
    ):
        for environment, form, is_said in (
            ({"NO_COLOR": "1"}, (), False),
            ({"FORCE_COLOR": "1"}, (), True),
            ({"NO_COLOR": "1"}, ("--markdown",), True),
        ):
            with pytest.MonkeyPatch.context() as patch:
                patch.delenv("NO_COLOR", raising=False)
                for name, value in environment.items():
                    patch.setenv(name, value)
                _, out, _ = pipeline("evaluate", *arguments, *form)
            assert ("Bold" in out) == is_said, (arguments, environment, form)
