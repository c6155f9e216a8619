"""Tables in LaTeX, and the floats of figures.

`to_latex` makes a file for \\input. Its first line names the packages that the document needs, its
second the width of text that it is made for. Comments say what made the numbers. All text is
escaped, so that none is executed.
"""

import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pipeline.foundation.files.parsing import from_yaml
from pipeline.foundation.parts.errors import InputWarning, counted
from pipeline.foundation.parts.wrapping import printable
from pipeline.judge.tables.fitting import ACL, GAP, LEADING, LEAST, LONGEST_LINE, Paper, Part, fit
from pipeline.judge.tables.table import (
    MISSING,
    RAISED,
    Cell,
    Column,
    Note,
    Panel,
    RowGroup,
    Table,
    TableRow,
)

Style = Literal["booktabs", "plain"]
# How rules and characters are set, and the text before and after tables and figures.
_SETTING_FILE = Path(__file__).with_name("latex.yaml")
SETTING: dict[str, Any] = from_yaml(_SETTING_FILE.read_text(encoding="utf-8"))
RULES = SETTING["rules"]
# As `escape` prints a character without a spelling
CODE_POINT = re.compile(r"\{\[\}U\+([0-9A-F]{4,6})\{\]\}")
# The room of a digit.
BLANK = r"\phantom{0}"
# A tick, of the package amssymb.
TICK = r"\checkmark"
# The table is scaled down where the document's columns are narrower.
FITTED = "{adjustbox}"
NUMBERS = r"\sisetup{mode=text,detect-weight=true,retain-explicit-plus=true,group-separator={,},group-minimum-digits=4}"


def to_latex(table: Table, paper: Paper = ACL, style: Style = "booktabs") -> str:
    """Render a table."""
    labels: dict[str, int] = {}
    floats = []
    for panel in table.panels:
        for part in fit(panel, paper):
            name = f"{table.name}-{part.panel.key}".rstrip("-")
            label = f"tab:{_key(name)}"
            labels[label] = labels.get(label, 0) + 1
            if labels[label] > 1:
                label = f"{label}-{labels[label]}"
            floats.append(_float(part, label, style))
    source = "\n".join(floats)
    packages = SETTING["packages"][style]
    if TICK in source:
        packages = f"amssymb,{packages}"
    needed = f"% Needs \\usepackage{{{packages}}}; siunitx of version 3 (TeX Live 2021)."
    made_for = (
        f"% Made for text {paper.text:.1f} cm wide, scaled down in narrower text. Set "
        "typesetting.text_width to the document's: 12.1 for article in one column."
    )
    return "\n".join([needed, made_for, *_unset(table.name, source), source])


def figure(name: str, caption: str, wide: bool) -> str:
    """The float of a figure, for a file beside NAME.pdf."""
    fields = {"kind": "figure", "name": name, "caption": escape(caption), "key": _key(name)}
    if wide:
        fields["kind"] = "figure*"
    source = re.sub("@(kind|name|caption|key)@", lambda field: fields[field[1]], SETTING["figure"])
    return "\n".join([*_unset(name, source), source])


def _unset(name: str, source: str) -> list[str]:
    """A comment on the characters that pdflatex cannot set, with a warning; [] where there are
    none.
    """
    codes = sorted({int(code, 16) for code in CODE_POINT.findall(source)})
    if not codes:
        return []
    shown = ", ".join(f"U+{code:04X}" for code in codes[:3])
    if len(codes) > 3:
        shown += ", …"
    advice = (
        f"{counted(len(codes), 'character')} that pdflatex cannot set: their code points are printed ({shown}); "
        "to show them, write them there and run xelatex or lualatex with \\usepackage{fontspec} and "
        "\\setmainfont{a font of their script}"
    )
    warnings.warn(f"{name}.tex: {advice}", InputWarning, stacklevel=3)
    return [f"% {comment(advice)}"]


def preview(floats: Iterable[str]) -> str:
    """A document that shows tables or figures, those of one file on pages of their own."""
    preamble: str = SETTING["preamble"]
    return preamble + "\\clearpage\n".join(floats) + "\\end{document}\n"


@dataclass(frozen=True)
class _NumberColumn:
    """How the numbers of a column are set."""

    whole: int  # the most digits before the decimal point
    decimals: int  # the most digits after it
    is_signed: bool  # whether a number has a sign
    longest: Cell  # the one with the longest ±, × or interval after its number, if any has one

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> "_NumberColumn":
        """Find the digits and signs of a column's numbers."""
        whole = 1
        decimals = 0
        is_signed = False
        longest = Cell()
        for cell in cells:
            number = cell.number
            if number is None:
                continue
            whole = max(whole, _whole_digits(number))
            decimals = max(decimals, decimal_places(number))
            is_signed |= number < 0 or (number > 0 and cell.is_difference)
            longest = max(longest, cell, key=lambda cell: len(cell.after) + cell.is_factor)
        return cls(whole, decimals, is_signed, longest)

    def __str__(self) -> str:
        """A column of the package siunitx, with room for what follows a number in its cell."""
        sign = "+" if self.is_signed else ""
        after = _after(self.longest)
        if after:
            after = f"{{{after}}}"
        return f"S[table-format={sign}{self.whole}.{self.decimals}{after}]"


