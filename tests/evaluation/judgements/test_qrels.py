"""Judgements from files: TREC and CSV, both directions, and files that are not what they should
be.
"""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.foundation import settings
from pipeline.foundation.evaluation.judgements import qrels, rows
from pipeline.foundation.evaluation.judgements.columns import QRELS
from pipeline.foundation.evaluation.judgements.names import Names
from pipeline.foundation.evaluation.judgements.rows import same_text
from pipeline.foundation.evaluation.retrieval import Relevance, as_similarity
from pipeline.foundation.evaluation.retrieval.collection import Collection
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, InputWarning
from pipeline.judge.systems.scores.judged import Truth, facts, judge
from pipeline.judge.systems.scores.system import System

IMAGES, CAPTIONS = np.array([30, 10, 20]), np.array([7, 5, 6, 8])
COLLECTION = Collection(IMAGES, CAPTIONS, np.array([0, 1, 1, 2]))


def pairs(relevance: Relevance) -> tuple[set[tuple[int, int, float]], set[tuple[int, int, float]]]:
    """Image id, caption id, grade: of image queries, of caption queries."""
    i2t, t2i = relevance.i2t, relevance.t2i
    return (
        {
            (int(IMAGES[query]), int(CAPTIONS[each]), float(grade))
            for query, each, grade in zip(i2t.query, i2t.candidate, i2t.grades, strict=True)
        },
        {
            (int(IMAGES[each]), int(CAPTIONS[query]), float(grade))
            for query, each, grade in zip(t2i.query, t2i.candidate, t2i.grades, strict=True)
        },
    )


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "judged.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.specification
@pytest.mark.parametrize(
    "text",
    [
        "5 0 10 1\n7 0 30 2\n5 0 20 1\n8 0 10 0\n6 0 10 -1\n",
        "  5\t0   10 1 \r\n\n7 0 30 2\n5  0 20 1",
        "caption:5 0 image:10 1\ncaption:7 0 30 2\n5 Q0 image:20 1\n",
        "image:10 0 caption:5 1\nimage:30 0 caption:7 2\nimage:20 0 caption:5 1\n",
        "image,caption,grade\n10,5,1\n30,7,2\n20,5,1\n10,8,0\n",
        "\ufeffCaption_ID,image_id,relevance\r\n5,10,1.0\r\n7,30,2\r\n5,20,1\r\n",
    ],
)
def test_a_file_of_one_direction_counts_in_both(tmp_path: Path, text: str) -> None:
    expected = {(10, 5, 1.0), (30, 7, 2.0), (20, 5, 1.0)}
    found = qrels.read(write(tmp_path, text), COLLECTION).relevance
    assert pairs(found) == (expected, expected)
    assert found.owner.tolist() == [0, 1, 1, 2]


def test_captions_keep_the_images_that_the_pool_knows(tmp_path: Path) -> None:
    by_caption, by_image = "caption:5 0 image:20 1\n", "image:10 0 caption:5 1\n"
    for caption_image, of_captions in (
        ([0, 1, -1, 2], [0, 1, -1, 2]),
        ([0, 1, 1, 2], [0, 1, 1, 2]),
        ([-1, -1, -1, -1], None),  # the first right image of each caption
    ):
        pool = Collection(IMAGES, CAPTIONS, np.array(caption_image))
        for text, first_right in (
            (by_caption, [-1, 2, -1, -1]),
            (by_image, [-1, 1, -1, -1]),
            (by_caption + by_image, [-1, 2, -1, -1]),
        ):
            found = qrels.read(write(tmp_path, text), pool).relevance
            assert found.owner.tolist() == (of_captions or first_right)


def test_a_choice_of_right_answers_takes_the_place_of_the_settings() -> None:
    shipped = settings.load(Path(__file__).parents[3] / "params.yaml").evaluate
    for changes, choice, right in (
        ({"qrels": "old.txt"}, Truth(), ("old.txt", None)),
        ({"same_text": "positive"}, Truth(), (None, "positive")),
        ({"qrels": "old.txt"}, Truth(qrels=Path("new.txt")), ("new.txt", None)),
        ({"same_text": "positive"}, Truth(qrels=Path("new.txt")), ("new.txt", None)),
        ({"qrels": "old.txt"}, Truth(same_text=True), (None, "positive")),
    ):
        chosen = choice.chosen(shipped.model_copy(update=changes))
        assert (chosen.qrels, chosen.same_text) == right


