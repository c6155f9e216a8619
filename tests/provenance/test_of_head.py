"""A trace follows a head to the heads that it was trained from."""

from __future__ import annotations

from pathlib import Path

import invented_heads

from pipeline.foundation.artefacts import Record, Reference, record as records
from pipeline.foundation.files.compared import Step
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.requests import EmbedRequest
from pipeline.make.training.artefact import HeadArtefact
from pipeline.run.provenance import of_head, walk
from pipeline.run.provenance.context import Context
from pipeline.run.provenance.walk import HEAD, Link, behind


def trained(folder: Path, name: str, start: Path | None = None) -> Path:
    place = invented_heads.head(folder, name, [100.0])
    if start is not None:
        record = records.load(place)
        records.update(
            place, made_from=record.made_from | {"start": HeadArtefact.open(start).reference}
        )
    return place


def verdicts(head: Path) -> list[str]:
    """The verdicts on the heads behind one."""
    paths = Paths(head)
    context = Context(paths, behind([Link(head, HEAD, None)], paths), "sample", 0, None, 8)
    others = [path for path in context.paths_of(HEAD) if path != head]
    identities = [
        Step(link.path, link.role, link.reference.identity, context.identity(link))
        for path in others
        for link in context.links_to(path)
        if link.reference
    ]
    return [
        step.verdict
        for step in (*identities, *(step for path in others for step in of_head.steps(path)))
    ]


def test_a_change_of_a_head_behind_another_is_seen_at_any_distance(tmp_path: Path) -> None:
    first = trained(tmp_path, "first")
    second = trained(tmp_path, "second", first)
    third = trained(tmp_path, "third", second)
    assert verdicts(first) == []
    assert {*verdicts(second), *verdicts(third)} == {"matches"}
    with (first / "best.safetensors").open("ab") as checkpoint:
        checkpoint.write(b"x")
    assert "differs" in verdicts(second)
    assert "differs" in verdicts(third)


def test_a_head_is_not_the_one_that_another_was_trained_from_once_it_was_trained_again(
    tmp_path: Path,
) -> None:
    first = trained(tmp_path, "first")
    second = trained(tmp_path, "second", first)
    records.update(first, facts=records.load(first).facts | {"vocabulary": "another"})
    assert verdicts(second).count("differs") == 1


def test_a_head_with_a_network_of_its_own_is_not_made_from_stored_features(tmp_path: Path) -> None:
    head = trained(tmp_path, "mine")
    record = records.load(head)
    features = Reference(kind="features", name="region", identity="f")
    made_from = {**record.made_from, "features": features}
    network = {"engine": "butd", "options": {"weights": "untrained"}}
    paths = Paths(tmp_path)
    manifest = paths.manifest("sample")
    for own_network, inputs in (
        (None, [("manifest", manifest), ("features", paths.features("sample", "region"))]),
        (network, [("manifest", manifest)]),
    ):
        facts = record.facts | {"own_network": own_network}
        read = walk.links(
            record.model_copy(update={"made_from": made_from, "facts": facts}), head, paths
        )
        assert [(link.role, link.path) for link in read] == inputs


def test_embeddings_of_one_name_are_told_apart_by_their_identity(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    for dataset in ("one", "other"):
        place = paths.encoded(dataset, "encoder")
        place.mkdir(parents=True)
        made = Record(kind=EmbedRequest.kind, facts={"dataset": dataset}, finished=True)
        identity = records.save(place, made).identity
        reference = Reference(kind=made.kind, name="encoder", identity=identity)
        assert walk._vectors(paths, "none", reference) == place
    lost = Reference(kind=EmbedRequest.kind, name="encoder", identity="lost")
    assert walk._vectors(paths, "none", lost) == paths.encoded("none", "encoder")
