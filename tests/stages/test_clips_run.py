"""Clips all the way: sample, stores, heads, results, Table 4, strips of frames, search and
trace.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import tampering
from PIL import Image

from stages import cli

pytestmark = pytest.mark.slow

PARAMS = str(Path(__file__).parents[2] / "params.yaml")
ENGINE = {
    "engine": "frame",
    "network": "test_efficientnet",
    "weights": "untrained",
    "image_size": 64,
    "frames": 4,
}
CHANGES = (
    "run.dataset=sample_video",
    "run.features=[frame]",
    "run.ensembles=[F]",
    "run.recipes=[vse_infty-video, hgr]",
    "run.ablations=[]",
    "sample_video.clips=24",
    "sample_video.size=64",
    "extract.backend=torch",
    f"features.light.frame={json.dumps(ENGINE)}",
    "report.queries=4",
    "figures=[retrieved_images]",
    "tables=[vse_infty_table4a, vse_infty_table4b]",
    *(
        f"training.sample_video.{change}"
        for change in (
            "dimension=16",
            "word_dimension=8",
            "batch_size=16",
            "epochs=2",
            "decay_epoch=1",
            "minimum_count=1",
        )
    ),
)
SETTINGS = [word for change in CHANGES for word in ("-S", change)]
SYSTEM, GRAPHS = "vse_infty-video-F-bigru-s0", "hgr-F-bigru-s0"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clips")
    with contextlib.chdir(root):
        for command in (
            ("lab", "sample", "--video"),
            ("manifest",),
            ("extract", "--feature", "frame"),
            ("train", "--feature", "frame", "--recipe", "vse_infty-video"),
            ("train", "--feature", "frame", "--recipe", "hgr"),
            ("score",),
            ("ensemble",),
            ("evaluate",),
            ("tables",),
            ("figures",),
            ("report",),
        ):
            cli.cli.main([*command, "--params", PARAMS, *SETTINGS], standalone_mode=False)
    return root


@pytest.fixture
def run(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_table_4_has_published_and_measured_rows(whole: Path) -> None:
    table = (whole / "results" / "tables" / "vse_infty_table4a.md").read_text(encoding="utf-8")
    assert "HGR∞" in table
    assert "| VSE∞ | 16.0 | 38.6 | 50.2 | 8.7 | 25.3 | 35.9 | 174.7 |" in re.sub(r"\*\*", "", table)
    own = table[table.index("moving shots") :]
    measured = json.loads((whole / "results" / "metrics.json").read_text())
    for method, system in (("VSE∞", SYSTEM), ("HGR", GRAPHS)):
        assert re.search(
            rf"\| {method}<sup>[^|]*\|.*{measured[system]['all']['RSUM']:.1f}",
            re.sub(r"\*\*", "", own),
        )
    assert "trained as on photographs" not in own


def test_report_and_figure_show_strips_of_frames(whole: Path) -> None:
    page = (whole / "results" / "report.html").read_text(encoding="utf-8")
    (packed,) = re.findall(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]+)</script>', page)
    data = gzip.decompress(base64.b64decode(packed)).decode()
    pictures = re.findall(r"data:image/webp;base64,([A-Za-z0-9+/=]+)", data)
    assert pictures
    sizes = {Image.open(io.BytesIO(base64.b64decode(each))).size for each in pictures}
    assert all(
        width == height > 64 for width, height in sizes
    )  # two rows of two frames of 64 pixels
    assert (whole / "results" / "figures" / "retrieved_images.pdf").stat().st_size > 10_000


def test_search_shows_them_too(run: Path, pipeline: Any) -> None:
    code, out, err = pipeline(
        "search", "the camera moves from left to right", "--top", "3", *SETTINGS
    )
    assert code == 0, err
    assert len(re.findall(r"shot_\d{6}\.mp4", out)) == 3
    assert (run / "results" / "search.html").read_text(encoding="utf-8").count(
        "data:image/webp"
    ) == 3


def test_trace_follows_a_number_to_the_clips_and_names_one_that_changed(
    run: Path, pipeline: Any
) -> None:
    for system in (SYSTEM, GRAPHS):
        code, out, _ = pipeline("trace", "results/metrics.json", system, "--json")
        assert code == 0
        assert {step["verdict"] for step in json.loads(out)} == {"matches"}
    (pattern,) = tampering.OF_CLIPS
    file = sorted(run.glob(pattern))[-1]
    tampering.flip(file)
    code, out, _ = pipeline("trace", "results/metrics.json", GRAPHS, "--json")
    assert code == 2
    assert [step["path"] for step in json.loads(out) if step["verdict"] != "matches"] == [
        str(file.relative_to(run))
    ]


def test_what_reads_photographs_refuses_clips(run: Path, refused: Any) -> None:
    (run / "clip").mkdir()
    (run / "clip" / "config.json").write_text('{"model_type": "clip"}', encoding="utf-8")
    engine = {key: value for key, value in ENGINE.items() if key != "frames"}
    grid = json.dumps({**engine, "engine": "grid", "grid": 2})
    captions = "data/sample_video/captions.csv"
    graphs = ("--caption-input", f"role_graph={captions}")
    for command, reason in (
        (
            ("train", "--feature", "grid", "--finetune"),
            "fine-tuning reads photographs, and the data set sample_video",
        ),
        (("embed", "sample_video", "--system", "clip:clip"), "a dual encoder reads photographs"),
        (
            ("manifest", "--annotations", captions, *graphs),
            "captions.csv: not readable as JSON",
        ),
        (
            ("extract", "--feature", "grid"),
            "the engine grid reads photographs, and the manifest holds clips",
        ),
    ):
        said = refused(*command, *SETTINGS, "-S", f"features.light.grid={grid}")
        assert reason in said, command
