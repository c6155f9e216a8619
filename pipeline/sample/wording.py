"""Captions of a scene, which differ in words, in order and in what they mention.

Every caption is true of its scene, and names its theme (the first thing) at least by shape and colour.
"""

import re
from collections.abc import Callable

import numpy as np

from pipeline.sample import vocabulary
from pipeline.sample.layouts import Relation, pick
from pipeline.sample.scenes import Scene, Thing


def write_captions(scene: Scene, count: int, rng: np.random.Generator) -> list[str]:
    """Describe a scene in several ways."""
    chosen = rng.permutation(len(FORMS))[:count]
    captions = (re.sub(" +", " ", FORMS[k](_Teller(scene, rng))) for k in chosen)
    return [_upper(caption) for caption in captions]


def tokens(caption: str) -> list[str]:
    """Split a caption into lower-case words without punctuation, as in Karpathy and Fei-Fei (CVPR 2015)."""
    return re.findall(r"[a-z0-9]+", caption.lower())


class _Teller:
    """Tells one caption's facts, each in words chosen anew, but calls the same thing by the same noun."""

    def __init__(self, scene: Scene, rng: np.random.Generator) -> None:
        self.scene, self.rng = scene, rng
        self.nouns = [
            pick(rng, vocabulary.SHAPES[thing.shape])[thing.slot.count > 1] for thing in scene.things
        ]
        self.named: set[int] = set()

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def thing(self, index: int, briefly: bool = False, row: bool = True) -> str:
        """A noun phrase: "a large red and white striped ball", and "the ball" the second time.

        Several equal things are "three blue cubes", with `row` sometimes "a row of three blue cubes".
        """
        thing, noun = self.scene.things[index], self.nouns[index]
        if index in self.named:
            return "the " + noun
        self.named.add(index)
        size = "" if briefly or self.chance(0.6) else pick(self.rng, vocabulary.SIZES[thing.slot.size])
        before, after = self._colouring(thing, briefly or self.chance(0.4))
        words = " ".join(part for part in (size, before, noun, after) if part)
        if thing.slot.count > 1:
            number = vocabulary.NUMBERS[thing.slot.count]
            return (pick(self.rng, vocabulary.ROWS).format(n=number) if row else number) + " " + words
        return ("an " if words[0] in "aeiou" else "a ") + words

    def _colouring(self, thing: Thing, briefly: bool) -> tuple[str, str]:
        """The words for colour and texture before and after the noun."""
        names = vocabulary.COLOURS[thing.colour]
        colour = pick(self.rng, names) if self.chance(0.3) else names[0]
        if briefly:
            return colour, ""
        before, after = vocabulary.TEXTURES[thing.texture]
        form = pick(self.rng, before + after)
        if form in after:
            return colour, form.format(a=thing.accent)
        return form.format(c=colour, a=thing.accent), ""

    def order(self) -> list[int]:
        """All things, from the first to the last or the other way round."""
        order = list(range(len(self.scene.things)))
        return order[::-1] if self.chance(0.5) else order

    def listed(self, indices: list[int], row: bool = True) -> str:
        *most, last = (self.thing(index, row=row) for index in indices)
        return f"{', '.join(most)} and {last}"

    def place(self) -> str:
        return pick(self.rng, vocabulary.PLACES[self.scene.setting][0])

    def setting(self) -> str:
        return pick(self.rng, vocabulary.PLACES[self.scene.setting][1])

    def mood(self) -> str:
        phrase = pick(self.rng, vocabulary.MOODS[self.scene.setting][self.scene.mood])
        return phrase.format(m=self.scene.mood)

    def place_and_mood(self) -> str:
        """The place, now and then with sky or wall; or sky or wall alone where that says enough."""
        return self.place() + (" " + self.mood() if self.chance(0.3) else "")

    def detail(self) -> str:
        """A noun phrase for what is in the background, or "" where nothing is."""
        if not self.scene.detail:
            return ""
        return pick(self.rng, vocabulary.DETAILS[self.scene.detail])

    def with_detail(self, share: float = 1.0) -> str:
        detail = self.detail()
        return f", with {detail}" if detail and self.chance(share) else ""

    def clause(self, relation: Relation) -> str:
        """A whole sentence about two things, without capital and full stop."""
        form = pick(self.rng, vocabulary.RELATIONS[relation.kind][0])
        verbs = self._verbs("a", relation.subject) | self._verbs("b", relation.object)
        return self._named(form, relation, briefly=False, row=False, **verbs)

    def phrase(self, relation: Relation, briefly: bool = False) -> str:
        """The same without a verb."""
        return self._named(
            pick(self.rng, vocabulary.RELATIONS[relation.kind][1]), relation, briefly, row=True
        )

    def _named(self, form: str, relation: Relation, briefly: bool, row: bool, **verbs: str) -> str:
        a, b = (self.thing(index, briefly, row) for index in (relation.subject, relation.object))
        return form.format(a=a, b=b, **verbs)

    def _verbs(self, which: str, index: int) -> dict[str, str]:
        """The verbs of the clauses, in the number of the thing."""
        thing = self.scene.things[index]
        one = thing.slot.count == 1
        stand = vocabulary.VERBS.get(thing.shape, vocabulary.STAND)[one]
        forms = {
            "is": ("are", "is"),
            "carry": ("carry", "carries"),
            "float": ("float", "floats"),
            "hover": ("hover", "hovers"),
        }
        return {f"stand_{which}": stand} | {f"{verb}_{which}": form[one] for verb, form in forms.items()}

    def about_theme(self) -> Relation:
        """A relation in which the theme takes part."""
        return pick(self.rng, [r for r in self.scene.relations if 0 in (r.subject, r.object)])

    def side(self, thing: Thing) -> str:
        """Where a thing is in the picture, from left to right."""
        if thing.slot.x < 0.4:
            return "on the left"
        return "on the right" if thing.slot.x > 0.6 else "in the middle"


