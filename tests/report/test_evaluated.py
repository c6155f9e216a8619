"""Numbers as text and Markdown: every protocol, seeds together, nothing that a table would break
on.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import STATISTICS, evaluate
from pipeline.foundation.evaluation.metrics.base import nested
from pipeline.foundation.evaluation.retrieval import Protocol
from pipeline.foundation.evaluation.statistics import ImageHits, interval, pack
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.tables import comma_separated, compared, evaluated, markdown
from pipeline.judge.tables.bold import Contender
from pipeline.judge.tables.table import Panel
from pipeline.run.report import rows


def measured(seed: int, folds: int = 1) -> dict[str, Any]:
    scores = np.eye(20) + np.random.default_rng(seed).random((20, 20))
    metrics = evaluate(scores, np.arange(20), Protocol(f"{folds}fold", folds=folds))
    return metrics.as_dict() | {"interval": interval(metrics)}


def of_one_direction(seed: int, way: str) -> dict[str, Any]:
    """What is measured of lists that rank one direction alone, in two languages."""
    numbers = measured(seed)
    for known in (numbers, numbers["interval"]):
        known["RSUM"] = None
        for other in {"i2t", "t2i"} - {way}:
            known[other] = dict.fromkeys(known[other])
    of_language = numbers | {"mR": None, "interval": numbers["interval"] | {"mR": None}}
    return numbers | {
        "languages": {"de": of_language, "en": of_language},
        "mean_of_languages": {"mR": None, "interval": {"mR": None}},
    }


def to_markdown(results: evaluated.Results) -> str:
    return markdown.to_markdown(rows.table(results))


def test_every_protocol_of_a_system_is_shown() -> None:
    runs = [("net-s0", measured(0)), ("net-s0", measured(0, folds=2))]
    text, panels = evaluated.to_text(runs), rows.table(runs).panels
    assert [panel.key for panel in panels] == ["1fold", "2fold"]
    for _, numbers in runs:
        assert f"net-s0, 20 images x 20 captions, protocol {numbers['protocol']}" in text
        assert (
            "{:.1f} [{:.1f}, {:.1f}]".format(numbers["RSUM"], *numbers["interval"]["RSUM"]) in text
        )
    assert "seeds" not in text


def test_a_panel_has_the_results_of_its_own_protocol_alone() -> None:
    runs = [("net", measured(0)), ("other", measured(1)), ("net", measured(2, folds=2))]
    shown = {}
    for panel in rows.table(runs).panels:
        (group,) = panel.groups
        shown[panel.key] = [[cell.text for cell in row.cells] for row in group.rows]
    assert {key: [row[0] for row in lines] for key, lines in shown.items()} == {
        "1fold": ["net", "other"],
        "2fold": ["net"],
    }
    for (_, numbers), line in zip(runs, [*shown["1fold"], *shown["2fold"]], strict=True):
        assert f"{numbers['RSUM']:.1f}" in line


def test_tied_queries_are_counted_below_a_table_where_there_are_any() -> None:
    scores = np.eye(20)
    scores[0] = 1  # ties image 0 with all captions, and each caption but its own with image 0
    metrics = evaluate(scores, np.arange(20))
    tied = metrics.as_dict()
    plain = evaluate(np.eye(20), np.arange(20)).as_dict()
    # The worst place of image 0's caption is 20, that of the other captions' images 2.
    with_range = [("a", tied | metrics.over_ties)]
    for text in (evaluated.to_table(with_range), evaluated.to_text(with_range)):
        said = " ".join(text.split())
        assert "by the order of ties: image → caption R@1 95.0 to 100.0, R@5 95.0 to 100.0" in said
        assert "caption → image R@1 5.0 to 100.0" in said
        assert "RSUM 490.0 to 600.0" in said
    counts = "tied queries: image → caption 1, caption → image 19"
    for results, said in (
        ([("a", tied), ("b", plain)], f"  a: {counts}"),
        ([("a", tied), ("b", tied)], f"  {counts}"),
    ):
        assert said in evaluated.to_table(results).splitlines()
    assert "tied" not in evaluated.to_table([("a", plain), ("b", plain)])


def test_seeds_are_averaged_with_their_spread() -> None:
    net, other = evaluated.Series("net", "digest"), evaluated.Series("net", "another")
    runs = [
        (f"mine-s{7 - seed}", measured(seed) | {"series": net, "seed": seed}) for seed in (0, 3, 10)
    ]
    runs += [("net-s4", measured(1) | {"series": other, "seed": 4}), ("net-s0", measured(1))]
    runs += [("a copy of the first", runs[0][1])]
    sums = [numbers["RSUM"] for _, numbers in runs[:3]]
    text = evaluated.to_text(runs)
    assert "net, protocol 1fold, mean ± standard deviation of 3 seeds: image → caption " in text
    assert f"RSUM {np.mean(sums):.1f} ± {np.std(sums, ddof=1):.1f}" in text
    assert "other, protocol" not in text
    mean = f"{np.mean(sums):.1f} ± {np.std(sums, ddof=1):.1f}"  # in Markdown in bold
    for rows_of_text in (evaluated.to_table(runs).splitlines(), to_markdown(runs).splitlines()):
        lines = [line.strip("| ") for line in rows_of_text]
        (row,) = [line for line in lines if line.startswith("net ")]
        assert row.replace("*", "").endswith(mean)
        (single,) = [line for line in lines if line.startswith("net-s4 ")]
        as_single = re.sub(r" ± [\d.]+", "", row)
        assert len(as_single.split()) == len(re.sub(r" \[.*?\]", "", single).split())
        assert not any(line.startswith("mine-") for line in lines)
        assert [
            any(line.startswith(name) for line in lines) for name in ("net-s4", "net-s0", "a copy")
        ] == [True] * 3


def test_brackets_are_explained_only_where_a_number_has_them() -> None:
    net = evaluated.Series("net", "digest")
    seeds = [(f"net-s{seed}", measured(seed) | {"series": net, "seed": seed}) for seed in (0, 1)]
    (_, numbers), _ = seeds
    ndcg = numbers["interval"]["i2t"] | {"nDCG@10": [1.0, 2.0]}
    further = numbers | {"interval": numbers["interval"] | {"i2t": ndcg}}
    further["i2t"] = numbers["i2t"] | {"nDCG@10": 1.5}
    one_way = [("lists", of_one_direction(0, "i2t"))]
    for results, has_brackets in (
        (seeds, False),
        ([*seeds, ("alone", measured(3))], True),
        (one_way, False),
        ([("net-s0", further), seeds[1]], True),
    ):
        table = evaluated.to_table(results)
        assert bool(re.search(r"\d \[\d", table)) is has_brackets
        assert ("In brackets: " in table) is has_brackets


def test_a_mean_over_seeds_has_its_interval_in_the_long_form() -> None:
    """Of a seed that is there twice, that of the seed."""
    ids = np.arange(20)
    scores = np.eye(20) + np.random.default_rng(0).random((20, 20))
    metrics = evaluate(scores, ids)
    runs = []
    for seed in (0, 1):
        of_seed = metrics.as_dict() | {"interval": interval(metrics), "seed": seed}
        of_seed["series"] = evaluated.Series("net", "digest")
        of_seed["contender"] = Contender((ImageHits(pack(metrics, ids, ids)),))
        runs.append((f"net-s{seed}", of_seed))
    (line,) = evaluated.told_over_seeds(runs)
    low, high = interval(metrics)["RSUM"]
    assert line.endswith(f"RSUM {metrics.rsum:.1f} ± 0.0 [{low:.1f}, {high:.1f}]")
    assert line.count(" ± 0.0 [") == 7


def test_of_one_direction_alone_nothing_is_said_of_the_other() -> None:
    """Neither of each language, nor over seeds, nor in any form."""
    net = evaluated.Series("net", "digest")
    for way, task in evaluated.DIRECTIONS.items():
        runs = []
        for seed in (0, 1):
            run = of_one_direction(seed, way) | {"series": net, "seed": seed}
            runs.append((f"net-s{seed}", run))
        text = " ".join(evaluated.to_text(runs).split())
        means = []
        for recall in evaluated.RECALLS:
            of_seeds = [numbers[way][recall] for _, numbers in runs]
            means.append(f"{np.mean(of_seeds):.1f} ± {np.std(of_seeds, ddof=1):.1f}")
        assert f"of 2 seeds: {task} {', '.join(means)} In brackets" in text
        recalls = [str(cell) for cell in evaluated.cells_of(runs[0][1], way)[:3]]
        for language in ("de", "en"):
            assert f"{language}, 20 captions: R@1, R@5, R@10 {task} {', '.join(recalls)}" in text
        written = (text, evaluated.to_table(runs), to_markdown(runs))
        for form in (*written, comma_separated.to_csv(rows.table(runs))):
            assert not re.search("nan|None|mR", form), form


def test_seeds_that_rank_different_directions_have_no_mean() -> None:
    net = evaluated.Series("net", "digest")
    runs = []
    for seed, way in enumerate(evaluated.DIRECTIONS):
        run = of_one_direction(seed, way) | {"series": net, "seed": seed}
        runs.append((f"net-s{seed}", run))
    assert list(evaluated.told_over_seeds(runs)) == []
    for form in (evaluated.to_table(runs), to_markdown(runs)):
        assert "±" not in form


def test_numbers_of_most_digits_fit_a_terminal() -> None:
    metrics = evaluate(np.eye(20), np.arange(20))
    known = {way: {f"R@{k}": [99.99, 100.0] for k in (1, 5, 10)} for way in ("i2t", "t2i")} | {
        "RSUM": [599.9, 600.0]
    }
    text = evaluated.to_text([("net-s0", metrics.as_dict() | {"interval": known})])
    assert text.count("100.0 [100.0, 100.0]") == 6
    assert [line for line in text.splitlines() if len(line) > 80] == []
    tested = {
        "a": 600.0,
        "b": 0.0,
        "difference": -600.0,
        "interval": [-600.0, 600.0],
        "p": 0.000909,
        "adjusted": 0.000909,
        "adjusted_by": "Holm",
        "noise": None,
        "resolution": 0.000909,
        "needs": None,
        "verdict": "lower",
        "spread": {"a": 346.4, "b": 346.4},
    }
    found = nested(dict.fromkeys(STATISTICS, tested))
    found |= {"images": 20, "captions": 20, "protocol": "all", "over": ["seeds"]}
    for names in (("first", "second"), [str(number) for number in range(12)]):
        text = compared.to_text(names, [[found] * (len(names) * (len(names) - 1) // 2)])
        assert [line for line in text.splitlines() if len(line) > 80] == []


def test_names_do_not_break_the_table() -> None:
    table = to_markdown([("a|b<script>", measured(0))]).splitlines()
    assert "a\\|b&lt;script&gt;" in table[4]
    assert {line.replace("\\|", "").count("|") for line in table[2:5]} == {9}
    assert (
        comma_separated.to_csv(rows.table([("=1+1", measured(0))]))
        .splitlines()[1]
        .startswith("1fold,,'=1+1,")
    )


def test_what_was_measured_otherwise_is_another_table() -> None:
    """Another split, pool, protocol or rule for ties, each said above its numbers."""
    numbers = measured(0) | {"split": "val"}
    others = [
        numbers | {"split": "test"},
        numbers | {"ties": "optimistic"},
        numbers | {"ties": "pessimistic"},
        numbers | {"images": 21},
    ]
    table = evaluated.to_table([("net", each) for each in (numbers, *others)])
    for title in (
        "Val split, 20 images x 20 captions, protocol 1fold\n",
        "Test split, 20 images x 20 captions, protocol 1fold\n",
        "Val split, 20 images x 20 captions, protocol 1fold, ties optimistic\n",
        "Val split, 20 images x 20 captions, protocol 1fold, ties pessimistic\n",
        "Val split, 21 images x 20 captions, protocol 1fold\n",
    ):
        assert table.count(title) == 1, title


def test_a_remark_on_some_systems_of_a_table_names_them() -> None:
    plain = measured(0)
    lacking = plain | {"left_out": {"no picture": 3}}
    remark = "left out of the data set or this pool: "
    one = evaluated.to_table([("a", plain), ("b", lacking), ("c", lacking)])
    assert f"  b, c: {remark}" in one
    every = evaluated.to_table([("b", lacking), ("c", lacking)])
    assert f"  {remark}" in every
    assert "b, c:" not in every
    assert remark not in evaluated.to_table([("a", plain)])


def test_remarks_say_what_the_recalls_do_not() -> None:
    plain = measured(0)
    judged = {"source": "judged.txt", "pairs": {"i2t": 9, "t2i": 9}}
    for more, said in (
        ({}, []),
        (
            {"captions_without_image": 4},
            ["captions without image: 4; they are candidates, never queries"],
        ),
        (
            {"images_without_caption": 2, "captions_without_image": 0},
            ["images without caption: 2; they are candidates, never queries"],
        ),
        ({"relevance": judged}, ["relevance: judged.txt, 9 pairs"]),
        (
            {"relevance": judged | {"pairs": {"i2t": 9, "t2i": 7}, "digest": "x"}},
            [
                "judged queries: image → caption 20, caption → image 20",
                "relevance: judged.txt, 9 pairs of image queries, 7 of caption queries",
            ],
        ),
        (
            {"queries": {"i2t": 20, "t2i": 0}},
            ["judged queries: image → caption 20, caption → image 0"],
        ),
        (
            {"relevance": judged | {"left_out": {"not 4 columns": 5}}},
            ["relevance: judged.txt, 9 pairs", "left out of the judgements: not 4 columns: 5"],
        ),
    ):
        assert list(evaluated.remarks(plain | more)) == said, more


def test_published_rows_are_asked_for_by_all_words_of_their_names_but_not_by_their_paper() -> None:
    results = [("net", measured(0))]
    (whole,) = rows.table(results, beside="flickr30k").panels

    def published(panel: Panel) -> list[str]:
        groups = panel.groups[:-1]
        return [f"{row.cells[0].text} {group.title}" for group in groups for row in group.rows]

    every = len(published(whole))
    for methods, words in (
        ("VSE∞", [{"vse∞"}]),
        ("VSE∞ BERT,VSE+2AD BiGRU", [{"vse∞"}, {"vse+2ad"}]),
    ):
        (panel,) = rows.table(results, beside=f"flickr30k:{methods}").panels
        shown = published(panel)
        assert 0 < len(shown) < every
        for name in shown:
            assert any(one in name.lower() for alternatives in words for one in alternatives), name
    both = rows.table(results, beside="flickr30k:VSE∞ BERT").panels[0]
    alone = rows.table(results, beside="flickr30k:VSE∞").panels[0]
    assert 0 < len(published(both)) < len(published(alone))
    for paper in ("Geigle", "published"):
        with pytest.raises(InputError, match="no published row has"):
            rows.table(results, beside=f"flickr30k:{paper}")
