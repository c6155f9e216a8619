"""Questions of hard negatives: an image with right and wrong captions. Their CSV, and published
benchmarks.

A reader takes a file or its folder. SugarCrepe (Hsieh et al., NeurIPS 2023) has seven files on COCO
val2017, one for each kind of change: {"0": {"filename", "caption", "negative_caption"}, …}.
Winoground (Thrush et al., CVPR 2022) has two images and two captions of the same words in
examples.jsonl: id, image_0, image_1, caption_0, caption_1, collapsed_tag; images are files
image_0.png and so on. ARO (Yuksekgonul et al., ICLR 2023), relations and attributes of Visual
Genome, has two lists of {image_path, bbox_x, bbox_y, bbox_w, bbox_h, true_caption, false_caption,
…}. The system is given the box, cut out of the image. These crops must be image files of their own,
such as 2323_10_20_200_150.jpg for the box at x 10, y 20 of 200 × 150 pixels of 2323.jpg.

Entries or rows of other benchmarks (VALSE, CREPE, one's own) are read by their keys, `SPELT`. Those
that cannot be used are left out and counted.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any
from unicodedata import normalize

from pydantic import BaseModel, ConfigDict

from pipeline.files.atomic import write_text
from pipeline.files.left_out import SHARE, LeftOut
from pipeline.files.parsing import from_json, from_yaml
from pipeline.manifest.text_file import text_of
from pipeline.parts import lazy
from pipeline.parts.errors import InputError, counted, look_up, refusing
from pipeline.settings import first_fault

READERS: lazy.LookupTable[Callable[[Path, LeftOut], list["Question"]]] = lazy.LookupTable(
    {
        "csv": "pipeline.studies.hard_negatives.questions:from_csv",
        "entries": "pipeline.studies.hard_negatives.questions:from_entries",
        "sugarcrepe": "pipeline.studies.hard_negatives.questions:sugarcrepe",
        "aro": "pipeline.studies.hard_negatives.questions:aro",
        "winoground": "pipeline.studies.hard_negatives.questions:winoground",
    },
    "readers of questions",
    "format of questions",
)
EXPECTED = "image,positive[,positive…],negative[,negative…][,category][,group]"
SUGARCREPE = (
    "add_att",
    "add_obj",
    "replace_att",
    "replace_obj",
    "replace_rel",
    "swap_att",
    "swap_obj",
)
ARO = ("visual_genome_relation.json", "visual_genome_attribution.json")
# What an entry or column is -> how benchmarks spell it, in lower case; several may be there, and
# lists of texts.
SPELT = {
    "image": ("image", "filename", "file_name", "image_file", "image_path", "file"),
    "positive": ("positive", "positives", "caption", "captions", "true_caption", "correct"),
    "negative": (
        "negative",
        "negatives",
        "negative_caption",
        "negative_captions",
        "foil",
        "foils",
        "false_caption",
        "hard_neg",
        "hard_negs",
        "valid_hard_negs",
    ),
    "category": ("category", "collapsed_tag", "linguistic_phenomena", "phenomenon"),
    "group": ("group",),
}


@dataclass(frozen=True)
class Question:
    """An image with right and wrong captions: which are right?"""

    image: str  # the image's file, as the benchmark names it
    positives: tuple[str, ...]  # right captions, one at least
    negatives: tuple[str, ...]  # wrong captions, one at least
    category: str  # what is wrong in the wrong ones; accuracies are by category
    group: str = (
        ""  # the group of two questions that exchange their captions (Winoground); "" for none
    )

    def __post_init__(self) -> None:
        for side in ("positives", "negatives"):  # equal captions are equal, as in a manifest
            object.__setattr__(
                self, side, tuple(normalize("NFC", caption) for caption in getattr(self, side))
            )
        captions = (*self.positives, *self.negatives)
        if (
            not self.image
            or not self.positives
            or not self.negatives
            or not all(each.strip() for each in captions)
        ):
            raise InputError(
                f"{self.image or 'a question without an image'}: expected an image, right captions and "
                "wrong captions, none of them empty"
            )


def save(path: Path, questions: Sequence[Question]) -> None:
    """Write questions as the CSV that `read` reads."""
    most = [
        max(len(getattr(each, side)) for each in questions) for side in ("positives", "negatives")
    ]
    held = io.StringIO()
    rows = csv.writer(held, lineterminator="\n")
    rows.writerow(["image", "category", "group", *["positive"] * most[0], *["negative"] * most[1]])
    for each in questions:
        rows.writerow(
            [
                each.image,
                each.category,
                each.group,
                *each.positives,
                *[""] * (most[0] - len(each.positives)),
                *each.negatives,
                *[""] * (most[1] - len(each.negatives)),
            ]
        )
    write_text(path, held.getvalue())


class Card(BaseModel):
    """One `manifests/hard_negatives/NAME.yaml`.

    `questions` is a path below the root, `format` a key of `READERS`, `counts` the number of
    questions in each category, `languages` those of the captions, `bibtex` the paper to cite.
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


