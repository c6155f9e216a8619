"""Systems shown together are of one manifest and split; facts are compared but for places."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import invented_facts
import pytest

from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.made import Made, OfGiven
from pipeline.run.provenance import checks


def store(made: Made, name: str = "a") -> Any:
    return SimpleNamespace(path=Path(f"{name}.zarr"), name=name, made_from=made)


@pytest.mark.parametrize(("key", "other"), [("manifest", "n"), ("split", "val")])
def test_stores_of_another_manifest_or_split_are_refused(
    key: str, other: str, tmp_path: Path
) -> None:
    given = OfGiven.model_validate(invented_facts.of_one("g"))
    for first, second, again in (
        (invented_facts.of_head("a"), invented_facts.of_head("b"), "score all again"),
        (invented_facts.of_head("a"), given, "add b again, or score a again"),
        (given, given, "add b and a again"),
    ):
        stores = {"a": store(first), "b": store(second.changed(**{key: other}), "b")}
        paths: Any = tmp_path
        said = f"b.zarr: its {key} is '{other}', that of a.zarr '.*'; {again}$"
        with pytest.raises(InputError, match=said):
            checks.refuse_stale(stores, paths)


def test_facts_are_the_same_wherever_files_lie() -> None:
    def of(place: str, title: str = "CLIP") -> Made:
        member = {"head": "clip", "encoder": {"title": title, "place": place}}
        return invented_facts.read(
            {"kind": "encoder", **invented_facts.of_one("clip"), "member": member}
        )

    recorded = store(of("/one"))
    for again, same in ((of("/one"), True), (of("/other"), True), (of("/one", "BLIP"), False)):
        step = checks.facts_again(recorded, lambda made=again: made)  # type: ignore[misc]
        assert (step.recorded == step.found) == same
    assert "title" in str(step.found)

    def refused() -> Made:
        raise InputError("is gone")

    step = checks.facts_again(recorded, refused)
    assert step.found == "is gone"
    assert step.recorded != digest("is gone")


def test_seeds_are_averaged_where_nothing_but_the_seed_differs() -> None:
    mine = store(invented_facts.of_head("a-s0"), "a-s0")
    seed = store(invented_facts.of_head("a-s1", seed=1), "a-s1")
    checks.refuse_other_systems([mine, seed])
    other = {"head": "a-s2", "checkpoint": "c", "vocabulary": "other"}
    differs = store(invented_facts.of_head("a-s2", member=other), "a-s2")
    for stores in ([mine, differs], [mine, seed, differs]):
        with pytest.raises(InputError, match="a-s2: is no seed of the system a-s0: other words;"):
            checks.refuse_other_systems(stores)
