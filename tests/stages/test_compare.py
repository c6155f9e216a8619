"""`pipeline compare`: two systems on the same queries, aligned by id, of one or several seeds."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import saved
import yaml
import zarr
from PIL import Image
from scored import score

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import STATISTICS, Metrics, Statistic, evaluate
from pipeline.foundation.evaluation.metrics.base import at
from pipeline.foundation.evaluation.statistics import compare, contrast, power
from pipeline.foundation.evaluation.statistics.significance import benjamini_yekutieli
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables.compared import difference
from stages import compare as comparing

pytestmark = pytest.mark.slow

REGION, GRID = "vse2ad-region-bigru", "vse2ad-grid-bigru"
ALONE = "vse2ad-R-bigru"  # the ensemble of the head of regions alone


@pytest.fixture(autouse=True)
def _few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would suffice is simulated with few cases; its value is tested with the statistics."""
    monkeypatch.setattr(power, "CASES", 200)
    monkeypatch.setattr(power, "TEST_SETS", 200)


def compared(pipeline: Any, *arguments: str) -> list[dict[str, Any]]:
    code, out, err = pipeline("compare", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def metrics(path: Path) -> Metrics:
    store = System.open(path)
    return evaluate(store.similarity, store.caption_image)


@pytest.mark.specification
def test_it_is_the_paired_test_of_the_library(pipeline: Any) -> None:
    paths = score("region", noise=3), score("grid", noise=1)
    found = compared(pipeline, f"{REGION}-s0", f"{GRID}-s0")
    first, second = (metrics(path) for path in paths)
    expected = compare(first, second, 1000, seed=0)["", "RSUM"]
    rsum = found[0]["RSUM"]
    assert (rsum["a"], rsum["b"]) == pytest.approx((first.rsum, second.rsum))
    assert rsum["difference"] == pytest.approx(second.rsum - first.rsum)
    assert (rsum["interval"], rsum["p"]) == (
        [expected.difference.low, expected.difference.high],
        expected.p,
    )
    assert rsum["spread"] == {"a": None, "b": None}
    assert found[0]["over"] == ["images"]
    assert (found[0]["systems"]["a"], found[0]["systems"]["b"]) == (
        [f"{REGION}-s0"],
        [f"{GRID}-s0"],
    )


def test_a_name_without_its_seed_is_the_mean_of_all_its_seeds(pipeline: Any) -> None:
    runs = [metrics(score("region", noise=2, seed=seed)) for seed in (0, 2, 10, 11)]
    score("grid")
    found = compared(pipeline, REGION, f"{GRID}-s0")
    sums = [run.rsum for run in runs]
    rsum = found[0]["RSUM"]
    assert found[0]["systems"]["a"] == [f"{REGION}-s{seed}" for seed in (0, 2, 10, 11)]
    assert rsum["a"] == pytest.approx(np.mean(sums))
    assert rsum["spread"]["a"] == pytest.approx(np.std(sums, ddof=1))
    assert rsum["difference"] == pytest.approx(rsum["b"] - rsum["a"])
    assert max(map(len, pipeline("compare", REGION, f"{GRID}-s0")[1].splitlines())) <= 80
    assert compared(pipeline, f"{REGION}-s0,{REGION}-s10", GRID)[0]["systems"]["a"] == [
        f"{REGION}-s0",
        f"{REGION}-s10",
    ]


def test_two_or_more_seeds_are_judged_with_their_spread(pipeline: Any) -> None:
    runs = [
        [metrics(score(feature, noise=noise, seed=seed)) for seed, noise in enumerate(noises)]
        for feature, noises in (("region", (1, 2, 4)), ("grid", (1, 2, 3)))
    ]
    contrast = compared(pipeline, REGION, GRID)[0]
    assert (contrast["over"], contrast["seeds"]) == (["images", "seeds"], {"a": 3, "b": 3})
    expected = compare(*runs)["", "RSUM"]
    assert (contrast["RSUM"]["p"], contrast["RSUM"]["interval"][1]) == (
        expected.p,
        expected.difference.high,
    )
    reported = {}
    for name, names in {
        "seeds": (REGION, GRID),
        "images": (REGION, f"{GRID}-s0"),
        "both": (REGION, GRID, f"{GRID}-s0"),
    }.items():
        out = pipeline("compare", *names, "--explain")[1]
        assert max(map(len, out.splitlines())) <= 80
        reported[name] = " ".join(out.split())
    assert "with another sample of images and other seeds (Welch" in reported["seeds"]
    assert "They leave out seeds" not in reported["seeds"]
    assert "They leave out seeds" in reported["images"]
    assert "One test over images for all pairs" in reported["both"]
    assert "Welch" not in reported["both"]


@pytest.mark.specification
def test_what_is_printed_together_is_corrected(pipeline: Any) -> None:
    before, after = metrics(score("region", noise=3)), metrics(score("grid", noise=2))
    rows = compared(pipeline, REGION, GRID)[0]
    ((expected,),) = contrast.together([[([before], [after])]], 1000, 0)
    for name in STATISTICS:
        assert at(rows, name)["adjusted"] == at(expected, name)["adjusted"]
    assert rows["RSUM"]["adjusted"] == rows["RSUM"]["p"]


def test_further_metrics_are_rows_beside_the_recalls(pipeline: Any, refused: Any) -> None:
    score("region", noise=3), score("grid", noise=2)
    (pair,) = compared(pipeline, REGION, GRID, "--metric", "nDCG@10")
    row = at(pair, Statistic("t2i", "nDCG@10"))
    of_systems = []
    for system in (REGION, GRID):
        store = f"similarities/sample/{system}-s0.zarr"
        text = pipeline("evaluate", "--system", store, "--metric", "nDCG@10", "--json")[1]
        of_systems.append(json.loads(text)[0]["t2i"]["nDCG@10"])
    assert [row["a"], row["b"]] == pytest.approx(of_systems)
    assert "t2i nDCG@10" in pipeline("compare", REGION, GRID, "--metric", "nDCG@10")[1]
    refused("MedR: systems are compared by shares", "compare", REGION, GRID, "--metric", "MedR")


def test_every_pair_of_several_systems(pipeline: Any) -> None:
    features = {"region": 3.0, "grid": 2.0, "patch": 1.0}
    runs = [metrics(score(feature, noise=noise)) for feature, noise in features.items()]
    names = [f"vse2ad-{feature}-bigru-s0" for feature in features]
    pairs = compared(pipeline, *names)
    assert [pair["systems"] for pair in pairs] == [
        {"a": [names[a]], "b": [names[b]]} for a, b in ((0, 1), (0, 2), (1, 2))
    ]
    sums = [pair["RSUM"] for pair in pairs]
    alone = compared(pipeline, names[0], names[2])[0]["RSUM"]
    of_itself = [key for key in alone if not key.startswith("adjusted")]
    assert [sums[1][key] for key in of_itself] == [alone[key] for key in of_itself]
    of_pairs = [*combinations([[run] for run in runs], 2)]
    expected = contrast.together([of_pairs], 1000, 0)
    assert [row["adjusted"] for row in sums] == [each["RSUM"]["adjusted"] for each in expected[0]]
    for output in ([], ["--markdown"]):
        lines = pipeline("compare", *names, *output)[1].splitlines()
        for title, row in zip(("2 − 1", "3 − 1", "3 − 2"), sums, strict=True):
            line = next(line for line in lines if line.strip("| ").startswith(title))
            for cell in difference(row):
                shown = str(cell).replace("<", "&lt;") if output else str(cell)
                assert shown in line
        for number, run in enumerate(runs, 1):
            assert any(
                line.strip("| ").startswith(str(number)) and f" {run.rsum:.1f}" in line
                for line in lines
            )


def test_what_is_not_significant_has_what_would_suffice(
    pipeline: Any, rng: np.random.Generator
) -> None:
    for name, noise in (("a", 0.40), ("b", 0.38), ("c", 0.1)):
        np.save(
            f"{name}.npy", np.eye(60).repeat(2, axis=1) + noise * rng.standard_normal((60, 120))
        )
    options = ("--captions-per-image", "2")
    row = compared(pipeline, "a.npy", "b.npy", *options)[0]["RSUM"]
    assert row["needs"]["images"] > 60
    sentence = re.fullmatch(r"cannot tell; (\d[\d,]* images) would suffice", row["verdict"])
    assert sentence, row["verdict"]
    out = pipeline("compare", "a.npy", "b.npy", *options)[1]
    assert next(line for line in out.splitlines() if "RSUM" in line).endswith(f" {sentence[1]}")
    reported = compared(pipeline, "a.npy", "b.npy", "c.npy", *options)
    assert [each["letters"] for each in reported] == [
        {"a": "b", "b": "b"},
        {"a": "b", "b": "a"},
        {"a": "b", "b": "a"},
    ]
    assert [each["ranks"] for each in reported] == [
        {"a": [2, 3], "b": [2, 3]},
        {"a": [2, 3], "b": [1, 1]},
        {"a": [2, 3], "b": [1, 1]},
    ]
    assert [pair["RSUM"]["verdict"] for pair in reported][1:] == ["higher", "higher"]
    for output in ([], ["--markdown"]):
        lines = [
            line.strip("| ")
            for line in pipeline("compare", "a.npy", "b.npy", "c.npy", *options, *output)[
                1
            ].splitlines()
        ]
        first = next(
            at for at, line in enumerate(lines) if line.startswith("3 ") and line.endswith("a")
        )
        assert [line[-1] for line in lines[first : first + 3]] == ["a", "b", "b"]
        ranks = [line.replace("|", " ").split()[2] for line in lines[first : first + 3]]
        assert ranks == ["1", "2–3", "2–3"]
    source = pipeline("compare", "a.npy", "b.npy", "c.npy", *options, "--latex")[1]
    assert source.startswith("% Needs \\usepackage{")
    assert [line.split("{")[-1] for line in source.splitlines() if line.endswith(r"} \\")][-3:]
    assert "Systems that share a letter do not differ significantly" in source
    assert source.count(r"{2\textendash{}3} & {b}") == 2
    assert r"with 95\,\% confidence all true ranks are within" in source


def test_ranks_over_seeds_count_the_systems_that_are_significantly_above_and_below(
    pipeline: Any, rng: np.random.Generator
) -> None:
    systems = []
    for name, noise in (("a", 0.42), ("b", 0.4), ("c", 0.1), ("d", 0.3)):
        files = []
        for seed in range(3):
            files.append(f"{name}{seed}.npy")
            scores = np.eye(60).repeat(2, axis=1) + noise * rng.standard_normal((60, 120))
            np.save(files[-1], scores)
        systems.append(f"{name}={','.join(files)}")
    pairs = compared(pipeline, *systems, "--captions-per-image", "2")
    assert {tuple(pair["over"]) for pair in pairs} == {("images", "seeds")}
    assert {pair["RSUM"]["adjusted_by"] for pair in pairs} == {"Holm"}
    above = dict.fromkeys("abcd", 0)
    below = dict(above)
    ranks = {}
    for pair in pairs:
        rsum = pair["RSUM"]
        names = [pair["systems"][side][0] for side in "ab"]
        ranks |= dict(zip(names, pair["ranks"].values(), strict=True))
        if rsum["adjusted"] < 0.05:
            worse, better = names
            if rsum["difference"] < 0:
                better, worse = names
            above[worse] += 1
            below[better] += 1
    assert ranks == {name: [1 + above[name], 4 - below[name]] for name in "abcd"}
    assert ranks["c"] == [1, 1]
    assert len({str(each) for each in ranks.values()}) > 2


def test_discoveries_are_found_and_form_neither_groups_nor_ranks(
    pipeline: Any, rng: np.random.Generator
) -> None:
    """q are Benjamini and Yekutieli's of all pairs, among RSUMs and among recalls; a pair that is
    not found is not said to be equal.
    """
    for name, noise in (("a", 0.40), ("b", 0.38), ("c", 0.1)):
        np.save(
            f"{name}.npy", np.eye(60).repeat(2, axis=1) + noise * rng.standard_normal((60, 120))
        )
    asked = ("a.npy", "b.npy", "c.npy", "--captions-per-image", "2", "--fdr")
    pairs = compared(pipeline, *asked)
    for names in (STATISTICS[:-1], STATISTICS[-1:]):
        rows = [at(pair, name) for pair in pairs for name in names]
        q = benjamini_yekutieli([row["p"] for row in rows])
        assert [row["adjusted"] for row in rows] == pytest.approx(q)
        assert {row["adjusted_by"] for row in rows} == {"Benjamini-Yekutieli"}
        for row in rows:
            is_found = row["verdict"] == "difference found"
            assert is_found == (row["adjusted"] < 0.05)
            assert is_found or row["verdict"].startswith("not found; ")
    assert [pair["RSUM"]["adjusted"] < 0.05 for pair in pairs] == [False, True, True]
    # So many swaps that one small p among all recalls would be enough.
    assert pairs[1]["RSUM"]["resolution"] * sum(18 / place for place in range(1, 19)) < 0.05
    assert {pair[key] for pair in pairs for key in ("letters", "ranks")} == {None}
    for output in ([], ["--explain"], ["--markdown"], ["--latex"], ["--csv"]):
        out = pipeline("compare", *asked, *output)[1].lower()
        for word in ("letter", "rank:", "tied", "cannot tell", "adj. p", "adjusted", "significant"):
            assert word not in out, output
        assert re.search(r"\bq\b", out), output
    err = pipeline("compare", *asked, "--figure", "found.png")[2]
    assert "filled: found (q below 0.05 by Benjamini and Yekutieli" in " ".join(err.split())


def systems(images: int, noises: Mapping[str, float], rng: np.random.Generator) -> None:
    """Files of systems that differ in their noise alone, which all have a part of."""
    right = np.eye(images).repeat(2, axis=1) + 0.2 * rng.standard_normal((images, 2 * images))
    for name, noise in noises.items():
        np.save(f"{name}.npy", right + noise * rng.standard_normal(right.shape))


@pytest.mark.specification
def test_a_margin_tells_equal_systems_from_those_of_which_nothing_is_known(
    pipeline: Any, rng: np.random.Generator
) -> None:
    """RSUM's margin is that of six recalls, and a significant difference is one within a margin,
    too.
    """
    systems(60, {"a": 0.01, "b": 0.01, "c": 0.05, "d": 0.6}, rng)
    options = ("--captions-per-image", "2", "--margin")
    for name, margin, verdict in (
        ("b", "9", "equal within 54"),
        ("c", "0.1", "cannot tell; [0-9,]+ images would show equality"),
        ("d", "0.5", "lower"),
        ("d", "99", "lower by less than 594"),
    ):
        row = compared(pipeline, "a.npy", f"{name}.npy", *options, margin)[0]["RSUM"]
        within = row["margin"]
        assert re.fullmatch(verdict, within["verdict"]), within
        assert within["margin"] == pytest.approx(6 * float(margin))
        is_inside = max(map(abs, within["interval"])) < within["margin"]
        assert within["equal"] is is_inside is (("equal" in verdict[:5]) or ("less" in verdict))
        assert (within["needs"] is None) is ("cannot" not in verdict)
        assert row["verdict"].startswith(verdict.split()[0]) or row["adjusted"] >= 0.05
        mirrored = compared(pipeline, f"{name}.npy", "a.npy", *options, margin)[0]["RSUM"]
        assert mirrored["margin"]["interval"] == [-end for end in reversed(within["interval"])]


def test_every_output_says_what_a_margin_shows(pipeline: Any, rng: np.random.Generator) -> None:
    systems(60, {"a": 0.01, "b": 0.01, "c": 0.6}, rng)
    options = ("--captions-per-image", "2", "--margin", "9")
    row = compared(pipeline, "a.npy", "b.npy", *options)[0]["t2i"]["R@1"]["margin"]
    assert row["verdict"] == "equal within 9"
    text = pipeline("compare", "a.npy", "b.npy", *options)[1]
    assert max(map(len, text.splitlines())) <= 80
    assert "RSUM's margin is 6 times a recall's" in " ".join(text.split())
    for output in ([], ["--markdown"], ["--latex"]):
        out = pipeline("compare", "a.npy", "b.npy", *options, *output)[1]
        line = [each for each in out.splitlines() if "R@1" in each][-1]
        assert "equal within 9" in line
    out = pipeline("compare", "a.npy", "b.npy", *options, "--csv")[1]
    rows = {each["metric"]: each for each in csv.DictReader(io.StringIO(out))}
    ends = [float(rows["t2i R@1"][f"margin {end}"]) for end in ("low", "high")]
    assert (ends, rows["t2i R@1"]["margin verdict"]) == (row["interval"], row["verdict"])
    out = pipeline("compare", "a.npy", "b.npy", "c.npy", *options, "--explain")[1]
    pairs = {
        each["systems"]["b"][0]: each
        for each in compared(pipeline, "a.npy", "b.npy", "c.npy", *options)
    }
    unknown = pipeline("compare", "a.npy", "b.npy", "--captions-per-image", "2", "--margin", "1")[1]
    line = [each for each in unknown.splitlines() if "R@1" in each][-1]
    assert re.search(r"±1 +cannot tell +[\d,]+ images$", line), line
    verdicts = [line.split("±54")[1].strip() for line in out.splitlines() if "±54" in line]
    assert verdicts == ["equal within 54", "lower", "lower"]
    assert pairs["c"]["RSUM"]["margin"]["verdict"] == "lower"
    assert "bootstrap-t that draws whole images" in " ".join(out.split())


def test_a_difference_that_is_found_and_less_than_the_margin_is_said_to_be_less(
    pipeline: Any, rng: np.random.Generator
) -> None:
    systems(60, {"a": 0.01, "d": 0.6}, rng)
    options = ("--captions-per-image", "2", "--margin", "99", "--fdr")
    row = compared(pipeline, "a.npy", "d.npy", *options)[0]["RSUM"]
    assert row["margin"]["verdict"] == "difference found, less than 594"


@pytest.mark.parametrize("margin", ["0", "-1", "100", "nan", "inf", "half"])
def test_a_margin_that_is_none_is_refused(margin: str, refused: Callable[..., str]) -> None:
    assert "--margin" in refused("compare", "a.npy", "b.npy", "--margin", margin)


def test_a_p_below_the_resolution_of_its_swaps_is_printed_as_a_bound(
    pipeline: Any, rng: np.random.Generator
) -> None:
    for name, noise in (("a", 1.0), ("b", 0.1)):
        np.save(
            f"{name}.npy", np.eye(60).repeat(2, axis=1) + noise * rng.standard_normal((60, 120))
        )
    row = compared(pipeline, "a.npy", "b.npy", "--captions-per-image", "2")[0]["t2i"]["R@1"]
    assert (row["p"], row["resolution"]) == (1 / 1001, 1 / 1001)
    line = next(
        line
        for line in pipeline("compare", "a.npy", "b.npy", "--captions-per-image", "2")[
            1
        ].splitlines()
        if "t2i R@1 " in line
    )
    assert line.split("]")[1].split() == ["<", "0.001", "<", "0.001"]


@pytest.mark.parametrize(
    ("p", "resolution", "shown"),
    [
        (1 / 1001, 1 / 1001, "< 0.001"),
        (0.001, 0.001, "< 0.002"),
        (1 / 5041, 1 / 5041, "< 0.0002"),
        (0.5, 0.5, "< 0.6"),
        (2 / 1001, 1 / 1001, "0.002"),
        (1.0, 1.0, "1"),
        (0.0123, 0.0, "0.012"),
        (1e-12, 0.0, "< 0.0001"),
    ],
)
def test_how_a_p_is_printed(p: float, resolution: float, shown: str) -> None:
    row = {
        "difference": 1.0,
        "interval": [0.0, 2.0],
        "p": p,
        "adjusted": p,
        "adjusted_by": "Holm",
        "resolution": resolution,
    }
    assert [str(cell) for cell in difference(row)[1:]] == [shown, shown]


def test_explanations_are_printed_where_they_are_asked_for(pipeline: Any) -> None:
    score("region", noise=3), score("grid", noise=2)
    plain, explained = (
        pipeline("compare", REGION, GRID, *more)[1] for more in ((), ("--explain",))
    )
    assert "Trained again" not in plain
    assert "Brackets: 95 % intervals over images, not seeds. Would suffice: " in " ".join(
        plain.split()
    )
    assert " ".join(plain.split()).endswith("More: --explain.")
    assert "Trained again" in " ".join(explained.split())
    assert "four of five cases" in " ".join(explained.split())


def test_the_arrays_of_a_store_are_opened_to_be_checked_and_to_be_read_alone(
    pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    score("region", noise=3), score("grid", noise=1)
    opened: list[str] = []
    group = layout.group
    monkeypatch.setattr(layout, "group", lambda path: opened.append(path.stem) or group(path))
    compared(pipeline, REGION, GRID)
    assert sorted(opened) == [f"{GRID}-s0"] * 2 + [f"{REGION}-s0"] * 2


def test_one_system_is_nothing_to_compare(refused: Callable[..., str]) -> None:
    assert "two or more systems" in refused("compare", REGION)


def test_only_seeds_of_one_system_are_averaged(pipeline: Any, refused: Callable[..., str]) -> None:
    score("region", seed=0)
    score("region", seed=1, settings={"learning_rate": 1e-3, "dimension": 256})
    score("grid")
    said = refused("compare", f"{GRID}-s0", REGION)
    differs = "learning_rate 0.0005 and 0.001, dimension None and 256"
    assert f"{REGION}-s1: is no seed of the system {REGION}-s0: {differs}" in said
    assert compared(pipeline, f"{REGION}-s0", f"{REGION}-s1")[0]["systems"]["b"] == [f"{REGION}-s1"]


def test_items_are_aligned_by_id(pipeline: Any, rng: np.random.Generator) -> None:
    store = System.open(score("region", noise=2))
    rows, columns = rng.permutation(len(store.image_ids)), rng.permutation(len(store.caption_ids))
    shuffled = retrieval.as_similarity(store.similarity[:][np.ix_(rows, columns)])
    saved.save(
        Path("shuffled.zarr"),
        [shuffled],
        store.image_ids[rows],
        store.caption_ids[columns],
        np.argsort(rows)[store.caption_image[columns]],
        store.made_from,
    )
    rsum = compared(pipeline, f"{REGION}-s0", "shuffled.zarr")[0]["RSUM"]
    assert (rsum["difference"], rsum["p"]) == (0, 1)


def test_ids_that_number_rows_and_columns_in_any_order_fit_a_matrix_without_ids(
    rng: np.random.Generator,
) -> None:
    scores = rng.random((4, 8))
    owner = np.arange(8) // 2
    images = np.array([2, 0, 3, 1])
    captions = rng.permutation(8)
    matrix = System.of("matrix", scores, owner)
    row_of_image = np.argsort(images)
    listed = scores[np.ix_(images, captions)]
    run = System.of("run", listed, row_of_image[owner[captions]], images, captions)
    (first,), (second,) = comparing._fitting([[matrix], [run]])
    aligned = comparing._like(first, second)
    block = aligned.scores.block(slice(0, 4), slice(0, 8))  # type: ignore[union-attr]
    np.testing.assert_array_equal(block, scores)
    assert aligned.caption_image.tolist() == owner.tolist()
    others = System.of("run", listed, row_of_image[owner[captions]], images + 1, captions)
    with pytest.raises(InputError, match="matrix: has no ids, others have; name its --manifest"):
        comparing._fitting([[matrix], [others]])


def test_matrices_from_anywhere(pipeline: Any, rng: np.random.Generator) -> None:
    for name, noise in (("a", 0.4), ("b", 0.1)):
        np.save(f"{name}.npy", np.eye(20).repeat(2, axis=1) + noise * rng.standard_normal((20, 40)))
    found = compared(pipeline, "a.npy", "b.npy", "--captions-per-image", "2", "--folds", "2")
    assert found[0]["RSUM"]["difference"] > 0
    for output in ([], ["--markdown"]):
        out = pipeline("compare", "a.npy", "b.npy", "--captions-per-image", "2", *output)[1]
        row = next(line for line in out.splitlines() if "RSUM" in line)
        assert "[+" in row
        assert "20 images x 40 captions, protocol all" in out


def test_where_the_order_of_ties_matters_its_range_is_said(pipeline: Any) -> None:
    np.save("tied.npy", np.zeros((20, 40)))
    np.save("apart.npy", np.eye(20).repeat(2, axis=1) + np.linspace(0, 0.1, 800).reshape(20, 40))
    said = pipeline("compare", "tied.npy", "apart.npy", "--captions-per-image", "2")[2]
    assert "note: tied: by the order of ties: image → caption R@1 0.0 to 100.0" in said
    assert "note: apart" not in said


def test_the_card_of_the_project_says_how_its_test_split_is_measured(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Path("elsewhere").resolve()
    (project / "manifests").mkdir(parents=True)
    card = yaml.safe_load((Path(__file__).parents[2] / "manifests" / "sample.yaml").read_text())
    (project / "manifests" / "sample.yaml").write_text(
        yaml.safe_dump(card | {"protocols": ["flickr30k_1k"]})
    )
    with monkeypatch.context() as there:
        there.chdir(project)
        score("region"), score("grid")
    said = refused("compare", f"{REGION}-s0", f"{GRID}-s0", "--root", project)
    assert "flickr30k_1k is defined for 1000 images, received 12" in said


def test_what_cannot_be_compared_is_refused(refused: Callable[..., str]) -> None:
    score("region")
    score("grid", without=(1,))
    assert "neither a file nor a system" in refused("compare", REGION, "nothing")
    assert refused("compare", REGION, "nothing.npy") == "error: nothing.npy: no such file"
    assert "image ids that" in refused("compare", REGION, GRID)
    score("grid", manifest="n" * 64)
    assert "its manifest is" in refused("compare", REGION, GRID)
    np.save("a.npy", np.eye(3, 15))
    np.save("b.npy", np.eye(3, 15))
    Path("folder.npy").mkdir()
    for command in ("evaluate", "compare"):
        said = refused(command, "A=a.npy", "A=b.npy")
        assert "A: is the title of two systems; different systems need different titles" in said
        assert "folder.npy: is a folder" in refused(command, "folder.npy", "a.npy")
    assert "is named twice" in refused("compare", f"{REGION}-s0,{REGION}-s0", GRID)
    assert "leave out --manifest" in refused("compare", REGION, REGION, "--captions-per-image", "5")
    assert "has no ids, others have" in refused("compare", "a.npy", REGION)
    score("grid")
    array = zarr.open_group(f"similarities/sample/{GRID}-s0.zarr", mode="r+")["caption_image"]
    array[:] = np.roll(array[:], 5)  # type: ignore[index]
    assert "caption_image: changed after it was written" in refused("compare", REGION, GRID)
    saved.sealed_anew(Path(f"similarities/sample/{GRID}-s0.zarr"))
    assert "its caption 100 is of image" in refused("compare", REGION, GRID)
    assert "its caption 100 is of image" in refused(
        "ensemble", "own", "--member", f"{REGION}-s0", "--member", f"{GRID}-s0"
    )


def test_a_head_and_its_ensemble_of_one_are_one_system(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    for feature in ("region", "grid"):
        score(feature)
    assert pipeline("ensemble", "R")[0] == 0
    assert f"{REGION}-s0: is the same system as {ALONE}-s0" in refused("compare", ALONE, REGION)
    expected = pipeline("compare", REGION, GRID, "--json")[1]
    code, out, err = pipeline("compare", REGION, ALONE, GRID, "--json")
    assert (code, out) == (0, expected)
    assert f"{ALONE}-s0 is the same system as {REGION}-s0, which is compared once" in err


def test_an_ensemble_of_an_older_head_is_refused_beside_another_ensemble(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    for feature in ("region", "grid"):
        score(feature)
    pipeline("ensemble", "R")
    score("region", noise=2, content=b"trained again")
    pipeline("ensemble", "RG")
    assert "is an ensemble of an older" in refused("compare", "vse2ad-R-bigru", "vse2ad-RG-bigru")


def test_a_name_that_only_looks_like_a_seed(pipeline: Any) -> None:
    for feature in ("region", "grid"):
        score(feature)
    pipeline("ensemble", f"{REGION}-s1b", "--member", f"{REGION}-s0", "--member", f"{GRID}-s0")
    assert compared(pipeline, REGION, GRID)[0]["systems"]["a"] == [f"{REGION}-s0"]


def test_its_csv_has_the_unrounded_numbers_of_its_json(
    pipeline: Any, rng: np.random.Generator
) -> None:
    for name, noise in (("a", 0.4), ("b", 0.3), ("c", 0.1)):
        np.save(f"{name}.npy", np.eye(20).repeat(2, axis=1) + noise * rng.standard_normal((20, 40)))
    asked = ("a.npy", "b.npy", "c.npy", "--captions-per-image", "2")
    rows = list(csv.DictReader(io.StringIO(pipeline("compare", *asked, "--csv")[1])))
    assert len(rows) == 3 * 7
    for pair in compared(pipeline, *asked):
        (row,) = [
            each
            for each in rows
            if [each["A"], each["B"]] == [*pair["systems"]["a"], *pair["systems"]["b"]]
            and each["metric"] == "t2i R@1"
        ]
        reported = pair["t2i"]["R@1"]
        assert [float(row[key]) for key in ("a", "b", "difference", "p", "adjusted")] == [
            reported[key] for key in ("a", "b", "difference", "p", "adjusted")
        ]
        assert [float(row["low"]), float(row["high"])] == reported["interval"]


def test_the_cards_protocols_are_for_the_test_split_of_its_data_set() -> None:
    def of(dataset: str, split: str, own: retrieval.Protocol | None = None) -> Any:
        made = SimpleNamespace(dataset=dataset, split=split)
        return SimpleNamespace(protocol=own, made_from=made)

    paths = Paths(Path(__file__).parents[2])
    own = ["coco_1k_5fold", "coco_5k"]
    assert comparing._protocols(paths, "coco", [of("coco", "test")]) == own
    for pools in ([of("coco", "val")], [of("other", "test")], [of("", "")]):
        assert comparing._protocols(paths, "coco", pools) == ["all"]
    reranked = [of("coco", "test", retrieval.protocol("coco_5k")), of("coco", "test")]
    assert comparing._protocols(paths, "coco", reranked) == [retrieval.protocol("coco_5k")]


def test_a_contrast_is_labelled_with_its_split_and_language() -> None:
    def of(split: str | None, *languages: str) -> Any:
        parts = [SimpleNamespace(language=language) for language in languages]
        return SimpleNamespace(sides=("image", "caption"), split=split, parts=lambda rules: parts)

    for split, languages, labels in (
        ("val", [""], [{"split": "val"}]),
        (
            "test",
            ["", "de", "fr"],
            [
                {"split": "test"},
                {"split": "test", "language": "de"},
                {"split": "test", "language": "fr"},
            ],
        ),
        (None, ["", "de"], [{}, {"language": "de"}]),
    ):
        # The second system has its languages in another order.
        groups = [[of(split, *languages)], [of(split, *languages[::-1])]]
        views = comparing._views(groups, "all")
        assert [view.label for view in views] == labels
        for view, language in zip(views, languages, strict=True):
            assert [part.language for (part,) in view.groups] == [language, language]


def test_a_figure_holds_the_numbers_that_are_printed(
    pipeline: Any, refused: Callable[..., str], rng: np.random.Generator
) -> None:
    for name, noise in (("a", 0.5), ("b", 0.4), ("c", 0.45)):
        np.save(f"{name}.npy", np.eye(60).repeat(2, axis=1) + noise * rng.normal(size=(60, 120)))
    options = ("--captions-per-image", "2", "--figure")
    systems = ("a.npy", "Ours=b.npy,c.npy")
    width = ("-S", "typesetting.text_width=12.1")
    (pair,) = compared(pipeline, *systems, *options, "f.svg", "--figure", "g.png", *width)
    rows = list(csv.DictReader(io.StringIO(Path("f.csv").read_text())))
    differences = {row["metric"]: row for row in rows if row["shown"] == "difference"}
    recalls = {(row["system"], row["metric"]): row for row in rows if row["shown"] == "recall"}
    for statistic in STATISTICS:
        printed = at(pair, statistic)
        drawn = differences[str(statistic)]
        assert (drawn["system"], drawn["minus"]) == ("Ours", "a")
        assert float(drawn["value"]) == pytest.approx(printed["difference"])
        assert [float(drawn["low"]), float(drawn["high"])] == pytest.approx(printed["interval"])
        assert [float(drawn["p"]), float(drawn["adjusted"])] == [printed["p"], printed["adjusted"]]
        if statistic.direction:
            assert float(recalls["a", str(statistic)]["value"]) == pytest.approx(printed["a"])
            assert float(recalls["Ours", str(statistic)]["value"]) == pytest.approx(printed["b"])
    (alone,) = json.loads(pipeline("evaluate", "a.npy", *options[:2], "--json")[1])
    for way in ("i2t", "t2i"):
        for metric, ends in alone["interval"][way].items():
            row = recalls["a", f"{way} {metric}"]
            assert [float(row["low"]), float(row["high"])] == pytest.approx(ends)
    assert "<svg" in Path("f.svg").read_text()
    assert Path("g.csv").read_bytes() == Path("f.csv").read_bytes()
    with Image.open("g.png") as image:
        assert image.width == round(300 * 12.1 / 2.54)
    for file, said in {
        "only.CSV": "only.CSV: A line for each system",
        "whole.PNG": "whole.PNG: Recall at K of ",
    }.items():
        _, _, err = pipeline("compare", *systems, *options, file)
        assert said in err
        assert ("filled" in err) == file.endswith("PNG")
    assert "\nwhole.csv: A line for each system" in err
    with Image.open("whole.PNG") as image:
        assert image.format == "PNG"
    for numbers in ("only.CSV", "whole.csv"):
        assert Path(numbers).read_text().startswith("shown,split,"), numbers
    assert not Path("only.csv").exists()
    Path("ours.csv").write_text("kept")
    for file, said in {
        "f.jpg": "expected a name that ends in .pdf or .svg or .png or .csv",
        "none/f.pdf": "there is no folder none",
        "ours.pdf": "ours.csv: exists, and is not the numbers of a figure",
        "a.npy": "expected a name that ends in",
    }.items():
        assert said in refused("compare", *systems, *options, file), file
    assert "is also named by" in refused("compare", "a.npy", "ours.csv", *options, "ours.pdf")
    assert Path("ours.csv").read_text() == "kept"


def test_lists_of_the_best_have_the_candidates_of_all_runs(pipeline: Any, tmp_path: Path) -> None:
    """Two runs of a large corpus hardly list the same candidates."""
    queries = [f"q{number}" for number in range(20)]
    Path("qrels.json").write_text(json.dumps({query: {query: 1} for query in queries}))
    right = {"a": 5, "b": 15}
    for run, count in right.items():
        best = {}
        for number, query in enumerate(queries):
            first = query if number < count else f"wrong {number}"
            best[query] = {first: 0.9, f"{run}, {number}": 0.5}
        written = {"mteb_model_meta": {}, "default": {"test": best}}
        Path(f"{run}.json").write_text(json.dumps(written))
        del best["q7"]
        Path(f"{run} of fewer.json").write_text(json.dumps(written))
    code, out, err = pipeline("compare", "a.json", "b.json", "--qrels", "qrels.json", "--json")
    assert code == 0, err
    (contrast,) = json.loads(out)
    recall = contrast["t2i"]["R@1"]
    assert (recall["a"], recall["b"]) == (25, 75)
    assert contrast["images"] == 20 + 15 + 40
    code, _, err = pipeline("compare", "a.json", "b of fewer.json", "--qrels", "qrels.json")
    assert code == 2
    assert "have 20 and 19 queries, of which 19 are in both" in err


def test_of_runs_every_output_counts_queries(pipeline: Any) -> None:
    """The units are queries, also in what JSON and CSV say; notes are a paragraph by themselves."""
    queries = [f"q{number}" for number in range(20)]
    Path("qrels.json").write_text(json.dumps({query: {query: 1} for query in queries}))
    for run, count in {"a": 5, "b": 7, "c": 9}.items():
        best = {}
        for number, query in enumerate(queries):
            first = query if number < count else "wrong"
            best[query] = {first: 0.9, "other": 0.5}
        written = {"mteb_model_meta": {}, "default": {"test": best}}
        Path(f"{run}.json").write_text(json.dumps(written))
    asked = ("compare", "a.json", "b.json", "c.json", "--qrels", "qrels.json", "--margin", "1")
    pairs = json.loads(pipeline(*asked, "--json")[1])
    rows = list(csv.DictReader(io.StringIO(pipeline(*asked, "--csv")[1])))
    verdicts = [(pairs[0]["RSUM"]["verdict"], pairs[0]["RSUM"]["margin"]["verdict"])]
    verdicts.append((rows[0]["verdict"], rows[0]["margin verdict"]))
    for verdict, within in verdicts:
        assert re.fullmatch(r"cannot tell; [\d,]+ queries would suffice", verdict)
        assert re.fullmatch(r"cannot tell; [\d,]+ queries would show equality", within)
    assert "\n\nSystems that share a letter" in pipeline(*asked)[1]
