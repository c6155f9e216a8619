"""The facts of an ensemble are those of all its members, and what does not fit is refused."""

from __future__ import annotations

from typing import Any

import invented_facts
import numpy as np
import pytest

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.requests import FuseRequest
from pipeline.judge.systems.scores import of_ensemble
from pipeline.judge.systems.scores.made import Made
from pipeline.judge.systems.scores.system import System


def fused(*facts: Made, features: tuple[str, ...] = (), **changes: Any) -> Any:
    """The facts of the ensemble of systems of these facts, each of two images."""
    members = []
    for made in facts:
        name = made.heads[0]
        system = System.of(
            name, np.eye(2), np.arange(2), np.arange(2), np.arange(2), made_from=made
        )
        members.append(system)
    request = FuseRequest(
        name="all",
        method="mean",
        weights=[1 / len(members)] * len(members),
        features=list(features),
        **changes,
    )
    return of_ensemble.made_from(request, members)


def of_head(name: str, feature: str = "grid", **facts: Any) -> Made:
    member = {"head": name, "checkpoint": name, "feature": feature, "features": f"{feature}2"}
    return invented_facts.of_head(name, **{"member": member} | facts)


@pytest.mark.parametrize(
    ("key", "other"), [("dataset", "o"), ("split", "val"), ("manifest", "other")]
)
def test_members_are_of_one_data_set_split_and_manifest(key: str, other: str) -> None:
    """Whichever member differs."""
    mine = of_head("a")
    differs = of_head("b", **{key: other})
    for members in ((mine, differs), (differs, mine), (mine, of_head("c"), differs)):
        with pytest.raises(InputError, match=f"its {key} is .*; score both again"):
            fused(*members)


@pytest.mark.parametrize(("key", "other"), [("recipe", "vse_pp"), ("text", "bert"), ("seed", 1)])
def test_the_papers_ensembles_are_of_one_recipe_text_and_seed_and_a_users_of_any(
    key: str, other: Any
) -> None:
    mine = of_head("a", "region")
    differs = of_head("b", "grid", **{key: other})
    with pytest.raises(InputError, match=f"its {key} is {other!r}"):
        fused(mine, differs, features=("region", "grid"))
    made = fused(mine, differs)
    assert getattr(made, key) is None
    assert getattr(fused(mine, of_head("b")), key) == getattr(mine, key)


def test_the_facts_are_those_of_all_members() -> None:
    made = fused(
        of_head("a", "region", is_untrained=True, trained_on="flickr8k", languages=["de", "en"]),
        of_head("b", "grid", trained_on="flickr8k", languages=["de", "en"]),
        of_head("a", "region", is_untrained=True, trained_on="flickr8k", languages=["de", "en"]),
    )
    assert made.features == {"region": "region2", "grid": "grid2"}
    assert (made.untrained, made.trained_on) == (["region"], "flickr8k")
    assert (made.languages, made.heads) == (["de", "en"], ["a", "b"])
    other_engine = {"head": "c", "feature": "grid", "features": "grid3"}
    two = fused(of_head("a"), of_head("c", member=other_engine), of_head("d"))
    assert two.features == {"grid": "grid2 + grid3"}


def test_an_encoder_was_trained_on_nothing_but_what_it_is_measured_on() -> None:
    encoder = invented_facts.of_one("clip")
    encoder["member"] = {"head": "clip", "encoder": {"title": "CLIP"}}
    made = invented_facts.read({"kind": "encoder", **encoder})
    assert fused(made, made).training_data == "sample"
    assert fused(made, made).trained_on == "sample"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_ensemble_has_seen_the_queries_if_any_member_has(place: int) -> None:
    members = [of_head(name) for name in "abc"]
    assert not fused(*members).has_seen_queries
    members[place] = invented_facts.rescored(members[place], "nnn", "test")
    assert fused(*members).has_seen_queries
    members[place] = invented_facts.rescored(of_head("d"), "nnn", "train")
    assert not fused(*members).has_seen_queries
