"""What is recorded of the parts that made something: a raised version is seen, earlier records
stand for 1.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.foundation import artefacts
from pipeline.foundation.artefacts import artefact, code
from pipeline.foundation.artefacts.record import FILE
from pipeline.foundation.files.compared import NOT_RECORDED
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.extraction.request import made_by as features_by
from pipeline.make.heads.pooling import POOLINGS

MADE_BY = {"poolings/gpo": 1, "training": 1}


@pytest.mark.specification
def test_a_raised_version_is_seen_in_what_it_made_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = artefacts.versions("training", (POOLINGS, "gpo"))
    assert before == MADE_BY
    assert code.changed(before, before) == []
    monkeypatch.setitem(code.RAISED, "poolings/gpo", 2)
    assert code.changed(before, artefacts.versions("training", (POOLINGS, "gpo"))) == [
        "poolings/gpo"
    ]
    assert code.changed(before, artefacts.versions("training", (POOLINGS, "gem"))) == []
    with pytest.raises(InputError, match="unknown pooling 'sum'"):
        artefacts.versions((POOLINGS, "sum"))


def test_a_part_that_is_new_counts_from_1() -> None:
    assert code.changed({"training": 1}, {"training": 1, "training/emb": 1}) == []
    assert code.changed({"training": 1}, {"training": 1, "training/emb": 2}) == ["training/emb"]


def test_a_module_of_another_package_that_is_not_recorded_differs() -> None:
    assert code.changed({}, {"mine.pooling": "digest"}) == ["mine.pooling"]
    assert code.changed({"mine.pooling": "digest"}, {}) == ["mine.pooling"]


def test_an_engine_depends_on_itself_and_on_how_images_are_decoded() -> None:
    assert features_by("butd-36") == {"extractors/butd-36": 1, "images": 1}


def test_a_record_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    assert artefacts.Artefact.existing(tmp_path) is None
    assert [step.verdict for step in artefact.verify(tmp_path)] == [NOT_RECORDED]
