"""Whether captions of the sample corpus tell the truth, in words of their own."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from pipeline.foundation.manifest.sample.scenes import WORLD, Scene, Thing, compose
from pipeline.foundation.manifest.sample.wording import FORMS, tokens, write_captions

SCENES = [compose(0, index) for index in range(600)]
CAPTIONS = [
    write_captions(scene, len(FORMS), np.random.default_rng([7, index]))
    for index, scene in enumerate(SCENES)
]


NOUNS = {
    name: shape for shape, names in WORLD["shapes"].items() for forms in names for name in forms
}
COLOUR_WORDS = {about["names"][0].split()[-1]: c for c, about in WORLD["colours"].items()} | {
    "violet": "purple",
    "teal": "turquoise",
}
NUMBER_WORDS = {word: number for number, word in enumerate(WORLD["numbers"])} | {"a": 1, "an": 1}
DETERMINERS = {*NUMBER_WORDS, "the"}


def mentions(caption: str, scene: Scene) -> list[tuple[Thing, str, list[str], int]]:
    """The things a caption names: thing, determiner, the words before the noun, the noun's
    position.
    """
    words = tokens(caption)
    by_shape = {thing.shape: thing for thing in scene.things}
    found = []
    for position, word in enumerate(words):
        if word in NOUNS:
            assert NOUNS[word] in by_shape, caption
            start = next(k for k in range(position - 1, -1, -1) if words[k] in DETERMINERS)
            found.append(
                (by_shape[NOUNS[word]], words[start], words[start + 1 : position], position)
            )
    return found


def test_captions_are_sentences_of_their_own() -> None:
    seen: dict[str, int] = {}
    for index, captions in enumerate(CAPTIONS):
        for caption in captions:
            assert re.fullmatch(r"[A-Z][A-Za-z,;. ]+[a-z.]", caption), caption
            assert "  " not in caption
            assert not re.search(r"\b[Aa] [aeiou]|\b[Aa]n [^aeiou]", caption), caption
            assert 5 <= len(tokens(caption)) <= 50
            assert seen.setdefault(caption, index) == index, f"{caption} tells two scenes"


def test_every_caption_names_the_theme_by_shape_and_colour() -> None:
    for scene, captions in zip(SCENES, CAPTIONS, strict=True):
        theme = scene.things[0]
        for caption in captions:
            described = [words for thing, _, words, _ in mentions(caption, scene) if thing is theme]
            assert described, caption
            assert theme.colour in {COLOUR_WORDS.get(word) for word in described[0]}, caption


@pytest.mark.slow
@pytest.mark.specification
def test_what_captions_say_of_a_thing_is_true() -> None:
    checked: Counter[str] = Counter()
    for scene, captions in zip(SCENES, CAPTIONS, strict=True):
        for caption in captions:
            for thing, determiner, words, _ in mentions(caption, scene):
                colours = {COLOUR_WORDS[word] for word in words if word in COLOUR_WORDS}
                assert colours <= {thing.colour, thing.accent}, caption
                if determiner != "the":
                    assert NUMBER_WORDS[determiner] == thing.slot.count, caption
                for size, names in WORLD["sizes"].items():
                    if any(name and name in " ".join(words) for name in names):
                        assert thing.slot.size == size, caption
                        checked[size] += 1
                for word, texture in (
                    ("striped", "striped"),
                    ("spotted", "spotted"),
                    ("checkered", "checked"),
                ):
                    if word in words:
                        assert thing.texture == texture, caption
                        checked[texture] += 1
    assert set(checked) == {"small", "medium", "large", "striped", "spotted", "checked"}


@pytest.mark.slow
def test_left_and_right_in_captions_are_left_and_right_in_the_scene() -> None:
    checked: Counter[str] = Counter()
    for scene, captions in zip(SCENES, CAPTIONS, strict=True):
        for caption in captions:
            words, named = tokens(caption), mentions(caption, scene)
            for position, word in enumerate(words[:-1]):
                if word in ("left", "right") and words[position + 1] == "of":
                    before = [thing for thing, *_, place in named if place < position][-1]
                    after = next(thing for thing, *_, place in named if place > position)
                    assert (before.slot.x < after.slot.x) == (word == "left"), caption
                    checked[word] += 1
    assert min(checked["left"], checked["right"]) > 100


def test_captions_of_one_image_differ_in_form_and_vocabulary() -> None:
    openings = Counter(tuple(tokens(caption)[:2]) for captions in CAPTIONS for caption in captions)
    assert len(openings) > 100
    assert openings.most_common(1)[0][1] < 0.08 * openings.total()


def test_tokens_are_words_in_lower_case() -> None:
    assert tokens("A red ball, 2 cubes; Saturn above.") == [
        "a",
        "red",
        "ball",
        "2",
        "cubes",
        "saturn",
        "above",
    ]
