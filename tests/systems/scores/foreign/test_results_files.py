"""Files of results given as scores: what they are, and their numbers as explain takes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.explain import printed
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns

# Content of a file -> its numbers, as they are printed after --published.
FILES = {
    "benchmark.json": (
        json.dumps({"dataset": "mscoco", "metrics": {"image_retrieval_recall@5": 0.55}}),
        ["t2i R@5 55"],
    ),
    "evaluate.txt": (
        json.dumps({"txt_r1": 58.1, "img_r1": 40.0}),
        ["i2t R@1 58.1", "t2i R@1 40"],
    ),
    "mteb.json": (
        json.dumps(
            {"mteb_version": "2", "scores": {"test": [{"hit_rate_at_1": 0.5, "recall_at_1": 0.1}]}}
        ),
        ["R@1 50", "Recall@1 10"],
    ),
    "x_score.json": (json.dumps({"hit@1": 0.75, "ndcg_linear@5": 0.9}), ["R@1 75", "nDCG@5 90"]),
    "log.txt": ("epoch 3 test_txt_r1: 58.1 test_img_r1: 40.0\n", ["i2t R@1 58.1", "t2i R@1 40"]),
}


@pytest.mark.parametrize("name", FILES)
def test_results_are_no_scores_and_their_numbers_can_be_explained(
    name: str, tmp_path: Path
) -> None:
    content, numbers = FILES[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match="results, not scores") as scores:
        open_system(name, root=tmp_path)
    line = str(scores.value).rpartition("--published ")[2]
    for typed in (line, str(tmp_path / name)):
        assert list(map(str, printed.read(typed)[0])) == numbers


def test_results_without_recalls_are_known_by_their_tool(tmp_path: Path) -> None:
    content = {"metadata": {"vidore_benchmark_version": "5"}, "metrics": {"x": {"ndcg_at_5": 0.6}}}
    (tmp_path / "x.json").write_text(json.dumps(content))
    with pytest.raises(
        InputError, match=r"x\.json: holds vidore-benchmark results, not scores; run mteb"
    ):
        open_system("x.json", root=tmp_path)


def test_damaged_scores_are_not_taken_for_results(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"caption:1": {"image:1": "r"}')
    np.save(tmp_path / "sims.npy", np.zeros((4, 9)))
    for name in ("run.json", "sims.npy"):
        with pytest.raises(InputError) as raised:
            open_system(name, Columns(captions_per_image=2), root=tmp_path)
        assert "results" not in str(raised.value)


def test_a_file_whose_bytes_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scores.npy").symlink_to("/proc/self/mem")  # a regular file without a first byte
    with pytest.raises(InputError, match=r"^cannot read \S*/scores\.npy: Input/output error"):
        open_system("scores.npy", root=tmp_path)
