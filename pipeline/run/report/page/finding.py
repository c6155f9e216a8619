"""What a page opens with: one sentence on what was found, and three pictures of it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.metrics import STATISTICS
from pipeline.foundation.evaluation.metrics.base import TASKS
from pipeline.foundation.parts.errors import counted
from pipeline.judge.tables.table import Cell, number
from pipeline.run.report.examples import digest_order
from pipeline.run.report.page.charts import Axis, ticks
from pipeline.run.report.page.headline import Headline, HeadlineRow
from pipeline.run.report.page.pairs import MOST, Pair

# Candidates of a query in its picture.
SHOWN = 5


@dataclass(frozen=True)
class Candidate:
    """An image that a system retrieved."""

    source: str | None  # its `data:` address, None where the photograph is not readable
    alt: str  # its first caption, or its file name
    is_right: bool


@dataclass(frozen=True)
class Answer:
    """The first images that one system finds for a caption."""

    system: str  # its name
    rank: str  # of the right image
    candidates: Sequence[Candidate]


@dataclass(frozen=True)
class Query:
    """One caption with the images that two systems find."""

    caption: str
    language: str | None
    how: str  # how it was chosen, a sentence
    answers: Sequence[Answer]


@dataclass(frozen=True)
class Recall:
    """One recall of the first system, and of the next."""

    title: str  # "caption → image, R@1"
    cells: Sequence[Cell]  # of the systems


@dataclass(frozen=True)
class Recalls:
    """The recalls of the first system and the next."""

    systems: Sequence[str]  # their names
    rows: Sequence[Recall]
    axis = Axis(ticks(0, 100, 5))


@dataclass(frozen=True)
class Differences:
    """RSUM of the first system minus that of each other one."""

    first: str  # its name
    pairs: Sequence[Pair]
    family: int  # for how many pairs p is corrected

    @property
    def axis(self) -> Axis:
        """The axis that has all intervals and 0."""
        ends = [0.0]
        for pair in self.pairs:
            row = pair.difference.row
            ends += [row["difference"], *row["interval"]]
        return Axis(ticks(min(ends), max(ends), 4))


@dataclass(frozen=True)
class Finding:
    """The finding of a page, with its pictures; of four there are at most three."""

    sentence: str
    further: Sequence[str]  # the same sentence for each further test set
    headline: Headline  # the systems of the first one
    rows: Sequence[HeadlineRow]  # those that the first picture shows
    differences: Differences | None
    query: Query | None
    recalls: Recalls | None


def finding(
    headlines: Sequence[Headline],
    pairs_of_headlines: Sequence[Sequence[Pair]],
    explored: Mapping[str, Any],
) -> Finding | None:
    """Say what the results show; None without results. explored: what `explorer.gather` gave."""
    if not headlines:
        return None
    sentences = []
    for headline, pairs in zip(headlines, pairs_of_headlines, strict=True):
        sentences.append(_sentence(headline, pairs, _where(headline, headlines)))
    headline = headlines[0]
    rows = headline.ranked[:MOST]
    first, *others = rows
    of_first = [pair for pair in pairs_of_headlines[0] if pair.b is first and pair.is_shown]
    differences = None
    if of_first:
        differences = Differences(first.name, of_first, of_first[0].difference.family)
    query = _query([*others[:1], first], explored)
    recalls = None
    if not differences or not query:
        recalls = _recalls([first, *others[:1]])
    return Finding(sentences[0], sentences[1:], headline, rows, differences, query, recalls)


def _where(headline: Headline, headlines: Sequence[Headline]) -> str:
    """The test set in words, with the protocol where several share data set and split."""
    origin = headline.origin
    where = f"the {origin.split} split of {headline.data}"
    test_sets = [(other.origin.dataset, other.origin.split) for other in headlines]
    if test_sets.count((origin.dataset, origin.split)) > 1:
        where += f" by protocol {origin.protocol}"
        pools = [other.origin.protocol for other in headlines]
        if pools.count(origin.protocol) > 1:
            where += f" among {origin.images:,} images and {origin.captions:,} captions"
    return where


def _sentence(headline: Headline, pairs: Sequence[Pair], where: str) -> str:
    """One sentence: the first system, and by how much it is better than others."""
    first, *others = headline.ranked
    networks = _networks(first)
    rsum = f"RSUM {first.rsum}"
    if len(first.systems) > 1:
        rsum += f" over {len(first.systems)} seeds"
    reached = f"{first.name} reaches {rsum} on {where}"
    if not others:
        return f"{reached}; no other system is measured there{networks}."
    after = others[0]
    of_first = [pair for pair in pairs if pair.b is first]
    if not of_first:
        gain = number(float(first.rsum.number or 0) - float(after.rsum.number or 0)).text
        return (
            f"{reached}, {gain} more than {after.name}; whether that is significant was not tested"
            f"{networks}."
        )
    correction = ""
    nearest = of_first[0]
    family = nearest.difference.family
    if family > 1:
        correction = f", corrected for {family:,} pairs"
    if nearest.difference.is_significant:
        return f"{reached}, {_more(nearest)}{correction}){networks}."
    lower = [pair for pair in of_first if pair.difference.is_significant]
    if not lower:
        return (
            f"No system is significantly better than the others on {where}: {first.name} is first with "
            f"{rsum}, {_more(nearest)}{correction}){networks}."
        )
    return (
        f"{reached}, {_more(nearest, ', which is not significant')}), and {_more(lower[0], ', which is')}; "
        f"both p corrected for {family:,} pairs){networks}."
    )


def _more(pair: Pair, verdict: str = "") -> str:
    """The difference with its p: "12.0 more than RG (p < 0.001", whose bracket is left open."""
    gain = number(abs(pair.difference.tested.difference.value)).text
    corrected_p = pair.difference.cells[2].text
    if not corrected_p.startswith("<"):
        corrected_p = f"= {corrected_p}"
    unbroken = f"p {corrected_p}".replace(" ", "\u00a0")
    return f"{gain} more than {pair.a.name}{verdict} ({unbroken}"


def _networks(row: HeadlineRow) -> str:
    """What is said of networks that are not the papers'."""
    if row.untrained:
        return f"; its {' and '.join(row.untrained)} network is untrained"
    if row.stand_ins:
        return "; its networks are stand-ins for the papers'"
    return ""


