"""Tables in LaTeX.

`to_latex` gives a file for \\input. Its document needs the packages booktabs, xcolor and graphicx, as in
`preview`; a table wider than the line is scaled down to it, a narrower one is left as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from pipeline.report.table import Cell, Column, Note, Panel, Row, RowGroup, Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "#": r"\#",
    "$": r"\$",
    "%": r"\%",
    "&": r"\&",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    "`": r"\textasciigrave{}",
    # At the start of a row these would be read as arguments of the \\ before it.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "∞": r"$\infty$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": "$-$",
    "Δ": r"$\Delta$",
    "→": r"$\rightarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "✓": r"$\surd$",
    "✗": r"$\times$",
    "…": r"\ldots{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "ß": r"\ss{}",
    "ø": r"\o{}",
    "æ": r"\ae{}",
    "ł": r"\l{}",
}
_ACCENTS = {
    "\N{COMBINING GRAVE ACCENT}": r"\`",
    "\N{COMBINING ACUTE ACCENT}": r"\'",
    "\N{COMBINING CIRCUMFLEX ACCENT}": r"\^",
    "\N{COMBINING TILDE}": r"\~",
    "\N{COMBINING DIAERESIS}": r"\"",
    "\N{COMBINING RING ABOVE}": r"\r",
    "\N{COMBINING CARON}": r"\v",
    "\N{COMBINING CEDILLA}": r"\c",
}

NARROW = 2.4  # em: what R@10 and 100.0 take anyway

PREAMBLE = r"""\documentclass{article}
\usepackage[a4paper,margin=15mm]{geometry}
\usepackage{booktabs,xcolor,graphicx}
\begin{document}
"""


def escape(text: str) -> str:
    """`text` for LaTeX, pure ASCII: whatever it holds, it is printed and never run.

    White space of any kind becomes one space. A character that has no spelling here is printed as its number,
    e.g. [U+4E2D].
    """
    plain = " ".join(unicodedata.normalize("NFC", text).split())
    # Braces keep TeX from joining hyphens into a dash.
    return re.sub("-(?=-)", "-{}", "".join(map(_escape_character, plain)))


def _escape_character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if " " <= character <= "~":
        return character
    base, accent = unicodedata.normalize("NFD", character)[:1], unicodedata.normalize("NFD", character)[1:]
    if base.isascii() and base.isalpha() and accent in _ACCENTS:
        return f"{_ACCENTS[accent]}{{{base}}}"
    return f"{{[}}U+{ord(character):04X}{{]}}"


def to_latex(table: Table) -> str:
    """A `table*` environment for each panel; the first has the label `tab:{name}`, the others refer to it."""
    label = f"tab:{table.name.replace('_', '-')}"
    first, *others = table.panels
    floats = [_float(first, rf"\caption{{{escape(table.caption)}}}\label{{{label}}}")]
    for panel in others:
        floats.append(
            _float(panel, rf"\caption{{{escape(panel.title)}. Otherwise as Table~\ref{{{label}}}.}}")
        )
    return "% Needs \\usepackage{booktabs,xcolor,graphicx}.\n" + "\n".join(floats)


def figure(name: str, caption: str, wide: bool) -> str:
    """A float for NAME.pdf, which stands beside the file; `wide` ones span both columns. Label `fig:{name}`."""
    kind = "figure*" if wide else "figure"
    return rf"""% Needs \usepackage{{graphicx}}; where NAME.pdf lies elsewhere, \graphicspath{{{{folder/}}}}.
\begin{{{kind}}}[tp]
\centering
\includegraphics[width=\linewidth]{{{name}.pdf}}
\caption{{{escape(caption)}}}\label{{fig:{name.replace("_", "-")}}}
\end{{{kind}}}
"""


def preview(floats: Iterable[str], columns: int = 1) -> str:
    """A document of its own that shows tables or figures, one a page."""
    start = PREAMBLE.replace("{article}", "[twocolumn]{article}") if columns == 2 else PREAMBLE
    return start + "\\clearpage\n".join(floats) + "\\end{document}\n"


def _float(panel: Panel, caption: str) -> str:
    notes = r" \\".join("\n" + _note(note) for note in panel.notes)
    return rf"""\begin{{table*}}[tp]
