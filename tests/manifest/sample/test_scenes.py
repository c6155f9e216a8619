"""What is in the scenes of the sample corpus."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pipeline.foundation.manifest.sample import scenes, shapes
from pipeline.foundation.manifest.sample.backdrops import Backdrop
from pipeline.foundation.manifest.sample.scenes import LAYOUTS, WORLD

SCENES = [scenes.compose(0, index) for index in range(600)]


def test_no_two_scenes_share_setting_shape_and_colour_of_their_theme() -> None:
    themes = {(scene.setting, scene.things[0].shape, scene.things[0].colour) for scene in SCENES}
    assert len(themes) == len(SCENES) <= len(scenes.themes(0))


def test_the_things_of_a_scene_are_told_apart_by_shape_and_by_colour() -> None:
    for scene in SCENES:
        assert len(scene.things) >= 2
        assert len({thing.shape for thing in scene.things}) == len(scene.things)
        assert len({thing.colour for thing in scene.things}) == len(scene.things)
        assert scene.mood not in {thing.colour for thing in scene.things}


def test_relations_agree_with_the_places() -> None:
    kinds: Counter[str] = Counter()
    for scene in SCENES:
        for relation in scene.relations:
            a, b = scene.things[relation.subject].slot, scene.things[relation.object].slot
            kinds[relation.kind] += 1
            if relation.kind == "left":
                assert a.x < b.x - 0.1
            elif relation.kind == "front":
                assert a.y > b.y + 0.1
            else:
                assert a.y < b.y - 0.1
    assert set(kinds) == set(WORLD["relations"])


def test_everything_stays_within_the_picture() -> None:
    for scene in SCENES:
        for thing in scene.things:
            assert thing.xs[0] - thing.radius >= 0
            assert thing.xs[-1] + thing.radius <= 1
            assert thing.top >= 0
            assert thing.slot.y <= 1


def test_every_fact_occurs_and_has_words_and_a_picture() -> None:
    things = [thing for scene in SCENES for thing in scene.things]
    assert {thing.shape for thing in things} == set(shapes.SHAPES) == set(WORLD["shapes"])
    assert {thing.colour for thing in things} == set(WORLD["colours"])
    assert {thing.texture for thing in things} == set(WORLD["textures"])
    assert {thing.slot.size for thing in things} == set(WORLD["sizes"])
    assert {scene.setting for scene in SCENES} == set(scenes.SETTINGS)
    assert {scene.detail for scene in SCENES} == {"", *WORLD["details"]}
    moods = {(scene.setting, scene.mood) for scene in SCENES}
    assert moods == {
        (setting, mood) for setting, about in scenes.SETTINGS.items() for mood in about.moods
    }


@pytest.mark.parametrize("setting", scenes.SETTINGS.values())
def test_every_step_of_a_backdrop_can_be_drawn(setting: scenes.Setting) -> None:
    steps = {name for name, *_ in setting.backdrop}
    assert steps.issuperset(setting.details)
    assert steps & set(WORLD["details"]) == set(setting.details)
    assert all(
        "drawing" in WORLD["details"].get(name, ()) or callable(getattr(Backdrop, name))
        for name in steps
    )


@pytest.mark.parametrize("make", LAYOUTS, ids=lambda make: make.__name__)
def test_a_layout_names_the_places_of_its_slots(make: Any) -> None:
    declared = LAYOUTS[make]
    found = {slot.place for seed in range(20) for slot in make(np.random.default_rng(seed))[0]}
    assert found == set(declared)
