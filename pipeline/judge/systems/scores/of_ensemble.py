"""The facts of an ensemble, see `made`, and the images that its members have in common."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.retrieval.owners import of_owners
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.features import letters
from pipeline.judge.systems.requests import FuseRequest
from pipeline.judge.systems.scores.made import Folds, Fusion, Made, Member
from pipeline.judge.systems.scores.system import System

# The facts in which the heads of one method are alike.
OF_ONE_METHOD = ("recipe", "text", "seed")


def made_from(request: FuseRequest, members: Sequence[System]) -> Made:
    """Compose the facts of an ensemble.

    Raises:
        InputError: If the members are of several data sets or splits, were reranked by several
            protocols, or are heads of features of several recipes, text encoders or seeds.
    """
    facts = [member.made_from for member in members]
    first = facts[0]
    _require_alike(members, ("dataset", "split", "manifest"))
    if request.features:
        _require_alike(members, OF_ONE_METHOD)
    lacks: dict[str, int] = {}
    left_out: set[int] = set()
    untrained: list[str] = []
    heads: dict[str, Member] = {}
    for made in facts:
        for reason, count in made.lacks.items():
            lacks[reason] = max(count, lacks.get(reason, 0))
        left_out.update(made.left_out)
        untrained += made.untrained
        heads |= {head.head: head for head in made.members}
    if request.keep_common:
        _, not_common = common(members)
        left_out.update(not_common)
    marks = []
    if any(made.has_seen_queries for made in facts):
        marks = [{"name": "ensemble", "bank": "test"}]  # tables mark it
    fusion = Fusion(
        features=request.features,
        method=request.method,
        weights=request.weights,
        members=[member.name for member in members],
        tuned=request.tuned or {},
    )
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
        **_shared(facts),
        features=_engines(facts),
        untrained=list(dict.fromkeys(untrained)),
        members=list(heads.values()),
        lacks=lacks,
        protocol=_protocol(members),
        steps=marks,
        fusion=fusion,
    )


def _shared(facts: Sequence[Made]) -> dict[str, Any]:
    """The method's facts; one in which members differ is None, since the members' names say it."""
    shared: dict[str, Any] = {}
    for key in OF_ONE_METHOD:
        values = [getattr(made, key) for made in facts]
        alike = all(value == values[0] for value in values)
        shared[key] = values[0] if alike else None
    return shared


def common(members: Sequence[System]) -> tuple[list[System], list[int]]:
    """The members on the images that all have, with their captions, and the images that are left
    out.
    """
    shared = reduce(np.intersect1d, [member.image_ids for member in members])
    if not len(shared):
        names = ", ".join(member.name for member in members)
        raise InputError(f"{names}: have no image in common")
    of_any = reduce(np.union1d, [member.image_ids for member in members])
    parts = []
    for member in members:
        images = np.isin(member.image_ids, shared)
        captions = of_owners(images, member.caption_image, True)
        parts.append(member.only(np.flatnonzero(images), np.flatnonzero(captions)))
    return parts, np.setdiff1d(of_any, shared).tolist()


def _require_alike(members: Sequence[System], keys: Sequence[str]) -> None:
    first = members[0]
    for member in members[1:]:
        for key in keys:
            mine = getattr(member.made_from, key)
            wanted = getattr(first.made_from, key)
            if mine != wanted:
                raise InputError(
                    f"{member.path}: its {key} is {mine!r}, that of {first.path.name} {wanted!r}; "
                    "score both again"
                )


def _engines(facts: Sequence[Made]) -> dict[str, str]:
    """Feature -> the name under which its engine's features are reported; several names if members
    differ.
    """
    names: dict[str, list[str]] = {}
    for made in facts:
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
