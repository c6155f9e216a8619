"""What `pipeline compare` prints: systems side by side as text, Markdown, LaTeX or CSV.

Two systems are compared by each recall and RSUM; of three or more, each pair by RSUM.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from itertools import combinations
from typing import Any

from pipeline.foundation.evaluation.metrics.base import RECALLS, TASKS, Statistic, at
from pipeline.foundation.evaluation.statistics.contrast import (
    CANNOT_TELL,
    Contrast,
    compared,
    corrected_by,
    in_letters,
    in_ranks,
    sufficient,
)
from pipeline.foundation.evaluation.statistics.equivalence import CONFIDENCE
from pipeline.foundation.evaluation.statistics.families import FDR, HOLM, MAX_T
from pipeline.foundation.parts.errors import sized
from pipeline.foundation.parts.wrapping import cell as harmless, printable, wrapped
from pipeline.judge.tables import evaluated, latex, markdown, text
from pipeline.judge.tables.table import Cell, Note, Panel, Table, from_to, grid, number, to_digits

OVER_SEEDS = (
    "In brackets: 95 % intervals; p: two-sided. Both say how much would vary with another sample of images and "
    "other seeds (Welch's test over seeds, with the variance over images added); seeds of two systems are taken "
    "as independent."
)
OVER_IMAGES = (
    "In brackets: 95 % intervals; p: two-sided. Both say how much would vary with another sample of images (one "
    "paired randomisation test; intervals are widened where few images differ). They leave out seeds: one run of a "
    "system does not show how far its seeds spread. Trained again, the same two recipes may differ by more, or in "
    "the other direction."
)
# What p is corrected by -> how the column of corrected p is read, in full and in brief.
ADJUSTED = {
    HOLM: (
        "Adj. p: p corrected by Holm for everything that is compared here: RSUMs as one family, all other numbers as "
        "another. "
        "±: standard deviation over seeds."
    ),
    MAX_T: (
        "Adj. p: p corrected for everything that is compared here: RSUMs as one family, all other numbers as another "
        "(step-down maxT: the same swaps of whole images test all of them). ±: standard deviation over seeds."
    ),
    FDR: (
        "q: of the differences with q below 0.05, at most 5 % are false on average over studies, however the tests "
        "depend on each other (Benjamini and Yekutieli; RSUMs are one family, all other numbers another). One or more "
        "of those found may well be false. Systems whose difference is not found need not be equal, so there are "
        "neither groups nor ranks. ±: standard deviation over seeds."
    ),
}
ADJUSTED_BRIEFLY = {
    HOLM: "Adj. p: p corrected for everything that is compared (Holm).",
    MAX_T: "Adj. p: p corrected for everything that is compared (step-down maxT).",
    FDR: (
        "q: of the differences with q below 0.05, at most 5 % are false on average (Benjamini and Yekutieli). "
        "Systems whose difference is not found need not be equal."
    ),
}
WOULD_SUFFICE = (
    "Would suffice: how many images with their captions, in pools as hard as this one, or how many seeds of "
    "each system would make a difference of the measured size significant (corrected p below 0.05) in four of "
    "five cases. The numbers are simulated from the measured spread and rounded up to two digits; they allow "
    "for how inexactly few seeds show their spread. No number: not reached with 1,000 seeds or 10,000,000 images."
)
LETTERS = "Systems that share a letter do not differ significantly; a is that of the largest RSUM."
RANKS = (
    "Rank: the best and the worst rank that the corrected p leave possible. With 95 % confidence the true ranks of "
    "all systems are within these intervals at once."
)
RANKS_BRIEFLY = "Rank: the best and the worst possible one; with 95 % confidence all true ranks are within these intervals."
BRIEFLY = {
    "images": "Brackets: 95 % intervals over images, not seeds.",
    "seeds": "Brackets: 95 % intervals over images and seeds.",
}
# What intervals and p are over -> how they are read.
READ = {"images": OVER_IMAGES, "seeds": OVER_SEEDS}
AVERAGED = (
    "One test over images for all pairs, since one system has a single run: seeds are averaged."
)
# The heading of corrected p.
CORRECTED = {HOLM: "adj. p", MAX_T: "adj. p", FDR: "q"}
NEEDS_FOR_Q = (
    "Would suffice: how many images (or seeds) would make q of this difference less than 0.05 while the other p "
    "stay the same."
)
NEEDS_BRIEFLY = "Would suffice: how many images (or seeds) would make this difference significant."
OF_ONE_DIRECTION = "RSUM is of one direction, the sum of its three recalls."
NOISE_BRIEFLY = (
    "Noise: less than the noise of {of}; equal systems that are run again differ by less than this number in 95 % "
    "of cases."
)
NOISE = (
    "Noise: the difference is less than the noise of {of}. Equal systems differ by less than this number in 95 % of "
    "cases only because they are run again (Student's t over the runs of {of}, and no less than images that move "
    "independently would give). The noise of a system with a single run is taken to be the same. It is that of "
    "what differs between the runs: seeds, or batch size, kernel and dtype. Below it, more images alone may not "
    "suffice."
)
WITHIN_BRIEFLY = (
    "Equal within a margin: the {percent} % interval is inside the margin (two one-sided tests); RSUM's margin is "
    "{recalls} times a recall's."
)
WITHIN = (
    "Equal within a margin: the {percent} % interval of the difference is inside the margin, which is two one-sided tests "
    "at 5 % each. RSUM's margin is {recalls} times a recall's, since RSUM is the sum of {recalls} recalls. {how} Where a "
    "difference is significant and this interval is inside the margin, the system is higher or lower by less than the "
    "margin. Each verdict is tested alone, not corrected for the others. Choose the margin before you see the numbers."
)
WITHIN_OVER = {
    "images": (
        "The interval is that of a bootstrap-t that draws whole images, widened where few images differ; it leaves out "
        "seeds."
    ),
    "seeds": "The interval is that of the test over seeds and images.",
}
WOULD_SHOW = (
    "Would show equality: how many images, or seeds of each system, would be enough, in four of five cases, to show "
    "that systems with this spread and no true difference are equal within the margin. No number: more than 10,000,000 "
    "images; or no more than were measured, which would most likely have shown it."
)
BEYOND_NOISE = "Every difference is beyond the noise of {of}."
FLOOR = "Two runs show a floor of the noise, they do not measure it."
SEVERAL_RUNS = "the systems with several runs"
MORE = "More: --explain."
OF_NOISE = "noise"  # the heading of differences that are less than noise
NEEDED = "would suffice"  # the heading of what a difference needs to be significant
NEEDED_WITHIN = "would show equality"  # and of what equality within a margin needs
VALUES = ("a", "b", "difference", "p", "adjusted")  # of a statistic, in the CSV
VALUES_WITHIN = (
    "margin",
    "margin low",
    "margin high",
    "equal",
    "margin verdict",
)  # and of a margin
SHORT = 8  # the most letters of a name that heads a column of numbers
RECALLS_OF_PAIRS = "Every pair's recalls: --json."


def to_text(
    names: Sequence[str],
    contrasts: Sequence[Sequence[Contrast]],
    explain: bool = False,
) -> str:
    """Write small text tables for each protocol, of the contrasts of all pairs."""
    lines = []
    if not _head_columns(names):
        lines = [wrapped(f"{key}  {name}") for key, name in keyed(names)]
        lines.append("")
    panels = _panels(names, contrasts, str)
    for panel in panels:
        if lines and lines[-1]:
            lines.append("")
        lines += text.to_text(panel)
    if lines[-1]:
        lines.append("")
    lines += map(wrapped, _notes(names, panels, contrasts, explain))
    return "\n".join(lines)


def to_markdown(
    names: Sequence[str], contrasts: Sequence[Sequence[Contrast]], explain: bool = False
) -> str:
    """Write Markdown tables for each protocol, of the contrasts of all pairs."""
    paragraphs = []
    if not _head_columns(names):
        legend = ", ".join(f"{key}: `{printable(name)}`" for key, name in keyed(names))
        paragraphs.append(legend)
    panels = _panels(names, contrasts, _title)
    paragraphs += map(markdown.rows, panels)
    return "\n\n".join([*paragraphs, *_notes(names, panels, contrasts, explain)])


def to_latex(
    names: Sequence[str], contrasts: Sequence[Sequence[Contrast]], explain: bool = False
) -> str:
    """Write LaTeX tables for each protocol, of the contrasts of all pairs."""
    legend = " and ".join(names)
    if not _head_columns(names):
        legend = ", ".join(f"{key}: {name}" for key, name in keyed(names))
    panels = _panels(names, contrasts, _title)
    notes = []
    for sentences in _notes(names, panels, contrasts, explain):
        notes.append(Note(sentences.removesuffix(f" {MORE}")))
    floats = []
    for panel in panels:
        floats.append(replace(panel, caption=f"{legend}.", notes=tuple(notes)))
    return latex.to_latex(Table("compared", tuple(floats)))


def to_csv(
    names: Sequence[str], contrasts: Sequence[Sequence[Contrast]], explain: bool = False
) -> str:
    """Write a line for each pair, pool and statistic, its numbers unrounded."""
    values = list(VALUES)
    if corrected_by(contrasts[0][0]) == FDR:
        values[-1] = CORRECTED[FDR]
    csv_file = io.StringIO()
    writer = csv.writer(csv_file, lineterminator="\n")
    headings = ["A", "B", "split", "language", "protocol", "metric", *values]
    headings += ["low", "high", "noise", "verdict"]
    if _have_margins(contrasts):
        headings += VALUES_WITHIN
    writer.writerow(headings)
    for of_pairs in contrasts:
        for systems, contrast in zip(combinations(names, 2), of_pairs, strict=True):
            pool = (contrast.get("split"), contrast.get("language"), contrast["protocol"])
            system_cells = [harmless(value) for value in (*systems, *pool)]
            for statistic in compared(contrast):
                difference = at(contrast, statistic)
                values_of_difference = map(difference.get, VALUES)
                noise = (difference["noise"] or {}).get("limit")
                writer.writerow(
                    [
                        *system_cells,
                        statistic,
                        *values_of_difference,
                        *difference["interval"],
                        noise,
                        difference["verdict"],
                        *_values_within(difference),
                    ]
                )
    return csv_file.getvalue().rstrip()


def _values_within(row: Mapping[str, Any]) -> list[Any]:
    """What the CSV says of a margin; nothing where none was asked for."""
    within = row.get("margin")
    if within is None:
        return []
    return [within["margin"], *within["interval"], within["equal"], within["verdict"]]


WRITERS = {"markdown": to_markdown, "latex": to_latex, "csv": to_csv}


def _panels(
    names: Sequence[str],
    contrasts: Sequence[Sequence[Contrast]],
    titled: Callable[[Statistic], str],
) -> list[Panel]:
    """Of two systems a row for each statistic; of more, for each protocol a row for each system and
    for each pair.
    """
    corrected = CORRECTED[corrected_by(contrasts[0][0])]
    if len(names) == 2:
        pools = {}
        for (contrast,) in contrasts:
            rows: list[list[str | Cell]] = []
            for statistic in compared(contrast):
                row = at(contrast, statistic)
                means = (mean(row, "a"), mean(row, "b"))
                numbers = [*means, *difference(row)]
                label = _label(statistic, contrast, titled)
                needed = would_suffice(row)
                rows.append([label, *numbers, less_than_noise(row), _of_units(needed, contrast)])
            pools[title(contrast)] = rows
        systems_above = _above(names)
        minus = " − ".join(reversed(systems_above))
        panel = _panel(("", *systems_above, minus, "p", corrected, OF_NOISE, NEEDED), pools)
        return [panel, *_of_margins(minus, contrasts, titled)]
    panels = []
    for of_pairs in contrasts:
        headings = ["", "RSUM", "rank", "letters"]
        if corrected_by(of_pairs[0]) == FDR:
            del headings[2:]
        systems = [system[: len(headings)] for system in _systems(names, of_pairs)]
        panels.append(grid(headings, {title(of_pairs[0]): systems}))
        pairs: list[list[str | Cell]] = []
        keys_of_pairs = combinations(range(1, len(names) + 1), 2)
        for (first, second), contrast in zip(keys_of_pairs, of_pairs, strict=True):
            rsum = contrast["RSUM"]
            label = f"{second} − {first}"
            over = ", ".join(contrast["over"])
            needed = would_suffice(rsum)
            noise = less_than_noise(rsum)
            cells: list[str | Cell] = [label, *difference(rsum), over, noise, needed]
            pairs.append([_of_units(cell, contrast) for cell in cells])
        panels.append(
            _panel(("", "difference", "p", corrected, "over", OF_NOISE, NEEDED), {"": pairs})
        )
        if _have_margins(contrasts):
            within: list[list[str | Cell]] = []
            for pair, contrast in zip(pairs, of_pairs, strict=True):
                within.append([pair[0], *_within(contrast["RSUM"], contrast)])
            panels.append(_panel(_headings_within("difference"), {"": within}))
    return panels


def _of_margins(
    minus: str, contrasts: Sequence[Sequence[Contrast]], titled: Callable[[Statistic], str]
) -> list[Panel]:
    """Of two systems, whether each statistic is equal within its margin; nothing where none was
    asked for.
    """
    if not _have_margins(contrasts):
        return []
    pools = {}
    for (contrast,) in contrasts:
        rows: list[list[str | Cell]] = []
        for statistic in compared(contrast):
            label = _label(statistic, contrast, titled)
            rows.append([label, *_within(at(contrast, statistic), contrast)])
        pools[title(contrast)] = rows
    return [_panel(_headings_within(minus), pools)]


def _label(statistic: Statistic, contrast: Contrast, titled: Callable[[Statistic], str]) -> str:
    """What a statistic is called: by its metric alone where no images and captions are ranked."""
    if "sides" in contrast:
        return statistic.metric
    return titled(statistic)


def _have_margins(contrasts: Sequence[Sequence[Contrast]]) -> bool:
    """Whether equality within a margin was asked for."""
    return any("margin" in contrast["RSUM"] for of_pairs in contrasts for contrast in of_pairs)


def _headings_within(minus: str) -> list[str]:
    return ["", f"{minus} ({_percent_within()} %)", "margin", "verdict", NEEDED_WITHIN]


def _percent_within() -> str:
    return f"{100 * CONFIDENCE:g}"


def _within(row: Mapping[str, Any], contrast: Contrast) -> list[str | Cell]:
    """One statistic's difference with the interval that is inside its margin or not, the verdict,
    and what would show equality where it says nothing.
    """
    within = row["margin"]
    verdict = within["verdict"]
    needed = ""
    if within["needs"] is not None:
        verdict = CANNOT_TELL
        needed = sufficient(within["needs"])
    difference = number(row["difference"], within["interval"], is_difference=True)
    margin = f"±{within['margin']:g}"
    return [difference, margin, verdict, _of_units(needed, contrast)]


def _systems(
    names: Sequence[str], of_pairs: Sequence[Contrast]
) -> list[tuple[str, Cell, str, str]]:
    """The key of each system with its RSUM, ranks and letters, the largest RSUM first."""
    # The first pairs are those of the first system, with each other one.
    sums = [mean(of_pairs[0]["RSUM"], "a")]
    for contrast in of_pairs[: len(names) - 1]:
        sums.append(mean(contrast["RSUM"], "b"))
    ranks = map(from_to, in_ranks(of_pairs))
    systems = zip(keys(names), sums, ranks, in_letters(of_pairs), strict=True)
    return sorted(systems, key=lambda system: system[1].number or 0, reverse=True)


def _panel(headings: Sequence[str], groups: Mapping[str, Sequence[Sequence[str | Cell]]]) -> Panel:
    """A panel, without the columns of noise and of what would be enough where these are empty."""
    shown = []
    for column, heading in enumerate(headings):
        is_optional = heading in (OF_NOISE, NEEDED, NEEDED_WITHIN)
        has_cells = any(row[column] for rows in groups.values() for row in rows)
        if has_cells or not is_optional:
            shown.append(column)
    of_shown = {}
    for title, rows in groups.items():
        of_shown[title] = [[row[column] for column in shown] for row in rows]
    return grid([headings[column] for column in shown], of_shown)


def _above(names: Sequence[str]) -> Sequence[str]:
    """What two systems are called above their columns."""
    if _head_columns(names):
        return names
    return keys(names)


def _head_columns(names: Sequence[str]) -> bool:
    """Whether the names of two systems are short enough to stand above their columns."""
    return len(names) == 2 and max(map(len, names)) <= SHORT


def keys(names: Sequence[str]) -> Sequence[str]:
    """The key of each system: A and B, of more their numbers."""
    if len(names) == 2:
        return "AB"
    return [str(system) for system in range(1, len(names) + 1)]


def keyed(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The systems' names, each after its key in the tables."""
    return zip(keys(names), names, strict=True)


