"""`pipeline hard-negatives` with a trained head."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_dual_encoders import FOLDERS, LIMIT

from pipeline.manifest import Manifest

HEAD = "vse2ad-region-bigru-s0"


@pytest.mark.usefixtures("project")
def test_a_head_answers_swaps_and_the_file_of_them_alike(pipeline: Any) -> None:
    code, out, err = pipeline("hard-negatives", "--head", HEAD, "--save", "swaps.csv")
    assert code == 0, err
    assert "a tie is half a point" in out
    assert "warning" not in err
    code, again, _ = pipeline("hard-negatives", "swaps.csv", "--head", HEAD)
    assert again.splitlines()[:-1] == out.splitlines()[1:-1]
    first, second = (json.loads(Path(f"results/hard-negatives/sample/{name}-{HEAD}.json").read_text())
                     for name in ("sample-swaps", "swaps"))
    assert first == second
    assert first["made_from"]["members"][0]["head"] == HEAD
    assert first["accuracies"][-1]["questions"] == first["questions"]["count"] > 10
    assert first["captions"] | {"count": 0} == {"count": 0, "cut": 0, "longest": 254}


def test_what_is_cut_what_is_unknown_and_what_was_trained_on_is_said(pipeline: Any, project: Path, scenes: Manifest
                                                                     ) -> None:
    trained = scenes.images.loc[scenes.images["split"] == "train", "file"].tolist()
    long = "red " * 300
    Path("q.csv").write_text("image,positive,negative\n" + f"{trained[0]},{long}cube,{long}ball\n"
                             f"{trained[1]},xyzzy,plugh\nnowhere.jpg,a,b\n")
    code, out, err = pipeline("hard-negatives", "q.csv", "--head", HEAD, "--out", "r.json")
    assert code == 0, err
    assert "2 of 4 captions have more than 254" in out
    assert "2 right captions are read as a wrong one" in out
    assert "1 questions are left out" in err
    assert "trained on 2 of these 2 images" in err
    assert json.loads(Path("r.json").read_text())["accuracies"][0]["value"] == 50


def test_a_dual_encoder_answers_from_the_image_files(pipeline: Any, project: Path) -> None:
    FOLDERS["clip"][1](project / "tiny")
    code, out, err = pipeline("hard-negatives", "--model", "clip:tiny", "--out", "r.json")
    assert code == 0, err
    said = json.loads(Path("r.json").read_text())
    assert said["accuracies"][-1]["questions"] > 10
    assert said["made_from"]["members"][0]["head"] == "tiny"
    assert said["images"]["trained_on"] is None
    assert f"more than {LIMIT}" in out


def test_of_one_image_there_is_no_other_and_a_trace_says_what_the_file_is(
        pipeline: Any, refused: Callable[..., str], project: Path, scenes: Manifest) -> None:
    Path("q.csv").write_text(f"image,positive,negative\n{scenes.images['file'].iloc[0]},a red cube,a blue cube\n")
    code, out, err = pipeline("hard-negatives", "q.csv", "--head", HEAD, "--out", "r.json")
    assert code == 0, err
    assert out.splitlines()[1].split()[-3] == "–"
    assert json.loads(Path("r.json").read_text())["accuracies"][0]["other_image"] is None
    assert "is written by `pipeline hard-negatives`" in refused("trace", "r.json")
    Path("r.json").write_text("[]")
    assert "neither what `pipeline evaluate` writes nor a similarity store" in refused("trace", "r.json")


@pytest.mark.usefixtures("project")
def test_wrong_options_are_refused(refused: Callable[..., str]) -> None:
    assert "give --head" in refused("hard-negatives")
    assert "goes with --head" in refused("hard-negatives", "--save", "s.csv", "--out", "r.json")
    assert "goes with QUESTIONS" in refused("hard-negatives", "--head", HEAD, "--format", "aro")
    assert "did you mean sugarcrepe?" in refused("hard-negatives", "sugarcreep", "--head", HEAD)
    assert "comes from the folder data" in refused("hard-negatives", "sugarcrepe", "--head", HEAD)
