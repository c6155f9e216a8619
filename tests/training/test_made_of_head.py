"""What made a result: the networks behind it by their names, and the settings of its training."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipeline.foundation import settings
from pipeline.foundation.artefacts import Record, Reference
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.make import training
from pipeline.make.features.store import FeatureStore
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.vocabulary import Vocabulary
from pipeline.make.training import made_of_head
from pipeline.make.training.artefact import Origin

TEXT = BiGRUText(Vocabulary.of(["a dog"], 1))
NO_NETWORKS: dict[str, Any] = {"image": {}, "text": {}}
SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml")
GRID = {"network": "test_efficientnet", "weights": "untrained", "image_size": 64, "grid": 2}


def head(networks: dict[str, Any] = NO_NETWORKS) -> training.HeadArtefact:
    """As `HeadArtefact.open` gives it."""
    recipe = SETTINGS.recipe("vse2ad")
    request = training.TrainRequest.of(
        "mine", "grid", "bigru", 3, recipe, SETTINGS.training_of("sample")
    )
    facts = {
        "width": 2,
        "vocabulary": TEXT.digest,
        "networks": networks,
        "store": "s",
        "features": {"recipe": "grid2", "weights": "w", "trained": False},
    }
    written = Record(
        kind="head",
        request=request.recorded(),
        facts=facts,
        contents={"best.safetensors": "c" * 64},
        made_from={"manifest": Reference(kind="manifest", name="sample", identity="m")},
    )
    return training.HeadArtefact(Path("x"), written)


@pytest.mark.parametrize(
    ("named", "place"),
    [("resnet152-in1k", {}), ("untrained", {}), ("f" * 64, {"weights": "/models/mine.pth"})],
)
def test_weights_go_by_their_known_name_or_their_digest(
    store: FeatureStore, monkeypatch: pytest.MonkeyPatch, named: str, place: dict[str, str]
) -> None:
    monkeypatch.setitem(store.fingerprint["settings"], "weights", named)
    monkeypatch.setattr(store, "place", place)
    found = training.networks(store, TEXT)
    known = {"weights": named, **({"place": place["weights"]} if place else {})}
    assert found == {
        "image": {
            "engine": "pyramid",
            "name": store.fingerprint["name"],
            "network": "test_efficientnet",
            **known,
        },
        "text": {},
    }


def test_of_imported_features_the_format_alone_is_known(
    store: FeatureStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = {"format": "scan", "recipe": "butd-36-scan", "weights": "unknown"}
    monkeypatch.setattr(FeatureStore, "fingerprint", imported)
    assert training.networks(store, TEXT)["image"] == {"format": "scan"}


def test_a_result_says_how_its_head_was_trained(scenes: Manifest, store: FeatureStore) -> None:
    parts = [scenes.split("test")]
    made = made_of_head.made_from(head(), scenes, store, parts)
    assert (made.recipe, made.seed) == ("mine", 3)
    assert (made.features, made.untrained) == ({"grid": "grid2"}, ["grid"])
    (member,) = made.members
    assert member.settings["learning_rate"] == 5e-4
    assert (member.store, member.vocabulary) == (store.identity, TEXT.digest)
    said = {"image": {"engine": "grid"}, "text": {}}
    other = made_of_head.made_from(head(networks=said), scenes, store, parts)
    assert other.members[0].networks == said


def test_of_images_that_failed_in_extraction_those_of_its_splits_are_told(
    scenes: Manifest, store: FeatureStore
) -> None:
    split_of_row = scenes.images["split"].to_numpy()
    done = np.ones(len(split_of_row), bool)
    done[np.flatnonzero(split_of_row == "test")[:2]] = False
    done[np.flatnonzero(split_of_row == "train")[:5]] = False
    source: Any = SimpleNamespace(
        done=done, identity=store.identity, content=store.content, path=store.path
    )
    for splits, failed in ((["test"], 2), (["train"], 5), (["train", "test"], 7), (["val"], 0)):
        rows = np.flatnonzero(np.isin(split_of_row, splits) & done)
        made = made_of_head.of_rows(head(), scenes, source, splits, rows)
        failures = {"images without features": failed} if failed else {}
        assert made.lacks == {**scenes.left_out, **failures}


def test_a_published_heads_own_network_is_no_untrained_one(scenes: Manifest) -> None:
    source = training.Photographs(scenes, scenes.images_folder, "grid", GRID)
    assert training.networks(source, TEXT)["image"] == {
        "engine": "grid",
        "name": source.engine.reported_as,
        "network": "test_efficientnet",
        "weights": "untrained",
    }
    networks = training.networks(source, TEXT, origin=Origin(file="model_best.pth", sha256="s"))
    assert networks["image"]["weights"] == training.RELEASED
    made = made_of_head.of_rows(head(networks=networks), scenes, source, ["test"], np.arange(2))
    assert made.untrained == []


def test_a_head_with_its_own_network_reads_photographs_of_its_own_manifest_alone(
    scenes: Manifest,
) -> None:
    artefact = head()
    network = {"own_network": {"engine": "grid", "options": GRID}}
    for dataset, digest, refused in (
        (scenes.dataset, scenes.digest, False),
        (scenes.dataset, "another", True),
        ("another", "another", False),  # that it is measured on
    ):
        manifest = Reference(kind="manifest", name=dataset, identity=digest)
        record = artefact.record.model_copy(
            update={
                "made_from": {"manifest": manifest},
                "facts": artefact.record.facts | network,
            }
        )
        reading: Any = training.Head(training.HeadArtefact(Path("x"), record), Any, Any)
        if refused:
            with pytest.raises(InputError, match="was trained with another manifest of"):
                reading.images(scenes, Path("features.zarr"))
        else:
            assert reading.images(scenes, Path("features.zarr")).identity == "s"
