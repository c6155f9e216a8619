"""Long JSON is read by members or elements as it is from the whole, and what is wrong is refused as
there.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.foundation.files import long_json

VALUES = [
    {"a": [1, {"b": "}]\\", "é": None}], "images": [3]},
    'x"',
    12.5e3,
    -7,
    True,
    [],
    {},
    "\u2028",
    10**30,
]


def cut(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def read(text: str, size: int = 3) -> list[Any]:
    return [element for _, element in long_json.members(cut(text, size), "images")]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize("indent", [None, 2])
def test_elements_are_those_of_the_whole(size: int, indent: int | None) -> None:
    for tree in (
        {"images": VALUES},
        {"n": VALUES, "images": VALUES, "last": 1},
        {"images": []},
        {"images": [1]},
    ):
        assert read(json.dumps(tree, indent=indent), size) == tree["images"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_members_are_those_of_the_whole(size: int) -> None:
    tree = {str(number): value for number, value in enumerate(VALUES)} | {
        "": {"images": [1]},
        "a\nb": None,
    }
    for text in (json.dumps(tree), json.dumps(tree, indent=2), "{}"):
        assert dict(long_json.members(cut(text, size))) == json.loads(text)
    assert [*long_json.members(['{"a": 1, "b": 2, "a": 3}'])] == [("a", 1), ("b", 2), ("a", 3)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"images": [1, 2',
        '{"images": [1 2]}',
        '{"images": [1,]}',
        '{"images": [1]',
        '{"images": [1]} x',
        '{"images": [tru]}',
        '{"images" [1]}',
        '{"images": [1], }',
        "{images: [1]}",
        "{1: [1]}",
        '{"images": ["a\nb"]}',
        "]",
    ],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    for lists in (("images",), ()):
        with pytest.raises(ValueError, match="at character"):
            list(long_json.members(cut(text, 3), *lists))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"images": ["\\ud800"]}', "not UTF-8"),
        ('{"images": [' + "[" * 200_000, "nested too deeply"),
        ('{"images": [1], "images": [2]}', "twice"),
        ('{"images": [1], "b": x}', "Expecting value at character 21"),
    ],
)
def test_what_is_beyond_the_limits_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read(text, 1000)


@pytest.mark.parametrize(
    "text", ["[1]", "7", "{}", '{"image": [1]}', '{"images": {"a": 1}}', '{"a": {"images": [1]}}']
)
def test_json_without_the_list_is_told_from_what_is_no_json(text: str) -> None:
    with pytest.raises(LookupError):
        read(text)
    if not text.startswith("{"):
        with pytest.raises(LookupError):
            list(long_json.members([text]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "name", "lists"), [('{"images": [', "", ["images"]), ("{", '"name": ', [])]
)
def test_a_long_list_or_object_is_not_held(before: str, name: str, lists: list[str]) -> None:
    element = name + json.dumps({"text": "x" * 1000})
    tracemalloc.start()
    text = [before, *([element + ","] * 20_000), element, "]" * len(lists) + "}"]
    assert sum(1 for _ in long_json.members(iter(text), *lists)) == 20_001
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
