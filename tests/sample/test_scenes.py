"""What is in the scenes of the sample corpus."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pipeline.sample import backdrops, palette, scenes, shapes, vocabulary
from pipeline.sample.layouts import LAYOUTS

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
    assert set(kinds) == set(vocabulary.RELATIONS)


def test_everything_stays_within_the_picture() -> None:
    for scene in SCENES:
        for thing in scene.things:
            assert thing.xs[0] - thing.radius >= 0
            assert thing.xs[-1] + thing.radius <= 1
            assert thing.top >= 0
            assert thing.slot.y <= 1


def test_every_fact_occurs_and_has_words_and_a_picture() -> None:
    things = [thing for scene in SCENES for thing in scene.things]
    assert {thing.shape for thing in things} == set(shapes.SHAPES) == set(vocabulary.SHAPES)
    assert {thing.colour for thing in things} == set(palette.THINGS) == set(vocabulary.COLOURS)
    assert {thing.texture for thing in things} == set(vocabulary.TEXTURES)
    assert {thing.slot.size for thing in things} == set(vocabulary.SIZES)
    assert {scene.setting for scene in SCENES} == set(backdrops.BACKDROPS) == set(vocabulary.PLACES)
    assert {scene.detail for scene in SCENES} == {"", *vocabulary.DETAILS}
    moods = {(scene.setting, scene.mood) for scene in SCENES}
    assert moods == {(setting, mood) for setting, words in vocabulary.MOODS.items() for mood in words}


@pytest.mark.parametrize("make", [make for make, _ in LAYOUTS], ids=lambda make: make.__name__)
def test_a_layout_names_the_places_of_its_slots(make: Any) -> None:
    declared = dict(LAYOUTS)[make]
    found = {slot.place for seed in range(20) for slot in make(np.random.default_rng(seed))[0]}
    assert found == set(declared)
