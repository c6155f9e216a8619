"""Inputs besides annotations, an example of each, with what reads it: for the page of formats and its test."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import foreign
import numpy as np

from pipeline import manifest
from pipeline.evaluation.judgements import qrels
from pipeline.evaluation.retrieval.collection import Collection
from pipeline.features.extractors.butd.detector import read_boxes
from pipeline.features.importers import import_features
from pipeline.settings import loading
from pipeline.studies.hard_negatives import questions
from pipeline.systems.scores import runs

POOL = Collection(np.array([12, 13]), np.array([55, 56]), np.array([0, 1]))
PICTURES = foreign.manifest(8)


@dataclass(frozen=True)
class Input:
    """A kind of input.

    Attributes:
        title: What it is.
        command: What reads it.
        write: Writes an example below a folder and gives its path, or that of one of its files.
        read: Reads what stands there.
    """

    title: str
    command: str
    write: Callable[[Path], Path]
    read: Callable[[Path], object]


def _text(name: str, content: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
        return folder / name
    return write


def _features(source: str) -> Input:
    form, writer, varied, _ = foreign.SOURCES[source]
    pictures = foreign.pictures(PICTURES, [4, 6] * 4 if varied else [4] * 8, 8)

    def read(path: Path) -> None:
        paths = sorted(path.parent.glob("features.tsv.*")) or [path if path.suffix == ".tsv" else path.parent]
        import_features(foreign.job(PICTURES, form, paths, path.parent / "imported.zarr"))

    return Input({"anderson": "Bottom-up attention's TSV: image_id, image_w, image_h, num_boxes, boxes, features",
                  "lxmert": "LXMERT's TSV: the same with objects and attributes",
                  "scan": "SCAN's: an array of each split, and its images' ids", "npy": "A NumPy file for each image",
                  "npz": "An archive for each image, as bottom-up-attention.pytorch writes"}[source],
                 f"`pipeline import {form} FILE`", lambda folder: writer(folder, pictures)[0], read)


def _first_file(made: Input) -> Input:
    """Of a folder of files, one."""
    def write(folder: Path) -> Path:
        path = made.write(folder)
        return sorted(path.iterdir())[0] if path.is_dir() else path
    return Input(made.title, made.command, write, made.read)


def _boxes(folder: Path) -> Path:
    np.savez(folder / "boxes.npz", **{"a.jpg": np.array([[0, 0, 90, 60], [10, 5, 40, 50]], np.float32)})
    return folder / "boxes.npz"


def _clips(path: Path) -> object:
    (path.parent / "clips").mkdir()
    for name in ("a.mp4", "b.mp4"):
        (path.parent / "clips" / name).write_bytes(b"a clip")
    return manifest.build("mine", path.parent / "clips", path, kind="video")


def _questions(path: Path) -> object:
    return questions.read(str(path), None, path.parent)


def _card(path: Path) -> object:
    return manifest.dataset("mine", path.parents[1])


ROOT = Path(__file__).parents[2]
QUESTIONS = {"image": "a.jpg", "positive": "A dog above a cat.", "negative": "A cat above a dog."}
INPUTS = [
    Input("Clips: parts of video files, with their times in seconds", "`pipeline manifest NAME --videos FOLDER`", _text(
        "captions.csv", "video,caption,split,start,end\na.mp4,A dog runs.,train,0,2.5\nb.mp4,A cat.,test,,\n"), _clips),
    Input("A card of a data set", "`pipeline manifest NAME`", _text("manifests/mine.yaml", (
        "title: Mine\nimages: data/mine/images\nannotations: data/mine/captions.csv\nlanguages: [en]\n"
        "description: photographs of a garden\nlicence: CC BY 4.0\nsource: my camera\nprotocols: [all]\n")), _card),
    Input("Settings", "all commands, from the root", _text(
        "params.yaml", re.sub(r" *#.*", "", (ROOT / "params.yaml").read_text(encoding="utf-8")).lstrip()),
        loading.load),
    *(_first_file(_features(source)) for source in ("anderson", "lxmert", "scan", "npy", "npz")),
    Input("Boxes: an array x1 y1 x2 y2 for each image, by its file's name", "the engine butd-given, option boxes",
          _boxes, read_boxes),
    Input("Judgements: TREC's qrels", "`pipeline evaluate --qrels FILE`", _text(
        "qrels.txt", "caption:55 0 image:12 1\ncaption:56 0 image:13 2\nimage:12 0 caption:55 1\n"),
        lambda path: qrels.read(path, POOL)),
    Input("Judgements: CSV", "`pipeline evaluate --qrels FILE`", _text(
        "qrels.csv", "image,caption,grade\n12,55,1\n13,56,2\n"), lambda path: qrels.read(path, POOL)),
    Input("A run: TREC's", "`pipeline evaluate --from-run FILE`", _text("run.txt", (
        "caption:55 Q0 image:12 1 0.83 mine\ncaption:55 Q0 image:13 2 0.12 mine\n"
        "image:12 Q0 caption:55 1 0.83 mine\n")),
        runs.read),
    Input("A run: ranx's JSON", "`pipeline evaluate --from-run FILE`", _text(
        "run.json", '{"caption:55": {"image:12": 0.83, "image:13": 0.12}}\n'), runs.read),
    Input("Questions of hard negatives: CSV", "`pipeline hard-negatives FILE`", _text(
        "questions.csv", ",".join(QUESTIONS) + "\n" + ",".join(QUESTIONS.values()) + "\n"), _questions),
    Input("Questions of hard negatives: SugarCrepe's", "`pipeline hard-negatives FILE --format sugarcrepe`", _text(
        "swap_obj.json", '{"0": {"filename": "a.jpg", "caption": "A dog above a cat.", '
        '"negative_caption": "A cat above a dog."}}\n'), _questions),
]