def _title(statistic: Statistic) -> str:
    if not statistic.direction:
        return statistic.metric
    return f"{TASKS[statistic.direction]}, {statistic.metric}"


def title(contrast: Contrast) -> str:
    """Describe the pool and protocol of a comparison."""
    sides = contrast.get("sides", ("image", "caption"))
    pool = sized(contrast["images"], contrast["captions"], *sides)
    if "split" in contrast:
        pool = f"{contrast['split']} split, {pool}"
    if "language" in contrast:
        pool = f"{pool} in {contrast['language']}"
    return f"{pool}, protocol {contrast['protocol']}"


def mean(row: Mapping[str, Any], side: str) -> Cell:
    """A mean over seeds with its standard deviation."""
    return number(row[side], spread=row["spread"][side])


def difference(row: Mapping[str, Any]) -> list[Cell]:
    """One statistic's difference with its interval, p, and the corrected p."""
    difference = number(row["difference"], row["interval"], is_difference=True)
    return [difference, *(_chance(row, key) for key in ("p", "adjusted"))]


def _chance(row: Mapping[str, Any], key: str) -> Cell:
    """A p with two digits; one that is as small as its test can give, as "< 0.001"."""
    least_possible = row["resolution"] * (1 + 1e-9)
    is_least = row["p"] <= least_possible
    if key == "adjusted" and row["adjusted_by"] == MAX_T:
        is_least = row["adjusted"] <= least_possible
    bound = Decimal("0.0001")
    if is_least:
        bound = Context(1, ROUND_CEILING).create_decimal(repr(row[key] * (1 + 1e-9)))
    if bound < 1 and (is_least or row[key] < bound):
        return Cell(f"< {bound.normalize()}")
    return Cell(to_digits(row[key], 2))


