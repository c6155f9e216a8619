"""Text that a spreadsheet would run as a formula when it opens a CSV file."""

from __future__ import annotations

from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cell(value: Any) -> Any:
    """Put an apostrophe before text that begins like a formula; spreadsheets then show it as text.

    For files that people open. Files that are read again hold what the data say.

    Args:
        value: Of a cell or a column's name.

    Returns:
        The value, or the text with an apostrophe.

    Source: OWASP, CSV Injection.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
