"""`pipeline rerank` with captions in several languages: each is a pool of its own, and all together
one more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import saved
from scored import CAPTIONS, IMAGES, score

from pipeline.foundation.evaluation.retrieval.blocks import Matrix
from pipeline.foundation.files.compared import MATCHES
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.made import Reranked
from pipeline.judge.systems.scores.system import Candidates, System
from pipeline.run.provenance import of_system

pytestmark = pytest.mark.slow

R, G = "vse2ad-region-bigru-s0", "vse2ad-grid-bigru-s0"


def path(name: str, dataset: str = "sample") -> Path:
    return Path("similarities", dataset, f"{name}.zarr")


def manifest(
    dataset: str, split: str, languages: tuple[str, ...], named: bool, english: int = IMAGES - 1
) -> Manifest:
    """Of what `score` makes: three English captions an image and two German ones, but for an image
    in English alone.
    """
    rows = [
        {
            "image_id": 10 * (image + 1),
            "file": f"{image}.png",
            "bytes": 1,
            "split": split,
            "caption_id": 100 + CAPTIONS * image + number,
            "caption": "a caption",
            "language": language,
        }
        for image in range(IMAGES)
        for number in range(CAPTIONS)
        if (language := "en" if number < 3 or image == english else "de") in languages
    ]
    made = Manifest(
        pd.DataFrame(rows) if named else pd.DataFrame(rows).drop(columns="language"),
        dataset,
        Path(),
    )
    made.save(Path(f"data/{dataset}.parquet"))
    return made


def both(split: str = "test", english: int = IMAGES - 1) -> None:
    made = manifest("sample", split, ("en", "de"), named=True, english=english)
    for feature, noise in (("region", 2.0), ("grid", 1.5)):
        score(feature, noise=noise, manifest=made.digest, languages=made.languages, split=split)


def german() -> None:
    """The same scores of the German captions alone, as a data set of one language."""
    made = manifest("german", "test", ("de",), named=False)
    captions = made.split("test").caption_ids - 100
    rows = np.unique(captions // CAPTIONS)
    for name in (R, G):
        whole = System.open(path(name))
        saved.save(
            path(name, "german"),
            [Matrix(whole.similarity[:][np.ix_(rows, captions)])],
            whole.image_ids[rows],
            captions + 100,
            np.searchsorted(rows, captions // CAPTIONS),
            whole.made_from.changed(languages=[], dataset="german", manifest=made.digest),
        )


def measured(pipeline: Any, place: Path, *more: str) -> dict[str, Any]:
    code, out, err = pipeline("evaluate", "--system", place, "--json", *more)
    assert code == 0, err
    (found,) = json.loads(out)
    return {
        language: {way: numbers[way] for way in ("i2t", "t2i")}
        for language, numbers in {"": found, **found.get("languages", {})}.items()
    }


@pytest.fixture
def reranked(pipeline: Any) -> Callable[..., str]:
    """Rerank, and give the new system's name."""
    both()
    german()

    def run(*more: str, dataset: str = "sample") -> str:
        name = f"new-{'-'.join(more).replace('--', '')}"
        code, _, err = pipeline(
            "rerank", "--dataset", dataset, "--retriever", R, "--with", G, "--name", name, *more
        )
        assert code == 0, err
        return name

    return run


def test_each_language_has_the_numbers_that_it_has_alone(
    pipeline: Any, reranked: Callable[..., str]
) -> None:
    found = measured(pipeline, path(reranked("--k", "5")))
    assert list(found) == ["", "de", "en"]
    assert (
        found["de"]
        == measured(pipeline, path(reranked("--k", "5", dataset="german"), "german"))[""]
    )
    assert found["de"] != measured(pipeline, path(R))["de"]


def test_all_give_the_scorers_numbers_and_all_weight_the_retrievers(
    pipeline: Any, reranked: Callable[..., str]
) -> None:
    assert measured(pipeline, path(reranked("--k", "all"))) == measured(pipeline, path(G))
    same = reranked("--k", "5", "--combine", "add", "--weight", "1")
    assert measured(pipeline, path(same)) == measured(pipeline, path(R))


def test_folds_of_each_language(pipeline: Any) -> None:
    both(english=-1)  # each image has captions in both
    for name, k in (("whole", "all"), ("some", "3")):
        code, _, err = pipeline(
            "rerank", "--retriever", R, "--with", G, "--folds", "2", "--k", k, "--name", name
        )
        assert code == 0, err
    rules = ("--folds", "2")
    assert measured(pipeline, path("whole"), *rules) == measured(pipeline, path(G), *rules)
    assert measured(pipeline, path("some"), *rules) != measured(pipeline, path(G), *rules)


def test_candidates_are_of_their_language_and_traced(
    pipeline: Any, reranked: Callable[..., str]
) -> None:
    store = System.open(path(reranked("--k", "5")))
    assert isinstance(store.kind, Candidates)
    assert list(store.kind.found) == ["i2t", "t2i", "0_i2t", "0_t2i", "1_i2t", "1_t2i"]
    lists = store.kind.found["0_i2t"].places
    assert (lists[:-1] % CAPTIONS >= 3).all()
    assert (lists[-1] == -1).all()  # the last image has no German caption
    steps = list(of_system.reranked_steps(store, Paths(Path())))
    assert {step.verdict for step in steps} == {MATCHES}, steps
    again = pipeline("rerank", "--retriever", R, "--with", G, "--name", store.path.stem, "--k", "5")
    assert "nothing to do" in again[1]


def test_what_is_not_defined_is_refused(
    pipeline: Any, refused: Callable[..., str], reranked: Callable[..., str]
) -> None:
    name = reranked("--k", "5")
    rerank = ("rerank", "--retriever", R, "--with", G, "--name", "other")
    assert "a query of protocol all has 11 images in de" in refused(*rerank, "--k", "12")
    assert "--distractors enlarge one pool" in refused(
        *rerank, "--k", "5", "--distractors", path(R)
    )
    fused = refused("ensemble", "fused", "--member", name, "--member", G, "--fusion", "rank")
    assert "within each language" in fused


def test_k_and_the_weight_are_chosen_by_the_mean_over_languages(pipeline: Any) -> None:
    both("val")
    code, _, err = pipeline(
        "rerank",
        "--retriever",
        R,
        "--with",
        G,
        "--k",
        "10",
        "--combine",
        "add",
        "--tune",
        "--name",
        "chosen",
    )
    assert code == 0, err
    chosen = path(R).parent / "val" / "chosen.zarr"
    record = System.open(chosen).made_from
    found = measured(pipeline, chosen)
    recalls = [
        sum(found[language][way][f"R@{k}"] for way in ("i2t", "t2i") for k in (1, 5, 10))
        for language in ("de", "en")
    ]
    assert isinstance(record, Reranked)
    assert record.tuned["RSUM"] == pytest.approx(np.mean(recalls))
