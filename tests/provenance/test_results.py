"""Entries of results: what shows an edit or a copy, and which numbers of an earlier entry stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import invented_facts
import numpy as np
import pytest
from invented_results import SETTINGS, result

from pipeline.foundation.artefacts import Reference
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.judged import Truth
from pipeline.judge.systems.scores.system import System
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


def test_a_later_measurement_replaces_the_numbers_and_hits_of_its_protocols(tmp_path: Path) -> None:
    facts = invented_facts.of_head().recorded()

    def of(rsum: float, *protocols: str) -> Result:
        numbers = {protocol: {"RSUM": rsum} for protocol in protocols}
        return result("mine", facts, numbers, {name: {"codes": rsum} for name in protocols})

    kept = of(2.0, "all", "coco_5k").with_protocols_of(of(1.0, "coco_1k", "all"))
    assert kept.numbers == {
        "coco_1k": {"RSUM": 1.0},
        "all": {"RSUM": 2.0},
        "coco_5k": {"RSUM": 2.0},
    }
    assert kept.hits == {name: {"codes": found["RSUM"]} for name, found in kept.numbers.items()}
    assert not [step for step in kept.verify(tmp_path, "mine") if step.recorded != step.found]


@pytest.mark.parametrize("part", ["all", "image_hits"])
def test_each_part_of_an_entry_has_a_digest_in_its_record(part: str, tmp_path: Path) -> None:
    """By the hits tables test systems against each other."""
    file = tmp_path / "metrics.json"
    results.write(file, {"mine": measured("mine", 500.0)})
    entries = json.loads(file.read_text())
    entries["mine"][part] = {"all": {"codes": "y"}} if part == "image_hits" else {"RSUM": 501.0}
    file.write_text(json.dumps(entries))
    with pytest.raises(InputError, match="the entry of mine is not as it was measured"):
        results.read(file)


@pytest.mark.parametrize(
    ("split", "protocol", "name"),
    [
        ("test", "all", "mine"),
        ("val", "all", "mine-val"),
        ("test", "coco_1k", "mine-coco_1k"),
        ("val", "coco_1k", "mine-val-coco_1k"),
    ],
)
def test_numbers_of_several_splits_and_protocols_have_a_headline_each(
    split: str, protocol: str, name: str
) -> None:
    side = {"R@1": 10.0, "R@5": 20.0, "R@10": 30.0, "MedR": 4.0, "MeanR": 5.0}
    numbers = {
        "i2t": side,
        "t2i": {key: value + 1 for key, value in side.items()},
        "RSUM": 123.0,
        "languages": {"de": {"mR": 7.0}, "en": {"mR": 9.0}},
        "mean_of_languages": {"mR": 8.0},
    }
    facts = invented_facts.of_head(split=split).recorded()
    one = results.headline({"mine": result("mine", facts, {protocol: numbers})})
    assert list(one) == [name]
    assert one[name] == {
        "i2t R@1": 10.0,
        "i2t R@5": 20.0,
        "i2t R@10": 30.0,
        "t2i R@1": 11.0,
        "t2i R@5": 21.0,
        "t2i R@10": 31.0,
        "RSUM": 123.0,
        "de mR": 7.0,
        "en mR": 9.0,
        "mR": 8.0,
    }


def test_an_entry_is_named_by_its_data_and_each_of_its_distractors() -> None:
    def system(name: str, dataset: str, split: str) -> Any:
        made = invented_facts.of_head(dataset=dataset, split=split)
        return SimpleNamespace(name=name, made_from=made, split=split)

    pool = system("mine", "coco", "test")
    others = [system("x", "flickr8k", "train+val"), system("y", "flickr8k", "test")]
    for distractors, name in (
        ([], "mine on coco"),
        (others[:1], "mine on coco, among flickr8k train+val"),
        (others[1:], "mine on coco, among flickr8k test"),
        (others, "mine on coco, among flickr8k train+val, among flickr8k test"),
    ):
        assert results.name_beyond(pool, distractors) == name
    alone = System.of("mine", np.eye(2), np.arange(2), np.arange(2), np.arange(2))
    with pytest.raises(InputError, match="does not record what made it"):
        results.name_beyond(alone, [])
