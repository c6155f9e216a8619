"""What `pipeline figures` and `pipeline report` show of a run, and what they refuse or say is
missing; both alike.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import forged
import html5lib
import invented_facts
import numpy as np
import pytest
from matplotlib.figure import Figure

from pipeline.foundation import settings
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, few
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns
from pipeline.judge.systems.scores.system import System
from stages import scored_systems
from stages.named_systems import _seeds, say_read_as, saying_read_as

pytestmark = pytest.mark.slow

COMMANDS = ("figures", "report")
FIGURE = "retrieved_images"  # one that shows queries


@pytest.fixture
def run(
    pipeline: Callable[..., Any],
    evaluated: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., str]:
    """The invented run, evaluated; then a command with only what shows queries: what it printed.
    Drawings are not looked at, and left empty.
    """
    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)
    shutil.copytree(evaluated, tmp_path, dirs_exist_ok=True)

    def show(command: str, *options: str | Path) -> str:
        code, out, err = pipeline(command, "-S", f"figures=[{FIGURE}]", *options)
        assert code == 0, err
        return str(out)

    return show


def shown(tmp_path: Path, command: str) -> str:
    """Where a reader sees whose queries these are."""
    if command == "figures":
        return (
            (tmp_path / "results" / "figures" / "index.md")
            .read_text(encoding="utf-8")
            .replace("\\", "")
        )
    return " ".join(section(tmp_path).split())


def section(tmp_path: Path, name: str = "explorer") -> str:
    tree = html5lib.parse(
        (tmp_path / "results" / "report.html").read_text(encoding="utf-8"),
        namespaceHTMLElements=False,
    )
    return "".join(tree.find(f".//section[@id='{name}']").itertext())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_first_of_the_run_that_is_scored_is_shown(
    run: Any, tmp_path: Path, command: str
) -> None:
    run(
        command,
        "-S",
        "run.ablations=[]",
        "-S",
        "run.recipes=[vse_infty, vse2ad]",
        "-S",
        "run.texts=[bert, bigru]",
        "-S",
        "run.seeds=[3, 0]",
    )
    of_three = "VSE+2AD, Region+Grid+Patch, BiGRU, seed 0"
    if command == "figures":
        assert of_three in shown(tmp_path, command)
    else:
        assert of_three in section(tmp_path, "hubs")
        assert "Region+Grid+Patch: VSE+2AD, BiGRU, seed 0" in section(tmp_path, "members")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_without_scores_is_named(run: Any, tmp_path: Path, command: str) -> None:
    run(command, "-S", "run.ablations=[]", "-S", "run.recipes=[vse_infty, vse_pp]")
    assert "(recipe vse_infty, vse_pp; text encoder bigru; seed 0)" in shown(tmp_path, command)


def test_the_page_says_what_its_systems_are_and_what_stands_in(run: Any, tmp_path: Path) -> None:
    run("report")
    names = [
        f"VSE+2AD, {features}, BiGRU, seed 0"
        for features in ("Region", "Region+Grid", "Region+Grid+Patch")
    ]
    hubs = section(tmp_path, "hubs")
    assert [name for name in names if name not in hubs] == []
    assert "stand-ins made these features: patch (patch-small, untrained)" in " ".join(
        section(tmp_path, "results").split()
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_what_belongs_to_another_state_is_refused(
    run: Any, refused: Callable[..., str], tmp_path: Path, command: str
) -> None:
    file = tmp_path / "results" / "metrics.json"
    before = file.read_text()
    metrics = json.loads(before)
    metrics["vse2ad-RG-bigru-s0"]["record"]["facts"]["members"][0]["checkpoint"] = "older"
    file.write_text(json.dumps(metrics))
    assert "pipeline evaluate" in refused(command)
    file.write_text(before)
    head = tmp_path / "heads" / "sample" / "vse2ad-grid-bigru-s0"
    with (head / "best.safetensors").open("ab") as checkpoint:
        checkpoint.write(b"\0")
    assert "best.safetensors: changed after it was written" in refused(command)
    forged.artefact(head)
    assert "is not the head that was scored; run `pipeline score`" in refused(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_broken_head_outside_the_run_is_left_out_and_said_to_be(
    run: Any, refused: Callable[..., str], tmp_path: Path, command: str
) -> None:
    heads = tmp_path / "heads" / "sample"
    shutil.copytree(heads / "vse2ad-grid-bigru-s0", heads / "tried")
    (heads / "tried" / "record.json").write_text("{")
    assert "left out: heads/sample/tried/record.json: damaged" in run(command)
    (heads / "vse2ad-grid-bigru-s0" / "record.json").write_text("{")
    assert "vse2ad-grid-bigru-s0/record.json: damaged" in refused(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_photographs_are_found_from_another_working_directory(
    run: Any, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    said = run(command, "--root", tmp_path)
    assert {"figures": FIGURE, "report": "1 of 6 photographs not readable in"}[command] in said


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "figures",
            "left out, it needs the photographs, and photographs is no folder: name it with `pipeline figures",
        ),
        (
            "report",
            "6 of 6 photographs not readable in photographs, there is no such folder; name it with --images",
        ),
    ],
)
def test_a_missing_folder_of_photographs_is_named(
    run: Any, tmp_path: Path, command: str, said: str
) -> None:
    shutil.rmtree(tmp_path / "photographs")
    assert said in run(command)


def test_a_manifest_of_features_alone_has_no_photographs_to_read(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "data" / "sample.parquet"
    replace(Manifest.load(path), images_folder=Path()).save(path)
    assert "6 of 6 photographs have no folder in the manifest; name it with --images" in run(
        "report"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_is_given_must_be_one(
    run: Any, refused: Callable[..., str], command: str
) -> None:
    assert "--images /nonexistent: no such folder" in refused(command, "--images", "/nonexistent")


def test_of_a_plain_matrix_only_what_is_assumed_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "s.npy", np.zeros((2, 10)))
    np.savez(tmp_path / "a.npz", sims=np.zeros((2, 10)))
    assumed = "each image's 5 captions follow one another (assumed)"
    cases = (
        ("s.npy", Columns(), f"s.npy: {assumed}\n"),
        ("s.npy", Columns(captions_per_image=5), ""),
        ("a.npz", Columns(), f"a.npz: read as a NumPy archive: sims float64 [2, 10]; {assumed}\n"),
    )
    for name, columns, expected in cases:
        say_read_as([(name, open_system(name, columns, root=tmp_path).read_as)])
        assert capsys.readouterr().err == expected


def test_what_several_files_were_read_as_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where one of them is refused."""
    array = "a NumPy array: float64 [2, 10]"
    files = [(f"{letter}.npy", f"{array}; in order (assumed)") for letter in "abcde"]
    files.insert(2, ("plain.npy", array))
    files[3:3] = [("other.npz", "an archive")] * 2  # right answers for two systems
    with contextlib.suppress(InputError), saying_read_as() as read_as:
        read_as.extend(files)
        raise InputError("f.npy: is damaged")
    assert capsys.readouterr().err == (
        "a.npy, b.npy, c.npy and 2 more: in order (assumed)\nother.npz: read as an archive\n"
    )


