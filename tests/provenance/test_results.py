"""Entries of results: what shows an edit or a copy, and which numbers of an earlier entry stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import invented_facts
import pytest
from invented_results import SETTINGS, result

from pipeline.foundation.artefacts import Reference
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.judged import Truth
from pipeline.run.provenance import results
from pipeline.run.provenance.results import EvaluateRequest, Result


def measured(name: str, rsum: float, protocol: str = "all") -> Result:
    facts = invented_facts.of_head().recorded()
    return result(name, facts, {protocol: {"RSUM": rsum}}, {protocol: {"codes": "x"}})


def copied(entries: dict[str, Any]) -> None:
    entries["worse"] = entries["better"]


def edited(entries: dict[str, Any]) -> None:
    entries["worse"]["all"]["RSUM"] = 500.0


def of_other_hits(entries: dict[str, Any]) -> None:
    entries["worse"]["image_hits"] = entries["worse"]["image_hits"] | {"coco_1k": {}}


def of_another_protocol(entries: dict[str, Any]) -> None:
    entries["worse"]["coco_1k"] = entries["worse"]["all"]


def of_another_system(entries: dict[str, Any]) -> None:
    entries["worse"]["record"]["made_from"] = entries["better"]["record"]["made_from"]


@pytest.mark.specification
@pytest.mark.parametrize(
    "change", [copied, edited, of_other_hits, of_another_protocol, of_another_system]
)
def test_a_changed_entry_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    file = tmp_path / "metrics.json"
    results.write(
        file,
        {each.request.name: each for each in (measured("better", 500.0), measured("worse", 100.0))},
    )
    assert {name: each.numbers["all"]["RSUM"] for name, each in results.read(file).items()} == {
        "better": 500.0,
        "worse": 100.0,
    }
    entries = json.loads(file.read_text())
    change(entries)
    file.write_text(json.dumps(entries))
    with pytest.raises(InputError, match="the entry of worse is not as it was measured"):
        results.read(file)


@pytest.mark.specification
def test_a_removed_entry_is_missed(tmp_path: Path) -> None:
    file = tmp_path / "metrics.json"
    names = ["better", "worse"]
    results.write(
        file, {name: replace(measured(name, 100.0), entries=names).sealed() for name in names}
    )
    assert list(results.read(file)) == names
    entries = json.loads(file.read_text())
    file.write_text(json.dumps({"better": entries["better"]}))
    with pytest.raises(
        InputError, match="entries were removed or added since; run `pipeline evaluate` again"
    ):
        results.read(file)
    file.write_text(json.dumps(entries | {"third": entries["better"]}))
    with pytest.raises(InputError, match="entries were removed or added since"):
        results.read(file)


def test_another_protocol_is_added_to_an_entry_that_was_measured_alike(tmp_path: Path) -> None:
    file = tmp_path / "recorded.json"
    for each in (
        measured("mine", 100.0),
        measured("mine", 90.0, "coco_1k"),
        measured("mine", 101.0),
    ):
        results.add(file, each)
    (kept,) = results.read(file, results.COMMAND).values()
    assert {protocol: numbers["RSUM"] for protocol, numbers in kept.numbers.items()} == {
        "all": 101.0,
        "coco_1k": 90.0,
    }
    assert kept.request.protocols == [*kept.numbers] == [*kept.hits]
    # Nor are those of an older version of the code, or of another system.
    for change in (
        {"versions": {"evaluation": 99}},
        {"made_from": {"system": Reference(kind="scores", name="mine", identity="other")}},
    ):
        other = measured("mine", 70.0)
        changed: Any = change
        record = other.record.changed(**changed)
        joined = Result(record, other.numbers, other.hits).sealed().with_protocols_of(kept)
        assert [*joined.numbers] == ["all"], change
    # Numbers that were measured with other settings are not mixed with those of an entry.
    again = measured("mine", 80.0, "coco_5k")
    settings = again.request.settings.model_copy(update={"seed": 7})
    request = again.request.model_copy(update={"settings": settings})
    results.add(
        file,
        Result(
            again.record.changed(request=request.recorded()), again.numbers, again.hits
        ).sealed(),
    )
    assert [*results.read(file, results.COMMAND)["mine"].numbers] == ["coco_5k"]


def test_results_say_by_which_judgements_they_were_measured(tmp_path: Path) -> None:
    file = tmp_path / "judged.qrels"
    digests = []
    for content in ("1 0 2 1\n", "1 0 3 1\n"):
        file.write_text(content)
        request = EvaluateRequest.of("mine", ["all"], SETTINGS, Truth(qrels=file))
        digests.append(request.judgements)
    assert None not in digests
    assert len({*digests}) == 2
    assert EvaluateRequest.of("mine", ["all"], SETTINGS, Truth()).judgements is None