def test_a_csv_without_grades_and_a_file_of_both_directions(tmp_path: Path) -> None:
    assert pairs(qrels.read(write(tmp_path, "caption,image\n5,10\n"), COLLECTION).relevance)[0] == {
        (10, 5, 1.0)
    }
    both = qrels.read(
        write(tmp_path, "image:10 0 caption:5 1\ncaption:6 0 image:10 3\n"), COLLECTION
    ).relevance
    assert pairs(both) == ({(10, 5, 1.0)}, {(10, 6, 3.0)})


@pytest.mark.specification
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "5 0 99 1\n",
            "no grade is above 0; left out 1 of 1 row (the pool lacks the image: 1); the first: row 1: 5 99 1",
        ),
        (
            "".join(f"{query} 0 10 1\n" for query in (5, 97, 98, 99, 100)),
            "judged.txt: 4 of 5 rows (the pool lacks the "
            "caption: 4), more than 1 % of all; repair them",
        ),
        (
            "5 0 10 good\n",
            "left out 1 of 1 row (a grade that is no number: 1); the first: row 1: 5 10 good",
        ),
        ("5 0 10 1\n5 0 10 2\n", "different grades: row 1: 5 10 1 and row 2: 5 10 2; leave"),
        ("5 0 10 2\n5 0 10 1\n", "different grades: row 1: 5 10 2 and row 2: 5 10 1; leave"),
        (
            "5 0 10 -9007199254740993\n",
            "its column grade holds whole numbers beyond 2^53, such as 9007199254740993",
        ),
        ("image,caption\n10,image:5\n", "row 1 pairs two of a kind: 10 image:5; name"),
        ("image,caption\n10,5\ncaption:10,5\n", "row 2 pairs two of a kind: caption:10 5; name"),
        (
            "image,caption,grade\n10,5,1\n10,5,2\n30,7,1\n30,7,2\n",
            "row 3: 30 7 1 and row 4: 30 7 2, and 1 more pair;",
        ),
        ("5 0 10 1\n7 0 30 1e308\n", "row 2: the grade 1e+308 is above 1e+09"),
        (
            "5 0 10 1 x\n",
            "expected TREC's `query 0 document grade`, or a header such as image,caption,grade or "
            "query-id,corpus-id,score; the first row is '5 0 10 1 x'",
        ),
        ("image,picture\n10,5\n", "; the first row is 'image,picture'"),
        (
            "image,img_id,caption\n10,10,5\n",
            "has several columns for the image: image, img_id; leave one",
        ),
        ("caption:5 0 caption:6 1\n", "row 1 pairs two of a kind: caption:5 caption:6 1"),
        (
            "video7 0 10 1\n",
            "row 1: video7 10 1 has no valid id; expected whole numbers, image:12 and caption:55, or "
            "with --manifest images' files",
        ),
        ("5.5 0 10 1\n", "5.5 10 1 has no valid id"),
        ("99999999999999999999 0 10 1\n", "has no valid id"),
        ("5 0 10 0\n", "nothing is right by these judgements"),
        ("", "is empty"),
        ("query-id\tcorpus-id\tscore\n", "is empty"),
        (b"5 0 10 \xff\xfe\n", "is no text in UTF-8"),
        (b"5 0 10 1\n5 \xc5\n", "is no text in UTF-8"),
        (b"\x80\x04\x95" + bytes(300), "is no text in UTF-8"),
        (b"5,10\r7,30\r", "the first row is '5,10\\r7,30'"),
        (b"image,caption," + b"x" * 200_000 + b"\n" * 16, "a line of more than 100000 bytes"),
        (b"5 0 10 " + b"9" * 5_000 + b"\n", "a grade that is no number: 1"),
        (
            b"5 0 10 " + b"0" * 5_000 + b"9007199254740993\n",
            "such as 9007199254740993, whose order",
        ),
        (b"\x1f\x8b" + bytes(300), "cannot read"),
        (b"x" * 200_000, "a line of more than 100000 bytes"),
        ('{"5": 3}', "expected JSON, query: document: grade, got {'5': 3}"),
        ('[{"5": 3}]', "is a list in JSON; expected JSON, query: document: grade"),
        ('{"5": {"10": 1}, "5": {"20": 1}}', "has '5' twice in an object"),
        ('{"5": {"10": 1}', "not readable as JSON"),
        ("5 0 10 1\n" * 30, "more rows than there are pairs, 24; leave one row for each pair"),
    ],
)
def test_what_is_no_file_of_judgements_is_refused_in_a_line(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    with pytest.raises(InputError) as refused:
        qrels.read(write(tmp_path, text), COLLECTION)
    assert said in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


FILES = ["val2014/COCO_val2014_000000000030.jpg", "beach/a dog.jpg", "000000000020.jpg"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            "query-id\tcorpus-id\tscore\n5\t10\t1\n7\t30\t2\n",
            "BEIR's qrels with a header, tabs between columns; read are query-id, corpus-id, score",
        ),
        (
            "\ufeffQuery ID;Corpus_ID;Score\r\n5;10;1\r\n7;30;2\r\n",
            "BEIR's qrels with a header, semicolons",
        ),
        (
            "query-id\tcorpus-id\tscore\n5\ta dog.jpg\t1\n7\tCOCO_val2014_000000000030.jpg\t2\n",
            "BEIR's qrels",
        ),
        (
            "query-id\tcorpus-id\tscore\nbeach\\a dog.jpg\t5\t1\n000000000030.jpg\t7\t2\n",
            "BEIR's qrels",
        ),  # images ask
        (
            "qid,docno,label,note\n5,beach/a dog.jpg, 1,x\n7,30.0,2,y\n7,./val2014/COCO_val2014_000000000030,2,z\n",
            "PyTerrier's qrels with a header, commas between columns; read are qid, docno, label, not note",
        ),
        ('q_id,doc_id,score\n"5","10",1\n"7","30",2.0\n', "ranx's qrels"),
        ("query_id doc_id relevance iteration\n5 10 1 0\n7 30 2 0\n", "ir_measures' qrels"),
        ("5\t10\t1\n7\t30\t2\n", "qrels without a header, 3 columns: query document grade"),
        ("5\t0\ta dog.jpg\t1\n7\t0\t30\t2\n", "TREC qrels without a header, 4 columns"),
        ("  5   0  10\t1 \n\n 7 0 30 2\n5 0 10 1\n", "TREC qrels"),  # one row twice
        ('{"5": {"10": 1}, "7": {"image:30": 2}}', "judgements in JSON, query: document: grade"),
        ('{"a dog.jpg": {"5": 1}, "image_30": {"7": 2}}', "judgements in JSON"),
        (
            "image,caption,grade\na dog.jpg,a dog.jpg#0,1\n30,000000000030.jpg#0,2\n",
            "pairs of images and captions",
        ),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.filterwarnings("ignore::pipeline.foundation.parts.errors.InputWarning")
def test_what_tools_write_is_read_by_content(
    tmp_path: Path, text: str, title: str, packed: bool
) -> None:
    content = gzip.compress(text.encode()) if packed else text.encode()
    found = qrels.read(write(tmp_path, content), COLLECTION, Names(COLLECTION, lambda: FILES))
    assert pairs(found.relevance) == ({(10, 5, 1.0), (30, 7, 2.0)}, {(10, 5, 1.0), (30, 7, 2.0)})
    assert found.title.startswith(title)


def test_rows_that_cannot_be_used_are_left_out_and_counted(tmp_path: Path) -> None:
    """BEIR's own ArguAna judges a document that its corpus lacks."""
    path = write(tmp_path, "5 0 10 1\n7 0 30 2\n7 0 30 2\n5 0\n99 0 10 1\n5 0 20 high\n")
    with pytest.warns(InputWarning) as warned:
        found = qrels.read(path, COLLECTION)
    assert pairs(found.relevance)[0] == {(10, 5, 1.0), (30, 7, 2.0)}
    assert found.left_out == {
        "not 4 columns": 1,
        "a grade that is no number": 1,
        "the pool lacks the caption": 1,
    }
    assert [str(each.message).partition(": ")[2] for each in warned] == [
        "left out 3 of 6 rows (not 4 columns: 1, a grade that is no number: 1, the pool lacks the caption: 1); the "
        "first: row 4: 5 0 (not 4 columns)",
        "1 row repeated with the same grade; one of each counts",
    ]
    judged = judge(
        System.of(
            "mine", as_similarity(np.ones((3, 4))), COLLECTION.caption_image, IMAGES, CAPTIONS
        ),
        Truth(path),
        None,
    )
    assert facts(judged, Truth(path))["relevance"]["left_out"] == found.left_out
    with pytest.raises(InputError, match="4 of 7 rows"):
        qrels.read(write(tmp_path, path.read_text() + "98 0 10 1\n"), COLLECTION, share=0.0)


def test_of_several_damaged_rows_the_first_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "5 0 10 1\n5 0\n" * 20)
    with pytest.raises(InputError, match=r"20 of 40 rows .* the first: row 2: 5 0 "):
        list(rows.Rows(path, QRELS).tables())


