"""Parse untrusted YAML and JSON: plain values only, within limits. Whatever is wrong with a text is
a ValueError.

Only this module and `long_json.py` parse them, so that no file can hang a command or end it with a
traceback.
"""

import json
import re
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import yaml

from pipeline.foundation.files import regular

# Limits of YAML: characters and values (with what aliases repeat), levels, and digits.
LARGEST = 200_000
MOST = 30_000
DEEPEST = 50
DIGITS = 40
TAG = "tag:yaml.org,2002:"
KINDS = {f"{TAG}{kind}" for kind in ("str", "int", "float", "bool", "null", "seq", "map", "merge")}
TEXT = f"{TAG}str"
MERGE = f"{TAG}merge"
NUMBERS = ("int", "float")
# YAML 1.2's core schema: kind -> how its values are written, and the characters with which they
# begin. All else is text, as for DVC: `no`, `on`, 12:30:00 and 2024-01-31 are names, which YAML 1.1
# reads as false, true, 45000 and a day. Merging is of 1.1, and stays.
CORE = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    "merge": (r"<<", "<"),
}
# How JSON and YAML spell half of a surrogate pair, which alone is no character.
HALF_A_PAIR = re.compile(r"\\(u|U0000)[dD][89a-fA-F]")


# libyaml's loader is six times faster, but not every build of PyYAML has it.
Reader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(Reader):  # type: ignore[misc]
    """Reads values as YAML 1.2 does."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """Read a whole number: 010 is ten, 0o10 eight."""
        digits: str = self.construct_scalar(node)
        return int(digits, 0 if digits[:2] in ("0o", "0x") else 10)


class _Dumper(yaml.SafeDumper):
    """Quotes text that YAML 1.1 or 1.2 would not read as text."""


_Loader.add_constructor(f"{TAG}int", _Loader.construct_yaml_int)
for _kind, (_form, _first) in CORE.items():
    for _each in (_Loader, _Dumper):
        _each.add_implicit_resolver(f"{TAG}{_kind}", re.compile(f"^(?:{_form})$"), list(_first))


def from_yaml(text: str) -> Any:
    """Read one YAML document as text, numbers, booleans, None, lists and dicts; keys are text as
    written.
    """
    # ValueError if it is not YAML, holds values of other kinds, a key twice, or is beyond a limit.
    if len(text) > LARGEST:
        raise ValueError(f"longer than {LARGEST:,} characters")
    try:
        _refuse_deep(text)
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node)
        return require_whole(loader.construct_document(node), text)
    except (UnicodeEncodeError, OverflowError):  # a surrogate in the text itself; "\\UFFFFFFFF"
        raise ValueError("text that is not UTF-8") from None
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} levels deep") from None
    except yaml.MarkedYAMLError as error:
        where = ""
        if error.problem_mark:
            where = f"line {error.problem_mark.line + 1}: "
        raise ValueError(f"{where}{error.problem}") from None
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    except LookupError:  # `!!bool x`
        raise ValueError("a value is not of the kind that its tag names") from None


def _refuse_deep(text: str) -> None:
    """Refuse deep nesting before composing, which recurses, and whose time grows with the square of
    the brackets.
    """
    depth = 0
    for event in yaml.parse(text, Loader=Reader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
            event, yaml.CollectionEndEvent
        )
        if depth > DEEPEST:
            raise RecursionError


def _check(root: yaml.Node) -> None:
    """Refuse what is beyond the limits. An alias counts each time it is used; one that contains
    itself is too deep.
    """
    waiting = [(root, 1)]
    count = 1
    characters = 0
    while waiting:
        node, depth = waiting.pop()
        line = f"line {node.start_mark.line + 1}"
        if depth > DEEPEST:
            raise ValueError(
                f"{line}: nested more than {DEEPEST} levels deep, or an alias contains itself"
            )
        if node.tag not in KINDS:
            raise ValueError(
                f"{line}: {node.tag[:80]}: expected text, a number, true, false, null, list or section"
            )
        if node.tag.endswith(NUMBERS) and len(node.value) > DIGITS:
            raise ValueError(f"{line}: a number has more than {DIGITS} digits")
        parts = []
        if isinstance(node, yaml.ScalarNode):
            characters += len(node.value)
        elif isinstance(node, yaml.MappingNode):
            parts = _values(node)
            characters += sum(len(key.value) for key, _ in node.value)
        elif isinstance(node, yaml.SequenceNode):
            parts = node.value
        count += len(parts)
        if count > MOST:
            raise ValueError(f"more than {MOST:,} values, counting those that aliases repeat")
        if characters > LARGEST:
            raise ValueError(f"longer than {LARGEST:,} characters, counting what aliases repeat")
        waiting += [(part, depth + 1) for part in parts]


def _values(section: yaml.MappingNode) -> list[yaml.Node]:
    """The values of a section. Its keys become text, so that a recipe may be called 7."""
    seen = set()
    for key, _ in section.value:
        line = f"line {key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            raise ValueError(f"{line}: a key must be text")
        if key.tag != MERGE:
            key.tag = TEXT
        if key.value in seen:
            raise ValueError(f"{line}: {key.value[:DIGITS]!a} is given twice; delete one")
        seen.add(key.value)
    return [value for _, value in section.value]


def to_yaml(tree: Any) -> str:
    """Write YAML that `from_yaml` reads."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=118)


