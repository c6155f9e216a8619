"""One pool, measured as a command asks, with progress and notes on likely mistakes; how the numbers
are printed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.foundation.evaluation.metrics import parse_all
from pipeline.foundation.evaluation.retrieval import Protocol, Ties, protocol
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Evaluate
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores import judged, measured
from pipeline.judge.systems.scores.measured import Measured
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables import evaluated
from stages import terminal
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline.foundation.manifest import Manifest
    from pipeline.foundation.settings import AnySettings
    from pipeline.judge.tables.catalogues import Catalogue
    from pipeline.judge.tables.text import Strong
    from pipeline.run.provenance.results import EvaluateRequest


def with_metrics(settings: Evaluate, names: tuple[str, ...]) -> Evaluate:
    """The settings with other metrics, if any are named."""
    if not names:
        return settings
    metrics = [str(metric) for metric in parse_all(names)]
    return settings.model_copy(update={"metrics": metrics})


@dataclass(frozen=True)
class MeasuredPool:
    """One pool, measured by each protocol."""

    pool: System  # with its right answers
    manifest: Manifest | None  # of its images and captions, where it is known
    by_protocol: list[Measured]
    # What was measured beyond the recalls, and what was left out, by any protocol.
    beyond: dict[str, Any]
    notes: list[str]  # on likely mistakes

    @property
    def numbers(self) -> list[dict[str, Any]]:
        """The numbers by each protocol."""
        return [each.numbers | self.beyond for each in self.by_protocol]

    @property
    def hits(self) -> list[dict[str, Any]]:
        """The hits of each image by each protocol."""
        return [each.hits for each in self.by_protocol]


@dataclass(frozen=True)
class Evaluation:
    """How pools are measured: the options that hold for all of them."""

    paths: Paths
    settings: Evaluate
    truth: judged.Truth
    ties: Ties
    extended: str | None  # The judgements beyond the data set's own, such as CxC's

    def measure(
        self,
        pool: System,
        protocols: Sequence[str | Protocol],
        manifest_path: Path | None = None,
    ) -> MeasuredPool:
        """Measure a pool; the caller prints the notes on likely mistakes, and what was read as
        what.
        """
        known = pool.manifest(manifest_path, self.paths.manifest, self.truth.needs_manifest)
        _warn_of_leak(self.paths, pool)
        if known is not None:
            pool = judged.with_languages(pool, known)
        beyond = self._extended(pool)
        if self.truth.is_chosen:
            pool = judged.judge(pool, self.truth, known)
        beyond |= judged.facts(pool, self.truth, known)

        by_protocol = []
        for rules in protocols:
            work = measured.work(pool, rules, self.settings)
            with Progress(f"rank {pool.name}", "image", work) as bar:
                by_protocol.append(
                    measured.measure(pool, rules, self.ties, self.settings, bar.reach)
                )
        folds = max(protocol(rules).folds for rules in protocols)
        notes = judged.notes(pool, by_protocol[0].ranked[0][1])
        notes += judged.notes_of_cutoffs(pool, self.settings.metrics, folds)
        return MeasuredPool(pool, known, by_protocol, beyond, notes)

    def request(
        self,
        name: str,
        protocols: Sequence[str | Protocol],
        distractors: Sequence[System] = (),
    ) -> EvaluateRequest:
        """The request by which results record these numbers."""
        from pipeline.run.provenance.results import Distractors, EvaluateRequest

        return EvaluateRequest.of(
            name,
            protocols,
            self.settings,
            self.truth,
            ties=self.ties,
            extended=self.extended,
            distractors=[Distractors.of(store) for store in distractors],
        )

    def _extended(self, pool: System) -> dict[str, Any]:
        """Measure by judgements beyond the data set's own, if they are asked for."""
        if self.extended is None:
            return {}
        with Progress(f"{self.extended} {pool.name}", "query") as bar:
            return measured.extend(
                pool, self.extended, self.settings, lambda done: bar.reach(max(bar.done, done))
            )


def say_notes(notes: Iterable[tuple[str, str]]) -> None:
    """Print notes on likely mistakes, each once for all systems that it is on. notes: the name of
    each system with a note on it.
    """
    say(*(f"note: {note}" for note in judged.together(notes)))


