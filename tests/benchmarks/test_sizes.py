"""The tables of sizes in the documentation are what the benchmark prints, from rates that were
measured as it says.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import numbers, sizes

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
        page, _, section = rate.source.partition("#")
        text = (DOCS / page).read_text(encoding="utf-8")
        headings = re.findall("^## (.+)$", text, re.MULTILINE)
        (content,) = (
            each
            for title, each in zip(
                headings, re.split("^## .+$", text, flags=re.MULTILINE)[1:], strict=True
            )
            if title.lower().replace(" ", "-") == section
        )
        data = re.findall(r"\(measured/data/([\w/.-]+)\.\w+\)", content)
        assert rate.quote in " ".join([*content.split(), *map(numbers.rendered_file, data)])
    else:
        assert rate.source.startswith("assumed: ")
