"""The facts of an ensemble, see `made`, and the images that its members have in common."""

from collections.abc import Sequence
from functools import reduce
from itertools import chain
from typing import TypeVar

import numpy as np

from pipeline.foundation.evaluation.retrieval.owners import of_owners
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.features import letters
from pipeline.judge.systems.requests import FuseRequest
from pipeline.judge.systems.scores.made import Ensemble, Folds, Fusion, Made, Member
from pipeline.judge.systems.scores.system import System

# The facts in which the heads of one method are alike.
OF_ONE_METHOD = ("recipe", "text", "seed")

Value = TypeVar("Value")


def made_from(request: FuseRequest, members: Sequence[System]) -> Ensemble:
    """Compose the facts of an ensemble.

    Raises:
        InputError: If the members are of several data sets or splits, were reranked by several
            protocols, or are heads of features of several recipes, text encoders or seeds.
    """
    _require_alike(members, ("dataset", "split", "manifest"))
    if request.features:
        _require_alike(members, OF_ONE_METHOD)
    facts = [member.made_from for member in members]
    first = facts[0]
    fusion = Fusion(
        features=request.features,
        method=request.method,
        weights=request.weights,
        members=[member.name for member in members],
        tuned=request.tuned or {},
    )
    recipe = _of_all([made.recipe for made in facts])
    text = _of_all([made.text for made in facts])
    seed = _of_all([made.seed for made in facts])
    untrained = _each_once([made.untrained for made in facts])
    files = _each_once([made.files for made in facts])
    sees_queries = any(made.has_seen_queries for made in facts)
    return Ensemble(
        name=letters(tuple(request.features)) or request.name,
        dataset=first.dataset,
        split=str(first.split),
        manifest=str(first.manifest),
        languages=first.languages,
        lacks=_lacks(facts),
        left_out=_left_out(members, request.keep_common),
        recipe=recipe,
        text=text,
        seed=seed,
        trained_on=first.training_data,
        features=_engines(facts),
        untrained=untrained,
        members=_heads(facts),
        fusion=fusion,
        protocol=_protocol(members),
        sees_queries=sees_queries,
        files=files,
    )


def _of_all(values: Sequence[Value | None]) -> Value | None:
    """The value in which all members are alike; None if they differ, since their names say it."""
    first = values[0]
    if all(value == first for value in values):
        return first
    return None


def _each_once(lists: Sequence[Sequence[str]]) -> list[str]:
    """What the lists of members have, in their order."""
    return list(dict.fromkeys(chain.from_iterable(lists)))


def _lacks(facts: Sequence[Made]) -> dict[str, int]:
    """What was left out for each reason: as much as of the member that lacks most."""
    lacks: dict[str, int] = {}
    for made in facts:
        for reason, count in made.lacks.items():
            lacks[reason] = max(count, lacks.get(reason, 0))
    return lacks


def _left_out(members: Sequence[System], keep_common: bool) -> list[int]:
    """The images that are left out of members, and, with keep_common, those that not all have."""
    left_out: set[int] = set()
    for member in members:
        left_out.update(member.made_from.left_out)
    if keep_common:
        _, not_common = common(members)
        left_out.update(not_common)
    return sorted(left_out)


def _heads(facts: Sequence[Made]) -> list[Member]:
    """The heads, dual encoders and given scores behind the members, each once."""
    heads: dict[str, Member] = {}
    for made in facts:
        for head in made.members:
            heads[head.head] = head
    return list(heads.values())


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