\centering\small
{caption}
\smallskip
\resizebox{{\ifdim\width>\linewidth\linewidth\else\width\fi}}{{!}}{{%
\begin{{tabular}}{{{"".join(column.align for column in panel.columns)}}}
\toprule
{_body(panel)}
\bottomrule
\end{{tabular}}}}
\par\smallskip
\begin{{minipage}}{{\linewidth}}\footnotesize\raggedright{notes}
\end{{minipage}}
\end{{table*}}
"""


def _body(panel: Panel) -> str:
    groups = (
        line for number, group in enumerate(panel.groups) for line in _group(group, number, panel.columns)
    )
    return "\n".join((*_headings(panel), *groups))


def _headings(panel: Panel) -> Iterable[str]:
    for spans in panel.heading_rows():
        cells, rules, first = [], [], 1
        for title, width in spans:
            last = first + width - 1
            cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(title)}}}" if title else "&" * (width - 1))
            if title:
                rules.append(rf"\cmidrule(lr){{{first}-{last}}}")
            first = last + 1
        yield " & ".join(cells) + r" \\"
        yield "".join(rules)
    yield " & ".join(map(_heading, panel.columns, _least_widths(panel))) + r" \\"


def _heading(column: Column, width: float) -> str:
    text = escape(column.heading)
    return rf"\makebox[{width:.1f}em][{column.align}]{{{text}}}" if width else text


def _least_widths(panel: Panel) -> list[float]:
    """How wide each column must be, in em, to carry its share of a long heading above; 0 where any width does.

    TeX would give all that such a heading needs to the last of its columns.
    """
    widths = [0.0] * len(panel.columns)
    for spans in panel.heading_rows():
        first = 0
        for title, columns in spans:
            # An average letter takes about half an em, the space between two columns 1.2 em.
            share = (0.48 * len(title) - 1.2 * (columns - 1)) / columns
            if share > NARROW and columns > 1:
                widths[first:first + columns] = [max(share, width) for width in widths[first:first + columns]]
            first += columns
    return widths


def _group(group: RowGroup, number: int, columns: tuple[Column, ...]) -> Iterable[str]:
    yield r"\midrule" if group.title or number == 0 else r"\addlinespace"
    if group.title:
        yield rf"\multicolumn{{{len(columns)}}}{{c}}{{\textit{{{escape(group.title)}}}}} \\"
    yield from (_row(row, columns) for row in group.rows)


def _row(row: Row, columns: tuple[Column, ...]) -> str:
    sources = " ".join(", ".join(row.sources).split()).encode("ascii", "backslashreplace").decode()
    return " & ".join(map(_cell, row.cells, columns)) + r" \\" + (f" % {sources}" if sources else "")


def _cell(cell: Cell, column: Column) -> str:
    text = escape(cell.text)
    if cell.bold:
        text = rf"\textbf{{{text}}}"
    if cell.bold and cell.bold != "black":
        text = rf"\textcolor{{{cell.bold}}}{{{text}}}"
    if cell.spread:
        text += rf"{{\scriptsize\,$\pm$\,{escape(cell.spread)}}}"
    if not cell.marks:
        return text
    mark = _superscript("".join(cell.marks))
    # A number keeps its place in the column, its mark hangs over.
    return text + (rf"\rlap{{{mark}}}" if column.align == "r" else mark)


def _note(note: Note) -> str:
    return (_superscript(note.mark) + "~" if note.mark else "") + escape(note.text)


def _superscript(mark: str) -> str:
    return rf"\textsuperscript{{{escape(mark)}}}"