def to_yaml_line(tree: Any) -> str:
    """Write a line of YAML that `from_yaml` reads: {base: vse2ad, finetune: true}."""
    line = yaml.dump(
        tree,
        Dumper=_Dumper,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=float("inf"),
    )
    return str(line).strip()


def from_json(text: str | bytes) -> Any:
    """Read JSON text of any length; bytes are UTF-8, UTF-16 or UTF-32. ValueError if it is not
    JSON, is nested too deeply, holds a name twice in an object, or half of a surrogate pair.
    """
    try:
        text = text if isinstance(text, str) else text.decode(json.detect_encoding(text))
    except UnicodeDecodeError:
        raise ValueError("text that is not UTF-8") from None
    try:
        tree = json.loads(text, object_pairs_hook=of_pairs)
    except (RecursionError, ValueError) as error:
        raise in_plain_words(error) from None
    return require_whole(tree, text)


def of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of names and values; ValueError for a name that comes twice, of which Python
    would keep the second value.
    """
    members = dict(pairs)
    if len(members) < len(pairs):
        names = Counter(name for name, _ in pairs)
        raise ValueError(f"has {names.most_common(1)[0][0][:DIGITS]!a} twice in an object")
    return members


def shallow(tree: Any) -> Any:
    """Return a value; ValueError if it is nested more than `DEEPEST` levels deep."""
    level: list[Any] = [[tree]]
    for _ in range(DEEPEST):
        lists = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for each in chain.from_iterable(lists) if isinstance(each, dict | list)]
        if not level:
            return tree
    raise ValueError(f"nested more than {DEEPEST} levels deep")


def in_plain_words(error: Exception) -> Exception:
    """The error for JSON that Python's parser cannot hold, without Python's words."""
    if isinstance(error, RecursionError):
        return ValueError("nested too deeply")
    if "int_max_str_digits" in str(error):
        return ValueError(f"a number of more than {sys.get_int_max_str_digits():,} digits")
    return error


def require_whole(tree: Any, text: str) -> Any:
    """Return a value; ValueError if it, read from the text, has half of a surrogate pair."""
    try:
        if HALF_A_PAIR.search(text):
            json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("text that is not UTF-8") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return tree


def json_object(file: Path) -> dict[str, Any] | None:
    """Read a JSON file with an object; None where it is missing, damaged or holds another value."""
    try:
        tree = from_json(regular.text(file))
    except (OSError, ValueError):
        return None
    return tree if isinstance(tree, dict) else None


def whole(value: Any) -> int:
    """Read an id of an annotation file: 12, 12.0 or "12"."""
    # Raises ValueError or TypeError for another value: `int` would make 1 of true and of 1.5, which
    # is another's id.
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(f"expected a whole number, got {value!r}")
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"expected a whole number, got {value!r:.40}") from None


def text(value: Any) -> str:
    """Read a name or caption of an annotation file; TypeError if it is no text: null must not
    become "None".
    """
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r:.40}")
    return value
