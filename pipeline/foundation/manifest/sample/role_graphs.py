"""Role graphs of the sample's captions, in the form of HGR's annotation file
(`pipeline/foundation/manifest/role_graphs.py`).

HGR's own graphs come from a trained role labeller. The sample has few words, so a few rules find
verbs and the phrases around them: who or what (ARG0, ARG1), what is said of it (ARG2), and where,
where to, when and with what.
"""

from dataclasses import dataclass
from typing import Any

from pipeline.foundation.manifest.sample.scenes import WORLD
from pipeline.foundation.manifest.sample.wording import LIE, STAND

DOING: list[str] = WORLD["roles"]["doing"]
STANDING = (*WORLD["roles"]["standing"], *STAND, *LIE)
# Verbs of their own only where no other verb follows.
BEING = ("is", "are")
WHERE = set(WORLD["roles"]["where"])
WHITHER = set(WORLD["roles"]["whither"])
WHEN = set(WORLD["roles"]["when"])
PATTERNS = set(WORLD["roles"]["patterns"])
ARTICLES = ("a", "an", "the", "another")
LARGER_NUMBERS = ("six", "seven", "eight", "nine", "ten")
DETERMINERS = {*ARTICLES, *WORLD["numbers"][1:], *LARGER_NUMBERS}


@dataclass
class Phrase:
    """Some words of a caption."""

    places: list[int]  # their places
    verb: bool = False  # whether it is a verb


def graph(caption: str) -> tuple[dict[str, dict[str, Any]], list[list[str]]]:
    """Make a caption's role graph."""
    words = caption.split()
    plain = [word.strip(".,;").lower() for word in words]
    nodes = {"ROOT": _node("ROOT", list(range(len(words))), words)}
    edges: list[list[str]] = []
    for clause in _clauses(words, plain):
        names = [str(len(nodes) + place) for place in range(len(clause))]
        verbs = [place for place, phrase in enumerate(clause) if phrase.verb]
        for place, phrase in enumerate(clause):
            before = [verb for verb in verbs if verb < place]
            # The last verb before it, else the first after it.
            heads = [*reversed(before), *verbs]
            head = heads[0] if heads else None
            if phrase.verb:
                role = "V"
            elif head is None:
                role = "NOUN"
            else:
                verb_word = plain[clause[head].places[0]]
                role = _role([plain[at] for at in phrase.places], verb_word, bool(before))
            nodes[names[place]] = _node(role, phrase.places, words)
            if head is not None and not phrase.verb:
                edges.append([names[head], names[place], role])
            elif before and not clause[place - 1].verb:
                # "we see a ball floating": the ball belongs to both verbs.
                edges.append([names[place], names[place - 1], "ARG1"])
    return nodes, edges


def _node(role: str, places: list[int], words: list[str]) -> dict[str, Any]:
    return {"role": role, "spans": places, "words": [words[place] for place in places]}


def _clauses(words: list[str], plain: list[str]) -> list[list[Phrase]]:
    """Cut a caption into clauses, and these into phrases."""
    clauses: list[list[Phrase]] = [[]]
    opened = False
    for place, word in enumerate(plain):
        # An "and" between two things; one between two colours belongs to its phrase.
        joins_things = word == "and" and _at(plain, place + 1) in DETERMINERS
        if joins_things:
            opened = False
            has_verb = any(phrase.verb for phrase in clauses[-1])
            if has_verb and _verb_follows(words, plain, place):
                clauses.append([])
        elif word in ("while", "where"):
            opened = False
            clauses.append([])
        elif _is_verb(plain, place):
            opened = False
            clauses[-1].append(Phrase([place], verb=True))
        elif not (word in (*BEING, "has") and _is_verb(plain, place + 1)):
            if not (opened and _goes_on(plain, clauses[-1][-1], place)):
                clauses[-1].append(Phrase([]))
            opened = True
            clauses[-1][-1].places.append(place)
        if words[place][-1] in ".,;":
            opened = False
        if words[place][-1] in ".;":
            clauses.append([])
    return [clause for clause in clauses if clause]


def _at(plain: list[str], place: int) -> str:
    return plain[place] if 0 <= place < len(plain) else ""


def _is_verb(plain: list[str], place: int) -> bool:
    word = _at(plain, place)
    if word == "left":
        return _at(plain, place - 1) == "has"
    return word in (*DOING, *STANDING) or (
        word in BEING and _at(plain, place + 1) not in (*DOING[:-1], *STANDING)
    )


def _verb_follows(words: list[str], plain: list[str], place: int) -> bool:
    """Whether a verb comes at or after a place and before the next comma or stop."""
    end = next((at for at in range(place, len(words)) if words[at][-1] in ".,;"), len(words) - 1)
    return any(_is_verb(plain, at) for at in range(place, end + 1))


def _goes_on(plain: list[str], phrase: Phrase, place: int) -> bool:
    """Whether a word belongs to the phrase before it; else a phrase of place, direction or
    circumstance begins.
    """
    word, before = plain[place], plain[place - 1]
    if before in ("covered", "striped") or (word in ("left", "right") and before == "the"):
        return True
    if plain[phrase.places[0]] in WHITHER and word in WHITHER | {"to", "left", "right"}:
        return True
    if word == "with":
        return bool(PATTERNS & set(plain[place : place + 5]))
    return word not in WHERE | WHITHER | {"as"}


def _role(phrase: list[str], verb: str, behind: bool) -> str:
    """A phrase's role by its words, its verb, and whether it follows the verb."""
    first, last = phrase[0], phrase[-1]
    if first == "with":
        return "ARGM-COM"
    if first in WHITHER:
        return "ARGM-DIR"
    if first == "as" or (first in WHERE and last in WHEN):
        return "ARGM-TMP"
    if first in WHERE:
        return "ARGM-LOC"
    if verb in DOING:
        return "ARG1" if behind else "ARG0"
    return "ARG2" if behind else "ARG1"
