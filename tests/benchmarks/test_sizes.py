"""The tables of sizes in the documentation are what the benchmark prints, from rates that were
measured as it says.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import sizes

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_the_tables() -> None:
    page = (DOCS / "clusters.md").read_text(encoding="utf-8")
    for part in (
        sizes.extraction(),
        sizes.training(),
        sizes.flows(),
        sizes.rates(),
        sizes.memory(),
    ):
        assert part in page


@pytest.mark.parametrize("rate", sizes.RATES, ids=lambda rate: rate.what)
def test_a_rate_was_measured_or_is_called_assumed(rate: sizes.Rate) -> None:
    if rate.quote:
        assert rate.quote in " ".join(
            (DOCS / "measured" / rate.source).read_text(encoding="utf-8").split()
        )
    else:
        assert rate.source.startswith("assumed: ")
