"""Role graphs of captions: which words are verbs, and which phrases for things and places each verb
relates.

HGR's annotation file (Chen et al., CVPR 2020), `sent2rolegraph.augment.json`, gives each caption's
graph by its text:

    {caption: [{name: {"role": "V", "spans": [2], "words": ["runs"]}, …}, [[name, name, role], …]]}

`spans` counts the caption's words from 0, as blanks separate them. An edge leads from a verb, whose
role is V, to another phrase. The node whose role is ROOT is the whole caption.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unicodedata import normalize

from pipeline.foundation.manifest.caption_inputs import CaptionInput
from pipeline.foundation.manifest.reader import members_of
from pipeline.foundation.manifest.text_file import TextFile
from pipeline.foundation.parts.errors import InputError, refusing

# The column of a manifest that holds them.
COLUMN = "role_graph"
# The file's place in HGR's folder.
FILE = Path("annotation", "RET", "sent2rolegraph.augment.json")
# The most phrases of a caption. MSR-VTT has at most 20.
MOST = 256
ROLE = re.compile(r"[A-Z][A-Z0-9-]{0,23}")
ROOT = "ROOT"
VERB = "V"


def read(path: Path, captions: Iterable[str]) -> list[str]:
    """Read the graphs of captions one by one, and check each. Where a caption occurs twice, the
    last one counts.
    """
    # Unicode may write a letter in two ways, and file and manifest may differ in that.
    normalized = [normalize("NFC", caption) for caption in captions]
    graph_of = dict.fromkeys(normalized, "")
    with refusing(
        KeyError, f"{path}: expected a role graph for each caption, {{caption: [nodes, edges]}}"
    ):
        for caption, entry in members_of(TextFile(path)):
            normal_caption = normalize("NFC", caption)
            if normal_caption not in graph_of:
                continue
            words = caption.split()
            try:
                graph_of[normal_caption] = _graph(entry, len(words))
            except ValueError as error:
                raise InputError(f"{path}: the role graph of {caption[:60]!a} {error}") from None
    return [graph_of[caption] for caption in normalized]


INPUT = CaptionInput("its role graph", read)


def _graph(entry: Any, words: int) -> str:
    """A caption's graph in the manifest's form. Raises ValueError with what is wrong with it."""
    if not isinstance(entry, list) or len(entry) != 2:
        raise ValueError("is not [nodes, edges]")
    nodes, edges = entry
    if not isinstance(nodes, dict) or not isinstance(edges, list):
        raise ValueError("is not [nodes, edges]")
    if len(nodes) > MOST or len(edges) > MOST**2:
        raise ValueError(
            f"has {len(nodes)} nodes and {len(edges)} edges; expected at most {MOST} and {MOST**2}"
        )
    phrases: list[tuple[str, list[int]]] = []
    number_of: dict[str, int] = {}
    for name, node in nodes.items():
        role, spans = _node(name, node, words)
        if role != ROOT:
            number_of[name] = len(phrases)
            phrases.append((role, spans))
    graph_edges = []
    for edge in edges:
        if not _is_edge(edge):
            raise ValueError("has an edge that is not [name, name, role]")
        verb_name, phrase_name, *_ = edge
        verb = number_of.get(verb_name)
        phrase = number_of.get(phrase_name)
        edge_in_words = f"has an edge from {verb_name[:20]!a} to {phrase_name[:20]!a}"
        if verb is None or phrase is None:
            raise ValueError(f"{edge_in_words}, and no such nodes")
        verb_role, _ = phrases[verb]
        phrase_role, _ = phrases[phrase]
        if verb_role != VERB or phrase_role == VERB:
            raise ValueError(
                f"{edge_in_words}; expected one from a verb, of role {VERB}, to another phrase"
            )
        graph_edges.append([verb, phrase])
    return json.dumps([phrases, graph_edges], separators=(",", ":"))


def _is_edge(value: Any) -> bool:
    if not isinstance(value, list) or len(value) not in (2, 3):
        return False
    return all(isinstance(name, str) for name in value)


def _node(name: str, node: Any, words: int) -> tuple[str, list[int]]:
    """A node's role, and the positions of its words in order."""
    if not isinstance(node, dict):
        node = {}
    role = node.get("role")
    spans = node.get("spans")
    if not (isinstance(role, str) and ROLE.fullmatch(role)):
        raise ValueError(f"has a node {name[:20]!a} without a role such as V or ARG0")
    if not _are_places(spans, words):
        raise ValueError(
            f"has a node {name[:20]!a} whose spans are not places of the caption's {words} words"
        )
    return role, sorted(set(spans))


def _are_places(spans: Any, words: int) -> bool:
    if not isinstance(spans, list) or not spans:
        return False
    return all(type(place) is int and 0 <= place < words for place in spans)
