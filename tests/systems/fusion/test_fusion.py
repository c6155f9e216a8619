"""Ensembles: alignment by id, and what each fusion computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import invented_facts
import numpy as np
import pytest
from scipy.stats import rankdata, zscore
from sorting import noisy_pairs

from pipeline.foundation.evaluation.metrics import STATISTICS, evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings, Lists, Protocol, as_similarity
from pipeline.foundation.evaluation.retrieval.lists import Listed
from pipeline.foundation.evaluation.retrieval.similarity import Directions
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.fusion.combining import WeightedSum, mean
from pipeline.judge.systems.fusion.methods import FUSIONS
from pipeline.judge.systems.scores import fuse as fusing
from pipeline.judge.systems.scores.fuse import align, tune
from pipeline.judge.systems.scores.made import Member
from pipeline.judge.systems.scores.reranked import Folded
from pipeline.judge.systems.scores.system import System

IMAGES, CAPTIONS = np.arange(30) * 7, np.arange(90) * 11
OWNER = np.random.default_rng(5).permutation(np.arange(90) // 3)


def fuse(*given: Any, **more: Any) -> Any:
    """The scores of the ensemble."""
    return fusing.fuse(*given, **more).scores


def member(name: str, seed: int, levels: int = 10**6) -> System:
    scores = np.random.default_rng(seed).integers(0, levels, (30, 90)) / np.float32(1000)
    return System.of(name, scores.astype(np.float32), None, IMAGES, CAPTIONS)


def shuffled(given: System, seed: int) -> System:
    generator = np.random.default_rng(seed)
    rows, columns = generator.permutation(30), generator.permutation(90)
    return given.only(rows, columns)


@pytest.mark.parametrize("method", list(FUSIONS))
def test_permuted_members_give_the_same_ensemble(method: str) -> None:
    members = [member(name, seed) for seed, name in enumerate("abc")]
    mixed = [members[0], shuffled(members[1], 8), shuffled(members[2], 9)]
    expected = evaluate(fuse(members, method), OWNER).as_dict()
    assert evaluate(fuse(mixed, method), OWNER, block_megabytes=0.01).as_dict() == expected


@pytest.mark.specification
def test_the_mean_is_the_mean_of_similarities() -> None:
    members = [member("a", 0), shuffled(member("b", 1), 2)]
    whole = (members[0].scores.values + member("b", 1).scores.values) / 2
    assert evaluate(fuse(members), OWNER).as_dict() == evaluate(whole, OWNER).as_dict()
    weighted = members[0].scores.values * np.float32(0.25) + member(
        "b", 1
    ).scores.values * np.float32(0.75)
    assert (
        evaluate(fuse(members, weights=[2, 6]), OWNER).as_dict()
        == evaluate(weighted, OWNER).as_dict()
    )
    every = slice(None), slice(None)
    for fused, expected in ((fuse(members), whole), (fuse(members, weights=[2, 6]), weighted)):
        assert isinstance(fused, WeightedSum)
        np.testing.assert_allclose(fused.block(*every), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "rescale"),
    [
        ("zscore", lambda scores, axis: zscore(scores, axis=axis)),
        ("rank", lambda scores, axis: 1 / (60 + rankdata(-scores, axis=axis))),
    ],
)
@pytest.mark.parametrize("megabytes", [64, 0.01])
def test_rescaling_is_among_the_candidates_of_each_query(
    method: str, rescale: Callable[[np.ndarray, int], np.ndarray], megabytes: float
) -> None:
    members = [member("a", 0), member("b", 1, levels=12)]
    fused = evaluate(fuse(members, method, [3, 1]), OWNER, block_megabytes=megabytes)
    by_axis = [
        sum(
            weight * rescale(np.asarray(each.scores.values, np.float64), axis)
            for weight, each in zip((0.75, 0.25), members, strict=True)
        )
        for axis in (0, 1)
    ]
    assert fused.as_dict()["t2i"] == evaluate(by_axis[0], OWNER).as_dict()["t2i"]
    assert fused.as_dict()["i2t"] == evaluate(by_axis[1], OWNER).as_dict()["i2t"]


@pytest.mark.parametrize("method", ["zscore", "rank"])
def test_in_a_fold_only_its_items_are_candidates(method: str) -> None:
    members = [member("a", 0), member("b", 1)]
    folds = evaluate(fuse(members, method, [3, 1]), OWNER, Protocol("thirds", folds=3)).folds
    for fold, metrics in enumerate(folds):
        rows, columns = np.arange(10) + 10 * fold, np.flatnonzero(fold == OWNER // 10)
        part = [each.only(rows, columns) for each in members]
        alone = evaluate(fuse(part, method, [3, 1]), OWNER[columns] - 10 * fold)
        assert metrics.as_dict()["i2t"] == alone.as_dict()["i2t"]


def test_a_system_of_two_matrices_has_its_weight_in_both_directions(
    rng: np.random.Generator,
) -> None:
    one, two, other = rng.random((3, 4, 6))
    found = mean(
        [Directions(as_similarity(one), as_similarity(two)), as_similarity(other)], [0.75, 0.25]
    )  # type: ignore[arg-type]
    for name, own in (("i2t", one), ("t2i", two)):
        block = found.direction(name, 2**20).block(slice(0, 4), slice(0, 6))  # type: ignore[arg-type, union-attr]
        np.testing.assert_allclose(block, 0.75 * own + 0.25 * other)


@pytest.mark.parametrize("method", ["mean", "zscore", "rank"])
def test_constant_members_stay_at_chance(method: str) -> None:
    members = [
        System.of(name, np.full((40, 40), value, np.float32), None, np.arange(40), np.arange(40))
        for name, value in (("a", 0.1), ("b", 0.7))
    ]
    metrics = evaluate(fuse(members, method, [1, 2]), np.arange(40))
    assert [metrics[name] for name in STATISTICS[:-1]] == [2.5, 12.5, 25.0] * 2


@pytest.mark.parametrize("method", ["mean", "zscore", "rank"])
def test_embeddings_can_be_fused_and_their_duplicates_tie(method: str) -> None:
    sides = [noisy_pairs(30, 3, 0.3, seed) for seed in (0, 1)]
    for images, captions in sides:
        images[29], captions[87:] = images[0], captions[:3]
    members = [
        System.of(str(each), Embeddings(*side), None, IMAGES, CAPTIONS)
        for each, side in enumerate(sides)
    ]
    metrics = evaluate(fuse(members, method), np.arange(90) // 3)
    assert (metrics.tied["t2i"], metrics.tied["i2t"]) == (6, 2)


def test_copies_that_one_member_alone_has_do_not_tie() -> None:
    """Of computed members one has the images 0 and 29 and the captions 0 and 87 as copies."""
    images, captions = noisy_pairs(30, 3, 0.3, 0)
    images[29], captions[87:] = images[0], captions[:3]
    with_copies = System.of("a", Embeddings(images, captions), None, IMAGES, CAPTIONS)
    without = System.of("b", Embeddings(*noisy_pairs(30, 3, 0.3, 1)), None, IMAGES, CAPTIONS)
    owner = np.arange(90) // 3
    for members in ([with_copies, without], [without, with_copies]):
        metrics = evaluate(fuse(members), owner)
        assert (metrics.tied["t2i"], metrics.tied["i2t"]) == (0, 0)
        whole = sum(
            np.float64(member.scores.images) @ np.float64(member.scores.captions).T
            for member in members
        )
        assert metrics.as_dict() == evaluate(whole, owner).as_dict()


def test_a_stored_member_tells_duplicates_of_a_computed_one_apart() -> None:
    images, captions = noisy_pairs(30, 3, 0.3, 0)
    images[29], captions[87:] = images[0], captions[:3]
    computed, stored = (
        System.of("a", Embeddings(images, captions), None, IMAGES, CAPTIONS),
        member("b", 1),
    )
    whole = (np.float64(images) @ np.float64(captions).T + stored.scores.values) / 2
    metrics = evaluate(fuse([computed, stored]), np.arange(90) // 3)
    assert (metrics.tied["t2i"], metrics.tied["i2t"]) == (0, 0)
    assert metrics.as_dict() == evaluate(whole, np.arange(90) // 3).as_dict()


def test_members_with_other_ids_are_refused() -> None:
    first, other = member("a", 0), member("b", 1)
    with pytest.raises(InputError, match=r"b has 1 image ids that a lacks \(5\)"):
        fuse([first, replace(other, image_ids=np.where(IMAGES == 0, 5, IMAGES))])
    with pytest.raises(
        InputError,
        match=r"a has 90 caption ids that b lacks|b has 90 caption ids that a lacks \(1, 12, 23, ...\)",
    ):
        fuse([first, replace(other, caption_ids=CAPTIONS + 1)])
    smaller = System.of("c", np.asarray(other.scores.values)[:29], None, IMAGES[:29], CAPTIONS)
    with pytest.raises(InputError, match=r"a has 1 image ids that c lacks \(203\)"):
        align([first, smaller])
    with pytest.raises(InputError, match="b: image id 7 occurs twice"):
        align([first, replace(other, image_ids=np.where(IMAGES == 0, 7, IMAGES))])
    with pytest.raises(InputError, match=r"b: a matrix \[30, 90\] has 29 image ids"):
        align([first, replace(other, image_ids=IMAGES[:29])])


@pytest.mark.specification
def test_lists_of_the_best_are_refused_by_every_fusion() -> None:
    """A run file, as a member, has no score for most pairs."""
    query, candidate = map(np.ravel, np.indices((90, 10)))
    listed = Listed(query, candidate, np.arange(900.0))
    lists = System.of("run", Lists((30, 90), {"t2i": listed}, "run"), None, IMAGES, CAPTIONS)
    for method in FUSIONS:
        for members in ([lists, member("a", 0)], [member("a", 0), lists]):
            with pytest.raises(InputError, match="run: lists each query's best candidates alone"):
                fuse(members, method)


def test_weights_are_chosen_on_other_scores_of_val_by_the_same_heads() -> None:
    def scored(head: str, split: str, file: str) -> System:
        scores = np.random.default_rng([*file.encode()]).random((30, 90)).astype(np.float32)
        heads = [Member(head=head, checkpoint=head)]
        made = invented_facts.ensemble(head, heads, split=split, files=[file])
        return System.of(head, scores, np.arange(90) // 3, IMAGES, CAPTIONS, made_from=made)

    members, on = (
        [scored(head, split, head + split) for head in "ab"] for split in ("test", "val")
    )
    weights, chosen = tune(members, on, "mean", 32)
    assert (sum(weights), chosen["on"]) == (1, ["a", "b"])
    for wrong, said in (
        (on[::-1], "was not scored by the heads of a"),
        (on[:1], "each of 2 members, received 1"),
        ([on[0], scored("b", "test", "b")], "is of the split test; weights are chosen on val"),
        ([on[0], scored("b", "val", "btest")], "is a member itself"),
    ):
        with pytest.raises(InputError, match=said):
            tune(members, wrong, "mean", 32)


def test_no_member_chooses_the_weights_that_it_is_fused_by() -> None:
    """A member may stand on several files; one of them among the scores of val is enough."""

    def scored(head: str, split: str, files: list[str]) -> System:
        made = invented_facts.ensemble(
            head, [Member(head=head, checkpoint=head)], split=split, files=files
        )
        return System.of(head, np.eye(2), np.arange(2), np.arange(2), np.arange(2), made_from=made)

    members = [scored("a", "test", ["1", "2"]), scored("b", "test", ["3"])]
    for files in (["1"], ["4", "2"], ["3", "4"], ["1", "2", "3"]):
        with pytest.raises(InputError, match="is a member itself"):
            tune(members, [scored("a", "val", ["4"]), scored("b", "val", files)], "mean", 32)
    on = [scored("a", "val", ["4"]), scored("b", "val", ["5"])]
    assert tune(members, on, "mean", 32)[0] == [0.5, 0.5]


@pytest.mark.slow
@pytest.mark.parametrize("members", [2, 3])
def test_of_weights_that_rank_alike_the_most_even_are_chosen(members: int) -> None:
    def perfect(head: str, split: str) -> System:
        made = invented_facts.of_head(head, split=split)
        scores = np.eye(30, dtype=np.float32).repeat(3, 1)
        return System.of(head, scores, np.arange(90) // 3, IMAGES, CAPTIONS, made_from=made)

    on_test, on_val = (
        [perfect(head, split) for head in "abc"[:members]] for split in ("test", "val")
    )
    weights, chosen = tune(on_test, on_val, "mean", 32)
    assert chosen["RSUM"] == 600
    spread = [max(each) - min(each) for each in fusing.weightings(members)]
    assert max(weights) - min(weights) == min(spread)


def test_unusable_weights_and_methods_are_refused() -> None:
    members = [member("a", 0), member("b", 1)]
    for weights in ([1], [0, 0], [1, -1], [1, np.nan], [np.inf, 1]):
        with pytest.raises(InputError, match="weight"):
            fuse(members, weights=weights)
    with pytest.raises(InputError, match="unknown fusion 'max'"):
        fuse(members, "max")
    with pytest.raises(InputError, match="at least one member"):
        fuse([])
    with pytest.raises(InputError, match="cannot be fused again"):
        fuse([System.of("twice", fuse(members, "rank"), None, IMAGES, CAPTIONS)])
    folds = np.zeros(30, np.int64), np.zeros(90, np.int64)
    of_reranked = Folded(fuse(members), folds, "all")
    with pytest.raises(InputError, match="cannot be fused again"):
        fuse([System.of("of reranked", of_reranked, None, IMAGES, CAPTIONS)], "rank")