def _sentence(t: _Teller) -> str:
    return f"{t.clause(t.about_theme())} {t.place_and_mood()}."


def _place_first(t: _Teller) -> str:
    return f"{t.place_and_mood()}, {t.clause(t.about_theme())}."


def _mood_first(t: _Teller) -> str:
    return f"{t.mood()}, {t.clause(t.about_theme())}{t.with_detail(0.5)}."


def _there_is(t: _Teller) -> str:
    first, *others = t.order()
    be = "is" if t.scene.things[first].slot.count == 1 else "are"
    return f"there {be} {t.listed([first, *others], row=False)} {t.place()}."


def _setting_first(t: _Teller) -> str:
    return f"{t.setting()} with {t.listed(t.order())}."


def _theme_alone(t: _Teller) -> str:
    return f"{t.thing(0)} {t.place()} {t.mood()}{t.with_detail()}."


def _theme_and_others(t: _Teller) -> str:
    others = sum(thing.slot.count for thing in t.scene.things[1:])
    rest = "another object" if others == 1 else f"{vocabulary.NUMBERS[others]} other objects"
    return f"{t.thing(0)} and {rest} {t.place_and_mood()}."


def _note(t: _Teller) -> str:
    return f"{t.phrase(t.about_theme(), briefly=True)}, {t.setting()}"


def _two_sentences(t: _Teller) -> str:
    opening = pick(t.rng, ("the picture shows", "this is", "we are looking at"))
    return f"{opening} {t.setting()}{t.with_detail(0.4)}. {_upper(t.clause(t.about_theme()))}."


def _positions(t: _Teller) -> str:
    """Who is left, in the middle and right, if no two share a side; otherwise what is behind or above."""
    ordered = sorted(range(len(t.scene.things)), key=lambda k: t.scene.things[k].slot.x)
    sides = [t.side(t.scene.things[k]) for k in ordered]
    if len(set(sides)) < len(sides):
        return f"{t.phrase(t.about_theme())} {t.mood()}."
    named = [f"{t.thing(k)} {side}" for k, side in zip(ordered, sides, strict=True)]
    return f"{', '.join(named[:-1])} and {named[-1]}, {t.place()}."


def _background_first(t: _Teller) -> str:
    detail = t.detail()
    if not detail:
        return f"{t.setting()} {t.mood()}, where {t.clause(t.about_theme())}."
    return f"with {detail}, {t.phrase(t.about_theme())} {t.place()}."


def _we_see(t: _Teller) -> str:
    opening = pick(t.rng, ("we see", "you can see", "here is", "this is a view of", "someone has left"))
    return f"{opening} {t.phrase(t.about_theme())} {t.place_and_mood()}."


def _everything(t: _Teller) -> str:
    joint = pick(t.rng, (" while ", " and ", "; "))
    return f"{joint.join(t.clause(relation) for relation in t.scene.relations)}, {t.place()}."


FORMS: tuple[Callable[[_Teller], str], ...] = (
    _sentence,
    _place_first,
    _mood_first,
    _there_is,
    _setting_first,
    _theme_alone,
    _theme_and_others,
    _note,
    _two_sentences,
    _positions,
    _background_first,
    _we_see,
    _everything,
)


def _upper(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
