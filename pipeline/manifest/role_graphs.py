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

from pipeline.manifest.reader import members_of
from pipeline.manifest.text_file import TextFile
from pipeline.parts.errors import InputError, refusing

# The file's place in HGR's folder.
FILE = Path("annotation", "RET", "sent2rolegraph.augment.json")
# The most phrases of a caption. MSR-VTT has at most 20.
MOST = 256
ROLE = re.compile(r"[A-Z][A-Z0-9-]{0,23}")
ROOT, VERB = "ROOT", "V"


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
            if (known := normalize("NFC", caption)) in graph_of:
                try:
                    graph_of[known] = _graph(entry, len(caption.split()))
                except ValueError as error:
                    raise InputError(
                        f"{path}: the role graph of {caption[:60]!a} {error}"
                    ) from None
    return [graph_of[caption] for caption in normalized]


def _graph(entry: Any, words: int) -> str:
    """A caption's graph in the manifest's form. Raises ValueError with what is wrong with it."""
    if not (
        isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[0], dict)
        and isinstance(entry[1], list)
    ):
        raise ValueError("is not [nodes, edges]")
    nodes, edges = entry
    if len(nodes) > MOST or len(edges) > MOST**2:
        raise ValueError(
            f"has {len(nodes)} nodes and {len(edges)} edges; expected at most {MOST} and {MOST**2}"
        )
    phrases: list[tuple[str, list[int]]] = []
    place: dict[str, int] = {}
    for name, node in nodes.items():
        role, spans = _node(name, node, words)
        if role != ROOT:
            place[name] = len(phrases)
            phrases.append((role, spans))
    ends = []
    for edge in edges:
        if not (
            isinstance(edge, list)
            and len(edge) in (2, 3)
            and all(isinstance(end, str) for end in edge)
        ):
            raise ValueError("has an edge that is not [name, name, role]")
        start, end = (place.get(name) for name in edge[:2])
        if start is None or end is None:
            raise ValueError(
                f"has an edge from {edge[0][:20]!a} to {edge[1][:20]!a}, and no such nodes"
            )
        if phrases[start][0] != VERB or phrases[end][0] == VERB:
            raise ValueError(
                f"has an edge from {edge[0][:20]!a} to {edge[1][:20]!a}; expected one from a verb, of "
                f"role {VERB}, to another phrase"
            )
        ends.append([start, end])
    return json.dumps([phrases, ends], separators=(",", ":"))


def _node(name: str, node: Any, words: int) -> tuple[str, list[int]]:
    """A node's role, and the positions of its words in order."""
    role, spans = (node.get("role"), node.get("spans")) if isinstance(node, dict) else (None, None)
    if not (isinstance(role, str) and ROLE.fullmatch(role)):
        raise ValueError(f"has a node {name[:20]!a} without a role such as V or ARG0")
    if not (
        isinstance(spans, list)
        and spans
        and all(type(word) is int and 0 <= word < words for word in spans)
    ):
        raise ValueError(
            f"has a node {name[:20]!a} whose spans are not places of the caption's {words} words"
        )
    return role, sorted(set(spans))
