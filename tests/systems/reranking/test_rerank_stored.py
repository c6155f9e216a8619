"""Reranking by stored scores: the record says what they depend on, and a pair is scored again only
by other code.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import invented_facts
import numpy as np
import pytest
import saved

from pipeline.foundation.artefacts import Reference, code, record as records
from pipeline.foundation.evaluation.retrieval import PROTOCOLS, as_similarity
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems import reranking
from pipeline.judge.systems.requests import RerankRequest
from pipeline.judge.systems.reranking import record, shards, tuning
from pipeline.judge.systems.reranking.base import PairSource, identity
from pipeline.judge.systems.reranking.candidates import Pairs
from pipeline.judge.systems.reranking.record import made_from
from pipeline.judge.systems.reranking.rerank import Job, _require_one_split, rerank
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


def test_scores_of_pairs_are_resumed_for_the_same_scorer_and_pairs_alone(
    stored: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is compared before a run goes on differs with each of what a score rests on."""

    class StoppedError(Exception):
        pass

    asked: list[str] = []

    def noted(path: Path, request: Any, refused: str | None) -> None:
        asked.append(json.dumps(request, sort_keys=True))
        raise StoppedError

    monkeypatch.setattr("pipeline.judge.systems.reranking.rerank.KeptPieces", noted)
    retriever, scorer, other = map(stored, ("retriever", "scorer", "other"))
    mine = job(tmp_path, retriever, scorer)
    raised: dict[str, int] = {"scorers/system": 2}
    for each, versions in (
        (mine, {}),
        (replace(mine, how=Combination("add", 0.5)), {}),  # orders the same scores
        (replace(mine, k=3), {}),
        (job(tmp_path, other, scorer), {}),
        (job(tmp_path, retriever, other), {}),
        (mine, raised),
    ):
        for part, version in versions.items():
            monkeypatch.setitem(code.RAISED, part, version)
        with pytest.raises(StoppedError):
            rerank(each)
    assert asked[0] == asked[1]
    assert len({*asked}) == len(asked) - 1


