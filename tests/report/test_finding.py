"""What the page opens with: its sentence says what the tests say, its pictures are of it."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import html5lib
import numpy as np
import pytest
from invented import see_queries, system

from pipeline.foundation.evaluation.metrics import RSUM, Metrics, evaluate
from pipeline.foundation.evaluation.statistics import ImageHits, compare, contrast, pack
from pipeline.judge.tables.table import Cell
from pipeline.run.provenance import results
from pipeline.run.report import page
from pipeline.run.report.page import finding, pairs, systems
from pipeline.run.report.page.headline import headlines
from pipeline.run.report.page.identity import Identity

SMALL = {"region": "pyramid36-small"}
IMAGES = 60
NOTHING: dict[str, Any] = (
    dict.fromkeys(("title", "about", "licence", "relevance", "run"), "a")
    | dict.fromkeys(("curves", "further_curves", "effects", "hubs", "failures", "stores"), ())
    | {"explorer": {}, "identity": Identity({}), "provenance": {}}
)
A = "VSE+2AD, R, BiGRU"
B = "VSE+2AD, hard triplet loss, R, BiGRU"
C = "VSE++, R, BiGRU"
RECIPES = {A: "vse2ad", B: "vse2ad-noadopt", C: "vse_pp"}


def ranked(missed: int, first: int = 0) -> Metrics:
    """A system that ranks the caption of some images last, from one on, and finds all others."""
    scores = np.eye(IMAGES)
    scores[first : first + missed] *= -1
    return evaluate(scores, np.arange(IMAGES))


def entry(name: str, metrics: Metrics, *, kept: bool = True, **options: Any) -> dict[str, Any]:
    options = {"recipe": RECIPES.get(name, name), "features": SMALL} | options
    measured = system(
        options.pop("dataset", "sample"), "all", images=IMAGES, captions=IMAGES, **options
    )
    for of_system in measured.values():
        of_system["all"] |= metrics.as_dict()
        if kept:
            ids = np.arange(IMAGES)
            of_system["image_hits"] = {"all": pack(metrics, ids, ids)}
    return measured


def found(tree: dict[str, Any], explored: dict[str, Any] | None = None) -> finding.Finding:
    metrics = results.parsed(tree)
    tables = headlines(metrics)
    of_tables = [pairs.pairs(table) for table in tables]
    opening = finding.finding(tables, of_tables, explored or {})
    assert opening
    return opening


def rendered(tree: dict[str, Any]) -> Any:
    metrics = results.parsed(tree)
    tables = headlines(metrics)
    of_tables = [pairs.pairs(table) for table in tables]
    opening = finding.finding(tables, of_tables, {})
    content: Any = NOTHING | {"finding": opening, "headlines": tables, "pairs": of_tables}
    text = page.render(content)
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)


ON = "the test split of the sample of rendered scenes"
CASES = {
    "the first is better than all others": (
        [(A, 0), (B, 20), (C, 40)],
        f"{A} reaches RSUM 600.0 on {ON}, 200.0 more than {B} (p\u00a0<\u00a00.001, corrected for 3 pairs)",
    ),
    "the first is better than the last alone": (
        [(A, 1), (B, 2), (C, 40)],
        f"{A} reaches RSUM 590.0 on {ON}, 10.0 more than {B}, which is not significant (p\u00a0=\u00a01), and "
        f"390.0 more than {C}, which is (p\u00a0<\u00a00.001; both p corrected for 3 pairs)",
    ),
    "nothing differs": (
        [(A, 0), (B, 1), (C, 2)],
        f"No system is significantly better than the others on {ON}: {A} is first with RSUM 600.0, 10.0 more "
        f"than {B} (p\u00a0=\u00a01, corrected for 3 pairs)",
    ),
    "two systems": (
        [(A, 0), (B, 30)],
        f"{A} reaches RSUM 600.0 on {ON}, 300.0 more than {B} (p\u00a0<\u00a00.001)",
    ),
    "one system": (
        [(A, 6)],
        f"{A} reaches RSUM 540.0 on {ON}; no other system is measured there",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_sentence_says_what_was_found(case: str) -> None:
    systems, sentence = CASES[case]
    tree: dict[str, Any] = {}
    for name, missed in systems:
        tree |= entry(name, ranked(missed))
    assert found(tree).sentence == f"{sentence}; its networks are stand-ins for the papers'."


def test_what_was_not_tested_and_untrained_networks_are_said() -> None:
    tree = entry(A, ranked(0), kept=False) | entry(B, ranked(10))
    sentence = found(tree).sentence
    assert "100.0 more than" in sentence
    assert "whether that is significant was not tested" in sentence
    alone = entry(A, ranked(0), features={"grid": "grid8-small"}, ensemble="G", untrained=["grid"])
    assert found(alone).sentence.endswith("; its grid network is untrained.")


def test_each_test_set_has_its_sentence() -> None:
    tree = entry(A, ranked(0)) | entry(A, ranked(6), dataset="flickr8k")
    opening = found(tree)
    assert "RSUM 600.0 on the test split of the sample" in opening.sentence
    (further,) = opening.further
    assert "RSUM 540.0 on the test split of Flickr8k" in further


def test_a_pair_is_what_compare_says_of_it() -> None:
    """The difference by hand, p of all 2^5 swaps of five images; the rest as `compare` has it."""
    missed = {A: 0, B: 5, "mine1, R, BiGRU": 9, "mine2, R, BiGRU": 14, C: 30}
    metrics = {name: ranked(count) for name, count in missed.items()}
    tree: dict[str, Any] = {}
    for name, of_system in metrics.items():
        tree |= entry(name.removesuffix(", R, BiGRU") if "mine" in name else name, of_system)
    read = results.parsed(tree)
    (table,) = headlines(read)
    tested = {(pair.b.name, pair.a.name): pair.difference for pair in pairs.pairs(table)}
    places = list(combinations(missed, 2))
    assert list(tested) == places
    first = tested[A, B]
    assert first.row["difference"] == pytest.approx(600 * 5 / IMAGES)
    assert first.row["p"] == pytest.approx(2 / 2**5, abs=0.025)
    assert not first.is_significant
    assert tested[A, C].is_significant
    of_pairs = [([metrics[worse]], [metrics[better]]) for better, worse in places]
    for place, of_pair in zip(places, *contrast.together([of_pairs], 1000, 0), strict=True):
        for key in ("difference", "interval", "p", "adjusted"):
            assert tested[place].row[key] == pytest.approx(of_pair["RSUM"][key]), (place, key)


def test_further_pairs_are_tested_as_compare_does_and_say_what_corrects_them() -> None:
    """Those of a table keep its test, also the other way around; the others are corrected for all
    pairs of the table and each other.
    """
    metrics = {missed: ranked(missed) for missed in (0, 5, 9, 14, 30)}
    ids = np.arange(IMAGES)
    hits = {missed: ImageHits(pack(each, ids, ids)) for missed, each in metrics.items()}
    tree = entry(A, metrics[0]) | entry(B, metrics[5]) | entry(C, metrics[30])
    read = results.parsed(tree)
    of_table = pairs.pairs(headlines(read)[0])
    cases = {
        "all pairs of systems under Results.": (of_table, [(5, 0), (5, 30)]),
        "the 3 pairs of systems under Results; for the one difference here that is not among these, also "
        "for itself.": (of_table, [(5, 0), (9, 0)]),
        "the 3 pairs of systems under Results; for the 2 differences here that are not among these, also "
        "for one another.": (of_table, [(5, 0), (9, 0), (14, 5)]),
        "the 2 differences shown here and the 3 pairs of systems under Results.": (
            of_table,
            [(9, 0), (14, 5)],
        ),
        "the 2 differences shown here.": ([], [(9, 0), (14, 5)]),
    }
    in_table = [(5, 0), (30, 0), (30, 5)]
    for sentence, (table, asked) in cases.items():
        differences = pairs.further(table, [(hits[a], hits[b]) for a, b in asked])
        cell = Cell("")
        parts = [systems.Part("", cell, cell, difference) for difference in differences]
        assert systems.corrected_for([systems.Effect("", "all", cell, parts)]) == sentence
        known = in_table[: len(table)]
        others = [pair for pair in asked if pair not in known and pair[::-1] not in known]
        family = [([metrics[a]], [metrics[b]]) for a, b in [*known, *others]]
        tested = [compare(*pair)[RSUM] for pair in family]
        corrected = []
        for pairs_of_family, start in ((family[: len(known)], 0), (family, len(known))):
            for contrasts in contrast.together([pairs_of_family], 1000, 0):
                corrected += [each["RSUM"]["adjusted"] for each in contrasts[start:]]
        expected = dict(zip([*known, *others], zip(tested, corrected, strict=True), strict=True))
        for (a, b), difference in zip(asked, differences, strict=True):
            sign = 1
            if (a, b) not in expected:
                sign = -1
            of_pair, adjusted = expected[(a, b)[::sign]]
            interval = [sign * of_pair.difference.low, sign * of_pair.difference.high][::sign]
            assert difference.row["difference"] == sign * of_pair.difference.value
            assert difference.row["interval"] == interval
            assert difference.row["p"] == of_pair.p
            assert difference.corrected.p == adjusted


def test_systems_of_several_seeds_are_compared_over_seeds() -> None:
    tree: dict[str, Any] = {}
    for seed in (0, 1, 2):
        tree |= entry(A, ranked(seed), seed=seed) | entry(B, ranked(30 + seed), seed=seed)
    opening = found(tree)
    assert opening.differences
    (pair,) = opening.differences.pairs
    assert pair.difference.tested.over_seeds
    assert f"{A} reaches RSUM 590.0 ± 10.0 over 3 seeds on" in opening.sentence
    text = " ".join("".join(rendered(tree).itertext()).split())
    assert (
        "on the sample of rendered scenes, with the range of several seeds. Filled: measured."
        in text
    )
    assert "In brackets: 95" not in text  # nothing is in brackets


def test_pairs_of_many_systems_are_those_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs are corrected together, as the letters are. That of the first two, which differ on
    six images in one direction, has p of 2 / 2^6 by itself; with the others it is not significant.
    """
    for module in (pairs, finding):
        monkeypatch.setattr(module, "MOST", 3)
    missed = (0, 6, 7, 8, 9, 40)
    tree: dict[str, Any] = {}
    for number in missed:
        tree |= entry(f"mine{number}", ranked(number, first=number % 10))
    opening = found(tree)
    assert opening.differences
    names_of_a = [pair.a.name.split(",")[0] for pair in opening.differences.pairs]
    assert names_of_a == ["mine6", "mine7"]
    assert opening.differences.family == 15
    assert "both p corrected for 15 pairs" in opening.sentence
    assert opening.differences.pairs[0].difference.tested.p < 0.05
    (table,) = headlines(results.parsed(tree))
    of_all = pairs.pairs(table)
    assert len(of_all) == 15
    for pair in of_all:
        shares_a_letter = bool({*pair.a.letters} & {*pair.b.letters})
        assert pair.difference.is_significant != shares_a_letter
    document = rendered(tree)
    (shown,) = document.findall(".//table[@id='results-1-pairs']")
    assert len(shown.findall("tbody/tr")) == 3
    assert len(document.findall(".//table[@id='results-1-table']/tbody/tr")) == 6
    assert shown.get("data-corrected-for") == "all 15 pairs (step-down maxT)"
    assert (
        "corrected for all 15 pairs (step-down maxT); shown are those of the 3 systems with the largest RSUM"
    ) in " ".join("".join(document.itertext()).split())