def test_of_many_names_the_first_are_listed_and_the_others_counted() -> None:
    assert few(["a", "b", "c"]) == "a, b, c"
    assert few(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_a_lone_head_is_its_ensemble_of_one_unless_the_head_differs() -> None:
    """Also after the same steps; a user's own ensemble is a system of its own, and seeds stay
    together.
    """
    head, other = invented_facts.of_head("mine"), invented_facts.of_head("other", text="bert")
    second = invented_facts.of_head("mine-s1", seed=1)
    again = invented_facts.of_head("mine", "trained again")

    def mean(*heads: Any, **more: Any) -> Any:
        fusion = {"method": "mean", "weights": [1 / len(heads)] * len(heads)}
        fusion["members"] = [each.member.head for each in heads]
        fusion["features"] = ["grid"] * len(heads)
        return invented_facts.ensemble(
            "G", [each.member for each in heads], fusion=fusion | more, features={"grid": "grid2"}
        )

    csls = invented_facts.rescored
    for systems, expected in (
        ({"mine": head, "G": mean(head)}, {"mine": "G"}),
        ({"G": mean(head), "mine": head}, {"mine": "G"}),
        ({"mine": head, "G": mean(head, other)}, {}),
        ({"mine": head, "G": mean(again)}, {}),
        ({"mine": head, "G": mean(other)}, {}),
        ({"mine": head, "G": mean(head, features=[])}, {}),
        ({"mine": csls(head), "G": csls(mean(head))}, {"mine": "G"}),
        ({"mine": head, "G": csls(mean(head))}, {}),
        ({"mine": head, "other": other, "G": mean(head)}, {"mine": "G"}),
        ({"mine": head, "mine-s1": second, "G": mean(head)}, {}),
        (
            {"mine": head, "mine-s1": second, "G": mean(head), "G-s1": mean(second)},
            {"mine": "G", "mine-s1": "G-s1"},
        ),
    ):
        opened = {name: SimpleNamespace(made_from=made) for name, made in systems.items()}
        assert scored_systems.twice(opened) == expected, systems


def test_what_can_only_be_measured_alone_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[list[str]] = []
    monkeypatch.setattr(
        scored_systems.checks, "refuse_stale", lambda stores, paths: compared.append([*stores])
    )
    head = invented_facts.of_head("mine")
    among_distractors = invented_facts.reranked(head, distractors=["others"])

    def stored(name: str, made: Any) -> Any:
        return SimpleNamespace(made_from=made, path=Path(f"{name}.zarr"))

    paths = Paths("")
    for made, reason in (
        (among_distractors, "was reranked among distractors; measure it"),
        (invented_facts.of_file(), "is made of plain matrices"),
    ):
        with pytest.raises(InputError, match=rf"^store.zarr: .*{reason}"):
            scored_systems._refuse_unfit(paths, stored("store", made), {})
    assert compared == []
    fit = stored("store", invented_facts.reranked(head))
    others = {"one": stored("one", head), "two": stored("two", head)}
    for scored, names in (({}, ["store"]), (others, ["one", "store"])):
        scored_systems._refuse_unfit(paths, fit, scored)
        assert compared.pop() == names


def test_systems_by_name_are_those_of_the_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = settings.load(Path(__file__).parents[2] / "params.yaml")
    paths = Paths(tmp_path)
    for split in ("test", "val"):
        paths.similarity(shipped.run.dataset, f"of-{split}", split).mkdir(parents=True)
    opened = SimpleNamespace(made_from=invented_facts.of_head("mine"))
    monkeypatch.setattr(System, "open_named", lambda path: opened)
    monkeypatch.setattr(scored_systems, "_is_beside_run", lambda made, chosen, known: True)
    monkeypatch.setattr(scored_systems, "_refuse_unfit", lambda paths, store, scored: None)
    for split in ("test", "val"):
        score = shipped.score.model_copy(update={"split": split})
        chosen = shipped.model_copy(update={"score": score})
        assert [*scored_systems._made_by_name(paths, chosen, {})] == [f"of-{split}"]


def test_seeds_of_a_system_are_in_the_order_of_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "similarities" / "sample"
    for name in ("mine-s10", "mine-s2", "mine-s0", "mine-other-s1", "mine"):
        (folder / f"{name}.zarr").mkdir(parents=True)
    (folder / "mine.zarr").rmdir()

    def facts(path: Path) -> Any:
        return SimpleNamespace(seed=int(path.stem.rpartition("s")[2]))

    monkeypatch.setattr(layout, "finished", lambda path: path)
    monkeypatch.setattr(layout, "facts", facts)
    chosen = settings.load(Path(__file__).parents[2] / "params.yaml")
    for turned in (False, True):
        monkeypatch.setattr(
            Path, "glob", lambda self, form, turned=turned: sorted(self.iterdir(), reverse=turned)
        )
        places = _seeds(Paths(tmp_path), chosen, "sample", "mine")
        assert [Path(text).stem for text, _ in places] == ["mine-s0", "mine-s2", "mine-s10"]
