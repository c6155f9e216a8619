"""`pipeline evaluate` and `trace` of a run whose captions are in several languages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scored import CAPTIONS, IMAGES, score

from pipeline.manifest import Manifest
from pipeline.provenance import computed_again
from pipeline.provenance.step import DIFFERS, MATCHES

NAME = "vse2ad-region-bigru-s0"
RUN = ("-S", "run.features=[region]", "-S", "run.ensembles=[R]")


@pytest.fixture
def manifest() -> Manifest:
    """Of what `score` makes: three English captions an image and two German ones."""
    rows = [{"image_id": 10 * (image + 1), "file": f"{image}.png", "bytes": 1, "split": "test",
             "caption_id": 100 + CAPTIONS * image + number, "caption": "a caption",
             "language": "en" if number < 3 else "de"} for image in range(IMAGES) for number in range(CAPTIONS)]
    made = Manifest(pd.DataFrame(rows), "sample", Path())
    made.save(Path("data/sample.parquet"))
    return made


@pytest.fixture
def scored_run(pipeline: Any, manifest: Manifest) -> Any:
    score("region", manifest=manifest.digest, languages=manifest.languages)
    assert pipeline("ensemble", "R")[0] == 0
    return pipeline


def test_a_run_is_measured_by_language_and_traced(scored_run: Any, manifest: Manifest) -> None:
    code, out, _ = scored_run("evaluate", *RUN)
    assert code == 0
    assert "en, 36 captions: mR " in out
    assert "mean of languages: mR " in out
    entry = json.loads(Path("results/metrics.json").read_text(encoding="utf-8"))[NAME]
    found = entry["all"]["languages"]
    assert {name: numbers["captions"] for name, numbers in found.items()} == {"de": 24, "en": 36}
    mean = np.mean([numbers["rsum"] / 6 for numbers in found.values()])
    assert entry["all"]["mean_of_languages"]["mR"] == pytest.approx(mean)
    headline = json.loads(Path(f"results/headline/{NAME}.json").read_text(encoding="utf-8"))
    assert headline["de mR"] == found["de"]["mR"]
    assert headline["mR"] == entry["all"]["mean_of_languages"]["mR"]
    store = Path(f"similarities/sample/{NAME}.zarr")
    assert {step.verdict for step in computed_again.numbers(store, entry, 32, manifest)} == {MATCHES}
    found["de"]["i2t"]["r1"] += 0.1
    assert DIFFERS in {step.verdict for step in computed_again.numbers(store, entry, 32, manifest)}


def test_a_store_alone_is_measured_by_language_too(scored_run: Any, manifest: Manifest) -> None:
    store = f"similarities/sample/{NAME}.zarr"
    code, out, _ = scored_run("evaluate", "--similarity", store, "--json")
    assert (code, list(json.loads(out)["languages"])) == (0, ["de", "en"])
    np.save("plain.npy", np.random.default_rng(0).standard_normal((IMAGES, IMAGES * CAPTIONS)).astype(np.float32))
    code, out, _ = scored_run("evaluate", "--similarity", "plain.npy", "--manifest", "data/sample.parquet",
                              "--format", "markdown")
    assert "de, 24 captions: mR" in out
    manifest.table["language"] = "fr"
    Manifest(manifest.table, "sample", Path()).save(Path("data/sample.parquet"))
    code, _, err = scored_run("evaluate", "--similarity", store)
    assert code == 2
    assert "was scored for another manifest of sample than there is now; score again" in err
