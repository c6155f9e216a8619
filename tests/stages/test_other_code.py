"""Heads and stores that other code made: seen, never passed off as this code's, and made anew or
vouched for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import forged
import pytest

from pipeline.foundation.artefacts import record as records

pytestmark = pytest.mark.slow

SMALL = [
    word
    for change in ("dimension=16", "word_dimension=8", "batch_size=16", "epochs=1", "decay_epoch=1")
    for word in ("-S", f"training.sample.{change}")
]
ENGINE = "{engine: grid, network: test_efficientnet, weights: untrained, image_size: 64, grid: 2}"
TRAIN = ("train", "--feature", "region", *SMALL)
GRID = ("-S", f"features.light.grid={ENGINE}", "-S", "extract.backend=torch")
EXTRACT = ("extract", "--feature", "grid", *GRID)
HEAD, STORE = Path("heads/sample/vse2ad-region-bigru-s0"), Path("features/sample/grid.zarr")


def other(folder: Path) -> str:
    """Have a folder say that one of its parts had another version.

    Returns:
        The name of that part.
    """
    versions = records.load(folder).versions
    part = max(versions)
    records.update(folder, versions={**versions, part: 7})
    return part


@pytest.fixture
def run(pipeline: Any, project: Path) -> Any:
    """A command on a copy of the trained project: what it said, on both outputs."""

    def ran(*arguments: str, expected: int = 0) -> str:
        ended, out, err = pipeline(*arguments)
        assert ended == expected, err
        return str(out + err)

    return ran


def test_a_head_of_other_code_is_left_with_a_warning_and_trained_anew_when_asked(run: Any) -> None:
    best = HEAD / "best.safetensors"
    before = best.stat().st_mtime_ns
    assert "nothing to do" in run(*TRAIN)
    forged.artefact(HEAD, lambda content: content["versions"].update({"training/emb": 7}))
    said = run(*TRAIN)
    assert "was made by other code (training/emb)" in said
    assert "nothing to do" in said
    assert best.stat().st_mtime_ns == before
    said = run(*TRAIN, "--if-changed", "redo")
    assert "nothing to do" not in said
    assert best.stat().st_mtime_ns > before
    assert "other code" not in run(*TRAIN)


def test_a_head_without_a_record_is_not_replaced(run: Any) -> None:
    (HEAD / records.FILE).unlink()
    before = (HEAD / "best.safetensors").stat().st_mtime_ns
    assert "holds best.safetensors and no record.json" in run(
        *TRAIN, "--if-changed", "redo", expected=2
    )
    assert (HEAD / "best.safetensors").stat().st_mtime_ns == before


def test_a_store_of_other_code_is_kept_refused_or_vouched_for(run: Any) -> None:
    run(*EXTRACT)
    entry = STORE / "ledger" / "000000.json"
    before = entry.stat().st_mtime_ns
    module = other(STORE)
    assert f"was made by other code ({module})" in run(*EXTRACT)
    refused = run(*EXTRACT, "--if-changed", "redo", expected=2)
    assert (
        refused.strip()
        .splitlines()[-1]
        .endswith("pipeline extract --dataset sample --feature grid --same-features")
    )
    assert "nothing to do" in run(*EXTRACT, "--same-features")
    assert "nothing to do" in run(*EXTRACT, "--if-changed", "redo")
    assert entry.stat().st_mtime_ns == before