# How a column is set; None for one of text.
_Layout = Sequence[_NumberColumn | None]


def _whole_digits(number: Decimal) -> int:
    """Count the digits before the point."""
    return len(str(abs(int(number))))


def decimal_places(number: Decimal) -> int:
    """Count the digits after the point."""
    return max(0, -int(number.as_tuple().exponent))


def _float(part: Part, label: str, style: Style) -> str:
    panel = part.panel
    rules = RULES[style]
    kind = "table*" if part.wide else "table"
    layout: list[_NumberColumn | None] = []
    columns = ""
    for index, column in enumerate(panel.columns):
        if column.kind == "number":
            number_column = _NumberColumn.of(_cells(panel, index))
            layout.append(number_column)
            columns += str(number_column)
        else:
            layout.append(None)
            columns += _text_column(part, index)
    caption = _label(f"{panel.caption} {panel.colours}")
    lines = [f"% {comment(line)}" for line in panel.made_from]
    lines.append(rf"\begin{{{kind}}}[tp]")
    lines.append(r"\centering")
    lines.append(NUMBERS)
    lines.append(rf"\caption{{{caption}}}\label{{{label}}}")
    lines.append(rf"\par\smallskip{_size(part.size, part.size * LEADING)}")
    lines.append(rf"\setlength{{\tabcolsep}}{{{GAP / 2:.1f}pt}}")
    lines.append(rf"\begin{FITTED}{{max width=\linewidth}}")
    lines.append(rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}")
    lines.append(rules["top"])
    lines += _headings(part.panel, rules["span"])
    for number, group in enumerate(panel.groups):
        lines += _group(group, number, part, layout, style)
    lines += [rules["bottom"], r"\end{tabular}", rf"\end{FITTED}"]
    lines += _notes(panel.notes)
    lines += [rf"\end{{{kind}}}", ""]
    return "\n".join(lines)


def _cells(panel: Panel, index: int) -> list[Cell]:
    """The cells of a column, from top to bottom."""
    cells = []
    for group in panel.groups:
        cells += [row.cells[index] for row in group.rows]
    return cells


def _text_column(part: Part, index: int) -> str:
    """A column of text, broken into lines where the table is too wide and the text is long."""
    longest = max((len(cell.text) for cell in _cells(part.panel, index)), default=0)
    if part.is_broken and longest > LONGEST_LINE:
        return rf">{{\raggedright\arraybackslash}}p{{{LONGEST_LINE / 2:g}em}}"
    return "l"


def _size(size: float, leading: float) -> str:
    """Choose a size of type and the distance of its lines in points."""
    return rf"\fontsize{{{size:g}}}{{{leading:g}}}\selectfont"


def _headings(panel: Panel, rule: str) -> Iterator[str]:
    for spans in panel.heading_rows():
        cells = []
        rules = []
        first = 1
        for title, count in spans:
            if title:
                cells.append(rf"\multicolumn{{{count}}}{{c}}{{{escape(title)}}}")
                rules.append(rf"{rule}{{{first}-{first + count - 1}}}")
            else:
                cells.append("&" * (count - 1))
            first += count
        yield " & ".join(cells) + r" \\"
        yield "".join(rules)
    yield " & ".join(map(_heading, panel.columns)) + r" \\"


def _heading(column: Column) -> str:
    heading = escape(column.heading)
    if column.kind == "text":
        return heading
    return f"{{{heading}}}"


def _group(
    group: RowGroup, number: int, part: Part, layout: _Layout, style: Style
) -> Iterator[str]:
    if group.title or number == 0:
        yield RULES[style]["middle"]
    else:
        yield RULES[style]["space"]
    if group.title:
        title = escape(group.title)
        if len(group.title) > part.characters:
            title = rf"\parbox{{{part.characters / 2:.1f}em}}{{\centering {title}}}"
        yield rf"\multicolumn{{{len(layout)}}}{{c}}{{\textit{{{title}}}}} \\"
    for row in group.rows:
        yield _row(row, layout)


def _row(row: TableRow, layout: _Layout) -> str:
    line = " & ".join(map(_cell, row.cells, layout)) + r" \\"
    sources = comment(", ".join(row.sources))
    if sources:
        return f"{line} % {sources}"
    return line