def test_scores_that_stand_for_a_scorer_say_all_that_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its corrections and its fusion, too: other weights are another scorer."""
    fusion = {"method": "mean", "weights": [0.25, 0.75], "members": ["a", "b"]}
    members = [{"head": "a", "checkpoint": "1"}, {"head": "b", "checkpoint": "2"}]
    source = invented_facts.ensemble(
        "both", members, fusion=fusion, features={"grid": "g"}, untrained=["grid"], trained_on="o"
    )
    made = invented_facts.rescored(source, "csls", "test")
    reference = Reference(kind="scores", name="s", identity="i")
    store = SimpleNamespace(made_from=made, similarity=None, reference=reference)
    monkeypatch.setattr(System, "open_named", lambda path: store)
    pairs = PairSource(Paths(Path("nowhere")), "sample", "sample", "sample")
    scorer = reranking.build("system", "s", pairs)
    assert scorer.made_from == {
        "identity": "i",
        "series": "both+csls",
        "steps": [{"name": "csls", "bank": "test"}],
        "fusion": {"method": "mean", "weights": [0.25, 0.75]},
        "split": "test",
        "manifest": "m",
        "members": members,
        "features": {"grid": "g"},
        "untrained": ["grid"],
        "trained_on": "o",
    }
    assert scorer.references == {"scorer": reference}  # type: ignore[attr-defined]


def recorded(retriever: Any, **of_scorer: Any) -> Reranked:
    """The facts of a system of this retriever and a scorer that says so of itself."""
    scorer: Any = SimpleNamespace(made_from=of_scorer, gives_logits=True)
    request = RerankRequest(
        name="r",
        scorer=("cross", "s"),
        options={"depth": 2},
        protocol=("all", 1),
        k=2,
        combine="add",
        weight=0.5,
        tuned={"split": "val"},
    )
    system: Any = SimpleNamespace(name="retriever", made_from=retriever)
    store: Any = SimpleNamespace(
        name="far",
        made_from=invented_facts.of_head(dataset="other"),
        reference=SimpleNamespace(kind="vectors"),
    )
    return made_from(system, scorer, "place", request, [store])


def test_a_reranked_system_has_the_members_and_features_of_both_each_once() -> None:
    of_both = [{"head": "a", "checkpoint": "1"}, {"head": "b", "checkpoint": "2"}]
    retriever = invented_facts.ensemble("both", of_both, features={"grid": "g"}, untrained=["grid"])
    made = recorded(
        retriever,
        members=[of_both[1], {"head": "c", "checkpoint": "3"}],
        features={"region": "r"},
        untrained=["region", "grid"],
    )
    assert made.heads == ["a", "b", "c"]
    assert made.features == {"grid": "g", "region": "r"}
    assert made.untrained == ["grid", "region"]
    assert (made.scorer.options, made.scorer.place) == ({"depth": 2}, "place")
    assert (made.k, made.combine, made.weight, made.logits) == (2, "add", 0.5, True)
    assert (made.distractors, made.tuned) == (["other"], {"split": "val"})
    assert made.pools == ["embeddings/other/far.zarr"]


def test_a_role_is_the_heads_their_fusion_and_what_was_done_to_their_scores() -> None:
    """By these a choice on val is taken over; splits and names are not among them."""
    members = [{"head": "a", "checkpoint": "1"}, {"head": "b", "checkpoint": "2"}]

    def fused(*weights: float) -> Any:
        fusion = {"method": "mean", "weights": weights, "members": ["a", "b"]}
        return invented_facts.ensemble("both", members, fusion=fusion)

    same = fused(0.5, 0.5).changed(split="val", name="renamed")
    retrievers = [
        fused(0.5, 0.5),
        fused(0.25, 0.75),
        invented_facts.rescored(fused(0.5, 0.5)),
        invented_facts.rescored(fused(0.5, 0.5), "nnn"),
        invented_facts.of_head("a"),
        invented_facts.of_head("c"),
    ]
    scorers: list[dict[str, Any]] = [
        {"members": members},
        {"members": members, "fusion": {"weights": [0.5, 0.5]}},
        {"members": members, "steps": [{"name": "csls"}]},
        {"members": members[:1]},
    ]
    as_retriever = [recorded(retriever).roles for retriever in retrievers]
    as_scorer = [recorded(retrievers[0], **scorer).roles for scorer in scorers]
    assert recorded(same).roles == as_retriever[0]
    assert len({first for first, _ in as_retriever}) == len(retrievers)
    assert len({second for _, second in as_scorer}) == len(scorers)


def test_a_scorer_is_the_same_wherever_its_files_are() -> None:
    def of(**facts: Any) -> str:
        scorer: Any = SimpleNamespace(made_from=facts)
        return identity(scorer)

    assert of(weights="w", networks={"place": "/a"}) == of(weights="w", networks={"place": "/b"})
    assert of(weights="w") != of(weights="v")


@pytest.mark.parametrize("key", ["checkpoint", "identity"])
def test_a_scorer_that_was_trained_on_other_data_is_refused(key: str) -> None:
    """Whether it is a head or a stored system; what a published network saw is not known."""
    retriever: Any = SimpleNamespace(name="r", made_from=invented_facts.of_head())
    of_other = {"trained_on": "other", key: "c"}
    with pytest.raises(InputError, match="s: was trained on other, the retriever r on sample"):
        _require_one_split(retriever, SimpleNamespace(made_from=of_other), "s")  # type: ignore[arg-type]
    for fine in ({key: "c"}, {"trained_on": "sample", key: "c"}, {"trained_on": "other"}):
        _require_one_split(retriever, SimpleNamespace(made_from=fine), "s")  # type: ignore[arg-type]


def test_of_languages_with_fewer_candidates_the_fewest_bound_k(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "_rsum", lambda *given: 500)
    retriever: Any = SimpleNamespace()
    found = {}
    for name, count in (("i2t", 100), ("t2i", 60), ("0_i2t", 20), ("0_t2i", 60)):
        none = np.zeros((2, count))
        found[name] = Scored(none.astype(np.int64), none, none)
    record = invented_facts.reranked(Unknown(), k="all", combine="scorer")
    assert tuning.tune(retriever, found, record, 32)[2]["tried"] == 3  # 5, 10 and all


@pytest.mark.parametrize(
    ("mine", "chosen_with", "fits"),
    [
        ({"kind": "blip", "made_from": "d"}, {"kind": "blip", "made_from": "d"}, True),
        ({"kind": "blip", "made_from": "d"}, {"kind": "blip", "made_from": "e"}, False),
        ({"kind": "system", "made_from": "d"}, {"kind": "system", "made_from": "e"}, True),
        ({"kind": "system", "made_from": "d"}, {"kind": "blip", "made_from": "d"}, False),
        ({"kind": "blip", "made_from": "d"}, {"kind": "system", "made_from": "e"}, False),
    ],
)
def test_a_choice_made_with_another_scorer_is_refused(
    mine: dict[str, str],
    chosen_with: dict[str, str],
    fits: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A stored system has another store on val; its heads are compared by their roles."""

    def by(scorer: dict[str, str]) -> Reranked:
        source = invented_facts.of_head("head", split="val")
        return invented_facts.reranked(source, scorer=scorer, tuned={"split": "val"})

    monkeypatch.setattr(tuning.layout, "reading", lambda *given: nullcontext((None, None)))
    monkeypatch.setattr(tuning.layout, "facts", lambda store: by(chosen_with))
    if fits:
        assert tuning.chosen(tmp_path, by(mine))[0] == 20
        return
    with pytest.raises(InputError, match="chosen there for other heads"):
        tuning.chosen(tmp_path, by(mine))


