"""Captions of a scene, which differ in words, in order and in what they mention.

Every caption is true of its scene, and names its theme (the first thing) at least by shape and
colour. Words and forms of captions are listed in scenes.yaml.
"""

import re

import numpy as np

from pipeline.manifest.sample.scenes import (
    COLOURS,
    DETAILS,
    SETTINGS,
    TEXTURES,
    WORLD,
    Relation,
    Scene,
    Thing,
    pick,
)

FORMS: list[str] = WORLD["captions"]
STAND = ("stand", "stands")
LIE = ("lie", "lies")
"""The verbs for a ball, in place of `STAND` for other shapes."""
VERBS = {
    "is": ("are", "is"),
    "carry": ("carry", "carries"),
    "float": ("float", "floats"),
    "hover": ("hover", "hovers"),
}
"""The other verbs of relations: of several things, and of one."""


def write_captions(scene: Scene, count: int, rng: np.random.Generator) -> list[str]:
    """Describe a scene in several ways."""
    chosen = rng.permutation(len(FORMS))[:count]
    captions = (re.sub(" +", " ", FORMS[k].format_map(_Teller(scene, rng))) for k in chosen)
    return [sentence(caption) for caption in captions]


def tokens(caption: str) -> list[str]:
    """Split a caption into lower-case words without punctuation, as in Karpathy and Fei-Fei (CVPR
    2015).
    """
    return re.findall(r"[a-z0-9]+", caption.lower())


def sentence(words: str) -> str:
    """Begin with a capital, and say "an" for "a" before a vowel."""
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", words[0].upper() + words[1:])


