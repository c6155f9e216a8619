"""The tables of Geigle et al. except 3 and 4: reranking, languages, larger pools, zero-shot
retrieval, losses.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

from pipeline.evaluation.metrics import Statistic
from pipeline.report import names
from pipeline.report.measured import MeasuredSystem, Results, tasks
from pipeline.report.published import LANGUAGES, PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable, TableColumns
from pipeline.report.table import Column
from pipeline.systems.scores.made import ZERO_SHOT

# Table 1: the main results.

GROUPS = {
    "G1": "G1: before Transformers",
    "G2": "G2: cross-encoders",
    "G3": "G3: embeddings, and cooperative",
}
MARKS = {"†": ", from the literature", "‡": ", their own run"}


def _measured_main(system: MeasuredSystem) -> RowHeader | None:
    if system.part == "CE":
        group = "G2"
    else:
        group = "G1" if system.origin.text == "bigru" and not system.origin.rerank else "G3"
    return RowHeader((system.label(),), GROUPS[group])


# Tables 2 and 7: mean recall on Multi30K by language, trained on all languages or on English.

TEST_SET = "multi30k"


def _columns_of(languages: Sequence[str], mean: tuple[str, str]) -> TableColumns:
    """A column for each language, and one for the mean: its heading, and its name in the paper's
    file.
    """
    single = [
        *((language, Statistic(language, "mR")) for language in languages),
        (mean[0], Statistic("", mean[1])),
    ]
    return TableColumns(
        ("Method",),
        ((TEST_SET, ""),),
        rsum=False,
        single=tuple(Column(heading, key=(TEST_SET, name)) for heading, name in single),
    )


def _by_language(
    trained_on: tuple[str, ...], mean: str, has_part: Callable[[str], bool], results: Results
) -> Iterator[MeasuredSystem]:
    """Systems whose heads were all trained on these languages, with a number for each language and
    their mean.
    """
    for system in results.systems:
        values = {
            name: numbers
            for name, numbers in system.values.items()
            if name.direction and name.metric == "mR"
        }
        if values and {
            tuple(member.settings.get("languages", ())) for member in system.members
        } == {trained_on}:
            meant = [numbers for name, numbers in values.items() if has_part(name.direction)]
            means = tuple(fmean(each) for each in zip(*meant, strict=True))
            tested = {name: each for name, each in system.tested.items() if name in values}
            yield replace(
                system,
                values=values | ({Statistic("", mean): means} if means else {}),
                tested=tested,
            )


def _of_languages(
    number: int,
    trained_on: tuple[str, ...],
    mean: tuple[str, str],
    has_part: Callable[[str], bool],
    marks: Mapping[tuple[str, str], str],
) -> RetrievalTable:
    def published(row: PublishedRow) -> RowHeader:
        marked = tuple(mark for (column, cell), mark in marks.items() if row[column] == cell)
        return RowHeader((row.label,), GROUPS.get(row.cells.get("group", ""), ""), marks=marked)

    def elsewhere(columns: TableColumns, system: MeasuredSystem) -> TableColumns:
        """The languages of other data, those of Multi30K first."""
        languages = [name.direction for name in system.values if name.direction]
        return _columns_of(sorted(languages, key=lambda name: (*LANGUAGES, name).index(name)), mean)

    return RetrievalTable.listed(
        f"rerank_table{number}",
        columns=_columns_of(LANGUAGES, mean),
        published=published,
        elsewhere=elsewhere,
        measured=lambda system: RowHeader((system.label(with_part=False),)),
        source=partial(_by_language, trained_on, mean[1], has_part),
    )


# Tables 5 and 6: systems of results/recorded.json.

IN_DOMAIN = "In-Domain"
# The label of systems that were trained on the tested data set: an upper bound, which does not
# compete for bold.
SAME = "on the same"


def _shifted(results: Results) -> Iterator[MeasuredSystem]:
    """Recorded systems whose heads were trained on another data set."""
    pools = [system for system in results.recorded if not system.origin.distractors]
    shifted = [system for system in pools if system.origin.trained_on and not system.origin.section]
    kinds = {_kind(system) for system in shifted}
    yield from (system for system in results.systems if _kind(system) in kinds)
    yield from shifted
    yield from {
        system.origin: system
        for system in (*results.systems, *pools)
        if system.origin.section == ZERO_SHOT
    }.values()


def _kind(system: MeasuredSystem) -> tuple[str, str, str, str, str]:
    origin = system.origin
    return origin.dataset, origin.split, origin.recipe, origin.visual, origin.text


def _published_zero_shot(row: PublishedRow) -> RowHeader:
    trained = "its own pairs" if row["method"] == "CLIP" else "on another"
    if row["zero_shot"] == "0":
        trained = SAME
    method = row.label.replace(f", {IN_DOMAIN}", "")
    return RowHeader((trained, method), competes=trained != SAME)


def _measured_zero_shot(system: MeasuredSystem) -> RowHeader | None:
    other = system.origin.trained_on
    trained = f"on {names.dataset(other)}" if other else SAME
    return RowHeader((trained, system.label()), competes=bool(other))


# Tables 8 and 11: how many candidates are reranked, and how both scores become one.

SUMS = {"add": "ADD", "norm_add": "NORM_ADD"}


def _measured_k(system: MeasuredSystem) -> RowHeader | None:
    step = dict(system.origin.rerank)
    if not step or set(SUMS) & step.keys():
        return None
    name = system.label(with_part=False)
    return RowHeader((str(step["k"]), name), group=name)


def _published_sum(row: PublishedRow) -> RowHeader:
    how = "scorer alone" if row["sum"] == "none" else row["sum"]
    return RowHeader((how, row["lambda"], row.label), group=row["method"])


def _measured_sum(system: MeasuredSystem) -> RowHeader | None:
    step = dict(system.origin.rerank)
    if not step:
        return None
    how, name = next((name for name in SUMS if name in step), ""), system.label(with_part=False)
    return RowHeader(
        (SUMS.get(how, "scorer alone"), f"{step[how]:g}" if how else "0.0", name), group=name
    )


# Tables 9 and 10: how wrong pairs are drawn in training.


def _published_loss(row: PublishedRow) -> RowHeader:
    return RowHeader(("not trained" if row["loss"] == "none" else row["loss"], row.label))


def _measured_loss(part: str, system: MeasuredSystem) -> RowHeader | None:
    return (
        RowHeader((loss(system.members[0].settings), system.label()))
        if system.part == part
        else None
    )


def loss(settings: Mapping[str, Any]) -> str:
    """The losses of a cross-encoder, e.g. "T^BHE + E^ANCE"; other objectives keep their own
    names.
    """
    learnt, pairs = tasks(settings), settings.get("pairs") or {}
    objective = settings.get("objective", {}).get("name", "triplet")
    parts = []
    if "emb" in learnt:
        parts.append("T^BHE" if objective == "triplet" else str(objective))
    if "ance" in settings.get("tasks", ()):
        parts.append("T^ANCE")
    if "ce" in learnt:
        name = (
            "E"
            if pairs.get("objective", "cross_entropy") == "cross_entropy"
            else str(pairs["objective"])
        )
        parts.append(f"{name}^ANCE" if pairs.get("hard") else name)
    return " + ".join(parts)


TABLE1 = RetrievalTable.listed(
    "rerank_table1",
    measured=_measured_main,
    published=lambda row: RowHeader(
        (f"{row.label}{MARKS.get(row['mark'], '')}",), GROUPS[row["group"]]
    ),
)
TABLE2 = _of_languages(
    2, (), ("Mean", "mean"), lambda language: True, {("mark", "†"): "a", ("mark", "‡"): "b"}
)
TABLE5 = RetrievalTable.listed(
    "rerank_table5",
    published=lambda row: RowHeader((row.label,)),
    measured=lambda system: RowHeader((system.label(), ", ".join(system.origin.distractors))),
    source=lambda results: [system for system in results.recorded if system.origin.distractors],
    elsewhere=lambda columns, system: replace(columns, labels=(*columns.labels, "Distractors")),
)
TABLE6 = RetrievalTable.listed(
    "rerank_table6", measured=_measured_zero_shot, published=_published_zero_shot, source=_shifted
)
TABLE7 = _of_languages(
    7,
    ("en",),
    ("Mean without en", "avg_non_english"),
    lambda language: language != "en",
    {("from_literature", "1"): "a"},
)
TABLE8 = RetrievalTable.listed(
    "rerank_table8",
    measured=_measured_k,
    published=lambda row: RowHeader((row["k"], row.label), group=row["method"]),
)
TABLE9, TABLE10 = (
    RetrievalTable.listed(
        f"rerank_table{number}", measured=partial(_measured_loss, part), published=_published_loss
    )
    for number, part in ((9, "EMB"), (10, "JOIN+CO"))
)
TABLE11 = RetrievalTable.listed("rerank_table11", measured=_measured_sum, published=_published_sum)
