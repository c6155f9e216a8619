"""The command line: help with an example for each command, one line and exit code 2 for bad
input.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zarr

from pipeline.foundation import settings
from pipeline.foundation.files.parsing import from_yaml
from pipeline.foundation.manifest import Manifest
from pipeline.make.features import extraction
from pipeline.make.features.extractors import backend
from pipeline.make.features.store import read_header
from stages import cli

pytestmark = pytest.mark.slow

PARAMS = str(Path(__file__).parents[2] / "params.yaml")


def pipeline(
    *arguments: str | Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command."""
    monkeypatch.setattr(sys, "argv", ["pipeline", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capfd.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: Any, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)

    def run_command(*arguments: str | Path) -> tuple[int, str, str]:
        return pipeline(*arguments, monkeypatch=monkeypatch, capfd=capfd)

    return run_command


@pytest.mark.specification
def test_help_lists_every_command_with_its_purpose(run: Any) -> None:
    code, out, _ = run("--help")
    assert code == 0
    pages = {"": out} | {f"{group} ": run(group, "--help")[1] for group in cli.GROUPS}
    for name, purpose in cli.commands().items():
        group, last = re.fullmatch(r"(\S+ |)(\S+)", name).groups()
        assert re.search(rf"^  {last} +{re.escape(purpose)}$", pages[group], re.MULTILINE)


@pytest.mark.parametrize("name", cli.commands())
def test_every_command_has_help_with_an_example(name: str, run: Any) -> None:
    code, out, _ = run(*name.split(), "--help")
    assert code == 0
    assert f"Example: pipeline {name}" in out


def bad(run: Any, *arguments: str | Path) -> str:
    code, _, err = run(*arguments)
    assert code == 2
    assert "Traceback" not in err
    return str(err.strip().splitlines()[-1])


@pytest.mark.specification
def test_bad_input_is_one_line_and_exit_code_2(run: Any, tmp_path: Path) -> None:
    assert "there is no params.yaml here; `pipeline init` writes one" in bad(
        run, "train", "--feature", "grid"
    )
    assert "there is no params.yaml here" in bad(run, "evaluate")
    assert "there is no params.yaml here" in bad(run, "score")
    assert "heads/sample/none: no head there" in bad(run, "score", "--system", "none")
    assert "similarities/sample/none.zarr: no similarity store" in bad(
        run, "rescore", "none", "--by", "csls"
    )
    assert "no such settings file" in bad(run, "lab", "sample", "--params", "mine.yaml")
    assert "no manifest there" in bad(run, "extract", "--feature", "grid", "--params", PARAMS)
    assert "unknown command" in bad(run, "paint")
    assert "unknown feature of the preset" in bad(
        run, "extract", "--feature", "sound", "--params", PARAMS
    )
    assert "unknown key" in bad(run, "lab", "sample", "--params", PARAMS, "-S", "sample.colour=1")
    assert "params.yaml: run.texts.1: unknown text encoder 'elmo'; there are: bigru, bert" in bad(
        run, "lab", "sample", "--params", PARAMS, "-S", "run.texts=[bigru, elmo]"
    )
    assert "no such folder; `pipeline lab sample` renders it" in bad(
        run, "manifest", "sample", "--params", PARAMS
    )
    assert "no such folder; `pipeline lab sample --video`" in bad(
        run, "manifest", "sample_video", "--params", PARAMS
    )
    assert "unknown data set 'smaple'; did you mean sample?" in bad(
        run, "manifest", "smaple", "--params", PARAMS
    )
    assert "the name is empty" in bad(run, "init", "")
    assert "the name is empty" in bad(run, "lab", "sample", "--root", "")
    assert not list(tmp_path.iterdir())
    assert "no feature store there" in bad(
        run, "store", "verify", "nowhere.zarr", "--params", PARAMS
    )
    assert "pipeline evaluate" in bad(run, "tables", "--params", PARAMS)
    assert "--folds needs a FILE" in bad(run, "evaluate", "--folds", "5", "--params", PARAMS)


def test_a_file_where_a_folder_should_be_is_refused_and_the_other_way_round(
    run: Any, perfect: Path
) -> None:
    Path("data").write_text("a file")
    Path("folder.json").mkdir()
    there = {path: path.is_dir() for path in Path().rglob("*")}
    for words in (
        ("lab", "sample", "-S", "sample.images=12"),
        ("manifest", "mine", "--annotations", "data", "--images", ".", "--format", "multi30k"),
        ("evaluate", "--system", perfect, "--params", "folder.json"),
        ("evaluate", "--system", perfect, "--run", "folder.json"),
        ("tables", "--root", "data"),
        ("manifest", "sample", "--out", "folder.json"),
        ("search", "red", "--out", "folder.json"),
        ("store", "export", "butd-tsv", "store.zarr", "--out", "data"),
        ("evaluate", "--params", "data"),
    ):
        assert re.search(
            r"data|folder\.json",
            bad(run, *words, *([] if "--params" in words else ["--params", PARAMS])),
        )
    assert {path: path.is_dir() for path in Path().rglob("*")} == there
    assert Path("data").read_text() == "a file"


@pytest.mark.parametrize(
    "words",
    [
        ("manifest", "../../x", "--annotations", "a.json", "--images", "."),
        ("train", "--feature", "region", "--dataset", ".."),
        ("score", "--recipe", "../a", "--feature", "grid"),
    ],
)
def test_a_name_that_leads_out_of_its_folder_is_refused(run: Any, words: tuple[str, ...]) -> None:
    assert "a name cannot be . or .. or contain /" in bad(run, *words, "--params", PARAMS)


@pytest.mark.parametrize("address", ["foo", "tcp://host", "http://host/8786", "host:port"])
def test_the_address_of_a_cluster_is_checked_also_where_nothing_is_to_do(
    run: Any, address: str
) -> None:
    assert "expected an address such as" in bad(
        run, "extract", "--feature", "grid", "--scheduler", address, "--params", PARAMS
    )


@pytest.mark.parametrize(
    "words",
    [
        ("extract", "--feature", "grid"),
        ("train", "--feature", "grid"),
        ("score",),
        ("embed",),
        ("rerank",),
        ("lab", "hard-negatives"),
    ],
)
def test_an_unknown_device_is_refused_also_where_nothing_is_to_do(
    run: Any, words: tuple[str, ...]
) -> None:
    assert "--device: unknown device 'foo:1'; there are: cpu, cuda" in bad(
        run, *words, "--device", "foo:1", "--params", PARAMS
    )


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_place_that_may_not_be_written_is_named_with_what_to_do(number: int, capfd: Any) -> None:
    assert cli._say_refused(OSError(number, os.strerror(number), "results/report.html")) == 2
    assert capfd.readouterr().err == (
        f"error: {os.strerror(number)}: results/report.html; change its permissions or those of "
        "its folder, or choose another place\n"
    )


def test_numbers_of_a_plain_matrix_are_not_recorded(
    run: Any, perfect: Path, tmp_path: Path
) -> None:
    said = bad(run, "evaluate", "--system", perfect, "--record", "--params", PARAMS)
    assert "does not record what made it" in said
    assert not (tmp_path / "results").exists()


def test_extract_takes_a_backend_and_warns_of_bf16(
    run: Any,
    job: extraction.ExtractionJob,
    tmp_path: Path,
    given_cpu: dict[str, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backend, "_without_avx2", lambda: False)  # `auto` is OpenVINO
    job.manifest.save(tmp_path / "data" / "sample.parquet")
    engine = (
        "{engine: grid, network: test_efficientnet, weights: untrained, image_size: 64, grid: 2}"
    )
    arguments = [
        "extract",
        "--feature",
        "grid",
        "--params",
        PARAMS,
        "-S",
        f"features.light.grid={engine}",
    ]
    assert "computes fp32 on the cpu, got bf16" in bad(
        run, *arguments, "--backend", "openvino", "--precision", "bf16"
    )
    code, _, err = run(*arguments)
    assert (code, "bf16" in err) == (0, False)
    store = tmp_path / "features" / "sample" / "grid.zarr"
    assert read_header(store)[1]["backend"].startswith("openvino ")
    assert "is torch" in bad(run, *arguments, "--backend", "torch")
    if given_cpu["bf16 slower"] > 1:
        slower = "precision bf16: this CPU multiplies 24 times slower with it"
        assert slower in bad(run, *arguments, "--precision", "bf16", "--if-changed", "redo")
        return
    code, out, err = run(*arguments, "--precision", "bf16", "--if-changed", "redo")
    assert (code, "24 images extracted" in out) == (0, True)
    assert "warning: bf16 changes a CNN's features" in err
    assert read_header(store)[1]["backend"] == "torch"


@pytest.fixture
def perfect(tmp_path: Path) -> Path:
    np.save(tmp_path / "perfect.npy", np.repeat(np.eye(6, dtype=np.float32), 5, axis=1))
    return tmp_path / "perfect.npy"


@pytest.mark.specification
def test_evaluate_anybodys_matrix(run: Any, perfect: Path) -> None:
    code, out, _ = run(
        "evaluate", "--system", perfect, "--captions-per-image", "5", "--json", "--params", PARAMS
    )
    (metrics,) = json.loads(out)
    assert code == 0
    assert metrics["i2t"]["R@1"] == metrics["t2i"]["R@10"] == 100
    assert metrics["RSUM"] == 600
    code, out, _ = run(
        "evaluate", "--system", perfect, "--folds", "3", "--json", "--params", PARAMS
    )
    assert len(json.loads(out)[0]["folds"]) == 3
    code, out, _ = run("evaluate", "--system", perfect, "--params", PARAMS)
    assert "RSUM 600.0" in out


def test_evaluate_reads_zarr(run: Any, tmp_path: Path) -> None:
    zarr.save_array(tmp_path / "m.zarr", np.ones((4, 8), np.float32))
    code, out, _ = run(
        "evaluate", "--system", "m.zarr", "--captions-per-image", "2", "--json", "--params", PARAMS
    )
    (metrics,) = json.loads(out)
    assert (code, metrics["t2i"]["R@1"]) == (0, 25)  # all equal: exactly chance
    assert metrics["tied"] == {"i2t": 4, "t2i": 8}


@pytest.mark.specification
def test_settings_are_printed_as_they_hold(run: Any, tmp_path: Path) -> None:
    code, out, _ = run("settings", "--all")
    assert (code, settings.load(Path(PARAMS)).model_dump(mode="json", by_alias=True)) == (
        0,
        from_yaml(out),
    )
    assert "defaults.yaml" in out.splitlines()[0]
    Path("params.yaml").write_text(
        Path(PARAMS)
        .read_text("utf-8")
        .replace("recipes: {}", "recipes: {mine: {base: vse2ad-gpo, learning_rate: 0.1}}"),
        encoding="utf-8",
    )
    code, out, _ = run("settings", "recipes.mine", "-S", "recipes.mine.drop_items=0.3")
    found = from_yaml(out)
    assert (found["learning_rate"], found["drop_items"], found["text_pooling"]) == (
        0.1,
        0.3,
        {"name": "gpo"},
    )
    names = run("settings", "recipes", "--names")[1].splitlines()
    assert {"mine", "vse2ad"} < set(names)
    assert all(run("settings", f"recipes.{name}")[0] == 0 for name in names[:2])
    assert run("settings", "training.coco.epochs")[0] == 2
    assert run("settings", "training.paper.epochs")[1] == "25\n"
    Path("data").mkdir(exist_ok=True)
    Path("data", "f8k.parquet").touch()
    assert run("settings", "training.f8k.epochs", "-S", "presets.f8k=paper")[1] == "25\n"
    assert "unknown setting 'mien'; did you mean mine?" in bad(run, "settings", "recipes.mien")
    sections = run("settings")[1].splitlines()
    assert len(sections) < 30
    names = [line.split()[0] for line in sections if re.match(r"\w+ +[A-Z]", line)]
    assert names == [*settings.Settings.model_fields]
    assert "--all prints all settings" in bad(run, "settings", "run", "--all")


@pytest.mark.specification
def test_evaluate_with_a_manifest(run: Any, scenes: Manifest, tmp_path: Path) -> None:
    scenes.save(tmp_path / "m.parquet")
    split = scenes.split("test")
    order = (split.caption_image[None] == np.arange(len(split.image_ids))[:, None]).astype(
        np.float64
    )
    np.save(tmp_path / "s.npy", order)
    code, out, _ = run(
        "evaluate", "--system", "s.npy", "--manifest", "m.parquet", "--json", "--params", PARAMS
    )
    assert (code, json.loads(out)[0]["RSUM"]) == (0, 600)
    np.save(tmp_path / "t.npy", order.T)
    assert "it is transposed" in bad(
        run, "evaluate", "--system", "t.npy", "--manifest", "m.parquet", "--params", PARAMS
    )


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        (np.full((2, 10), np.nan), (), "row 0"),
        (
            np.ones((2, 9)),
            (),
            "the matrix is 2 x 9, expected 2 images x 10 captions (5 captions an image)",
        ),
        (np.ones((2, 10)), ("--protocol", "flickr30k_1k"), "1000 images, received 2"),
        (np.ones((2, 10)), ("--folds", "3"), "cannot be cut into 3 folds"),
        (np.array([[{}] * 5], dtype=object), (), "m.npy"),
        (np.ones(5), (), "expected"),
    ],
)
def test_evaluate_refuses(
    run: Any, tmp_path: Path, content: np.ndarray, arguments: tuple[str, ...], said: str
) -> None:
    np.save(tmp_path / "m.npy", content, allow_pickle=True)
    assert said in bad(run, "evaluate", "--system", "m.npy", *arguments, "--params", PARAMS)


