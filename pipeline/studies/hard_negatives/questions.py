"""Questions of hard negatives: an image with right and wrong captions. Their CSV, and published benchmarks.

A reader takes a file or its folder. SugarCrepe (Hsieh et al., NeurIPS 2023) has seven files on COCO val2017, one for
each kind of change: {"0": {"filename", "caption", "negative_caption"}, …}. Winoground (Thrush et al., CVPR 2022) has
two images and two captions of the same words in examples.jsonl: id, image_0, image_1, caption_0, caption_1,
collapsed_tag; images lie in files image_0.png and so on. ARO (Yuksekgonul et al., ICLR 2023), relations and attributes
of Visual Genome, has two lists of {image_path, bbox_x, bbox_y, bbox_w, bbox_h, true_caption, false_caption, …}. The
system is given the box, cut out of the image. These crops must be image files of their own, such as
2323_10_20_200_150.jpg for the box at x 10, y 20 of 200 × 150 pixels of 2323.jpg.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict

from pipeline.files.atomic import write_text
from pipeline.files.parsing import from_json, from_yaml
from pipeline.manifest.text_file import text_of
from pipeline.parts import lazy
from pipeline.parts.errors import InputError, look_up, refusing
from pipeline.settings import first_fault

READERS: lazy.LookupTable[Callable[[Path], list["Question"]]] = lazy.LookupTable({
    "csv": "pipeline.studies.hard_negatives.questions:from_csv",
    "sugarcrepe": "pipeline.studies.hard_negatives.questions:sugarcrepe",
    "aro": "pipeline.studies.hard_negatives.questions:aro",
    "winoground": "pipeline.studies.hard_negatives.questions:winoground",
}, "readers of questions", "format of questions")
EXPECTED = "image,positive[,positive…],negative[,negative…][,category][,group]"
SUGARCREPE = ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj")
ARO = ("visual_genome_relation.json", "visual_genome_attribution.json")


@dataclass(frozen=True)
class Question:
    """An image with right and wrong captions: which are right?"""

    image: str  # the image's file, as the benchmark names it
    positives: tuple[str, ...]  # right captions, one at least
    negatives: tuple[str, ...]  # wrong captions, one at least
    category: str  # what is wrong in the wrong ones; accuracies are by category
    group: str = ""  # the group of two questions that exchange their captions (Winoground); "" for none

    def __post_init__(self) -> None:
        captions = (*self.positives, *self.negatives)
        if not self.image or not self.positives or not self.negatives or not all(each.strip() for each in captions):
            raise InputError(f"{self.image or 'a question without an image'}: expected an image, right captions and "
                             "wrong captions, none of them empty")


def save(path: Path, questions: Sequence[Question]) -> None:
    """Write questions as the CSV that `read` reads."""
    most = [max(len(getattr(each, side)) for each in questions) for side in ("positives", "negatives")]
    held = io.StringIO()
    rows = csv.writer(held, lineterminator="\n")
    rows.writerow(["image", "category", "group", *["positive"] * most[0], *["negative"] * most[1]])
    for each in questions:
        rows.writerow([each.image, each.category, each.group,
                       *each.positives, *[""] * (most[0] - len(each.positives)),
                       *each.negatives, *[""] * (most[1] - len(each.negatives))])
    write_text(path, held.getvalue())


class Card(BaseModel):
    """One `manifests/hard_negatives/NAME.yaml`.

    `questions` is a path below the root, `format` a key of `READERS`, `counts` the number of questions in each
    category, `languages` those of the captions, `bibtex` the paper to cite.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    title: str
    licence: str
    source: str
    questions: str
    images: str
    format: str
    counts: dict[str, int] = {}
    languages: list[str] = []
    bibtex: str = ""


def read(name: str, form: str | None, root: Path) -> list[Question]:
    """Read the questions of a benchmark that has a card, or of a file or folder.

    form: a key of `READERS`; None for the card's, or csv. root: a card's files lie below it, and must have as many
    questions as it says.
    """
    card = None if Path(name).exists() else _card(name)
    path = root / card.questions if card else Path(name)
    if not path.exists():
        assert card is not None
        raise InputError(f"{path}: not there; {card.title} comes from {card.source}")
    questions = READERS.find(form or (card.format if card else "csv"))(path)
    if not questions:
        raise InputError(f"{path}: holds no questions")
    counts = Counter(question.category for question in questions)
    if card and card.counts and counts != card.counts:
        raise InputError(f"{path}: expected the questions {card.counts}, got {dict(counts)}; fetch it again")
    return questions


