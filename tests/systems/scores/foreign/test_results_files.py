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
    "log.txt": ("epoch 3 test_txt_r1: 58.1 test_img_r1: 40.0\n", ["i2t R@1 58.1", "t2i R@1 40"]),
}


@pytest.mark.parametrize("name", FILES)
def test_results_are_no_scores_and_their_numbers_can_be_explained(
    name: str, tmp_path: Path
) -> None:
    content, numbers = FILES[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match="holds results, not scores") as scores:
        open_system(name, root=tmp_path)
    with pytest.raises(InputError, match="is a file of results") as published:
        printed.read(str(tmp_path / name))
    for raised in (scores, published):
        line = str(raised.value).rpartition("--published ")[2]
        assert list(map(str, printed.read(line)[0])) == numbers


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
