"""Artefacts: made once, kept while they are up to date, resumed, and never half replaced."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import Field

from pipeline.foundation.artefacts import (
    Artefact,
    Draft,
    Reference,
    Request,
    Versions,
    artefact as artefacts,
    making,
    record as records,
)
from pipeline.foundation.artefacts.record import FILE, Record
from pipeline.foundation.files import atomic
from pipeline.foundation.parts.errors import InputError, InputWarning

MACHINE = {"processor": "one"}


class TrayRequest(Request):
    kind: ClassVar[str] = "tray"
    size: int = 1
    sides: dict[str, int] = Field(default_factory=dict)
    code: ClassVar[int] = 1

    def versions(self) -> Versions:
        return {"trays": type(self).code}


def manifest(identity: str = "a") -> dict[str, Reference]:
    return {"manifest": Reference(kind="manifest", name="mine", identity=identity)}


def make(
    folder: Path,
    request: Request | None = None,
    made_from: Mapping[str, Reference] | None = None,
    *,
    text: str = "cups",
    **options: object,
) -> Draft | None:
    with making(
        folder, request or TrayRequest(), made_from or manifest(), MACHINE, **options
    ) as draft:  # type: ignore[arg-type]
        if draft is not None:
            (draft.folder / "cups.txt").write_text(text)
            (draft.folder / "array").mkdir(exist_ok=True)
            (draft.folder / "array" / "zarr.json").write_text("{}")
            (draft.folder / "array" / "c").write_bytes(b"\x00")
            (draft.folder / "words").mkdir(exist_ok=True)
            (draft.folder / "words" / "first").write_text("a")
    return draft


def interrupt(folder: Path, request: Request, *, resume: bool) -> None:
    """Make an artefact, and be interrupted after its first file."""
    with making(folder, request, manifest(), MACHINE, resume=resume) as draft:
        assert draft is not None
        assert not draft.resumed
        (draft.folder / "first").write_text("done")
        draft.facts["epochs"] = 1
        draft.save()
        raise KeyboardInterrupt


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.specification
def test_an_artefact_is_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "tray"
    assert make(folder) is not None
    assert make(folder) is None
    record = Artefact.open(folder, "cups.txt", "array").record
    assert record.finished
    assert {*record.contents} == {"cups.txt", "array", "words/first"}
    assert [step.verdict for step in artefacts.verify(folder, *record.contents)] == ["matches"] * 4


@pytest.mark.parametrize(
    ("request_", "made_from", "because", "text"),
    [
        (TrayRequest(size=2), manifest(), "request", "size was 1, is 2"),
        (TrayRequest(sides={"left": 2}), manifest(), "request", "sides.left was nothing, is 2"),
        (TrayRequest(), manifest("b"), "made_from", "its manifest mine is another"),
        (TrayRequest(), {}, "made_from", "its manifest mine is another"),
    ],
)
def test_the_first_difference_is_named_and_refused_or_redone(
    tmp_path: Path, request_: TrayRequest, made_from: dict[str, Reference], because: str, text: str
) -> None:
    folder = tmp_path / "tray"
    make(folder)
    assert Artefact.open(folder).outdated(request_, made_from) == (because, text)
    with (
        pytest.raises(InputError, match="--if-changed redo"),
        making(folder, request_, made_from, MACHINE, if_changed="refuse"),
    ):
        pass
    with making(folder, request_, made_from, MACHINE) as draft:
        assert draft is not None
    assert Artefact.open(folder).outdated(request_, made_from) is None


def test_other_code_is_told_or_makes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tray"
    make(folder)
    monkeypatch.setattr(TrayRequest, "code", 2)
    with pytest.warns(InputWarning, match="trays"):
        assert make(folder, if_changed="refuse") is None
    assert make(folder, text="plates") is not None
    assert Artefact.open(folder).record.versions == {"trays": 2}


class OtherRequest(TrayRequest):
    kind: ClassVar[str] = "cupboard"


def test_an_artefact_of_another_kind_is_not_replaced(tmp_path: Path) -> None:
    make(tmp_path / "tray")
    with pytest.raises(InputError, match="exists and is tray, not cupboard"):
        make(tmp_path / "tray", OtherRequest())
    assert Artefact.open(tmp_path / "tray", "cups.txt").record.finished


def test_lost_contents_are_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "tray"
    make(folder)
    (folder / "cups.txt").unlink()
    assert make(folder) is not None
    assert (folder / "cups.txt").exists()


def test_an_interrupted_block_leaves_the_artefact_that_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "tray"
    make(folder)
    with pytest.raises(KeyboardInterrupt):
        interrupt(folder, TrayRequest(size=2), resume=False)
    assert names(tmp_path) == ["tray"]
    assert Artefact.open(folder, "cups.txt").record.request["size"] == 1


@pytest.mark.specification
@pytest.mark.parametrize("replaces", [False, True])
def test_an_interrupted_block_is_resumed(tmp_path: Path, replaces: bool) -> None:
    folder, request = tmp_path / "tray", TrayRequest(size=2)
    if replaces:
        make(folder)
    with pytest.raises(KeyboardInterrupt):
        interrupt(folder, request, resume=True)
    if replaces:
        assert Artefact.open(folder).record.request["size"] == 1
    else:
        assert Artefact.open(folder).outdated(request, manifest()) == (
            "unfinished",
            "is not finished",
        )
    with making(folder, request, manifest(), {"processor": "two"}, resume=True) as draft:
        assert draft is not None
        assert draft.resumed
        assert (draft.folder / "first").read_text() == "done"
        assert draft.facts == {"epochs": 1}
    record = Artefact.open(folder, "first").record
    assert [machine["processor"] for machine in record.machines] == ["one", "two"]
    assert make(folder, request) is None
    assert names(tmp_path) == ["tray"]


def test_a_machine_that_resumes_twice_is_recorded_once(tmp_path: Path) -> None:
    folder, request = tmp_path / "tray", TrayRequest(size=2)
    for processor in ("one", "one", "two", "one"):
        with (
            pytest.raises(KeyboardInterrupt),
            making(folder, request, manifest(), {"processor": processor}, resume=True),
        ):
            raise KeyboardInterrupt
    machines = Artefact.open(folder).record.machines
    assert [machine["processor"] for machine in machines] == ["one", "two", "one"]


def test_what_a_killed_process_left_is_not_resumed_unless_that_is_wanted(tmp_path: Path) -> None:
    folder, request = tmp_path / "tray", TrayRequest(size=2)
    killed = tmp_path / "tray.successor"
    with pytest.raises(KeyboardInterrupt):
        interrupt(killed, request, resume=True)  # as a kill in the middle leaves it
    with making(folder, request, manifest(), MACHINE) as draft:
        assert draft is not None
        assert not draft.resumed
        assert names(draft.folder) == [FILE]
    assert names(tmp_path) == ["tray"]


@pytest.mark.specification
def test_a_file_is_not_replaced_by_an_artefact(tmp_path: Path) -> None:
    (tmp_path / "tray").write_text("precious")
    with pytest.raises(InputError, match="exists and is a file"):
        make(tmp_path / "tray")
    assert (tmp_path / "tray").read_text() == "precious"


def test_a_draft_of_another_request_is_not_resumed(tmp_path: Path) -> None:
    folder = tmp_path / "tray"
    with pytest.raises(KeyboardInterrupt):
        interrupt(folder, TrayRequest(size=2), resume=True)
    with making(folder, TrayRequest(size=3), manifest(), MACHINE, resume=True) as draft:
        assert draft is not None
        assert not draft.resumed
        assert names(draft.folder) == [FILE]


def test_what_other_code_began_is_resumed_or_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, request = tmp_path / "tray", TrayRequest()
    with pytest.raises(KeyboardInterrupt):
        interrupt(folder, request, resume=True)
    monkeypatch.setattr(TrayRequest, "code", 2)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    with pytest.warns(InputWarning, match="was begun by other code"):
        draft = make(folder, request, if_changed="refuse", resume=True)
    assert draft is not None
    assert draft.resumed
    draft = make(copy, request, if_changed="redo", resume=True)
    assert draft is not None
    assert not draft.resumed


def test_a_successor_that_was_finished_before_a_kill_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, request = tmp_path / "tray", TrayRequest(size=2)
    make(folder)

    take_place = atomic.take_place

    def kill(successor: Path, place: Path) -> None:
        if place == folder:
            raise KeyboardInterrupt
        take_place(successor, place)

    with monkeypatch.context() as patched:
        patched.setattr(atomic, "take_place", kill)
        with pytest.raises(KeyboardInterrupt):
            make(folder, request, text="plates", resume=True)
    assert Artefact.open(folder).record.request["size"] == 1
    assert make(folder, request, resume=True) is None
    assert (folder / "cups.txt").read_text() == "plates"
    assert names(tmp_path) == ["tray"]


def test_a_damaged_record_is_no_leave_to_throw_the_rest_away(tmp_path: Path) -> None:
    folder = tmp_path / "tray"
    make(folder)
    (folder / FILE).write_text("{")
    with pytest.raises(InputError, match="damaged"):
        make(folder, if_changed="refuse", resume=True)
    with pytest.raises(KeyboardInterrupt):
        interrupt(folder, TrayRequest(), resume=True)
    assert (folder / "cups.txt").exists()
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / f"{FILE}.partial").touch()  # of a run that was killed at once
    assert make(folder) is not None


@pytest.mark.specification
def test_identity_does_not_depend_on_the_machine_and_does_on_bytes(tmp_path: Path) -> None:
    for name, text, machine in (("a", "cups", "one"), ("b", "cups", "two"), ("c", "plates", "one")):
        with making(tmp_path / name, TrayRequest(), manifest(), {"processor": machine}) as draft:
            assert draft is not None
            (draft.folder / "cups.txt").write_text(text)
    first, second, third = (Artefact.open(tmp_path / name).record for name in "abc")
    assert first.identity == second.identity != third.identity
    assert first.seal != second.seal
    assert first.refers("a") == Reference(kind="tray", name="a", identity=first.identity)


def test_where_a_file_was_found_is_in_no_identity() -> None:
    def identity(place: str, files: str = "a") -> str:
        found = {"place": place, "files": files}
        return Record(kind="tray", facts={"one": found, "more": [found, [found]]}).identity

    assert identity("/here") == identity("/there") != identity("/here", "b")


def test_what_is_below_a_folder_is_not_what_begins_with_its_name() -> None:
    record = Record(kind="tray", contents=dict.fromkeys(("a", "a/b", "ab", "c/a"), ""))
    assert records.below(record, "a") == ["a", "a/b"]
    assert records.below(record, "c", "ab") == ["ab", "c/a"]


@pytest.mark.specification
@pytest.mark.parametrize("field", ["request", "facts", "contents", "machines", "finished", "kind"])
def test_an_edited_record_is_refused(tmp_path: Path, field: str) -> None:
    make(tmp_path / "tray")
    file = tmp_path / "tray" / FILE
    content = json.loads(file.read_text())
    content[field] = {
        "request": {},
        "facts": {"a": 1},
        "contents": {},
        "machines": [],
        "finished": False,
        "kind": "cup",
    }[field]
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match="was edited"):
        Artefact.open(tmp_path / "tray")
    with pytest.raises(InputError, match="was edited"):
        make(tmp_path / "tray")
    assert [step.verdict for step in artefacts.verify(tmp_path / "tray")] == ["differs"]


def test_a_changed_file_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    make(tmp_path / "tray")
    (tmp_path / "tray" / "array" / "c").write_bytes(b"\x01")
    Artefact.open(tmp_path / "tray", "cups.txt")
    with pytest.raises(InputError, match="changed after it was written"):
        Artefact.open(tmp_path / "tray", "array")
    assert [step.verdict for step in artefacts.verify(tmp_path / "tray", "array")] == [
        "matches",
        "differs",
    ]
    (tmp_path / "tray" / "words" / "first").write_text("b")
    with pytest.raises(InputError, match="words/first: changed after it was written"):
        Artefact.open(tmp_path / "tray", "words")
    assert [step.verdict for step in artefacts.verify(tmp_path / "tray", "words")] == [
        "matches",
        "differs",
    ]


def test_no_record_is_no_artefact(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="what made it is unknown"):
        Artefact.open(tmp_path)
    assert [step.verdict for step in artefacts.verify(tmp_path)] == ["not recorded"]
    (tmp_path / "tray").mkdir()
    (tmp_path / "tray" / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match=r"thesis\.tex"):
        make(tmp_path / "tray")
    (tmp_path / "tray" / FILE).write_text("{")
    with pytest.raises(InputError, match="damaged"):
        Artefact.open(tmp_path / "tray")
    assert make(tmp_path / "tray") is not None  # a damaged record is made again
