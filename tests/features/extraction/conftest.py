"""A corpus with images that are not images."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline import manifest
from pipeline.features import extraction
from pipeline.manifest import Manifest


@pytest.fixture
def spoiled(corpus: Path, scenes: Manifest, job: extraction.ExtractionJob, tmp_path: Path) -> extraction.ExtractionJob:
    """The same job with images 3 and 9 that are not images."""
    folder = shutil.copytree(corpus / "images", tmp_path / "images")
    for row, content in ((3, b"text"), (9, b"")):
        (folder / scenes.images["file"][row]).write_bytes(content)
    spoilt = manifest.build("sample", folder, corpus / "dataset_sample.json")
    return replace(job, manifest=spoilt, images_folder=folder)
