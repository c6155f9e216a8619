"""A corpus with images that are not images, and a place in an object store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import s3_server

from pipeline.foundation import manifest
from pipeline.foundation.manifest import Manifest
from pipeline.make.features import extraction


@pytest.fixture
def spoiled(
    corpus: Path, scenes: Manifest, job: extraction.ExtractionJob, tmp_path: Path
) -> extraction.ExtractionJob:
    """The same job with images 3 and 9 that are not images."""
    folder = shutil.copytree(corpus / "images", tmp_path / "images")
    for row, content in ((3, b"text"), (9, b"")):
        (folder / scenes.images["file"][row]).write_bytes(content)
    spoilt = manifest.build("sample", folder, corpus / "dataset_sample.json")
    return replace(job, manifest=spoilt, images_folder=folder)


@pytest.fixture(scope="module")
def bucket() -> Iterator[Path]:
    with s3_server.running() as address:
        yield Path(address)


@pytest.fixture
def place(
    bucket: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder of this test's own in the bucket, and a folder of copies."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    return bucket / request.node.name.replace("[", "-").replace("]", "")
