"""What a trace compares of a system's scores: whose they are, and its numbers as they are measured
again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import invented_facts
import numpy as np
import pytest
import saved

from pipeline.foundation.evaluation.retrieval import PROTOCOLS, as_similarity
from pipeline.foundation.evaluation.retrieval.blocks import Matrix
from pipeline.foundation.files.compared import DIFFERS, MATCHES, Step
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.settings import Evaluate
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.reranking import candidates
from pipeline.judge.systems.scores import measured
from pipeline.judge.systems.scores.made import Fusion, Made, OfEncoder, OfGiven
from pipeline.judge.systems.scores.system import System
from pipeline.run.provenance import checks, computed_again, of_system
from pipeline.run.provenance.context import Context
from pipeline.run.provenance.results import EvaluateRequest, Result
from pipeline.run.provenance.walk import SYSTEMS, Link, behind

SETTINGS = Evaluate(resamples=20, seed=3, block_megabytes=32)


def traced(path: Path, paths: Paths, manifest: Manifest) -> list[Step]:
    """The steps of all systems behind one."""
    manifest.save(paths.manifest("sample"))
    context = Context(paths, behind([Link(path, "ensemble", None)], paths), "sample", 0, None, 8)
    return [step for each in context.paths_of(*SYSTEMS) for step in of_system.steps(each, context)]


@pytest.fixture
def stored(scenes: Manifest, tmp_path: Path) -> Callable[..., System]:
    """Writes random scores of rows of the split test, with the captions of these images."""

    def write(rows: list[int]) -> System:
        split = scenes.split("test")
        columns = np.flatnonzero(np.isin(split.caption_image, rows))
        owner = np.array([rows.index(image) for image in split.caption_image[columns]])
        scores = np.random.default_rng(0).random((len(rows), len(columns))).astype(np.float32)
        path = tmp_path / "similarities" / "mine.zarr"
        saved.save(
            path,
            [as_similarity(scores)],
            split.image_ids[rows],  # type: ignore[list-item]
            split.caption_ids[columns],
            owner,
            invented_facts.of_file(manifest=scenes.digest),
        )
        return System.open(path)

    return write


@pytest.mark.parametrize(
    ("rows", "verdict"), [([0, 1, 2, 3], MATCHES), ([2, 0], MATCHES), ([1, 1, 2], DIFFERS)]
)
def test_an_image_may_be_missing_but_not_twice(
    rows: list[int], verdict: str, stored: Callable[..., System], scenes: Manifest, tmp_path: Path
) -> None:
    system = stored(rows)
    steps = traced(system.path, Paths(tmp_path), scenes)
    (step,) = [each for each in steps if each.what == "whose scores, by the manifest"]
    assert step.verdict == verdict
    assert (step.found == "the same image twice") == (verdict == DIFFERS)


def test_a_caption_of_another_image_is_named(
    stored: Callable[..., System], scenes: Manifest, tmp_path: Path
) -> None:
    system = stored([0, 1])
    other = replace(system, caption_image=1 - system.caption_image)
    saved.save(
        system.path,
        [as_similarity(system.similarity)],
        system.image_ids,  # type: ignore[list-item]
        system.caption_ids,
        other.caption_image,
        system.made_from,
    )
    steps = traced(system.path, Paths(tmp_path), scenes)
    found = next(each.found for each in steps if each.what == "whose scores, by the manifest")
    assert found == f"caption {system.caption_ids[0]} as of image {system.image_ids[1]}"


def test_members_of_members_are_followed(
    stored: Callable[..., System], scenes: Manifest, tmp_path: Path
) -> None:
    inner = stored([0, 1, 2, 3])
    paths = Paths(tmp_path)
    for name, member in (("inner", None), ("middle", "inner"), ("outer", "middle")):
        before = None if member is None else System.open(paths.similarity("sample", member, "test"))
        fusion = Fusion(method="mean", weights=[1.0], members=[str(member)])
        made: Made = inner.made_from
        if before:
            manifest = scenes.digest
            made = invented_facts.ensemble(str(member), fusion=fusion, manifest=manifest)
        saved.save(
            paths.similarity("sample", name, "test"),
            [as_similarity(inner.similarity)],  # type: ignore[list-item]
            inner.image_ids,
            inner.caption_ids,
            inner.caption_image,
            made,
            made_from={"member.0": before.reference} if before else None,
        )
    file = paths.similarity("sample", "inner", "test") / "image_ids" / "c" / "0"
    file.write_bytes(bytes(reversed(file.read_bytes())))
    outer = System.open(paths.similarity("sample", "outer", "test"))
    steps = [
        step
        for step in traced(outer.path, paths, scenes)
        if step.path.is_relative_to(file.parents[2])
    ]
    assert DIFFERS in {step.verdict for step in steps}


@pytest.mark.specification
@pytest.mark.parametrize(("added", "verdict"), [(0.0, MATCHES), (1e-6, MATCHES), (1e-4, DIFFERS)])
def test_every_cell_is_compared_with_that_of_the_embeddings(
    added: float, verdict: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    images, captions = rng.normal(size=(2, 6, 4)).astype(np.float32)
    scores, ids = images @ captions.T, np.arange(6)
    scores[4, 5] += added
    made = invented_facts.of_head()
    saved.save(
        tmp_path / "mine.zarr",
        [Matrix(scores)],
        ids,
        ids,
        ids,
        made,
        image_embeddings=images,
        caption_embeddings=captions,
    )
    assert (
        computed_again.scores(System.open(tmp_path / "mine.zarr"), Paths(tmp_path)).verdict
        == verdict
    )


@pytest.mark.specification
@pytest.mark.parametrize(
    ("key", "value", "differ"),
    [
        ("RSUM", None, 0),
        ("RSUM", 250.0, 1),
        ("images", {"R@1": 4}, 1),
        ("queries", 4, 1),
        ("i2t", [1, 2], 1),
        ("tied", {"i2t": 0}, 1),
        ("tied", {"i2t": 0, "t2i": 0, "i2i": 0}, 1),
        ("interval", {"RSUM": [0, 600]}, 1),
    ],
)
def test_every_number_is_compared_with_what_the_scores_give(
    key: str, value: Any, differ: int, scenes: Manifest, stored: Callable[..., System]
) -> None:
    system = stored([0, 1, 2, 3])
    found = measured.measure(system, "all", "expected", SETTINGS)
    numbers = found.numbers if value is None else found.numbers | {key: value}
    request = EvaluateRequest(name=system.name, protocols=["all"], settings=SETTINGS)
    result = Result.of(system, request, {"all": numbers}, {"all": found.hits})
    verdicts = [
        step.verdict
        for step in computed_again.numbers(system.path, result, system.path, 32, scenes)
    ]
    assert (len(verdicts), verdicts.count(DIFFERS), verdicts.count(MATCHES)) == (
        3,
        differ,
        3 - differ,
    )


# A false value of every fact of each kind of system.
OF_ALL: dict[str, Any] = {
    "dataset": "flickr30k",
    "split": "val",
    "manifest": "0" * 64,
    "languages": ["de", "en"],
    "lacks": {"captions without an image": 3},
}
MEMBER: dict[str, Any] = {"head": "mine", "given": {"title": "Ours", "files": {}}}
OF_HEADS: dict[str, Any] = {
    "recipe": "vse-infinity",
    "text": "bert",
    "seed": 7,
    "trained_on": "mscoco",
}
JOINED: dict[str, Any] = {
    "features": {"region": "butd-36"},
    "untrained": ["region"],
    "members": [MEMBER],
}
SOURCE = invented_facts.of_head("another")
FORGED: list[tuple[Made, dict[str, Any]]] = [
    (
        invented_facts.of_file(),
        {key: OF_ALL[key] for key in ("dataset", "split", "manifest")}
        | {"file": "0" * 64, "distance": True},
    ),
    (SOURCE, {**OF_ALL, **OF_HEADS, "is_untrained": True, "member": MEMBER}),
    (
        OfEncoder.model_validate({**invented_facts.of_one(), "kind": "encoder"}),
        {**OF_ALL, "member": MEMBER},
    ),
    (
        OfGiven.model_validate({**invented_facts.of_one(), "kind": "given"}),
        {**OF_ALL, "member": MEMBER},
    ),
    (
        invented_facts.ensemble("mine"),
        {
            **OF_ALL,
            **OF_HEADS,
            **JOINED,
            "name": "RG",
            "left_out": [4],
            "fusion": {"method": "rank", "weights": [], "members": []},
            "protocol": {"name": "coco_1k"},
            "sees_queries": True,
            "files": ["0" * 64],
        },
    ),
    (
        invented_facts.rescored(invented_facts.of_head()),
        {
            "source": SOURCE.recorded(),
            "system": "another",
            "rescorer": "nnn",
            "bank": "test",
            "options": {"k": 1},
        },
    ),
    (
        invented_facts.reranked(invented_facts.of_head()),
        {
            **JOINED,
            "source": SOURCE.recorded(),
            "named": True,
            "retriever": "x",
            "roles": [],
            "scorer": {"kind": "system", "name": "x", "place": "x", "made_from": "x"},
            "k": 3,
            "combine": "add",
            "weight": 0.5,
            "logits": True,
            "protocol": {"name": "coco_1k"},
            "distractors": ["flickr30k"],
            "pools": ["embeddings/other.zarr"],
            "tuned": {"split": "val"},
            "index": "faiss",
        },
    ),
]


def differing(result: Result, system: System, **fields: Any) -> list[str]:
    """What differs of an entry from its system, after its record was forged and sealed."""
    forged = replace(result, record=result.record.changed(**fields)).sealed()
    steps = checks.entry_again(forged, Path("metrics.json"), system)
    return [step.what for step in steps if step.verdict == DIFFERS]


@pytest.mark.parametrize(("made", "forged"), FORGED, ids=lambda made: getattr(made, "kind", ""))
def test_every_fact_of_an_entry_is_compared_with_its_system(
    made: Made, forged: dict[str, Any], stored: Callable[..., System]
) -> None:
    assert {"kind", *forged} == type(made).model_fields.keys()
    system = replace(stored([0, 1, 2, 3]), made_from=made)
    request = EvaluateRequest(name=system.name, protocols=["all"], settings=SETTINGS)
    result = Result.of(system, request, {"all": {}}, {}, entries=[system.name])
    assert differing(result, system) == []
    for fact, value in forged.items():
        assert differing(result, system, facts=result.record.facts | {fact: value}) == [
            "the facts of mine, by its system"
        ], fact
    assert differing(result, system, facts={"kind": "unknown"}) == [
        "the facts of mine, by its system"
    ]


def test_what_was_measured_by_an_entry_is_compared(stored: Callable[..., System]) -> None:
    system = stored([0, 1, 2, 3])
    request = EvaluateRequest(name=system.name, protocols=["all"], settings=SETTINGS)
    result = Result.of(system, request, {"all": {}}, {}, entries=[system.name])
    for field, value in {
        "protocols": ["coco_1k"],
        "judgements": "0" * 64,
        "distractors": [{"dataset": "other", "split": "test", "images": 9, "captions": 9}],
    }.items():
        assert differing(result, system, request=result.record.request | {field: value}) == [
            "what was measured of mine"
        ], field
    another = result.record.made_from | {"distractor.0": system.reference}
    for field, forged in {"versions": {"evaluation": 99}, "made_from": another}.items():
        assert differing(result, system, **{field: forged}) == [
            "what measured mine, and of what"
        ], field
    renamed = result.record.request | {"name": "better"}
    assert "the name of the entry better, by its system" in differing(
        result, system, request=renamed
    )


def test_each_of_a_few_reranked_pairs_is_scored_again(rng: np.random.Generator) -> None:
    worth = rng.normal(size=(6, 12)).astype(np.float32)
    pool = System.of("retriever", rng.normal(size=(6, 12)), np.repeat(np.arange(6), 2))
    best = candidates.find(pool, PROTOCOLS["all"], 4)
    pairs = candidates.pairs_of(best, 12)
    scored = candidates.with_scores(best, pairs, worth[pairs.image, pairs.caption], 12)

    class Scorer:
        def score(self, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
            return worth[images, captions]

    scorer: Any = Scorer()
    assert of_system.other_pair(scored, pool, scorer) is None
    worth[pairs.image[-1], pairs.caption[-1]] += 1
    assert f"for image {pairs.image[-1]} and caption {pairs.caption[-1]}" in str(
        of_system.other_pair(scored, pool, scorer)
    )