def would_suffice(row: Mapping[str, Any]) -> str:
    """What would make a difference significant, "3,500 images"; "" for one that is."""
    needs = row["needs"]
    if needs is None:
        return ""
    return sufficient(needs)


def less_than_noise(row: Mapping[str, Any]) -> str:
    """What a difference that is less than the noise of a system is less than, "< 2.4"; "" for any
    other.
    """
    noise = row["noise"]
    if noise is None or not noise["less"]:
        return ""
    return f"< {number(noise['limit'])}"


def _notes(
    names: Sequence[str],
    panels: Sequence[Panel],
    contrasts: Sequence[Sequence[Contrast]],
    explain: bool,
) -> list[str]:
    """Explain how to read comparisons that are printed together, or say in one line where that
    is.
    """
    on_noise = _on_noise(names, panels, contrasts, explain)
    sentences = _sentences(panels, contrasts, on_noise, explain)
    return [_of_units(each, contrasts[0][0]) for each in sentences]


def _on_noise(
    names: Sequence[str],
    panels: Sequence[Panel],
    contrasts: Sequence[Sequence[Contrast]],
    explain: bool,
) -> list[str]:
    """What is said of the noise of systems with several runs; nothing where intervals cover it."""
    first = contrasts[0]
    if all(contrast["RSUM"]["noise"] is None for contrast in first):
        return []
    runs = first[0]["seeds"]
    of = SEVERAL_RUNS
    if len(names) == 2:
        several = [name for name, side in zip(_above(names), "ab", strict=True) if runs[side] > 1]
        of = " and ".join(several)
    sentence = BEYOND_NOISE
    if OF_NOISE in _headings(panels):
        sentence = NOISE_BRIEFLY
        if explain:
            sentence = NOISE
    sentences = [sentence.format(of=of)]
    if max(max(contrast["seeds"].values()) for contrast in first) == 2:
        sentences.append(FLOOR)
    return sentences


