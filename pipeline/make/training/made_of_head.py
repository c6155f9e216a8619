"""The facts of a head's scores and vectors, see `made`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.foundation.manifest import Manifest, Split, SplitName
from pipeline.judge.systems.scores.made import Member, OfHead, lacking
from pipeline.make import training
from pipeline.make.training.artefact import HeadArtefact


def made_from(
    head: HeadArtefact, manifest: Manifest, source: training.ImageSource, parts: Sequence[Split]
) -> OfHead:
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
) -> OfHead:
    """Compose the facts of a head's scores or vectors. rows: the images' rows in the source, which
    are of `splits`.
    """
    facts = head.facts
    request = head.request
    trained = facts.features.trained or facts.networks.image.get("weights") == training.RELEASED
    of_split = np.flatnonzero(manifest.images["split"].isin(splits).to_numpy())
    failed = int((~source.done[of_split]).sum())
    member = member_of(head).changed(store=source.identity, content=source.content(rows))
    return OfHead(
        dataset=manifest.dataset,
        split=SplitName.of(splits),
        manifest=manifest.digest,
        languages=manifest.languages,
        lacks=lacking(manifest.left_out, failed),
        recipe=request.name,
        text=request.text,
        seed=request.seed,
        trained_on=head.dataset,
        is_untrained=not trained,
        member=member,
    )


def with_splits(made: OfHead, source: training.ImageSource, parts: Sequence[Split]) -> OfHead:
    """Add to the facts of a head's vectors what was read of each split."""
    contents = {part.name: {"content": source.content(part.store_rows)} for part in parts}
    return made.changed(member=made.member.changed(splits=contents))


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
