"""The papers' claims: every entry of the file can be tested, and what is printed of it is the
papers'.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.extensions.claims import claims
from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError

pytestmark = pytest.mark.slow

SETTINGS = settings.load(Path(__file__).parents[3] / "params.yaml")


def contrast(
    low: float, high: float, over: list[str], spread: float | None = None
) -> dict[str, Any]:
    seeds = {"a": 1 if spread is None else 2, "b": 1 if spread is None else 3}
    return {
        "over": over,
        "seeds": seeds,
        "RSUM": {
            "a": 200.0,
            "b": 210.0,
            "difference": 10.0,
            "interval": [low, high],
            "p": 0.0123,
            "resolution": 0.0,
            "adjusted": 0.0456,
            "adjusted_by": "Holm",
            "verdict": "higher",
            "spread": {"a": spread, "b": spread},
        },
    }


def test_every_claim_is_of_recipes_that_there_are_and_of_published_rows() -> None:
    differences = {}
    for claim in claims.load(Path()):
        assert {claim.better.recipe, claim.worse.recipe} <= set(SETTINGS.recipes)
        differences[claim.claim] = claims.published_difference(claim.published)
    assert differences["AdPool is better than mean pooling"] == 7.8
    assert differences["AdOpt is better than the hard triplet loss"] == 9.0
    assert differences["VSE+2AD is better than VSE∞"] == 5.6
    assert differences["Patches add to regions and grids"] == 4.2
    assert min(filter(None, differences.values())) > 0
    assert differences["AdOpt is better than InfoNCE over all negatives"] is None


def test_a_projects_own_claims_come_before_the_built_in_ones(tmp_path: Path) -> None:
    assert claims.load(tmp_path) == claims.load(Path())
    (tmp_path / "manifests").mkdir()
    file = tmp_path / "manifests" / "claims.yaml"
    file.write_text(
        "- {claim: mine, where: here, better: {recipe: vse2ad}, worse: {recipe: vse_pp}}"
    )
    assert [claim.claim for claim in claims.load(tmp_path)] == ["mine"]
    file.write_text("- {claim: mine}")
    with pytest.raises(InputError, match=str(file)):
        claims.load(tmp_path)


def test_claims_of_features_that_a_run_lacks_are_not_tested() -> None:
    by_name = {claim.claim: claim for claim in claims.load(Path())}
    assert claims.can_be_tested(by_name["AdPool is better than mean pooling"], ["grid"])
    assert not claims.can_be_tested(by_name["Grids add to regions"], ["region"])
    assert claims.can_be_tested(by_name["Grids add to regions"], ["region", "grid"])
    assert not claims.can_be_tested(by_name["Patches add to regions and grids"], ["region", "grid"])


def test_published_rows_must_be_one_each() -> None:
    pair = claims.load(Path())[0].published
    assert pair is not None
    with pytest.raises(InputError, match=r"vse2ad_table1\.csv: 0 rows with"):
        claims.published_difference(pair.model_copy(update={"better": {"method": "none"}}))
    with pytest.raises(InputError, match=r"rows with .*; expected one"):
        claims.published_difference(pair.model_copy(update={"better": {}}))


@pytest.mark.specification
@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("higher", "holds"),
        ("lower", "does not"),
        ("cannot tell; 9 seeds would suffice", "cannot tell; 9 seeds would suffice"),
    ],
)
def test_a_claim_is_decided_by_the_comparison(verdict: str, said: str) -> None:
    found = contrast(1, 19, ["images"])
    found["RSUM"] |= {"verdict": verdict}
    assert claims.verdict(found) == said
    assert claims.verdict(None) == "not tested"


def test_the_table_says_what_was_measured_and_over_what() -> None:
    first, second, *_ = claims.load(Path())
    own = first.model_copy(update={"published": None})
    table = claims.to_markdown(
        [
            claims.Tested(first, 5.6, contrast(1, 19, ["images", "seeds"], 2.0)),
            claims.Tested(second, 55.8, None),
            claims.Tested(own, None, None),
        ],
        "flickr8k, val.",
    )
    assert (
        "| +5.6 | 200.0 ± 2.0 | 210.0 ± 2.0 | 2, 3 | +10.0 [+1.0, +19.0] | 0.012 | 0.046 | holds |"
        in table
    )
    assert f"| {own.where} | – | – | – | – | – | – | – | not tested |" in table
    assert "| +55.8 | – | – | – | – | – | – | not tested |" in table
    assert "flickr8k, val." in table
    assert "over images and seeds" in table
    assert "single seed" not in table
    assert "95 %" not in claims.to_markdown([claims.Tested(first, 5.6, None)], "")
    assert "single seed" in claims.to_markdown(
        [claims.Tested(first, 5.6, contrast(1, 19, ["images"]))], ""
    )


def test_a_single_seed_is_said_where_any_interval_is_over_images_alone() -> None:
    claim, *_ = claims.load(Path())
    alone, both = contrast(1, 19, ["images"]), contrast(1, 19, ["images", "seeds"], 2.0)
    for contrasts, is_said in (
        ([alone], True),
        ([both], False),
        ([both, alone], True),
        ([], False),
    ):
        tested = [claims.Tested(claim, 5.6, of_claim) for of_claim in contrasts]
        assert ("single seed" in claims.to_markdown(tested, "")) is is_said
    two = claims.to_markdown([claims.Tested(claim, 5.6, each) for each in (alone, both)], "")
    assert "over images or over images and seeds" in two


def test_a_terminal_s_lines_have_80_columns() -> None:
    found = contrast(-100.0, 119.0, ["images", "seeds"], 12.0)
    found["RSUM"] |= {"difference": -110.0, "p": 0.000123, "adjusted": 0.000456, "verdict": "lower"}
    text = claims.to_text(
        [claims.Tested(each, -12.3, found) for each in claims.load(Path())], "flickr8k, val; " * 9
    )
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert text.startswith(
        "1  VSE+2AD is better than VSE∞: does not (VSE+2AD, Table 1, Flickr30K; published\n  −12.3; "
        "seeds 2, 3)\n2  "
    )
    assert "  1     200.0 ± 12.0  210.0 ± 12.0  −110.0 [−100.0, +119.0]  0.00012  0.00046\n" in text
    assert "worse" not in claims.to_text([claims.Tested(claims.load(Path())[0], 5.6, None)], "")
