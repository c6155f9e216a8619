"""The benchmark of stores on few images: as many batches as it times, or a refusal."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import stores


class Few:
    """A source of 130 images, each of one item."""

    slots = 1

    def read(self, rows: np.ndarray, out: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((len(rows), 1, 2), np.float16), np.ones(len(rows), np.int64)


@pytest.mark.slow
def test_few_images_are_read_again_until_all_batches_are_timed() -> None:
    batches = stores.training_batches(Few(), 130, 8)
    assert len(list(batches.epoch(0))) == 8  # once through the captions are 5


@pytest.mark.parametrize("options", [(), ("--training",), ("--pipelines",)])
def test_fewer_images_than_a_batch_are_refused_in_one_line(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        stores.command(["--images", "100", *options])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "--images 100: a batch has 128 images; give as many or more\n"
