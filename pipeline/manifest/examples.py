"""Small examples of annotations in every layout that is read, with what is read of them.

The tests read each of them; so what is shown to users is what works.
"""

from __future__ import annotations

import gzip
import io
import json
import shlex
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.files import atomic
from pipeline.parts.errors import InputError

Row = tuple[str, str, str]  # file, split, caption
Content = "str | bytes | Picture | Columns | Members"


@dataclass(frozen=True)
class Picture:
    """An image of a few pixels."""

    shade: int = 128
    format: str = "JPEG"

    def content(self) -> bytes:
        """The file's bytes."""
        from PIL import Image

        stream = io.BytesIO()
        Image.new("RGB", (16, 16), (self.shade, 128, 255 - self.shade)).save(stream, self.format)
        return stream.getvalue()


@dataclass(frozen=True)
class Columns:
    """A Parquet file: column -> values. A `Picture` becomes its bytes."""

    columns: Mapping[str, list[Any]]

    def content(self) -> bytes:
        """The file's bytes."""
        import pyarrow as pa
        from pyarrow import parquet

        stream = io.BytesIO()
        parquet.write_table(pa.table({name: _packed(values) for name, values in self.columns.items()}), stream)
        return stream.getvalue()


@dataclass(frozen=True)
class Members:
    """A tar: name -> content."""

    files: Mapping[str, Any]

    def content(self) -> bytes:
        """The file's bytes."""
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for name, content in self.files.items():
                info = tarfile.TarInfo(name)
                info.size = len(packed := bytes_of(content))
                tar.addfile(info, io.BytesIO(packed))
        return stream.getvalue()


@dataclass(frozen=True)
class Example:
    """Annotations, and what is read of them."""

    title: str  # What they are
    files: Mapping[str, Any]  # Path below a folder -> content: text, bytes, or what makes them
    rows: list[Row]  # What is read: file, split and caption of each
    annotations: str = ""  # The path of the annotations; "" for the folder
    images: str = "images"  # The path of the images' folder
    left_out: Mapping[str, int] = field(default_factory=dict)  # Why captions are left out -> how many
    said: str = ""  # A part of what is said when it is recognised, or of a note

    def write(self, folder: Path) -> None:
        """Write the files below a folder."""
        for path, content in self.files.items():
            atomic.write_bytes(folder / path, bytes_of(content), durable=False)

    def options(self, folder: Path) -> list[str]:
        """The options of `pipeline manifest` that read it, written below a folder; quoted for a shell."""
        places = {"--images": folder / self.images, "--annotations": folder / self.annotations}
        return [word for option, place in places.items() for word in (option, shlex.quote(str(place)))]


def bytes_of(content: Any) -> bytes:
    """The bytes of a file."""
    if isinstance(content, str):
        return content.encode()
    return content if isinstance(content, bytes) else bytes(content.content())


def _packed(values: list[Any]) -> list[Any]:
    return [{key: _packed([part])[0] for key, part in value.items()} if isinstance(value, dict)
            else _packed(value) if isinstance(value, list)
            else value.content() if isinstance(value, Picture) else value for value in values]


def as_json(value: Any) -> str:
    """A JSON file."""
    return json.dumps(value, indent=1, ensure_ascii=False)


def as_lines(*values: Any) -> str:
    """A file of JSON Lines."""
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


A, B, C = ("images/a.jpg", Picture(40)), ("images/b.jpg", Picture(120)), ("images/c.jpg", Picture(200))
DOG, CAT, BUS = "A dog runs.", "A cat sleeps.", "A red bus, seen from above."
AB = dict([A, B])
ABC = dict([A, B, C])
ROWS = [("a.jpg", "test", DOG), ("b.jpg", "test", CAT)]
SPLIT_ROWS = [("a.jpg", "train", DOG), ("b.jpg", "val", CAT), ("c.jpg", "test", BUS)]
_SPLITS = {"a.jpg": ("train", DOG), "b.jpg": ("val", CAT), "c.jpg": ("test", BUS)}
COCO_IMAGES = [{"id": 5, "file_name": "a.jpg"}, {"id": 7, "file_name": "b.jpg"}]


