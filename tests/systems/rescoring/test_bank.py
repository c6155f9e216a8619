"""A bank's similarities are those of all members, each with its weight."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import foreign
import invented_facts
import numpy as np
import pytest
import saved

from pipeline.foundation import settings
from pipeline.foundation.artefacts import Reference
from pipeline.foundation.evaluation.retrieval import as_similarity
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.foundation.settings.run import Rescore
from pipeline.judge.systems import rescoring
from pipeline.judge.systems.requests import RescoreRequest
from pipeline.judge.systems.rescoring import bank, stored
from pipeline.judge.systems.scores.made import Fusion, OfEncoder
from pipeline.judge.systems.scores.system import System

PARAMS = Path(__file__).parents[3] / "params.yaml"
WEIGHTS = [0.75, 0.25]


def whole(source: Any) -> np.ndarray:
    return np.asarray(source.block(*(slice(0, size) for size in source.shape)))


@pytest.fixture
def heads(rng: np.random.Generator) -> Any:
    """Makes the stores of two heads, with so many images and two captions of each; ids from the
    last to the first.
    """

    def make(images: int) -> list[Any]:
        held = [
            {
                side: rng.normal(size=(count, 4))
                for side, count in (("image", images), ("caption", 2 * images))
            }
            for _ in WEIGHTS
        ]
        return [
            SimpleNamespace(
                path=Path("a"),
                checkpoints=[number],
                vectors=vectors.__getitem__,
                vectors_of=lambda side, ids, otherwise, own=vectors: own[side][::-1][ids],
            )
            for number, vectors in enumerate(held)
        ]

    return make


def expected(one: list[np.ndarray], other: list[np.ndarray]) -> np.ndarray:
    return sum(weight * a @ b.T for weight, a, b in zip(WEIGHTS, one, other, strict=True))  # type: ignore[return-value]


def test_a_bank_of_train_is_the_members_weighted_sum(heads: Any) -> None:
    test, embedded, train = (
        heads(3),
        heads(5),
        SimpleNamespace(image_ids=np.arange(5), caption_ids=np.arange(10)),
    )
    found = bank.of_train(train, test, embedded, WEIGHTS)  # type: ignore[arg-type]
    images, captions = ([store.vectors(side) for store in test] for side in ("image", "caption"))
    bank_images, bank_captions = (
        [store.vectors(side)[::-1] for store in embedded] for side in ("image", "caption")
    )
    for source, one, other in (
        (found.captions, images, bank_captions),
        (found.images, bank_images, captions),
        (found.image_images(), images, bank_images),
        (found.caption_captions(), bank_captions, captions),
    ):
        np.testing.assert_allclose(whole(source), expected(one, other), atol=1e-6)


def test_a_bank_of_another_checkpoint_is_refused(heads: Any) -> None:
    train = SimpleNamespace(image_ids=np.arange(5), caption_ids=np.arange(10))
    with pytest.raises(InputError, match="was embedded by another head than a; embed again"):
        bank.of_train(train, heads(3), heads(5)[::-1], WEIGHTS)  # type: ignore[arg-type]


def test_a_bank_of_test_is_the_members_weighted_sum(heads: Any) -> None:
    stores = heads(3)
    found = bank.of_test(as_similarity(np.zeros((3, 6))), lambda: (stores, WEIGHTS))  # type: ignore[arg-type]
    for source, side in ((found.image_images(), "image"), (found.caption_captions(), "caption")):
        vectors = [store.vectors(side) for store in stores]
        np.testing.assert_allclose(whole(source), expected(vectors, vectors), atol=1e-6)


@pytest.mark.slow
def test_scores_are_computed_again_from_the_bank_that_was_used_and_no_other(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    paths, table = Paths(tmp_path), foreign.manifest(12, captions=2)
    table.save(paths.manifest("coco"))
    train, test = table.split("train"), table.split("test")
    facts = invented_facts.of_head(dataset="coco", checkpoint="c")

    def embed() -> tuple[np.ndarray, np.ndarray]:
        with saved.writing_vectors(
            paths.embeddings("coco", "coco", "mine"), [train], 4, facts
        ) as sides:
            for side in sides:
                side[:] = rng.normal(size=side.shape)
            return sides[0].copy(), sides[1].copy()

    images, captions = (
        rng.normal(size=(len(ids), 4)).astype(np.float32)
        for ids in (test.image_ids, test.caption_ids)
    )
    path = paths.similarity("coco", "mine", "test")
    saved.save(
        path,
        [as_similarity(images @ captions.T)],
        test.image_ids,  # type: ignore[list-item]
        test.caption_ids,
        test.caption_image,
        facts,
        image_embeddings=images,
        caption_embeddings=captions,
    )
    (bank_images, bank_captions), source = embed(), System.open(path)
    request = RescoreRequest(
        name="mine+nnn", rescorer="nnn", options={"neighbours": 1, "weight": 1.0}
    )
    made, made_from = stored.made(source, request), stored.made_from(source, request, paths)
    lowered = (
        images @ captions.T
        - (images @ bank_captions.T).max(1)[:, None]
        - (bank_images @ captions.T).max(0)
    )
    np.testing.assert_allclose(
        whole(stored.compute(source, made, made_from, paths).scores), lowered, atol=1e-5
    )
    embed()
    with pytest.raises(InputError, match="is not the bank that was used; rescore again"):
        stored.compute(source, made, made_from, paths)


def test_a_bank_is_another_once_one_of_its_members_was_embedded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embedded = [
        SimpleNamespace(path=Path(name), reference=Reference(kind="k", name=name, identity=name))
        for name in ("first", "second")
    ]
    monkeypatch.setattr(stored, "_embedded", lambda source, paths: embedded)
    source: Any = SimpleNamespace(similarity=as_similarity(np.zeros((3, 6))))
    made = SimpleNamespace(rescorer="nnn", options={"neighbours": 1, "weight": 1.0})
    for kept in embedded:
        used = {"bank": kept.reference}
        with pytest.raises(InputError, match="is not the bank that was used; rescore again"):
            stored.compute(source, made, used, Paths(Path()))  # type: ignore[arg-type]


def test_a_bank_serves_heads_and_their_means_alone() -> None:
    """The scores of a corrected, a reranked or another fusion's system are no mean of vectors."""
    head = invented_facts.of_head("a")
    by_rank = Fusion(method="rank", members=["a", "b"], weights=[0.5, 0.5])
    for made in (
        invented_facts.rescored(head),
        invented_facts.reranked(head),
        invented_facts.rescored(invented_facts.ensemble("mine", [{"head": "a"}])),
        invented_facts.ensemble("mine", fusion=by_rank),
    ):
        system: Any = SimpleNamespace(name="mine", made_from=made)
        with pytest.raises(InputError, match="mine: a bank serves heads and ensembles of heads"):
            bank.heads_of(system)
    alone: Any = SimpleNamespace(name="of a user's name", made_from=head)
    assert bank.heads_of(alone) == (["of a user's name"], [1.0])


