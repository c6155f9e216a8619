"""The papers' claims about two systems, tested on your own data: the difference of their RSUM with
its interval.
"""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.evaluation.metrics import RSUM
from pipeline.evaluation.statistics import LEVEL
from pipeline.evaluation.statistics.contrast import CANNOT_TELL
from pipeline.files.parsing import from_yaml
from pipeline.parts.errors import InputError, refusing
from pipeline.parts.wrapping import wrapped
from pipeline.report import compared, markdown, published, text
from pipeline.report.table import MISSING, Cell, grid, number
from pipeline.settings import Section, first_fault
from pipeline.settings.features import of_ensemble


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
    published: (
        float | None
    )  # RSUM of `better` minus that of `worse`, as printed; None if no paper has it
    # The result of `statistics.contrast` for `worse` and `better`; None if a system is not of the
    # run.
    contrast: dict[str, Any] | None


def load(root: Path) -> list[Claim]:
    """Read manifests/claims.yaml."""
    in_project = root / "manifests" / "claims.yaml"
    file = in_project if in_project.is_file() else resources.files("manifests") / "claims.yaml"
    with refusing((OSError, ValueError, TypeError), lambda error: f"{file}: {first_fault(error)}"):
        return [
            Claim.model_validate(entry) for entry in from_yaml(file.read_text(encoding="utf-8"))
        ]


def can_be_tested(claim: Claim, features: Sequence[str]) -> bool:
    """Look up whether a run has the features of a claim's systems."""
    wanted = [
        of_ensemble(side.features) for side in (claim.better, claim.worse) if side.features != "R"
    ]
    return all(each and set(each) <= set(features) for each in wanted)


def published_difference(pair: PublishedPair | None) -> float | None:
    """The RSUM of `better` minus that of `worse`, in percentage points; None without rows."""
    return None if pair is None else round(_rsum(pair, pair.better) - _rsum(pair, pair.worse), 1)


def _rsum(pair: PublishedPair, of_row: Mapping[str, str]) -> float:
    wanted = {**pair.rows, **of_row}
    matching = [
        row
        for row in published.load(pair.table)
        if all(row.cells.get(column) == cell for column, cell in wanted.items())
    ]
    value = matching[0].value(RSUM) if len(matching) == 1 else None
    if value is None:
        raise InputError(
            f"{pair.table}.csv: {len(matching)} rows with {wanted}; expected one, with an RSUM"
        )
    return float(value)


def verdict(contrast: Mapping[str, Any] | None) -> str:
    """Whether a claim holds: "holds", "does not", "cannot tell; 9 seeds would" or "not tested"."""
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
    rows = [
        (
            each.claim.claim,
            each.claim.where,
            _printed(each),
            *(_measured(each.contrast) if each.contrast else [MISSING] * 6),
            verdict(each.contrast),
        )
        for each in tested
    ]
    headings = (
        "claim",
        "where",
        "published",
        "here: worse",
        "better",
        "seeds",
        "difference of RSUM",
        "p",
        "Holm",
        "",
    )
    return "\n".join(
        [
            markdown.rows(grid(headings, {"": rows}, texts=2)),
            "",
            *_notes(tested, measured_on, failed),
        ]
    )


def to_text(tested: Sequence[Tested], measured_on: str, failed: Sequence[str] = ()) -> str:
    """Write the same for a terminal of 80 columns: a line for each claim, and below them the
    numbers.
    """
    lines, rows = [], []
    for count, each in enumerate(tested, 1):
        worse, better, seeds, *numbers = _measured(each.contrast) if each.contrast else [""] * 3
        known = [each.claim.where]
        if each.published is not None:
            known.append(f"published {_printed(each)}")
        if seeds:
            known.append(f"seeds {seeds}")
        lines.append(
            f"{count}  {each.claim.claim}: {verdict(each.contrast)} ({'; '.join(filter(None, known))})"
        )
        if numbers:
            rows.append([str(count), worse, better, *numbers])
    headings = ("RSUM", "worse", "better", "difference", "p", "Holm")
    table = ["", *text.to_text(grid(headings, {"": rows}))] if rows else []
    return "\n".join(
        [*map(wrapped, lines), *table, "", *map(wrapped, _notes(tested, measured_on, failed))]
    )


def _printed(tested: Tested) -> Cell:
    return (
        Cell(MISSING) if tested.published is None else number(tested.published, is_difference=True)
    )


def _notes(tested: Sequence[Tested], measured_on: str, failed: Sequence[str]) -> list[str]:
    over = {" and ".join(each.contrast["over"]) for each in tested if each.contrast}
    notes = [measured_on]
    if over:
        notes.append(
            f"Brackets: 95 % intervals over {' or over '.join(sorted(over))}; ±: standard deviation over "
            "seeds, which are counted for both systems; Holm: p corrected for all claims of the table. A "
            f"claim holds here if its difference is above 0 with a corrected p below {LEVEL}. Cannot tell: so "
            "many images, or seeds of each system, would tell a difference of this size with a power of 0.8."
        )
    if "images" in over:
        notes.append(
            "Where an interval is over images alone, one of the systems has a single seed: trained again, the "
            "difference may be another."
        )
    return [*notes, *(f"Training failed: {each}" for each in failed)]


def _measured(contrast: Mapping[str, Any]) -> list[str | Cell]:
    rsum, seeds = contrast["RSUM"], contrast["seeds"]
    return [
        *(compared.mean(rsum, side) for side in "ab"),
        f"{seeds['a']}, {seeds['b']}",
        *compared.difference(rsum),
    ]