def test_extract_says_at_once_what_the_papers_features_lack(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.foundation.files.weights._on_hub", lambda known: False)
    said = bad(run, "extract", "--dataset", "coco", "--feature", "grid", "--params", PARAMS)
    for word in (
        "(1) grid: weights 'butd-resnet101'",
        "region: weights 'butd-36'",
        "patch: weights 'vit-base",
    ):
        assert word in said


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"),
        RuntimeError(
            "[enforce fail] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"
        ),
    ],
)
def test_too_little_memory_is_said_in_one_line(
    run: Any, perfect: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def short(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("pipeline.judge.systems.scores.measured.measure", short)
    code, _, err = run("evaluate", "--system", perfect)
    *notes, said = err.splitlines()
    assert (code, said) == (
        1,
        "error: out of memory; use smaller batches and run again to resume",
    )
    assert [note for note in notes if "(assumed)" not in note] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("tables=[vse2ad_tabel1]", "unknown table 'vse2ad_tabel1'; did you mean vse2ad_table1?"),
        ("figures=[negative]", "unknown figure 'negative'; did you mean negatives?"),
        ("recipes.vse2ad.objective.name=adopp", "unknown objective 'adopp'; did you mean adopt?"),
        (
            "recipes.vse2ad.text_pooling.tokn=false",
            "unknown option of the pooling adpool, 'tokn'; did you mean token?",
        ),
        (
            "run={dataset: sample, features: [region], ensembles: [], texts: [bigru], recipes: [vse2ad, late], seeds: [0], "
            "ablations: [], rescorers: [{name: nnn}]}",
            "run.rescorers: heads of late score pairs and have no vectors of train; say `bank: test`, or leave one of the two "
            "out",
        ),
        (
            "features.light.patch.image_sze=64",
            "unknown option of the engine patch, 'image_sze'; did you mean image_size?",
        ),
    ],
)
def test_the_plan_refuses_what_a_later_step_would(run: Any, change: str, said: str) -> None:
    """Else an extraction of days would end at a mistyped name."""
    assert said in bad(run, "lab", "plan", "--params", PARAMS, "-S", change)
