"""Models of sentence-transformers trained on, and written for that library."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_dual_encoders
import tuned_encoders
from sentence_transformers import SentenceTransformer
from tuned_encoders import CAPTIONS, PICTURES, job_of

from pipeline.foundation.manifest import Manifest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"st:{tiny_dual_encoders.sentence_transformers(tmp_path_factory.mktemp('st') / 'st')}"


@pytest.mark.parametrize("name", ["projections", "blocks", "lora", "all"])
def test_what_is_chosen_changes_and_nothing_else(
    name: str, model: str, scenes: Manifest, tmp_path: Path
) -> None:
    tuned_encoders.check_what_changes(job_of(model, scenes, tmp_path, name))


def test_every_adapter_learns_by_the_second_step(
    model: str, scenes: Manifest, tmp_path: Path
) -> None:
    # q, k, v, out_proj, fc1 and fc2 of each block
    tuned_encoders.check_adapters_learn(job_of(model, scenes, tmp_path, "lora"), 6)


def test_sentence_transformers_opens_what_is_exported(
    model: str, scenes: Manifest, tmp_path: Path
) -> None:
    folder = tmp_path / "exported"
    encoder = tuned_encoders.exported(job_of(model, scenes, tmp_path, "lora"), folder)
    library = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    tuned_encoders.compared(encoder, library.encode(PICTURES), library.encode(CAPTIONS))
