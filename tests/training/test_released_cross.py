"""Checkpoints of OSCAR and MMT-Retrieval, made here with their names and shapes, give what their
formulas give.
"""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from tiny_bert import PIECES, tiny_bert
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from pipeline.foundation.compute import half
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.reranking.base import PairSource
from pipeline.make import training
from pipeline.make.features.store import FeatureStore
from pipeline.make.features.store.boxes import BoxedStore
from pipeline.make.text.tokens import encode
from pipeline.make.training.pair_scorers import CrossScorer
from stages.cli import cli


class Oscar(nn.Module):
    """OSCAR's retrieval network by its own names, written from its paper: `bert` with
    `img_embedding`, `classifier`.
    """

    def __init__(self, width: int, labels: int, norm: bool) -> None:
        super().__init__()
        self.bert: Any = BertModel(
            BertConfig(
                vocab_size=len(PIECES),
                hidden_size=16,
                num_hidden_layers=3,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=64,
                attn_implementation="eager",
            )
        )
        self.bert.img_embedding = nn.Linear(width, 16)
        if norm:
            self.bert.LayerNorm = nn.LayerNorm(16, eps=1e-12)
        self.classifier = nn.Linear(16, labels)
        for weight in self.parameters():
            nn.init.normal_(weight, std=0.2)

    def forward(self, tokens: Tensor, items: Tensor) -> Tensor:
        """Logits of one unpadded pair."""
        regions = self.bert.img_embedding(items)
        if hasattr(self.bert, "LayerNorm"):
            regions = self.bert.LayerNorm(regions)
        states = self.bert.encoder(
            torch.cat([self.bert.embeddings(input_ids=tokens), regions], 1)
        ).last_hidden_state
        logits: Tensor = self.classifier(self.bert.pooler(states))[0]
        return logits


