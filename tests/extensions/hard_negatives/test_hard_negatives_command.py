"""`pipeline lab hard-negatives` with a trained head."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from tiny_dual_encoders import FOLDERS, LIMIT

from pipeline.extensions.hard_negatives import stage as hard_negatives
from pipeline.extensions.hard_negatives.questions import Question
from pipeline.extensions.hard_negatives.systems import OfHead
from pipeline.foundation.manifest import Manifest
from pipeline.judge.systems.scores.made import Unknown

pytestmark = pytest.mark.slow

HEAD = "vse2ad-region-bigru-s0"


@pytest.mark.usefixtures("project")
@pytest.mark.specification
def test_a_head_answers_swaps_and_the_file_of_them_alike(pipeline: Any) -> None:
    code, out, err = pipeline("lab", "hard-negatives", "--system", HEAD, "--save", "swaps.csv")
    assert code == 0, err
    assert "ties count by the mean" in out
    assert "[ " not in out  # intervals are written as by evaluate
    assert max(len(line) for line in out.splitlines() if line.startswith("  ")) <= 80  # the tables
    assert "warning" not in err
    code, again, _ = pipeline("lab", "hard-negatives", "swaps.csv", "--system", HEAD)
    assert again.splitlines()[:-1] == out.splitlines()[1:-1]
    first, second = (
        json.loads(Path(f"results/hard-negatives/sample/{name}-{HEAD}.json").read_text())
        for name in ("sample-swaps", "swaps")
    )
    assert first == second
    assert first["made_from"]["member"]["head"] == HEAD
    assert first["accuracies"][-1]["questions"] == first["questions"]["count"] > 10
    assert first["captions"] | {"count": 0} == {"count": 0, "cut": 0, "longest": 254}


def test_what_is_cut_what_is_unknown_and_what_was_trained_on_is_said(
    pipeline: Any, project: Path, scenes: Manifest
) -> None:
    trained = scenes.images.loc[scenes.images["split"] == "train", "file"].tolist()
    long = "red " * 300
    Path("q.csv").write_text(
        "image,positive,negative\n" + f"{trained[0]},{long}cube,{long}ball\n"
        f"{trained[1]},xyzzy,plugh\nnowhere.jpg,a,b\n"
    )
    code, out, err = pipeline("lab", "hard-negatives", "q.csv", "--system", HEAD, "--out", "r.json")
    assert code == 0, err
    assert "2 of 4 captions have more than 254" in out
    assert "2 right captions look like a wrong one to it" in out
    assert "1 question left out: " in err
    assert (
        out.splitlines()[-1] == "r.json: 2 questions"
    )  # those that were asked, not all of the file
    assert "trained on 2 of these 2 images" in err
    assert json.loads(Path("r.json").read_text())["accuracies"][0]["value"] == 50


def test_a_dual_encoder_answers_from_the_image_files(pipeline: Any, project: Path) -> None:
    FOLDERS["clip"][1](project / "tiny")
    code, out, err = pipeline("lab", "hard-negatives", "--system", "clip:tiny", "--out", "r.json")
    assert code == 0, err
    said = json.loads(Path("r.json").read_text())
    assert said["accuracies"][-1]["questions"] > 10
    assert said["made_from"]["member"]["head"] == "tiny"
    assert said["images"]["trained_on"] is None
    assert f"more than {LIMIT}" in out


@pytest.mark.parametrize("name", ["clip", "siglip2"])
def test_captions_that_differ_in_what_an_encoder_does_not_read_tie(
    pipeline: Any, project: Path, scenes: Manifest, name: str
) -> None:
    kind, make = FOLDERS[name]
    make(project / "tiny")
    first, second = scenes.images["file"].iloc[:2]
    Path("q.csv").write_text(
        f"image,positive,negative\n{first},A Red Cube,a red cube\n"
        f"{second},{'a red ball ' * 40}left,{'a red ball ' * 40}right\n"
    )
    code, out, err = pipeline(
        "lab", "hard-negatives", "q.csv", "--system", f"{kind}:tiny", "--out", "r.json"
    )
    assert code == 0, err
    assert "2 right captions look like a wrong one to it" in out
    said = json.loads(Path("r.json").read_text())
    assert (
        said["accuracies"][-1]["value"],
        said["accuracies"][-1]["ties"],
        said["questions"]["read_alike"],
    ) == (50, 2, 2)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    "command", [("embed", "sample"), ("lab", "hard-negatives"), ("score",), ("search", "a house")]
)
def test_what_is_made_of_scores_is_refused_where_vectors_are_needed(
    command: tuple[str, ...], pipeline: Any, refused: Callable[..., str]
) -> None:
    def said() -> str:
        return refused(*command, "--system", "vse2ad-R-bigru-s0")

    before = said()  # it is not made yet
    assert pipeline("ensemble", "R")[0] == 0
    assert before == said()
    assert before.startswith(
        "error: vse2ad-R-bigru-s0: `pipeline ensemble R --recipe vse2ad --text bigru --seed 0` "
        "makes it of other systems' scores"
    )
    assert before.endswith(f" its members: {HEAD}")
    rescored = ("--system", f"{HEAD}+csls", "-S", "run.rescorers=[{name: csls}]")
    assert refused(*command, *rescored).endswith(f"makes it of the scores of {HEAD}")


def test_of_one_image_there_is_no_other_and_a_trace_says_what_the_file_is(
    pipeline: Any, refused: Callable[..., str], project: Path, scenes: Manifest
) -> None:
    Path("q.csv").write_text(
        f"image,positive,negative\n{scenes.images['file'].iloc[0]},a red cube,a blue cube\n"
    )
    code, out, err = pipeline("lab", "hard-negatives", "q.csv", "--system", HEAD, "--out", "r.json")
    assert code == 0, err
    assert out.splitlines()[1].split()[-2] == "–"
    assert json.loads(Path("r.json").read_text())["accuracies"][0]["other_image"] is None
    assert "is written by `pipeline lab hard-negatives`" in refused("trace", "r.json")
    Path("r.json").write_text("[]")
    assert "neither what `pipeline evaluate` writes nor a similarity store" in refused(
        "trace", "r.json"
    )


class Letters:
    """Images and captions that are letters: equal letters are the same vector. There is no image of
    `b`.
    """

    made_from: ClassVar[Unknown] = Unknown()

    def find(self, files: list[str], place: Path) -> np.ndarray:
        self.files = [file for file in files if file != "b"]
        return np.array([file != "b" for file in files])

    def images(self) -> np.ndarray:
        return self.captions(self.files)

    def captions(self, captions: list[str]) -> np.ndarray:
        return np.eye(26, dtype=np.float32)[[ord(caption) - ord("a") for caption in captions]]

    def reads(self, captions: list[str]) -> list[Any]:
        return captions

    def cut(self, captions: list[str]) -> tuple[int, int]:
        return 0, 9

    def trained_on(self, own: Any) -> None:
        return None


def test_each_image_has_its_own_vector_behind_a_missing_one_and_another_as_control() -> None:
    asked = [
        Question(image, (image,), (wrong,), "all") for image, wrong in ("ac", "bd", "ca", "dc")
    ]
    unread: Any = None
    said = hard_negatives._measure(Letters(), asked, Path("q.csv"), unread)
    [found] = said["accuracies"]
    assert (found["questions"], found["value"], said["questions"]["without_image"]) == (3, 100, 1)
    assert found["other_image"] == pytest.approx(
        100 / 3
    )  # of c, d and a: the wrong one and two ties


class RoundedByPlace(Letters):
    """Reads capitals as small letters, and rounds each caption differently by its place in the
    batch.
    """

    def captions(self, captions: list[str]) -> np.ndarray:
        return super().captions(self.reads(captions)) * (
            1 + 1e-6 * np.arange(len(captions), dtype=np.float32)[:, None]
        )

    def reads(self, captions: list[str]) -> list[Any]:
        return [caption.lower() for caption in captions]


def test_rounding_decides_no_tie_of_captions_that_read_alike() -> None:
    asked = [Question("a", ("a",), ("A",), "all"), Question("c", ("C",), ("c",), "all")]
    unread: Any = None
    said = hard_negatives._measure(RoundedByPlace(), asked, Path("q.csv"), unread)
    [found] = said["accuracies"]
    assert (found["value"], found["ties"], said["questions"]["read_alike"]) == (50, 2, 2)


def test_images_that_a_head_lacks_or_that_failed_are_left_out_of_its_rows(scenes: Manifest) -> None:
    files = scenes.images["file"].tolist()
    source: Any = SimpleNamespace(done=np.arange(len(files)) != 1)
    opened: Any = SimpleNamespace(manifest=scenes, source=source)
    head = OfHead(opened, 1)
    assert head.find([files[2], "nowhere.jpg", files[1], files[0]], Path()).tolist() == [
        True,
        False,
        False,
        True,
    ]
    assert head.rows.tolist() == [2, 0]


@pytest.mark.usefixtures("project")
def test_wrong_options_are_refused(refused: Callable[..., str]) -> None:
    assert "give --system" in refused("lab", "hard-negatives")
    assert "needs --system" in refused(
        "lab", "hard-negatives", "--save", "s.csv", "--out", "r.json"
    )
    assert "needs QUESTIONS" in refused(
        "lab", "hard-negatives", "--system", HEAD, "--format", "aro"
    )
    assert "did you mean sugarcrepe?" in refused(
        "lab", "hard-negatives", "sugarcreep", "--system", HEAD
    )
    assert "comes from the folder data" in refused(
        "lab", "hard-negatives", "sugarcrepe", "--system", HEAD
    )
