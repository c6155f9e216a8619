"""Characters that a terminal obeys or a reader does not see are escapes wherever text of data is
shown.
"""

import pytest

from pipeline.files.results import cell
from pipeline.report import html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31m dog", "a\\x1b[31m dog"),
        ("a\x00dog", "a\\x00dog"),
        ("gpj.\u202eexe", "gpj.\\u202eexe"),
        ("un été 犬", "un été 犬"),
    ],
)
def test_of_the_search_page_and_of_csv(text: str, shown: str) -> None:
    page = html.search(text, [html.Section(text, [])])
    assert shown in page
    assert text in page or text != shown
    assert not set(page) & {"\x1b", "\x00", "\u202e"}
    assert cell(text) == shown


def test_of_csv_lines_stay_and_formulas_are_text() -> None:
    assert cell("two\nlines") == "two\nlines"
    assert cell("=1+1\x1b") == "'=1+1\\x1b"
    assert cell("\ta") == "'\\ta"
    assert cell(3) == 3