def _card(name: str) -> Card:
    cards = {file.name.removesuffix(".yaml"): file
             for file in (resources.files("manifests") / "hard_negatives").iterdir() if file.name.endswith(".yaml")}
    card = look_up("benchmark or file", name, dict(sorted(cards.items())))
    with refusing((ValueError, TypeError), lambda error: f"manifests/hard_negatives/{name}.yaml: "
                  f"{first_fault(error, Card)}"):
        return Card.model_validate(from_yaml(card.read_text(encoding="utf-8")))


def from_csv(path: Path) -> list[Question]:
    """Read a CSV. The columns positive and negative may stand several times; empty fields of them are left out."""
    lines = csv.reader(io.StringIO(text_of(path), newline=None), strict=True)
    with refusing(csv.Error, lambda error: f"{path}, line {lines.line_num}: {error}"):
        header = next(lines, [])
        unknown = set(header) - {"image", "positive", "negative", "category", "group"}
        if unknown or not {"image", "positive", "negative"} <= set(header):
            raise InputError(f"{path}: the first line must be {EXPECTED}, got {','.join(header)[:80]!r}")
        return [_question(f"{path}, line {lines.line_num}", header, line) for line in lines if line]


def _question(place: str, header: list[str], line: list[str]) -> Question:
    if len(line) != len(header):
        raise InputError(f"{place}: expected {len(header)} fields, got {len(line)}; put quotes round a caption that "
                         "holds a comma")
    fields: dict[str, list[str]] = {}
    for name, value in zip(header, line, strict=True):
        fields.setdefault(name, []).append(value)
    positives, negatives = (tuple(filter(None, fields[side])) for side in ("positive", "negative"))
    with refusing(InputError, lambda error: f"{place}: {error}"):
        return Question(fields["image"][0], positives, negatives, fields.get("category", ["all"])[0] or "all",
                        fields.get("group", [""])[0])


def sugarcrepe(path: Path) -> list[Question]:
    """Make a question of each entry; its category is the file's name."""
    found = [path / f"{name}.json" for name in SUGARCREPE] if path.is_dir() else [path]
    return [Question(_text(entry, "filename", file), (_text(entry, "caption", file),),
                     (_text(entry, "negative_caption", file),), file.stem)
            for file in found for entry in _entries(file)]


def winoground(path: Path) -> list[Question]:
    """Make a group of two questions of each entry; their category is the entry's `collapsed_tag`."""
    file = path / "examples.jsonl" if path.is_dir() else path
    found = []
    for number, entry in enumerate(_entries(file)):
        captions = [_text(entry, f"caption_{side}", file) for side in (0, 1)]
        category = _text(entry, "collapsed_tag", file) if "collapsed_tag" in entry else "all"
        found += [Question(_text(entry, f"image_{side}", file), (captions[side],), (captions[1 - side],), category,
                           f"{number}") for side in (0, 1)]
    return found


def aro(path: Path) -> list[Question]:
    """Make a question of each entry; its category is "relation" or "attribution"."""
    found = [path / name for name in ARO] if path.is_dir() else [path]
    return [Question(_crop(entry, file), (_text(entry, "true_caption", file),),
                     (_text(entry, "false_caption", file),), file.stem.rsplit("_", 1)[-1])
            for file in found for entry in _entries(file)]


def _entries(path: Path) -> list[Mapping[str, Any]]:
    """The objects of a list, of an object of objects or, with the suffix .jsonl, one a line."""
    with refusing(ValueError, lambda error: f"{path}: not readable as JSON: {error}"):
        held = [from_json(line) for line in text_of(path).split("\n") if line.strip()] if path.suffix == ".jsonl" \
            else from_json(text_of(path))
    found = list(held.values()) if isinstance(held, dict) else held
    if not isinstance(found, list) or not found or not all(isinstance(entry, dict) for entry in found):
        raise InputError(f"{path}: expected a list of objects")
    return found


def _text(entry: Mapping[str, Any], key: str, path: Path) -> str:
    if not isinstance(value := entry.get(key), str):
        raise InputError(f"{path}: expected a text {key!r} in every entry, got {str(entry)[:120]}")
    return value


def _crop(entry: Mapping[str, Any], file: Path) -> str:
    box = [entry.get(f"bbox_{side}") for side in "xywh"]
    if not all(isinstance(side, int | float) for side in box):
        raise InputError(f"{file}: expected bbox_x, bbox_y, bbox_w and bbox_h in every entry, got {str(entry)[:120]}")
    image = PurePosixPath(_text(entry, "image_path", file))
    return f"{image.stem}_{'_'.join(f'{side:g}' for side in box)}{image.suffix}"
