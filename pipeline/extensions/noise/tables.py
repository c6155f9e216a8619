"""What `pipeline noise` prints: how far runs of one system spread, as text, Markdown or LaTeX."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.foundation.evaluation.metrics import Statistic
from pipeline.foundation.evaluation.metrics.base import flat
from pipeline.foundation.evaluation.statistics.noise import factors
from pipeline.foundation.parts.errors import counted
from pipeline.foundation.parts.wrapping import printable, wrapped
from pipeline.judge.tables import compared, evaluated, latex, markdown, text
from pipeline.judge.tables.table import MISSING, Cell, Note, Panel, Table, grid, number

# The noise of one pool, as plain JSON values.
Pool = Mapping[str, Any]
OF_NUMBERS = ("", "mean", "largest gap", "spread", "two runs", "by image")
OF_RANKS = ("rank of the first right candidate", "queries", "moves", "most", "in any")
DIGITS = 2
SPREAD = "Largest gap: of two of these runs. Spread: the standard deviation of a run, with its 95 % interval (chi-square)."
OF_TWO = (
    "Two runs: what the difference of two more runs stays below in 95 % of cases (Student's t). A smaller "
    "difference to another system, of one run each, is less than this noise. Of recalls it is at least what images that move independently "
    "would give."
)
BY_IMAGE = (
    "By image: the spread if the hits of each image moved independently. What the measured spread has beyond it "
    "is common to many images, and a larger test set does not reduce it."
)
MOVES = (
    "Moves: the share of queries in percent whose rank differs between two runs, the mean over all pairs; most: of "
    "the pair with most; in any: queries without one rank in all runs. Ties count by expectation unless --ties says otherwise."
)
NO_NOISE = "All runs have the same ranks: what differs between them makes no noise here."


def to_text(pools: Sequence[Pool]) -> str:
    """Write text tables of each pool for a terminal."""
    lines = [wrapped(f"{_sized(pools[0])}: {', '.join(pools[0]['runs'])}"), ""]
    notes = []
    for panel in _panels(pools, lambda pool, statistic: str(statistic)):
        lines += text.to_text(panel)
        notes += [wrapped(note.text) for note in panel.notes]
    return "\n".join([*lines, *notes])


def to_markdown(pools: Sequence[Pool]) -> str:
    """Write Markdown tables of each pool."""
    names = ", ".join(f"`{printable(name)}`" for name in pools[0]["runs"])
    paragraphs = [f"{_sized(pools[0])}: {names}"]
    notes = []
    for panel in _panels(pools, _title):
        paragraphs.append(markdown.rows(panel))
        notes += [note.text for note in panel.notes]
    return "\n\n".join([*paragraphs, *notes])


def to_latex(pools: Sequence[Pool]) -> str:
    """Write LaTeX tables of each pool."""
    caption = f"{_sized(pools[0])}: {', '.join(pools[0]['runs'])}."
    floats = [replace(panel, caption=caption) for panel in _panels(pools, _title)]
    return latex.to_latex(Table("noise", tuple(floats)))


WRITERS = {"text": to_text, "markdown": to_markdown, "latex": to_latex}


def _panels(pools: Sequence[Pool], titled: Callable[[Pool, Statistic], str]) -> list[Panel]:
    """The numbers of all pools, and how many queries' ranks move, each with how to read it."""
    numbers: dict[str, list[list[str | Cell]]] = {}
    ranks: dict[str, list[list[str | Cell]]] = {}
    for pool in pools:
        title = compared.title(_described(pool))
        of_numbers = numbers.setdefault(title, [])
        of_ranks = ranks.setdefault(title, [])
        for statistic, value in flat(_numbers(pool)).items():
            if statistic.metric == "moved":
                task = evaluated.task(pool, statistic.direction)
                of_ranks.append(_of_ranks(task, value))
            else:
                of_numbers.append([titled(pool, statistic), *_of_number(value)])
    headings = [evaluated.of_units(heading, pools[0]) for heading in OF_NUMBERS]
    notes = [Note(evaluated.of_units(note, pools[0])) for note in _notes(pools)]
    of_spread = replace(grid(headings, numbers), notes=tuple(notes))
    of_moves = replace(grid(OF_RANKS, ranks), notes=(Note(MOVES),))
    return [of_spread, of_moves]


def _numbers(pool: Pool) -> dict[str, Any]:
    """What was measured of a pool, without what describes it."""
    return {name: pool[name] for name in ("i2t", "t2i", "RSUM") if pool.get(name)}


def _described(pool: Pool) -> Pool:
    """What describes a pool, without what is not known of it."""
    return {name: value for name, value in pool.items() if value is not None}


def _title(pool: Pool, statistic: Statistic) -> str:
    if not statistic.direction:
        return statistic.metric
    return f"{evaluated.task(pool, statistic.direction)}, {statistic.metric}"


def _of_number(value: Mapping[str, Any]) -> list[Cell]:
    by_image = Cell(MISSING)
    if value["by_image"] is not None:
        by_image = number(value["by_image"], digits=DIGITS)
    return [
        number(value["mean"], digits=DIGITS),
        number(value["gap"], digits=DIGITS),
        number(value["spread"], value["interval"], digits=DIGITS),
        number(value["of_two"], digits=DIGITS),
        by_image,
    ]


def _of_ranks(task: str, value: Mapping[str, Any]) -> list[str | Cell]:
    shares = [number(value[name]) for name in ("between_two", "most", "in_any")]
    return [task, Cell(f"{value['queries']:,}"), *shares]


def _sized(pool: Pool) -> str:
    freedom = counted(pool["freedom"], "degree")
    return f"{counted(len(pool['runs']), 'run')} of one system, {freedom} of freedom"


def _notes(pools: Sequence[Pool]) -> list[str]:
    """How to read the spread."""
    shares = []
    for pool in pools:
        for way in ("i2t", "t2i"):
            if pool[way]:
                shares.append(pool[way]["moved"]["in_any"])
    notes = [SPREAD, OF_TWO, BY_IMAGE]
    if not any(shares):
        notes.insert(0, NO_NOISE)
        return notes
    freedom = pools[0]["freedom"]
    _, most = factors(freedom)
    known = f"The true spread may be up to {most:.1f} times as large as the measured one."
    if freedom == 1:
        known = f"Two runs show a floor, they do not measure one: {known[0].lower()}{known[1:]}"
    notes.insert(1, known)
    return notes
