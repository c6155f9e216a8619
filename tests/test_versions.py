"""What is recorded of the parts that made something: a raised version is seen, earlier records stand for 1."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pipeline import artefacts
from pipeline.artefacts import code
from pipeline.features.extraction.request import made_by as features_by
from pipeline.files import record
from pipeline.files.compared import DIFFERS, NOT_RECORDED
from pipeline.heads.pooling import POOLINGS
from pipeline.parts.errors import InputError

MADE_BY = {"poolings/gpo": 1, "training": 1}


def recorded(folder: Path, made_by: dict[str, int | str]) -> Path:
    record.write(folder, made_by)
    return folder


def test_a_raised_version_is_seen_in_what_it_made_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = artefacts.versions("training", (POOLINGS, "gpo"))
    assert before == MADE_BY
    record.write(tmp_path, before)
    assert record.changed(tmp_path, before) == []
    monkeypatch.setitem(code.RAISED, "poolings/gpo", 2)
    assert record.changed(tmp_path, artefacts.versions("training", (POOLINGS, "gpo"))) == ["poolings/gpo"]
    assert record.changed(tmp_path, artefacts.versions("training", (POOLINGS, "gem"))) == []
    with pytest.raises(InputError, match="unknown pooling 'sum'"):
        artefacts.versions((POOLINGS, "sum"))


def test_a_law_that_is_new_counts_from_1(tmp_path: Path) -> None:
    folder = recorded(tmp_path, {"training": 1})
    assert record.changed(folder, {"training": 1, "training/emb": 1}) == []
    assert record.changed(folder, {"training": 1, "training/emb": 2}) == ["training/emb"]


@pytest.mark.parametrize("text", [None, "[", "3", '"x"', "[1]"])
def test_what_says_nothing_is_not_taken_for_this_codes(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / record.FILE).write_text(text, encoding="utf-8")
    assert record.changed(tmp_path, MADE_BY) == list(MADE_BY)


def test_an_engine_depends_on_itself_and_on_how_images_are_decoded() -> None:
    assert features_by("butd-36") == {"extractors/butd-36": 1, "images": 1}


def test_a_finished_request_is_seen_and_another_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    record.write(tmp_path, MADE_BY)
    assert not record.is_done(tmp_path, {"seed": 0})
    record.finish(tmp_path, {"seed": 0}, ["a.json"])
    assert record.is_done(tmp_path, {"seed": 0})
    assert not record.is_done(tmp_path, {"seed": 1})
    assert record.changed(tmp_path, MADE_BY) == []
    (tmp_path / "a.json").write_text("{ }")
    assert not record.is_done(tmp_path, {"seed": 0})


@pytest.mark.parametrize("key", ["versions", "request", "wrote", "seal"])
def test_an_edited_record_is_refused_in_one_line(tmp_path: Path, key: str) -> None:
    (tmp_path / "a.json").write_text("{}")
    record.finish(tmp_path, {"versions": MADE_BY})
    file = tmp_path / record.FILE
    tree = json.loads(file.read_text())
    del tree[key]
    file.write_text(json.dumps(tree))
    for ask in (lambda: record.changed(tmp_path, MADE_BY), lambda: record.is_done(tmp_path, {"versions": MADE_BY})):
        with pytest.raises(InputError, match=r"record\.json: was edited; restore it, or make"):
            ask()
    assert [step.verdict for step in record.compare(tmp_path)] == [NOT_RECORDED if key == "seal" else DIFFERS]


def test_a_record_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / record.FILE)
    assert record.read(tmp_path) == record.Record()
    assert [step.verdict for step in record.compare(tmp_path)] == [NOT_RECORDED]
