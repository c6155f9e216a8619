"""The facts of a head's scores and vectors, see `made`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.foundation.manifest import Manifest, Split, SplitName
from pipeline.judge.systems.scores.made import Made, Member, lacking
from pipeline.make import training
from pipeline.make.training.artefact import HeadArtefact


def made_from(
    head: HeadArtefact, manifest: Manifest, source: training.ImageSource, parts: Sequence[Split]
) -> Made:
    """Compose the facts of a head's scores or vectors. parts: the splits, without what failed in
    extraction.
    """
    rows = np.concatenate([part.store_rows for part in parts])
    return of_rows(head, manifest, source, [part.name for part in parts], rows)


def of_rows(
    head: HeadArtefact,
    manifest: Manifest,
    source: training.ImageSource,
    splits: Sequence[str],
    rows: np.ndarray,
) -> Made:
    """Compose the facts of a head's scores or vectors. rows: the images' rows in the source, which
    are of `splits`.
    """
    facts = head.facts
    request = head.request
    trained = facts.features.trained or facts.networks.image.get("weights") == training.RELEASED
    of_split = np.flatnonzero(manifest.images["split"].isin(splits).to_numpy())
    failed = int((~source.done[of_split]).sum())
    member = member_of(head).changed(store=source.identity, content=source.content(rows))
    return Made(
        dataset=manifest.dataset,
        split=SplitName.of(splits),
        recipe=request.name,
        trained_on=None if head.dataset == manifest.dataset else head.dataset,
        features={request.feature: facts.features.recipe},
        text=request.text,
        seed=request.seed,
        untrained=[] if trained else [request.feature],
        manifest=manifest.digest,
        languages=manifest.languages,
        lacks=lacking(manifest.left_out, failed),
        members=[member],
    )


def with_splits(made: Made, source: training.ImageSource, parts: Sequence[Split]) -> Made:
    """Add to the facts of a head's vectors what was read of each split."""
    contents = {part.name: {"content": source.content(part.store_rows)} for part in parts}
    return made.changed(members=[made.members[0].changed(splits=contents)])


def member_of(head: HeadArtefact) -> Member:
    """Collect the facts of a head that are those of its scores, with the features of its
    training.
    """
    facts = head.facts
    request = head.request
    return Member(
        head=head.name,
        checkpoint=head.checkpoint,
        feature=request.feature,
        features=facts.features.recipe,
        networks={"image": facts.networks.image, "text": facts.networks.text},
        settings=request.settings,
        store=facts.store,
        content=facts.content or "",
        weights=facts.features.weights or "",
        vocabulary=facts.vocabulary,
        published=facts.origin is not None,
    )
