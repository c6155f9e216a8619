"""Role graphs as a head reads them: a caption's phrases, each by the positions of its words among
the token ids.

HGR (Chen et al., CVPR 2020) reads the first four verbs and the first six other phrases of a
caption, in the order of its annotation file. `pipeline/manifest/role_graphs.py` checks that file.
"""

from collections.abc import Collection, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np
import torch
from pydantic import StrictInt, TypeAdapter
from torch import Tensor

from pipeline.files.parsing import from_json
from pipeline.parts.errors import InputError
from pipeline.text.base import Text
from pipeline.text.tokens import TokenText

VERB, NOUN = "V", "NOUN"
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
VERBS, NOUNS = 4, 6
PHRASES = VERBS + NOUNS
# A graph in a manifest: phrases, each a role with the numbers of its words, and edges from verbs to
# other phrases.
PARSED = TypeAdapter(tuple[list[tuple[str, list[StrictInt]]], list[tuple[StrictInt, StrictInt]]])


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
    return [
        _placed(text, caption, words, graph)
        for caption, words, graph in zip(captions, text.split(list(captions)), graphs, strict=True)
    ]


def require(captions: Collection[str], graphs: Collection[str] | None) -> None:
    """Check that captions have role graphs."""
    missing = (
        list(captions)
        if graphs is None
        else [caption for caption, graph in zip(captions, graphs, strict=True) if not graph]
    )
    if missing:
        raise InputError(
            f"the head reads role graphs, and {len(missing)} of {len(captions)} captions have none, such "
            f"as {missing[0][:60]!a}; give HGR's sent2rolegraph.augment.json to `pipeline manifest "
            "--role-graphs FILE`"
        )


def _placed(text: TokenText, caption: str, words: Sequence[Sequence[int]], graph: str) -> Graph:
    alone = text.split(caption.split())  # each word between blanks, split by itself
    sizes = [sum(map(len, each)) for each in alone]
    if list(chain(*words)) != list(chain(*chain(*alone))):
        raise InputError(
            f"the caption {caption[:60]!a} is not read word by word, so its role graph cannot be placed; "
            "choose the text encoder bigru"
        )
    starts = [1, *accumulate(sizes, initial=1)][1:]  # position 0 is the start
    room = text.longest - 1
    phrases, pairs = _checked(graph, caption, len(sizes))
    slots: dict[int, int] = {}
    places: list[tuple[int, ...]] = [()] * PHRASES
    roles, free = [0] * PHRASES, {True: iter(range(VERBS)), False: iter(range(VERBS, PHRASES))}
    for number, (role, span) in enumerate(phrases):
        tokens = tuple(
            at
            for word in span
            for at in range(starts[word], starts[word] + sizes[word])
            if at < room
        )
        slot = next(free[role == VERB], None) if tokens else None
        if slot is not None:
            kind = role[2:] if role[:2] in ("C-", "R-") else role
            slots[number], places[slot], roles[slot] = (
                slot,
                tokens,
                ROLES.index(kind if kind in ROLES else NOUN),
            )
    edges = tuple(
        (slots[verb], slots[other]) for verb, other in pairs if verb in slots and other in slots
    )
    return Graph(tuple(places), tuple(roles), edges)


def _checked(
    graph: str, caption: str, words: int
) -> tuple[list[tuple[str, list[int]]], list[tuple[int, int]]]:
    """Parse and check a caption's phrases and edges, because a manifest may have been edited."""
    try:
        phrases, pairs = PARSED.validate_python(from_json(graph))
        fits = (
            all(0 <= word < words for _, span in phrases for word in span)
            and all(0 <= end < len(phrases) for pair in pairs for end in pair)
            and all(phrases[verb][0] == VERB != phrases[other][0] for verb, other in pairs)
        )
    except ValueError:
        fits = False
    if not fits:
        raise InputError(
            f"the manifest's role graph of {caption[:60]!a} does not fit its {words} words; make the "
            "manifest again with `pipeline manifest`"
        )
    return phrases, pairs


def batch(graphs: Sequence[Graph], width: int) -> GraphBatch:
    """Stack the graphs of captions that are padded to `width` token ids."""
    spans = np.zeros((len(graphs), PHRASES, width), bool)
    edges = np.zeros((len(graphs), 1 + PHRASES, 1 + PHRASES), bool)
    for row, graph in enumerate(graphs):
        for slot, tokens in enumerate(graph.phrases):
            spans[row, slot, list(tokens)] = True
            edges[row, 1 + slot, 0] = slot < VERBS and bool(tokens)
        for verb, other in graph.edges:
            edges[row, 1 + verb, 1 + other] = edges[row, 1 + other, 1 + verb] = True
    roles = np.array([graph.roles for graph in graphs], np.int64).reshape(len(graphs), PHRASES)
    return GraphBatch(torch.from_numpy(spans), torch.from_numpy(roles), torch.from_numpy(edges))
