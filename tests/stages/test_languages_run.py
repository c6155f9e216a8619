"""`pipeline evaluate` and `trace` of a run whose captions are in several languages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plans
import pytest
from scored import CAPTIONS, IMAGES, score

from pipeline.foundation.files.compared import DIFFERS, MATCHES
from pipeline.foundation.manifest import Manifest
from pipeline.run.provenance import computed_again
from pipeline.run.provenance.results import Result

pytestmark = pytest.mark.slow

NAME = "vse2ad-R-bigru-s0"
METRICS = Path("results/metrics.json")
RUN = ("-S", "run.features=[region]", "-S", "run.ensembles=[R]")


@pytest.fixture
def manifest() -> Manifest:
    """Of what `score` makes: three English captions an image and two German ones."""
    rows = [
        {
            "image_id": 10 * (image + 1),
            "file": f"{image}.png",
            "bytes": 1,
            "split": "test",
            "caption_id": 100 + CAPTIONS * image + number,
            "caption": "a caption",
            "language": "en" if number < 3 else "de",
        }
        for image in range(IMAGES)
        for number in range(CAPTIONS)
    ]
    made = Manifest(pd.DataFrame(rows), "sample", Path())
    made.save(Path("data/sample.parquet"))
    return made


@pytest.fixture
def scored_run(pipeline: Any, manifest: Manifest) -> Any:
    score("region", manifest=manifest.digest, languages=manifest.languages)
    assert pipeline("ensemble", "R")[0] == 0
    return pipeline


def test_a_manifests_captions_are_counted_by_language(pipeline: Any) -> None:
    Path("c.csv").write_text(
        "image,caption,language\na.png,dog,en\na.png,Hund,DE\nb.png,Katze,de\n"
    )
    code, out, err = pipeline("manifest", "mine", "--without-images", "--annotations", "c.csv")
    assert code == 0, err
    assert "3 captions (de 2, en 1), digest" in out


def test_a_run_is_measured_by_language_and_traced(scored_run: Any, manifest: Manifest) -> None:
    code, out, _ = scored_run("evaluate", *RUN)
    assert code == 0
    assert "en, 36 captions: mR " not in out
    assert "mean of languages: mR " in out
    out = scored_run("evaluate", *RUN, "-v")[1]
    assert "en, 36 captions: mR " in out
    assert "mean of languages: mR " in out
    entry = json.loads(METRICS.read_text(encoding="utf-8"))[NAME]
    found = entry["all"]["languages"]
    assert {name: numbers["captions"] for name, numbers in found.items()} == {"de": 24, "en": 36}
    mean = np.mean([numbers["RSUM"] / 6 for numbers in found.values()])
    assert entry["all"]["mean_of_languages"]["mR"] == pytest.approx(mean)
    headline = json.loads(Path(f"results/headline/{NAME}.json").read_text(encoding="utf-8"))
    assert headline["de mR"] == found["de"]["mR"]
    assert headline["mR"] == entry["all"]["mean_of_languages"]["mR"]
    store = Path(f"similarities/sample/{NAME}.zarr")
    assert {
        step.verdict
        for step in computed_again.numbers(store, Result.read(entry), store, 32, manifest)
    } == {MATCHES}
    found["de"]["i2t"]["R@1"] += 0.1
    assert DIFFERS in {
        step.verdict
        for step in computed_again.numbers(store, Result.read(entry), store, 32, manifest)
    }


def test_equal_captions_of_a_run_are_right_by_language_and_traced(
    scored_run: Any, manifest: Manifest, refused: Callable[..., str]
) -> None:
    """All captions of a language are of one text here: one query, right for every image."""
    code, out, err = scored_run("evaluate", *RUN, "--same-text", "positive", "--per-query", "q.csv")
    assert code == 0, err
    assert "relevance: equal captions, 24 pairs" in out
    entry = json.loads(METRICS.read_text(encoding="utf-8"))[NAME]
    assert list(Result.read(entry).numbers) == ["same_text"]
    found = entry["same_text"]
    assert (found["captions"], found["t2i"]["R@1"], found["relevance"]["source"]) == (
        2,
        100,
        "equal captions",
    )
    assert {name: numbers["captions"] for name, numbers in found["languages"].items()} == {
        "de": 1,
        "en": 1,
    }
    rows = pd.read_csv("q.csv", keep_default_na=False).groupby("language")
    assert {language: len(part) for language, part in rows} == {
        "": IMAGES + 2,
        "de": IMAGES + 1,
        "en": IMAGES + 1,
    }
    for language, part in rows:
        numbers = found["languages"].get(language, found)
        hits = part[part["direction"] == "i2t"][f"{NAME} R@1"]
        assert 100 * hits.mean() == pytest.approx(numbers["i2t"]["R@1"])
    store = Path(f"similarities/sample/{NAME}.zarr")
    assert {
        step.verdict
        for step in computed_again.numbers(store, Result.read(entry), store, 32, manifest)
    } == {MATCHES}
    found["relevance"]["pairs"]["t2i"] = 23
    assert DIFFERS in {
        step.verdict
        for step in computed_again.numbers(store, Result.read(entry), store, 32, manifest)
    }
    assert (
        scored_run(
            "evaluate", *RUN, "-S", "evaluate.same_text=positive", "--per-query", "again.csv"
        )[1]
        == out
    )
    assert Path("again.csv").read_bytes() == Path("q.csv").read_bytes()
    assert "set one" in refused(
        "evaluate", *RUN, "-S", "evaluate.same_text=positive", "-S", "evaluate.qrels=q.txt"
    )


def test_judgements_of_a_run_stand_apart_from_benchmarks_and_are_traced(
    scored_run: Any, manifest: Manifest, refused: Callable[..., str]
) -> None:
    Path("q.txt").write_text(
        "".join(f"{100 + 5 * image} 0 {10 * (image + 1)} 1\n" for image in range(IMAGES))
    )
    judged = ("-S", "evaluate.qrels=q.txt")
    assert scored_run("evaluate", *RUN, *judged)[0] == 0
    entry = json.loads(METRICS.read_text(encoding="utf-8"))[NAME]
    assert list(Result.read(entry).numbers) == ["qrels"]
    assert list(entry["qrels"]["languages"]) == ["en"]
    assert entry["qrels"]["queries"] == {"i2t": IMAGES, "t2i": IMAGES}
    assert scored_run("lab", "plan", *RUN, *judged)[0] == 0
    before = plans.read()["evaluate"]
    store = Path(f"similarities/sample/{NAME}.zarr")
    assert {
        step.verdict
        for step in computed_again.numbers(store, Result.read(entry), store, 32, manifest)
    } == {MATCHES}
    Path("q.txt").write_text("100 0 10 1\n")
    assert DIFFERS in {
        step.verdict
        for step in computed_again.numbers(store, Result.read(entry), store, 32, manifest)
    }
    assert scored_run("lab", "plan", *RUN, *judged)[0] == 0
    assert plans.read()["evaluate"] != before
    Path("q.txt").unlink()
    assert {
        step.verdict
        for step in computed_again.numbers(store, Result.read(entry), store, 32, manifest)
    } == {DIFFERS}
    assert "cannot read q.txt" in refused("lab", "plan", *RUN, *judged)
    assert "cannot read q.txt" in refused("evaluate", *RUN, *judged)


def test_systems_are_compared_in_each_language(scored_run: Any, manifest: Manifest) -> None:
    score("grid", manifest=manifest.digest, languages=manifest.languages, noise=2.0)
    pair = ("vse2ad-region-bigru-s0", "vse2ad-grid-bigru-s0")
    found = json.loads(scored_run("compare", *pair, "--json")[1])
    assert [(each["protocol"], each["language"]) for each in found] == [
        ("all", None),
        ("all", "de"),
        ("all", "en"),
    ]
    assert (
        scored_run("evaluate", "-S", "run.features=[region,grid]", "-S", "run.ensembles=[]")[0] == 0
    )
    metrics = json.loads(METRICS.read_text(encoding="utf-8"))
    for each in found[1:]:
        language, row = each["language"], each["RSUM"]
        rsums = [metrics[name]["all"]["languages"][language]["RSUM"] for name in pair]
        assert (row["a"], row["b"]) == pytest.approx(rsums)
    assert "24 captions in de, protocol all" in scored_run("compare", *pair)[1]
    few = json.loads(scored_run("compare", *pair, "--json", "-S", "evaluate.resamples=100")[1])
    each = [row["RSUM"]["p"] * 101 for row in few]  # the least p is 1 / (1 + swaps)
    assert each == pytest.approx(np.round(each))
    assert min(each) < 100
    assert {row["RSUM"]["adjusted_by"] for row in few} == {"maxT"}
    merged = json.loads(scored_run("compare", *pair, "--same-text", "positive", "--json")[1])
    assert [(each["protocol"], each["language"]) for each in merged] == [
        ("same_text", None),
        ("same_text", "de"),
        ("same_text", "en"),
    ]
    assert merged[0]["captions"] == 2


def test_a_store_alone_is_measured_by_language_too(scored_run: Any, manifest: Manifest) -> None:
    store = f"similarities/sample/{NAME}.zarr"
    code, out, _ = scored_run("evaluate", "--system", store, "--json")
    assert (code, list(json.loads(out)[0]["languages"])) == (0, ["de", "en"])
    np.save(
        "plain.npy",
        np.random.default_rng(0).standard_normal((IMAGES, IMAGES * CAPTIONS)).astype(np.float32),
    )
    code, out, _ = scored_run(
        "evaluate", "--system", "plain.npy", "--manifest", "data/sample.parquet", "--markdown"
    )
    assert "de, 24 captions: mR" in out
    manifest.table["language"] = "fr"
    Manifest(manifest.table, "sample", Path()).save(Path("data/sample.parquet"))
    code, _, err = scored_run("evaluate", "--system", store)
    assert code == 2
    assert "is of another manifest of sample; score it again" in err
