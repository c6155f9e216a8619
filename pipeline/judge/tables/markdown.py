"""Tables in GitHub's Markdown.

Markdown has one row of headings and no colours: the headings above a column are joined to its own
by line breaks, and every best number is plain bold.
"""

import re

from pipeline.foundation.parts.wrapping import printable
from pipeline.judge.tables.fitting import ACL, Paper, stacked
from pipeline.judge.tables.table import RAISED, Cell, Panel, Table

# Kind of column -> how Markdown aligns it.
ALIGNMENTS = {"text": ":--", "number": "--:"}


def escape(text: str) -> str:
    """Escape text for Markdown: no mark-up, cell border, formula, HTML or control character
    in it takes effect.
    """
    line = printable(" ".join(text.split()))
    plain = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]|~$])", r"\\\1", plain)


def to_markdown(table: Table, paper: Paper = ACL) -> str:
    """Render a table: its panels, each with its caption, its notes, and what made its measured
    numbers.
    """
    panels = [_panel(stacked(panel, paper)) for panel in table.panels]
    return "\n\n".join(panels) + "\n"


def rows(panel: Panel) -> str:
    """Write a panel's headings and rows."""
    headings = []
    alignments = []
    for column in panel.columns:
        column_headings = filter(None, (*column.above, column.heading))
        headings.append("<br>".join(map(escape, column_headings)))
        alignments.append(ALIGNMENTS[column.kind])
    table_rows = [headings, alignments]
    for group in panel.groups:
        if group.title:
            empty = [""] * (len(panel.columns) - 1)
            table_rows.append([f"*{escape(group.title)}*", *empty])
        table_rows += [list(map(_cell, row.cells)) for row in group.rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table_rows)


def _panel(panel: Panel) -> str:
    notes = []
    for note in panel.notes:
        line = f"- {_superscript(note.mark)} {escape(note.text)}"
        notes.append(line.replace("-  ", "- "))
    notes += [f"- {escape(line)}" for line in panel.made_from]
    lines = [_label(panel.caption), "", rows(panel)]
    if notes:
        lines += ["", *notes]
    return "\n".join(lines)


def _cell(cell: Cell) -> str:
    text = _label(cell.text)
    if cell.bold and cell.text:
        text = f"**{text}**"
    return text + cell.after + _superscript("".join(cell.marks))


def _label(text: str) -> str:
    """A text in which T^ANCE means a raised ANCE."""
    pieces = RAISED.split(text)
    # Raised pieces are every second one.
    pieces[::2] = map(escape, pieces[::2])
    pieces[1::2] = map(_superscript, pieces[1::2])
    return "".join(pieces)


def _superscript(mark: str) -> str:
    if not mark:
        return ""
    return f"<sup>{escape(mark)}</sup>"