def test_further_pairs_are_corrected_for_those_that_are_not_shown_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pairs, "MOST", 2)
    tree = entry(A, ranked(0)) | entry(B, ranked(5)) | entry(C, ranked(30))
    (table,) = headlines(results.parsed(tree))
    ids = np.arange(IMAGES)
    hits = {missed: ImageHits(pack(ranked(missed), ids, ids)) for missed in (5, 9, 30)}
    of_table, other = pairs.further(pairs.pairs(table), [(hits[30], hits[5]), (hits[9], hits[5])])
    assert of_table.is_of_table
    assert of_table.family == 3
    assert other.family == 4


def test_rows_of_equal_hits_are_one_system_in_pairs_and_share_their_ranks() -> None:
    tree = entry(A, ranked(0)) | entry(B, ranked(30)) | entry(C, ranked(30))
    (table,) = headlines(results.parsed(tree))
    assert {row.name: row.rank for row in table.rows} == {A: "1", B: "2–3", C: "2–3"}
    better, _, equal = (pair.difference for pair in pairs.pairs(table))
    assert better.corrected.p == better.tested.p
    assert equal.row["difference"] == 0
    assert not equal.is_significant
    text = " ".join("".join(rendered(tree).itertext()).split())
    assert "Adj. p: the same, for one pair; systems of equal hits count as one." in text


