"""Fixtures of commands that are run in this process, and of projects to run them in."""

from __future__ import annotations

import contextlib
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import invented_run
import kept
import pytest
import tiny_project

from pipeline.foundation import settings
from pipeline.foundation.manifest import Manifest
from pipeline.make.features.store import FeatureStore
from stages import cli

PARAMS = str(Path(__file__).parents[1] / "params.yaml")
Cli = Callable[..., tuple[int, str, str]]
# The settings of PARAMS, by their changes and by where packages are found that offer parts.
READ: dict[tuple[str, ...], bytes] = {}
MadeOnce = Callable[[str, str, kept.Make], Path]


@pytest.fixture(scope="session")
def made_once(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """A copy of what is kept under a name; a module's file and function make it where it is not."""
    of_worker = tmp_path_factory.getbasetemp()
    place = of_worker / kept.FOLDER  # without pytest's cache
    if pytestconfig.pluginmanager.hasplugin("cacheprovider"):
        assert pytestconfig.cache is not None
        place = pytestconfig.cache.mkdir(kept.FOLDER)

    def copy(name: str, module: str, make: kept.Make) -> Path:
        copied = tmp_path_factory.mktemp(name) / name
        return kept.copy_of(place / name, lambda: kept.key(Path(module)), make, copied)

    return copy


@pytest.fixture(scope="session")
def finished(made_once: MadeOnce, request: pytest.FixtureRequest) -> Path:
    """A finished run. Change a copy of it, or put back what you change."""

    def make(folder: Path) -> None:
        tiny_project.make(folder, request.getfixturevalue("commands"))

    return made_once("finished", __file__, make)


def read_once(path: Path, changes: tuple[str, ...] = ()) -> settings.Settings:
    """A copy of the settings: those of PARAMS with the same changes are read and checked once."""
    if str(path) != PARAMS:
        return settings.loading.load(path, changes)
    key = (*changes, "", *sys.path)
    if key not in READ:
        READ[key] = pickle.dumps(settings.loading.load(path, changes))
    copy: settings.Settings = pickle.loads(READ[key])
    return copy


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch, capfd: Any, tmp_path: Path) -> Cli:
    """A command with the project's settings, in an empty folder: exit code, standard output,
    standard error.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(settings, "load", read_once)

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["pipeline", *map(str, arguments), "--params", PARAMS])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return int(ended.value.code or 0), out, err

    return run


@pytest.fixture
def refused(pipeline: Cli) -> Callable[..., str]:
    """A command that must end with exit code 2: its last line."""

    def run(*arguments: str | Path) -> str:
        code, _, err = pipeline(*arguments)
        assert code == 2, err
        return err.strip().splitlines()[-1]

    return run


@pytest.fixture(scope="session")
def trained(
    tmp_path_factory: pytest.TempPathFactory, scenes: Manifest, store: FeatureStore
) -> Path:
    """A root with a manifest, region features, a tiny head trained on them, and its scores."""
    root = tmp_path_factory.mktemp("trained")
    scenes.save(root / "data" / "sample.parquet")
    shutil.copytree(store.path, root / "features" / "sample" / "region.zarr")
    tiny = ("dimension=16", "word_dimension=8", "batch_size=16", "epochs=1", "decay_epoch=1")
    changes = [word for change in tiny for word in ("-S", f"training.sample.{change}")]
    for command in ("train", "score"):
        arguments = [
            command,
            "--feature",
            "region",
            "--root",
            str(root),
            "--params",
            PARAMS,
            *changes,
        ]
        cli.cli.main(arguments, standalone_mode=False)
    return root


@pytest.fixture
def project(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, the working directory of the test."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory, trained: Path, corpus: Path) -> Path:
    """A root with all that a run leaves, from the photographs to metrics.json."""
    root = tmp_path_factory.mktemp("whole")
    shutil.copytree(trained, root, dirs_exist_ok=True)
    shutil.copytree(corpus, root / "data" / "sample")
    with contextlib.chdir(root):
        table = Manifest.load(Path("data/sample.parquet")).table
        Manifest(table, "sample", Path("data/sample/images")).save(Path("data/sample.parquet"))
        rerank = (
            "rerank",
            "--retriever",
            "vse2ad-R-bigru-s0",
            "--with",
            "vse2ad-region-bigru-s0",
            "--k",
            "3",
            "--name",
            "a-reranked",
        )
        evaluate = ("evaluate", "-S", "run.features=[region]", "-S", "run.ablations=[]")
        for command in (("ensemble", "R"), evaluate, rerank):
            cli.cli.main([*command, "--params", PARAMS], standalone_mode=False)
    return root


@pytest.fixture(scope="session")
def invented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The invented run. Change a copy of it."""
    root = tmp_path_factory.mktemp("invented")
    with contextlib.chdir(root):
        invented_run.make(Path())
    return root


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory: pytest.TempPathFactory, invented: Path) -> Path:
    """The same with what `pipeline evaluate` writes. Change a copy of it."""
    root = tmp_path_factory.mktemp("evaluated")
    shutil.copytree(invented, root, dirs_exist_ok=True)
    with contextlib.chdir(root):
        cli.cli.main(["evaluate", "--params", PARAMS], standalone_mode=False)
    return root


@pytest.fixture
def run(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, the working directory of the test."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path
