"""`pipeline evaluate FILE --card`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.foundation.files.digest import sha256

pytestmark = pytest.mark.slow


@pytest.mark.specification
def test_a_card_of_a_file_has_its_digest_and_numbers(pipeline: Any) -> None:
    scores = np.random.default_rng(0).random((30, 150)).astype(np.float32)
    np.save("ours.npy", scores)
    assert pipeline("evaluate", "ours.npy", "--card", "ours.html")[0] == 0
    page = Path("ours.html").read_text(encoding="utf-8")
    assert sha256(Path("ours.npy")) in page
    assert "30 images and" in page
    assert "Worst queries" in page


def test_a_card_needs_one_file_and_scores_of_all_pairs(refused: Callable[..., str]) -> None:
    for name in ("a.npy", "b.npy"):
        np.save(name, np.eye(4).repeat(5, 1))
    assert "one FILE" in refused("evaluate", "a.npy", "b.npy", "--card", "card.html")
    assert "--card" in refused("evaluate", "a.npy", "--card", "card.txt")
    lines = [f"caption:{caption} Q0 image:{caption // 5} 1 1.0 x" for caption in range(20)]
    Path("run.trec").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert "all pairs" in refused(
        "evaluate", "run.trec", "--captions-per-image", "5", "--card", "card.html"
    )
