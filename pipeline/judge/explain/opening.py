"""What a user names as systems of several splits: files, vectors, or a system of the run, with
texts and judgements.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.foundation.evaluation.judgements import coco_pairs
from pipeline.foundation.evaluation.retrieval import PROTOCOLS, Protocol, Relevance, rows_of
from pipeline.foundation.evaluation.retrieval.lists import Lists
from pipeline.foundation.evaluation.retrieval.ranks import KnownRanks
from pipeline.foundation.manifest import SPLITS, Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.explain import otherwise
from pipeline.judge.explain.given import FOLD, Given
from pipeline.judge.explain.of_arrays import fold_of, refuse_judged
from pipeline.judge.explain.of_tools import OfTools
from pipeline.judge.systems.scores import conventions, judged
from pipeline.judge.systems.scores.foreign import open_system, opening
from pipeline.judge.systems.scores.judged import Columns, Truth
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables import named_rows
from pipeline.judge.tables.published import PublishedRow

# The least ratings of CxC's pairs that are tried.
RATINGS = (2.5, 3, 3.5)
# All splits of a manifest in one pool.
ALL = "all"


Embedded = tuple[Callable[[int], np.ndarray], int]


class Opened(NamedTuple):
    """The scores that a user names."""

    splits: Mapping[str, Given]  # The pools by split
    split: str  # Which of them is measured
    rules: Protocol  # By which it is measured
    system: System  # The one that is measured


@dataclass(frozen=True)
class Source:
    """Scores that a user names, and what else is known of them."""

    text: str  # A file, two files of vectors, or a store
    root: Path  # The folder that it is in
    paths: Paths  # Of the run
    columns: Columns = Columns()
    normalise: bool = False
    truth: Truth = Truth()
    cxc: Path | None = None  # The folder of CxC's files
    # Given captions and their vectors [C, D]: what embeds the captions again, each cut at a number
    # of tokens, and how many tokens the longest has.
    embedded_again: Callable[[Sequence[str], np.ndarray], Embedded] | None = None
    rules: Protocol | None = None  # The user's; None to choose by the published row and the system
    row: PublishedRow | None = None  # The published row

    def open(self) -> "Opened":
        """Open the scores."""
        systems, split = self._systems()
        manifest = self._manifest(systems[split])
        system, judged_so, has_owners = self._right(systems[split], manifest)
        systems[split] = system
        rules = self.rules or self._fitting(system)
        fold = fold_of(rules, system.shape[0], FOLD)
        pools = {
            name: self._given(system_of_split, manifest, fold)
            for name, system_of_split in systems.items()
        }
        embed, longest = self._embed(pools[split])

        def opened(read: Callable[[], System]) -> Given:
            of_reading, judgements, has_owners = self._right(read(), manifest)
            given = self._given(of_reading, manifest, fold)
            return replace(given, judged=judgements, has_owners=has_owners)

        pool = replace(
            pools[split],
            judged=judged_so,
            embed=embed,
            longest=longest,
            has_owners=has_owners,
        )
        pool = replace(pool, otherwise=otherwise.of_system(pool, system, opened))
        pools[split] = pool
        if ALL in systems and split != ALL:
            pools["candidates"] = _among_all(pools[ALL], systems[ALL], system)
        return Opened(pools, split, rules, system)

    def _systems(self) -> tuple[dict[str, System], str]:
        """The systems of all splits that are known, and the split that is measured."""
        try:
            system = open_system(self.text, self.columns, self.normalise, self.root)
        except InputError:
            of_splits = self._of_whole_manifest()
            if of_splits is None:
                raise
            return of_splits, self.columns.known_split or "test"
        refuse_judged(system)
        measured = system.split or ""
        systems = {measured: system}
        dataset = system.made_from.dataset
        if dataset:
            for split in SPLITS:
                path = self.paths.similarity(dataset, system.name, split)
                if split != measured and path.exists():
                    systems[split] = System.open_either(path)
        return systems, measured

    def _of_whole_manifest(self) -> dict[str, System] | None:
        """The splits of scores that are of all images and captions of the manifest; None for
        others.
        """
        if self.columns.manifest is None:
            return None
        columns = Columns(distance=self.columns.distance, judged=True)
        whole_system = open_system(self.text, columns, self.normalise, self.root)
        if isinstance(whole_system.scores, KnownRanks):
            return None  # ranks among a split's candidates do not follow from those among all
        manifest = Manifest.load(self.columns.manifest)
        caption_rows = manifest.rows(["image_id", "caption_id"])
        images = manifest.images["image_id"].to_numpy()
        captions = caption_rows["caption_id"].to_numpy()
        if whole_system.shape != (len(images), len(captions)):
            return None
        owner = rows_of(images, caption_rows["image_id"].to_numpy())
        whole_system = replace(
            whole_system, image_ids=images, caption_ids=captions, caption_image=owner, has_ids=True
        )
        systems = {ALL: whole_system}
        for split_name in SPLITS:
            if (manifest.images["split"] == split_name).any():
                split = manifest.split(split_name)
                system_of_split = whole_system.only(
                    split.store_rows, rows_of(captions, split.caption_ids)
                )
                systems[split_name] = replace(system_of_split, split=split_name)
        return systems

    def _fitting(self, system: System) -> Protocol:
        """The protocol of the published row or of the system, if it fits; else all of its images
        and captions.
        """
        rules = system.protocol or PROTOCOLS["all"]
        if self.row is not None:
            rules = PROTOCOLS[named_rows.protocol_of(self.row)]
        try:
            rules.parts(system.caption_image, system.shape[0])
        except InputError:
            return PROTOCOLS["all"]
        return rules

    def _manifest(self, system: System) -> Manifest | None:
        path = self.columns.manifest or self.paths.manifest(system.made_from.dataset)
        if not system.has_ids or not path.is_file():
            return None
        return Manifest.load(path)

    def _given(self, system: System, manifest: Manifest | None, fold: int) -> Given:
        texts = None
        if manifest is not None:
            texts = judged.of_captions(system, manifest, "caption").tolist()
        return Given(
            system.name,
            system.caption_image,
            system.scores,
            texts,
            judged.with_languages(system, manifest).languages,
            fold=fold,
            of_tools=self._of_tools(system),
            sides=system.sides,
            unlisted=judged.queries_not_listed(system),
        )

    def _of_tools(self, system: System) -> OfTools | None:
        """The run as other tools measure it; None for other scores."""
        if self.truth.qrels is None or not isinstance(system.scores, Lists):
            return None
        named = opening.places(self.text, self.root)
        path, _ = named[0]
        if len(named) > 1 or path.is_dir() or self.columns.distance:
            return None
        if opening.kind_of(path) not in ("text", "parquet") or not conventions.TOOLS:
            return None
        return OfTools(path, system.scores.parts, self.truth.qrels)

    def _embed(self, pool: Given) -> tuple[Callable[[int], np.ndarray] | None, int]:
        """What embeds the captions again, each cut at a number of tokens; and how many the longest
        has.
        """
        if self.embedded_again is None:
            return None, 0
        if pool.vectors is None or pool.captions is None:
            raise InputError(
                "--encoder embeds captions again: give vectors, IMAGES.npy:CAPTIONS.npy, and the "
                "--manifest"
            )
        return self.embedded_again(pool.captions, pool.vectors[1])

    def _right(
        self, system: System, manifest: Manifest | None
    ) -> tuple[System, Mapping[str, Callable[[], Relevance]], bool]:
        """The system as it is judged, the right pairs by other judgements, and whether its captions
        have images of their own.
        """
        of_pool, judgements = self._judged(system, manifest)
        with_owners, has_owners = _with_owners(of_pool, judgements)
        return with_owners, judgements, has_owners

    def _judged(
        self, system: System, manifest: Manifest | None
    ) -> tuple[System, Mapping[str, Callable[[], Relevance]]]:
        """The system without queries that are judged for another run, and the right pairs by other
        judgements than the captions' own images.
        """
        judgements: dict[str, Callable[[], Relevance]] = {}
        if self.truth.qrels is not None:
            by_qrels = judged.judge(system, self.truth, manifest)
            relevance = by_qrels.relevance
            assert relevance is not None
            if by_qrels.shape != system.shape:
                system = replace(by_qrels, relevance=system.relevance)
            judgements["qrels"] = lambda: relevance
        if self.cxc is not None:
            for least_rating in RATINGS:
                read_pairs = partial(coco_pairs.cxc_across, self.cxc, system, least_rating)
                judgements[f"cxc {least_rating:g}"] = read_pairs
        return system, judgements


def _with_owners(
    system: System, judgements: Mapping[str, Callable[[], Relevance]]
) -> tuple[System, bool]:
    """The system, and whether its captions have images of their own; where judgements alone say
    what is right, each caption has the first image that they give it.
    """
    if "qrels" not in judgements or (system.caption_image >= 0).any():
        return system, True
    relevance = judgements["qrels"]()
    return replace(system, caption_image=relevance.owner, relevance=relevance), False


def of_seeds(seeds: Sequence[Opened], title: str = "") -> Opened:
    """Several seeds of one system as one. title: what the user calls it, "" for nothing."""
    first, *others = seeds
    measured = first.splits[first.split]
    for other in others:
        is_of_same = other.split == first.split and np.array_equal(
            other.splits[other.split].owner, measured.owner
        )
        if not is_of_same:
            raise InputError(
                f"{other.system.path}: is of other images or captions than {first.system.path}"
            )
    splits = {}
    for split, pool in first.splits.items():
        of_others = [other.splits[split] for other in others if split in other.splits]
        splits[split] = replace(pool, others=tuple(of_others))
    name = title or ", ".join(seed.splits[seed.split].name for seed in seeds)
    splits[first.split] = replace(splits[first.split], name=name)
    return first._replace(splits=splits)


def _among_all(whole: Given, of_all: System, of_split: System) -> Given:
    """All images and captions as candidates of a split's queries: captions of others are of no
    image, and so no queries, nor are images without captions.
    """
    is_query = np.isin(of_all.caption_ids, of_split.caption_ids)
    return replace(whole, owner=np.where(is_query, whole.owner, -1))
