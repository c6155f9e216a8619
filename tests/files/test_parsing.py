"""YAML and JSON that anyone may have written: no file hangs a command or ends it with a
traceback.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from pipeline.foundation import manifest, settings
from pipeline.foundation.files.parsing import DEEPEST, from_json, from_yaml, to_yaml, whole
from pipeline.foundation.parts.errors import InputError

BAD_YAML = {
    "an alias of aliases": "a0: &a0 [x, x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 11)),
    "long text in aliases": f"a: [&a {'x' * 1000}{', *a' * 1000}]",
    "a long key in aliases": f"a: [&a {{{'x' * 1000}: 1}}{', *a' * 1000}]",
    "an alias of itself": "recipes: &a {vse2ad: *a}",
    "a merge of itself": "a: &a {<<: *a}",
    "nested": "[" * 20_000,
    "nested by lines": "".join(" " * n + "a:\n" for n in range(DEEPEST + 1)),
    "long": "# \n" * 70_000,
    "digits": "a: " + "9" * 6000,
    "digits of a fraction": "a: 1." + "9" * 6000,
    "an int that is none": "a: !!int x",
    "an int of nothing": "a: !!int ''",
    "a hexadecimal of nothing": "a: !!int 0x",
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


def test_settings_that_are_not_in_utf_8_are_named_with_what_converts_them(tmp_path: Path) -> None:
    file = tmp_path / "params.yaml"
    for encoding, named in (
        ("utf-16", "is text in UTF-16; save it in UTF-8, such as by `iconv -f UTF-16 "),
        ("utf-16-le", "is text in UTF-16; save it in UTF-8, such as by `iconv -f UTF-16LE "),
        ("latin-1", "perhaps in Windows-1252"),
    ):
        file.write_bytes("run: {dataset: mine}  # é\n".encode(encoding))
        with pytest.raises(InputError, match=re.escape(named)) as caught:
            settings.load(file)
        assert str(caught.value).startswith(f"{file}: is ")


def test_yaml_holds_text_numbers_booleans_and_null() -> None:
    read = from_yaml(
        "{2020-13-45: 2020-01-01, 7: 1e-5, yes: no, 1: ~, a: 0x10, b: &b [1.5], c: *b, d: {<<: {e: '1'}}}"
    )
    assert read == {
        "2020-13-45": "2020-01-01",
        "7": 1e-5,
        "yes": "no",
        "1": None,
        "a": 16,
        "b": [1.5],
        "c": [1.5],
        "d": {"e": "1"},
    }
    assert from_yaml("") is None


def test_yaml_is_read_as_yaml_1_2() -> None:
    """YAML 1.1 takes the Norwegians' language for false, half past twelve for 45000, and 010 for
    eight.
    """
    names = ["no", "on", "Off", "y", "12:30:00", "1:2", "2024-01-31", "1_000", "0b1", "1e5x", "="]
    assert from_yaml("\n".join(f"- {name}" for name in names)) == names
    assert from_yaml("[1e3, 1.5E+3, .5, 1., -2, 010, 0o10, 0x1f, True, ~, -.inf]") == [
        1000.0,
        1500.0,
        0.5,
        1.0,
        -2,
        10,
        8,
        31,
        True,
        None,
        float("-inf"),
    ]
    values = [*names, "1e3", "010", "0o10", "true", "~", "<<", "1.", 1000.0, 8, True, None]
    assert (
        from_yaml(to_yaml(values)) == values == yaml.safe_load(to_yaml(values))
    )  # text for readers of YAML 1.1 too


@pytest.mark.parametrize("name", ["on", "no", "1e3", "2024"])
def test_a_data_set_may_have_any_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / f"{name}.yaml").write_text(
        "{title: no, description: on, licence: 12:30:00, source: y, images: i, annotations: a, protocols: [all], "
        "languages: [no, en]}"
    )
    card = manifest.dataset(name, tmp_path)
    assert (card.name, card.title, card.licence, card.languages) == (
        name,
        "no",
        "12:30:00",
        ["en", "no"],
    )
    params = Path(__file__).parents[2] / "params.yaml"
    assert settings.load(params, (f"run.dataset='{name}'",)).run.dataset == name


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ("- a", "expected keys such as title, description"),
        ("", "expected keys such as title"),
        ("titel: a", "titel: unknown key; did you mean title?"),
        (
            "{title: a, statistics: {test: {image: 1}}}",
            r"statistics.test.image: unknown key; did you mean images?",
        ),
        ("{title: 1e3}", "got 1000.0; a name that looks like a number, true or null needs quotes"),
    ],
)
def test_a_card_says_what_to_write(card: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "mine.yaml").write_text(card)
    with pytest.raises(InputError, match=re.escape(said)):
        manifest.dataset("mine", tmp_path)


@pytest.mark.specification
@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '["' + "9" * 5,
        b"\xff\xfe\xff",
        "9" * 6000,
        r'["\ud800"]',
        r'{"\uDFFF": 1}',
        '[{"a": 1, "b": 2, "a": 1}]',
    ],
)
def test_bad_json_is_one_refusal(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        from_json(text)
    assert from_json(rb'{"a": "\ud83d\ude00\\ud800"}') == {"a": "😀\\ud800"}


@pytest.mark.parametrize(
    "value", [1.5, True, False, float("nan"), float("inf"), "1.5", "", None, [1]]
)
def test_an_id_is_a_whole_number(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        whole(value)
    assert [whole(12), whole(12.0), whole("12")] == [12, 12, 12]
