"""The facts of an ensemble, see `made`, and the images that its members have in common."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from pipeline.evaluation.retrieval.owners import of_owners
from pipeline.parts.errors import InputError
from pipeline.settings.features import letters
from pipeline.systems.requests import FuseRequest
from pipeline.systems.scores.made import Folds, Fusion, Made
from pipeline.systems.scores.system import System


def made_from(request: FuseRequest, members: Sequence[System]) -> Made:
    """Compose the facts of an ensemble.

    Raises:
        InputError: If the members are of several data sets or splits, were reranked by several
            protocols, or are heads of features of several recipes, text encoders or seeds.
    """
    every = [member.made_from for member in members]
    first = every[0]
    of_one_method = ("recipe", "text", "seed")
    _require_alike(members, ("dataset", "split", "manifest"))
    if request.features:
        _require_alike(members, of_one_method)
    # A fact in which members differ is None for the ensemble; the members' names say it.
    shared: dict[str, Any] = {key: getattr(first, key) for key in of_one_method}
    for made in every:
        for key in of_one_method:
            if getattr(made, key) != shared[key]:
                shared[key] = None
    lacks: dict[str, int] = {}
    for made in every:
        for reason, count in made.lacks.items():
            lacks[reason] = max(count, lacks.get(reason, 0))
    left_out = {image for made in every for image in made.left_out}
    if request.keep_common:
        left_out |= {*common(members)[1]}
    marks = []
    if any(made.has_seen_queries for made in every):
        marks = [{"name": "ensemble", "bank": "test"}]  # tables mark it
    return Made(
        dataset=first.dataset,
        split=first.split,
        manifest=first.manifest,
        trained_on=first.trained_on,
        ensemble=letters(tuple(request.features)) or request.name,
        languages=first.languages,
        left_out=sorted(left_out),
        file=first.file,
        distance=first.distance,
        **shared,
        features=_engines(every),
        untrained=list(dict.fromkeys(feature for made in every for feature in made.untrained)),
        members=list({member.head: member for made in every for member in made.members}.values()),
        lacks=lacks,
        protocol=_protocol(members),
        steps=marks,
        fusion=Fusion(
            features=request.features,
            method=request.method,
            weights=request.weights,
            members=[member.name for member in members],
            tuned=request.tuned or {},
        ),
    )


def common(members: Sequence[System]) -> tuple[list[System], list[int]]:
    """The members on the images that all have, with their captions, and the images that are left
    out.
    """
    shared = reduce(np.intersect1d, [member.image_ids for member in members])
    if not len(shared):
        names = ", ".join(member.name for member in members)
        raise InputError(f"{names}: have no image in common")
    every = reduce(np.union1d, [member.image_ids for member in members])
    parts = []
    for member in members:
        kept = np.isin(member.image_ids, shared)
        captions = of_owners(kept, member.caption_image, True)
        parts.append(member.only(np.flatnonzero(kept), np.flatnonzero(captions)))
    return parts, np.setdiff1d(every, shared).tolist()


def _require_alike(members: Sequence[System], keys: Sequence[str]) -> None:
    first = members[0]
    for member in members[1:]:
        for key in keys:
            mine, wanted = getattr(member.made_from, key), getattr(first.made_from, key)
            if mine != wanted:
                raise InputError(
                    f"{member.path}: its {key} is {mine!r}, that of {first.path.name} {wanted!r}; "
                    "score both again"
                )


def _engines(every: Sequence[Made]) -> dict[str, str]:
    """Feature -> the name under which its engine's features are reported; several names if members
    differ.
    """
    names: dict[str, list[str]] = {}
    for made in every:
        for feature, engine in made.features.items():
            of_feature = names.setdefault(feature, [])
            if engine not in of_feature:
                of_feature.append(engine)
    return {feature: " + ".join(of_feature) for feature, of_feature in names.items()}


def _protocol(members: Sequence[System]) -> Folds | None:
    """The protocol by which members were reranked; None if none was."""
    protocols = {member.protocol.name: member.protocol for member in members if member.protocol}
    if len(protocols) > 1:
        raise InputError(
            f"the members were reranked by the protocols {' and '.join(protocols)}; rerank them by one"
        )
    for only in protocols.values():
        return Folds(name=only.name, folds=only.folds)
    return None
