"""LaTeX: whatever the text, a file that parses, with as many cells in a row as the table has
columns.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
from invented import built, of_everything
from pylatexenc.latexwalker import LatexWalker

from pipeline.foundation.parts.errors import InputWarning
from pipeline.judge.tables import latex, markdown
from pipeline.judge.tables.fitting import ACL, CENTIMETRE, Paper
from pipeline.judge.tables.latex import FITTED, escape, preview, to_latex
from pipeline.judge.tables.table import (
    Cell,
    Column,
    Note,
    Panel,
    RowGroup,
    Table,
    TableRow,
)
from pipeline.run.report import tables

AWKWARD = [
    "100% & more_of #1 $x$ {a} ~b ^c \\input{/etc/passwd}",
    "[2pt] *",
    "]{}[",
    "<script>alert('x')</script> | \"quoted\" `ticks`",
    "a--b---c",
    "VSE∞ † ± × − Δ → “so” ‘so’ … – —",
    "Zoë Čapek naïve Łódź ß",
    "中文 🙂 \x07 \u202e",
    "two\nlines\r\tand\u2028more",
    "",
]


def parses(source: str) -> None:
    """Strictly: every brace, environment and formula is closed by its own."""
    LatexWalker(source, tolerant_parsing=False).get_latex_nodes()
    plain = re.sub(r"\\[{}]", "", source)
    assert plain.count("{") == plain.count("}")
    assert source.isascii()


def widths(source: str) -> set[int]:
    """Cells in the rows of one tabular, and columns of its definition."""
    bracketed = r"\[(?:[^][{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\]"
    defined = re.sub(
        rf"@\{{\}}|{bracketed}|>\{{.*?\}}|\{{.*?em\}}", "", source.split("\n")[0][1:-1]
    )
    body = source.split(r"\toprule")[1].split(r"\bottomrule")[0]
    found = {len(defined)}
    for line in re.findall(r"^(.*) \\\\", body, re.M):
        spans = [int(width) for width in re.findall(r"\\multicolumn{(\d+)}", line)]
        found.add(len(re.findall(r"(?<!\\)&", line)) + 1 + sum(spans) - len(spans))
    return found


TABULAR = r"\\begin\{tabular\}.*?\\end\{tabular\}"


def tabulars(source: str) -> list[str]:
    return re.findall(TABULAR, source, re.DOTALL)


def without_alike(tabular: re.Match[str]) -> str:
    """A tabular with one of the rows whose cells differ in digits alone: that of the longest
    name.
    """
    lines = tabular[0].split("\n")
    longest: dict[str, tuple[int, str]] = {}
    alike = {}
    for line in lines:
        name, _, cells = line.partition(" & ")
        alike[line] = re.sub(r"\d", "0", cells.split(r"\\ %")[0]) if name and cells else line
        length = len(re.sub(r"\\\w+|\W", "", name))
        longest[alike[line]] = max(longest.get(alike[line], (-1, "")), (length, line))
    return "\n".join(line for line in lines if longest[alike[line]][1] == line)


def awkward(text: str) -> Table:
    rows = (TableRow((Cell(text, marks=("*",)), Cell(text, Decimal("1.0"), "red")), (text,)),)
    groups = (RowGroup(rows), RowGroup(rows, text), RowGroup(rows))
    columns = (Column(text, kind="text"), Column(text, (text,)))
    panels = (
        Panel(
            columns, groups, caption=text, notes=(Note(text, "*"), Note(text)), made_from=(text,)
        ),
        Panel(columns, groups, text, (Note(text, "*"),)),
    )
    return Table("awkward", panels)


@pytest.mark.specification
@pytest.mark.parametrize("text", AWKWARD)
def test_any_text_parses(text: str) -> None:
    parses(escape(text))
    source = to_latex(awkward(text))
    parses(source)
    for part in source.split(r"\begin{tabular}")[1:]:
        assert widths(part) == {2}


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [(("1.5", "-22.3"), "+2.1"), (("1.5", "22.31"), "2.2"), (("7", "1234"), "4.0")],
)
def test_a_column_has_room_for_its_signs_and_digits(
    numbers: tuple[str, ...], expected: str
) -> None:
    rows = tuple(TableRow((Cell("a"), Cell(Decimal(number)))) for number in numbers)
    panel = Panel((Column("", kind="text"), Column("x")), (RowGroup(rows),))
    assert f"S[table-format={expected}]" in to_latex(Table("numbers", (panel,)))


@pytest.mark.slow
@pytest.mark.parametrize("name", tables.TABLES)
@pytest.mark.parametrize("delta", [False, True])
def test_every_table_parses(name: str, delta: bool) -> None:
    table = of_everything(name, delta)
    source = to_latex(table)
    parses(re.sub(TABULAR, without_alike, source, flags=re.DOTALL))
    parts = source.split(r"\begin{tabular}")[1:]
    assert len(parts) >= len(table.panels)
    assert all(len(widths(part)) == 1 for part in parts)
    labels = re.findall(r"\\label\{(.*?)\}", source)
    assert len(set(labels)) == len(parts) == source.count(r"\caption")
    assert source.count(rf"\begin{FITTED}{{max width=\linewidth}}") == len(parts)
    assert not re.search(r"resizebox|makebox|minipage|\\ref\b|\? \?", source)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("50% & a_b", r"50\% \& a\_b"),
        ("two-sided, 5 %,", r"two-sided, 5\,\%,"),
        ("101\xa0min", "101~min"),
        ("VSE∞", r"VSE$\infty$"),
        ("\\input{x}", r"\textbackslash{}input\{x\}"),
        ("a--b", "a-{}-b"),
        ("ü", r"\"{u}"),
        ("中", "{[}U+4E2D{]}"),
        ("one\n\ntwo", "one two"),
        ("*", "{*}"),
        ("[2pt]", "{[}2pt{]}"),
    ],
)
def test_escape(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.parametrize("text", ["*", "* two models", "[2pt]", " *", "\n*[1em]"])
def test_a_row_does_not_begin_with_an_argument_of_the_line_break_before_it(text: str) -> None:
    r"""TeX reads a * or a [length] after \\ as an argument, also on the next line: the character
    would be lost.
    """
    rows = tuple(
        TableRow((Cell(text), Cell(Decimal("1.0"))), ("source",) * second)
        for second in (False, True)
    )
    groups = (RowGroup(rows, text), RowGroup(rows))
    panel = Panel(
        (Column(text, kind="text"), Column("R@1")), groups, text, (Note(text), Note(text))
    )
    source = to_latex(Table("t", (panel,)))
    assert not re.findall(r"\\\\(?: %.*)?\s*[*\[]", source)
    assert (
        source.count("{*}" if "*" in text else "{[}") == 9
    )  # caption, heading, title, 4 rows, 2 notes


def test_bold_has_its_colour() -> None:
    source = to_latex(built("vse2ad_table1", {}))
    assert r"& \bfseries 63.5 &" in source
    assert r"& \color{blue}\bfseries 65.7 &" in source
    assert r"\color{red}" not in source
    assert (
        r"520.5{\rlap{\normalfont\normalcolor\raisebox{0.35em}[0pt][0pt]{\fontsize{7}{7}\selectfont a}}}"
        in source
    )


@pytest.mark.slow
def test_numbers_stand_below_each_other_and_deviations_beside_them() -> None:
    source = to_latex(of_everything("vse2ad_table1"))
    assert "S[table-format=2.1]" in source
    assert r" & {50.0{\fontsize{7}{7}\selectfont\,$\pm$\,0.0}} &" in source
    assert "& {--} " in to_latex(built("vse2ad_table2", {}))


@pytest.mark.slow
def test_a_difference_keeps_its_plus_and_a_wide_float_spans_the_page() -> None:
    """siunitx drops a + unless it is told not to."""
    source = to_latex(of_everything("vse2ad_table1", delta=True))
    first = source.split(r"\end{table")[0]
    assert r"\begin{table*}" in first
    assert "retain-explicit-plus=true" in first
    assert r"\begin{table}" in to_latex(built("vse2ad_table3", {}))


@pytest.mark.parametrize("text", ["-", "+", "×", ".", "–"])
def test_a_cell_without_a_digit_is_no_number(text: str) -> None:
    panel = Panel(
        (Column("a", kind="text"), Column("R@1")),
        (
            RowGroup(
                (TableRow((Cell("x"), Cell(text))), TableRow((Cell("y"), Cell(Decimal("1.0")))))
            ),
        ),
    )
    source = to_latex(Table("t", (panel,)))
    assert not re.search(r"x & [-+]?0", source)
    assert re.search(r"x & \{.+\} \\\\", source)


@pytest.mark.slow
def test_no_type_is_smaller_than_seven_points() -> None:
    for name in tables.TABLES:
        source = to_latex(of_everything(name, delta=True))
        assert min(map(float, re.findall(r"\\fontsize\{([\d.]+)\}", source))) >= 7
        assert not re.search(r"superscript|subscript|\\tiny|\\scriptsize", source)


def test_a_label_is_a_name_whatever_the_data_set_is_called() -> None:
    panel = Panel(
        (Column("R@1"),), (RowGroup((TableRow((Cell(Decimal("1.0")),)),)),), key="50%_of\\}{#é"
    )
    assert r"\label{tab:my-table-50-of-}" in to_latex(Table("my_table", (panel,)))


@pytest.mark.slow
def test_rows_have_the_rules_that_are_asked_for() -> None:
    table = of_everything("vse2ad_table3")
    booktabs, plain = to_latex(table), to_latex(table, style="plain")
    assert booktabs.startswith(r"% Needs \usepackage{adjustbox,booktabs,siunitx,xcolor}")
    assert plain.startswith(r"% Needs \usepackage{adjustbox,siunitx,xcolor}")
    assert booktabs.splitlines()[1].startswith("% Made for text 16.0 cm wide")
    assert not re.search(r"toprule|midrule|addlinespace", plain)
    assert plain.count(r"\hline") == booktabs.count(r"\toprule") + booktabs.count(
        r"\midrule"
    ) + booktabs.count(r"\bottomrule")


@pytest.mark.slow
def test_what_made_the_numbers_is_a_comment() -> None:
    source = to_latex(of_everything("vse2ad_table1"))
    made = [line for line in source.splitlines() if "manifest 0123456789abcdef" in line]
    assert made
    assert all(line.startswith("% Test set:") for line in made)
    assert "0123456789abcdef" not in re.sub("(?m)%.*", "", source)


@pytest.mark.slow
def test_sources_of_a_measured_row_are_a_comment() -> None:
    source = to_latex(of_everything("vse2ad_table1"))
    assert r"\\ % vse2ad-R-bigru-s0 coco" in source


# A page of one column, as wide as that of the class article.
ONE_COLUMN = Paper(12.1, 12.1, 19.3)
# It writes the width that each table has before it is scaled down.
MEASURED = r"""\newlength\naturalwidth
\adjustboxset{gstore width=\naturalwidth}
\AddToHook{env/adjustbox/after}{\typeout{WIDTH \the\naturalwidth}}
\begin{document}"""


def available(source: str, paper: Paper) -> list[float]:
    """The width of the float around each table, in points."""
    return [
        (paper.text if star else paper.column) * CENTIMETRE
        for star in re.findall(r"\\begin\{table(\*?)\}", source)
    ]


@pytest.mark.slow
def test_all_tables_compile_and_none_is_scaled_down_by_much(tmp_path: Path) -> None:
    """Compiled where there is a pdflatex (Debian: texlive-latex-recommended): its widths are close
    to the counted characters, for pages of two columns and of one.
    """
    floats = [to_latex(of_everything(name, delta=True)) for name in tables.TABLES]
    limits = [width for source in floats for width in available(source, ACL)]
    shown = {each for source in floats for each in tabulars(source)}
    for name in tables.TABLES:
        source = to_latex(built(name, {}), ONE_COLUMN)
        if not shown.issuperset(tabulars(source)):
            floats.append(source)
            limits += available(source, ONE_COLUMN)
    source = preview([*floats, *(to_latex(awkward(text)) for text in AWKWARD)])
    parses(preview(floats[:1]))
    assert source.startswith("% Run pdflatex twice")
    assert source.count(r"\begin{document}") == source.count(r"\end{document}") == 1
    if pdflatex := shutil.which("pdflatex"):
        measured = re.sub(TABULAR, without_alike, source, flags=re.DOTALL)
        measured = measured.replace(r"\begin{document}", MEASURED)
        (tmp_path / "preview.tex").write_text(measured, encoding="utf-8")
        command = [
            pdflatex,
            "-interaction=nonstopmode",
            "-halt-on-error",
            "-no-shell-escape",
            "preview.tex",
        ]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=600
        )
        assert done.returncode == 0, done.stdout[-2000:]
        assert "Float too large" not in done.stdout
        widths = [float(width) for width in re.findall(r"WIDTH ([\d.]+)pt", done.stdout)]
        assert len(widths) == source.count(r"\begin{tabular}")
        of_tables = zip(widths[: len(limits)], limits, strict=True)
        assert max(width / limit for width, limit in of_tables) < 1.1


def test_what_pdflatex_cannot_set_is_said_with_what_can() -> None:
    with pytest.warns(
        InputWarning,
        match=r"^dogs\.tex: 5 characters that pdflatex cannot set: .*xelatex or lualatex",
    ):
        source = latex.figure("dogs", "Nearest to कुत्ता.", False)
    first = source.partition("\n")[0]
    assert first.startswith("% 5 characters")
    assert "(U+0915, U+0924, U+093E, ...)" in first
    assert "fontspec" in first
    assert first.isascii()
    assert latex.figure("dogs", "Nearest to a café.", False).startswith("% Needs")


def test_a_mean_over_seeds_is_one_cell_below_the_same_headings_as_a_single_number() -> None:
    """In LaTeX and Markdown; its digits are below those of others."""
    columns = (
        Column("Model", kind="text"),
        *(Column(name, (above,)) for above in ("Flickr", "COCO") for name in ("R@1", "R@5")),
    )
    wide = Cell(Decimal("70.8"), spread=Decimal("10.3"), bold="blue")
    narrow = Cell(Decimal("-7.8"), spread=Decimal("0.3"), marks=("a",))
    after = Cell(Decimal("1.0"), interval=(Decimal("0.5"), Decimal("1.5")), is_difference=True)
    plain = Cell(Decimal("12.5"))
    rows = (
        TableRow((Cell("three seeds"), wide, after, wide, wide)),
        TableRow((Cell("one run"), plain, plain, plain, plain)),
        TableRow((Cell("others"), narrow, Cell("–"), narrow, Cell(Decimal(3), is_factor=True))),
    )
    panel = Panel(columns, (RowGroup(rows),), notes=(Note("doubt", "a"),))
    table = Table("t", (panel,))
    source = to_latex(table)
    parses(source)
    assert widths(source.split(r"\begin{tabular}")[1]) == {5}
    assert re.findall(r"\\multicolumn\{(\d)\}\{c\}\{(?:Flickr|COCO)\}", source) == ["2", "2"]
    assert re.findall(r"rule(?:\(lr\))?\{(\d-\d)\}", source) == ["2-3", "4-5"]
    small = r"\fontsize{7}{7}\selectfont\,$\pm$\,"
    assert rf"& {{{{\color{{blue}}\bfseries 70.8}}{{{small}10.3}}}} &" in source
    assert rf"& {{\phantom{{0}}$-$7.8{{{small}0.3\phantom{{0}}}}\rlap" in source
    lines = markdown.rows(panel).splitlines()
    assert {line.count("|") for line in lines} == {6}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("中", "1 character that pdflatex cannot set: their code points are printed (U+4E2D);"),
        ("中文字", "(U+4E2D, U+5B57, U+6587);"),
        ("中文字体中", "4 characters that pdflatex cannot set: their code points are printed "),
        ("中文字体", "(U+4E2D, U+4F53, U+5B57, …);"),
    ],
)
def test_of_characters_that_cannot_be_set_three_are_shown_and_all_are_counted(
    text: str, said: str
) -> None:
    with pytest.warns(InputWarning) as warned:
        latex.figure("name", text, wide=False)
    assert said in str(warned[0].message)
