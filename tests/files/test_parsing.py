"""YAML and JSON that anyone may have written: no file hangs a command or ends it with a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import manifest, settings
from pipeline.files.parsing import DEEPEST, from_json, from_yaml, whole
from pipeline.parts.errors import InputError

BAD_YAML = {
    "an alias of aliases": "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n"
                                                         for n in range(1, 11)),
    "an alias of itself": "recipes: &a {vse2ad: *a}",
    "a merge of itself": "a: &a {<<: *a}",
    "nested": "[" * 20_000,
    "nested by lines": "".join(" " * n + "a:\n" for n in range(DEEPEST + 1)),
    "long": "# \n" * 70_000,
    "digits": "a: " + "9" * 6000,
    "digits of a fraction": "a: 1." + "9" * 6000,
    "an int that is none": "a: !!int x",
    "an int of nothing": "a: !!int ''",
    "a hexadecimal of nothing": "a: 0x_",
    "a float that is none": "a: !!float x",
    "a bool that is none": "a: !!bool x",
    "a date that is none": "a: !!timestamp x",
    "bytes": "a: !!binary aGk=",
    "an object": "a: !!python/object/apply:os.system [ls]",
    "a list as key": "? [a]\n: b",
    "a key twice": "a: 1\na: 2",
    "two documents": "a: 1\n---\na: 2",
    "half of a surrogate pair": r'"\ud800"',
    "half of a surrogate pair, spelt long": r'recipes: {"\U0000DC00": 1}',
    "beyond the last character": r'a: "\UFFFFFFFF"',
    "no YAML": "a: [",
}


@pytest.mark.parametrize("text", BAD_YAML.values(), ids=BAD_YAML)
def test_bad_yaml_is_one_refusal_in_settings_changes_and_cards(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        from_yaml(text)
    (tmp_path / "manifests").mkdir()
    for file in (tmp_path / "params.yaml", tmp_path / "manifests" / "mine.yaml"):
        file.write_text(text)
    with pytest.raises(InputError, match=r"params\.yaml"):
        settings.load(tmp_path / "params.yaml")
    with pytest.raises(InputError, match=r"mine\.yaml"):
        manifest.dataset("mine", tmp_path)
    with pytest.raises(InputError, match=r"-S run\.seeds="):
        settings.load(Path(__file__).parents[2] / "params.yaml", (f"run.seeds={text}",))


def test_yaml_holds_text_numbers_booleans_and_null() -> None:
    read = from_yaml("{2020-13-45: 2020-01-01, 7: 1e-5, yes: no, 1: ~, a: 0x10, b: &b [1.5], c: *b, d: {<<: {e: '1'}}}")
    assert read == {"2020-13-45": "2020-01-01", "7": 1e-5, "yes": False, "1": None, "a": 16, "b": [1.5], "c": [1.5],
                    "d": {"e": "1"}}
    assert from_yaml("") is None


@pytest.mark.parametrize("text", ["[" * 200_000, '["' + "9" * 5, b"\xff\xfe\xff", "9" * 6000, r'["\ud800"]',
                                  r'{"\uDFFF": 1}'])
def test_bad_json_is_one_refusal(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        from_json(text)
    assert from_json(rb'{"a": "\ud83d\ude00\\ud800"}') == {"a": "😀\\ud800"}


@pytest.mark.parametrize("value", [1.5, True, False, float("nan"), float("inf"), "1.5", "", None, [1]])
def test_an_id_is_a_whole_number(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        whole(value)
    assert [whole(12), whole(12.0), whole("12")] == [12, 12, 12]
