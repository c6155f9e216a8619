"""`pipeline train` and `pipeline score`: heads by recipe and seed, varied recipes, and what is
refused.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from folders import tree
from full_disk import no_file_larger_than
from preloaded import Commands

from pipeline.foundation import settings
from pipeline.foundation.compute import half, machine
from pipeline.foundation.files.atomic import exclusive
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.system import System
from pipeline.make import training
from pipeline.make.features.store import FeatureStore
from pipeline.make.training import checkpoint
from stages import heads
from stages.commands.heads import TrainOptions
from stages.heads import learn

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SMALL = [
    part
    for change in (
        "dimension=8",
        "word_dimension=4",
        "batch_size=16",
        "epochs=1",
        "steps=1",
        "decay_epoch=1",
    )
    for part in ("-S", f"training.sample.{change}")
]


@pytest.fixture
def train(pipeline: Any, scenes: Manifest, store: FeatureStore) -> Callable[..., list[str]]:
    """Train tiny heads on the scenes, below the working directory: the names of all heads there."""
    scenes.save(Path("data/sample.parquet"))
    Path("features/sample").mkdir(parents=True)
    shutil.copytree(store.path, "features/sample/region.zarr")

    def run(*arguments: str) -> list[str]:
        code, _, err = pipeline("train", "--feature", "region", *arguments, *SMALL)
        assert code == 0, err
        return sorted(folder.name for folder in Path("heads/sample").iterdir() if folder.is_dir())

    return run


def description(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        Path("heads/sample", name, "record.json").read_text(encoding="utf-8")
    )
    return found["request"] | {
        "machines": found["machines"],
        "networks": found["facts"]["networks"],
    }


@pytest.mark.specification
def test_recipes_and_seeds_one_after_another(
    train: Callable[..., list[str]], pipeline: Any
) -> None:
    axes = "--recipe", "vse2ad", "--recipe", "vse_pp", "--seed", "0", "--seed", "3"
    names = [f"{recipe}-region-bigru-s{seed}" for recipe in ("vse2ad", "vse_pp") for seed in (0, 3)]
    assert train(*axes) == sorted(names)
    assert description("vse_pp-region-bigru-s3")["recipe"]["image_pooling"] == {"name": "mean"}
    assert pipeline("score", "--feature", "region", *axes)[0] == 0
    for name in names:
        made = System.open(Path("similarities/sample", f"{name}.zarr")).made_from
        assert (made.recipe, made.seed) == (name.partition("-")[0], int(name[-1]))
        (member,) = made.members
        assert (member.head, member.feature, member.networks["text"]) == (name, "region", {})
        assert member.networks["image"] == {
            "engine": "pyramid",
            "name": "pyramid36-test_efficientnet-128px",
            "network": "test_efficientnet",
            "weights": "untrained",
        }
        assert member.settings["image_pooling"] == description(name)["recipe"]["image_pooling"]
        assert member.settings["epochs"] == description(name)["training"]["epochs"]
        assert description(name)["networks"] == member.networks


def test_precision_is_asked_for_and_recorded(
    train: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "vse2ad-region-bigru-s0"
    monkeypatch.setattr(half, "slowdown", lambda precision: 0.5)
    train("--precision", "bf16")
    assert description(name)["training"]["precision"] == "bf16"
    train("--if-changed", "redo")
    assert description(name)["training"]["precision"] == "fp32"


def test_large_pages_are_asked_for_before_the_first_tensor(
    train: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []
    keep = machine.keep_freed
    launch = training.launch
    monkeypatch.setattr(machine, "keep_freed", lambda: order.append("pages") or keep())
    monkeypatch.setattr(
        training, "launch", lambda *given: order.append("processes") or launch(*given)
    )
    train()
    assert order[:2] == ["pages", "processes"]


def test_a_varied_recipe_goes_by_another_name(train: Callable[..., list[str]]) -> None:
    assert train("--pooling", "max") == ["vse2ad-max-region-bigru-s0"]
    assert description("vse2ad-max-region-bigru-s0")["name"] == "vse2ad-max"
    assert "vse2ad_image_gpo_infonce-region-bigru-s0" in train(
        "--image-pooling", "gpo", "--objective", "infonce"
    )
    settings = description("vse2ad_image_gpo_infonce-region-bigru-s0")["recipe"]
    assert [settings[key]["name"] for key in ("image_pooling", "text_pooling", "objective")] == [
        "gpo",
        "adpool",
        "infonce",
    ]
    assert "vse2ad-nomargin-region-bigru-s0" in train("--objective", "adopt")  # is that recipe
    assert "slow-region-bigru-s0" in train(
        "-S", "recipes.vse2ad.learning_rate=1e-5", "--name", "slow"
    )
    assert description("slow-region-bigru-s0")["recipe"]["learning_rate"] == 1e-5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-S", "recipes.vse2ad.learning_rate=1e-5"], "give its head a name with --name"),
        (["--pooling", "max", "--name", "vse_infty"], "settings' 'vse_infty'"),
        (
            ["--pooling", "cls", "--name", "vse2ad-max"],
            "this recipe differs from the settings' 'vse2ad-max'",
        ),
        (["--pooling", "max", "--name", "../mine"], "--name '../mine': expected letters"),
        (
            ["--recipe", "vse2ad", "--recipe", "vse_pp", "--name", "mine"],
            "--name is for one recipe",
        ),
        (["--seed", "0", "--seed", "1", "--out", "there"], "--out is the folder of one head"),
        (["--recipe", "none"], "unknown recipe 'none'"),
        (["--pooling", "none"], "'none'; there are: "),
        (["--objective", "adopt", "--name", "mine"], "settings' recipe 'vse2ad-nomargin'"),
        (["--name", "mine"], "settings' recipe 'vse2ad'"),
        (
            [
                "--objective",
                "adopt",
                "-S",
                "recipes.vse2ad.objective.temperature=1",
                "--name",
                "mine",
            ],
            "-S and another option both set objective",
        ),
        (
            ["--pooling", "max", "--image-pooling", "gpo", "--text-pooling", "gpo"],
            "leave out --pooling max",
        ),
    ],
)
def test_what_would_be_mistaken_is_refused(refused: Any, arguments: list[str], said: str) -> None:
    assert said in refused("train", "--feature", "region", *arguments)
    assert not Path("heads").exists()


def test_a_converted_head_takes_no_recipes_name(refused: Any, tmp_path: Path) -> None:
    for name in ("vse2ad", "vse2ad-max"):
        assert f"--name {name}: is a recipe's name" in refused(
            "convert", tmp_path / "model_best.pth", "--name", name
        )


def test_a_recipe_that_finetunes_says_where_it_does_not(
    train: Callable[..., list[str]], pipeline: Any
) -> None:
    train("--pooling", "max")
    code, _, err = pipeline("train", "--feature", "region", "--recipe", "vse2ad_finetuned", *SMALL)
    assert code == 0
    assert "vse2ad_finetuned: region features come from a detector" in err


def test_captions_that_are_cut_are_said_once(
    train: Callable[..., list[str]], pipeline: Any, scenes: Manifest
) -> None:
    train("--pooling", "max")
    table = scenes.table.copy()
    table.loc[table.index[::7], "caption"] = "a tree " * 5000
    Manifest(table, "sample", scenes.images_folder).save(Path("data/sample.parquet"))
    for command in ("train", *SMALL), ("score",):
        code, _, err = pipeline(*command, "--feature", "region", "--recipe", "vse_pp")
        assert code == 0, err
        assert (
            err.count(
                "warning: captions of more than 254 words or word pieces are cut to that length\n"
            )
            == 1
        )


def test_what_cannot_be_built_leaves_nothing(train: Callable[..., list[str]], refused: Any) -> None:
    kmax = "recipes.vse2ad.image_pooling={name: kmax, k: 2.5}"
    said = refused("train", "--feature", "region", "-S", kmax, "--name", "mine")
    assert "pooling kmax: k: Input should be a valid integer, got 2.5" in said
    assert not Path("heads").exists()


def test_a_head_of_prefixes(train: Callable[..., list[str]], refused: Any) -> None:
    asked = ["--recipe", "vse2ad-matryoshka", "--name", "cut", "-S"]
    lengths = "recipes.vse2ad-matryoshka.objective.dimensions"
    said = refused("train", "--feature", "region", *asked, f"{lengths}=[4, 9]", *SMALL)
    assert "has a prefix of 9 numbers, but the head's vectors have 8; shorten" in said
    assert train(*asked, f"{lengths}=[4, 8]") == ["cut-region-bigru-s0"]
    wrapped = description("cut-region-bigru-s0")["recipe"]["objective"]["objective"]
    assert wrapped == {"name": "adopt", "margin": 0.2}


def test_a_head_elsewhere_is_scored_by_its_folder(
    train: Callable[..., list[str]], pipeline: Any, refused: Any
) -> None:
    Path("heads/sample").mkdir(parents=True)
    assert train("--recipe", "vse_infty", "--out", "mine/first") == []
    assert pipeline("score", "--system", "mine/first")[0] == 0
    assert System.open(Path("similarities/sample/first.zarr")).made_from.recipe == "vse_infty"
    assert "--recipe cannot be given with --system" in refused(
        "score", "--system", "mine/first", "--recipe", "vse2ad"
    )
    assert "needs --feature" in refused("score", "--recipe", "vse2ad")
    assert "no head there" in refused("score", "--feature", "region")


def test_two_runs_do_not_train_one_head_at_once(
    train: Callable[..., list[str]], pipeline: Any, refused: Any
) -> None:
    (name,) = train("--pooling", "max")
    again = (
        "train",
        "--feature",
        "region",
        "--pooling",
        "max",
        "--if-changed",
        "redo",
        *SMALL,
        "-S",
        "training.sample.batch_size=8",
    )
    before = tree(Path("heads/sample", name))
    with exclusive(Path("heads/sample", name)):
        assert (
            f"heads/sample/{name}: another process is writing to it; wait for it to end"
            in refused(*again)
        )
        assert "vse2ad-noadpool-region-bigru-s0" in train(
            "--pooling", "mean"
        )  # another head is trained meanwhile
    assert tree(Path("heads/sample", name)) == before
    assert pipeline(*again)[0] == 0
    assert tree(Path("heads/sample", name)) != before


def test_a_full_disk_is_said_in_one_line_and_training_goes_on_later(
    project: Path, pipeline: Any
) -> None:
    command = "train", "--feature", "region", *SMALL, "--out"
    assert pipeline(*command, "whole")[0] == 0
    with no_file_larger_than(15_000):
        code, _, err = pipeline(*command, "full")
    assert code == 1
    assert err.strip().splitlines()[-1] == (
        "error: File too large: full/best.safetensors; run again to resume; finished work is kept"
    )
    assert not list(Path("full").glob("*.partial"))
    assert pipeline(*command, "full")[0] == 0
    assert Path("full/best.safetensors").read_bytes() == Path("whole/best.safetensors").read_bytes()


def test_images_are_for_heads_that_read_them(train: Callable[..., list[str]], refused: Any) -> None:
    train()
    assert "--images is for a fine-tuned head" in refused(
        "score", "--feature", "region", "--images", "."
    )
    assert not Path("similarities").exists()


# The third epoch kills the process when it is to be saved, however fast it is.
KILLED = """
import os, signal
from pipeline.make.training import checkpoint
save, epochs = checkpoint.save, []
def killing(*state):
    epochs.append(state)
    if len(epochs) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    save(*state)