def test_pairs_across_data_sets_are_scored_by_the_scorer_of_both() -> None:
    """A query's distractors: captions of the second data set, and images of it."""
    of_image, of_caption = np.array([0, 0, 1]), np.array([0, 0, 1, 1])
    ids = {"image": np.array([10, 11, 10]), "caption": np.array([20, 21, 20, 21])}
    owners = {"image": of_image, "caption": of_caption}

    def pool(*datasets: str) -> Any:
        items = lambda side: (owners[side], ids[side])  # noqa: E731
        return SimpleNamespace(datasets=list(datasets), items=items)

    image, caption = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 2, 1, 3, 0, 1])
    pairs = Pairs(image, caption)
    source: Any = "source"
    scorers = {both: (f"{both}", "m", source, "d") for both in ((0, 0), (0, 1), (1, 0))}
    rows: list[int] = []
    for shard in shards.divide(pool("a", "b"), pairs, scorers):
        rows += shard.rows.tolist()
        for row in shard.rows:
            assert shard.kind == f"{(int(of_image[image[row]]), int(of_caption[caption[row]]))}"
        assert shard.image_ids.tolist() == ids["image"][image[shard.rows]].tolist()
        assert shard.caption_ids.tolist() == ids["caption"][caption[shard.rows]].tolist()
    assert sorted(rows) == [0, 1, 2, 3, 4, 5]
    digests = {shards.digest_of(pool("a", other), pairs) for other in ("b", "c")}
    digests.add(shards.digest_of(pool("a", "b"), Pairs(image, caption[::-1])))
    assert len(digests) == 3
    assert shards.digest_of(pool("a", "b"), pairs) in digests


def test_a_head_that_scores_pairs_is_opened_as_what_it_is(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    source = PairSource(paths, "sample", "sample", "sample")
    for kind in ("cross", "late"):
        folder = paths.head("sample", f"my-{kind}")
        folder.mkdir(parents=True)
        record = records.Record(
            kind="head",
            request={},
            made_from={},
            contents={},
            facts={"scorer": kind},
            finished=True,
        )
        records.save(folder, record)
        assert reranking.resolve(f"my-{kind}", source) == (kind, f"my-{kind}")
        assert reranking.resolve(f"{kind}:mine", source) == (kind, "mine")
    with pytest.raises(InputError, match="no scorer 'none' for sample"):
        reranking.resolve("none", source)


def test_a_scorer_is_recorded_with_its_options_and_not_with_what_is_joined() -> None:
    own = {"checkpoint": "c", "series": "mine", "mine": 7}
    joined = {"members": [], "features": {"grid": "grid2"}, "untrained": ["text"]}
    scorer: Any = SimpleNamespace(made_from={**own, **joined, "kind": "x"}, gives_logits=False)
    for options in ({}, {"logits": True, "depth": 3}):
        request: Any = SimpleNamespace(scorer=("cross", "late"), options=options)
        recorded = record._described(scorer, "there/late", request).recorded()
        identity = recorded.pop("made_from")
        assert identity == record.identity(scorer)
        place = {"kind": "cross", "name": "late", "place": "there/late"}
        assert recorded == {**own, **place, **({"options": options} if options else {})}
