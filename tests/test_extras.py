"""What a message says to type for an extra."""

from importlib import metadata
from pathlib import Path

import pytest

from pipeline.foundation.parts import extras


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        (
            '{"url": "file:///clones/my%20own/vse", "dir_info": {}}',
            "pip install '/clones/my own/vse[s3]'",
        ),
        (
            '{"url": "file:///tmp/vse_pipeline-0.1.0.whl"}',
            "pip install '/tmp/vse_pipeline-0.1.0.whl[s3]'",
        ),
        ("", "pip install 'vse-pipeline[s3]'"),
    ],
)
def test_the_line_names_what_the_package_was_installed_from(
    origin: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if origin:
        (tmp_path / "direct_url.json").write_text(origin, encoding="utf-8")
    monkeypatch.setattr(metadata, "distribution", lambda name: metadata.PathDistribution(tmp_path))
    assert extras.line("s3") == line
