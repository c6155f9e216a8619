"""HGR's captions in small, as their files are, and role graphs beside them or beside others."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.extensions.hgr import role_graphs
from pipeline.foundation import manifest
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.sample import render_shots
from pipeline.foundation.manifest.sample.shots import MOVEMENTS, choose
from pipeline.foundation.parts.errors import InputError

pytestmark = pytest.mark.slow


def dump(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def build(annotations: Path) -> Manifest:
    return manifest.build("clips", None, annotations)


def said_of(annotations: Path) -> str:
    """What the annotations are taken for."""
    said: list[str] = []
    manifest.build("clips", None, annotations, say=said.append)
    assert said[0].startswith(f"{annotations}: read as ")
    return said[0].partition(": read as ")[2]


def hgr(root: Path) -> Path:
    dump(
        root / "annotation" / "RET" / "ref_captions.json",
        {"a/1": ["a man runs"], "b": ["a man runs", "a dog"], "c": ["a cat"], "unused": []},
    )
    (root / "public_split").mkdir()
    for short, names in (("trn", ["b", "a/1"]), ("tst", ["c"])):
        np.save(root / "public_split" / f"{short}_names.npy", names)
    return root


def test_hgr(tmp_path: Path) -> None:
    table = build(hgr(tmp_path))
    assert table.images["file"].tolist() == ["b.mp4", "a/1.mp4", "c.mp4"]
    assert table.split("train").captions.tolist() == ["a man runs", "a dog", "a man runs"]
    assert (
        said_of(tmp_path)
        == "HGR's captions, ref_captions.json, captions by the clip's name; train, test by "
        "public_split"
    )


def test_role_graphs_come_with_hgrs_captions_or_with_others(tmp_path: Path) -> None:
    root = hgr(tmp_path)
    assert build(root).split("train").caption_inputs == {}
    graph = [
        {"1": {"role": "V", "spans": [2]}, "2": {"role": "ARG0", "spans": [0, 1]}},
        [["1", "2", "ARG0"]],
    ]
    file = dump(root / "annotation" / "RET" / "sent2rolegraph.augment.json", {"a man runs": graph})
    kept = '[[["V",[2]],["ARG0",[0,1]]],[[0,1]]]'
    assert build(root).split("train").caption_inputs["role_graph"].tolist() == [kept, "", kept]
    assert build(root).split("test").caption_inputs["role_graph"].tolist() == [""]
    assert said_of(root).endswith("by public_split; role graphs in sent2rolegraph.augment.json")
    (tmp_path / "captions.csv").write_text(
        "video,caption,split\nx.mp4,a man runs,train\n", encoding="utf-8"
    )
    table = manifest.build(
        "clips",
        None,
        tmp_path / "captions.csv",
        manifest.Reading(caption_inputs={"role_graph": file}),
    )
    assert table.split("train").caption_inputs["role_graph"].tolist() == [kept]
    table.save(tmp_path / "clips.parquet")
    assert Manifest.load(tmp_path / "clips.parquet").digest == table.digest
    assert table.digest != manifest.build("clips", None, tmp_path / "captions.csv").digest


def test_pickled_names_are_not_read(tmp_path: Path) -> None:
    np.save(
        hgr(tmp_path) / "public_split" / "val_names.npy",
        np.array(["b"], dtype=object),
        allow_pickle=True,
    )
    with pytest.raises(InputError, match="an array of text without pickled objects"):
        build(tmp_path)


def test_every_caption_of_the_sample_has_a_role_graph_that_fits_it(tmp_path: Path) -> None:
    shots = render_shots(tmp_path / "sample_video", clips=24, size=64).parent
    with (shots / "captions.csv").open(encoding="utf-8") as file:
        captions = [row["caption"] for row in csv.DictReader(file)]
    graphs = [
        json.loads(each)
        for each in role_graphs.read(shots / "sent2rolegraph.augment.json", captions)
    ]
    for index in range(24):
        for caption, (phrases, edges) in list(zip(captions, graphs, strict=True))[
            5 * index + 3 : 5 * index + 5
        ]:
            words = caption.strip(".").replace(",", "").split()
            said = {role: " ".join(words[place] for place in places) for role, places in phrases}
            assert said["ARGM-DIR"] in MOVEMENTS[choose(0, index)].phrases
            assert said["V"] in ("moves", "glides", "move", "travels")
            assert {end for _, end in edges} == {
                place for place, (role, _) in enumerate(phrases) if role != "V"
            }


def test_the_file_of_a_caption_input_is_checked_as_that_of_any_option(
    pipeline: Any, refused: Callable[..., str], tmp_path: Path
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "captions.csv").write_text("image,caption\na.jpg,a dog runs\n", encoding="utf-8")
    verb = {"0": {"role": "V", "spans": [2], "words": ["runs"]}}
    (root / "graphs.json").write_text(json.dumps({"a dog runs": [verb, []]}), encoding="utf-8")
    command = ["manifest", "mine", "--root", root, "--annotations", "captions.csv"]
    command += ["--without-images", "--caption-input"]
    code, _, err = pipeline(*command, "role_graph=graphs.json")
    assert code == 0, err
    (graph,) = Manifest.load(root / "data" / "mine.parquet").table["role_graph"]
    assert json.loads(graph) == [[["V", [2]]], []]
    again = ["--caption-input", "role_graph=captions.csv"]
    for words, reason in (
        (["role_graph=s3://bucket/graphs.json"], "is in an object store; name a file or folder"),
        (["role_graph=mine.parquet", "--out", "mine.parquet"], "is also named by --caption-input"),
        ([f"role_graph={root}"], "is a directory"),
        (["role_graph="], "the name is empty"),
        (["graphs.json"], "expected COLUMN=FILE, got 'graphs.json'"),
        (["=graphs.json"], "expected COLUMN=FILE, got '=graphs.json'"),
        (["role_graf=graphs.json"], "unknown column 'role_graf'; did you mean role_graph?"),
        (["role_graph=graphs.json", *again], "role_graph is given twice"),
    ):
        assert reason in refused(*command, *words), words
