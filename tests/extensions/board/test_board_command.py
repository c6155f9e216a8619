"""`pipeline board`: the numbers of `evaluate` and `compare`, and a missing cell is missing."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

IMAGES = 60
QUALITY = {"good": 0.7, "fair": 0.9, "poor": 1.6}


@pytest.fixture
def hits(tmp_path: Path, rng: np.random.Generator) -> Path:
    """Scores of three systems on two tasks, of two on a third: hits/TASK/SYSTEM.npy."""
    folder = tmp_path / "hits"
    for task in ("a", "b", "c"):
        (folder / task).mkdir(parents=True)
        right = 2 * np.repeat(np.eye(IMAGES), 5, axis=1)
        common = rng.normal(size=right.shape)
        for system, noise in QUALITY.items():
            if (task, system) == ("c", "poor"):
                continue
            scores = right + 0.5 * common + noise * rng.normal(size=right.shape)
            np.save(folder / task / f"{system}.npy", scores)
    return folder


def made(pipeline: Any, *arguments: str | Path) -> dict[str, Any]:
    code, out, err = pipeline("board", *arguments, "--json")
    assert code == 0, err
    board: dict[str, Any] = json.loads(out)
    return board


@pytest.mark.usefixtures("hits")
def test_a_task_has_the_numbers_of_evaluate_and_the_differences_of_compare(pipeline: Any) -> None:
    task = made(pipeline, "hits")["tasks"][0]
    by_name = dict(zip(("fair", "good", "poor"), task["systems"], strict=True))
    _, out, _ = pipeline("evaluate", "hits/a/good.npy", "--json")
    (measured,) = json.loads(out)
    assert by_name["good"]["value"] == pytest.approx(measured["RSUM"])
    assert by_name["good"]["interval"] == pytest.approx(measured["interval"]["RSUM"])
    files = [f"hits/a/{name}.npy" for name in by_name]
    compared = json.loads(pipeline("compare", *files, "--json")[1])
    for number in ("difference", "p", "adjusted"):
        of_pairs = [pair["RSUM"][number] for pair in compared]
        assert task["pairs"][number] == pytest.approx(of_pairs), number
    assert [row["rank"] for row in by_name.values()] == [[2, 2], [1, 1], [3, 3]]
    assert [row["letters"] for row in by_name.values()] == ["b", "a", "c"]


@pytest.mark.usefixtures("hits")
def test_a_missing_cell_is_missing_and_its_system_has_no_place(pipeline: Any) -> None:
    board = made(pipeline, "hits")
    names = [system["name"] for system in board["systems"]]
    poor = names.index("poor")
    assert board["systems"][poor]["tasks"] == 2
    assert poor not in [row["system"] for row in board["tasks"][2]["systems"]]
    over = board["over_tasks"]
    assert over["unplaced"] == [{"system": poor, "missing": ["c"]}]
    placed = [names[row["system"]] for row in over["systems"]]
    assert placed == ["good", "fair"]
    assert [row["mean_rank"] for row in over["systems"]] == [1, 2]  # poor is in no rank
    assert over["stable"] == [[names.index("good"), names.index("fair")]]
    rows = list(csv.DictReader(pipeline("board", "hits", "--csv")[1].splitlines()))
    assert len(rows) == 8
    assert {row["place"] for row in rows if row["system"] == "poor"} == {""}
    _, out, _ = pipeline("board", "hits")
    assert "poor has no place: it is not measured on c." in " ".join(out.split())
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.usefixtures("hits")
def test_by_a_metric_whose_least_value_is_best_the_order_is_the_same(pipeline: Any) -> None:
    board = made(pipeline, "hits", "--metric", "MeanR")
    task = board["tasks"][0]
    assert task["less_is_better"]
    names = [board["systems"][row["system"]]["name"] for row in task["systems"]]
    by_name = dict(zip(names, task["systems"], strict=True))
    values = [by_name[name]["value"] for name in QUALITY]
    assert values == sorted(values)
    assert [by_name[name]["rank"][0] for name in QUALITY] == [1, 2, 3]
    assert [by_name[name]["letters"] for name in QUALITY] == ["a", "b", "c"]
    placed = [board["systems"][row["system"]]["name"] for row in board["over_tasks"]["systems"]]
    assert placed == ["good", "fair"]


@pytest.mark.usefixtures("hits")
def test_files_of_a_task_are_named_by_pattern_by_commas_and_with_seeds(pipeline: Any) -> None:
    board = made(
        pipeline,
        "x=hits/a/*.npy",
        "y=hits/b/good.npy,hits/b/fair.npy",
        "y=poor=hits/b/poor.npy,hits/c/good.npy",
        "--metric=y=t2i R@5",
    )
    assert [task["name"] for task in board["tasks"]] == ["x", "y"]
    assert [task["metric"] for task in board["tasks"]] == ["RSUM", "t2i R@5"]
    assert board["over_tasks"]["unplaced"] == []
    recalls = []
    for file in ("hits/b/poor.npy", "hits/c/good.npy"):
        (measured,) = json.loads(pipeline("evaluate", file, "--json")[1])
        recalls.append(measured["t2i"]["R@5"])
    names = [system["name"] for system in board["systems"]]
    values = {names[row["system"]]: row["value"] for row in board["tasks"][1]["systems"]}
    assert values["poor"] == pytest.approx(np.mean(recalls))
    assert "y: poor: mean of 2 seeds, query by query" in board["notes"][0]


@pytest.mark.usefixtures("hits")
def test_translations_are_one_unit_and_facts_go_with_their_systems(pipeline: Any) -> None:
    Path("models.csv").write_text("system,parameters,by\ngood,4e8,x\nfair,,x\n")
    arguments = ("hits", "--unit", "words=[ab]", "--rule", "wins", "--models", "models.csv")
    board = made(pipeline, *arguments)
    assert [task["unit"] for task in board["tasks"]] == ["words", "words", "c"]
    assert (board["over_tasks"]["units"], board["over_tasks"]["rule"]) == (2, "wins")
    said = pipeline("board", *arguments)[2]
    assert "note: models.csv: text is left out (by); write numbers, such as 4e8" in said
    facts = {system["name"]: system["facts"] for system in board["systems"]}
    assert facts == {"good": {"parameters": 4e8}, "fair": {}, "poor": {}}
    alone = made(pipeline, "hits", "--unit", "all=*")
    assert alone["over_tasks"] is None
    assert alone["notes"] == ["all 3 tasks are of one unit, all: there are no places over tasks"]


@pytest.mark.usefixtures("hits")
def test_equal_systems_are_not_told_apart_and_one_task_has_no_places(pipeline: Any) -> None:
    Path("again.npy").write_bytes(Path("hits/a/good.npy").read_bytes())
    board = made(pipeline, "a=hits/a/good.npy,again.npy")
    (task,) = board["tasks"]
    assert [row["rank"] for row in task["systems"]] == [[1, 2], [1, 2]]
    assert task["pairs"] == {"difference": [0], "p": [1], "adjusted": [1]}
    assert board["over_tasks"] is None
    assert board["notes"] == ["one task: there are no places over tasks"]
    alone = made(pipeline, "a=hits/a/good.npy")
    assert alone["tasks"][0]["systems"][0]["rank"] == [1, 1]
    assert alone["notes"] == ["good is the only system: there is nothing to compare it with"]


@pytest.mark.usefixtures("hits")
def test_a_language_of_a_file_is_a_task_and_all_of_them_one_unit(pipeline: Any) -> None:
    rows = []
    for image in range(IMAGES):
        languages = ("en", "en", "en", "de", "de")
        rows += [f"{image}.jpg,{image} {at},{way}" for at, way in enumerate(languages)]
    Path("captions.csv").write_text("\n".join(["image,caption,language", *rows]))
    pipeline("manifest", "pictures", "--annotations", "captions.csv", "--without-images")
    board = made(pipeline, "a=hits/a/*.npy", "--manifest", "data/pictures.parquet")
    assert [(task["name"], task["unit"]) for task in board["tasks"]] == [
        ("a de", "a"),
        ("a en", "a"),
    ]
    assert [task["captions"] for task in board["tasks"]] == [2 * IMAGES, 3 * IMAGES]


def test_a_note_names_all_systems_and_tasks_that_it_is_of(
    pipeline: Any, rng: np.random.Generator
) -> None:
    right = np.repeat(np.eye(30), 5, axis=1)
    for task in ("a", "b"):
        Path("unlike", task).mkdir(parents=True)
        for system in ("one", "two", "three"):
            np.save(f"unlike/{task}/{system}.npy", right + rng.normal(size=right.shape))
    (note,) = made(pipeline, "unlike")["notes"]
    assert note.startswith("a, b: three, two: its scores of wrong pairs")


@pytest.mark.usefixtures("hits")
def test_what_cannot_be_ranked_is_one_line(refused: Callable[..., str]) -> None:
    np.save("small.npy", np.eye(7, 35))
    assert refused("board", "a=hits/a/good.npy,small.npy").startswith("error: task a: ")
    assert "two systems are called good" in refused(
        "board", "a=hits/a/good.npy", "a=hits/b/good.npy"
    )
    assert "such as flickr=hits/a/good.npy" in refused("board", "hits/a/good.npy")
    assert "no task is called aa" in refused("board", "hits", "--metric", "aa=R@1")
    assert "choose MeanR" in refused("board", "hits", "--metric", "MedR")
    assert "leave out i2t" in refused("board", "hits", "--metric", "i2t RSUM")
    assert "no task is called z" in refused("board", "hits", "--unit", "u=z")
    assert "a task that is not in it has this name" in refused("board", "hits", "--unit", "a=b,c")
    assert "nowhere: no such folder" in refused("board", "nowhere")
    Path("models.csv").write_text("model,parameters\ngood,1\n")
    assert "expected a column `system`" in refused("board", "hits", "--models", "models.csv")
    Path("models.csv").write_text("system,parameters\ngood,1\ngood,2\n")
    assert "two lines of good" in refused("board", "hits", "--models", "models.csv")
    Path("empty").mkdir()
    assert "holds no tasks" in refused("board", "empty")


def test_the_page_shows_what_is_printed(pipeline: Any) -> None:
    page = Path(__file__).parents[3].joinpath("docs", "board.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    exec(block, {})
    code, out, err = pipeline("board", "scores", "--unit", "scenes=scenes-*")
    assert code == 0, err
    at = 0
    for passage in shown.split("…\n"):
        found = out.find(passage.rstrip(), at)
        assert found >= 0, passage
        at = found
