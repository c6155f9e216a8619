"""Numbers of a pool: the order of rows and columns changes nothing, and a table of queries names
each by its id.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.foundation.evaluation.retrieval import Direction, Lists, Protocol
from pipeline.foundation.evaluation.retrieval.lists import Listed
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores.measured import measure, query_table, write_query_tables
from pipeline.judge.systems.scores.system import System

SETTINGS = Evaluate(resamples=20, seed=0, block_megabytes=32)
OWNER = np.arange(24) // 4
LANGUAGES = np.tile(np.array(["de", "de", "en", "en"]), 6)


def pool(rng: np.random.Generator) -> System:
    """Six images with four captions each, in two languages."""
    scores = rng.random((6, 24)).astype(np.float32)
    return System.of(
        "mine", scores, OWNER, 10 * np.arange(6) + 7, 3 * np.arange(24) + 5, languages=LANGUAGES
    )


def test_captions_in_another_order_keep_their_languages(rng: np.random.Generator) -> None:
    system = pool(rng)
    mixed = system.only(rng.permutation(6), rng.permutation(24))
    before, after = (measure(each, "all", "expected", SETTINGS).numbers for each in (system, mixed))
    assert before["languages"]["de"]["mR"] != before["languages"]["en"]["mR"]
    for name, numbers in before["languages"].items():
        assert {key: numbers[key] for key in ("i2t", "t2i", "RSUM")} == {
            key: after["languages"][name][key] for key in ("i2t", "t2i", "RSUM")
        }


def test_a_table_of_queries_names_each_with_its_rank_in_its_fold(rng: np.random.Generator) -> None:
    system = pool(rng).only(rng.permutation(6), rng.permutation(24))
    scores = np.asarray(system.scores.block(slice(0, 6), slice(0, 24)))  # type: ignore[union-attr]
    table = query_table([measure(system, Protocol("thirds", folds=3), "expected", SETTINGS)])
    whole = table[table["language"] == ""]
    fold = system.caption_image // 2
    expected = {}
    for image, name in enumerate(system.image_ids.tolist()):
        right, every = (
            scores[image, mask] for mask in (system.caption_image == image, fold == image // 2)
        )
        expected["i2t", image // 2, name] = 1 + (every > right.max()).sum()
    for caption, name in enumerate(system.caption_ids.tolist()):
        others = scores[2 * fold[caption] : 2 * fold[caption] + 2, caption]
        right = scores[system.caption_image[caption], caption]
        expected["t2i", fold[caption], name] = 1 + (others > right).sum()
    found = {(row.direction, row.fold, row.query): row.rank for row in whole.itertuples()}
    assert found == expected


@pytest.mark.parametrize(("way", "other"), [("i2t", "t2i"), ("t2i", "i2t")])
def test_lists_of_one_direction_have_recalls_in_each_language_and_no_mean_of_both(
    rng: np.random.Generator, way: Direction, other: str
) -> None:
    scores = rng.random((6, 24))
    query, candidate = map(np.ravel, np.indices((6, 24)))
    if way == "t2i":
        query, candidate = candidate, query
    lists = Lists((6, 24), {way: Listed(query, candidate, scores.ravel())}, "lists.trec")
    system = System.of("lists", lists, OWNER, languages=LANGUAGES)
    numbers = measure(system, "all", "expected", SETTINGS).numbers
    for language, found in numbers["languages"].items():
        columns = np.flatnonzero(language == LANGUAGES)
        if way == "i2t":
            best = columns[scores[:, columns].argmax(axis=1)]
            hits = OWNER[best] == np.arange(6)
        else:
            hits = scores[:, columns].argmax(axis=0) == OWNER[columns]
        assert found[way]["R@1"] == pytest.approx(100 * np.mean(hits)), language
        assert (found[other]["R@1"], found["RSUM"], found["mR"]) == (None,) * 3, language
        assert found["interval"]["mR"] is None, language
    assert list(numbers["languages"]) == ["de", "en"]
    assert numbers["mean_of_languages"] == {"mR": None, "interval": {"mR": None}}


def test_tables_side_by_side_have_each_query_of_every_system(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    """One system ranks captions 0 and 1, the other 1 and 2; each has columns of its own."""
    scores = rng.permutation(9).reshape(3, 3).astype(np.float32)
    tables = []
    expected: dict[tuple[str, int], dict[str, int]] = {}
    for name, captions in (("one", np.array([0, 1])), ("two", np.array([1, 2]))):
        part = scores[:, captions]
        system = System.of(name, part, captions, 10 * np.arange(3) + 7, 3 * captions + 5)
        tables.append(query_table([measure(system, "all", "expected", SETTINGS)], name))
        for column, caption in enumerate(captions.tolist()):
            rank = 1 + int((part[:, column] > part[caption, column]).sum())
            expected.setdefault(("t2i", 3 * caption + 5), {})[name] = rank
            rank = 1 + int((part[caption] > part[caption, column]).sum())
            expected.setdefault(("i2t", 10 * caption + 7), {})[name] = rank
    path = tmp_path / "queries.csv"
    write_query_tables(path, tables)
    found: dict[tuple[str, int], dict[str, int]] = {}
    for row in pd.read_csv(path).to_dict("records"):
        of_query = found.setdefault((row["direction"], row["query"]), {})
        for name in ("one", "two"):
            if row[f"{name} rank"] >= 1:
                of_query[name] = row[f"{name} rank"]
    assert found == expected


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_a_system_with_languages_stands_beside_one_without(
    rng: np.random.Generator, tmp_path: Path, order: slice
) -> None:
    """The second one's ranks are of all captions alone; no row comes twice."""
    several = pool(rng)
    plain = replace(several, languages=None)
    tables = []
    for name, system in (("several", several), ("plain", plain)):
        tables.append(query_table([measure(system, "all", "expected", SETTINGS)], name))
    write_query_tables(tmp_path / "q.csv", tables[order])
    written = pd.read_csv(tmp_path / "q.csv", keep_default_na=False)
    assert not written.duplicated(["language", "direction", "query"]).any()
    assert (written["plain rank"] == "").tolist() == (written["language"] != "").tolist()
    of_all = written[written["language"] == ""]
    assert of_all["plain rank"].tolist() == of_all["several rank"].astype(str).tolist()
    assert len(of_all) == 6 + 24
    assert len(written) == len(of_all) + 2 * 6 + 24  # each language's captions, with all images


