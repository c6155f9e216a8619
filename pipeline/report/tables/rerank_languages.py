"""Tables 2 and 7 of Geigle et al.: mean recall on Multi30K by language, trained on all languages or on English."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

from pipeline.report import names
from pipeline.report.measured import MeasuredSystem, Results
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table import Note
from pipeline.report.table_columns import NumberColumn, TableColumns
from pipeline.report.tables.rerank import GROUPS

LANGUAGES = ("en", "de", "fr", "cs")
TEST_SET = "multi30k"
OF_LANGUAGE = "_mR"
"""Ending of the columns of `MeasuredSystem.values` that have a language's mean recall."""


def _columns(languages: Sequence[str], mean: tuple[str, str]) -> TableColumns:
    """A column for each language, and that of the mean: its heading, and what it is called in the paper's file."""
    single = [*((language, language) for language in languages), mean]
    return TableColumns(("Method",), ((TEST_SET, ""),), rsum=False,
                        single=tuple(NumberColumn((TEST_SET, name), heading) for heading, name in single))


def _elsewhere(mean: tuple[str, str], columns: TableColumns, system: MeasuredSystem) -> TableColumns:
    """The languages of other data, those of Multi30K first."""
    languages = [name for name in system.values if name != mean[1]]
    return _columns(sorted(languages, key=lambda name: (*LANGUAGES, name).index(name)), mean)


def _systems(trained_on: tuple[str, ...], mean: str, has_part: Callable[[str], bool], results: Results
             ) -> Iterator[MeasuredSystem]:
    """Systems whose heads were all trained on these languages, with a number for each language and their mean."""
    for system in results.systems:
        values = {column.removesuffix(OF_LANGUAGE): numbers for column, numbers in system.values.items()
                  if column.endswith(OF_LANGUAGE)}
        if values and {tuple(member.settings.get("languages", ())) for member in system.members} == {trained_on}:
            meant = [numbers for language, numbers in values.items() if has_part(language)]
            means = tuple(fmean(each) for each in zip(*meant, strict=True))
            yield replace(system, values=values | ({mean: means} if means else {}))


def _published(marks: Mapping[tuple[str, str], str], row: PublishedRow) -> RowHeader:
    marked = tuple(mark for (column, cell), mark in marks.items() if row[column] == cell)
    return RowHeader((names.published_label(row),), GROUPS.get(row.cells.get("group", ""), ""), marks=marked)


def _table(number: int, said: str, trained_on: tuple[str, ...], mean: tuple[str, str],
           has_part: Callable[[str], bool], marks: Mapping[tuple[str, str], str], notes: tuple[Note, ...]
           ) -> RetrievalTable:
    return RetrievalTable(
        name=f"rerank_table{number}", data="Multi30K", columns=_columns(LANGUAGES, mean), notes=notes,
        caption=f"Mean recall (mR) on {{data}} by language in percent, after Table {number} of Geigle et al.; {said}.",
        measured=lambda system: RowHeader((names.plain_label(system),)), published=partial(_published, marks),
        source=partial(_systems, trained_on, mean[1], has_part), elsewhere=partial(_elsewhere, mean), zero_shot=True)


LITERATURE = Note("From the literature, as the paper says.", "a")
TABLE2 = _table(2, "trained on captions in all languages", (), ("Mean", "mean"), lambda language: True,
                {("mark", "†"): "a", ("mark", "‡"): "b"}, (LITERATURE, Note("The authors' own run.", "b")))
TABLE7 = _table(7, "trained on English captions alone. The mean is of the other languages", ("en",),
                ("Mean without en", "avg_non_english"), lambda language: language != "en",
                {("from_literature", "1"): "a"}, (LITERATURE,))
