"""Inputs besides annotations, an example of each, with what reads it: for the page of formats and
its test.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import foreign
import numpy as np

from pipeline.extensions.hard_negatives import questions
from pipeline.extensions.importers import import_features
from pipeline.foundation import manifest
from pipeline.foundation.evaluation.judgements import qrels
from pipeline.foundation.evaluation.retrieval.collection import Collection
from pipeline.foundation.settings import loading
from pipeline.judge.systems.scores import runs
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns
from pipeline.make.features.extractors.given_boxes import GivenBoxes

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
        paths = sorted(path.parent.glob("features.tsv.*")) or [
            path if path.suffix == ".tsv" else path.parent
        ]
        import_features(foreign.job(PICTURES, form, paths, path.parent / "imported.zarr"))

    return Input(
        {
            "anderson": "Bottom-up attention's TSV: image_id, image_w, image_h, num_boxes, boxes, features",
            "lxmert": "LXMERT's TSV: the same with objects and attributes",
            "scan": "SCAN's: an array of each split, and its images' ids",
            "npy": "A NumPy file for each image",
            "npz": "An archive for each image, as bottom-up-attention.pytorch writes",
            "pth": "A map of grid features for each image, as grid-feats-vqa writes",
        }[source],
        f"`pipeline store import {form} FILE`",
        lambda folder: writer(folder, pictures)[0],
        read,
    )


def _first_file(made: Input) -> Input:
    """Of a folder of files, one."""

    def write(folder: Path) -> Path:
        path = made.write(folder)
        return min(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else path

    return Input(made.title, made.command, write, made.read)


def _boxes(folder: Path) -> Path:
    np.savez(
        folder / "boxes.npz", **{"a.jpg": np.array([[0, 0, 90, 60], [10, 5, 40, 50]], np.float32)}
    )
    return folder / "boxes.npz"


def _clips(path: Path) -> object:
    (path.parent / "clips").mkdir()
    for name in ("a.mp4", "b.mp4"):
        (path.parent / "clips" / name).write_bytes(b"a clip")
    return manifest.build("mine", path.parent / "clips", path, manifest.Reading(kind="video"))


def _videos(path: Path) -> object:
    """The manifest of clips without their files."""
    root = path.parents[2] if path.parts[-3:-1] == HGR else path.parent
    return manifest.build("mine", None, root)


def _hgr(folder: Path) -> Path:
    np.save(_folder(folder / "public_split") / "tst_names.npy", ["a", "b"])
    return _json(
        "/".join((*HGR, "ref_captions.json")), {"a": ["a dog runs", "one dog"], "b": ["a cat"]}
    )(folder)


def _role_graphs(folder: Path) -> Path:
    _hgr(folder)
    return _json(
        "/".join((*HGR, "sent2rolegraph.augment.json")),
        {
            "a dog runs": [
                {
                    "1": {"role": "V", "spans": [2], "words": ["runs"]},
                    "2": {"role": "ARG0", "spans": [0, 1]},
                },
                [["1", "2", "ARG0"]],
            ]
        },
    )(folder)


def _folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def _vatex(folder: Path) -> Path:
    _json(
        "vatex_validation_v1.0.json",
        [
            {"videoID": name, "enCap": [caption]}
            for name, caption in (("c_000000_000010", "A car."), ("d_000002_000012", "A bird."))
        ],
    )(folder)
    return _json(
        "vatex_training_v1.0.json",
        [
            {"videoID": "a_000003_000013", "enCap": ["A dog runs.", "One dog."]},
            {"videoID": "b_000001_000011", "enCap": ["A cat."]},
        ],
    )(folder)


def _packed(name: str, content: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(gzip.compress(content.encode(), mtime=0))
        return folder / name

    return write


def _json(name: str, value: object) -> Callable[[Path], Path]:
    return _text(name, json.dumps(value, indent=1) + "\n")


def _saved(save: Callable[[Path], object], name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        save(folder / name)
        return folder / name

    return write


def _scores(path: Path) -> object:
    return open_system(path.name, Columns(captions_per_image=2), root=path.parent)


def _qrels(path: Path) -> object:
    return qrels.read(path, POOL)


def _questions_as(form: str | None) -> Callable[[Path], object]:
    return lambda path: questions.read(str(path), form, path.parent)


def _card(path: Path) -> object:
    return manifest.dataset("mine", path.parents[1])


ROOT = Path(__file__).parents[2]
HGR = ("annotation", "RET")
EVALUATE = "`pipeline evaluate FILE` and `pipeline compare FILE FILE`"
QRELS = "`pipeline evaluate --qrels FILE`"
VIDEOS = "`pipeline manifest NAME --videos FOLDER --annotations FOLDER`"
CAPTIONS = {"image": "a.jpg", "caption": "A dog above a cat."}
WRONG = "A cat above a dog."
QUESTIONS = {"image": "a.jpg", "positive": "A dog above a cat.", "negative": "A cat above a dog."}
SIMS = np.array([[0.9, 0.8, 0.1, 0.2], [0.3, 0.1, 0.7, 0.9]], np.float32)
HITS = {
    "version": 1,
    "system": "mine",
    "dataset": "",
    "split": "",
    "protocol": "all",
    "folds": 1,
    "images": 2,
    "languages": [],
    "right": "own",
    "judgements": "",
    "scores": "",
}
SCORES = [
    Input(
        "A matrix without ids, two captions an image",
        EVALUATE,
        _saved(lambda path: np.save(path, SIMS), "sims.npy"),
        _scores,
    ),
    Input(
        "Scores with ids",
        EVALUATE,
        _saved(
            lambda path: np.savez(
                path,
                sims=SIMS,
                image_ids=["a.jpg", "b.jpg"],
                caption_ids=["a.jpg#0", "a.jpg#1", "b.jpg#0", "b.jpg#1"],
            ),
            "sims.npz",
        ),
        _scores,
    ),
    Input(
        "Vectors of both sides",
        EVALUATE,
        _saved(
            lambda path: np.savez(
                path,
                image_features=np.eye(2, 8, dtype=np.float16),
                text_features=np.ones((4, 8), np.float16),
            ),
            "vectors.npz",
        ),
        _scores,
    ),
    Input(
        "The best of each query: candidates, and their scores",
        EVALUATE,
        _saved(
            lambda path: np.savez(path, t2i_ids=np.argsort(-SIMS.T), t2i_scores=-np.sort(-SIMS.T)),
            "top.npz",
        ),
        _scores,
    ),
    Input(
        "Hits: the rank of each query's best right candidate",
        EVALUATE,
        _saved(
            lambda path: np.savez_compressed(
                path,
                hits_facts=np.frombuffer(json.dumps(HITS).encode(), np.uint8),
                caption_image=[0, 0, 1, 1],
                i2t_greater=[0, 0],
                i2t_equal=[0, 0],
                i2t_right=[1, 1],
                t2i_greater=[0, 0, 0, 0],
                t2i_equal=[0, 0, 0, 0],
                t2i_right=[1, 1, 1, 1],
            ),
            "hits.npz",
        ),
        _scores,
    ),
    Input(
        "A table with a row for each image",
        EVALUATE,
        _text("wide.csv", "image_id,0,1,2,3\n0,0.9,0.8,0.1,0.2\n1,0.3,0.1,0.7,0.9\n"),
        _scores,
    ),
    Input(
        "A table with a row for each pair",
        EVALUATE,
        _text(
            "long.csv",
            "query,candidate,score\n"
            + "".join(
                f"caption:{caption},image:{image},{SIMS[image, caption]:g}\n"
                for caption in range(4)
                for image in range(2)
            ),
        ),
        _scores,
    ),
    Input(
        "A run: TREC's",
        EVALUATE,
        _text(
            "run.txt",
            (
                "caption:55 Q0 image:12 1 0.83 mine\ncaption:55 Q0 image:13 2 0.12 mine\n"
                "image:12 Q0 caption:55 1 0.83 mine\n"
            ),
        ),
        runs.read,
    ),
    Input(
        "A run: ranx's JSON",
        EVALUATE,
        _text("run.json", '{"caption:55": {"image:12": 0.83, "image:13": 0.12}}\n'),
        runs.read,
    ),
    Input(
        "A run: UniIR's",
        EVALUATE,
        _text("run.txt", "8:12 Q0 9:345 1 0.31 mbeir_cirr 7\n8:12 Q0 9:12 2 0.25 mbeir_cirr 7\n"),
        runs.read,
    ),
    Input(
        "mteb's predictions: subset, split, query, candidate",
        EVALUATE,
        _json(
            "Flickr30kT2IRetrieval_predictions.json",
            {
                "mteb_model_meta": {"model_name": "org/m", "revision": "abc"},
                "default": {"test": {"q1": {"d7": 0.41, "d2": 0.39}, "q2": {"d2": 0.55}}},
            },
        ),
        runs.read,
    ),
    Input(
        "sentence-transformers' predictions",
        EVALUATE,
        _text(
            "Information-Retrieval_evaluation_predictions_cosine.jsonl",
            '{"query_id": "q1", "query": "a dog", "results": [{"corpus_id": "d7", "score": 0.41}]}\n',
        ),
        runs.read,
    ),
    Input(
        "MMEB's ranked lists and labels",
        EVALUATE,
        _text(
            "MSCOCO_t2i_pred.jsonl",
            '{"prediction": ["b.jpg", "a.jpg"], "label": ["a.jpg"], "rel_scores": null}\n',
        ),
        _scores,
    ),
]
INPUTS = [
    Input(
        "Clips: parts of video files, with their times in seconds",
        "`pipeline manifest NAME --videos FOLDER`",
        _text(
            "captions.csv",
            "video,caption,split,start,end\na.mp4,A dog runs.,train,0,2.5\nb.mp4,A cat.,test,,\n",
        ),
        _clips,
    ),
    Input(
        "Clips: MSR-VTT's JSON",
        VIDEOS,
        _json(
            "MSRVTT_data.json",
            {
                "videos": [
                    {"video_id": "video0", "split": "train"},
                    {"video_id": "video7010", "split": "test"},
                ],
                "sentences": [
                    {"sen_id": 0, "video_id": "video0", "caption": "a dog runs"},
                    {"sen_id": 1, "video_id": "video7010", "caption": "a cat"},
                ],
            },
        ),
        _videos,
    ),
    Input("Clips: VATEX's JSON, training and validation in one folder", VIDEOS, _vatex, _videos),
    Input(
        "Clips: HGR's captions, with lists of clips public_split/{trn,val,tst}_names.npy",
        VIDEOS,
        _hgr,
        _videos,
    ),
    Input(
        "Role graphs beside HGR's captions: phrases by their words' places, and edges from verbs",
        VIDEOS,
        _role_graphs,
        _videos,
    ),
    Input(
        "A card of a data set",
        "`pipeline manifest NAME`",
        _text(
            "manifests/mine.yaml",
            (
                "title: Mine\nimages: data/mine/images\nannotations: data/mine/captions.csv\nlanguages: [en]\n"
                "description: photographs of a garden\nlicence: CC BY 4.0\nsource: my camera\nprotocols: [all]\n"
            ),
        ),
        _card,
    ),
    Input(
        "Settings",
        "all commands, from the root",
        _text(
            "params.yaml",
            re.sub(r" *#.*", "", (ROOT / "params.yaml").read_text(encoding="utf-8")).lstrip(),
        ),
        loading.load,
    ),
    *(
        _first_file(_features(source))
        for source in ("anderson", "lxmert", "scan", "npy", "npz", "pth")
    ),
    Input(
        "Boxes: an array x1 y1 x2 y2 for each image, by its file's name",
        "the engine butd-given, option boxes",
        _boxes,
        GivenBoxes,
    ),
    Input(
        "Judgements: TREC's qrels",
        QRELS,
        _text(
            "qrels.txt",
            "caption:55 0 image:12 1\ncaption:56 0 image:13 2\nimage:12 0 caption:55 1\n",
        ),
        _qrels,
    ),
    Input(
        "Judgements: BEIR's, with a header and tabs",
        QRELS,
        _text(
            "qrels.tsv",
            "query-id\tcorpus-id\tscore\ncaption:55\timage:12\t1\ncaption:56\timage:13\t2\n",
        ),
        _qrels,
    ),
    Input(
        "Judgements: any of these files packed by gzip",
        QRELS,
        _packed("qrels.txt.gz", "caption:55 0 image:12 1\ncaption:56 0 image:13 2\n"),
        _qrels,
    ),
    Input(
        "Judgements: ranx's JSON",
        QRELS,
        _json("qrels.json", {"caption:55": {"image:12": 1}, "caption:56": {"image:13": 2}}),
        _qrels,
    ),
    Input(
        "Judgements: CSV",
        QRELS,
        _text("qrels.csv", "image,caption,grade\n12,55,1\n13,56,2\n"),
        _qrels,
    ),
    Input(
        "Questions of hard negatives: CSV",
        "`pipeline lab hard-negatives FILE`",
        _text("questions.csv", ",".join(QUESTIONS) + "\n" + ",".join(QUESTIONS.values()) + "\n"),
        _questions_as(None),
    ),
    Input(
        "Questions of hard negatives: SugarCrepe's",
        "`pipeline lab hard-negatives FILE --format sugarcrepe`",
        _text(
            "swap_obj.json",
            '{"0": {"filename": "a.jpg", "caption": "A dog above a cat.", '
            '"negative_caption": "A cat above a dog."}}\n',
        ),
        _questions_as(None),
    ),
    Input(
        "Questions of hard negatives: Winoground's",
        "`pipeline lab hard-negatives FILE --format winoground`",
        _text(
            "examples.jsonl",
            json.dumps(
                {
                    "id": 0,
                    "image_0": "ex_0_img_0.png",
                    "image_1": "ex_0_img_1.png",
                    "caption_0": CAPTIONS["caption"],
                    "caption_1": WRONG,
                    "collapsed_tag": "Object",
                }
            )
            + "\n",
        ),
        _questions_as("winoground"),
    ),
    Input(
        "Questions of hard negatives: ARO's, with the box that is asked about",
        "`pipeline lab hard-negatives FILE --format aro`",
        _json(
            "visual_genome_relation.json",
            [
                {
                    "image_path": "2323.jpg",
                    "bbox_x": 10,
                    "bbox_y": 20,
                    "bbox_w": 200,
                    "bbox_h": 150,
                    "true_caption": CAPTIONS["caption"],
                    "false_caption": WRONG,
                }
            ],
        ),
        _questions_as("aro"),
    ),
    Input(
        "Questions of hard negatives: VALSE's",
        "`pipeline lab hard-negatives FILE`",
        _json(
            "relations.json",
            {
                "val_0": {
                    "image_file": "a.jpg",
                    "caption": CAPTIONS["caption"],
                    "foil": WRONG,
                    "linguistic_phenomena": "relations",
                }
            },
        ),
        _questions_as(None),
    ),
    Input(
        "Questions of hard negatives: several wrong captions, under CREPE's key hard_negs",
        "`pipeline lab hard-negatives FILE`",
        _json("swap.json", [CAPTIONS | {"hard_negs": [WRONG, "A dog below a cat."]}]),
        _questions_as(None),
    ),
]
