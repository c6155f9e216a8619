"""Lists of the best: distances and ranks among them, which candidates and queries they are of, and
what contradicts the order in which they are listed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from pipeline.foundation.evaluation.retrieval import Lists, Relevance, mistakes, rank
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import open_system, top_lists
from pipeline.judge.systems.scores.judged import Columns

IMAGES, EACH, BEST = 20, 2, 6
CAPTIONS = IMAGES * EACH
COLUMNS, DISTANCE = (
    Columns(captions_per_image=EACH),
    Columns(captions_per_image=EACH, distance=True),
)
SCORES = (
    np.random.default_rng(0).permuted(np.tile(np.arange(IMAGES), (CAPTIONS, 1)), axis=1) / 8 + 1
)
ORDER = np.argsort(-SCORES, axis=1)[:, :BEST]
VALUES = np.take_along_axis(SCORES, ORDER, 1)
PLACES = np.tile(np.arange(1, BEST + 1), (CAPTIONS, 1))
SHUFFLED = np.random.default_rng(1).permutation(CAPTIONS * BEST)


def rows(
    row: str, scores: np.ndarray, places: np.ndarray = PLACES, order: Any = slice(None)
) -> str:
    every = zip(
        np.repeat(np.arange(CAPTIONS), BEST),
        ORDER.ravel(),
        scores.ravel(),
        places.ravel(),
        strict=True,
    )
    lines = [row.format(q=q, d=d, s=f"{s:g}", r=r) for q, d, s, r in every]
    return "\n".join(np.array(lines)[order]) + "\n"


def arrays(**held: Any) -> Any:
    return lambda path: np.savez(path, **held)


def text(content: str) -> Any:
    return lambda path: path.write_text(content)


def tree(scores: np.ndarray) -> str:
    return json.dumps(
        {
            f"caption:{q}": dict(zip(map(str, ORDER[q].tolist()), scores[q].tolist(), strict=True))
            for q in range(CAPTIONS)
        }
    )


def table(scores: np.ndarray) -> Any:
    columns = {"query": range(CAPTIONS), "docs": ORDER.tolist(), "scores": scores.tolist()}
    return lambda path: parquet.write_table(pa.table(columns), path)


TREC = "{q} Q0 {d} {r} {s} mine"
RISE = "the scores of each list rise from its first candidate to its last"
RANKS = "its ranks and its scores contradict each other, the scores rise with the ranks"
# Files whose smallest score is best -> the note without --distance.
DISTANCES: dict[str, tuple[Any, str]] = {
    "faiss.npz": (arrays(D=-VALUES + 9, I=ORDER), RISE),
    "binary.npz": (arrays(D=(-VALUES * 8).astype(np.int32), I=ORDER), RISE),
    "header.csv": (text("query,doc,score\n" + rows("{q},{d},{s}", -VALUES)), RISE),
    "trec.txt": (text(rows(TREC, -VALUES, PLACES)), RANKS),
    "of_ranks.txt": (text(rows(TREC, PLACES)), RANKS),
    "shuffled.txt": (text(rows(TREC, PLACES, PLACES, SHUFFLED)), RANKS),
    "ranks.csv": (text("qid,docid,score\n" + rows("{q},{d},{s}", PLACES)), RISE),
    "places.txt": (text(rows("{q} {d} {s}", PLACES, PLACES, SHUFFLED)), "are they ranks?"),
    "tree.json": (text(tree(-VALUES)), RISE),
    "lists.parquet": (table(-VALUES), RISE),
}
# Files whose scores are what they seem, and of which nothing is noted.
GOOD: dict[str, Any] = {
    "lists.npz": arrays(t2i_ids=ORDER, t2i_scores=VALUES),
    "whole.npz": arrays(indices=ORDER, scores=(VALUES * 8).astype(np.int64)),
    "floats.npz": arrays(t2i_ids=ORDER.astype(np.float64), t2i_scores=VALUES),
    "texts.npz": arrays(t2i_ids=ORDER.astype(str), t2i_scores=VALUES),
    "no_scores.npz": arrays(t2i_ids=ORDER),
    "trec.txt": text(rows(TREC, VALUES)),
    "shuffled.txt": text(rows(TREC, VALUES, PLACES, SHUFFLED)),
    "no_ranks.txt": text(rows(TREC, VALUES, 0 * PLACES)),
    "msmarco.tsv": text(rows("{q}\t{d}\t{r}", VALUES)),
    "from_0.tsv": text(rows("{q}\t{d}\t{r}", VALUES, PLACES - 1)),
    "ranks.csv": text("rank,query_id,doc_id\n" + rows("{r},{q},{d}", VALUES)),
    "shuffled.csv": text("query,doc,rank\n" + rows("{q},{d},{r}", VALUES, PLACES, SHUFFLED)),
    "both.csv": text("rank,query,doc,score\n" + rows("{r},{q},{d},{s}", VALUES)),
    "tree.json": text(tree(VALUES)),
    "lists.parquet": table(VALUES),
}


def notes(system: Any) -> list[str]:
    assert isinstance(system.scores, Lists)
    relevance = Relevance.of_owner(system.caption_image, system.shape[0])
    return mistakes.of_scores(system.scores, relevance, [])


def first_places(system: Any) -> list[float]:
    """The place of each caption's image in its list, infinity where it is not listed."""
    return rank(system.scores, system.caption_image).t2i.ranks().tolist()


