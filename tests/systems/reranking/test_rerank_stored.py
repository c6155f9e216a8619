"""Reranking by stored scores: the record says what they depend on, and a pair is scored again only
by other code.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import invented_facts
import numpy as np
import pytest
import saved

from pipeline.foundation.artefacts import code
from pipeline.foundation.evaluation.retrieval import PROTOCOLS, as_similarity
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.reranking import shards, tuning
from pipeline.judge.systems.reranking.base import PairSource
from pipeline.judge.systems.reranking.record import made_from
from pipeline.judge.systems.reranking.rerank import Job, rerank
from pipeline.judge.systems.reranking.tuning import choices
from pipeline.judge.systems.scores.made import Folds, Made, Reranked, Unknown
from pipeline.judge.systems.scores.reranked import Combination, Scored
from pipeline.judge.systems.scores.system import System

IMAGES, CAPTIONS = 5, 10
Stored = Any


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    """Writes random scores of a system of one head."""

    def write(name: str, split: str = "test", bank: str | None = None) -> System:
        scores = (
            np.random.default_rng([*name.encode()])
            .normal(size=(IMAGES, CAPTIONS))
            .astype(np.float32)
        )
        made: Made = invented_facts.of_head(name, split=split)
        if bank:
            made = invented_facts.rescored(made, "nnn", bank)
        path = Paths(tmp_path).similarity("sample", name, split)
        saved.save(
            path,
            [as_similarity(scores)],
            np.arange(IMAGES),
            np.arange(CAPTIONS),  # type: ignore[list-item]
            np.arange(CAPTIONS) // 2,
            made,
        )
        return System.open(path)

    return write


def job(tmp_path: Path, retriever: System, scorer: System, **changes: Any) -> Job:
    paths, split = Paths(tmp_path), str(retriever.made_from.split)
    source = PairSource(paths, "sample", "sample", "sample", split=split)
    made = Job(
        paths.similarity("sample", "new", split),
        retriever,
        retriever,
        ("system", scorer.name),
        source,
        2,
        Combination(),
        PROTOCOLS["all"],
    )
    return replace(made, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("bank", ["train", "test"])
def test_a_system_reranked_by_scores_that_saw_the_queries_has_seen_them(
    stored: Stored, tmp_path: Path, bank: str
) -> None:
    scorer = stored("scorer", bank=bank)
    assert rerank(job(tmp_path, stored("retriever"), scorer)).made_from.has_seen_queries == (
        bank == "test"
    )


@pytest.mark.slow
def test_pairs_are_scored_again_by_another_version_of_the_scorer(
    stored: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = job(tmp_path, stored("retriever"), stored("scorer"))
    first = rerank(same)
    assert first.pairs > 0
    assert rerank(same)[1:] == (0, False)
    monkeypatch.setitem(code.RAISED, "scorers/system", 2)
    assert rerank(same)[1:] == (first.pairs, True)


@pytest.mark.slow
def test_k_that_was_chosen_for_other_heads_is_refused(stored: Stored, tmp_path: Path) -> None:
    on_val = [stored(name, "val") for name in ("retriever", "scorer")]
    tuned = job(tmp_path, *on_val, tune=True)
    rerank(tuned)
    retriever, scorer, other = map(stored, ("retriever", "scorer", "other"))
    assert rerank(job(tmp_path, retriever, scorer, tuned_on=tuned.path)).written
    for pair in ((retriever, other), (other, scorer), (scorer, retriever)):
        with pytest.raises(
            InputError, match="chosen there for other heads, or for these with retriever and scorer"
        ):
            rerank(job(tmp_path, *pair, tuned_on=tuned.path, redo=True))


@pytest.mark.slow
def test_a_choice_is_taken_from_the_store_of_val_alone(stored: Stored, tmp_path: Path) -> None:
    tuned = job(tmp_path, stored("retriever", "val"), stored("scorer", "val"), tune=True)
    rerank(tuned)
    by_choice = job(tmp_path, stored("retriever"), stored("scorer"), tuned_on=tuned.path)
    rerank(by_choice)
    other = Paths(tmp_path).similarity("sample", "other", "test")
    with pytest.raises(InputError, match="of the split test; k and the weight are chosen on val"):
        rerank(replace(by_choice, path=other, tuned_on=by_choice.path))


@pytest.mark.parametrize("key", ["manifest", "split"])
def test_a_scorer_of_another_manifest_or_split_is_refused(
    key: str, stored: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = stored("retriever")
    other = SimpleNamespace(made_from={key: "another"})
    monkeypatch.setattr(shards, "open_scorer", lambda *given: other)
    with pytest.raises(InputError, match=f"scorer: its {key} is 'another', that of the retriever"):
        rerank(replace(job(tmp_path, retriever, retriever), scorer=("system", "scorer")))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused(
    value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = np.array([1, value, 2], np.float32)
    scorer: Any = SimpleNamespace(score=lambda images, captions, check: scores)
    source: Any = "source"
    monkeypatch.setitem(shards._opened, ("mine", "m", source, "same"), scorer)
    rows = np.arange(3)
    shard = shards.Shard("mine", "m", source, "same", rows, rows + 10, rows + 20)
    with pytest.raises(InputError, match=f"m: gives {value} for image 11 and caption 21"):
        shards.score(shard, lambda: True)


def test_each_k_up_to_all_scored_candidates_is_tried_once() -> None:
    for k, scored, expected in (("all", 10, [5, "all"]), (20, 20, [5, 10, 20]), (3, 3, [3])):
        assert [size for size, _ in choices(k, scored, "scorer")] == expected  # type: ignore[arg-type]
    weights = [how.weight for _, how in choices(5, 5, "add")]
    assert weights == pytest.approx(np.linspace(0, 1, 21))


def test_of_choices_that_are_equally_good_the_first_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rounding does not count as better."""
    sums = iter(500 + 1e-12 * np.arange(1000))
    monkeypatch.setattr(tuning, "_rsum", lambda *given: next(sums))
    retriever: Any = SimpleNamespace()
    none = np.zeros((2, 20))
    found = {"i2t": Scored(none.astype(np.int64), none, none)}
    record = invented_facts.reranked(Unknown(), k=20, combine="add")
    k, how, said = tuning.tune(retriever, found, record, 32)
    assert (k, how.weight, said["RSUM"]) == (5, 0.0, 500)