def test_pairs_of_systems_that_never_are_bold_have_the_swaps_of_the_letters() -> None:
    """A least p of 1/1,001, although no system that competes has a single run."""
    tree: dict[str, Any] = {}
    for missed in range(8):
        tree |= entry(f"mine{missed}", ranked(missed))
    for of_system in tree.values():
        see_queries(of_system)
    (table,) = headlines(results.parsed(tree))
    assert not any(row.competes for row in table.rows)
    of_pairs = pairs.pairs(table)
    assert len(of_pairs) == 28
    assert {pair.difference.tested.resolution for pair in of_pairs} == {1 / 1001}


def explored(names: list[str], ranks: list[list[float]]) -> dict[str, Any]:
    """The explorer's data of four captions, each with its own image first, or the last one."""
    captions = len(ranks[0])
    answers = []
    for number in range(captions):
        top = [[number] if rank[number] == 1 else [captions - 1 - number] for rank in ranks]
        answers.append({"number": number, "right": [number], "top": top})
    images = [{"file": "f", "alt": f"image {at}", "thumb": "data:,"} for at in range(captions)]
    asked = {"texts": [f"caption {at}" for at in range(captions)], "ranks": ranks}
    return {
        "systems": [{"name": name} for name in names],
        "languages": [],
        "images": images,
        "t2i": answers,
        "queries": {"t2i": asked | {"languages": None}},
    }


