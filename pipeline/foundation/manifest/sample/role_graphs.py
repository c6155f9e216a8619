"""Role graphs of the sample's captions, in the form of HGR's annotation file,
sent2rolegraph.augment.json.

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

    def words(self, plain: list[str]) -> list[str]:
        """Take its words out of the caption's."""
        return [plain[place] for place in self.places]


def graph(caption: str) -> tuple[dict[str, dict[str, Any]], list[list[str]]]:
    """Make a caption's role graph."""
    words = caption.split()
    plain = [word.strip(".,;").lower() for word in words]
    all_words = list(range(len(words)))
    nodes = {"ROOT": _node("ROOT", all_words, words)}
    edges: list[list[str]] = []
    for clause in _clauses(words, plain):
        names = [str(len(nodes) + place) for place in range(len(clause))]
        verbs = [place for place, phrase in enumerate(clause) if phrase.verb]
        for place, phrase in enumerate(clause):
            before = [verb for verb in verbs if verb < place]
            # The last verb before it, else the first after it.
            heads = [*reversed(before), *verbs]
            if phrase.verb:
                role = "V"
            elif not heads:
                role = "NOUN"
            else:
                verb = clause[heads[0]]
                phrase_words = phrase.words(plain)
                verb_word = verb.words(plain)[0]
                role = _role(phrase_words, verb_word, bool(before))
            nodes[names[place]] = _node(role, phrase.places, words)
            follows_phrase = before and not clause[place - 1].verb
            if heads and not phrase.verb:
                edges.append([names[heads[0]], names[place], role])
            elif follows_phrase:
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
        clause = clauses[-1]
        # An "and" between two things; one between two colours belongs to its phrase.
        following = _at(plain, place + 1)
        joins_things = word == "and" and following in DETERMINERS
        if joins_things:
            opened = False
            has_verb = any(phrase.verb for phrase in clause)
            if has_verb and _verb_follows(words, plain, place):
                clauses.append([])
        elif word in ("while", "where"):
            opened = False
            clauses.append([])
        elif _is_verb(plain, place):
            opened = False
            clause.append(Phrase([place], verb=True))
        elif not _is_auxiliary(plain, place):
            if not (opened and _goes_on(plain, clause[-1], place)):
                clause.append(Phrase([]))
            opened = True
            clause[-1].places.append(place)
        last_letter = words[place][-1]
        if last_letter in ".,;":
            opened = False
        if last_letter in ".;":
            clauses.append([])
    return [clause for clause in clauses if clause]


def _at(plain: list[str], place: int) -> str:
    if 0 <= place < len(plain):
        return plain[place]
    return ""


def _is_verb(plain: list[str], place: int) -> bool:
    word = _at(plain, place)
    if word == "left":
        return _at(plain, place - 1) == "has"
    if word in BEING:
        following = _at(plain, place + 1)
        return following not in (*DOING[:-1], *STANDING)
    return word in (*DOING, *STANDING)


def _is_auxiliary(plain: list[str], place: int) -> bool:
    """Whether a word only helps the verb after it, as in "is standing"."""
    may_help = plain[place] in (*BEING, "has")
    return may_help and _is_verb(plain, place + 1)


def _verb_follows(words: list[str], plain: list[str], place: int) -> bool:
    """Whether a verb comes at or after a place and before the next comma or stop."""
    for at in range(place, len(words)):
        if _is_verb(plain, at):
            return True
        if words[at][-1] in ".,;":
            return False
    return False


def _goes_on(plain: list[str], phrase: Phrase, place: int) -> bool:
    """Whether a word belongs to the phrase before it; else a phrase of place, direction or
    circumstance begins.
    """
    word = plain[place]
    before = plain[place - 1]
    names_a_side = before == "the" and word in ("left", "right")
    if names_a_side or before in ("covered", "striped"):
        return True
    first = plain[phrase.places[0]]
    directions = WHITHER | {"to", "left", "right"}
    if first in WHITHER and word in directions:
        return True
    if word == "with":
        following = plain[place : place + 5]
        return not PATTERNS.isdisjoint(following)
    return word not in WHERE | WHITHER | {"as"}


def _role(phrase: list[str], verb: str, behind: bool) -> str:
    """A phrase's role by its words, its verb, and whether it follows the verb."""
    first = phrase[0]
    if first == "with":
        return "ARGM-COM"
    if first in WHITHER:
        return "ARGM-DIR"
    is_time = first in WHERE and phrase[-1] in WHEN
    if is_time or first == "as":
        return "ARGM-TMP"
    if first in WHERE:
        return "ARGM-LOC"
    if verb in DOING:
        return "ARG1" if behind else "ARG0"
    return "ARG2" if behind else "ARG1"