def test_the_vectors_of_a_bank_are_sought_where_their_head_is_embedded(tmp_path: Path) -> None:
    """Whatever a user calls the system of one head; in an ensemble by the members' names."""
    own = invented_facts.of_head("vse2ad-grid-bigru-s0")
    elsewhere = own.changed(trained_on="other")
    encoder = OfEncoder.model_validate(
        invented_facts.of_one("clip") | {"member": {"head": "clip", "encoder": {"title": "CLIP"}}}
    )
    members = [{"head": "a"}, {"head": "b"}]
    of_two = invented_facts.ensemble("both", members)
    other = [f"other-{member['head']}" for member in members]
    fused = {"method": "mean", "weights": WEIGHTS, "members": other}
    of_others = invented_facts.ensemble("both", members, trained_on="other", fusion=fused)
    for made, command in (
        (own, "embed sample --system vse2ad-grid-bigru-s0`"),
        (elsewhere, "embed sample --system vse2ad-grid-bigru-s0 --trained-on other`"),
        (encoder, "embed sample --system … --name mine`"),
        (of_two, "embed sample --system a`"),
        (of_others, "embed sample --system a --trained-on other`"),
    ):
        system: Any = SimpleNamespace(name="mine", made_from=made)
        with pytest.raises(InputError) as refused:
            stored._embedded(system, Paths(tmp_path))
        assert f"make it with `pipeline {command}" in str(refused.value), command


def test_a_runs_heads_are_embedded_on_train_where_any_of_its_rescorers_reads_them() -> None:
    """Those of its recipes, not the ablations'; `csls` and banks of test read none."""
    shipped = settings.load(PARAMS).run
    run = shipped.model_copy(
        update={"recipes": ["vse2ad"], "ablations": ["vse2ad-noadopt"], "features": ["grid"]}
    )
    names = [f"vse2ad-grid-{text}-s{seed}" for text in run.texts for seed in run.seeds]
    of_test = {"name": "nnn", "bank": "test"}
    for rescorers, expected in (
        ([], []),
        ([{"name": "csls"}], []),
        ([of_test], []),
        ([{"name": "nnn"}], names),
        ([{"name": "csls"}, {"name": "nnn"}], names),
        ([{"name": "nnn"}, of_test], names),
    ):
        steps = [Rescore.model_validate(rescorer) for rescorer in rescorers]
        found = rescoring.embedded_heads(run.model_copy(update={"rescorers": steps}))
        assert found == expected, rescorers


def test_the_weights_are_the_ensembles() -> None:
    fusion = Fusion(method="mean", members=["a", "b"], weights=WEIGHTS)
    made = invented_facts.ensemble("mine", fusion=fusion)
    system = SimpleNamespace(path=Path("mine"), made_from=made)
    assert bank.heads_of(system) == (["a", "b"], WEIGHTS)  # type: ignore[arg-type]
