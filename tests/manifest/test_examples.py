"""Every layout that users are shown is read as they are told."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pytest
from read_examples import check

from pipeline.foundation.manifest import build
from pipeline.foundation.manifest.build import READERS, _reader
from pipeline.foundation.manifest.examples import Example, picture, read_all
from pipeline.foundation.manifest.reader import Reader, Source, table_of
from pipeline.foundation.parts.errors import InputError

EXAMPLES = read_all()
PAGE = Path(__file__).parents[2] / "docs/own-data.md"


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_read_as_it_says(name: str, tmp_path: Path) -> None:
    check(EXAMPLES[name], tmp_path)


def test_each_reader_has_an_example_and_a_line_in_the_docs(tmp_path: Path) -> None:
    """A reader's example is one that it recognises, before any other reader is asked."""
    with_example = set()
    for name, example in EXAMPLES.items():
        example.write(tmp_path / name)
        reader = _reader(tmp_path / name / example.annotations, None)
        with_example |= {form for form in READERS if READERS[form] is reader}
    built_in = {name for name in READERS if READERS.is_built_in(name)}
    assert built_in - with_example == set(), "write an example into examples.yaml"
    formats = PAGE.read_text(encoding="utf-8").partition("## Formats of annotations")[2]
    listed = re.findall(r"^- (`.*?):", formats.partition("\n## ")[0], re.MULTILINE)
    documented = set(re.findall(r"`(\w+)`", " ".join(listed)))
    assert built_in - documented == set(), "add a line to docs/own-data.md"


@pytest.mark.parametrize("fault", [None, InputError("line 3: no image")])
def test_a_reader_that_says_nothing_is_named_by_its_title(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: InputError | None
) -> None:
    def read(source: Source) -> pd.DataFrame:
        source.say("note: one line is empty")
        if fault:
            raise fault
        return table_of([(0, "a.jpg", "test", ["A dog runs."])])

    reader = Reader("a .silent file", lambda path: path.suffix == ".silent", read)
    # `pipeline.foundation.manifest.build` is the function, not its module.
    monkeypatch.setattr(sys.modules[build.__module__], "_reader", lambda *_: reader)
    Example("", {"images/a.jpg": picture(1), "x.silent": ""}, []).write(tmp_path)
    said: list[str] = []
    with pytest.raises(InputError, match="line 3") if fault else nullcontext():
        build("mine", tmp_path / "images", tmp_path / "x.silent", say=said.append)
    assert f"{tmp_path}/x.silent: read as a .silent file" in said