@pytest.fixture(scope="module")
def project(
    scenes: Manifest, store: FeatureStore, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    root = tmp_path_factory.mktemp("project")
    paths = Paths(root)
    scenes.save(paths.manifest("sample"))
    shutil.copytree(store.path, paths.features("sample", "region"))
    tiny_bert(root / "bert")
    shutil.copy(Path(__file__).parents[2] / "params.yaml", root / "params.yaml")
    return root


def convert(project: Path, checkpoint: Path, *more: str) -> Any:
    return CliRunner().invoke(
        cli,
        [
            "convert",
            str(checkpoint),
            "--root",
            str(project),
            "-S",
            f"training.sample.bert={project / 'bert'}",
            *more,
        ],
    )


def oscar_folder(model: Oscar, folder: Path) -> Path:
    folder.mkdir()
    state = {f"module.{name}": value for name, value in model.state_dict().items()}
    torch.save(
        state | {"module.cls.predictions.bias": torch.zeros(3)}, folder / "pytorch_model.bin"
    )
    return folder


def mmt_zip(model: Oscar, folder: Path) -> Path:
    network, head = folder / "0_OSCAR", folder / "1_ClassificationHead"
    for part in (network, head, folder / "2_Pooling"):
        part.mkdir(parents=True)
    torch.save(model.bert.state_dict(), network / "pytorch_model.bin")
    torch.save(
        {f"classifier.{name}": value for name, value in model.classifier.state_dict().items()},
        head / "class_head.pt",
    )
    (folder / "2_Pooling" / "config.json").write_text("{}")
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*.*")):
            archive.write(file, file.relative_to(folder).as_posix())
    return path


@pytest.mark.parametrize(
    ("labels", "norm", "make", "tasks"),
    [
        (2, True, oscar_folder, ["ce"]),
        (1, False, oscar_folder, ["ce"]),
        (2, False, mmt_zip, ["emb", "ce"]),
    ],
)
def test_a_converted_head_scores_as_the_network_that_made_it(
    project: Path,
    scenes: Manifest,
    tmp_path: Path,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    labels: int,
    norm: bool,
    make: Any,
    tasks: list[str],
) -> None:
    monkeypatch.setattr(half, "fastest", lambda device: "fp32")
    paths, name = Paths(project), f"oscar{labels}{len(tasks)}"
    store = BoxedStore(paths.features("sample", "region"))
    torch.manual_seed(3)
    model = Oscar(store.width, labels, norm).eval()
    ran = convert(project, make(model, tmp_path / "published"), "--name", name)
    assert ran.exit_code == 0, ran.output
    scorer = CrossScorer(f"{name}-region-bert-s0", PairSource(paths, "sample", "sample", "sample"))
    assert scorer.head.recipe.tasks == tasks
    architecture = scorer.head.artefact.request.recorded()["recipe"]["architecture"]
    assert (architecture["regions"], architecture["pieces"]) == (
        50,
        70,
    )  # as the released code cuts
    pairs = (
        rng.choice(scenes.images["image_id"].to_numpy(), 20),
        rng.choice(scenes.table["caption_id"].to_numpy(), 20),
    )
    found = scorer.score(*pairs)
    for score, image, caption in zip(found, *pairs, strict=True):
        text = scenes.table.loc[scenes.table["caption_id"] == caption, "caption"].item()
        items, counts = store.read(np.flatnonzero(scenes.images["image_id"] == image))
        with torch.inference_mode():
            logits = model(
                torch.tensor(encode(scorer.head.text, [text])),
                torch.from_numpy(items[:, : counts[0]]),
            )
        assert float(logits[-1] - (logits[0] if labels == 2 else 0)) == pytest.approx(
            score, abs=1e-5
        )


def test_a_pretrained_network_is_what_a_recipe_may_start_from(
    project: Path, tmp_path: Path
) -> None:
    store = BoxedStore(Paths(project).features("sample", "region"))
    folder = oscar_folder(Oscar(store.width, 2, norm=False), tmp_path / "published")
    state = torch.load(folder / "pytorch_model.bin")
    torch.save(
        {name: value for name, value in state.items() if "classifier" not in name},
        folder / "pytorch_model.bin",
    )
    ran = convert(project, folder, "--name", "pretrained")
    assert ran.exit_code == 0, ran.output
    assert "a recipe with start: pretrained" in ran.output
    assert training.read_released_cross(folder).tasks == ["emb"]


def test_leftovers_and_other_files_are_named(project: Path, tmp_path: Path) -> None:
    store = BoxedStore(Paths(project).features("sample", "region"))
    folder = oscar_folder(Oscar(store.width, 2, norm=False), tmp_path / "published")
    state = torch.load(folder / "pytorch_model.bin")
    torch.save(state | {"bert.adapter.weight": torch.zeros(2)}, folder / "pytorch_model.bin")
    with pytest.raises(
        InputError, match=r"bert\.adapter\.weight is not a weight of OSCAR's network"
    ):
        training.read_released_cross(folder)
    torch.save(
        {name: value for name, value in state.items() if "layer.1." not in name},
        folder / "pytorch_model.bin",
    )
    ran = convert(project, folder, "--name", "holes")
    assert isinstance(ran.exception, InputError)
    assert "lacks bert.encoder.layer.1" in str(ran.exception)
    torch.save({"bert": Path("x")}, folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="holds pathlib"):
        training.read_released_cross(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(InputError, match=r"holds no pytorch_model\.bin"):
        training.read_released_cross(folder)
    wide = oscar_folder(Oscar(store.width + 1, 2, norm=False), tmp_path / "wide")
    ran = convert(project, wide)
    assert "extract or import those that it was trained on" in str(ran.exception)


def test_checkpoints_made_to_break_the_reader_are_refused(project: Path, tmp_path: Path) -> None:
    store = BoxedStore(Paths(project).features("sample", "region"))
    folder = oscar_folder(Oscar(store.width, 1, norm=True), tmp_path / "published")
    network = folder / "pytorch_model.bin"
    state = {name.removeprefix("module."): value for name, value in torch.load(network).items()}

    def said(changed: dict[str, Any]) -> str:
        torch.save(changed, network)
        ran = convert(project, folder, "--name", "hostile")
        assert isinstance(ran.exception, InputError), ran.exception
        return str(ran.exception)

    def without(name: str) -> dict[str, Any]:
        return {other: value for other, value in state.items() if other != name}

    assert "does not fit the head" in said(without("classifier.bias"))
    assert "does not fit the head" in said(state | {"classifier.weight": torch.tensor(1.0)})
    assert "bert.LayerNorm.bias has no place" in said(without("bert.LayerNorm.weight"))
    assert "is not a dense tensor of finite real" in said(
        state | {"classifier.bias": torch.ones(1) * 1j}
    )
    quantized = torch.quantize_per_tensor(torch.ones(1), 0.1, 0, torch.qint8)
    assert "holds quantised values" in said(state | {"classifier.bias": quantized})
    torch.save(state, network)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(network, "0_OSCAR/pytorch_model.bin")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[200:260] = b"\xff" * 60
    (tmp_path / "a.zip").write_bytes(bytes(data))
    with pytest.raises(InputError, match="not a zip file that can be read"):
        training.read_released_cross(tmp_path / "a.zip")
