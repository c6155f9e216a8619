"""Tables in LaTeX, and the floats of figures.

`to_latex` makes a file for \\input. The document needs the packages booktabs, xcolor and graphicx, as in `preview`. A
table wider than the line is scaled down to it; a narrower one keeps its size.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.report.latex_text import escape
from pipeline.report.table import Cell, Column, Note, Panel, RowGroup, Table, TableRow

NARROW = 2.4  # em: the width of R@10 and 100.0

PREAMBLE = r"""% Run pdflatex twice: the first time finds the labels that the second refers to.
\documentclass{article}
\usepackage[a4paper,margin=15mm]{geometry}
\usepackage{booktabs,xcolor,graphicx}
\begin{document}
"""


def to_latex(table: Table) -> str:
    """Render a table.

    Args:
        table: The table.

    Returns:
        A `table*` environment for each panel; the first has the label `tab:NAME`, the others refer to it.
    """
    label = f"tab:{table.name.replace('_', '-')}"
    first, *others = table.panels
    floats = [_float(first, rf"\caption{{{escape(table.caption)}}}\label{{{label}}}")]
    for panel in others:
        floats.append(
            _float(panel, rf"\caption{{{escape(panel.title)}. Otherwise as Table~\ref{{{label}}}.}}")
        )
    return "% Needs \\usepackage{booktabs,xcolor,graphicx}.\n" + "\n".join(floats)


def figure(name: str, caption: str, wide: bool) -> str:
    """The float of a figure, for a file beside NAME.pdf.

    Args:
        name: The figure's name; its label is `fig:NAME`.
        caption: Its caption, plain text.
        wide: Whether it spans both columns of the page.

    Returns:
        A `figure` or `figure*` environment.
    """
    kind = "figure*" if wide else "figure"
    return rf"""% Needs \usepackage{{graphicx}}; where NAME.pdf lies elsewhere, \graphicspath{{{{folder/}}}}.
\begin{{{kind}}}[tp]
\centering
\includegraphics[width=\linewidth]{{{name}.pdf}}
\caption{{{escape(caption)}}}\label{{fig:{name.replace("_", "-")}}}
\end{{{kind}}}
"""


def preview(floats: Iterable[str], columns: int = 1) -> str:
    """A document that shows tables or figures, one on each page.

    Args:
        floats: What `to_latex` or `figure` returned.
        columns: Columns of text on a page, 1 or 2.

    Returns:
        A complete LaTeX document.
    """
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
    """The least width of each column under a long heading, in em; 0 where any width will do.

    TeX would give all the width that such a heading needs to the last of its columns.
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


def _row(row: TableRow, columns: tuple[Column, ...]) -> str:
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
    # The mark takes no width, so that the numbers of a column stay aligned.
    return text + (rf"\rlap{{{mark}}}" if column.align == "r" else mark)


def _note(note: Note) -> str:
    return (_superscript(note.mark) + "~" if note.mark else "") + escape(note.text)


def _superscript(mark: str) -> str:
    return rf"\textsuperscript{{{escape(mark)}}}"