def read(
    name: str, form: str | None, root: Path, share: float = SHARE
) -> tuple[list[Question], list[str]]:
    """Read the questions of a benchmark that has a card, or of a file or folder; and what to say of
    them, in lines.

    form: a key of `READERS`; None for the card's, or the one that the content shows. root: files
        are below it, and a card's must have as many questions as it says. share: the largest that
        may be left out.
    """
    card = None if (root / name).exists() else _card(name)
    path = root / (card.questions if card else name)
    if not path.exists():
        assert card is not None
        raise InputError(f"{path}: missing; {card.title} comes from {card.source}")
    form, left_out = form or (card.format if card else recognised(path)), LeftOut("question", share)
    questions = READERS.find(form)(path, left_out)
    with refusing(InputError, lambda error: f"{path}: {error}"):
        left_out.check(len(questions) + sum(left_out.counts.values()))
    if not questions:
        raise InputError("; ".join([f"{path}: holds no questions", *left_out.lines()]))
    counts = Counter(question.category for question in questions)
    if card and card.counts and counts != card.counts:
        raise InputError(
            f"{path}: expected the questions {card.counts}, got {dict(counts)}; fetch it again"
        )
    categories = f" of {counted(len(counts), 'category').replace('categorys', 'categories')}"
    return questions, [
        f"{path}: read as {form}, {counted(len(questions), 'question')}{categories}",
        *(f"{path}: {line}" for line in left_out.lines()),
    ]


def recognised(path: Path) -> str:
    """Recognise a format by the names in a folder, or by the keys of a file's first entry."""
    if path.is_dir():
        names = {file.name for file in path.iterdir()}
        forms = [
            form
            for form, wanted in (
                ("sugarcrepe", {f"{name}.json" for name in SUGARCREPE}),
                ("aro", {*ARO}),
                ("winoground", {"examples.jsonl"}),
            )
            if wanted & names
        ]
        if len(forms) != 1:
            raise InputError(
                f"{path}: expected the files of sugarcrepe, aro or winoground, got "
                f"{', '.join(sorted(names)[:8]) or 'none'}; name one file, or --format"
            )
        return forms[0]
    if path.suffix not in (".json", ".jsonl"):
        return "csv"
    keys = set(_entries(path)[0])
    if "bbox_x" in keys:
        return "aro"
    return "winoground" if "image_0" in keys else "entries"


def _card(name: str) -> Card:
    cards = {
        file.name.removesuffix(".yaml"): file
        for file in (resources.files("manifests") / "hard_negatives").iterdir()
        if file.name.endswith(".yaml")
    }
    card = look_up("benchmark or file", name, dict(sorted(cards.items())))
    with refusing(
        (ValueError, TypeError),
        lambda error: f"manifests/hard_negatives/{name}.yaml: {first_fault(error, Card)}",
    ):
        return Card.model_validate(from_yaml(card.read_text(encoding="utf-8")))


def from_csv(path: Path, left_out: LeftOut) -> list[Question]:
    """Read a CSV. The columns positive and negative may occur several times; empty fields of them
    are left out.
    """
    text = text_of(path)
    first = text.partition("\n")[0]
    lines = csv.reader(
        io.StringIO(text, newline=None), strict=True, delimiter=max(",;\t", key=first.count)
    )  # of equally many the comma
    with refusing(csv.Error, lambda error: f"{path}, line {lines.line_num}: {error}"):
        header = next(lines, [])
        sides = [_side(name) for name in header]
        if not {"image", "positive", "negative"} <= {*sides} or sides.count("image") > 1:
            raise InputError(
                f"{path}: the first line must be {EXPECTED}, got {','.join(header)[:80]!r}"
            )
        questions = []
        for line in filter(None, lines):
            place = f"line {lines.line_num}"
            if len(line) != len(header):
                left_out.add(f"not {len(header)} fields", f"{place}: {','.join(line)[:80]}")
            else:
                questions += _question([*zip(sides, line, strict=True)], "all", place, left_out)
    return questions