def _cell(cell: Cell, numbers: _NumberColumn | None) -> str:
    marks = ""
    if cell.marks:
        marks = _superscript("".join(cell.marks))
    if numbers is None:
        text = _label(cell.text)
        if cell.bold:
            text = rf"\textbf{{{text}}}"
        return text + marks
    if marks:  # of no width: columns stay aligned
        marks = rf"\rlap{{\normalfont\normalcolor{marks}}}"
    if cell.number is None:
        return _wordy(cell, marks)
    if cell.spread is not None:
        return _with_spread(cell, cell.number, marks, numbers)
    number = _number(cell, cell.number)
    after = _after(cell) + marks
    if after:
        return f"{number}{{{after}}}"
    return number


def _with_spread(cell: Cell, value: Decimal, marks: str, numbers: _NumberColumn) -> str:
    """A mean over seeds with its deviation, as a text: siunitx leaves no room for it where the row
    is put under the headings of a table without deviations.

    Digits that others of its column have more are blank, so that the points stand below each other.
    """
    missing = numbers.whole - _whole_digits(value)
    number = f"{abs(value):,}"
    if value < 0:
        number = f"$-${number}"
    if cell.bold:
        number = f"{{{_weight(cell)}{number}}}"
    missing_of_spread = len(numbers.longest.after) - len(cell.after)
    after = _after(cell) + BLANK * missing_of_spread
    return f"{{{BLANK * missing}{number}{{{after}}}{marks}}}"


def _wordy(cell: Cell, marks: str) -> str:
    """A cell of a column of numbers that has none."""
    latex_text = escape(cell.text)
    if cell.text == MISSING:
        latex_text = "--"
    latex_text += marks
    if latex_text:
        return f"{{{latex_text}}}"
    return ""


def _number(cell: Cell, value: Decimal) -> str:
    number = f"{value}"
    if cell.is_difference and value:
        number = f"{value:+}"
    return _weight(cell) + number


def _weight(cell: Cell) -> str:
    """What sets a number bold, and in which colour; "" for one that is not bold."""
    if cell.bold is None:
        return ""
    if cell.bold == "black":
        return r"\bfseries "
    return rf"\color{{{cell.bold}}}\bfseries "


def _after(cell: Cell) -> str:
    """What follows a number."""
    if not cell.after and cell.is_factor:
        return r"$\times$"
    if not cell.after:
        return ""
    small = rf"$\pm$\,{cell.spread}"
    if cell.spread is None:
        small = escape(cell.after)
    return rf"{_size(LEAST, LEAST)}\,{small}"


def _notes(notes: Iterable[Note]) -> Iterator[str]:
    latex_notes = []
    for note in notes:
        mark = ""
        if note.mark:
            mark = _superscript(note.mark) + "~"
        latex_notes.append(mark + escape(note.text))
    if latex_notes:
        yield r"\par\smallskip"
        yield rf"\parbox{{\linewidth}}{{{_size(LEAST, LEAST * LEADING)}\raggedright"
        yield " \\\\\n".join(latex_notes) + "}"


def _label(text: str) -> str:
    """A text in which T^ANCE means a raised ANCE."""
    pieces = RAISED.split(text)
    # Raised pieces are every second one.
    pieces[::2] = map(escape, pieces[::2])
    pieces[1::2] = map(_superscript, pieces[1::2])
    return "".join(pieces)


def _superscript(mark: str) -> str:
    """A raised mark. \\textsuperscript would set it in 5 points."""
    return rf"\raisebox{{0.35em}}[0pt][0pt]{{{_size(LEAST, LEAST)} {escape(mark)}}}"


def _key(name: str) -> str:
    """A name as part of a label, where escapes do not work."""
    return re.sub("[^A-Za-z0-9]+", "-", name)


def escape(text: str) -> str:
    """Escape text for LaTeX: no command, formula or comment in it takes effect.

    White space becomes one space, unbreakable if the text's was or if it is that of 5 %; a
    character without a LaTeX spelling is printed as its code point.
    """
    plain = re.sub(r"[^\S\u00a0]+", " ", unicodedata.normalize("NFC", text).strip())
    # Braces keep TeX from joining hyphens into a dash.
    escaped = re.sub("-(?=-)", "-{}", "".join(map(_escape_character, plain)))
    return re.sub(r"(?<=\d)[ ~]\\%", r"\\,\\%", escaped)


def comment(text: str) -> str:
    """Prepare a text for a comment in LaTeX, after a percent sign: one line of printable ASCII."""
    comment_line = printable(" ".join(unicodedata.normalize("NFKC", text).split()))
    return comment_line.encode("ascii", "backslashreplace").decode()


def _escape_character(character: str) -> str:
    if character in SETTING["characters"]:
        return str(SETTING["characters"][character])
    if " " <= character <= "~":
        return character
    decomposed = unicodedata.normalize("NFD", character)
    base = decomposed[:1]
    accent = decomposed[1:]
    if base.isascii() and base.isalpha() and accent in SETTING["accents"]:
        return f"{SETTING['accents'][accent]}{{{base}}}"
    return f"{{[}}U+{ord(character):04X}{{]}}"