def test_the_query_is_the_one_whose_reciprocal_rank_rises_most() -> None:
    """From 2 to 1, and not from 45 to 37; first A, the next system, then B, the first; what else
    changes is counted, and the choice is said as it is.
    """
    tree = entry(A, ranked(0)) | entry(B, ranked(30))
    names = list(tree)
    counts = (
        f"From {B} to {A}, the rank of the right image is better for {{}} of all 5 captions, worse for "
        "{} and equal for {}."
    )
    cases = {
        "of all captions, it has the largest rise of 1/rank, from rank 2 to rank 1": (
            [37, 1, 1, 2, 9],
            [45, 2, 1, 1, 9],
            1,
            (2, 1, 2),
        ),
        "of all captions, it has the largest fall of 1/rank, from rank 1 to rank 4": (
            [1, 4, 9, 1, 1],
            [1, 1, 7, 1, 1],
            1,
            (0, 2, 3),
        ),
        "the first caption by its SHA-256 digest": ([1] * 5, [1] * 5, None, (0, 0, 5)),
    }
    for how, (first, second, chosen, of_all) in cases.items():
        query = found(tree, explored(names, [first, second])).query
        assert query
        assert how in query.how
        assert query.how.endswith(counts.format(*of_all))
        assert [answer.system for answer in query.answers] == [B, A]
        if chosen is not None:
            assert query.caption == f"caption {chosen}"
            assert [answer.rank for answer in query.answers] == [
                str(second[chosen]),
                str(first[chosen]),
            ]
            shown = [answer.candidates[0].is_right for answer in query.answers]
            assert shown == [second[chosen] == 1, first[chosen] == 1]
    data = explored(names, [[37, 1, 1, 2, 9], [45, 2, 1, 1, 9]])
    data["t2i"] = data["t2i"][::4]
    query = found(tree, data).query
    assert query
    assert "of the 2 captions whose candidates are kept, it has the largest rise" in query.how
    assert "from rank 45 to rank 37." in query.how
    alone = found(entry(A, ranked(0)), explored(names[:1], [[1, 1, 2.5, 1]]))
    assert alone.query
    assert alone.query.how.startswith("Not picked by hand")
    assert alone.recalls  # in the place of differences: one system has none


