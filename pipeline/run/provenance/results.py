"""Results on disk: each system's numbers, with the record of what they were measured of, how, when
and where.

    NAME:
      record        a `Record`; its facts are those of the system, its contents digests of all that
                    follows
      PROTOCOL: …   the numbers by each protocol
      image_hits    by protocol the hits of each image, by which tables test systems against each
                    other

The run's own systems are in results/metrics.json, which each `pipeline evaluate` rewrites.
results/recorded.json keeps its entries: those of single stores, of larger pools and of heads that
were trained on other data.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from pipeline.foundation import artefacts
from pipeline.foundation.artefacts import Record, Reference, Request, Versions
from pipeline.foundation.evaluation.metrics import METRICS, parse_all
from pipeline.foundation.evaluation.metrics.base import STATISTICS, at
from pipeline.foundation.evaluation.retrieval import Protocol, Ties, of_packages
from pipeline.foundation.files.atomic import exclusive, write_json
from pipeline.foundation.files.compared import Step
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.results import read_json
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores import layout, made as of_systems
from pipeline.judge.systems.scores.judged import Truth
from pipeline.judge.systems.scores.made import Made, Unknown
from pipeline.judge.systems.scores.system import System

COMMAND = "evaluate --system STORE --record"
# The keys of an entry that are not protocols.
RECORD = "record"
HITS = "image_hits"
# The content of a record that says which entries were written together.
ENTRIES = "entries"
# A setting that changes no number.
LEFT_OUT = {"block_megabytes": 32.0}


class Distractors(BaseModel):
    """A store of vectors that enlarges a pool."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dataset: str
    split: str
    images: int
    captions: int

    @classmethod
    def of(cls, store: System) -> Self:
        """Describe a store."""
        return cls(
            dataset=store.made_from.dataset,
            split=str(store.split),
            images=len(store.image_ids),
            captions=len(store.caption_ids),
        )


def _with_left_out(settings: object) -> object:
    """Settings as recorded, with those that change no number and so are not recorded."""
    if not isinstance(settings, dict):
        return settings
    return LEFT_OUT | settings


class EvaluateRequest(Request):
    """The numbers of one system."""

    kind: ClassVar[str] = "result"

    name: str  # The entry's name
    protocols: list[str]
    settings: Annotated[
        Evaluate,
        BeforeValidator(_with_left_out),
        PlainSerializer(lambda settings: settings.recorded(LEFT_OUT)),
    ]
    judgements: str | None = None  # Digest of the file of judgements that the settings name
    ties: Ties = "expected"
    extended: str | None = None  # The judgements beyond the data set's own, such as CxC's
    distractors: list[Distractors] = Field(default_factory=list)

    @classmethod
    def of(
        cls,
        name: str,
        protocols: Sequence[str | Protocol],
        settings: Evaluate,
        truth: Truth,
        **more: Any,
    ) -> Self:
        """Compose a request from the settings and the right answers that they name."""
        names = []
        for protocol in protocols:
            if isinstance(protocol, Protocol):
                protocol = protocol.name
            names.append(protocol)
        return cls(name=name, protocols=names, settings=settings, judgements=truth.digest(), **more)

    def versions(self) -> Versions:
        """Collect the versions of the evaluation, of the metrics, and of protocols of other
        packages.
        """
        metrics = [(METRICS, metric.name) for metric in parse_all(self.settings.metrics)]
        return artefacts.versions("evaluation", *metrics, *of_packages(self.protocols))


@dataclass(frozen=True)
class Result:
    """A system's entry in a file of results."""

    record: Record
    numbers: Mapping[str, Any]  # by protocol
    hits: Mapping[
        str, Any
    ]  # by protocol, see `pipeline.foundation.evaluation.statistics.image_hits`
    # the names of all entries of its file, if these are written together
    entries: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        system: System,
        request: EvaluateRequest,
        numbers: Mapping[str, Any],
        hits: Mapping[str, Any],
        distractors: Sequence[System] = (),
        entries: Sequence[str] = (),
    ) -> Self:
        """Record the numbers of a system, which were measured now."""
        made_from = {"system": system.reference}
        for number, store in enumerate(distractors):
            made_from[f"distractor.{number}"] = store.reference
        record = artefacts.made_today(request, made_from, system.made_from.recorded())
        return cls(record, numbers, hits, entries).sealed()

    @classmethod
    def read(cls, entry: Mapping[str, Any], entries: Iterable[str] = ()) -> Self:
        """Read an entry. A ValueError, or one of its kind, if it is none. entries: the names of all
        of its file.
        """
        numbers = {
            protocol: value for protocol, value in entry.items() if protocol not in (RECORD, HITS)
        }
        record = Record.model_validate(entry[RECORD])
        if record.kind != EvaluateRequest.kind:
            raise ValueError(record.kind)
        if ENTRIES not in record.contents:
            entries = ()
        result = cls(record, numbers, entry.get(HITS, {}), tuple(entries))
        _ = result.request, result.made, result.system
        return result

    def sealed(self) -> Self:
        """The result with digests of its numbers and hits in its record, and a seal."""
        return replace(self, record=self.record.changed(contents=self._digests).sealed())

    @property
    def _digests(self) -> dict[str, str]:
        parts = {**self.numbers, HITS: self.hits}
        if self.entries:
            parts[ENTRIES] = sorted(self.entries)
        return {part: digest(value) for part, value in parts.items()}

    @property
    def entry(self) -> dict[str, Any]:
        """The entry as JSON values."""
        return {RECORD: self.record.model_dump(), **self.numbers, HITS: self.hits}

    @cached_property
    def request(self) -> EvaluateRequest:
        """What was measured, and how."""
        return EvaluateRequest.model_validate(self.record.request)

    @cached_property
    def made(self) -> Made:
        """The facts of the system."""
        return of_systems.read(self.record.facts)

    @property
    def truth(self) -> Truth:
        """The right answers by which it was measured; what is left out of them was refused then."""
        return replace(Truth.of(self.request.settings).or_of(self.request.protocols), left_out=1.0)

    @property
    def system(self) -> Reference:
        """The system as it was when it was measured."""
        return self.record.made_from["system"]

    def verify(self, file: Path, name: str) -> Iterator[Step]:
        """Compare the entry of a name in a file with its record, and the record with its seal."""
        record = self.record
        yield Step(file, f"the name of the entry {name}", self.request.name, name)
        yield Step(file, f"the seal of {name}", record.seal, record.computed_seal)
        for part in dict.fromkeys((*record.contents, *self._digests)):
            yield Step(
                file, f"{part} of {name}", record.contents.get(part), self._digests.get(part)
            )

    def with_protocols_of(self, earlier: "Result | None") -> "Result":
        """Add the numbers by other protocols of an earlier entry, if all else was the same."""
        if earlier is None or _without_protocols(earlier) != _without_protocols(self):
            return self
        numbers = {**earlier.numbers, **self.numbers}
        hits = {**earlier.hits, **self.hits}
        request = self.request.model_copy(update={"protocols": list(numbers)})
        return Result(self.record.changed(request=request.recorded()), numbers, hits).sealed()


