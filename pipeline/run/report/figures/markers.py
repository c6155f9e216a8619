"""The lines of figures: their markers are filled for measured numbers, and hollow for published
ones, as on the report page.
"""

from typing import Any

from pipeline.judge.figures.drawing import LINES

MEASURED: tuple[dict[str, Any], ...] = tuple(
    {**line, "markerfacecolor": line["color"]} for line in LINES
)
PUBLISHED: tuple[dict[str, Any], ...] = tuple(
    {**line, "markerfacecolor": "white"} for line in LINES
)
