"""Tables in LaTeX, and the floats of figures.

`to_latex` makes a file for \\input. Its first line names the packages that the document needs, its
second the width of text that it is made for. Comments say what made the numbers. All text is
escaped, so that none is executed.
"""

import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from typing import Literal

from pipeline.parts.errors import InputWarning, counted
from pipeline.parts.wrapping import printable
from pipeline.report import fitting
from pipeline.report.fitting import ACL, LEAST, FittedColumn, Paper, Part, TextFont
from pipeline.report.table import MISSING, RAISED, Cell, Column, Note, RowGroup, Table, TableRow

Style = Literal["booktabs", "plain"]
RULES, _CHARACTERS, _ACCENTS = (
    fitting.SETTING[name] for name in ("rules", "characters", "accents")
)
# As `escape` prints a character without a spelling
CODE_POINT = re.compile(r"\{\[\}U\+([0-9A-F]{4,6})\{\]\}")
# A tick, of the package amssymb.
TICK = r"\checkmark"
# Scales the table down if the document's columns are narrower than those that it was made for.
FITTED = r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi"
NUMBERS = r"\sisetup{mode=text,detect-weight=true,retain-explicit-plus=true,group-separator={,},group-minimum-digits=4}"


def to_latex(table: Table, paper: Paper = ACL, style: Style = "booktabs") -> str:
    """Render a table."""
    labels: dict[str, int] = {}
    floats = []
    for part in (part for panel in table.panels for part in fitting.fit(panel, paper)):
        label = "tab:" + _key("-".join(filter(None, (table.name, part.panel.key))))
        labels[label] = labels.get(label, 0) + 1
        unique = label if labels[label] == 1 else f"{label}-{labels[label]}"
        floats.append(_float(part, unique, style))
    source = "\n".join(floats)
    packages = fitting.SETTING["packages"][style]
    if TICK in source:
        packages = f"amssymb,{packages}"
    return "\n".join(
        [
            f"% Needs \\usepackage{{{packages}}}; siunitx of version 3 (TeX Live 2021).",
            f"% Made for text {paper.text / fitting.CENTIMETRE:.1f} cm wide, scaled down in narrower text. Set "
            "typesetting.text_width to the document's: 12.1 for article in one column.",
            *_unset(table.name, source),
            source,
        ]
    )


def figure(name: str, caption: str, wide: bool) -> str:
    """The float of a figure, for a file beside NAME.pdf."""
    fields = {
        "kind": "figure*" if wide else "figure",
        "name": name,
        "caption": escape(caption),
        "key": _key(name),
    }
    source = re.sub(
        "@(kind|name|caption|key)@", lambda found: fields[found[1]], fitting.SETTING["figure"]
    )
    return "".join(f"{line}\n" for line in _unset(name, source)) + source


def _unset(name: str, source: str) -> list[str]:
    """A comment on the characters that pdflatex cannot set, with a warning; [] where there are
    none.
    """
    codes = sorted({int(code, 16) for code in CODE_POINT.findall(source)})
    if not codes:
        return []
    shown = ", ".join(f"U+{code:04X}" for code in codes[:3]) + (", …" if len(codes) > 3 else "")
    advice = (
        f"{counted(len(codes), 'character')} that pdflatex cannot set: their code points are printed ({shown}); "
        "to show them, write them there and run xelatex or lualatex with \\usepackage{fontspec} and "
        "\\setmainfont{a font of their script}"
    )
    warnings.warn(f"{name}.tex: {advice}", InputWarning, stacklevel=3)
    return [f"% {comment(advice)}"]


def preview(floats: Iterable[str], font: TextFont = "times") -> str:
    """A document that shows tables or figures, those of one file on pages of their own."""
    preamble = fitting.SETTING["preamble"].replace(
        "@font@", r"\usepackage{times}" if font == "times" else ""
    )
    return preamble + "\\clearpage\n".join(floats) + "\\end{document}\n"


def _float(part: Part, label: str, style: Style) -> str:
    panel, rules = part.panel, RULES[style]
    kind = "table*" if part.wide else "table"
    lines = [
        *(f"% {comment(line)}" for line in panel.made_from),
        rf"\begin{{{kind}}}[tp]",
        r"\centering",
        NUMBERS,
        rf"\caption{{{_label(f'{panel.caption} {panel.colours}')}}}\label{{{label}}}",
        rf"\par\smallskip\fontsize{{{part.size:g}}}{{{part.size * 1.2:g}}}\selectfont",
        rf"\setlength{{\tabcolsep}}{{{part.gap / 2:.1f}pt}}",
        r"\sbox0{%",
        rf"\begin{{tabular}}{{@{{}}{''.join(map(_column, panel.columns, part.columns))}@{{}}}}",
        rules["top"],
        *_headings(part, rules["span"]),
        *(
            line
            for number, group in enumerate(panel.groups)
            for line in _group(group, number, part, style)
        ),
        rules["bottom"],
        r"\end{tabular}}%",
        FITTED,
        *_notes(panel.notes),
        rf"\end{{{kind}}}",
        "",
    ]
    return "\n".join(lines)