def _without_protocols(result: Result) -> tuple[Any, ...]:
    record = result.record
    return record.made_from, record.versions, result.request.model_copy(update={"protocols": []})


def headline(results: Mapping[str, Result]) -> dict[str, dict[str, float]]:
    """The numbers that a reader looks at first: system -> {"RSUM": ..., "i2t R@1": ..., ...}, in
    percent.

    With captions in several languages, also mR of each and their mean. A split other than `test`
    and a protocol other than `all` are appended to the system's name.
    """
    headlines = {}
    for name, result in results.items():
        for protocol, numbers in result.numbers.items():
            values = {str(statistic): at(numbers, statistic) for statistic in STATISTICS}
            system = _named(name, str(result.made.split), protocol)
            headlines[system] = values | _by_language(numbers)
    return headlines


def _named(name: str, split: str, protocol: str) -> str:
    parts = [name]
    if split != "test":
        parts.append(split)
    if protocol != "all":
        parts.append(protocol)
    return "-".join(parts)


def _by_language(numbers: Mapping[str, Any]) -> dict[str, float]:
    if "languages" not in numbers:
        return {}
    recalls = {f"{name} mR": of_one["mR"] for name, of_one in numbers["languages"].items()}
    recalls["mR"] = numbers["mean_of_languages"]["mR"]
    return recalls


def parsed(tree: Any, path: Path | str = "metrics", command: str = "evaluate") -> dict[str, Result]:
    """Read the entries of a parsed file of results."""
    results = {}
    if not isinstance(tree, Mapping):
        raise InputError(
            f"{path}: no mapping of systems to numbers; run `pipeline {command}` again"
        )
    for name, entry in tree.items():
        with refusing(
            (ValueError, TypeError, KeyError, AttributeError),
            f"{path}: the entry of {name} does not say "
            f"what made it; delete it, and run `pipeline {command}` again",
        ):
            results[name] = Result.read(entry, tree)
    return results


def read(path: Path, command: str = "evaluate") -> dict[str, Result]:
    """Read a file of results. command: what makes it."""
    results = parsed(read_json(path, command), path, command)
    for name, result in results.items():
        wrong = [step.what for step in result.verify(path, name) if step.recorded != step.found]
        if wrong == [f"{ENTRIES} of {name}"]:
            raise InputError(
                f"{path}: entries were removed or added since; run `pipeline {command}` again"
            )
        if wrong:
            raise InputError(
                f"{path}: the entry of {name} is not as it was measured; delete it, and run `pipeline "
                f"{command}` again"
            )
    return results


def refuse_stale(
    path: Path, results: Mapping[str, Result], similarity: Callable[[str, str, str], Path]
) -> None:
    """Refuse results whose scores were made again since; no scores are read."""
    for name, result in results.items():
        store = similarity(result.made.dataset, result.system.name, str(result.made.split))
        if store.exists() and layout.finished(store).record.refers(store.stem) != result.system:
            raise InputError(
                f"{path}: {name} was scored again after it was measured; run `pipeline evaluate`"
            )


def write(path: Path, results: Mapping[str, Result]) -> None:
    """Write a file of results."""
    write_json(path, {name: result.entry for name, result in results.items()})


def name_beyond(pool: System, distractors: Sequence[System]) -> str:
    """Name an entry of results/recorded.json."""
    if isinstance(pool.made_from, Unknown):
        raise InputError(
            f"{pool.name}: does not record what made it, so it cannot be kept; leave out --record"
        )
    names = [f"{pool.name} on {pool.made_from.dataset}"]
    names += [f"{store.made_from.dataset} {store.split}" for store in distractors]
    return ", among ".join(names)


def add(path: Path, result: Result) -> None:
    """Write a result into results/recorded.json. Of an earlier entry the other protocols stay, if
    all else is equal.
    """
    name = result.request.name
    with exclusive(path):  # another process may add an entry of its own
        results: dict[str, Result] = {}
        if path.exists():
            results |= read(path, COMMAND)
        write(path, results | {name: result.with_protocols_of(results.get(name))})
