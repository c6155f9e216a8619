"""Published numbers as people write them, published rows, and numbers that no metric can be."""

from __future__ import annotations

import pytest

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.explain.printed import read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R@1=58.4", ["R@1 58.4"]),
        ("i2t_R@1=58.4,t2i_R@5 = 62.4 ,RSUM=500.2", ["i2t R@1 58.4", "t2i R@5 62.4", "RSUM 500.2"]),
        ("TR@1=58.4,IR@5=62.4", ["i2t R@1 58.4", "t2i R@5 62.4"]),
        ("t2v_r10=34.1", ["t2i R@10 34.1"]),
        ("image_retrieval_recall@5=0.8575999736785889", ["t2i R@5 85.7600"]),
        ("txt_r1=58.1,img_r1=40", ["i2t R@1 58.1", "t2i R@1 40"]),
        ("test_txt_r10=58.1,val_img_r5=40", ["i2t R@10 58.1", "t2i R@5 40"]),
        ("image_to_text_R@1=58.1,text_to_image_R@5=40", ["i2t R@1 58.1", "t2i R@5 40"]),
        ("mR=0.3712", ["mR 37.12"]),
        ("R@1=0.58", ["R@1 0.58"]),
        ("i2t.MedR=2,t2i medr=3.5", ["i2t MedR 2", "t2i MedR 3.5"]),
        ("R@1=58%", ["R@1 58"]),
        ("R@1=0.584%", ["R@1 0.584"]),
    ],
)
def test_numbers(text: str, expected: list[str]) -> None:
    numbers, row = read(text)
    assert (list(map(str, numbers)), row) == (expected, None)


@pytest.mark.parametrize(
    ("text", "nearest", "truncated", "coarser"),
    [
        ("R@1=12.3", "58.4", "58.3", "58.0"),
        ("R@1=12.34", "58.37", "58.36", "58.40"),
        ("R@1=12", "58", "58", "58"),  # there is no digit less after the point
    ],
)
def test_a_measured_number_is_rounded_as_the_published_one(
    text: str, nearest: str, truncated: str, coarser: str
) -> None:
    (number,) = read(text)[0]
    measured = {how: str(number.rounded(58.366, how)) for how in ("nearest", "truncated")}
    assert measured == {"nearest": nearest, "truncated": truncated}
    assert str(number.rounded(58.366, "coarser")) == coarser


def test_an_exact_half_is_both_numbers_beside_it() -> None:
    """Of 94.35 print makes 94.3 and numpy 94.4; sums of floats are a little off the half."""
    for value, how, equal in (
        (94.35, "nearest", ("94.3", "94.4")),
        (94.45, "nearest", ("94.4", "94.5")),
        ((94.1 + 94.6) / 2, "nearest", ("94.3", "94.4")),
        (94.35 + 3e-14, "nearest", ("94.3", "94.4")),
        (94.35 - 3e-14, "nearest", ("94.3", "94.4")),
        (94.3501, "nearest", ("94.4",)),
        (94.3499, "nearest", ("94.3",)),
        (2.5, "nearest", ("2", "3")),
        (0.125, "nearest", ("0.12", "0.13")),
        (94.5, "coarser", ("94.0", "95.0")),
    ):
        for number in equal:
            (printed,) = read(f"MeanR={number}")[0]
            assert str(printed.rounded(value, how)) == number, (value, how, number)
    (printed,) = read("MeanR=94.3")[0]
    assert printed.rounded(94.3501, "nearest") != printed.number


def test_a_published_row() -> None:
    numbers, row = read("coco_5k:VSE++ G IN-R152 bigru")
    assert row is not None
    assert (row["paper"], row["table"], row.number) == ("vse_infty", "10", 1)
    assert str(numbers[0]) == "i2t R@1 41.3"
    assert [str(each) for each in numbers[-1:]] == ["RSUM 355.7"]
    (recall, *_, last) = read("coco_5k:VisualSparta")[0]  # which prints one direction and no RSUM
    assert (str(recall), str(last)) == ("t2i R@1 44.4", "t2i R@10 82.4")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("R@1=137", "no R@1 can be that; it is from 0 to 100"),
        ("RSUM=700", "it is from 0 to 600"),
        ("R@1=-3", "no R@1 can be that"),
        ("i2t_R@1=-3", "--published i2t_R@1=-3: no R@1 can be that"),
        ("R@1=abc", "'abc' is no number"),
        ("R@1=nan", "is no number"),
        ("R@1=", "is no number"),
        ("abc", "expected numbers such as R@1=58.4"),
        ("=3", "expected NAME=NUMBER"),
        ("R@1=3,R@1=4", "names a number twice"),
        ("R@5=3,R@1=4", "recalls never fall with K"),
        ("MedR=-1", "0 or more"),
        ("i2t_RSUM=3", "is of both directions"),
        ("hits=3", "unknown metric"),
        ("abc", "or a published row such as 'flickr30k:VSE∞ RG bert'"),
        ("rerank_table1:SCAN", "there are those of flickr30k, coco_1k"),
        ("coco_5k:SCAN", "2 published rows are of it"),
        ("R@1=1e999999999", "is no number"),
        ("coco_5k:", "published rows are of it"),
        ("Flickr30K", "published rows are of it; name one by more words, such as: "),
        ("i2t_R@1=90.1,r@1 = 83,3", "a decimal comma as a point, r@1 = 83.3"),
        ("R@1=83.1,3", "--published 3: expected NAME=NUMBER"),
        ("R@1=83, 3%,RSUM=300", "a decimal comma as a point, R@1=83.3%"),
        ("i2t_R@1=5,R@0=3", "needs a cutoff"),
    ],
)
def test_what_is_no_number_of_a_metric_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"^[^\n]*$") as refused:
        read(text)
    assert said in str(refused.value)