def _sentences(
    panels: Sequence[Panel],
    contrasts: Sequence[Sequence[Contrast]],
    on_noise: Sequence[str],
    explain: bool,
) -> list[str]:
    """What the notes say where images are the units."""
    first = contrasts[0][0]
    kind = "images"
    if "seeds" in first["over"]:
        kind = "seeds"
    correction = corrected_by(first)
    has_several_pairs = len(contrasts[0]) > 1
    forms_groups = has_several_pairs and correction != FDR
    has_needs = NEEDED in _headings(panels)
    averages_seeds = has_several_pairs and kind == "images" and _have_seeds(contrasts[0])
    of_one_direction = any(None in (contrast["i2t"], contrast["t2i"]) for contrast, *_ in contrasts)
    how_many = WOULD_SUFFICE
    if correction == FDR:
        how_many = NEEDS_FOR_Q
    elif not explain:
        how_many = NEEDS_BRIEFLY
    if not explain:
        sentences = [BRIEFLY[kind], ADJUSTED_BRIEFLY[correction], *on_noise, MORE]
        if has_needs:
            sentences.insert(1, how_many)
        if of_one_direction:
            sentences.insert(1, OF_ONE_DIRECTION)
        if forms_groups:
            sentences = [LETTERS, RANKS_BRIEFLY, *sentences]
        if averages_seeds:
            sentences.insert(-1, AVERAGED)
        if _have_margins(contrasts):
            sentences.insert(-1, _on_margin(WITHIN_BRIEFLY, first, kind))
        return [" ".join(sentences)]
    notes = [READ[kind], ADJUSTED[correction], *on_noise]
    if averages_seeds:
        notes.insert(1, AVERAGED)
    if of_one_direction:
        notes.append(OF_ONE_DIRECTION)
    if has_needs:
        notes.append(how_many)
    if _have_margins(contrasts):
        notes.append(_on_margin(WITHIN, first, kind))
    if NEEDED_WITHIN in _headings(panels):
        notes.append(WOULD_SHOW)
    if forms_groups:
        notes += [LETTERS, RANKS]
    if has_several_pairs:
        notes.append(RECALLS_OF_PAIRS)
    return notes


def _on_margin(sentence: str, contrast: Contrast, kind: str) -> str:
    """A sentence on equality within a margin."""
    recalls = len(RECALLS) * sum(contrast[way] is not None for way in ("i2t", "t2i"))
    return sentence.format(percent=_percent_within(), recalls=recalls, how=WITHIN_OVER[kind])


def _of_units(text: Any, contrast: Contrast) -> Any:
    """A text that calls images what the contrast's units are: queries of a run of anything."""
    if not isinstance(text, str):
        return text
    return evaluated.of_units(text, contrast)


def _have_seeds(of_pairs: Sequence[Contrast]) -> bool:
    """Whether a system of these pairs has several seeds."""
    return any(set(contrast["RSUM"]["spread"].values()) != {None} for contrast in of_pairs)


def _headings(panels: Sequence[Panel]) -> set[str]:
    """The headings of all columns."""
    headings = set[str]()
    for panel in panels:
        headings.update(column.heading for column in panel.columns)
    return headings
