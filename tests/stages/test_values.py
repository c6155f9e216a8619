"""What every option of every command refuses before anything is loaded: no value, no number, no
place, no address.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from pipeline.foundation.compute import cluster
from pipeline.foundation.files.atomic import exclusive
from pipeline.foundation.parts.errors import InputError
from pipeline.make.training.processes import launch
from stages import cli, values

pytestmark = pytest.mark.slow

Refused = Callable[..., str]


def options() -> Iterator[tuple[str, click.Parameter]]:
    for name in cli.commands():
        yield from ((name, each) for each in cli.command(name).params)


def test_no_option_of_any_command_takes_what_is_no_number() -> None:
    numbers = [each for _, each in options() if isinstance(each.type, click.types.FloatParamType)]
    assert len(numbers) >= 3
    for each in numbers:
        for value in ("nan", "inf", "-inf", "1e999"):
            with pytest.raises(click.BadParameter):
                each.type.convert(value, each, None)


def test_no_option_of_any_command_takes_empty_text() -> None:
    for _, each in options():
        if isinstance(each, click.Option) and each.is_flag:
            continue
        for value in ("", "  "):
            with pytest.raises((click.BadParameter, click.UsageError)):
                each.type.convert(value, each, None)


def test_an_option_of_one_value_is_refused_where_it_is_given_twice() -> None:
    tried = set()
    for name, each in options():
        if not isinstance(each, click.Option) or each.is_flag or each.multiple:
            continue
        words = [each.opts[-1], *["1"] * each.nargs]
        with pytest.raises(InputError, match=r"^[^\n]* is given twice; give it once$"):
            cli.command(name).make_context(name, [*words, *words])
        tried.add(each.opts[-1])
    assert tried > {"--ties", "--beside", "--published", "--embeddings", "--card", "--to", "--log"}


# Option -> commands where it means something else, which its help says.
OTHER_MEANINGS = {
    "--embeddings": {"add"},
    "--feature": {"extract"},
    "--format": {"lab hard-negatives"},
    "--image": {"trace"},
    "--images": {"init", "manifest"},
    "--name": {"rerank"},
    "--only": {"tables"},
    "--weight": {"rerank"},
    "--metric": {"board"},
    "--qrels": {"board"},
    "--split": {"add", "board", "ensemble", "evaluate", "compare", "explain", "lab study", "noise"},
    "--system": {"evaluate"},
}


def test_an_option_has_one_name_and_type_in_all_commands() -> None:
    every = defaultdict[str, dict[str, str]](dict)
    for command, option in options():
        flag = option.opts[0]
        if isinstance(option, click.Option) and command not in OTHER_MEANINGS.get(flag, ()):
            type_ = None if flag == "--out" else option.type.to_info_dict()
            check = option.callback and option.callback.__qualname__
            every[flag][command] = str(
                [(option.name or "").removesuffix("s"), type_, option.metavar, check]
            )
    assert [found for found in every.values() if len({*found.values()}) > 1] == []


@pytest.mark.specification
@pytest.mark.parametrize(
    "words",
    [
        ("train", "--feature", "region", "--noise", "nan"),
        ("rerank", "--weight", "nan"),
        ("ensemble", "x", "--weight", "inf"),
        ("train", "--feature", "region", "-S", "recipes.vse2ad.learning_rate=.inf"),
        ("settings", "-S", "recipes.vse2ad.objective.margin=.nan"),
        ("settings", "-S", "features.light.region.image_size=.inf"),
        ("evaluate", "-S", "evaluate.block_megabytes=.nan"),
    ],
)
def test_what_is_no_number_is_one_line(refused: Refused, words: tuple[str, ...]) -> None:
    assert "finite" in refused(*words)


def test_lists_have_no_empty_names_and_none_twice(refused: Refused) -> None:
    for words in (
        ("tables", "--columns", ""),
        ("tables", "--columns", ","),
        ("tables", "--columns", "r1,,rsum"),
        ("manifest", ""),
        ("compare", "a", ""),
        ("compare", "b,,c", "a"),
        ("tables", "--columns", "r1,rsum,r1"),
        ("settings", ""),
    ):
        assert "empty" in refused(*words) or "one comma" in refused(*words)


@pytest.mark.parametrize(
    "address",
    [
        "s3://",
        "s3:",
        "s3:///x.zarr",
        "s3://bucket",
        "s3://bucket/",
        "s4://bucket/x.zarr",
        "http://host/x.zarr",
    ],
)
def test_an_address_is_checked_before_anything_is_loaded(
    refused: Refused, address: str, tmp_path: Path
) -> None:
    assert "expected the address of a place in an object store" in refused(
        "manifest", "mine", "--out", address
    )
    for words in (
        ("extract", "--feature", "grid", "--out", address),
        ("train", "--feature", "grid", "--out", address),
        ("audit", "sample", "--out", address),
    ):
        assert "is in an object store; name a file or folder of this machine" in refused(*words)
    assert not list(tmp_path.iterdir())


def test_a_root_that_is_not_there_is_refused_and_nothing_is_made(
    refused: Refused, tmp_path: Path
) -> None:
    for words in (["lab", "sample"], ["lab", "plan"], ["evaluate"], ["manifest"]):
        assert "does not exist" in refused(*words, "--root", "typo")
    assert not list(tmp_path.iterdir())


def test_a_mistyped_command_line_begins_no_log(refused: Refused, tmp_path: Path) -> None:
    refused("lab", "sample", "--root", "typo", "--log", "a.log")
    assert not list(tmp_path.iterdir())


@pytest.mark.specification
def test_outputs_go_to_new_places_or_over_results_of_their_kind(
    refused: Refused, tmp_path: Path
) -> None:
    Path("data/photographs").mkdir(parents=True)
    Path("data/photographs/1.jpg").write_bytes(b"a photograph")
    np.save("sims.npy", np.eye(2))
    Path("a.html").touch()
    Path("link.txt").symlink_to("sims.npy")
    for words in (
        ("train", "--feature", "region"),
        ("convert", "model_best.pth"),
        ("extract", "--feature", "grid"),
        ("embed", "sample", "--system", "x"),
        ("store", "import", "scan", "x", "--feature", "region"),
    ):
        said = refused(*words, "--out", "data/photographs")
        assert re.search(r"exists, holds 1.jpg and is no .*; choose another --out", said)
        assert "sims.npy is a file" in refused(*words, "--out", "sims.npy/x").replace("'", "")
    for words in (
        ("search", "red", "--out", "params.yaml"),
        ("manifest", "--out", "params.yaml"),
        ("audit", "sample", "--out", "params.yaml"),
        ("lab", "hard-negatives", "--save", "params.yaml"),
        ("evaluate", "--per-query", "params.yaml"),
    ):
        assert "params.yaml: expected a name that ends in ." in refused(*words)
    for name in ("extract", "train"):
        assert "--images nowhere: no such folder" in refused(
            name, "--feature", "grid", "--images", "nowhere"
        )
    assert "sims.npy is also named by --system" in refused(
        "evaluate", "--embeddings", "sims.npy", "b.npy", "--run", "sims.npy"
    ).replace("--embeddings", "--system")
    for words in (
        ("evaluate", "sims.npy", "--run", "sims.npy"),
        ("evaluate", "sims.npy", "--run", "link.txt"),
        ("evaluate", "--card", "a.html", "b.npy:a.html"),
        ("evaluate", "sims.npy", "--save-qrels", "a.txt", "--run", "./a.txt"),
        ("explain", "sims.npy", "--published", "R@1=1", "--log", "sims.npy"),
        ("compare", "sims.npy", "b.npy", "--log", "link.txt"),
    ):
        assert "is also named by" in refused(*words)
    assert np.array_equal(np.load("sims.npy"), np.eye(2))
    assert [file.name for file in Path("data/photographs").iterdir()] == ["1.jpg"]


def test_a_head_is_trained_into_an_empty_folder_or_over_another_head(tmp_path: Path) -> None:
    out = values.OutputPath("head")
    (tmp_path / "new").mkdir()
    assert out.convert(str(tmp_path / "new"), None, None) == tmp_path / "new"
    (tmp_path / "new" / "best.safetensors").write_text("{}")
    (tmp_path / "new" / "best.safetensors").write_bytes(b"")
    assert out.convert(str(tmp_path / "new"), None, None) == tmp_path / "new"


def test_relative_paths_of_all_options_are_below_the_root(
    pipeline: Any, refused: Refused, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    np.save(mine / "sims.npy", np.repeat(np.eye(4, dtype=np.float32), 5, axis=1))
    for system in ("sims.npy", mine / "sims.npy"):
        code, _, err = pipeline(
            "evaluate", "--system", system, "--run", "run.txt", "--log", "a.log", "--root", "mine"
        )
        assert code == 0, err
    assert {file.name for file in mine.iterdir()} >= {"run.txt", "a.log"}
    assert pipeline("compare", "sims.npy", "sims.npy,", "--root", mine)[0] == 2
    shutil.copy(mine / "sims.npy", mine / "b.npy")
    assert pipeline("compare", "sims.npy", "b.npy", "--root", "mine")[0] == 0
    assert "mine/results/metrics.json: no result there" in refused(
        "trace", "results/metrics.json", "--root", "mine"
    )
    for words in (
        ("store", "verify", "x.zarr"),
        ("store", "export", "x.zarr", "--split", "test", "--out", "o"),
        ("store", "rewrite", "x.zarr"),
        ("search", "--queries", "x.zarr"),
        ("convert", "x.zarr"),
        ("manifest", "m", "--annotations", "x.zarr", "--images", "."),
    ):
        assert "mine/" in refused(*words, "--root", "mine"), words
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine"]


def test_tables_that_another_process_writes_are_one_line(pipeline: Any, refused: Refused) -> None:
    with ThreadPoolExecutor(1) as another, ExitStack() as held:
        another.submit(held.enter_context, exclusive(Path("results/tables"))).result()
        assert "results/tables: another process is writing to it; wait for it to end" in refused(
            "tables", "--only", "published"
        )
    assert pipeline("tables", "--only", "published")[0] == 0


def test_processes_that_no_machine_has_are_not_started(refused: Refused) -> None:
    for words in (
        ("train", "--feature", "region", "--processes"),
        ("extract", "--feature", "grid", "--workers"),
        ("score", "--workers"),
        ("store", "verify", "x.zarr", "--workers"),
    ):
        assert "30,000 processes are too many for this machine" in refused(*words, "30000")
    with pytest.raises(InputError, match="too many for this machine"):
        launch(30_000, "cpu")
    with pytest.raises(InputError, match="too many for this machine"), cluster.local(30_000):
        pass


def test_what_is_refused_later_leaves_no_lock_and_no_folder(
    refused: Refused, tmp_path: Path
) -> None:
    refused("store", "verify", "nowhere.zarr", "--repair")
    with pytest.raises(InputError), exclusive(Path("features/mine/region.zarr")):
        raise InputError("refused")
    assert not list(tmp_path.iterdir())


def test_the_plan_refuses_an_encoder_of_no_kind_and_a_study_an_unknown_data_set(
    refused: Refused,
) -> None:
    assert "unknown kind of dual encoder 'clpi'; did you mean clip?" in refused(
        "lab", "plan", "-S", "run.encoders=[{name: a, model: 'clpi:x'}]"
    )
    assert "unknown data set 'smaple'; did you mean sample?" in refused(
        "lab", "study", "--no-training", "-S", "run.dataset=smaple"
    )


def test_a_system_is_not_compared_with_itself(refused: Refused) -> None:
    np.save("a.npy", np.eye(4, 20))
    assert "a.npy: is named twice; name each once" in refused("compare", "a.npy", "./a.npy")
    assert "expected names with one comma between, each once" in refused(
        "tables", "--columns", "r1,r1"
    )


def test_what_a_command_reads_is_found_in_all_forms_of_naming_it() -> None:
    named = values._possible_files("Ours=of two = i.npy:c.npy,other.npy")
    assert {"i.npy", "c.npy", "other.npy"} <= {name.strip() for name in named}
    assert "a=b.npy" in values._possible_files("a=b.npy")