def from_entries(path: Path, left_out: LeftOut) -> list[Question]:
    """Make a question of each entry, by its keys; its category is the entry's, else the file's
    name.
    """
    questions = []
    for number, entry in enumerate(_entries(path), 1):
        values = [
            (side, value)
            for key, held in entry.items()
            if (side := _side(key)) is not None
            for value in (held if isinstance(held, list) else [held])
            if isinstance(value, str)
        ]
        if number == 1 and (
            missing := {"image", "positive", "negative"} - {side for side, _ in values}
        ):
            raise InputError(
                f"{path}: the first entry has no text for {' or '.join(sorted(missing))}, its keys are "
                f"{', '.join(entry)[:120]}; expected such as filename, caption, negative_caption"
            )
        if "bbox_x" in entry:
            raise InputError(f"{path}: asks about boxes, as ARO does; read it with --format aro")
        questions += _question(values, path.stem, f"entry {number} of {path.name}", left_out)
    return questions


def _side(name: str) -> str | None:
    """What an entry's key or a column is."""
    return next((side for side, spelt in SPELT.items() if name.strip().lower() in spelt), None)


def _question(
    values: Sequence[tuple[str | None, str]], category: str, place: str, left_out: LeftOut
) -> list[Question]:
    of = {
        side: [value.strip() for name, value in values if name == side and value.strip()]
        for side in SPELT
    }
    lacking = [
        what
        for side, what in (
            ("image", "image"),
            ("positive", "right caption"),
            ("negative", "wrong caption"),
        )
        if not of[side]
    ]
    if lacking:
        left_out.add(f"no {lacking[0]}", place)
        return []
    return [
        Question(
            of["image"][0],
            tuple(of["positive"]),
            tuple(of["negative"]),
            (of["category"] or [category])[0],
            (of["group"] or [""])[0],
        )
    ]


def sugarcrepe(path: Path, left_out: LeftOut) -> list[Question]:
    """Make a question of each entry; its category is the file's name."""
    files = [path / f"{name}.json" for name in SUGARCREPE] if path.is_dir() else [path]
    return [question for file in files for question in from_entries(file, left_out)]


def winoground(path: Path, left_out: LeftOut) -> list[Question]:
    """Make a group of two questions of each entry; their category is the entry's
    `collapsed_tag`.
    """
    file = path / "examples.jsonl" if path.is_dir() else path
    questions = []
    for number, entry in enumerate(_entries(file)):
        captions = [_text(entry, f"caption_{side}", file) for side in (0, 1)]
        category = _text(entry, "collapsed_tag", file) if "collapsed_tag" in entry else "all"
        questions += [
            Question(
                _text(entry, f"image_{side}", file),
                (captions[side],),
                (captions[1 - side],),
                category,
                f"{number}",
            )
            for side in (0, 1)
        ]
    return questions


def aro(path: Path, left_out: LeftOut) -> list[Question]:
    """Make a question of each entry; its category is "relation" or "attribution"."""
    files = [path / name for name in ARO] if path.is_dir() else [path]
    return [
        Question(
            _crop(entry, file),
            (_text(entry, "true_caption", file),),
            (_text(entry, "false_caption", file),),
            file.stem.rsplit("_", 1)[-1],
        )
        for file in files
        for entry in _entries(file)
    ]


def _entries(path: Path) -> list[Mapping[str, Any]]:
    """The objects of a list, of an object of objects or, with the suffix .jsonl, one a line."""
    with refusing(ValueError, lambda error: f"{path}: not readable as JSON: {error}"):
        held = (
            [from_json(line) for line in text_of(path).split("\n") if line.strip()]
            if path.suffix == ".jsonl"
            else from_json(text_of(path))
        )
    entries = list(held.values()) if isinstance(held, dict) else held
    if (
        not isinstance(entries, list)
        or not entries
        or not all(isinstance(entry, dict) for entry in entries)
    ):
        raise InputError(f"{path}: expected a list of objects")
    return entries


def _text(entry: Mapping[str, Any], key: str, path: Path) -> str:
    if not isinstance(value := entry.get(key), str):
        raise InputError(f"{path}: expected a text {key!r} in every entry, got {str(entry)[:120]}")
    return value


def _crop(entry: Mapping[str, Any], file: Path) -> str:
    box = [entry.get(f"bbox_{side}") for side in "xywh"]
    if not all(isinstance(side, int | float) for side in box):
        raise InputError(
            f"{file}: expected bbox_x, bbox_y, bbox_w and bbox_h in every entry, got {str(entry)[:120]}"
        )
    image = PurePosixPath(_text(entry, "image_path", file))
    return f"{image.stem}_{'_'.join(f'{side:g}' for side in box)}{image.suffix}"
