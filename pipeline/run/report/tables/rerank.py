"""The tables of Geigle et al. except 3 and 4: reranking, languages, larger pools, zero-shot
retrieval, losses.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

from pipeline.foundation.evaluation.metrics import Statistic
from pipeline.judge.systems.scores.made import ZERO_SHOT
from pipeline.judge.tables.published import LANGUAGES, PublishedRow
from pipeline.judge.tables.table import Column
from pipeline.run.report import names
from pipeline.run.report.measured import MeasuredSystem, Origin, Results, tasks
from pipeline.run.report.result_rows import RowHeader
from pipeline.run.report.retrieval_table import RetrievalTable, TableColumns

# Table 1: the main results.

GROUPS = {
    "G1": "G1: before Transformers",
    "G2": "G2: cross-encoders",
    "G3": "G3: embeddings, and cooperative",
}
MARKS = {"†": ", from the literature", "‡": ", their own run"}


def _published_main(row: PublishedRow) -> RowHeader:
    label = row.label + MARKS.get(row["mark"], "")
    return RowHeader((label,), GROUPS[row["group"]])


def _measured_main(system: MeasuredSystem) -> RowHeader | None:
    group = "G3"
    if system.part == "CE":
        group = "G2"
    elif system.origin.text == "bigru" and not system.origin.rerank:
        group = "G1"
    return RowHeader((system.label(),), GROUPS[group])


# Tables 2 and 7: mean recall on Multi30K by language, trained on all languages or on English.

TEST_SET = "multi30k"


def _columns_of(languages: Sequence[str], mean: tuple[str, str]) -> TableColumns:
    """A column for each language, and one for the mean: its heading, and its name in the paper's
    file.
    """
    heading, metric = mean
    columns = []
    for language in languages:
        columns.append(Column(language, key=(TEST_SET, Statistic(language, "mR"))))
    columns.append(Column(heading, key=(TEST_SET, Statistic("", metric))))
    return TableColumns(("Method",), ((TEST_SET, ""),), rsum=False, single=tuple(columns))


def _by_language(
    trained_on: tuple[str, ...], mean: str, has_part: Callable[[str], bool], results: Results
) -> Iterator[MeasuredSystem]:
    """Systems whose heads were all trained on these languages, with a number for each language and
    their mean.
    """
    for system in results.systems:
        by_language = {}
        for statistic, numbers in system.values.items():
            if statistic.direction and statistic.metric == "mR":
                by_language[statistic] = numbers
        languages = {tuple(member.settings.get("languages", ())) for member in system.members}
        if not by_language or languages != {trained_on}:
            continue
        tested = {
            statistic: inputs
            for statistic, inputs in system.tested.items()
            if statistic in by_language
        }
        in_mean = [
            numbers for statistic, numbers in by_language.items() if has_part(statistic.direction)
        ]
        if in_mean:
            by_seed = zip(*in_mean, strict=True)
            by_language[Statistic("", mean)] = tuple(map(fmean, by_seed))
        yield replace(system, values=by_language, tested=tested)


def _of_languages(
    number: int,
    trained_on: tuple[str, ...],
    mean: tuple[str, str],
    has_part: Callable[[str], bool],
    marks: Mapping[tuple[str, str], str],
) -> RetrievalTable:
    def published(row: PublishedRow) -> RowHeader:
        marked = tuple(mark for (column, cell), mark in marks.items() if row[column] == cell)
        group = GROUPS.get(row.cells.get("group", ""), "")
        return RowHeader((row.label,), group, marks=marked)

    def elsewhere(columns: TableColumns, system: MeasuredSystem) -> TableColumns:
        """The languages of other data, those of Multi30K first."""
        languages = [name.direction for name in system.values if name.direction]
        ordered = [language for language in LANGUAGES if language in languages]
        ordered += [language for language in languages if language not in LANGUAGES]
        return _columns_of(ordered, mean)

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
    zero_shot: dict[Origin, MeasuredSystem] = {}
    for system in (*results.systems, *pools):
        if system.origin.section == ZERO_SHOT:
            zero_shot[system.origin] = system
    yield from zero_shot.values()


def _kind(system: MeasuredSystem) -> tuple[str, str, str, str, str]:
    origin = system.origin
    return origin.dataset, origin.split, origin.recipe, origin.visual, origin.text


def _published_zero_shot(row: PublishedRow) -> RowHeader:
    trained = "on another"
    if row["zero_shot"] == "0":
        trained = SAME
    elif row["method"] == "CLIP":
        trained = "its own pairs"
    method = row.label.replace(f", {IN_DOMAIN}", "")
    return RowHeader((trained, method), competes=trained != SAME)


def _measured_zero_shot(system: MeasuredSystem) -> RowHeader | None:
    other = system.origin.trained_on
    if not other:
        return RowHeader((SAME, system.label()), competes=False)
    return RowHeader((f"on {names.dataset(other)}", system.label()))


# Tables 8 and 11: how many candidates are reranked, and how both scores become one.

SUMS = {"add": "ADD", "norm_add": "NORM_ADD"}


def _measured_k(system: MeasuredSystem) -> RowHeader | None:
    step = dict(system.origin.rerank)
    if not step or set(SUMS) & step.keys():
        return None
    name = system.label(with_part=False)
    return RowHeader((str(step["k"]), name), group=name)


def _published_sum(row: PublishedRow) -> RowHeader:
    scorer_and_sum = "scorer alone" if row["sum"] == "none" else row["sum"]
    return RowHeader((scorer_and_sum, row["lambda"], row.label), group=row["method"])


def _measured_sum(system: MeasuredSystem) -> RowHeader | None:
    step = dict(system.origin.rerank)
    if not step:
        return None
    name = system.label(with_part=False)
    for key, title in SUMS.items():
        if key in step:
            return RowHeader((title, f"{step[key]:g}", name), group=name)
    return RowHeader(("scorer alone", "0.0", name), group=name)


# Tables 9 and 10: how wrong pairs are drawn in training.


def _published_loss(row: PublishedRow) -> RowHeader:
    losses = "not trained" if row["loss"] == "none" else row["loss"]
    return RowHeader((losses, row.label))


def _measured_loss(part: str, system: MeasuredSystem) -> RowHeader | None:
    if system.part != part:
        return None
    return RowHeader((loss(system.members[0].settings), system.label()))


def _loss_table(number: int, part: str) -> RetrievalTable:
    return RetrievalTable.listed(
        f"rerank_table{number}", measured=partial(_measured_loss, part), published=_published_loss
    )


def loss(settings: Mapping[str, Any]) -> str:
    """The losses of a cross-encoder, e.g. "T^BHE + E^ANCE"; other objectives keep their own
    names.
    """
    learnt = tasks(settings)
    objective = settings.get("objective", {}).get("name", "triplet")
    losses = []
    if "emb" in learnt:
        losses.append("T^BHE" if objective == "triplet" else str(objective))
    if "ance" in settings.get("tasks", ()):
        losses.append("T^ANCE")
    if "ce" in learnt:
        pairs = settings.get("pairs") or {}
        of_pairs = str(pairs.get("objective", "cross_entropy"))
        pair_loss = of_pairs
        if of_pairs == "cross_entropy":
            pair_loss = "E"
        if pairs.get("hard"):
            pair_loss += "^ANCE"
        losses.append(pair_loss)
    return " + ".join(losses)


TABLE1 = RetrievalTable.listed("rerank_table1", measured=_measured_main, published=_published_main)
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
TABLE9 = _loss_table(9, "EMB")
TABLE10 = _loss_table(10, "JOIN+CO")
TABLE11 = RetrievalTable.listed("rerank_table11", measured=_measured_sum, published=_published_sum)
