"""A system with other relevance than one image a caption: from a qrels file, or of equal captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.evaluation import retrieval
from pipeline.evaluation.judgements import qrels
from pipeline.evaluation.judgements.rows import same_text
from pipeline.evaluation.retrieval import Protocol
from pipeline.evaluation.retrieval.collection import rows_of
from pipeline.files.digest import of_folder, sha256
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.settings import Evaluate
from pipeline.systems.scores.columns import Columns, of_matrix
from pipeline.systems.scores.layout import is_store
from pipeline.systems.scores.system import System


@dataclass(frozen=True)
class Truth:
    """The user's choice of right answers."""

    qrels: Path | None = None  # a file of judgements; None for the captions' own images
    same_text: bool = False  # whether captions with the same text are one query, for which all their images are right

    @classmethod
    def of(cls, settings: Evaluate) -> Truth:
        """Read the settings of a run."""
        return cls(Path(settings.qrels) if settings.qrels else None, settings.same_text is not None)

    @classmethod
    def of_protocols(cls, protocols: Sequence[str | Protocol]) -> Truth:
        """Look up what protocols count as right."""
        known = [retrieval.PROTOCOLS.get(each) if isinstance(each, str) else each for each in protocols]
        return cls(same_text=any(each is not None and each.same_text for each in known))

    def or_of(self, protocols: Sequence[str | Protocol]) -> Truth:
        """Fall back on what protocols count as right."""
        return Truth.of_protocols(protocols) if self == Truth() else self

    def chosen(self, settings: Evaluate) -> Evaluate:
        """Put this choice in place of that of the settings, where it is one."""
        if self == Truth():
            return settings
        return settings.model_copy(update={"qrels": str(self.qrels) if self.qrels else None,
                                           "same_text": "positive" if self.same_text else None})

    @property
    def words(self) -> str:
        """What is right, for readers; "" where it is each caption's own image."""
        if self.qrels is not None:
            return f"the judgements in {self.qrels.name}"
        return "captions of one text are one caption, right for each of their images" if self.same_text else ""

    def protocols(self, of_card: Sequence[str | Protocol]) -> list[str | Protocol]:
        """Choose the protocols of a run. Benchmarks are defined for the captions' own images alone."""
        if self in (Truth(), Truth.of_protocols(of_card)):
            return list(of_card)
        return [Protocol("qrels" if self.qrels else "same_text")]

    def digest(self) -> str | None:
        """Digest the file of judgements."""
        if self.qrels is None:
            return None
        try:
            return of_folder(self.qrels) if self.qrels.is_dir() else sha256(self.qrels)
        except OSError as error:
            raise InputError(f"cannot read {self.qrels}: {error.strerror or error}") from None


def matrix(path: Path, columns: Columns, truth: Truth) -> System:
    """Open a matrix or store as `of_matrix` does; with judgements it may have any number of captions an image."""
    if truth.qrels is None or columns != Columns() or is_store(path):
        return of_matrix(path, columns)
    return System.of(path.stem, path)


def judge(system: System, truth: Truth, manifest: Manifest | None) -> System:
    """Replace a system's right answers."""
    if truth.qrels is not None:
        return replace(system, relevance=qrels.read(truth.qrels, system))
    if truth.same_text:
        kept, relevance = same_text(replace(system, captions=_texts(system, manifest)), system.languages)
        return replace(system.only(np.arange(system.shape[0]), kept), relevance=relevance)
    return system


def _texts(system: System, manifest: Manifest | None) -> list[str]:
    """The text of each caption of the system."""
    _, captions = system.require_ids()
    if manifest is None:
        raise InputError("--same-text compares captions by their text: name the --manifest")
    system.require_manifest(manifest)
    table = manifest.table
    rows = rows_of(table["caption_id"].to_numpy(), captions,
                   lambda each: f"the manifest of {manifest.dataset} has no caption {each}, which {system.name} has")
    return table["caption"].to_numpy()[rows].tolist()


def told(system: System, truth: Truth) -> dict[str, Any]:
    """Describe the relevance for results."""
    if system.relevance is None:
        return {}
    source = truth.qrels.name if truth.qrels else "equal captions"
    i2t, t2i = system.relevance.i2t, system.relevance.t2i
    told = {"source": source, "pairs": {"i2t": len(i2t.candidate), "t2i": len(t2i.candidate)},
            "graded": i2t.grade is not None or t2i.grade is not None}
    return {"relevance": told | ({"digest": truth.digest()} if truth.qrels else {})}
