"""What trace compares of a feature store."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from pipeline.run.provenance import of_features


def test_the_files_of_an_image_are_those_of_the_shard_that_holds_its_row(tmp_path: Path) -> None:
    """In a store that has grown, the manifest's images 0, 1 and 2 are in rows 9, 0 and 5."""
    arrays = {"features": ((3, 4), "float16"), "counts": ((), "int16")}
    layout = SimpleNamespace(shard_rows=4, arrays=lambda: arrays)
    store: Any = SimpleNamespace(path=tmp_path, rows=np.array([9, 0, 5]), layout=layout)
    for image, shard in enumerate((2, 0, 1)):
        steps = list(of_features._shards(store, image))
        files = [tmp_path / f"features/c/{shard}/0/0", tmp_path / f"counts/c/{shard}"]
        assert [step.path for step in steps] == files
        assert {step.what for step in steps} == {
            f"BLAKE2b of shard {shard}, with image row {image}"
        }