def test_a_long_line_is_refused_wherever_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, "5 0 10 1\n" + "5" * 110_000 + " 0 10 1\n5 0 10 1\n")
    with pytest.raises(InputError, match="a line of more than 100000 bytes"):
        list(rows.Rows(path, QRELS).tables())


def test_a_manifest_is_needed_where_ids_are_files(tmp_path: Path) -> None:
    assert not Truth(write(tmp_path, "caption:5 0 image:10 1\n7 0 30 1\n")).needs_manifest
    assert Truth(write(tmp_path, "5 0 a.jpg 1\n")).needs_manifest


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            qrels.read(path, COLLECTION)


@pytest.mark.slow
def test_large_files_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file of 8 MB, 300,000 rows, 16 bytes a row are kept, and sorting takes a few times as
    much.
    """
    monkeypatch.setattr(rows, "PIECE", 200_000)
    generator = np.random.default_rng(0)
    keys = generator.choice(1000 * 5000, 300_000, replace=False)
    path = write(
        tmp_path,
        "".join(
            f"caption:{key % 5000} 0 image:{key // 5000} {1 + key % 3}\n" for key in keys.tolist()
        ),
    )
    collection = Collection(np.arange(1000), np.arange(5000), np.arange(5000) // 5)
    tracemalloc.start()
    found = qrels.read(path, collection).relevance
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(np.sort(found.t2i.candidate * 5000 + found.t2i.query), np.sort(keys))
    assert found.t2i.grade is not None
    assert peak < 100 * len(keys)


@pytest.mark.specification
def test_equal_captions_are_one_query_right_for_each_image() -> None:
    collection = Collection(
        IMAGES, CAPTIONS, np.array([0, 1, 1, 2]), ["a dog", "a cat", " a dog ", "a dog"]
    )
    kept, relevance = same_text(collection)
    assert kept.tolist() == [0, 1]
    assert relevance.t2i.candidate.tolist() == [0, 1, 2, 1]
    assert relevance.t2i.count.tolist() == [3, 1]
    assert relevance.owner.tolist() == [0, 1]
    with pytest.raises(InputError, match="name the --manifest"):
        same_text(COLLECTION)


def test_a_pool_with_equal_captions_keeps_the_ids_and_images_of_the_first_of_each() -> None:
    table = pd.DataFrame(
        {
            "image_id": [30, 10, 10, 20],
            "file": list("abbc"),
            "bytes": 1,
            "split": "test",
            "caption_id": CAPTIONS,
            "caption": ["a dog", "a dog", "a cat", "a bird"],
        }
    )
    pool = System.of(
        "mine",
        as_similarity(np.arange(12.0).reshape(3, 4)),
        COLLECTION.caption_image,
        IMAGES,
        CAPTIONS,
    )
    judged = judge(pool, Truth(same_text=True), Manifest(table, "mine", Path()))
    assert judged.caption_ids is not None
    assert judged.caption_ids.tolist() == [7, 6, 8]
    assert judged.caption_image.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(judged.scores.block(slice(0, 1), slice(0, 3)), [[0, 2, 3]])  # type: ignore[union-attr]


def test_equal_captions_in_two_languages_are_two() -> None:
    collection = Collection(
        IMAGES, CAPTIONS, np.array([0, 1, 1, 2]), ["ball", "ball", "ball", "Ball"]
    )
    kept, relevance = same_text(collection, np.array(["en", "de", "en", "en"]))
    assert kept.tolist() == [0, 1, 3]
    assert [
        relevance.t2i.candidate[relevance.t2i.query == query].tolist() for query in range(3)
    ] == [[0, 1], [1], [2]]


@pytest.mark.parametrize(
    ("grade", "written", "rounded"), [("2", "2", False), ("2.6", "3", True), ("0.2", "1", True)]
)
def test_qrels_that_are_written_say_whether_a_grade_was_rounded(
    tmp_path: Path, grade: str, written: str, rounded: bool
) -> None:
    read = qrels.read(write(tmp_path, f"5 0 10 {grade}\n"), COLLECTION).relevance
    assert qrels.write(tmp_path / "q.txt", read, IMAGES, CAPTIONS) is rounded
    assert (
        tmp_path / "q.txt"
    ).read_text() == f"image:10 0 caption:5 {written}\ncaption:5 0 image:10 {written}\n"


def test_a_grade_that_is_rounded_in_either_direction_is_said(tmp_path: Path) -> None:
    for of_image, of_caption, rounded in (
        ("1", "2.6", True),
        ("2.6", "1", True),
        ("1", "2", False),
    ):
        text = f"image:10 0 caption:5 {of_image}\ncaption:6 0 image:10 {of_caption}\n"
        read = qrels.read(write(tmp_path, text), COLLECTION).relevance
        assert qrels.write(tmp_path / "q.txt", read, IMAGES, CAPTIONS) is rounded


def test_rows_keep_their_numbers_after_one_that_is_damaged(tmp_path: Path) -> None:
    path = write(tmp_path, "5 0 10 1\n5 0\n7 0 30 2\n6 0 10 1 1\n8 0 20 1\n")
    read = rows.Rows(path, QRELS, left_out=LeftOut("row", 1.0))
    ((table, numbers),) = read.tables()
    assert table["query"].tolist() == ["5", "7", "8"]
    assert numbers.tolist() == [1, 3, 5]


def test_rows_that_repeat_are_counted_in_both_directions(tmp_path: Path) -> None:
    text = "image:10 0 caption:5 1\n" * 3 + "caption:6 0 image:10 1\n" * 2
    with pytest.warns(InputWarning, match=": 3 rows repeated with the same grade"):
        qrels.read(write(tmp_path, text), COLLECTION)


def test_a_folder_of_two_json_files_is_read_as_eccv_captions_package_has_it(tmp_path: Path) -> None:
    (tmp_path / "pm_image_to_caption.json").write_text('{"10": [5, 6], "30": [7]}')
    with pytest.raises(InputError, match=r"expected one file \*_caption_to_image\.json"):
        qrels.read(tmp_path, COLLECTION)
    (tmp_path / "pm_caption_to_image.json").write_text('{"8": [20]}')
    found = pairs(qrels.read(tmp_path, COLLECTION).relevance)
    assert found == ({(10, 5, 1.0), (10, 6, 1.0), (30, 7, 1.0)}, {(20, 8, 1.0)})
    for text in ("[1]", '{"x": [1]}', '{"8": 3}', "{"):
        (tmp_path / "pm_caption_to_image.json").write_text(text)
        with pytest.raises(InputError, match="expected JSON, from ids to lists of ids"):
            qrels.read(tmp_path, COLLECTION)