def test_a_marker_is_hollow_for_a_difference_that_is_not_significant_alone() -> None:
    """In all charts, and each caption says it."""
    document = rendered(entry(A, ranked(1)) | entry(B, ranked(2)) | entry(C, ranked(40)))
    systems, differences, recalls = document.findall(".//section[@id='finding']//figure")
    markers = {
        "Filled: measured.": (systems, ["filled"] * 3),
        "for all 3 pairs of systems) below 0.05; hollow: not significant.": (
            differences,
            ["", "filled"],
        ),
        " Filled: measured.": (recalls, ["filled"] * 6),
    }
    for sentence, (figure, classes) in markers.items():
        assert sentence in " ".join("".join(figure[0].itertext()).split())
        circles = figure.iter("{http://www.w3.org/2000/svg}circle")
        assert [circle.get("class") for circle in circles] == classes
    assert "Bold: the best, and every system not significantly worse than it." in "".join(
        systems[0].itertext()
    )


def test_a_published_number_is_a_hollow_marker_on_the_same_axis() -> None:
    """RSUM 503.7 is what VSE+2AD prints of R with BiGRU on Flickr30K; 330 is measured."""
    document = rendered(system("flickr30k", "flickr30k_1k"))
    figure = document.find(".//section[@id='finding']//figure")
    text = " ".join("".join(figure.itertext()).split())
    assert "Filled: measured; hollow: published." in text
    assert "330.0 published 503.7" in text
    circles = list(figure.iter("{http://www.w3.org/2000/svg}circle"))
    assert [circle.get("class") for circle in circles] == ["filled", None]
    measured, published = (float(circle.get("cx").removesuffix("%")) for circle in circles)
    ticks = [float(label.text) for label in figure.iter("{http://www.w3.org/2000/svg}text")]
    length = ticks[-1] - ticks[0]
    assert measured == pytest.approx(100 * (330 - ticks[0]) / length, abs=0.01)
    assert published == pytest.approx(100 * (503.7 - ticks[0]) / length, abs=0.01)
    assert 0 <= measured < published <= 100


def test_the_opening_is_text_and_pictures_in_a_valid_page() -> None:
    """Nothing of a name is mark-up; three pictures, of which two where no query is known."""
    hostile = "<img src=x onerror=alert(1)>"
    tree = rendered(entry(hostile, ranked(0)) | entry(A, ranked(40)))
    (sentence,) = tree.findall(".//p[@class='finding']")
    assert sentence.text.startswith(f"{hostile}, R, BiGRU reaches RSUM 600.0")
    assert not tree.findall(".//img")
    figures = tree.findall(".//section[@id='finding']//figure")
    assert len(figures) == 3
    options = [option.text for option in tree.findall(".//form[@class='pair-of-two']//option")]
    assert options == [f"{hostile}, R, BiGRU", A] * 2
    headings = [node.tag for node in tree.iter() if node.tag in ("h1", "h2", "h3")]
    assert headings[0] == "h1"
    assert "Licence: a" in "".join(tree.itertext())


def test_the_table_of_pairs_names_the_subtracted_system_first() -> None:
    """As `compare` has them: A, B, B − A."""
    document = rendered(entry(A, ranked(0)) | entry(B, ranked(10)))
    (table,) = [
        element for element in document.iter("table") if element.get("id", "").endswith("-pairs")
    ]
    heading, row = table.iter("tr")
    assert ["".join(cell.itertext()) for cell in heading][:3] == ["A", "B", "RSUM, B − A"]
    worse, better, difference = ["".join(cell.itertext()).strip() for cell in row][:3]
    assert worse.startswith(B)
    assert better.startswith(A)
    assert difference.startswith("+100.0")
