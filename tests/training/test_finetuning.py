"""Fine-tuning: the features' network is trained with the head, from the images; tiny networks,
untrained.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import packed
import pytest
import torch
from click.testing import CliRunner
from folders import tree
from PIL import Image
from torch import nn

from pipeline.foundation import settings
from pipeline.foundation.artefacts import Record
from pipeline.foundation.files import images
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import PoolingSettings, Recipe
from pipeline.judge.systems.scores.system import System
from pipeline.make import training
from pipeline.make.features.store import FeatureStore
from pipeline.make.heads.two_tower import TwoTower
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.vocabulary import Vocabulary
from pipeline.make.training import checkpoint, optimizer
from pipeline.make.training.batches import Drawing, TrainingBatches
from pipeline.make.training.photographs import Photographs, crop_and_flip
from stages.cli import cli

PARAMS = Path(__file__).parents[2] / "params.yaml"
SMALL = (
    "dimension=8",
    "word_dimension=4",
    "batch_size=16",
    "epochs=2",
    "steps=4",
    "decay_epoch=2",
    "minimum_count=1",
)
SETTINGS = settings.load(PARAMS, tuple(f"training.sample.{change}" for change in SMALL))
GRID = {"network": "test_efficientnet", "weights": "untrained", "image_size": 64, "grid": 2}
PATCH = {"network": "test_vit", "weights": "untrained", "image_size": 160, "cls": True}
RECIPE: Recipe = SETTINGS.recipe("vse_infty_finetuned")


def photographs(scenes: Manifest, feature: str = "grid") -> Photographs:
    return Photographs(scenes, scenes.images_folder, feature, GRID if feature == "grid" else PATCH)


@pytest.fixture
def job(scenes: Manifest, tmp_path: Path) -> training.TrainingJob:
    return training.TrainingJob(
        scenes,
        photographs(scenes),
        "grid",
        "bigru",
        "vse_infty_finetuned",
        RECIPE,
        SETTINGS.training_of("sample"),
        0,
        tmp_path / "head",
    )


def network(folder: Path) -> dict[str, torch.Tensor]:
    tensors, _ = checkpoint.load_tensors(folder / "last.safetensors")
    return {name: value for name, value in tensors.items() if name.startswith("model.backbone.")}


@pytest.mark.specification
def test_the_first_epoch_leaves_the_network_and_the_second_trains_it(
    job: training.TrainingJob, scenes: Manifest
) -> None:
    before = photographs(scenes).pixels.backbone().state_dict()
    frozen: dict[str, torch.Tensor] = {}

    def read_first(epoch: int, step: int, log: Any) -> None:
        if (epoch, step) == (2, 1):
            frozen.update(network(job.folder))

    training.train(job, on_step=read_first)
    assert {name.removeprefix("model.backbone.") for name in frozen} == set(before)
    for name, value in before.items():
        assert torch.equal(frozen[f"model.backbone.{name}"], value), name
    trained = network(job.folder)
    changed = {name for name, value in frozen.items() if not torch.equal(trained[name], value)}
    weights = {
        f"model.backbone.{name}"
        for name, _ in photographs(scenes).pixels.backbone().named_parameters()
    }
    assert changed == weights  # every weight, and none of BatchNorm's running statistics
    assert any("running_mean" in name for name in set(frozen) - changed)


def test_cut_and_resumed_it_is_bit_identical(
    job: training.TrainingJob, scenes: Manifest, tmp_path: Path
) -> None:
    """Cut before the network's first step, and after: its weights are channels last, and so are
    their moments.
    """
    longer = replace(job, training=job.training.model_copy(update={"epochs": 3, "steps": 6}))
    training.train(longer)

    class Cut(Exception):
        pass

    again = replace(longer, folder=tmp_path / "again")
    for moment in (2, 2), (3, 2):

        def cut(epoch: int, step: int, log: Any, moment: tuple[int, int] = moment) -> None:
            if (epoch, step) == moment:
                raise Cut

        with pytest.raises(Cut):
            training.train(replace(again, source=photographs(scenes)), on_step=cut)
    training.train(replace(again, source=photographs(scenes)))
    assert tree(again.folder) == tree(longer.folder)


@pytest.mark.parametrize("feature", ["grid", "patch"])
def test_a_batch_is_pixels_and_which_items_stay(scenes: Manifest, feature: str) -> None:
    source, split = photographs(scenes, feature), scenes.split("train")
    text = BiGRUText(Vocabulary.of(split.captions))
    images = next(
        iter(TrainingBatches(source, split, text, Drawing(16, 0), 0.4, 0.2).epoch(0))
    ).images
    assert images.values.shape == (
        16,
        *[(GRID if feature == "grid" else PATCH)["image_size"]] * 2,
        3,
    )
    assert images.kept is not None
    assert images.kept.shape == (16, int(images.counts.max()))
    items = source.slots
    assert 0.45 < images.counts.double().mean() / items < 0.75, "0.4 are left out"
    for kept, count in zip(images.kept, images.counts, strict=True):
        assert (kept[:count].diff() > 0).all()
        assert kept.max() < items
    torch.manual_seed(0)
    model = TwoTower(
        feature,
        source.width,
        text,
        RECIPE,
        SETTINGS.training_of("sample"),
        source.pixels.backbone(),
    ).eval()
    whole = source.pixels.backbone()(images.values)
    assert whole.shape == (16, items, source.width)
    by_hand = [
        model.image_pooling(
            model.projection(whole[row : row + 1, kept[:count]], count[None]), count[None]
        )
        for row, (kept, count) in enumerate(zip(images.kept, images.counts, strict=True))
    ]
    torch.testing.assert_close(
        model.embed_images(images),
        nn.functional.normalize(torch.cat(by_hand), dim=-1),
        atol=1e-5,
        rtol=1e-4,
    )


def test_an_identity_says_how_pixels_become_items(scenes: Manifest) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"image_size": 96},
        {"grid": 1},
        {"network": "test_resnet"},
    ]
    identities = []
    for change in changes:
        source = Photographs(scenes, scenes.images_folder, "grid", GRID | change)
        identities.append(source.identity)
    assert len({*identities}) == len(changes)
    assert photographs(scenes).identity == identities[0]


def test_a_class_token_is_never_left_out(job: training.TrainingJob, scenes: Manifest) -> None:
    """What a recipe leaves out of the other items changes nothing where that alone is pooled."""
    once = job.training.model_copy(update={"epochs": 1, "steps": 1})
    losses = []
    for share in (0.0, 0.9):
        recipe = RECIPE.model_copy(
            update={"image_pooling": PoolingSettings(name="cls"), "drop_items": share}
        )
        patches = replace(
            job,
            source=photographs(scenes, "patch"),
            feature="patch",
            recipe=recipe,
            training=once,
            folder=job.folder / str(share),
        )
        losses.append(training.train(patches).history[0]["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for source in (
        photographs(scenes),
        Photographs(scenes, scenes.images_folder, "patch", PATCH | {"cls": False}),
    ):
        with pytest.raises(InputError, match="pooling cls takes a class token"):
            training.train(replace(patches, source=source, folder=job.folder / "none"))
    assert not (job.folder / "none").exists()


def test_items_are_those_of_extraction(scenes: Manifest) -> None:
    source, rows = photographs(scenes), np.array([3, 0])
    pixels, counts = source.read(rows)
    prepared = [
        source.engine.prepare(images.decode(scenes.images_folder / scenes.images["file"][row]))
        for row in rows
    ]
    expected = np.stack(
        [items.features for items in source.engine.extract(prepared, [(64, 64)] * 2)]
    )
    found = source.pixels.backbone().eval()(torch.from_numpy(pixels))
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-5)
    assert counts.tolist() == [4, 4]


def test_crops_and_flips() -> None:
    ramp = np.arange(100 * 50).reshape(50, 100)
    image = Image.fromarray(np.stack([ramp % 256, ramp // 256, ramp * 0], axis=2).astype(np.uint8))

    def at(*draws: float) -> np.ndarray:
        pixels = np.asarray(crop_and_flip(image, np.array(draws))).astype(int)
        return pixels[..., 0] + 256 * pixels[..., 1]

    assert np.array_equal(at(1, 0.3, 0.9, 0.7), ramp)  # all of it, not flipped
    assert np.array_equal(at(1, 0.3, 0.9, 0.2), ramp[:, ::-1])
    assert np.array_equal(at(0, 0, 0, 0.7), ramp[:30, :60])  # 0.6 of either side
    assert np.array_equal(at(0.5, 0.999, 0.5, 0.7), ramp[5:45, 19:99])


@pytest.mark.parametrize(
    ("name", "multiplier"),
    [
        ("butd_resnet101", 0.01),
        ("resnext101_32x8d.fb_wsl_ig1b_ft_in1k", 0.01),
        ("resnet152.tv_in1k", 0.1),
    ],
)
def test_the_network_learns_at_its_own_multiple(
    scenes: Manifest, name: str, multiplier: float
) -> None:
    source = photographs(scenes)
    backbone = source.pixels.backbone()
    backbone.name = name
    text = BiGRUText(Vocabulary.of(["a b"]))
    model = TwoTower("grid", source.width, text, RECIPE, SETTINGS.training_of("sample"), backbone)
    built = optimizer.build(model, RECIPE)
    optimizer.set_rate(built, 1.0)
    rates = {weight: group["lr"] for group in built.param_groups for weight in group["params"]}
    assert {rates[weight] for weight in backbone.parameters()} == {multiplier}
    assert rates[model.projection.linear.weight] == 1.0  # type: ignore[union-attr]


def test_from_the_command_line_and_scored_from_images(scenes: Manifest, tmp_path: Path) -> None:
    scenes.save(tmp_path / "data" / "sample.parquet")
    changes = [f"-Straining.sample.{change}" for change in SMALL] + [
        f"-Sfeatures.light.grid.{key}={value}" for key, value in GRID.items()
    ]
    common = ["--root", str(tmp_path), "--params", str(PARAMS), *changes]

    def run(*arguments: str) -> str:
        ran = CliRunner().invoke(cli, [*arguments, *common])
        assert ran.exit_code == 0, (ran.output, ran.exception)
        return ran.output

    run("train", "--feature", "grid", "--recipe", "vse_infty", "--finetune")
    folder = tmp_path / "heads" / "sample" / "vse_infty_finetuned-grid-bigru-s0"
    assert (
        training.HeadArtefact.open(folder).facts.features.recipe
        == "grid2-test_efficientnet-64px-finetuned"
    )
    assert "4 images" in run("score", "--feature", "grid", "--recipe", "vse_infty_finetuned")
    head = training.Head.open(folder)
    source = head.images(scenes, tmp_path / "none")
    assert isinstance(source, Photographs)
    assert torch.equal(
        source.engine.network.model.conv_stem.weight,
        checkpoint.load_tensors(folder / "best.safetensors")[0][
            "backbone.network.conv_stem.weight"
        ],
    )
    found = head.embed(source, scenes.split("val"), 3)
    whole = head.embed(source, scenes.split("val"), 64)
    np.testing.assert_allclose(found[0], whole[0], atol=1e-5)
    assert "4 images and 20 captions" in run(
        "embed", "sample", "--system", folder.name, "--split", "val"
    )
    embedded = System.open_vectors(
        tmp_path / "embeddings" / "sample" / f"sample-{folder.name}.zarr"
    ).embeddings()
    np.testing.assert_allclose(embedded.images, whole[0], atol=1e-5)
    assert run("search", "a red house", "--system", folder.name, "--top", "2").count(".jpg") == 2
    asked = scenes.images[scenes.images["split"] == "test"].iloc[2]
    nearest = run(
        "search",
        "--image",
        str(scenes.images_folder / asked["file"]),
        "--find",
        "images",
        "--system",
        folder.name,
        "--top",
        "1",
    )
    nearest = nearest.splitlines()[1].split()  # below the header
    assert [float(nearest[1]), int(nearest[2])] == [1.0, asked["image_id"]]


def test_other_photographs_make_what_was_made_of_them_stale(
    scenes: Manifest, tmp_path: Path
) -> None:
    for name in ("images", "others"):
        shutil.copytree(scenes.images_folder, tmp_path / "data" / name)
    replace(scenes, images_folder=tmp_path / "data" / "images").save(
        tmp_path / "data" / "sample.parquet"
    )
    one, other = (
        tmp_path
        / "data"
        / "others"
        / scenes.images.loc[scenes.images["split"] == split, "file"].iloc[0]
        for split in ("train", "test")
    )
    changes = [
        f"-S{key}={value}"
        for key, value in {
            "training.sample.epochs": 1,
            "training.sample.steps": 1,
            **{
                f"training.sample.{change.partition('=')[0]}": change.partition("=")[2]
                for change in SMALL
                if "epoch" not in change and "steps" not in change
            },
            **{f"features.light.grid.{key}": value for key, value in GRID.items()},
        }.items()
    ]
    common = ["--root", str(tmp_path), "--params", str(PARAMS), *changes]

    def run(*arguments: str, code: int = 0) -> str:
        ran = CliRunner().invoke(cli, [*arguments, *common])
        assert (ran.exit_code == 0) == (code == 0), (ran.output, ran.exception)
        return ran.output if code == 0 else str(ran.exception)

    train = ("train", "--feature", "grid", "--recipe", "vse_infty", "--finetune")
    run(*train)
    head = "vse_infty_finetuned-grid-bigru-s0"
    score = ("score", "--feature", "grid", "--recipe", "vse_infty_finetuned")
    embed = ("embed", "sample", "--system", head, "--split", "val")
    steps = f"{tmp_path}/similarities/sample/{head}.zarr"
    for command in (score, embed, train):
        run(*command)
        assert "nothing to do" in run(*command)
    others = ("--images", str(tmp_path / "data" / "others"))
    assert "nothing to do" in run(*score, *others)
    assert "nothing to do" in run(*train, *others)
    content = one.read_bytes()
    shutil.copyfile(other, one)
    assert "its photographs sample is another; --if-changed redo" in run(*train, *others, code=2)
    assert "nothing to do" in run(*score, *others)  # which reads no photograph of train
    other.write_bytes(content)
    assert "nothing to do" not in run(*score, *others)
    assert "nothing to do" in run(*embed, *others)
    assert "data/images: the photographs of" in run("trace", steps, "--embed", "0", code=2)


def test_a_head_is_the_same_wherever_its_first_weights_are(
    scenes: Manifest, job: training.TrainingJob, tmp_path: Path
) -> None:
    jobs = []
    for place in ("one", "other"):
        file = tmp_path / place / "weights.pth"
        file.parent.mkdir()
        torch.save(photographs(scenes).engine.network.model.state_dict(), file)
        source = Photographs(scenes, scenes.images_folder, "grid", GRID | {"weights": str(file)})
        jobs.append(replace(job, source=source))
    words = job.learn(scenes.split("train").captions)
    one, other = (
        Record(
            kind="head",
            request=each.request.recorded(),
            made_from=each.made_from(words),
            versions=dict(each.request.versions()),
            facts=each.facts(words).model_dump(mode="json"),
        )
        for each in jobs
    )
    assert one.identity == other.identity
    assert one.versions.keys() >= {"extractors/grid", "images"}


def test_what_cannot_be_is_refused(
    job: training.TrainingJob, scenes: Manifest, store: FeatureStore, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="fine-tuning is for grid and patch"):
        Photographs(
            scenes,
            scenes.images_folder,
            "pyramid",
            {"network": "test_efficientnet", "weights": "untrained", "image_size": 128},
        )
    with pytest.raises(InputError, match="no such file; replace it"):
        Photographs(scenes, tmp_path, "grid", GRID).read(np.array([0]))
    refused = CliRunner().invoke(
        cli, ["train", "--feature", "region", "--finetune", "--params", str(PARAMS)]
    )
    assert "--finetune is for grid and patch" in str(refused.exception)
    refused = CliRunner().invoke(
        cli,
        [
            "train",
            "--feature",
            "grid",
            "--images",
            "x",
            "--params",
            str(PARAMS),
            "--root",
            str(tmp_path),
        ],
    )
    assert isinstance(refused.exception, InputError)


@pytest.mark.parametrize("pack", [packed.tars, packed.parquets])
def test_images_in_tars_and_parquet_are_those_of_files(
    pack: Any, scenes: Manifest, tmp_path: Path
) -> None:
    made, rows = pack(scenes, tmp_path / "packed"), np.array([5, 0, 2])
    there, here = Photographs(made, made.images_folder, "grid", GRID), photographs(scenes)
    np.testing.assert_array_equal(there.read(rows)[0], here.read(rows)[0])
    draws = np.full((3, 4), 0.3)
    np.testing.assert_array_equal(there.augmented(rows, draws), here.augmented(rows, draws))
    assert there.content(rows) == here.content(rows)