def expected() -> list[float]:
    """The same by brute force."""
    place = [np.flatnonzero(ORDER[q] == q // EACH) + 1.0 for q in range(CAPTIONS)]
    return [float(each[0]) if len(each) else np.inf for each in place]


@pytest.mark.parametrize("name", [*DISTANCES])
def test_scores_that_rise_in_every_list_get_a_note(tmp_path: Path, name: str) -> None:
    write, said = DISTANCES[name]
    write(tmp_path / name)
    (note,) = notes(open_system(name, COLUMNS, root=tmp_path))
    assert said in note
    assert "--distance" in note
    right = open_system(name, DISTANCE, root=tmp_path)
    assert np.minimum(first_places(right), 99).tolist() == np.minimum(expected(), 99).tolist()
    assert notes(right) == []


@pytest.mark.parametrize("name", [*GOOD])
def test_lists_in_their_order_get_none(tmp_path: Path, name: str) -> None:
    GOOD[name](tmp_path / name)
    system = open_system(name, COLUMNS, root=tmp_path)
    assert np.minimum(first_places(system), 99).tolist() == np.minimum(expected(), 99).tolist()
    assert notes(system) == []


def refused(folder: Path, name: str, columns: Columns = COLUMNS) -> str:
    with pytest.raises(InputError) as raised:
        open_system(name, columns, root=folder)
    assert "\n" not in str(raised.value)
    return str(raised.value)


OWNER = np.random.default_rng(2).permutation(np.repeat(np.arange(IMAGES), EACH))
IMAGE_IDS = np.random.default_rng(3).permutation(IMAGES)
# What is beside the lists of rows I, and says each caption's image. Ids are rows' numbers, too.
BESIDE: dict[str, dict[str, Any]] = {
    "caption_image": {"caption_image": OWNER},
    "by ids": {"image_ids": IMAGE_IDS, "text_image_ids": IMAGE_IDS[OWNER]},
    "by names": {
        "image_names": np.array([f"{each}.jpg" for each in IMAGE_IDS]),
        "caption_ids": np.array([f"{IMAGE_IDS[row]}.jpg#{at}" for at, row in enumerate(OWNER)]),
    },
}


@pytest.mark.parametrize("said", [*BESIDE])
def test_lists_of_rows_beside_each_captions_image(tmp_path: Path, said: str) -> None:
    """Without the number of captions an image."""
    np.savez(tmp_path / "a.npz", D=VALUES, I=ORDER, **BESIDE[said])
    system = open_system("a.npz", Columns(), root=tmp_path)
    assert system.caption_image.tolist() == OWNER.tolist()
    assert "not used" not in system.read_as
    found = first_places(system)
    for caption, place in enumerate(found):
        at = np.flatnonzero(ORDER[caption] == OWNER[caption])
        assert (len(at) == 0 and place > IMAGES) or place == at[0] + 1


def test_queries_and_candidates_by_their_own_ids(tmp_path: Path) -> None:
    """In another order; and by what arrays are called, where candidates may be ids or rows."""
    turned = np.arange(CAPTIONS)[::-1]
    held = {"query_ids": turned, "t2i_ids": ORDER[turned], "t2i_scores": VALUES[turned]}
    np.savez(tmp_path / "a.npz", **held)
    system = open_system("a.npz", COLUMNS, root=tmp_path)
    assert np.minimum(first_places(system), 99).tolist() == np.minimum(expected(), 99).tolist()
    for name, expected_ids in (("t2i_ids", ORDER), ("t2i_indices", IMAGE_IDS[ORDER])):
        np.savez(tmp_path / "b.npz", image_ids=IMAGE_IDS, caption_image=OWNER, **{name: ORDER})
        system = open_system("b.npz", Columns(), root=tmp_path)
        held = system.scores.listed["t2i"]  # type: ignore[attr-defined]
        first = np.full(CAPTIONS, -1)
        first[held.query[held.score == 0]] = system.image_ids[held.candidate[held.score == 0]]
        assert first.tolist() == expected_ids[:, 0].tolist()
        assert ("by ids" if name == "t2i_ids" else "by rows") in system.read_as


NOT_LISTS: dict[str, tuple[Any, Columns, str]] = {
    "no_scores.npz": (arrays(t2i_ids=ORDER), DISTANCE, "without scores, the best first"),
    "ranks.tsv": (text(rows("{q}\t{d}\t{r}", VALUES)), DISTANCE, "leave out --distance"),
    "ranks.csv": (
        text("query,doc,rank\n" + rows("{q},{d},{r}", VALUES)),
        DISTANCE,
        "has ranks, of which the first is best",
    ),
    "distance.csv": (
        text("query,doc,distance\n" + rows("{q},{d},{s}", VALUES)),
        COLUMNS,
        "has the column distance; give --distance",
    ),
    "capital.csv": (
        text("Query,Doc,Distance\n" + rows("{q},{d},{s}", VALUES)),
        COLUMNS,
        "has the column Distance; give --distance",
    ),
    "quoted.tsv": (
        text('"query"\t"doc"\t"distance"\n' + rows("{q}\t{d}\t{s}", VALUES)),
        COLUMNS,
        'has the column "distance"; give --distance',
    ),
    "distances.npz": (
        arrays(t2i_indices=ORDER, t2i_distances=VALUES),
        COLUMNS,
        "t2i_distances float64 [40, 6] is called distances; give --distance",
    ),
    "dist.npz": (
        arrays(dist_matrix=np.ones((IMAGES, CAPTIONS))),
        COLUMNS,
        "is called distances; give --distance",
    ),
    "beyond.npz": (
        arrays(t2i_ids=np.where(ORDER == 3, IMAGES, ORDER), image_ids=np.arange(IMAGES)),
        COLUMNS,
        "lists candidate 20, which is neither an id nor a row of 20 candidates",
    ),
    "most.npz": (arrays(t2i_ids=np.where(ORDER == 3, IMAGES, ORDER)), COLUMNS, "no numbers from 0"),
    "owner.npz": (
        arrays(sims=np.ones((IMAGES, CAPTIONS)), caption_image=np.where(OWNER == 3, IMAGES, OWNER)),
        Columns(),
        "does not say which of 20 images",
    ),
    "half.npz": (arrays(t2i_ids=ORDER + 0.5), COLUMNS, "its candidates are float64, such as"),
}


@pytest.mark.parametrize("name", [*NOT_LISTS])
def test_what_contradicts_the_lists_is_refused(tmp_path: Path, name: str) -> None:
    write, columns, said = NOT_LISTS[name]
    write(tmp_path / name)
    assert said in refused(tmp_path, name, columns)


def test_few_lists_and_ranks_that_are_rounded_say_nothing(tmp_path: Path) -> None:
    """Two lists may rise by chance; ranks and scores that differ here and there are no mistake."""
    np.savez(tmp_path / "a.npz", t2i_ids=np.array([[0], [0]]), t2i_scores=np.ones((2, 1)))
    assert notes(open_system("a.npz", COLUMNS, root=tmp_path)) == []
    nearly = VALUES.copy()
    nearly[0, :2] = nearly[0, 1::-1]
    (tmp_path / "b.txt").write_text(rows(TREC, nearly))
    assert notes(open_system("b.txt", COLUMNS, root=tmp_path)) == []
    (tmp_path / "c.txt").write_text(rows(TREC, VALUES, PLACES[:, [2, 0, 3, 1, 5, 4]]))
    (note,) = notes(open_system("c.txt", COLUMNS, root=tmp_path))
    assert "contradict each other: candidates are ranked by the scores" in note
    np.savez(tmp_path / "d.npz", t2i_ids=ORDER, t2i_scores=VALUES)
    (note,) = notes(open_system("d.npz", DISTANCE, root=tmp_path))
    assert "leave out --distance" in note


# Rows of a run in other columns -> what is said of them.
OTHER_COLUMNS: dict[str, tuple[str, str]] = {
    "four": ("{q} {d} {r} {s}", "column 3 like ranks, column 4 like scores"),
    "four with Q0": ("{q} Q0 {d} {s}", "column 2 like 'Q0' in every row"),
    "five": ("{q} {d} {r} {s} mine", "column 5 like 'mine' in every row"),
    "eight": ("{q} Q0 {d} {r} {s} mine 7 8", "column 5 like scores"),
    "commas": ("{q},{d},{s}", "column 1 like whole numbers, 40 different"),
    "texts": ("caption:{q};image:{d};{r};{s}", "column 1 like texts such as 'caption:0'"),
    "score first": ("{s} {q} {d}", "another order than query document score"),
    "score in the middle": ("{q} {s} {d}", "column 2 like scores"),
    "rank in the middle": ("{q} {r} {d}", "column 2 like ranks"),
    "score before rank": ("{q} Q0 {d} {s} {r} mine", "column 4 like scores, column 5 like ranks"),
    "Q0 first": ("Q0 {q} {d} {r} {s} mine", "column 1 like 'Q0' in every row"),
    "system before score": ("{q} Q0 {d} {r} mine {s}", "column 5 like 'mine' in every row"),
    "unknown header": ("{q},{d},{s}", "below user, item, value"),
}


@pytest.mark.parametrize("name", [*OTHER_COLUMNS])
def test_rows_in_other_columns_are_named(tmp_path: Path, name: str) -> None:
    row, said = OTHER_COLUMNS[name]
    header = "user,item,value\n" if name == "unknown header" else ""
    (tmp_path / "a.txt").write_text(header + rows(row, VALUES))
    message = refused(tmp_path, "a.txt")
    assert said in message
    assert "give it a header, such as query,candidate,score" in message


def test_a_matrix_of_few_captions_is_no_run(tmp_path: Path) -> None:
    """Three to eight columns of scores, with whole ones among them, and ids in the first column."""
    scores = np.random.default_rng(4).normal(size=(IMAGES, 4)).round(1)
    scores[:, 0] = np.arange(IMAGES) % 3
    one = Columns(captions_per_image=1, judged=True)
    np.savetxt(tmp_path / "a.txt", scores, fmt="%g")
    ids = np.char.add(np.arange(IMAGES).astype(str), ".jpg")
    lines = [",".join([ids[row], *map(str, scores[row])]) for row in range(IMAGES)]
    (tmp_path / "b.csv").write_text("image,w,x,y,z\n" + "\n".join(lines) + "\n")
    for name in ("a.txt", "b.csv"):
        assert "the matrix is 20 x 4" in refused(tmp_path, name, one)


def shuffled_lists(noise: float, best: int, seed: int, each: int = 1) -> dict[str, np.ndarray]:
    """The best candidates of images whose captions show the same apart from noise, in no order."""
    rng = np.random.default_rng(seed)
    shown = rng.standard_normal((60, 16))
    scores = shown @ (np.repeat(shown, each, 0) + noise * rng.standard_normal((60 * each, 16))).T
    order = rng.permuted(np.argsort(-scores, axis=1)[:, :best], axis=1)
    return {"i2t_ids": order, "vals": np.take_along_axis(scores, order, 1)}


@pytest.mark.parametrize(("best", "each"), [(2, 1), (5, 1), (10, 5), (60, 1)])
def test_distances_in_lists_without_order_get_a_note(tmp_path: Path, best: int, each: int) -> None:
    """By the places of right answers within their lists, whatever the values are called."""
    few = Columns(captions_per_image=each)
    held = shuffled_lists(0.7, best, 0, each)
    np.savez(tmp_path / "a.npz", **held)
    assert notes(open_system("a.npz", few, root=tmp_path)) == []
    (note,) = notes(open_system("a.npz", replace(few, distance=True), root=tmp_path))
    assert "are these similarities? leave out --distance" in note
    np.savez(tmp_path / "b.npz", i2t_ids=held["i2t_ids"], vals=99 - held["vals"])
    (note,) = notes(open_system("b.npz", few, root=tmp_path))
    assert "--distance ranks the smallest first" in note
    assert notes(open_system("b.npz", replace(few, distance=True), root=tmp_path)) == []


@pytest.mark.parametrize("noise", [0.0, 1.0, 3.0, 10.0, 1000.0])
def test_weak_lists_without_order_get_none(tmp_path: Path, noise: float) -> None:
    for seed in range(4):
        for best in (1, 2, 10):
            np.savez(tmp_path / "a.npz", **shuffled_lists(noise, best, seed))
            assert notes(open_system("a.npz", Columns(captions_per_image=1), root=tmp_path)) == []


def test_queries_that_are_not_listed_are_said_to_count_0(tmp_path: Path) -> None:
    """Left out of a run, or with a list that is null; a direction without lists has no queries."""
    lines = rows("{q},{d},{s}", VALUES).splitlines()
    (tmp_path / "a.csv").write_text("\n".join(["query,doc,score", *lines[BEST:]]) + "\n")
    columns = {
        "query": range(CAPTIONS),
        "docs": [None, None, *ORDER[2:].tolist()],
        "scores": [None, None, *VALUES[2:].tolist()],
    }
    parquet.write_table(pa.table(columns), tmp_path / "b.parquet")
    for name, expected in (
        ("a.csv", "1 of 40 queries is not listed and counts 0"),
        ("b.parquet", "2 of 40 queries are not listed and count 0"),
    ):
        system = open_system(name, COLUMNS, root=tmp_path)
        assert notes(system) == [expected]


def test_lists_with_ids_of_captions_are_of_as_many_images_as_these_have(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", D=VALUES, I=ORDER, caption_ids=np.arange(CAPTIONS))
    system = open_system("a.npz", COLUMNS, root=tmp_path)
    assert system.shape == (IMAGES, CAPTIONS)


def test_padding_of_a_short_list_is_no_candidate(tmp_path: Path) -> None:
    padded = ORDER.copy()
    padded[::3, 4:] = -1
    np.savez(tmp_path / "a.npz", I=padded)
    system = open_system("a.npz", COLUMNS, root=tmp_path)
    assert system.shape == (IMAGES, CAPTIONS)
    ranks = rank(system.scores, system.caption_image).t2i.ranks()
    for caption, candidates in enumerate(padded.tolist()):
        image = caption // EACH
        if image in candidates:
            assert ranks[caption] == 1 + candidates.index(image)


@pytest.mark.parametrize(
    ("queries", "largest", "each", "found"),
    [
        (10, 1, 5, "t2i"),  # captions of two images
        (10, 2, 5, "i2t"),  # a third image has no captions among them
        (10, 49, 5, "i2t"),
        (7, 0, 5, "i2t"),  # no number of captions
        (10, 9, 1, None),  # as many images as captions
        (10, 3, 1, None),
    ],
)
def test_which_side_asks_follows_from_the_number_of_lists_or_must_be_said(
    queries: int, largest: int, each: int, found: str | None
) -> None:
    candidates = np.full((queries, 2), largest)
    sides = top_lists.Sides(top_lists.Given())
    columns = Columns(captions_per_image=each)
    if found is not None:
        assert top_lists._direction(Path("a.npz"), candidates, sides, columns) == found
        return
    with pytest.raises(InputError, match="10 images and 10 captions; name the arrays i2t_ids"):
        top_lists._direction(Path("a.npz"), candidates, sides, columns)


def test_two_lists_of_one_direction_are_named_and_one_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "lists.npz"
    best_last = ORDER[:, ::-1]
    np.savez(path, t2i_ids=ORDER, t2i_topk_ids=best_last, i2t_ids=SCORES.T.argsort(1)[:, ::-1])
    with pytest.raises(InputError, match="holds 3 lists, t2i_ids, t2i_topk_ids, i2t_ids, of which"):
        open_system(str(path), COLUMNS)
    for name, order in (("t2i_ids", ORDER), ("t2i_topk_ids", best_last)):
        lists: Any = open_system(f"{path}:{name}", COLUMNS).scores
        listed = lists.listed["t2i"]
        first = listed.score == 0
        assert listed.candidate[first].tolist() == order[:, 0].tolist()
