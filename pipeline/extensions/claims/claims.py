"""The papers' claims about two systems, tested on your own data: the difference of their RSUM with
its interval.
"""

from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.foundation.evaluation.metrics import RSUM
from pipeline.foundation.evaluation.statistics import LEVEL
from pipeline.foundation.evaluation.statistics.contrast import CANNOT_TELL
from pipeline.foundation.files.parsing import from_yaml
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.parts.wrapping import wrapped
from pipeline.foundation.settings import Section, first_fault
from pipeline.foundation.settings.features import of_ensemble
from pipeline.judge.tables import compared, markdown, published, text
from pipeline.judge.tables.table import MISSING, Cell, grid, number


class SystemOfClaim(Section):
    """One side of a claim. features: their letters; R alone means the run's first feature."""

    recipe: str
    features: str = "R"


class PublishedPair(Section):
    """Two rows of a published table. rows: cells that both have. better, worse: further cells of
    one of them.
    """

    table: str
    rows: dict[str, str]
    better: dict[str, str]
    worse: dict[str, str]


class Claim(Section):
    """One entry of manifests/claims.yaml. published: the rows it rests on; None for a question of
    your own.
    """

    claim: str
    where: str
    better: SystemOfClaim
    worse: SystemOfClaim
    published: PublishedPair | None = None


class Tested(NamedTuple):
    """A claim with what was measured."""

    claim: Claim
    # RSUM of `better` minus that of `worse`, as printed; None if no paper has it.
    published: float | None
    # The result of `statistics.contrast` for `worse` and `better`; None if a system is not of the
    # run.
    contrast: dict[str, Any] | None


def load(root: Path) -> list[Claim]:
    """Read manifests/claims.yaml."""
    file: Traversable = root / "manifests" / "claims.yaml"
    if not file.is_file():
        file = resources.files("manifests") / "claims.yaml"
    with refusing((OSError, ValueError, TypeError), lambda error: f"{file}: {first_fault(error)}"):
        entries = from_yaml(file.read_text(encoding="utf-8"))
        return [Claim.model_validate(entry) for entry in entries]


def can_be_tested(claim: Claim, features: Sequence[str]) -> bool:
    """Look up whether a run has the features of a claim's systems."""
    for side in (claim.better, claim.worse):
        if side.features == "R":
            continue
        wanted = of_ensemble(side.features)
        if not wanted or not set(wanted).issubset(features):
            return False
    return True


def published_difference(pair: PublishedPair | None) -> float | None:
    """The RSUM of `better` minus that of `worse`, in percentage points; None without rows."""
    if pair is None:
        return None
    difference = _rsum(pair, pair.better) - _rsum(pair, pair.worse)
    return round(difference, 1)


def _rsum(pair: PublishedPair, of_row: Mapping[str, str]) -> float:
    wanted = {**pair.rows, **of_row}
    rows = published.load(pair.table)
    matching = [row for row in rows if wanted.items() <= row.cells.items()]
    value = matching[0].value(RSUM) if len(matching) == 1 else None
    if value is None:
        raise InputError(
            f"{pair.table}.csv: {len(matching)} rows with {wanted}; expected one, with an RSUM"
        )
    return float(value)


def verdict(contrast: Mapping[str, Any] | None) -> str:
    """Whether a claim holds: "holds", "does not", "cannot tell; 9 seeds would suffice" or
    "not tested".
    """
    if contrast is None:
        return "not tested"
    word: str = contrast["RSUM"]["verdict"]
    if word.startswith(CANNOT_TELL):
        return word
    return "holds" if word == "higher" else "does not"


def to_markdown(tested: Sequence[Tested], measured_on: str, failed: Sequence[str] = ()) -> str:
    """Write the table of claims. measured_on: what. failed: the heads whose training failed, and
    why.
    """
    rows: list[list[str | Cell]] = []
    for test in tested:
        measured: list[str | Cell] = [MISSING] * 6
        if test.contrast:
            measured = _measured(test.contrast)
        claim = test.claim
        outcome = verdict(test.contrast)
        rows.append([claim.claim, claim.where, _printed(test), *measured, outcome])
    headings = (
        "claim",
        "where",
        "published",
        "here: worse",
        "better",
        "seeds",
        "difference of RSUM",
        "p",
        "adj. p",
        "",
    )
    table = markdown.rows(grid(headings, {"": rows}, texts=2))
    return "\n".join([table, "", *_notes(tested, measured_on, failed)])


def to_text(tested: Sequence[Tested], measured_on: str, failed: Sequence[str] = ()) -> str:
    """Write the same for a terminal of 80 columns: a line for each claim, and below them the
    numbers.
    """
    lines = []
    rows = []
    for count, test in enumerate(tested, 1):
        known = []
        if test.claim.where:
            known.append(test.claim.where)
        if test.published is not None:
            known.append(f"published {_printed(test)}")
        if test.contrast:
            worse, better, seeds, *numbers = _measured(test.contrast)
            known.append(f"seeds {seeds}")
            rows.append([str(count), worse, better, *numbers])
        outcome = verdict(test.contrast)
        claim = f"{count}  {test.claim.claim}: {outcome} ({'; '.join(known)})"
        lines.append(wrapped(claim))
    if rows:
        headings = ("RSUM", "worse", "better", "difference", "p", "adj. p")
        lines += ["", *text.to_text(grid(headings, {"": rows}))]
    notes = map(wrapped, _notes(tested, measured_on, failed))
    return "\n".join([*lines, "", *notes])


def _printed(tested: Tested) -> Cell:
    if tested.published is None:
        return Cell(MISSING)
    return number(tested.published, is_difference=True)


def _notes(tested: Sequence[Tested], measured_on: str, failed: Sequence[str]) -> list[str]:
    contrasts = [test.contrast for test in tested if test.contrast]
    over = {" and ".join(contrast["over"]) for contrast in contrasts}
    notes = [measured_on]
    if over:
        units = " or over ".join(sorted(over))
        notes.append(
            f"Brackets: 95 % intervals over {units}; ±: standard deviation over "
            "seeds, which are counted for both systems; adj. p: p corrected for all claims of the table. A "
            f"claim holds here if its difference is above 0 with a corrected p below {LEVEL}. Cannot tell: "
            "the difference is not significant; with so many images, or seeds of each system, one of this size "
            "would be with a power of 0.8."
        )
    if "images" in over:
        notes.append(
            "Where an interval is over images alone, one of the systems has a single seed: trained again, the "
            "difference may be another."
        )
    notes += [f"Training failed: {head}" for head in failed]
    return notes


def _measured(contrast: Mapping[str, Any]) -> list[str | Cell]:
    rsum = contrast["RSUM"]
    seeds = contrast["seeds"]
    return [
        compared.mean(rsum, "a"),
        compared.mean(rsum, "b"),
        f"{seeds['a']}, {seeds['b']}",
        *compared.difference(rsum),
    ]