@pytest.mark.parametrize(("wanted", "tuned_in"), [(1, 5), (5, 1)])
def test_a_choice_made_in_other_folds_is_refused(
    wanted: int, tuned_in: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def of_folds(folds: int) -> Reranked:
        source = invented_facts.of_head("head", split="val")
        protocol = Folds(name="all", folds=folds)
        return invented_facts.reranked(source, protocol=protocol, tuned={"split": "val"})

    monkeypatch.setattr(tuning.layout, "reading", lambda *given: nullcontext((None, None)))
    monkeypatch.setattr(tuning.layout, "facts", lambda store: of_folds(tuned_in))
    with pytest.raises(InputError, match=f"in {tuned_in} folds of val, but .* in {wanted};"):
        tuning.chosen(tmp_path, of_folds(wanted))
    assert tuning.chosen(tmp_path, of_folds(tuned_in))[0] == 20


def test_a_scorer_whose_members_are_not_a_systems_is_refused_in_a_line() -> None:
    scorer: Any = SimpleNamespace(made_from={"members": [{"network": "mine"}]}, gives_logits=False)
    retriever: Any = SimpleNamespace(made_from=Unknown(), name="r")
    request: Any = SimpleNamespace(scorer=("mine", "m"))
    with pytest.raises(
        InputError, match=r"m: its made_from has members, .* that are not a system's"
    ):
        made_from(retriever, scorer, "m", request)
