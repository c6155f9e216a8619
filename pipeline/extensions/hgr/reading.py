"""Role graphs as a head reads them: a caption's phrases, each by the positions of its words among
the token ids.

HGR (Chen et al., CVPR 2020) reads the first four verbs and the first six other phrases of a
caption, in the order of its annotation file. `role_graphs.py` checks that file.
"""

from collections.abc import Collection, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from pydantic import StrictInt, TypeAdapter
from torch import Tensor

from pipeline.extensions.hgr.role_graphs import COLUMN, VERB
from pipeline.foundation.evaluation.retrieval.blocks import Ids
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads.base import CaptionReading, FurtherBatch
from pipeline.make.text.base import Text
from pipeline.make.text.tokens import TokenText

NOUN = "NOUN"
# Roles by number, those of HGR's code. A role that continues (C-ARG1) or refers to (R-ARG1) another
# counts as that one, any other as NOUN.
ROLES = (
    VERB,
    "ARG1",
    "ARG0",
    "ARG2",
    "ARG3",
    "ARG4",
    "ARGM-LOC",
    "ARGM-MNR",
    "ARGM-TMP",
    "ARGM-DIR",
    "ARGM-ADV",
    "ARGM-PRP",
    "ARGM-PRD",
    "ARGM-COM",
    "ARGM-MOD",
    NOUN,
)
# Phrases of a caption, at most.
VERBS = 4
NOUNS = 6
PHRASES = VERBS + NOUNS
# A graph in a manifest: phrases, each a role with the numbers of its words, and edges from verbs to
# other phrases.
ParsedPhrase = tuple[str, list[StrictInt]]
ParsedEdge = tuple[StrictInt, StrictInt]
PARSED = TypeAdapter(tuple[list[ParsedPhrase], list[ParsedEdge]])


class Graph(NamedTuple):
    """A caption's graph."""

    # for each of the `PHRASES` slots, verbs first, the positions of its words among the caption's
    # token ids; () for an empty slot
    phrases: tuple[tuple[int, ...], ...]
    roles: tuple[int, ...]  # the number of each slot's role; 0 for an empty slot
    edges: tuple[tuple[int, int], ...]  # (verb, other) slots


class GraphBatch(NamedTuple):
    """The graphs of B captions."""

    spans: Tensor  # bool [B, P, T], which of a caption's T tokens belong to each of P phrases
    roles: Tensor  # int64 [B, P]
    # bool [B, 1 + P, 1 + P], whether the row's node attends to the column's. Node 0 is the whole
    # caption, to which every verb attends; verbs and their phrases attend to each other.
    edges: Tensor


def place(text: Text, captions: Collection[str], graphs: Collection[str] | None) -> list[Graph]:
    """Find the positions of phrases' words among the token ids of captions."""
    require(captions, graphs)
    if not isinstance(text, TokenText):
        raise InputError(
            "the head reads role graphs, which count words; choose a text encoder that reads words"
        )
    assert graphs is not None
    placed = []
    words_of_captions = text.split(list(captions))
    for caption, words, graph in zip(captions, words_of_captions, graphs, strict=True):
        placed.append(_placed(text, caption, words, graph))
    return placed


def require(captions: Collection[str], graphs: Collection[str] | None) -> None:
    """Check that all captions have role graphs."""
    if graphs is None:
        graphs = [""] * len(captions)
    missing = [caption for caption, graph in zip(captions, graphs, strict=True) if not graph]
    if missing:
        example = missing[0][:60]
        raise InputError(
            f"the head reads role graphs, and {len(missing)} of {len(captions)} captions have none, such "
            f"as {example!a}; give HGR's sent2rolegraph.augment.json to `pipeline manifest "
            f"--caption-input {COLUMN}=FILE`"
        )


