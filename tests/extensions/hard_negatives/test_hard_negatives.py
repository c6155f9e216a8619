"""Readers of questions, swaps of words, and accuracies with intervals over images."""

from __future__ import annotations

import itertools
import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from pipeline.extensions.hard_negatives import accuracy, questions as published
from pipeline.extensions.hard_negatives.questions import Question
from pipeline.extensions.hard_negatives.swaps import SWAPS, of_captions
from pipeline.foundation.evaluation.statistics.wilson import wilson
from pipeline.foundation.parts.errors import InputError

pytestmark = pytest.mark.slow


def write(path: Path, held: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(held if isinstance(held, str) else json.dumps(held))
    return path


def read(name: object, form: str | None = None) -> list[Question]:
    return published.read(str(name), form, Path())[0]


ENTRY = {"filename": "000000000139.jpg", "caption": "a", "negative_caption": "b"}
QUESTION = Question("000000000139.jpg", ("a",), ("b",), "q")


@pytest.mark.parametrize(
    ("name", "held", "description"),
    [
        ("q.json", {"0": ENTRY}, "entries"),
        ("q.json", [ENTRY], "entries"),
        ("q.jsonl", json.dumps(ENTRY) + "\r\n\n", "entries"),
        (
            "q.json",
            {"v1": {"image_file": "000000000139.jpg", "caption": "a", "foil": "b", "id": "x"}},
            "entries",
        ),  # VALSE
        (
            "q.json",
            [
                {
                    "image_path": "000000000139.jpg",
                    "captions": ["a"],
                    "hard_negs": ["b", " "],
                    "id": 7,
                }
            ],
            "entries",
        ),
        (
            "q.csv",
            "Filename;Caption;Negative_Caption;category;note\n000000000139.jpg; a;b;q;x\n",
            "csv",
        ),
        (
            "q.tsv",
            "image\ttrue_caption\tfalse_caption\tcategory\n000000000139.jpg\ta\tb\tq\n",
            "csv",
        ),
        ("q.csv", "\ufeffimage,caption,foil,category\r\n000000000139.jpg,a,b,q\r\n", "csv"),
    ],
)
def test_questions_are_recognised_by_content(
    tmp_path: Path, name: str, held: object, description: str
) -> None:
    found, lines = published.read(str(write(tmp_path / name, held)), None, Path())
    assert found == [QUESTION]
    assert lines == [f"{tmp_path / name}: read as {description}, 1 question of 1 category"]


def test_entries_that_cannot_be_used_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write(
        tmp_path / "q.json",
        [ENTRY, ENTRY | {"caption": " "}, {"caption": "a", "negative_caption": "b"}],
    )
    found, lines = published.read(str(path), None, Path())
    assert found == [QUESTION]
    assert lines[1:] == [
        f"{path}: left out 2 of 3 questions (no right caption: 1, no image: 1); the first: entry 2 of "
        "q.json (no right caption)"
    ]
    with pytest.raises(
        InputError, match=r"q\.json: 4 of 5 questions \(no image: 4\), more than 1 % of all"
    ):
        read(write(path, [ENTRY, *[ENTRY | {"filename": ""}] * 4]))
    with pytest.raises(
        InputError,
        match="the first entry has no text for negative, its keys are filename, caption; ",
    ):
        read(write(path, [{"filename": "a.jpg", "caption": "b"}]))
    with pytest.raises(
        InputError,
        match=r"expected the files of sugarcrepe, aro or winoground, got q\.json; name one",
    ):
        read(tmp_path)


def test_a_csv_holds_several_right_and_wrong_captions(tmp_path: Path) -> None:
    path = write(
        tmp_path / "q.csv",
        "image,positive,positive,negative,negative,category\n"
        'a.jpg,"one, two",,three,four,colour\nb.jpg,x,y,z,,\n',
    )
    questions = read(path)
    assert questions == [
        Question("a.jpg", ("one, two",), ("three", "four"), "colour"),
        Question("b.jpg", ("x", "y"), ("z",), "all"),
    ]
    published.save(tmp_path / "again.csv", questions)
    assert read(tmp_path / "again.csv") == questions
    for text, said in (
        ("image,positive\na,b\n", "first line must be"),
        (
            "image,positive,negative\na,b\n",
            "no questions; left out 1 of 1 question .not 3 fields: 1",
        ),
        ("image,positive,negative\na,b,\n", "no wrong caption: 1.; the first: line 2"),
        ("image,positive,negative\n", "no questions"),
        ("image,positive,x\n", "first line"),
    ):
        with pytest.raises(InputError, match=said):
            read(write(path, text))


def test_sugarcrepe_aro_and_winoground_are_read(tmp_path: Path) -> None:
    entry = {"filename": "000000000139.jpg", "caption": "a", "negative_caption": "b"}
    for name in (
        "add_att",
        "add_obj",
        "replace_att",
        "replace_obj",
        "replace_rel",
        "swap_att",
        "swap_obj",
    ):
        write(tmp_path / "data" / "sugarcrepe" / f"{name}.json", {"0": entry, "1": entry})
    found = read(tmp_path / "data" / "sugarcrepe")
    assert len(found) == 14
    assert found[0] == Question("000000000139.jpg", ("a",), ("b",), "add_att")
    with pytest.raises(InputError, match="'add_att': 692"):  # the published numbers of questions
        published.read("sugarcrepe", None, tmp_path)
    box = {"image_path": "7.jpg", "bbox_x": 1, "bbox_y": 2, "bbox_w": 30, "bbox_h": 40}
    aro = write(
        tmp_path / "visual_genome_relation.json",
        [box | {"true_caption": "a", "false_caption": "b"}],
    )
    assert read(aro) == [Question("7_1_2_30_40.jpg", ("a",), ("b",), "relation")]
    line = {
        "image_0": "i0",
        "image_1": "i1",
        "caption_0": "a",
        "caption_1": "b",
        "collapsed_tag": "Object",
    }
    wino = write(
        tmp_path / "examples.jsonl",
        json.dumps(line | {"note": "one\u2028line"}, ensure_ascii=False) + "\n",
    )
    assert read(wino) == [
        Question("i0", ("a",), ("b",), "Object", "0"),
        Question("i1", ("b",), ("a",), "Object", "0"),
    ]
    with pytest.raises(
        InputError, match="asks about boxes, as ARO does; read it with --format aro"
    ):
        read(aro, "sugarcrepe")
    with pytest.raises(InputError, match="expected a list of objects"):
        read(write(tmp_path / "x.json", [1]))
    with pytest.raises(InputError, match="did you mean winoground"):
        published.read("winogrund", None, Path())
    with pytest.raises(InputError, match="format of questions"):
        read(wino, "wino")
    with pytest.raises(InputError, match="comes from the links"):
        published.read("aro", None, tmp_path / "data")


def test_every_card_can_be_read_and_names_a_reader() -> None:
    for name in ("sugarcrepe", "aro", "winoground"):
        card = published._card(name)
        assert card.format in published.READERS
        assert card.languages == ["en"]
        assert card.bibtex.count("{") == card.bibtex.count("}") > 0
    assert sum(published._card("sugarcrepe").counts.values()) == 7511


@pytest.mark.specification
@pytest.mark.parametrize(
    ("kind", "caption", "others", "expected"),
    [
        ("order", "A man throws a ball to a dog .", [], "A ball throws a man to a dog ."),
        ("order", "A dog and a cat on the grass", [], None),
        ("order", "The dog bites an umbrella", [], "The umbrella bites a dog"),
        ("order", "A dog chases two cats", [], None),  # not both in the singular
        ("order", "Dogs run after the two boys", [], "Boys run after the two dogs"),
        ("order", "A man hits a tennis ball", [], None),  # the second half of a compound
        (
            "left and right",
            "The left cube and the Right ball",
            [],
            "The right cube and the Left ball",
        ),
        ("left and right", "A dog right next to a man who has left", [], None),
        ("colour", "A dog", [], None),
        ("number", "one dog", [], None),
        ("number", "Two dogs", ["three dogs", "four", "five"], "Six dogs"),
        ("number", "two dogs", ["three", "four five six"], None),
    ],
)
def test_swaps(kind: str, caption: str, others: list[str], expected: str | None) -> None:
    assert SWAPS[kind](caption, [caption, *others]) == expected


def test_a_colour_becomes_one_that_no_caption_of_the_image_names() -> None:
    every = ["A grey dog", "red orange yellow green blue purple", "pink white black"]
    assert SWAPS["colour"](every[0], every) == "A brown dog"
    assert (
        SWAPS["colour"](
            "a red ball", ["a red ball", "yellow green blue purple pink white black brown gray"]
        )
        == "an orange ball"
    )


def test_equal_captions_give_equal_questions_and_no_caption_of_the_image_is_wrong() -> None:
    images = [
        ("a.jpg", ["a dog bites a man", "a man bites a dog"]),
        ("b.jpg", ["a dog bites a man", "two red dogs"]),
    ]
    questions = of_captions(images)
    assert questions == of_captions(iter(images))
    assert [(each.image, each.category) for each in questions] == [
        ("b.jpg", "colour"),
        ("b.jpg", "number"),
        ("b.jpg", "order"),
    ]


def asked(
    rows: list[tuple[str, str]], vectors: np.ndarray
) -> tuple[list[Question], dict[str, int]]:
    questions = [Question(image, ("right",), ("wrong", "worse"), kind) for image, kind in rows]
    return questions, {"right": 0, "wrong": 1, "worse": 2}


@pytest.mark.specification
def test_accuracy_by_hand_with_ties_by_the_mean_over_orders() -> None:
    captions = np.array([[1, 0], [0, 1], [0, -1]], np.float32)  # right, wrong, worse
    images = np.array(
        [[1, 0], [0, 1], [0.6, 0.6], [0, 0]], np.float32
    )  # right, wrong, a tie of two, of all three
    questions, column = asked([("a", "x"), ("b", "x"), ("c", "y"), ("a", "y")], captions)
    compared = accuracy.compare(questions, images, np.array([0, 1, 2, 0]), captions, column)
    assert compared.points.tolist() == [1, 0, 0.5, 1]
    x, y, every = accuracy.accuracies(questions, compared)
    assert (x.value, y.value, every.value) == (50, 75, 62.5)
    assert (every.questions, every.images, every.ties) == (4, 3, 1)
    assert every.chance == pytest.approx(100 / 3)
    assert 0 <= every.low < every.value < every.high <= 100
    assert (
        accuracy.compare(questions, images, np.full(4, 3), captions, column).points.tolist()
        == [1 / 3] * 4
    )


def test_winogrounds_ties_count_by_the_mean_over_all_their_orders() -> None:
    """Similarities of two images and two captions, each 0, 1 or 2: in nearly all some are equal."""
    questions = [Question("0", ("a",), ("b",), "x", "g"), Question("1", ("b",), ("a",), "x", "g")]
    for s in itertools.product(
        range(3), repeat=4
    ):  # image 0 with a, with b, image 1 with a, with b
        compared = accuracy.compare(
            questions,
            np.array(s, np.float32).reshape(2, 2),
            np.arange(2),
            np.eye(2, dtype=np.float32),
            {"a": 0, "b": 1},
        )
        orders = [
            order
            for order in itertools.permutations(range(4))
            if [s[each] for each in order] == sorted(s, reverse=True)
        ]
        place = np.array([[order.index(each) for each in range(4)] for order in orders])
        text = (place[:, 0] < place[:, 1]) & (place[:, 3] < place[:, 2])
        image = (place[:, 0] < place[:, 2]) & (place[:, 3] < place[:, 1])
        assert [each.value for each in accuracy.grouped(questions, compared)] == pytest.approx(
            [100 * np.mean(each) for each in (text, image, text & image)]
        ), s


def test_the_interval_is_wider_where_questions_of_one_image_agree() -> None:
    captions = np.array([[1, 0], [0, 1], [0, -1]], np.float32)
    images = np.array([[1, 0], [0, 1]], np.float32)
    hits = np.random.default_rng(0).integers(0, 2, 200)
    alone, column = asked([(f"{number}", "x") for number in range(200)], captions)
    together, _ = asked([(f"{number // 10}", "x") for number in range(200)], captions)
    widths = []
    for questions, row in ((alone, hits), (together, np.sort(hits))):
        [found] = accuracy.accuracies(
            questions, accuracy.compare(questions, images, row, captions, column)
        )
        widths.append(found.high - found.low)
    assert widths[1] > 2 * widths[0]


def test_the_interval_of_images_with_unequal_numbers_of_questions_is_that_of_a_ratio() -> None:
    """Of three questions about one image two are right, of one about another none: by Cochran's
    linearisation.
    """
    captions, images = (
        np.array([[1, 0], [0, 1], [0, -1]], np.float32),
        np.array([[1, 0], [0, 1]], np.float32),
    )
    questions, column = asked([("a", "x"), ("a", "x"), ("a", "x"), ("b", "x")], captions)
    [found] = accuracy.accuracies(
        questions, accuracy.compare(questions, images, np.array([0, 0, 1, 1]), captions, column)
    )
    apart = (np.array([2.0, 0.0]) - 0.5 * np.array([3, 1])) / 2
    low, high = wilson(np.array([0.5]), np.array([(apart**2).sum()]), 2, accuracy.CONFIDENCE)
    assert (found.low, found.high) == pytest.approx((100 * low[0], 100 * high[0]))


@pytest.mark.specification
def test_winoground_scores_by_their_definition() -> None:
    rng = np.random.default_rng(0)
    images, captions = (rng.normal(size=(40, 4)).astype(np.float32) for _ in range(2))
    names = [f"{number}" for number in range(40)]
    questions = [
        Question(names[n], (names[n],), (names[n ^ 1],), "x", f"{n // 2}") for n in range(40)
    ]
    column = {name: at for at, name in enumerate(names)}
    compared = accuracy.compare(questions, images, np.arange(40), captions, column)
    s = images @ captions.T
    text = [s[n, n] > s[n, n + 1] and s[n + 1, n + 1] > s[n + 1, n] for n in range(0, 40, 2)]
    image = [s[n, n] > s[n + 1, n] and s[n + 1, n + 1] > s[n, n + 1] for n in range(0, 40, 2)]
    both = [a and b for a, b in zip(text, image, strict=True)]
    assert [each.value for each in accuracy.grouped(questions, compared)] == [
        pytest.approx(100 * np.mean(each)) for each in (text, image, both)
    ]
    assert accuracy.grouped(questions[:0], accuracy.Compared(*np.zeros((4, 0)))) == []


def test_a_group_counts_where_the_wrong_caption_of_one_is_the_right_one_of_the_other() -> None:
    captions, column = np.eye(4, dtype=np.float32), {name: at for at, name in enumerate("abcd")}
    for others in (
        [Question("1", ("c",), ("d",), "x", "g")],
        [Question("1", ("c",), ("a",), "x", "g")],
        [Question("1", ("b",), ("d",), "x", "g")],
        [],
    ):  # other captions; one question with two right ones
        questions = [Question("0", ("a",) if others else ("a", "c"), ("b",), "x", "g"), *others]
        compared = accuracy.compare(
            questions, captions, np.arange(len(questions)), captions, column
        )
        assert accuracy.grouped(questions, compared) == []


def test_chance_is_that_of_a_right_caption_before_all_wrong_ones_of_its_question() -> None:
    """However many right captions a question has; of a group by all orders
    of its four similarities.
    """
    captions, column = np.eye(4, dtype=np.float32), {name: at for at, name in enumerate("abcd")}
    questions = [
        Question("0", ("a", "b"), ("c",), "x"),
        Question("1", ("a",), ("b", "c", "d"), "y"),
    ]
    compared = accuracy.compare(questions, captions, np.arange(2), captions, column)
    chances = [each.chance for each in accuracy.accuracies(questions, compared)]
    # A right one before one wrong one; one before three; the mean over the three right captions.
    assert chances == pytest.approx([50, 25, (50 + 50 + 25) / 3])
    pair = [Question("0", ("a",), ("b",), "x", "g"), Question("1", ("b",), ("a",), "x", "g")]
    compared = accuracy.compare(pair, captions, np.arange(2), captions, column)
    assert [each.name for each in accuracy.accuracies(pair, compared)] == ["x"]
    chances = [each.chance for each in accuracy.grouped(pair, compared)]
    places = [*itertools.permutations(range(4))]  # of the pairs 0a, 0b, 1a, 1b
    text = [place[0] < place[1] and place[3] < place[2] for place in places]
    image = [place[0] < place[2] and place[3] < place[1] for place in places]
    both = [one and other for one, other in zip(text, image, strict=True)]
    assert chances == pytest.approx([100 * np.mean(each) for each in (text, image, both)])


def test_captions_are_equal_in_any_form_of_unicode() -> None:
    composed, decomposed = (unicodedata.normalize(form, "a café") for form in ("NFC", "NFD"))
    question = Question("a.jpg", (decomposed,), (composed,), "all")
    assert question.positives == question.negatives == (composed,)