class _Teller:
    """Fills the places of one caption's form with facts in words chosen at random; a thing keeps
    its noun.
    """

    def __init__(self, scene: Scene, rng: np.random.Generator) -> None:
        self.scene, self.rng, self.named, self.about = (
            scene,
            rng,
            set[int](),
            SETTINGS[scene.setting],
        )
        self.nouns = [
            pick(rng, WORLD["shapes"][thing.shape])[thing.slot.count > 1] for thing in scene.things
        ]

    def __getitem__(self, name: str) -> str:
        """Fill a place in one of `FORMS`: by the method of that name, or by one of the phrases in
        scenes.yaml.
        """
        text: str = pick(self.rng, WORLD[name]) if name in WORLD else getattr(self, name)()
        return text

    def _chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def _thing(self, index: int, briefly: bool = False, row: bool = True) -> str:
        """A noun phrase: "a large red and white striped ball", and "the ball" the second time."""
        # Several equal things are "three blue cubes", with `row` sometimes "a row of three blue
        # cubes".
        thing, noun = self.scene.things[index], self.nouns[index]
        if index in self.named:
            return "the " + noun
        self.named.add(index)
        size = (
            "" if briefly or self._chance(0.6) else pick(self.rng, WORLD["sizes"][thing.slot.size])
        )
        before, after = self._colouring(thing, briefly or self._chance(0.4))
        words = " ".join(part for part in (size, before, noun, after) if part)
        if thing.slot.count > 1:
            number = WORLD["numbers"][thing.slot.count]
            return (pick(self.rng, WORLD["rows"]).format(n=number) if row else number) + " " + words
        return "a " + words

    def _colouring(self, thing: Thing, briefly: bool) -> tuple[str, str]:
        """The words for colour and texture before and after the noun."""
        names = COLOURS[thing.colour]["names"]
        colour = pick(self.rng, names) if self._chance(0.3) else names[0]
        if briefly:
            return colour, ""
        before, after = TEXTURES[thing.texture]["before"], TEXTURES[thing.texture]["after"]
        form = pick(self.rng, before + after)
        if form in after:
            return colour, form.format(a=thing.accent)
        return form.format(c=colour, a=thing.accent), ""

    def _order(self) -> list[int]:
        """All things, from the first to the last or the other way round."""
        order = list(range(len(self.scene.things)))
        return order[::-1] if self._chance(0.5) else order

    def _listed(self, indices: list[int], row: bool) -> str:
        *most, last = (self._thing(index, row=row) for index in indices)
        return f"{', '.join(most)} and {last}"

    def _relation(self) -> Relation:
        """A relation in which the theme takes part."""
        return pick(self.rng, [r for r in self.scene.relations if 0 in (r.subject, r.object)])

    def _clause(self, relation: Relation) -> str:
        """A whole sentence about two things, without capital and full stop."""
        form = pick(self.rng, WORLD["relations"][relation.kind]["clauses"])
        verbs: dict[str, str] = {}
        for which, index in (("a", relation.subject), ("b", relation.object)):
            thing = self.scene.things[index]
            forms = VERBS | {"stand": LIE if thing.shape == "ball" else STAND}
            verbs |= {
                f"{verb}_{which}": each[thing.slot.count == 1] for verb, each in forms.items()
            }
        return self._filled(form, relation, briefly=False, row=False, **verbs)

    def _filled(self, form: str, relation: Relation, briefly: bool, row: bool, **verbs: str) -> str:
        a, b = (self._thing(index, briefly, row) for index in (relation.subject, relation.object))
        return form.format(a=a, b=b, **verbs)

    def theme(self) -> str:
        return self._thing(0)

    def everything(self) -> str:
        return self._listed(self._order(), row=True)

    def are_everything(self) -> str:
        order = self._order()
        be = "is" if self.scene.things[order[0]].slot.count == 1 else "are"
        return f"{be} {self._listed(order, row=False)}"

    def clause(self) -> str:
        return self._clause(self._relation())

    def sentence(self) -> str:
        return sentence(self.clause())

    def all_clauses(self) -> str:
        return pick(self.rng, (" while ", " and ", "; ")).join(
            map(self._clause, self.scene.relations)
        )

    def phrase(self, briefly: bool = False) -> str:
        """As `clause`, without a verb."""
        relation = self._relation()
        return self._filled(
            pick(self.rng, WORLD["relations"][relation.kind]["phrases"]),
            relation,
            briefly,
            row=True,
        )

    def brief_phrase(self) -> str:
        return self.phrase(briefly=True)

    def place(self) -> str:
        return pick(self.rng, self.about.where)

    def setting(self) -> str:
        return pick(self.rng, self.about.names)

    def mood(self) -> str:
        return pick(self.rng, self.about.moods[self.scene.mood]).format(m=self.scene.mood)

    def place_and_mood(self) -> str:
        """The place, in 30 % of captions with the mood."""
        return self.place() + (" " + self.mood() if self._chance(0.3) else "")

    def detail(self) -> str:
        """A noun phrase for what is in the background, or "" where nothing is."""
        return pick(self.rng, DETAILS[self.scene.detail]["phrases"]) if self.scene.detail else ""

    def with_detail(self, share: float = 1.0) -> str:
        detail = self.detail()
        return f", with {detail}" if detail and self._chance(share) else ""

    def half_the_time_with_detail(self) -> str:
        return self.with_detail(0.5)

    def at_times_with_detail(self) -> str:
        return self.with_detail(0.4)

    def detail_first(self) -> str:
        if detail := self.detail():
            return f"with {detail}, {self.phrase()} {self.place()}"
        return f"{self.setting()} {self.mood()}, where {self.clause()}"

    def others(self) -> str:
        count = sum(thing.slot.count for thing in self.scene.things[1:])
        return "another object" if count == 1 else f"{WORLD['numbers'][count]} other objects"

    def positions(self) -> str:
        """What is left, in the middle and right, if no two share a side; otherwise a phrase about
        two things.
        """
        ordered = sorted(range(len(self.scene.things)), key=lambda k: self.scene.things[k].slot.x)
        sides = [_side(self.scene.things[k]) for k in ordered]
        if len(set(sides)) < len(sides):
            return f"{self.phrase()} {self.mood()}"
        *most, last = (f"{self._thing(k)} {side}" for k, side in zip(ordered, sides, strict=True))
        return f"{', '.join(most)} and {last}, {self.place()}"


def _side(thing: Thing) -> str:
    """Where a thing is in the picture, from left to right."""
    if thing.slot.x < 0.4:
        return "on the left"
    return "on the right" if thing.slot.x > 0.6 else "in the middle"
