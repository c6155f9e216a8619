"""Judgements from files: TREC and CSV, both directions, and files that are not what they should be."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.evaluation.judgements import qrels, rows
from pipeline.evaluation.judgements.rows import same_text
from pipeline.evaluation.retrieval import Relevance, as_similarity
from pipeline.evaluation.retrieval.collection import Collection
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.systems.scores.judged import Truth, judge
from pipeline.systems.scores.system import System

IMAGES, CAPTIONS = np.array([30, 10, 20]), np.array([7, 5, 6, 8])
COLLECTION = Collection(IMAGES, CAPTIONS, np.array([0, 1, 1, 2]))


def pairs(relevance: Relevance) -> tuple[set[tuple[int, int, float]], set[tuple[int, int, float]]]:
    """Image id, caption id, grade: of image queries, of caption queries."""
    i2t, t2i = relevance.i2t, relevance.t2i
    return ({(int(IMAGES[query]), int(CAPTIONS[each]), float(grade))
             for query, each, grade in zip(i2t.query, i2t.candidate, i2t.grades, strict=True)},
            {(int(IMAGES[each]), int(CAPTIONS[query]), float(grade))
             for query, each, grade in zip(t2i.query, t2i.candidate, t2i.grades, strict=True)})


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "judged.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("text", [
    "5 0 10 1\n7 0 30 2\n5 0 20 1\n8 0 10 0\n6 0 10 -1\n",
    "  5\t0   10 1 \r\n\n7 0 30 2\n5  0 20 1",
    "caption:5 0 image:10 1\ncaption:7 0 30 2\n5 Q0 image:20 1\n",
    "image:10 0 caption:5 1\nimage:30 0 caption:7 2\nimage:20 0 caption:5 1\n",
    "image,caption,grade\n10,5,1\n30,7,2\n20,5,1\n10,8,0\n",
    "\ufeffCaption_ID,image_id,relevance\r\n5,10,1.0\r\n7,30,2\r\n5,20,1\r\n"])
def test_a_file_of_one_direction_counts_in_both(tmp_path: Path, text: str) -> None:
    expected = {(10, 5, 1.0), (30, 7, 2.0), (20, 5, 1.0)}
    found = qrels.read(write(tmp_path, text), COLLECTION)
    assert pairs(found) == (expected, expected)
    assert found.owner.tolist() == [0, 1, 1, 2]


def test_a_csv_without_grades_and_a_file_of_both_directions(tmp_path: Path) -> None:
    assert pairs(qrels.read(write(tmp_path, "caption,image\n5,10\n"), COLLECTION))[0] == {(10, 5, 1.0)}
    both = qrels.read(write(tmp_path, "image:10 0 caption:5 1\ncaption:6 0 image:10 3\n"), COLLECTION)
    assert pairs(both) == ({(10, 5, 1.0)}, {(10, 6, 3.0)})


@pytest.mark.parametrize(("text", "said"), [
    ("5 0 99 1\n", "the pool lacks 1 of 1 image ids, such as 99 in row 1"),
    ("image:10 0 caption:5 1\n5 0 10 1\n99 0 10 1\n", "the pool lacks 1 of 2 caption ids, such as 99 in row 3"),
    ("99 0 10 1\n5 0 10 1\n", "the pool lacks 1 of 2 caption ids, such as 99 in row 1"),
    ("5 0 10 good\n", "row 1: the grade 'good' is not finite"),
    ("5 0 10 1\n7 0 30 nan\n", "row 2: the grade 'nan'"),
    ("5 0 10 1\n7 0 30 1e999\n", "row 2: the grade '1e999'"),
    ("5 0 10 1\n5 0 10 2\n", "image 10 and caption 5 are judged twice; leave"),
    ("5 0 10 1\n7 0 30 1e308\n", "row 2: the grade 1e+308 is above 1e+09"),
    ("image,caption\n10,5\n10,5\n30,7\n30,7\n", "judged twice, and 1 more pairs"),
    ("5 0 10\n", "Expected 4 columns, got 3"),
    ("5 0 10 1 x\n", "Expected 4 columns, got 5"),
    ("image,caption\n10,5,3\n", "Expected 2 columns, got 3"),
    ("image,picture\n10,5\n", "expected TREC's four columns, or CSV with the header"),
    ("caption:5 0 caption:6 1\n", "row 1 pairs a caption with a caption"),
    ("video7 0 10 1\n", "row 1: 'video7' is no id"),
    ("5.5 0 10 1\n", "row 1: '5.5' is no id"),
    ("99999999999999999999 0 10 1\n", "is no id"),
    ("5 0 10 0\n", "nothing is right by these judgements"),
    ("", "is empty"),
    (b"5 0 10 \xff\xfe\n", "UTF8"),
    (b"\x80\x04\x95" + bytes(300), "row 1"),
    (b"x" * 200_000, "a line of more than 100000 bytes"),
    ("5 0 10 1\n" * 30, "more rows than there are pairs, 24; leave one row for each pair")])
def test_what_is_no_file_of_judgements_is_refused_in_a_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(InputError) as refused:
        qrels.read(write(tmp_path, text), COLLECTION)
    assert said in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            qrels.read(path, COLLECTION)


def test_large_files_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file of 8 MB, 300,000 rows, 16 bytes a row are kept, and sorting takes a few times as much."""
    monkeypatch.setattr(rows, "PIECE", 200_000)
    generator = np.random.default_rng(0)
    keys = generator.choice(1000 * 5000, 300_000, replace=False)
    path = write(tmp_path, "".join(f"caption:{key % 5000} 0 image:{key // 5000} {1 + key % 3}\n"
                                   for key in keys.tolist()))
    collection = Collection(np.arange(1000), np.arange(5000), np.arange(5000) // 5)
    tracemalloc.start()
    found = qrels.read(path, collection)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(np.sort(found.t2i.candidate * 5000 + found.t2i.query), np.sort(keys))
    assert found.t2i.grade is not None
    assert peak < 100 * len(keys)


def test_equal_captions_are_one_query_right_for_each_image() -> None:
    collection = Collection(IMAGES, CAPTIONS, np.array([0, 1, 1, 2]), ["a dog", "a cat", " a dog ", "a dog"])
    kept, relevance = same_text(collection)
    assert kept.tolist() == [0, 1]
    assert relevance.t2i.candidate.tolist() == [0, 1, 2, 1]
    assert relevance.t2i.count.tolist() == [3, 1]
    assert relevance.owner.tolist() == [0, 1]
    with pytest.raises(InputError, match="name the --manifest"):
        same_text(COLLECTION)


def test_a_pool_with_equal_captions_keeps_the_ids_and_images_of_the_first_of_each() -> None:
    table = pd.DataFrame({"image_id": [30, 10, 10, 20], "file": list("abbc"), "bytes": 1, "split": "test",
                          "caption_id": CAPTIONS, "caption": ["a dog", "a dog", "a cat", "a bird"]})
    pool = System.of("mine", as_similarity(np.arange(12.0).reshape(3, 4)), COLLECTION.caption_image, IMAGES, CAPTIONS)
    judged = judge(pool, Truth(same_text=True), Manifest(table, "mine", Path()))
    assert judged.caption_ids is not None
    assert judged.caption_ids.tolist() == [7, 6, 8]
    assert judged.caption_image.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(judged.scores.block(slice(0, 1), slice(0, 3)), [[0, 2, 3]])  # type: ignore[union-attr]


def test_equal_captions_in_two_languages_are_two() -> None:
    collection = Collection(IMAGES, CAPTIONS, np.array([0, 1, 1, 2]), ["ball", "ball", "ball", "Ball"])
    kept, relevance = same_text(collection, np.array(["en", "de", "en", "en"]))
    assert kept.tolist() == [0, 1, 3]
    assert [relevance.t2i.candidate[relevance.t2i.query == query].tolist() for query in range(3)] == [[0, 1], [1], [2]]


@pytest.mark.parametrize(("grade", "written", "rounded"), [("2", "2", False), ("2.6", "3", True), ("0.2", "1", True)])
def test_qrels_that_are_written_say_whether_a_grade_was_rounded(tmp_path: Path, grade: str, written: str, rounded: bool
                                                                ) -> None:
    read = qrels.read(write(tmp_path, f"5 0 10 {grade}\n"), COLLECTION)
    assert qrels.write(tmp_path / "q.txt", read, IMAGES, CAPTIONS) is rounded
    assert (tmp_path / "q.txt").read_text() == f"image:10 0 caption:5 {written}\ncaption:5 0 image:10 {written}\n"


def test_a_folder_of_two_json_files_is_read_as_eccv_captions_package_has_it(tmp_path: Path) -> None:
    (tmp_path / "pm_image_to_caption.json").write_text('{"10": [5, 6], "30": [7]}')
    with pytest.raises(InputError, match=r"expected one file \*_caption_to_image\.json"):
        qrels.read(tmp_path, COLLECTION)
    (tmp_path / "pm_caption_to_image.json").write_text('{"8": [20]}')
    assert pairs(qrels.read(tmp_path, COLLECTION)) == ({(10, 5, 1.0), (10, 6, 1.0), (30, 7, 1.0)}, {(20, 8, 1.0)})
    for text in ("[1]", '{"x": [1]}', '{"8": 3}', "{"):
        (tmp_path / "pm_caption_to_image.json").write_text(text)
        with pytest.raises(InputError, match="expected JSON, from ids to lists of ids"):
            qrels.read(tmp_path, COLLECTION)