def _column(column: Column, fitted: FittedColumn) -> str:
    """A column of the tabular; what follows a number has a column of its own."""
    if column.kind == "text":
        return (
            rf">{{\raggedright\arraybackslash}}p{{{fitted.width:.1f}pt}}" if fitted.fixed else "l"
        )
    options = f"table-format={'+' if fitted.signed else ''}{fitted.whole}.{fitted.decimals}"
    if fitted.fixed and not fitted.followed:
        options += f",table-column-width={fitted.width:.1f}pt"
    return f"S[{options}]@{{}}l" if fitted.followed else f"S[{options}]"


def _headings(part: Part, rule: str) -> Iterator[str]:
    taken = [1 + fitted.followed for fitted in part.columns]
    for spans in part.panel.heading_rows():
        cells, rules, column, first = [], [], 0, 1
        for title, count in spans:
            columns = sum(taken[column : column + count])
            cells.append(
                rf"\multicolumn{{{columns}}}{{c}}{{{escape(title)}}}"
                if title
                else "&" * (columns - 1)
            )
            if title:
                rules.append(rf"{rule}{{{first}-{first + columns - 1}}}")
            column, first = column + count, first + columns
        yield " & ".join(cells) + r" \\"
        yield "".join(rules)
    yield " & ".join(map(_heading, part.panel.columns, part.columns)) + r" \\"


def _heading(column: Column, fitted: FittedColumn) -> str:
    text = escape(column.heading)
    if column.kind == "text":
        return text
    return rf"\multicolumn{{2}}{{c}}{{{text}}}" if fitted.followed else f"{{{text}}}"


def _group(group: RowGroup, number: int, part: Part, style: Style) -> Iterator[str]:
    yield RULES[style]["middle" if group.title or number == 0 else "space"]
    if group.title:
        title, columns = escape(group.title), sum(1 + fitted.followed for fitted in part.columns)
        if fitting.width(group.title) * part.size > part.width:
            title = rf"\parbox{{{part.width:.1f}pt}}{{\centering {title}}}"
        yield rf"\multicolumn{{{columns}}}{{c}}{{\textit{{{title}}}}} \\"
    yield from (_row(row, part) for row in group.rows)


def _row(row: TableRow, part: Part) -> str:
    sources = comment(", ".join(row.sources))
    cells = map(_cell, row.cells, part.panel.columns, part.columns)
    return " & ".join(cells) + r" \\" + (f" % {sources}" if sources else "")


def _cell(cell: Cell, column: Column, fitted: FittedColumn) -> str:
    marks = _superscript("".join(cell.marks)) if cell.marks else ""
    if column.kind == "text":
        text = _label(cell.text)
        return (rf"\textbf{{{text}}}" if cell.bold else text) + marks
    marks = (
        rf"\rlap{{\normalfont\normalcolor{marks}}}" if marks else ""
    )  # of no width: columns stay aligned
    if (value := cell.number) is None:
        text = "--" if cell.text == MISSING else escape(cell.text)
        text = f"{{{text}{marks}}}" if text or marks else ""
        return rf"\multicolumn{{2}}{{c}}{{{text}}}" if fitted.followed else text
    bold = r"\bfseries " if cell.bold else ""
    if cell.bold not in (None, "black"):
        bold = rf"\color{{{cell.bold}}}{bold}"
    number = f"{bold}{value:+}" if cell.is_difference and value else f"{bold}{value}"
    if not fitted.followed:
        return number + (f"{{{marks}}}" if marks else "")
    after = r"$\times$" if cell.is_factor else ""
    if cell.after:
        small = escape(cell.after) if cell.spread is None else rf"$\pm$\,{cell.spread}"
        after = rf"\fontsize{{{LEAST:g}}}{{{LEAST:g}}}\selectfont\,{small}"
    return f"{number} & {after}{marks}"


def _notes(notes: Iterable[Note]) -> Iterator[str]:
    lines = [
        (_superscript(note.mark) + "~" if note.mark else "") + escape(note.text) for note in notes
    ]
    if lines:
        yield r"\par\smallskip"
        yield rf"\parbox{{\linewidth}}{{\fontsize{{{LEAST:g}}}{{{LEAST * 1.2:g}}}\selectfont\raggedright"
        yield " \\\\\n".join(lines) + "}"


def _label(text: str) -> str:
    """A text in which T^ANCE means a raised ANCE."""
    return "".join(
        _superscript(part) if index % 2 else escape(part)
        for index, part in enumerate(RAISED.split(text))
    )


def _superscript(mark: str) -> str:
    """A raised mark. \\textsuperscript would set it in 5 points."""
    return rf"\raisebox{{0.35em}}[0pt][0pt]{{\fontsize{{{LEAST:g}}}{{{LEAST:g}}}\selectfont {escape(mark)}}}"


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
    line = printable(" ".join(unicodedata.normalize("NFKC", text).split()))
    return line.encode("ascii", "backslashreplace").decode()


def _escape_character(character: str) -> str:
    if character in _CHARACTERS:
        return str(_CHARACTERS[character])
    if " " <= character <= "~":
        return character
    base, accent = (
        unicodedata.normalize("NFD", character)[:1],
        unicodedata.normalize("NFD", character)[1:],
    )
    if base.isascii() and base.isalpha() and accent in _ACCENTS:
        return f"{_ACCENTS[accent]}{{{base}}}"
    return f"{{[}}U+{ord(character):04X}{{]}}"
