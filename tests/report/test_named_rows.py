"""Published rows by name: one spelling for --beside and --published, and what a miss lists."""

from __future__ import annotations

import pytest

from pipeline.foundation.evaluation.retrieval import PROTOCOLS
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.tables import named_rows
from pipeline.run.report import rows

# As VSE∞'s Table 2 and VSE+2AD's Table 1 print VSE∞, region and grid features, BERT, on Flickr30K.
PRINTED = ("85.3", "97.2", "98.9", "66.7", "89.9", "94.0", "532.0")


@pytest.mark.parametrize(
    "spelt",
    [
        "flickr30k:VSE∞ RG bert",
        "flickr30k:VSEinf RG BERT",
        "Flickr30K: bert vse_infty rg",
        "flickr30k:VSE-infinity (RG) BERT",
        r"flickr30k:VSE$_{\infty}$ RG BERT",
    ],
)
def test_one_row_in_every_spelling(spelt: str) -> None:
    row = named_rows.one(spelt, "--published")
    printed = tuple(str(row.value(statistic)) for statistic in named_rows.STATISTICS)
    assert printed == PRINTED


def test_a_plus_may_be_left_out_or_spelt() -> None:
    for spellings in (
        ("VSE++ R BERT", "vsepp R bert", "vse_pp R bert", "VSEplusplus R bert"),
        ("VSE+2AD RGP BERT", "vse2ad RGP bert"),
        ("SEP+CO", "sep+co", "SEPCO"),
    ):
        chosen = [named_rows.chosen(f"flickr30k:{spelt}", "--beside") for spelt in spellings]
        assert len(chosen[0]) == 1
        assert all(each == chosen[0] for each in chosen)
    # VSE++ is not VSE, nor VSE∞.
    methods = {each.row["method"] for each in named_rows.chosen("coco_5k:vsepp", "--beside")}
    assert methods == {"VSE++", "Our: VSE++"}


@pytest.mark.parametrize("benchmark", named_rows.BENCHMARKS)
def test_every_rows_own_name_names_it_alone(benchmark: str) -> None:
    every = named_rows.of_benchmark(named_rows.BENCHMARKS[benchmark])
    assert every
    for each in every:
        assert named_rows.one(f"{benchmark}:{each.name}", "--published") is each.row, each.name
        shown, _ = rows._published(f"{benchmark}:{each.name}")
        assert len(shown) == 1, each.name
        for statistic in named_rows.STATISTICS:
            cell = shown[0].numbers.get((each.row["dataset"], statistic))
            if cell is not None:
                assert cell.number == each.row.value(statistic), each.name
        assert named_rows.protocol_of(each.row) in PROTOCOLS


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "flickr30k:VSE∞ RX",
            "no published row has 'VSE∞ RX'; the nearest: VSE∞ R BUTD bigru (i2t_R@1=76.5,i2t_R@5=94.2,"
            "i2t_R@10=97.7,t2i_R@1=56.4,t2i_R@5=83.4,t2i_R@10=89.9,RSUM=498.1); VSE∞ R BUTD bert (i2t_R@1=81.7,",
        ),
        (
            "flickr30k:VSE∞ RG",
            "2 published rows are of it; name one by more words, such as: VSE∞ RG bigru (i2t_R@1=80.7",
        ),
        ("flickr30k:vse infinity RG", "2 published rows are of it"),
        (
            "flickr30k:VSE ++ R bert x",
            "no published row has 'VSE ++ R bert x'; the nearest: VSE++ ",
        ),
        ("flickr30k:VSE2AD,VSE∞", "published rows are of it"),
        ("flickr30k", "published rows are of it"),
        (
            "vse_infty_table10:4",
            "no published rows of it are shipped; there are those of flickr30k",
        ),
    ],
)
def test_what_names_no_row_or_several_lists_them_with_numbers_to_type(
    asked: str, said: str
) -> None:
    with pytest.raises(InputError, match=r"^--published [^\n]*$") as refused:
        named_rows.one(asked, "--published")
    assert said in str(refused.value)


def test_rows_whose_words_begin_with_what_was_typed_are_the_nearest() -> None:
    for typed, methods in (("vse", ["VSE∞", "VSE++", "VSE+2AD"]), ("cvs", ["CVSE"])):
        with pytest.raises(InputError) as refused:
            named_rows.chosen(f"flickr30k:{typed}", "--beside")
        rows = str(refused.value).partition("the nearest: ")[2].split("; ")
        assert [row.split()[0] for row in rows[: len(methods)]] == methods
