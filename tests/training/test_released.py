"""Checkpoints of VSE∞'s released code, made here with its names and shapes, give what its formulas
give.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from torch import Tensor, nn
from torch.nn.functional import batch_norm, linear, normalize, relu
from torchvision.models import ResNet, resnet18, resnet101

from benchmarks.released import GPO
from pipeline.foundation import settings
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.system import System
from pipeline.make import training
from pipeline.make.features.extractors.network import caffe_resnet101
from pipeline.make.features.store import FeatureStore
from pipeline.make.text.tokens import encode
from pipeline.make.training import released
from pipeline.make.training.photographs import Photographs
from stages.cli import cli

D, WORD, WIDTH = 12, 5, 256
WORDS = ["<pad>", "<start>", "<end>", "<unk>", "tree", "a", "house", "sky", "the"]
SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml")


class Images(nn.Module):
    """Their names: fc, mlp with its unused second norm, gpool."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(WIDTH, D)
        self.mlp = nn.Module()
        self.mlp.layers = nn.ModuleList([nn.Linear(WIDTH, D // 2), nn.Linear(D // 2, D)])
        self.mlp.bns = nn.ModuleList([nn.BatchNorm1d(D // 2), nn.BatchNorm1d(D)])
        self.gpool = GPO()
        first: Any = self.mlp.bns[0]
        first.running_mean.normal_()
        first.running_var.uniform_(0.5, 2)

    def forward(self, items: Tensor, counts: Tensor) -> Tensor:
        layers, norm = self.mlp.layers, self.mlp.bns[0]
        hidden = linear(items, layers[0].weight, layers[0].bias).flatten(0, 1)
        hidden = relu(
            batch_norm(hidden, norm.running_mean, norm.running_var, norm.weight, norm.bias)
        )
        features = self.fc(items) + layers[1](hidden).unflatten(0, items.shape[:2])
        out: Tensor = normalize(self.gpool(features, counts), dim=-1)
        return out


class Captions(nn.Module):
    """Their names: embed, rnn, gpool."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(WORDS) + 1, WORD)  # and <mask>
        self.rnn = nn.GRU(WORD, D, batch_first=True, bidirectional=True)
        self.gpool = GPO()

    def forward(self, caption: list[int]) -> Tensor:
        states = self.rnn(self.embed(torch.tensor([caption])))[0]
        pooled = self.gpool((states[..., :D] + states[..., D:]) / 2, torch.tensor([len(caption)]))
        return normalize(pooled, dim=-1)[0]


class Grids(nn.Module):
    """A grid head's names in their order: the network whole, with the classifier that nothing
    reads; its parts once more under "base" and "top"; then the encoder.
    """

    def __init__(self, network: ResNet) -> None:
        super().__init__()
        last = network.fc.in_features
        self.backbone = nn.Module()
        self.backbone.resnet = network
        self.backbone.base = nn.Sequential(
            network.conv1,
            network.bn1,
            network.relu,
            network.maxpool,
            network.layer1,
            network.layer2,
            network.layer3,
        )
        self.backbone.top = nn.Sequential(network.layer4)
        self.image_encoder = nn.Module()
        self.image_encoder.fc = nn.Linear(last, D)
        self.image_encoder.gpool = GPO()

    def forward(self, pixels: Tensor) -> Tensor:
        """Of normalised pixels [B, 3, S, S]."""
        backbone, encoder = self.backbone, self.image_encoder
        items = backbone.top(backbone.base(pixels)).flatten(2).transpose(1, 2)
        out: Tensor = normalize(
            encoder.gpool(encoder.fc(items), torch.full((len(items),), items.shape[1])), dim=-1
        )
        return out


@pytest.fixture
def theirs() -> tuple[Images, Captions]:
    torch.manual_seed(0)
    return Images().eval(), Captions().eval()


def saved(path: Path, *models: nn.Module, **more: Any) -> Path:
    """As their train.py saves: through DataParallel, with its options."""
    state = [
        {f"module.{name}": value for name, value in model.state_dict().items()} for model in models
    ]
    options = argparse.Namespace(batch_size=128, num_epochs=25, lr_update=15, model_name="runs/x")
    torch.save(
        {"epoch": 21, "model": state, "best_rsum": 498.7, "opt": options, "Eiters": 9, **more}, path
    )
    return path


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    path = tmp_path / "coco_precomp_vocab.json"
    path.write_text(
        json.dumps(
            {
                "word2idx": {word: number for number, word in enumerate(WORDS)},
                "idx2word": {},
                "idx": len(WORDS),
            }
        ),
        encoding="utf-8",
    )
    return path


@pytest.fixture
def job(scenes: Manifest, store: FeatureStore, tmp_path: Path) -> training.TrainingJob:
    return training.TrainingJob(
        scenes,
        store,
        "region",
        "bigru",
        "vse_infty_released",
        SETTINGS.recipe("vse_infty"),
        SETTINGS.training_of("sample"),
        0,
        tmp_path / "head",
    )


@pytest.mark.specification
def test_embeddings_are_those_of_their_formulas(
    theirs: tuple[Images, Captions],
    vocabulary: Path,
    job: training.TrainingJob,
    scenes: Manifest,
    store: FeatureStore,
    tmp_path: Path,
) -> None:
    images, captions = theirs
    assert store.layout.dimension == WIDTH
    file = saved(tmp_path / "model_best.pth", images, captions)
    read = released.read(file)
    assert (read.feature, read.text, read.width, read.dimension, read.word_dimension) == (
        "region",
        "bigru",
        WIDTH,
        D,
        WORD,
    )
    training.convert(job, read, vocabulary)
    head = training.Head.open(job.folder)
    split = scenes.split("test")
    found_images, found_captions = head.embed(store, split, 8)
    items, counts = store.read(split.store_rows)
    with torch.inference_mode():
        expected = images(torch.from_numpy(items).float(), torch.from_numpy(counts))
        torch.testing.assert_close(torch.from_numpy(found_images), expected, atol=1e-5, rtol=1e-5)
        for row, caption in enumerate(split.captions):
            words = caption.lower().replace(".", " . ").replace(",", " , ").split()
            numbers = [1, *(WORDS.index(word) if word in WORDS else 3 for word in words), 2]
            torch.testing.assert_close(
                torch.from_numpy(found_captions[row]), captions(numbers), atol=1e-5, rtol=1e-5
            )
    assert len({tuple(row) for row in encode(head.text, split.captions)}) > 1
    assert head.artefact.facts.origin.val_rsum == 498.7
    assert head.artefact.request.training.epochs == 25
    assert head.artefact.request.training.batch_size == 128


def test_the_masks_vector_is_theirs(
    theirs: tuple[Images, Captions], vocabulary: Path, tmp_path: Path
) -> None:
    state = released.read(saved(tmp_path / "m.pth", *theirs)).state(vocabulary)
    weight = theirs[1].embed.weight
    assert torch.equal(state["text.embedding.weight"], weight[[0, 1, 2, 3, 9, 4, 5, 6, 7, 8]])


def test_a_bert_heads_names(
    theirs: tuple[Images, Captions], vocabulary: Path, scenes: Manifest, tmp_path: Path
) -> None:
    names = {
        "bert.embeddings.word_embeddings.weight": (9, 4),
        "bert.encoder.layer.0.attention.self.query.bias": (4,),
        "bert.pooler.dense.weight": (4, 4),
        "linear.weight": (D, 4),
        "gpool.linear.weight": (1, 32),
    }
    captions = nn.Module()
    file = saved(tmp_path / "m.pth", theirs[0], captions)
    tree = torch.load(file, weights_only=False)
    tree["model"][1] = {f"module.{name}": torch.zeros(shape) for name, shape in names.items()}
    torch.save(tree, file)
    read = released.read(file)
    assert read.text == "bert"
    found = {name for name in read.state(None) if name.startswith("text")}
    assert found == {
        "text.pretrained.embeddings.word_embeddings.weight",
        "text.linear.linear.weight",
        "text.pretrained.encoder.layer.0.attention.self.query.bias",
        "text_pooling.generator.linear.weight",
    }
    params = str(Path(__file__).parents[2] / "params.yaml")
    scenes.save(tmp_path / "data" / "sample.parquet")
    ran = CliRunner().invoke(
        cli,
        [
            "convert",
            str(file),
            "--vocabulary",
            str(vocabulary),
            "--params",
            params,
            "--root",
            str(tmp_path),
        ],
    )
    assert "--vocabulary is for a BiGRU" in str(ran.exception)


def test_a_grid_head_has_its_network_with_it(
    theirs: tuple[Images, Captions], vocabulary: Path, scenes: Manifest, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    grids = Grids(resnet18()).eval()
    file = saved(tmp_path / "m.pth", grids, theirs[1])
    assert [
        name
        for name in torch.load(file, weights_only=False)["model"][0]
        if name.endswith("fc.weight")
    ] == ["module.backbone.resnet.fc.weight", "module.image_encoder.fc.weight"]
    network = {"network": "resnet18", "weights": "untrained", "image_size": 64, "grid": 2}
    source = Photographs(scenes, scenes.images_folder, "grid", network)
    job = training.TrainingJob(
        scenes,
        source,
        "grid",
        "bigru",
        "vse_infty_released",
        SETTINGS.recipe("vse_infty"),
        SETTINGS.training_of("sample"),
        0,
        tmp_path / "head",
    )
    training.convert(job, released.read(file), vocabulary)
    split = scenes.split("test")
    head = training.Head.open(job.folder)
    found, _ = head.embed(source, split, 8)
    pixels = torch.from_numpy(source.read(split.store_rows)[0]).permute(0, 3, 1, 2) / 255
    mean, deviation = (
        torch.tensor(values)[:, None, None]
        for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    )
    with torch.inference_mode():
        expected = grids((pixels - mean) / deviation)
    torch.testing.assert_close(torch.from_numpy(found), expected, atol=1e-4, rtol=1e-3)
    assert (expected - expected[0]).abs().max() > 1e-3


@pytest.mark.slow
def test_a_grid_heads_names_are_those_of_our_butd_network(
    theirs: tuple[Images, Captions], vocabulary: Path, tmp_path: Path
) -> None:
    with torch.device("meta"):
        names = set(caffe_resnet101().state_dict())
        grids = Grids(resnet101())
    state = {
        name: torch.zeros(value.shape if value.dim() < 2 else (*value.shape[:2],))
        if "fc." in name
        else torch.zeros(1)
        for name, value in grids.state_dict().items()
    }
    file = saved(tmp_path / "m.pth", *theirs)
    tree = torch.load(file, weights_only=False)
    tree["model"][0] = {f"module.{name}": value for name, value in state.items()}
    torch.save(tree, file)
    read = released.read(file)
    assert (read.feature, read.width, read.dimension) == ("grid", 2048, D)
    found = {name for name in read.state(vocabulary) if name.startswith("backbone")}
    assert found == {f"backbone.network.{name}" for name in names}


def test_what_does_not_belong_together_is_refused(
    theirs: tuple[Images, Captions], vocabulary: Path, job: training.TrainingJob, tmp_path: Path
) -> None:
    file = saved(tmp_path / "m.pth", *theirs)
    theirs[0].other = nn.Linear(2, 2)
    with pytest.raises(InputError, match=r"other\.weight is not a weight"):
        released.read(saved(tmp_path / "o.pth", *theirs)).state(vocabulary)
    with pytest.raises(InputError, match="a BiGRU needs the words"):
        training.convert(job, released.read(file), None)
    shorter = json.loads(vocabulary.read_text())
    del shorter["word2idx"]["the"]
    vocabulary.write_text(json.dumps(shorter))
    with pytest.raises(InputError, match=r"has 10 words, .* 9; give the vocabulary"):
        training.convert(job, released.read(file), vocabulary)
    theirs[0].fc = nn.Linear(7, D)
    with pytest.raises(InputError, match=f"of 7 dimensions, .* has {WIDTH}"):
        training.convert(job, released.read(saved(tmp_path / "n.pth", *theirs)), vocabulary)
    assert not job.folder.exists()


def test_a_head_in_the_way_is_kept(
    theirs: tuple[Images, Captions], vocabulary: Path, job: training.TrainingJob, tmp_path: Path
) -> None:
    training.convert(job, released.read(saved(tmp_path / "m.pth", *theirs)), vocabulary)
    torch.nn.init.zeros_(theirs[0].fc.weight)
    other = released.read(saved(tmp_path / "n.pth", *theirs))
    with pytest.raises(InputError, match="checkpoint was "):
        training.convert(job, other, vocabulary)
    training.convert(replace(job, if_changed="redo"), other, vocabulary)


def test_what_the_file_does_not_say_is_left_out(
    theirs: tuple[Images, Captions], vocabulary: Path, job: training.TrainingJob, tmp_path: Path
) -> None:
    read = released.read(
        saved(tmp_path / "m.pth", *theirs, best_rsum=float("nan"), opt=argparse.Namespace())
    )
    training.convert(job, read, vocabulary)
    assert "NaN" not in (job.folder / "record.json").read_text()
    origin = training.HeadArtefact.open(job.folder).facts.origin
    assert origin is not None
    assert origin.val_rsum is None
    training.convert(job, read, vocabulary)  # is there already


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (
            "fc.weight",
            lambda values: values.fill_(torch.nan),
            "fc.weight is not a dense tensor of finite real",
        ),
        (
            "fc.bias",
            lambda values: values.to(torch.complex64),
            "fc.bias is not a dense tensor of finite real",
        ),
        ("fc.bias", lambda values: values.long(), "fc.bias is not a dense tensor of finite real"),
        ("mlp.bns.0.running_var", lambda values: -values, "running_var has negative variances"),
    ],
)
def test_weights_that_are_none_are_refused(
    theirs: tuple[Images, Captions],
    tmp_path: Path,
    name: str,
    change: Callable[[Tensor], Tensor],
    said: str,
) -> None:
    file = saved(tmp_path / "m.pth", *theirs)
    tree = torch.load(file, weights_only=False)
    tree["model"][0][f"module.{name}"] = change(tree["model"][0][f"module.{name}"])
    torch.save(tree, file)
    with pytest.raises(InputError, match=said):
        released.read(file)


def test_options_that_are_none_are_refused(
    theirs: tuple[Images, Captions], vocabulary: Path, job: training.TrainingJob, tmp_path: Path
) -> None:
    odd = argparse.Namespace(batch_size="abc", num_epochs=-4, lr_update=None)
    with pytest.raises(InputError, match=r"its options: batch_size: .* got 'abc'"):
        training.convert(
            job, released.read(saved(tmp_path / "m.pth", *theirs, opt=odd)), vocabulary
        )
    assert not job.folder.exists()


class Harmful:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("harmed"),)


def test_nothing_in_the_file_is_run(
    theirs: tuple[Images, Captions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for bad, said in (
        (saved(tmp_path / "m.pth", *theirs, opt=Harmful()), "do not trust it"),
        (saved(tmp_path / "n.pth", theirs[0]), "not a checkpoint of vse_infty's released code"),
    ):
        with pytest.raises(InputError, match=said):
            released.read(bad)
    assert not Path("harmed").exists()
    with pytest.raises(InputError, match="no such file"):
        released.read(tmp_path / "nowhere.pth")


def test_the_command(
    theirs: tuple[Images, Captions],
    vocabulary: Path,
    scenes: Manifest,
    store: FeatureStore,
    tmp_path: Path,
) -> None:
    scenes.save(tmp_path / "data" / "sample.parquet")
    (tmp_path / "features" / "sample").mkdir(parents=True)
    (tmp_path / "features" / "sample" / "region.zarr").symlink_to(store.path)
    file = saved(tmp_path / "model_best.pth", *theirs)
    common = ["--root", str(tmp_path), "--params", str(Path(__file__).parents[2] / "params.yaml")]
    convert = CliRunner().invoke(
        cli, ["convert", str(file), "--vocabulary", str(vocabulary), *common]
    )
    assert convert.exit_code == 0, convert.output
    assert "21 epochs, val RSUM 498.7" in convert.output
    score = CliRunner().invoke(
        cli, ["score", "--feature", "region", "--recipe", "vse_infty_released", *common]
    )
    assert score.exit_code == 0, score.output
    name = "vse_infty_released-region-bigru-s0"
    made = System.open(tmp_path / "similarities" / "sample" / f"{name}.zarr").made_from
    assert (made.recipe, made.members[0].head) == ("vse_infty_released", name)
