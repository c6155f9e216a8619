"""`pipeline score`: what it writes is the product of the embeddings that it writes beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline import training
from pipeline.scores.similarity_store import SimilarityStore


def test_similarities_are_summed_in_float64_and_rounded_once(
        pipeline: Any, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embed = training.embed

    def long(*arguments: Any) -> tuple[np.ndarray, np.ndarray]:
        """Vectors whose products depend on the order of summation in float32."""
        draws = np.random.default_rng(0)
        return tuple(draws.standard_normal((len(part), 4096)).astype(np.float32)  # type: ignore[return-value]
                     for part in embed(*arguments))

    monkeypatch.setattr(training, "embed", long)
    code, _, err = pipeline("score", "--feature", "region", *(
        word for change in ("dimension=16", "word_dimension=8", "batch_size=16", "epochs=1", "decay_epoch=1")
        for word in ("-S", f"training.sample.{change}")))
    assert code == 0, err
    store = SimilarityStore.open(next(Path("similarities", "sample").glob("*.zarr")))
    vectors = store.embeddings()
    exact = np.asarray(vectors.images, np.float64) @ np.asarray(vectors.captions, np.float64).T
    np.testing.assert_array_equal(store.similarity[:], exact.astype(np.float32))