def _placed(text: TokenText, caption: str, words: Sequence[Sequence[int]], graph: str) -> Graph:
    positions = _positions(text, caption, words)
    phrases, pairs = _checked(graph, caption, len(positions))
    slots: dict[int, int] = {}
    places: list[tuple[int, ...]] = [()] * PHRASES
    roles = [0] * PHRASES
    free_verbs = iter(range(VERBS))
    free_others = iter(range(VERBS, PHRASES))
    for number, (role, span) in enumerate(phrases):
        tokens = tuple(chain(*(positions[word] for word in span)))
        if not tokens:
            continue
        free = free_verbs if role == VERB else free_others
        slot = next(free, None)
        if slot is not None:
            slots[number] = slot
            places[slot] = tokens
            roles[slot] = _role(role)
    edges = []
    for verb, other in pairs:
        if verb in slots and other in slots:
            edges.append((slots[verb], slots[other]))
    return Graph(tuple(places), tuple(roles), tuple(edges))


def _positions(text: TokenText, caption: str, words: Sequence[Sequence[int]]) -> list[list[int]]:
    """The positions of each word's pieces among the caption's token ids, without those that are cut
    off.
    """
    room = text.longest - 1
    pieces: list[int] = []
    positions = []
    # Each word between blanks is split by itself.
    for alone in text.split(caption.split()):
        start = 1 + len(pieces)  # position 0 is the start
        pieces += chain(*alone)
        end = 1 + len(pieces)
        positions_of_word = range(min(start, room), min(end, room))
        positions.append(list(positions_of_word))
    if pieces != list(chain(*words)):
        raise InputError(
            f"the caption {caption[:60]!a} is not read word by word, so its role graph cannot be placed; "
            "choose the text encoder bigru"
        )
    return positions


def _role(role: str) -> int:
    """The number of a role."""
    if role[:2] in ("C-", "R-"):
        role = role[2:]
    if role not in ROLES:
        role = NOUN
    return ROLES.index(role)


def _checked(
    graph: str, caption: str, words: int
) -> tuple[list[tuple[str, list[int]]], list[tuple[int, int]]]:
    """Parse and check a caption's phrases and edges, because a manifest may have been edited."""
    try:
        phrases, pairs = PARSED.validate_python(from_json(graph))
        fits = _fits(phrases, pairs, words)
    except ValueError:
        fits = False
    if not fits:
        raise InputError(
            f"the manifest's role graph of {caption[:60]!a} does not fit its {words} words; make the "
            "manifest again with `pipeline manifest`"
        )
    return phrases, pairs


def _fits(
    phrases: Sequence[tuple[str, Sequence[int]]], pairs: Sequence[tuple[int, int]], words: int
) -> bool:
    """Whether phrases are of a caption's words, and edges from its verbs to its other phrases."""
    for _, span in phrases:
        if not all(0 <= word < words for word in span):
            return False
    for verb, other in pairs:
        if min(verb, other) < 0 or max(verb, other) >= len(phrases):
            return False
        role, _ = phrases[verb]
        other_role, _ = phrases[other]
        if role != VERB or other_role == VERB:
            return False
    return True


def batch(graphs: Sequence[Graph], width: int) -> GraphBatch:
    """Stack the graphs of captions that are padded to `width` token ids."""
    count = len(graphs)
    nodes = 1 + PHRASES
    spans = np.zeros((count, PHRASES, width), bool)
    roles = np.zeros((count, PHRASES), np.int64)
    edges = np.zeros((count, nodes, nodes), bool)
    for row, graph in enumerate(graphs):
        roles[row] = graph.roles
        for slot, tokens in enumerate(graph.phrases):
            spans[row, slot, list(tokens)] = True
            edges[row, 1 + slot, 0] = slot < VERBS and bool(tokens)
        for verb, other in graph.edges:
            node = 1 + verb
            other_node = 1 + other
            edges[row, node, other_node] = True
            edges[row, other_node, node] = True
    return GraphBatch(*map(torch.from_numpy, (spans, roles, edges)))


class RoleGraphReading(CaptionReading):
    """Reads the role graphs of captions."""

    column = COLUMN

    def require(self, captions: Collection[str], given: Collection[str] | None) -> None:
        """Check that all captions have role graphs."""
        require(captions, given)

    def read(
        self, text: Text, captions: Collection[str], given: Collection[str] | None
    ) -> FurtherBatch:
        """Place the graphs' words among the token ids of captions."""
        return partial(_batch_of, place(text, captions, given))


def _batch_of(graphs: Sequence[Graph], rows: Ids, width: int) -> GraphBatch:
    return batch([graphs[row] for row in rows], width)
