"""Whether the pictures of the sample corpus show what is in the scene."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.foundation.manifest.sample import scenes, shapes
from pipeline.foundation.manifest.sample.backdrops import Backdrop
from pipeline.foundation.manifest.sample.paint import paint
from pipeline.foundation.manifest.sample.scenes import Scene, Slot, Thing, compose


def pixels(scene: Scene, size: int = 64) -> np.ndarray:
    return np.asarray(paint(scene, size, np.random.default_rng(0)), np.float32)


def scene_with(
    *things: Thing, setting: str = "room", mood: str = "blue", detail: str = ""
) -> Scene:
    return Scene(setting, mood, detail, things, ())


def thing_at(
    x: float, shape: str = "ball", colour: str = "red", texture: str = "plain", **slot: Any
) -> Thing:
    accent = "" if texture == "plain" else "white"
    return Thing(shape, colour, texture, accent, Slot("ground", x, 0.85, "large", **slot))


def changed(thing: Thing, size: int = 64) -> np.ndarray:
    """[size, size] bool: where the picture of a room changes when the thing stands in it."""
    return np.abs(pixels(scene_with(thing), size) - pixels(scene_with(), size)).max(axis=-1) > 40


@pytest.mark.parametrize("shape", shapes.SHAPES)
def test_a_shape_is_drawn_where_the_scene_puts_it(shape: str) -> None:
    for x in (0.25, 0.75):
        rows, columns = np.nonzero(changed(thing_at(x, shape)))
        assert abs(columns.mean() / 64 - x) < 0.05
        assert len(rows) > 0.02 * 64 * 64
        assert columns.min() / 64 > x - 0.22
        assert columns.max() / 64 < x + 0.25


@pytest.mark.parametrize("shape", shapes.SHAPES)
def test_every_pattern_looks_different_on_every_shape(shape: str) -> None:
    looks = [
        pixels(scene_with(thing_at(0.5, shape, texture=texture))) for texture in scenes.TEXTURES
    ]
    for k, look in enumerate(looks):
        for other in looks[:k]:
            assert (np.abs(look - other).max(axis=-1) > 60).sum() > 20


@pytest.mark.parametrize("colour", scenes.COLOURS)
def test_a_thing_has_the_colour_that_its_name_says(colour: str) -> None:
    patch = pixels(scene_with(thing_at(0.5, colour=colour)))[38:50, 26:38]
    seen = np.median(patch.reshape(-1, 3), axis=0) / 255
    distance = {
        name: float(np.abs(seen - np.array(value["rgb"])).sum())
        for name, value in scenes.COLOURS.items()
    }
    assert min(distance, key=distance.__getitem__) == colour


def test_a_row_shows_as_many_things_as_it_counts() -> None:
    for count in (2, 3, 4):
        thing = replace(thing_at(0.5), slot=Slot("ground", 0.5, 0.9, "small", count))
        middle = changed(thing, 96)[round((0.9 - thing.radius) * 96)]
        assert (np.diff(np.concatenate([[0], middle.astype(int)])) == 1).sum() == count


@pytest.mark.parametrize("setting", scenes.SETTINGS)
def test_moods_and_details_can_be_seen(setting: str) -> None:
    about = scenes.SETTINGS[setting]
    empty = {mood: pixels(scene_with(setting=setting, mood=mood)) for mood in about.moods}
    for mood, look in empty.items():
        assert look.std() > 5
        for other in set(about.moods) - {mood}:
            assert np.abs(look - empty[other]).mean() > 4
    for detail in about.details:
        mood = scenes.WORLD["weather"].get(detail, list(about.moods))[0]
        with_detail = pixels(scene_with(setting=setting, mood=mood, detail=detail))
        assert (np.abs(with_detail - empty[mood]).max(axis=-1) > 25).sum() > 15


def test_settings_look_different() -> None:
    looks = {
        name: pixels(scene_with(setting=name, mood=next(iter(about.moods))))
        for name, about in scenes.SETTINGS.items()
    }
    for name, look in looks.items():
        for other in set(looks) - {name}:
            assert np.abs(look - looks[other]).mean() > 10


@pytest.mark.slow
def test_a_picture_looks_the_same_at_every_size() -> None:
    for scene in (compose(0, index) for index in range(12)):
        small = np.asarray(paint(scene, 64, np.random.default_rng(5)), np.float32)
        large = paint(scene, 128, np.random.default_rng(5)).reduce(2)
        assert np.abs(small - np.asarray(large, np.float32)).mean() < 4


def test_a_planets_ring_goes_before_and_behind_it() -> None:
    backdrop = Backdrop(200, scene_with(), np.random.default_rng(0))
    backdrop.planet([0.5])
    radius = 0.085

    def at(x: float, y: float) -> np.ndarray:
        """The colour at a place in radii from the planet's middle."""
        row, column = ((0.14 + y * radius), (0.5 + x * radius))
        return backdrop.pixels[:, round(row * backdrop.side), round(column * backdrop.side)]

    sand = 0.85 * np.array([0.88, 0.80, 0.68])
    for x in (-1.65, 1.65):  # the ring's ends, on black
        np.testing.assert_allclose(at(x, -0.25 * x), sand, atol=0.02)
        assert not at(x, 0.25 * x).any()
    front, behind = at(0, 0.36), at(0, -0.36)
    assert (front > sand).all()  # over the planet's own colour
    assert 0.3 < behind[2] < 0.5
