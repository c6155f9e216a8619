"""What a trace says first of a system of each kind, and the ids that it names."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import invented_facts
import numpy as np
import pytest

from pipeline.foundation.files.compared import Step
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.made import Fusion, GivenScores, Made, OfEncoder, OfGiven
from pipeline.run.provenance import checks, of_head, summary
from pipeline.run.provenance.trace import first_cause, in_ranges

HEAD = invented_facts.of_head("a")
FOUR = ["a", "b", "c", "d"]


def of_encoder() -> OfEncoder:
    facts = invented_facts.of_one("clip")
    facts["member"] |= {"encoder": {"place": "clip:models/b32"}}
    return OfEncoder.model_validate(facts)


def of_given() -> OfGiven:
    facts = invented_facts.of_one("ours")
    given = GivenScores(title="Ours", files={"images.npy": "1", "captions.npy": "2"})
    facts["member"] |= {"given": given.model_dump()}
    return OfGiven.model_validate(facts)


def ensemble(members: list[str], weights: list[float]) -> Made:
    fusion = Fusion(method="mean", weights=weights, members=members)
    return invented_facts.ensemble("x").changed(fusion=fusion)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (HEAD, ""),
        (ensemble(FOUR, [0.25] * 4), "mean of 4 systems: a, b, c and 1 more"),
        (ensemble(FOUR[:2], [0.75, 0.25]), "mean of 2 systems, weighted 0.75, 0.25: a, b"),
        (ensemble(FOUR[:1], [1.0]), "the scores of a alone"),
        (of_encoder(), "dual encoder clip:models/b32, zero-shot"),
        (of_given(), "scores from elsewhere: images.npy, captions.npy"),
    ],
)
def test_a_system_is_said_to_be_made_of_what_its_record_names(made: Made, said: str) -> None:
    assert summary._how(made) == said


def test_ids_are_named_in_ranges() -> None:
    cases = {
        (3,): "3 (1 in all)",
        (9, 2, 1, 0, 9): "0 to 2, 9 (4 in all)",
        (0, 2, 4, 6): "0, 2, 4, 6 (4 in all)",
        (0, 2, 4, 6, 7, 9, 10): "0, 2, 4, … 9 to 10 (7 in all)",
    }
    for ids, said in cases.items():
        assert in_ranges(np.array(ids)) == said


def test_a_cause_is_named_before_what_follows_from_it() -> None:
    """The steps in the order of a walk from the results down; a file's digest stands before what is
    computed again from it.
    """
    results = Step(Path("metrics.json"), "measured again, all", "a", "b")
    scores = Step(Path("a.zarr/similarity"), "BLAKE2b", "a", "b")
    again = Step(Path("a.zarr"), "scores again, by mean of its members", "a", "b")
    embedded = Step(Path("a.zarr"), "embedded again", "a", "b")
    weights = Step(Path("heads/a/head.pt"), "BLAKE2b", "a", "b")
    photographs = Step(Path("data/images/7.jpg"), "BLAKE2b of image 7", "a", None)
    tokenizer = Step(Path("models/b32/tokenizer.json"), "SHA-256", "a", "b")
    facts = Step(Path("a.zarr"), checks.FACTS, "a", "b")
    for wrong, cause in (
        ([results], results),
        ([results, scores, again], scores),
        ([results, embedded, weights], weights),
        ([embedded, weights, photographs], photographs),
        ([tokenizer, facts], tokenizer),
        ([facts], facts),
    ):
        assert first_cause(wrong) is cause, wrong


def test_no_more_images_are_embedded_again_than_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(split: str) -> NoReturn:
        raise InputError("no head")

    scores = SimpleNamespace(image_ids=np.arange(4), split="test")
    monkeypatch.setattr(of_head, "System", SimpleNamespace(open_either=lambda path: scores))
    context: Any = SimpleNamespace(drawn=32)
    step = of_head._computed_again(Path(), (), refused, context)
    assert step.recorded == "4 images"
