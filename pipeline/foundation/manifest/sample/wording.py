"""Captions of a scene, which differ in words, in order and in what they mention.

Every caption is true of its scene, and names its theme (the first thing) at least by shape and
colour. Words and forms of captions are listed in scenes.yaml.
"""

import re

import numpy as np

from pipeline.foundation.manifest.sample.scenes import (
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
    captions = []
    for k in chosen:
        filled = FORMS[k].format_map(_Teller(scene, rng))
        captions.append(sentence(re.sub(" +", " ", filled)))
    return captions


def tokens(caption: str) -> list[str]:
    """Split a caption into lower-case words without punctuation, as in Karpathy and Fei-Fei (CVPR
    2015).
    """
    return re.findall(r"[a-z0-9]+", caption.lower())


def sentence(words: str) -> str:
    """Begin with a capital, and say "an" for "a" before a vowel."""
    capital = words[0].upper() + words[1:]
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", capital)


class _Teller:
    """Fills the places of one caption's form with facts in words chosen at random; a thing keeps
    its noun.
    """

    def __init__(self, scene: Scene, rng: np.random.Generator) -> None:
        self.scene = scene
        self.rng = rng
        self.named = set[int]()
        self.about = SETTINGS[scene.setting]
        self.nouns: list[str] = []
        for thing in scene.things:
            singular, plural = pick(rng, WORLD["shapes"][thing.shape])
            noun = plural
            if thing.slot.count == 1:
                noun = singular
            self.nouns.append(noun)

    def __getitem__(self, name: str) -> str:
        """Fill a place in one of `FORMS`: by the method of that name, or by one of the phrases in
        scenes.yaml.
        """
        if name in WORLD:
            text: str = pick(self.rng, WORLD[name])
        else:
            text = getattr(self, name)()
        return text

    def _chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def _thing(self, index: int, briefly: bool = False, row: bool = True) -> str:
        """A noun phrase: "a large red and white striped ball", and "the ball" the second time."""
        # Several equal things are "three blue cubes", with `row` sometimes "a row of three blue
        # cubes".
        thing = self.scene.things[index]
        noun = self.nouns[index]
        if index in self.named:
            return "the " + noun
        self.named.add(index)
        size = ""
        if not briefly and not self._chance(0.6):
            size = pick(self.rng, WORLD["sizes"][thing.slot.size])
        before, after = self._colouring(thing, briefly or self._chance(0.4))
        words = " ".join(part for part in (size, before, noun, after) if part)
        if thing.slot.count == 1:
            return "a " + words
        number: str = WORLD["numbers"][thing.slot.count]
        if row:
            number = pick(self.rng, WORLD["rows"]).format(n=number)
        return f"{number} {words}"

    def _colouring(self, thing: Thing, briefly: bool) -> tuple[str, str]:
        """The words for colour and texture before and after the noun."""
        names = COLOURS[thing.colour]["names"]
        colour = names[0]
        if self._chance(0.3):
            colour = pick(self.rng, names)
        if briefly:
            return colour, ""
        before = TEXTURES[thing.texture]["before"]
        after = TEXTURES[thing.texture]["after"]
        form = pick(self.rng, before + after)
        if form in after:
            return colour, form.format(a=thing.accent)
        return form.format(c=colour, a=thing.accent), ""

    def _order(self) -> list[int]:
        """All things, from the first to the last or the other way round."""
        order = list(range(len(self.scene.things)))
        if self._chance(0.5):
            order.reverse()
        return order

    def _listed(self, indices: list[int], row: bool) -> str:
        *most, last = (self._thing(index, row=row) for index in indices)
        return f"{', '.join(most)} and {last}"

    def _relation(self) -> Relation:
        """A relation in which the theme takes part."""
        relations = self.scene.relations
        of_theme = [r for r in relations if 0 in (r.subject, r.object)]
        return pick(self.rng, of_theme)

    def _clause(self, relation: Relation) -> str:
        """A whole sentence about two things, without capital and full stop."""
        form = pick(self.rng, WORLD["relations"][relation.kind]["clauses"])
        verbs: dict[str, str] = {}
        for which, index in (("a", relation.subject), ("b", relation.object)):
            thing = self.scene.things[index]
            stand = STAND
            if thing.shape == "ball":
                stand = LIE
            forms = VERBS | {"stand": stand}
            for verb, (plural, singular) in forms.items():
                verbs[f"{verb}_{which}"] = singular if thing.slot.count == 1 else plural
        return self._filled(form, relation, briefly=False, row=False, **verbs)

    def _filled(self, form: str, relation: Relation, briefly: bool, row: bool, **verbs: str) -> str:
        a = self._thing(relation.subject, briefly, row)
        b = self._thing(relation.object, briefly, row)
        return form.format(a=a, b=b, **verbs)

    def theme(self) -> str:
        return self._thing(0)

    def everything(self) -> str:
        return self._listed(self._order(), row=True)

    def are_everything(self) -> str:
        order = self._order()
        first = self.scene.things[order[0]]
        be = "is" if first.slot.count == 1 else "are"
        return f"{be} {self._listed(order, row=False)}"

    def clause(self) -> str:
        return self._clause(self._relation())

    def sentence(self) -> str:
        return sentence(self.clause())

    def all_clauses(self) -> str:
        conjunction = pick(self.rng, (" while ", " and ", "; "))
        return conjunction.join(map(self._clause, self.scene.relations))

    def phrase(self, briefly: bool = False) -> str:
        """As `clause`, without a verb."""
        relation = self._relation()
        form = pick(self.rng, WORLD["relations"][relation.kind]["phrases"])
        return self._filled(form, relation, briefly, row=True)

    def brief_phrase(self) -> str:
        return self.phrase(briefly=True)

    def place(self) -> str:
        return pick(self.rng, self.about.where)

    def setting(self) -> str:
        return pick(self.rng, self.about.names)

    def mood(self) -> str:
        form = pick(self.rng, self.about.moods[self.scene.mood])
        return form.format(m=self.scene.mood)

    def place_and_mood(self) -> str:
        """The place, in 30 % of captions with the mood."""
        place = self.place()
        if self._chance(0.3):
            return f"{place} {self.mood()}"
        return place

    def detail(self) -> str:
        """A noun phrase for what is in the background, or "" where nothing is."""
        if not self.scene.detail:
            return ""
        phrase: str = pick(self.rng, DETAILS[self.scene.detail]["phrases"])
        return phrase

    def with_detail(self, share: float = 1.0) -> str:
        detail = self.detail()
        if detail and self._chance(share):
            return f", with {detail}"
        return ""

    def half_the_time_with_detail(self) -> str:
        return self.with_detail(0.5)

    def at_times_with_detail(self) -> str:
        return self.with_detail(0.4)

    def detail_first(self) -> str:
        detail = self.detail()
        if detail:
            return f"with {detail}, {self.phrase()} {self.place()}"
        return f"{self.setting()} {self.mood()}, where {self.clause()}"

    def others(self) -> str:
        others = self.scene.things[1:]
        count = sum(thing.slot.count for thing in others)
        if count == 1:
            return "another object"
        return f"{WORLD['numbers'][count]} other objects"

    def positions(self) -> str:
        """What is left, in the middle and right, if no two share a side; otherwise a phrase about
        two things.
        """
        things = self.scene.things
        from_left = sorted(range(len(things)), key=lambda k: things[k].slot.x)
        sides = [_side(things[k]) for k in from_left]
        if len(set(sides)) < len(sides):
            return f"{self.phrase()} {self.mood()}"
        named = [self._thing(k) for k in from_left]
        placed = zip(named, sides, strict=True)
        *most, last = (f"{thing} {side}" for thing, side in placed)
        return f"{', '.join(most)} and {last}, {self.place()}"


def _side(thing: Thing) -> str:
    """Where a thing is in the picture, from left to right."""
    if thing.slot.x < 0.4:
        return "on the left"
    if thing.slot.x > 0.6:
        return "on the right"
    return "in the middle"