def _karpathy(**more: Any) -> str:
    return as_json({"dataset": "mine", "images": [
        {"filename": name, "imgid": number, "split": split, "sentids": [number],
         "sentences": [{"raw": caption, "tokens": caption.split(), "imgid": number, "sentid": number}], **more}
        for number, (name, (split, caption)) in enumerate(_SPLITS.items())]})


def _multi30k() -> dict[str, Any]:
    files: dict[str, Any] = {}
    for name, (split, caption) in _SPLITS.items():
        task1, task2 = ("test_2016_flickr", "test_2016") if split == "test" else (split, split)
        raw = {f"task2/raw/{task2}.{number}.{language}": f"{number}.{language}"
               for number in range(1, 6) for language in ("en", "de")}
        raw |= {f"task1/raw/{task1}.{language}": language for language in ("fr", "cs")}
        files[f"dataset/data/task2/image_splits/{task2}_images.txt"] = f"{name}\n"
        files |= {f"dataset/data/{path}.gz": gzip.compress(f"{caption} ({ending})\n".encode(), mtime=0)
                  for path, ending in raw.items()}
    return files


EXAMPLES: dict[str, Example] = {
    "csv": Example("CSV", ABC | {
        "captions.csv": f'image,caption,split\na.jpg,{DOG},train\nb.jpg,{CAT},val\nc.jpg,"{BUS}",test\n'},
        SPLIT_ROWS, "captions.csv", said="CSV, separated by commas, UTF-8; image in image, caption in caption, split"),
    "csv-semicolons": Example("CSV of Excel with semicolons", AB | {
        "captions.csv": f"sep=;\r\nBild;image;caption\r\n1;a.jpg;{DOG}\r\n2;b.jpg;{CAT}\r\n"}, ROWS, "captions.csv",
        said="separated by semicolons"),
    "csv-utf16": Example("Excel's Unicode text", AB | {
        "captions.txt": f"image\tcaption\r\na.jpg\t{DOG}\r\nb.jpg\t{CAT}\r\n".encode("utf-16")}, ROWS, "captions.txt",
        said="separated by tabs, UTF-16"),
    "kaggle-flickr8k": Example("Flickr8k as on Kaggle: captions.txt", AB | {
        "captions.txt": f'image,caption\na.jpg,{DOG}\na.jpg,"A dog , running ."\nb.jpg,{CAT}\n'},
        [ROWS[0], ("a.jpg", "test", "A dog , running ."), ROWS[1]], "captions.txt", said="separated by commas"),
    "flickr8k-token": Example("Flickr8k.token.txt, Flickr30k's results_20130124.token", AB | {
        "Flickr8k.token.txt": f'a.jpg#0\t{DOG}\na.jpg#1\t"Dog" is\nb.jpg#0\t{CAT}\n'},
        [ROWS[0], ("a.jpg", "test", '"Dog" is'), ROWS[1]], "Flickr8k.token.txt", said="separated by tabs, no header"),
    "flickr30k-results": Example("Flickr30k's results.csv", AB | {
        "results.csv": f'image_name| comment_number| comment\na.jpg| 0| {DOG}\na.jpg| 1| "Dog" is\nb.jpg| 0| {CAT}\n'},
        [ROWS[0], ("a.jpg", "test", '"Dog" is'), ROWS[1]], "results.csv", said="separated by bars"),
    "open-clip-tsv": Example("OpenCLIP's TSV", AB | {"train.tsv": f"filepath\ttitle\na.jpg\t{DOG}\nb.jpg\t{CAT}\n"},
        [("a.jpg", "train", DOG), ("b.jpg", "train", CAT)], "train.tsv", said="caption in title; split by the name"),
    "splits-by-file": Example("A CSV for each split", ABC | {
        **{f"lists/{split}.csv": f"image,caption\n{name},\"{caption}\"\n"
           for name, (split, caption) in _SPLITS.items()}},
        [SPLIT_ROWS[2], SPLIT_ROWS[0], SPLIT_ROWS[1]], "lists", said="3 files"),
    "flickr30k-annotations": Example("Hugging Face's flickr_annotations_30k.csv", AB | {
        "flickr_annotations_30k.csv": 'raw,sentids,split,filename,img_id\n'
        f'"[""{DOG}"", ""Two."", ""Three.""]","[0, 1, 2]",train,a.jpg,0\n"[""{CAT}""]",[5],val,b.jpg,1\n'},
        [("a.jpg", "train", DOG), ("a.jpg", "train", "Two."), ("a.jpg", "train", "Three."), ("b.jpg", "val", CAT)],
        "flickr_annotations_30k.csv"),
    "imagefolder-jsonl": Example("Hugging Face's imagefolder, metadata.jsonl", {
        "photos/train/a.jpg": Picture(1), "photos/validation/b.jpg": Picture(2),
        "photos/train/metadata.jsonl": as_lines({"file_name": "a.jpg", "text": DOG}),
        "photos/validation/metadata.jsonl": as_lines({"file_name": "b.jpg", "text": CAT})},
        [("train/a.jpg", "train", DOG), ("validation/b.jpg", "val", CAT)], "photos", "photos", said="JSON Lines"),
    "imagefolder-csv": Example("Hugging Face's imagefolder, metadata.csv", {
        "photos/a.jpg": Picture(1), "photos/b.jpg": Picture(2),
        "photos/metadata.csv": f"file_name,text\na.jpg,{DOG}\nb.jpg,{CAT}\n"}, ROWS, "photos", "photos"),
    "json-list": Example("A list of objects", AB | {
        "captions.json": as_json([{"image": "a.jpg", "caption": DOG}, {"image": "b.jpg", "caption": CAT}])}, ROWS,
        "captions.json", said="JSON, a list of objects"),
    "json-by-image": Example("Captions by image", AB | {
        "captions.json": as_json({"a.jpg": [DOG, "Two."], "b.jpg": CAT})},
        [ROWS[0], ("a.jpg", "test", "Two."), ROWS[1]], "captions.json", said="JSON, captions by image"),
    "lavis": Example("LAVIS', BLIP's and ALBEF's lists", ABC | {
        "lists/coco_karpathy_train.json": as_json([{"caption": DOG, "image": "a.jpg", "image_id": "coco_1"}]),
        "lists/coco_karpathy_val.json": as_json([{"image": "b.jpg", "caption": [CAT, "Two."]}]),
        "lists/coco_karpathy_test.json": as_json([{"image": "c.jpg", "caption": [BUS]}])},
        [("c.jpg", "test", BUS), ("a.jpg", "train", DOG), ("b.jpg", "val", CAT), ("b.jpg", "val", "Two.")], "lists",
        said="JSON, a list of objects, UTF-8; 3 files"),
    "sharegpt4v": Example("ShareGPT4V's conversations", AB | {"captions.json": as_json([
        {"id": "1", "image": name, "conversations": [{"from": "human", "value": "<image>\nWhat is this?"},
                                                     {"from": "gpt", "value": caption}]}
        for name, _, caption in ROWS])}, ROWS, "captions.json"),
    "localized-narratives": Example("Localized Narratives' JSON Lines", AB | {"narratives.jsonl": as_lines(
        *({"dataset_id": "mscoco_val2017", "image_id": name[:1], "annotator_id": 5, "caption": caption,
           "timed_caption": [{"utterance": "A", "start_time": 0.0}], "traces": [[{"x": 0.1, "y": 0.2, "t": 0.0}]]}
          for name, _, caption in ROWS))}, ROWS, "narratives.jsonl", said="are spelled differently from their files"),
    "karpathy": Example("Karpathy's JSON", ABC | {"dataset.json": _karpathy()}, SPLIT_ROWS, "dataset.json",
                        said="Karpathy's JSON"),
    "multi30k": Example("A clone of multi30k/dataset, captions in four languages", ABC | _multi30k(), [
        (name, split, f"{caption} ({ending})") for name, (split, caption) in _SPLITS.items() for ending in (
            *(f"{number}.{language}" for language in ("en", "de") for number in range(1, 6)), "fr", "cs")],
        "dataset", said="Multi30K's files"),
    "coco": Example("COCO's captions", AB | {"captions_val2014.json": as_json({
        "images": COCO_IMAGES, "annotations": [{"id": 1, "image_id": 5, "caption": DOG},
                                               {"id": 2, "image_id": 7, "caption": CAT}]})},
        [("a.jpg", "val", DOG), ("b.jpg", "val", CAT)], "captions_val2014.json", said="COCO's JSON"),
    "parquet-hugging-face": Example("Hugging Face's Parquet with images, as Flickr30k", {
        "data/test-00000-of-00001.parquet": Columns({
            "image": [{"bytes": Picture(1), "path": "a.jpg"}, {"bytes": Picture(2), "path": "b.jpg"}],
            "caption": [[DOG, "Two."], [CAT]], "sentids": [["0", "1"], ["2"]], "split": ["train", "restval"],
            "img_id": ["0", "1"], "filename": ["a.jpg", "b.jpg"]})},
        [("data/test-00000-of-00001.parquet/0", "train", DOG), ("data/test-00000-of-00001.parquet/0", "train", "Two."),
         ("data/test-00000-of-00001.parquet/1", "train", CAT)], "", "", said="Parquet"),
    "parquet-names": Example("Parquet with names of images, a row a caption", AB | {
        "captions.parquet": Columns({"url": ["a.jpg", "a.jpg", "b.jpg"], "TEXT": [DOG, "Two.", CAT]})},
        [ROWS[0], ("a.jpg", "test", "Two."), ROWS[1]], "captions.parquet", said="image in url, caption in TEXT"),
    "img2dataset-tars": Example("img2dataset's tars", {
        "web/00000.tar": Members({"000000000.jpg": Picture(1), "000000000.txt": DOG, "000000000.json": as_json(
            {"url": "http://x/a.jpg", "caption": DOG, "key": "000000000", "status": "success"})}),
        "web/00000.parquet": Columns({"url": ["http://x/a.jpg", "http://x/b.jpg"], "caption": [DOG, CAT],
                                      "key": ["000000000", "000000001"], "status": ["success", "failed_to_download"],
                                      "error_message": [None, "HTTP Error 404: Not Found"]}),
        "web/00000_stats.json": as_json({"count": 2, "successes": 1, "failed_to_download": 1})},
        [("00000.tar/000000000.jpg", "test", DOG)], "web", "web", {"not fetched": 1}, "img2dataset's tars"),
    "img2dataset-files": Example("img2dataset's folders of files", {
        "web/00000/000000000.jpg": Picture(1), "web/00000/000000000.txt": DOG,
        "web/00000/000000000.json": as_json({"caption": DOG, "key": "000000000", "status": "success"}),
        "web/00000.parquet": Columns({"url": ["http://x/a.jpg", "http://x/b.jpg"], "caption": [DOG, CAT],
                                      "key": ["000000000", "000000001"], "status": ["success", "failed_to_download"]}),
        "web/00000_stats.json": as_json({"count": 2})},
        [("00000/000000000.jpg", "test", DOG)], "web", "web", {"not fetched": 1}, "img2dataset's folders"),
    "img2dataset-parquet": Example("img2dataset's Parquet", {
        "web/00000.parquet": Columns({"url": ["http://x/a.jpg", "http://x/b.jpg"], "caption": [DOG, CAT],
                                      "key": ["000000000", "000000001"], "status": ["success", "failed_to_download"],
                                      "jpg": [Picture(1), None]})},
        [("00000.parquet/0", "test", DOG)], "web", "web", {"not fetched": 1}, "Parquet"),
    "image-and-text": Example("A text file beside each image", {
        "photos/a.jpg": Picture(1), "photos/a.txt": f"{DOG}\nTwo.\n", "photos/b.jpg": Picture(2), "photos/b.txt": CAT},
        [ROWS[0], ("a.jpg", "test", "Two."), ROWS[1]], "photos", "photos", said="images with a text beside each"),
}
"""Name -> an example of a layout."""


def write_all(folder: Path) -> list[str]:
    """Write all examples into an empty folder; a line on each with the command that reads it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and is not empty; name another folder for the examples")
    lines = []
    for name, example in EXAMPLES.items():
        example.write(folder / name)
        lines += [f"{example.title}:", f"  pipeline manifest example-{name} {' '.join(example.options(folder / name))}"]
    return lines