checkpoint.save = killing
"""


def test_killed_and_resumed_it_is_bit_identical(
    train: Callable[..., list[str]], commands: Commands
) -> None:
    longer = ["-S", "training.sample.epochs=4", "-S", "training.sample.steps=8"]
    arguments = ["--recipe", "vse_infty", *SMALL, *longer]
    command = [
        "pipeline",
        "train",
        "--feature",
        "region",
        "--params",
        ROOT / "params.yaml",
        *arguments,
        "--out",
    ]
    commands(*command, "whole")
    commands(*command, "cut", BEFORE=KILLED, code=-signal.SIGKILL)
    assert checkpoint.state(Path("cut")).epochs == 2
    assert len(pd.read_csv("whole/history.csv")) == 4
    resumed = commands(*command, "cut")
    assert "cut: resumes after step " in resumed.stderr
    assert {
        name: data for name, data in tree(Path("cut")).items() if not name.endswith(".partial")
    } == tree(Path("whole"))


def test_progress_goes_to_stderr_and_the_result_of_the_first_process_to_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(done: int, total: int, on_step: Any, on_epoch: Any, on_start: Any) -> None:
        on_start(done, total)
        on_epoch({"epoch": 2.0, "loss": 0.5, "RSUM": 123.45})

    monkeypatch.setattr(training, "summary", lambda folder: "best at epoch 2")
    epoch = "mine epoch 2: loss 0.500, val RSUM 123."
    for rank, done, total, printed in (
        (0, 3, 9, "heads/mine: best at epoch 2\n"),
        (0, 0, 0, "heads/mine: nothing to do, best at epoch 2\n"),
        (1, 3, 9, ""),
    ):
        job: Any = SimpleNamespace(folder=Path("heads/mine"), processes=SimpleNamespace(rank=rank))
        trained = partial(train, done, total)
        monkeypatch.setattr(training, "train", lambda job, s, e, b, w, t=trained: t(s, e, b))
        learn(job)
        out, err = capsys.readouterr()
        assert out == printed
        assert epoch in err
        assert ("resumes after step 3 of 9" in err) == (rank == 0 and done > 0)


@pytest.mark.usefixtures("train")
def test_what_is_said_of_a_head_without_a_row_asks_for_this_very_head(
    pipeline: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    region = ("train", "--feature", "region", *SMALL)
    of_images = ("--recipe", "vse_infty", "--image-pooling", "gem")
    for varied, name, title in (
        (("--pooling", "max"), "vse2ad-max", "VSE+2AD, max pooling"),
        (of_images, "vse_infty_image_gem", r"vse\_infty\_image\_gem"),
    ):
        code, _, err = pipeline(*region, *varied)
        assert code == 0, err
        said = " ".join(err.split())
        (written,) = re.findall(
            r"or write `recipes: \{(.+)\}` there, and `(.+)` into `ablations`$", said
        )
        assert written[1] == name
        for command in (
            ("score", "--system", f"{name}-region-bigru-s0"),
            ("evaluate",),
            ("tables",),
        ):
            assert f"`{' '.join(('pipeline', *command))}`" in said
            assert pipeline(*command, "-S", "tables=[systems]")[0] == 0
        table = Path("results/tables/systems.md").read_text(encoding="utf-8")
        assert f"{title} (Region, BiGRU)" in table
        text = (ROOT / "params.yaml").read_text(encoding="utf-8")
        text = text.replace("recipes: {}", f"recipes: {{{written[0]}}}")
        text = text.replace("  ablations: [", f"  ablations: [{name}, ")
        Path("mine.yaml").write_text(text, encoding="utf-8")
        of_run = settings.load(Path("mine.yaml"), tuple(SMALL[1::2]))
        heads.train(Paths(Path()), of_run, TrainOptions(feature="region", recipes=(name,)))
        out, err = capfd.readouterr()
        assert ("nothing to do" in out, "note: " in err) == (True, False), (out, err)
    code, _, err = pipeline(*region, "--pooling", "gpo")
    assert (
        "for a row in tables add its recipe, feature, text encoder and seed to `run`"
        in " ".join(err.split())
    )
    code, _, err = pipeline(*region)
    assert "for a row" not in err
