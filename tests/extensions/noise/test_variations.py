"""`pipeline noise --make`: runs in other batch sizes, dtypes and attention kernels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_dual_encoders
import torch
import yaml
from PIL import Image
from preloaded import Commands
from tiny_bert import tiny_bert
from tiny_project import ROOT

from pipeline.extensions.noise import variations
from pipeline.judge.systems.scores.system import System
from pipeline.make.dual_encoders.scored import open_encoder
from pipeline.make.training import scoring

pytestmark = pytest.mark.slow


@pytest.fixture
def asked(tmp_path: Path, rng: np.random.Generator) -> tuple[str, ...]:
    """The words of a command that names a tiny CLIP, six images and their captions."""
    tiny_dual_encoders.clip(tmp_path / "tiny")
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = ["image,caption"]
    for number in range(6):
        pixels = rng.integers(0, 256, (32, 32, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
        lines.append(f"{number}.png,{'abcdef'[number]} red circle")
    (tmp_path / "captions.csv").write_text("\n".join(lines) + "\n")
    return ("--make", "clip:tiny", "--images", "photos", "--captions", "captions.csv")


def test_each_run_changes_one_thing(
    pipeline: Any, asked: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []

    def watched(model: str, columns: Any, batch_size: int) -> Any:
        fused = torch.backends.cuda.flash_sdp_enabled()
        used.append((batch_size, columns.usage["precision"], fused))
        return open_encoder(model, columns, batch_size)

    monkeypatch.setattr(variations, "open_encoder", watched)
    Path("runs").mkdir()
    Path("runs/batch1-fp32.npz").write_text("an older run is replaced")
    code, out, err = pipeline("noise", *asked, "--out", "runs", "--json")
    assert code == 0, err
    assert used == [
        (32, "fp32", True),
        (8, "fp32", True),
        (1, "fp32", True),
        (32, "fp32", False),
        (32, "bf16", True),
    ]
    (pool,) = json.loads(out)
    assert (pool["images"], pool["captions"], pool["freedom"]) == (6, 6, 4)
    first = np.load("runs/batch32-fp32.npz")
    assert len(pool["runs"]) == len(list(Path("runs").iterdir())) == 5
    for file, least, most in (
        ("batch1-fp32", 0, 1e-5),
        ("batch32-fp32-attention-in-steps", 0, 1e-5),
        ("batch32-bf16", 1e-5, 0.1),
    ):
        run = np.load(f"runs/{file}.npz")
        apart = np.abs(run["image_embeddings"] - first["image_embeddings"]).max()
        assert least <= apart <= most, file
        assert np.array_equal(run["caption_ids"], first["caption_ids"])


def test_a_head_is_embedded_in_other_batches_and_dtypes(
    pipeline: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "vse2ad-region-bigru-s0"
    batches = set()
    embed_captions = scoring.embed_captions

    def watched(model: Any, captions: Any, batch_size: int) -> np.ndarray:
        is_half = torch.is_autocast_enabled("cpu")
        batches.add((batch_size, is_half))
        return embed_captions(model, captions, batch_size)

    monkeypatch.setattr(scoring, "embed_captions", watched)
    code, out, err = pipeline("noise", "--make", name, "--out", "runs", "--json")
    assert code == 0, err
    assert "its text encoder has no attention" in err
    assert batches == {(32, False), (8, False), (1, False), (32, True)}
    stored = System.open(project / "similarities" / "sample" / f"{name}.zarr")
    (pool,) = json.loads(out)
    assert (pool["images"], pool["captions"], pool["freedom"]) == (*stored.similarity.shape, 3)
    assert len(list(Path("runs").iterdir())) == 4
    scores = stored.similarity[:]
    for file, least, most in (
        ("batch32-fp32", 0, 1e-5),
        ("batch8-fp32", 0, 1e-5),
        ("batch1-fp32", 0, 1e-5),
        ("batch32-bf16", 1e-5, 0.1),
    ):
        run = np.load(f"runs/{file}.npz")
        apart = np.abs(run["image_embeddings"] @ run["caption_embeddings"].T - scores).max()
        assert least <= apart <= most, file
        assert run["caption_ids"].tolist() == list(stored.caption_ids), file
    code, _, err = pipeline("noise", "--make", f"heads/sample/{name}", "--out", "by-folder")
    assert code == 0, err
    code, _, err = pipeline("noise", "--make", name, "--images", "data")
    assert code == 2
    assert "a head reads the stored features of its data set" in err


def test_a_head_with_attention_has_a_run_of_another_kernel(
    project: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["run"].update(texts=["bert"], recipes=["vse2ad"])
    tower = tiny_bert(project / "bert", layers=1)
    settings["training"]["sample"].update(dimension=16, epochs=1, bert=str(tower))
    Path("params.yaml").write_text(yaml.safe_dump(settings))
    commands("pipeline", "train", "--recipe", "vse2ad", "--feature", "region", "--text", "bert")
    name = "vse2ad-region-bert-s0"
    out = commands("pipeline", "noise", "--make", name, "--out", "runs", "--json").stdout
    (pool,) = json.loads(out)
    assert pool["freedom"] == 4
    first = np.load("runs/batch32-fp32.npz")["caption_embeddings"]
    in_steps = np.load("runs/batch32-fp32-attention-in-steps.npz")["caption_embeddings"]
    np.testing.assert_allclose(in_steps, first, atol=1e-5)


def test_what_cannot_be_made_is_refused(refused: Callable[..., str]) -> None:
    cases = {
        (): "name two or more RUNs",
        ("--make", "clip:none", "a.npy"): "name them, or give --make",
        ("--make", "a.npy"): "is no encoder and no trained head",
        ("--make", "heads/sample"): "is no encoder and no trained head",
        ("--make", "vse2ad-RG-bigru-s0"): "compute its members: vse2ad-region-bigru-s0",
        ("--out", "runs", "a.npy", "b.npy"): "give --make",
        ("--make", "clip:none"): "none",
    }
    for arguments, why in cases.items():
        assert why in refused("noise", *arguments)