@dataclass
class Unwritten:
    """The files that were refused or could not be written, which are named after the numbers."""

    reasons: list[str] = field(default_factory=list)
    has_failed: bool = False  # whether the system could not write one

    @contextmanager
    def of(self, place: Path) -> Iterator[None]:
        """Keep why a file is not written, and continue."""
        try:
            yield
        except InputError as error:
            self.reasons.append(str(error))
        except OSError as error:
            self.reasons.append(f"{error.filename or place}: {error.strerror or error}")
            self.has_failed = True

    def refuse(self) -> None:
        """Raise an InputError that names the files, if there are any."""
        if not self.reasons:
            return
        parts = [*self.reasons, "the numbers above are whole"]
        if self.has_failed:
            parts.append("name another place, or free some space")
        raise InputError("; ".join(parts))


def _warn_of_leak(paths: Paths, pool: System) -> None:
    """Warn if a head that was trained on another data set has seen photographs of the pool in
    training.
    """
    made = pool.made_from
    if made.training_data == made.dataset or not pool.has_ids:
        return
    training_file = paths.manifest(made.training_data)
    file = paths.manifest(made.dataset)
    if not training_file.is_file() or not file.is_file():
        return
    # and with them pandas
    from pipeline.foundation.manifest import Manifest
    from pipeline.foundation.manifest.photo_numbers import trained_on

    seen = trained_on(Manifest.load(training_file), Manifest.load(file), pool.image_ids)
    if seen:
        say(
            f"warning: {pool.name}: its head was trained on {len(seen):,} of these {len(pool.image_ids):,} "
            f"photographs, such as {seen[0]}: these numbers are not zero-shot. See `pipeline audit "
            f"{made.dataset}:{made.split} {made.training_data}:train`"
        )


def print_numbers(
    results: evaluated.Results,
    output: str,
    settings: AnySettings,
    beside: str | None = None,
    is_table: bool = True,
    catalogue: Catalogue | None = None,
) -> None:
    """Print results, a list of systems and protocols.

    Args:
        results: The numbers.
        output: A form of `evaluate`'s options, such as "latex".
        settings: Those of typesetting.
        beside: The benchmark whose published rows are printed above them.
        is_table: Whether text is one table of all systems.
        catalogue: The form of a catalogue in which they are printed instead.
    """
    if catalogue is not None:
        text = catalogue.text(results)
    elif output == "text" and is_table and not beside:
        text = evaluated.to_table(results, _strong(), terminal.width(sys.stdout))
    elif output in ("text", "verbose") and not beside:
        text = evaluated.to_text(results)
    elif output == "json":
        text = _json(results)
    else:
        text = _rows(results, output, settings, beside)
    terminal.echo(text)


def _strong() -> Strong:
    """What writes a bold number on standard output; `str` where nothing is bold there."""
    if terminal.has_colour(sys.stdout):
        return terminal.strong
    return str


def _json(results: evaluated.Results) -> str:
    entries = []
    for _, numbers in results:
        entry = {key: value for key, value in numbers.items() if key != "contender"}
        if isinstance(entry.get("series"), evaluated.Series):
            entry["series"] = entry["series"].name
        entries.append(entry)
    return json.dumps(entries, indent=1)


def _rows(
    results: evaluated.Results, output: str, settings: AnySettings, beside: str | None
) -> str:
    """The rows of a paper's table in LaTeX, Markdown, CSV or text."""
    from pipeline.judge.tables import latex, markdown
    from pipeline.judge.tables.comma_separated import to_csv
    from pipeline.judge.tables.fitting import Paper
    from pipeline.run.report import rows  # and with them the papers' tables

    strong = _strong()
    if output == "text":
        table = rows.table(results, beside, shows_bold=strong is not str)
        return rows.to_text(table, strong)
    table = rows.table(results, beside)
    if output == "csv":
        return to_csv(table).rstrip("\n")
    how = settings.typesetting
    paper = Paper(how.column_width, how.text_width, how.text_height)
    if output == "latex":
        return latex.to_latex(table, paper, how.table_style)
    return markdown.to_markdown(table, paper)