def _recalls(rows: Sequence[HeadlineRow]) -> Recalls:
    recalls = []
    for statistic in STATISTICS:
        if not statistic.direction:
            continue
        title = f"{TASKS[statistic.direction]}, {statistic.metric}"
        recalls.append(Recall(title, [row.numbers[statistic] for row in rows]))
    return Recalls([row.name for row in rows], recalls)


def compared(headlines: Sequence[Headline], names: Collection[str]) -> tuple[str, str] | None:
    """A and B that the page compares query by query: the second system of the first results, and
    the first. names: of the systems that can be shown; None where these lack one of both.
    """
    if not headlines:
        return None
    pair = []
    for row in reversed(headlines[0].ranked[:2]):
        pair += [name for name in row.systems if name in names][:1]
    if len(pair) < 2:
        return None
    return pair[0], pair[1]


def _query(rows: Sequence[HeadlineRow], explored: Mapping[str, Any]) -> Query | None:
    """The caption whose 1/rank rises most from the next system to the first; of one system alone,
    the first caption by the digests of the captions. None where none is kept.
    """
    names = [system["name"] for system in explored.get("systems", ())]
    places = []
    for row in rows:
        places += [names.index(name) for name in row.systems if name in names][:1]
    if len(places) < len(rows) or not explored["t2i"]:
        return None
    asked = explored["queries"]["t2i"]
    ranks = [asked["ranks"][place] for place in places]
    answers_kept = {answer["number"]: answer for answer in explored["t2i"]}
    systems = [row.name for row in rows]
    chosen, how = _chosen(systems, ranks, answers_kept, asked["texts"])
    answer = answers_kept[chosen]
    answers = []
    for row, place, of_system in zip(rows, places, ranks, strict=True):
        candidates = []
        for position in answer["top"][place][:SHOWN]:
            image = explored["images"][position]
            is_right = position in answer["right"]
            candidates.append(Candidate(image["thumb"], image["alt"], is_right))
        answers.append(Answer(row.name, _rank(of_system[chosen]), candidates))
    language = None
    if asked["languages"]:
        language = explored["languages"][asked["languages"][chosen]]
    caption = asked["texts"][chosen].strip() or "(empty caption)"
    return Query(caption, language, how, answers)


def _chosen(
    systems: Sequence[str],
    ranks: Sequence[Sequence[float]],
    kept: Collection[int],
    texts: Sequence[str],
) -> tuple[int, str]:
    """The number of the caption that is shown, and how it was chosen. systems: the names of the
    next system and the first, or of the only one; ranks: theirs of all captions.
    """
    numbers = sorted(kept)
    by_digest = "Not picked by hand: the first caption by its SHA-256 digest."
    first_by_digest = digest_order(texts, np.array(numbers, np.int64))[0]
    if len(systems) == 1:
        return first_by_digest, by_digest
    before, after = ranks
    gains = [1 / new - 1 / old for old, new in zip(before, after, strict=True)]
    gained = sum(gain > 0 for gain in gains)
    lost = sum(gain < 0 for gain in gains)
    of_all = (
        f"From {systems[0]} to {systems[1]}, the rank of the right image is better for {gained:,} of all "
        f"{counted(len(gains), 'caption')}, worse for {lost:,} and equal for {len(gains) - gained - lost:,}."
    )
    pick = max
    change = "rise"
    if max(gains[number] for number in numbers) <= 0:
        pick = min
        change = "fall"
    chosen = pick(numbers, key=gains.__getitem__)
    if not gains[chosen]:
        return first_by_digest, f"{by_digest} {of_all}"
    among = "all captions"
    if gains[chosen] != pick(gains):
        among = f"the {counted(len(numbers), 'caption')} whose candidates are kept"
    return chosen, (
        f"Not picked by hand: of {among}, it has the largest {change} of 1/rank, from rank "
        f"{_rank(before[chosen])} to rank {_rank(after[chosen])}. {of_all}"
    )


def _rank(rank: float) -> str:
    """A rank; with a fraction where it is the mean over ties."""
    return f"{Decimal(str(round(rank, 1))).normalize():f}"