def test_the_rank_of_what_is_not_listed_is_left_out_of_a_table_of_queries(tmp_path: Path) -> None:
    """Image 0 lists its caption second, image 1 lists one of another image alone."""
    listed = Listed(np.array([0, 0, 1]), np.array([1, 0, 0]), np.array([0.9, 0.8, 0.7]))
    lists = Lists((2, 2), {"i2t": listed}, "lists.trec")
    by_all = measure(System.of("lists", lists, np.arange(2)), "all", "expected", SETTINGS)
    for name, read in (("q.csv", pd.read_csv), ("q.parquet", pd.read_parquet)):
        write_query_tables(tmp_path / name, [query_table([by_all])])
        table = read(tmp_path / name)
        assert table["direction"].tolist() == ["i2t", "i2t"], name
        assert table["rank"].iloc[0] == 2, name
        assert table["rank"].isna().tolist() == [False, True], name
        assert table["R@10"].tolist() == [1, 0], name


@pytest.mark.parametrize(
    ("ties", "rank", "hits"),
    [("optimistic", 1, 1), ("expected", 1.5, 0.5), ("pessimistic", 2, 0)],
)
def test_a_table_of_queries_counts_ties_as_its_numbers_do(
    ties: Any, rank: float, hits: float
) -> None:
    """Each of two images ties with the other; the mean of the table is the recall."""
    system = System.of("tied", np.zeros((2, 2)), np.arange(2), np.arange(2), np.arange(2))
    measured = measure(system, "all", ties, SETTINGS)
    table = query_table([measured])
    for way in ("i2t", "t2i"):
        queries = table[table["direction"] == way]
        assert queries["rank"].tolist() == [rank, rank]
        assert queries["tied"].tolist() == [1, 1]
        for k, expected in ((1, hits), (5, 1), (10, 1)):
            assert queries[f"R@{k}"].tolist() == [expected, expected], k
            assert measured.numbers[way][f"R@{k}"] == 100 * queries[f"R@{k}"].mean()


def test_queries_of_several_languages_and_protocols_are_put_side_by_side_one_by_one(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    systems = [pool(rng), pool(rng)]
    protocols = ("all", Protocol("halves", folds=2))
    tables = []
    for name, system in zip(("one", "two"), systems, strict=True):
        by_protocol = [measure(system, rules, "expected", SETTINGS) for rules in protocols]
        tables.append(query_table(by_protocol, name))
    write_query_tables(tmp_path / "queries.csv", tables)
    whole = pd.read_csv(tmp_path / "queries.csv", keep_default_na=False)
    # In each protocol 6 images and 24 captions, of all captions and of two languages.
    assert len(whole) == 2 * (6 + 24 + 2 * 6 + 24) == len(tables[0])
    keys = ["protocol", "language", "direction", "fold", "query"]
    for name, table in zip(("one", "two"), tables, strict=True):
        found = whole.set_index(keys)[f"{name} rank"].sort_index()
        expected = table.set_index(keys)[f"{name} rank"].sort_index()
        pd.testing.assert_series_equal(found.astype(float), expected.astype(float))
