"""What a shell completes: names of recipes, data sets, heads and systems, of the project and as
they are shipped.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from full_disk import no_file_larger_than

from pipeline.foundation.parts import extension
from stages import cli, options

pytestmark = pytest.mark.slow


def completed(*words: str) -> list[str]:
    *before, typed = words
    return [
        item.value
        for item in ShellComplete(cli.cli, {}, "pipeline", "_PIPELINE_COMPLETE").get_completions(
            before, typed
        )
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("train", "--recipe", "mine"), ["mine-deep"]),
        (("train", "--recipe", "vse2ad-no"), ["vse2ad-noadopt"]),
        (("train", "--dataset", ""), ["coco", "flickr30k", "photos"]),
        (("score", "--system", "vse"), ["vse2ad-RG-bigru-s0", "vse2ad-region-bigru-s0"]),
        (("compare", "vse2ad-RG-bigru-s0", "vse"), ["vse2ad-RG-bigru-s0"]),
        (("rerank", "--retriever", ""), ["vse2ad-RG-bigru-s0"]),
        (("manifest", "flickr3"), ["flickr30k"]),
        (("embed", "photos", "--system", ""), ["clip:", "vse2ad-region-bigru-s0"]),
        (("settings", "training.light.ep"), ["training.light.epochs"]),
        (("settings", "recipes.mine"), ["recipes.mine-deep"]),
        (("settings", "ru"), ["run"]),
    ],
)
def test_names_of_the_project_are_completed(
    words: tuple[str, ...], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "heads/photos/vse2ad-region-bigru-s0",
        "similarities/photos/vse2ad-RG-bigru-s0.zarr",
        "manifests/recipes",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "manifests/recipes/mine-deep.yaml").write_text("base: vse2ad\n")
    (tmp_path / "params.yaml").write_bytes((Path(__file__).parents[2] / "params.yaml").read_bytes())
    (tmp_path / "data").mkdir()
    (tmp_path / "data/photos.parquet").touch()
    monkeypatch.chdir(tmp_path)
    assert set(expected) <= set(completed(*words))
    assert all(name.startswith(words[-1]) for name in completed(*words))
    assert not {"weights", "claims"} & set(completed(*words))
    root = ("--root", str(tmp_path))
    monkeypatch.chdir("/")
    assert set(expected) <= set(completed(words[0], *root, *words[1:]))


def test_recipes_of_extensions_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "defaults.yaml"
    file.write_text("recipes: {of-an-extension: {base: vse2ad}}\n", encoding="utf-8")
    monkeypatch.setattr(extension, "files", lambda name: iter([file]))
    assert completed("train", "--recipe", "of-an") == ["of-an-extension"]


@pytest.mark.parametrize("command", [("embed", "photos"), ("lab", "hard-negatives")])
def test_where_a_head_is_asked_for_no_ensemble_is_offered(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "heads/photos/vse2ad-region-bigru-s0",
        "heads/photos/vse2ad-region-bigru-s0.successor",
        "similarities/photos/vse2ad-RG-bigru-s0.zarr",
    ):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert completed(*command, "--system", "vse2ad") == ["vse2ad-region-bigru-s0"]


def test_where_embeddings_are_searched_none_without_them_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "vse2ad-region-bigru-s0.zarr/image_embeddings",
        "val/clip.zarr/image_embeddings",
        "vse2ad-RG.zarr",
    ):
        (tmp_path / "similarities/photos" / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert completed("search", "a house", "--system", "") == ["clip", "vse2ad-region-bigru-s0"]


def test_systems_of_the_clone_are_not_those_of_another_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "clone/manifests/recipes",
        "clone/heads/photos/vse2ad-grid-bigru-s0",
        "clone/data",
        "project",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "clone/data/photos.parquet").touch()
    (tmp_path / "clone/manifests/coco.yaml").touch()
    monkeypatch.setattr(options, "files", lambda package: tmp_path / "clone" / package)
    monkeypatch.chdir(tmp_path / "project")
    assert completed("embed", "photos", "--system", "vse2ad") == []
    assert completed("train", "--dataset", "") == ["coco"]
    monkeypatch.chdir(tmp_path / "clone")
    assert completed("embed", "photos", "--system", "vse2ad") == ["vse2ad-grid-bigru-s0"]


@pytest.mark.parametrize("typed", ["training.none.", "run.dataset.", "none"])
def test_what_is_no_section_of_the_settings_completes_to_nothing(typed: str) -> None:
    assert completed("settings", typed) == []


def test_commands_of_groups_are_completed_without_being_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cli.lazy, "imported", None)
    assert completed("sto") == ["store"]
    of_core = list(cli.GROUPS["store"][1])
    of_extensions = [
        name.removeprefix("store ") for name in extension.commands() if name.startswith("store ")
    ]
    assert completed("store", "") == of_core + of_extensions
    assert "--version" in completed("--")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_it_is_installed_once(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    startup = tmp_path / f".{shell}rc"
    if shell != "fish":
        startup.write_text("alias ll='ls -l'")
    script = CliRunner().invoke(cli.cli, ["completion", shell]).output
    first, second = (
        CliRunner().invoke(cli.cli, ["completion", "--install"]).output for _ in range(2)
    )
    (written,) = (file for file in tmp_path.rglob("*pipeline*") if file.is_file())
    assert written.read_text() == script.removesuffix("\n")
    assert f"{written}: written" in first
    assert f"type: source {written}" in first
    assert f"{written}: up to date" in second
    if shell != "fish":
        assert startup.read_text().splitlines()[0] == "alias ll='ls -l'"
        assert startup.read_text().count(f"source {written}") == 1
        assert f"{startup}: up to date" in second
    elsewhere = CliRunner().invoke(cli.cli, ["completion"], env={"SHELL": "/bin/tcsh"}).exception
    assert str(elsewhere) == "unknown shell 'tcsh'; there are: bash, zsh, fish"


def test_the_file_that_a_shell_reads_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    install = ["completion", "bash", "--install"]
    former = b"export NAME=J\xf6rg\n" * 400 + b"alias"  # Latin-1, its last line without an end
    dotfiles, startup = tmp_path / "dotfiles", tmp_path / ".bashrc"
    dotfiles.write_bytes(former)
    dotfiles.chmod(0o600)
    startup.symlink_to(dotfiles)
    with no_file_larger_than(len(former) + 10):
        assert isinstance(CliRunner().invoke(cli.cli, install).exception, OSError)
    assert dotfiles.read_bytes() == former
    assert CliRunner().invoke(cli.cli, install).exit_code == 0
    assert dotfiles.read_bytes().startswith(former + b"\nsource ")
    assert (startup.is_symlink(), dotfiles.stat().st_mode & 0o777) == (True, 0o600)
    startup.unlink()
    os.mkfifo(startup)
    assert "no regular file" in str(CliRunner().invoke(cli.cli, install).exception)


def test_bash_completes_by_the_script(tmp_path: Path) -> None:
    script = CliRunner().invoke(cli.cli, ["completion", "bash"]).output
    (tmp_path / "completion.bash").write_text(script)
    program = f"pipeline() {{ {sys.executable} -m stages.cli; }}; . {tmp_path}/completion.bash; COMP_CWORD=2; "
    typed = "COMP_WORDS=(pipeline store ve); _pipeline_completion pipeline ve store; echo ${COMPREPLY[@]}"
    ran = subprocess.run(
        ["bash", "--norc", "-c", program + typed], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "verify\n"
