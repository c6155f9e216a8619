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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any
from unicodedata import normalize

from pydantic import BaseModel, ConfigDict

from pipeline.foundation.files.atomic import write_text
from pipeline.foundation.files.left_out import SHARE, LeftOut
from pipeline.foundation.files.parsing import from_json, from_yaml
from pipeline.foundation.manifest.text_file import text_of
from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError, counted, look_up, refusing
from pipeline.foundation.settings import first_fault

READERS: lazy.LookupTable[Callable[[Path, LeftOut], list["Question"]]] = lazy.LookupTable(
    {
        "csv": "pipeline.extensions.hard_negatives.questions:from_csv",
        "entries": "pipeline.extensions.hard_negatives.questions:from_entries",
        "sugarcrepe": "pipeline.extensions.hard_negatives.questions:sugarcrepe",
        "aro": "pipeline.extensions.hard_negatives.questions:aro",
        "winoground": "pipeline.extensions.hard_negatives.questions:winoground",
    },
    "readers of questions",
    "format of questions",
)
EXPECTED = "image,positive[,positive…],negative[,negative…][,category][,group]"
# A format -> its files in a folder.
FILES = {
    "sugarcrepe": (
        "add_att.json",
        "add_obj.json",
        "replace_att.json",
        "replace_obj.json",
        "replace_rel.json",
        "swap_att.json",
        "swap_obj.json",
    ),
    "aro": ("visual_genome_relation.json", "visual_genome_attribution.json"),
    "winoground": ("examples.jsonl",),
}
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
# What a question cannot do without, and how messages call it.
NEEDED = {"image": "image", "positive": "right caption", "negative": "wrong caption"}


@dataclass(frozen=True)
class Question:
    """An image with right and wrong captions: which are right?"""

    image: str  # the image's file, as the benchmark names it
    positives: tuple[str, ...]  # right captions, one at least
    negatives: tuple[str, ...]  # wrong captions, one at least
    category: str  # what is wrong in the wrong ones; accuracies are by category
    # The group of two questions that exchange their captions (Winoground); "" for none.
    group: str = ""

    def __post_init__(self) -> None:
        # Equal captions are equal, as in a manifest.
        object.__setattr__(self, "positives", _normalised(self.positives))
        object.__setattr__(self, "negatives", _normalised(self.negatives))
        captions = (*self.positives, *self.negatives)
        is_complete = self.image and self.positives and self.negatives
        has_texts = all(caption.strip() for caption in captions)
        if not is_complete or not has_texts:
            raise InputError(
                f"{self.image or 'a question without an image'}: expected an image, right captions and "
                "wrong captions, none of them empty"
            )


def _normalised(captions: Iterable[str]) -> tuple[str, ...]:
    return tuple(normalize("NFC", caption) for caption in captions)


def save(path: Path, questions: Sequence[Question]) -> None:
    """Write questions as the CSV that `read` reads."""
    positives = max(len(question.positives) for question in questions)
    negatives = max(len(question.negatives) for question in questions)
    csv_text = io.StringIO()
    rows = csv.writer(csv_text, lineterminator="\n")
    header = ["image", "category", "group"]
    header += ["positive"] * positives
    header += ["negative"] * negatives
    rows.writerow(header)
    for question in questions:
        row = [question.image, question.category, question.group]
        row += _padded(question.positives, positives)
        row += _padded(question.negatives, negatives)
        rows.writerow(row)
    write_text(path, csv_text.getvalue())


def _padded(captions: Sequence[str], count: int) -> list[str]:
    missing = count - len(captions)
    return [*captions, *[""] * missing]


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
    path = root / name
    card = None
    if not path.exists():
        card = _card(name)
        path = root / card.questions
        if not path.exists():
            raise InputError(f"{path}: missing; {card.title} comes from {card.source}")
        if form is None:
            form = card.format
    if form is None:
        form = recognised(path)
    left_out = LeftOut("question", share)
    read_file = READERS.find(form)
    questions = read_file(path, left_out)
    total = len(questions) + sum(left_out.counts.values())
    with refusing(InputError, lambda error: f"{path}: {error}"):
        left_out.check(total)
    if not questions:
        raise InputError("; ".join([f"{path}: holds no questions", *left_out.lines()]))
    counts = Counter(question.category for question in questions)
    if card and card.counts and counts != card.counts:
        raise InputError(
            f"{path}: expected the questions {card.counts}, got {dict(counts)}; fetch it again"
        )
    number = counted(len(questions), "question")
    categories = counted(len(counts), "category").replace("categorys", "categories")
    lines = [f"read as {form}, {number} of {categories}", *left_out.lines()]
    return questions, [f"{path}: {line}" for line in lines]


def recognised(path: Path) -> str:
    """Recognise a format by the names in a folder, or by the keys of a file's first entry."""
    if path.is_dir():
        names = {file.name for file in path.iterdir()}
        forms = [form for form, files in FILES.items() if not names.isdisjoint(files)]
        if len(forms) != 1:
            some_names = ", ".join(sorted(names)[:8]) or "none"
            raise InputError(
                f"{path}: expected the files of sugarcrepe, aro or winoground, got {some_names}; "
                "name one file, or --format"
            )
        return forms[0]
    if path.suffix not in (".json", ".jsonl"):
        return "csv"
    first = _entries(path)[0]
    if "bbox_x" in first:
        return "aro"
    if "image_0" in first:
        return "winoground"
    return "entries"


def _card(name: str) -> Card:
    folder = resources.files("manifests") / "hard_negatives"
    files = [file for file in folder.iterdir() if file.name.endswith(".yaml")]
    cards = {file.name.removesuffix(".yaml"): file for file in files}
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
    first, _, _ = text.partition("\n")
    delimiter = max(",;\t", key=first.count)  # of equally many the comma
    lines = csv.reader(io.StringIO(text, newline=None), strict=True, delimiter=delimiter)
    with refusing(csv.Error, lambda error: f"{path}, line {lines.line_num}: {error}"):
        header = next(lines, [])
        sides = [_side(name) for name in header]
        missing = NEEDED.keys() - sides
        if missing or sides.count("image") > 1:
            beginning = ",".join(header)[:80]
            raise InputError(f"{path}: the first line must be {EXPECTED}, got {beginning!r}")
        questions = []
        for fields in filter(None, lines):
            place = f"line {lines.line_num}"
            if len(fields) != len(header):
                beginning = ",".join(fields)[:80]
                left_out.add(f"not {len(header)} fields", f"{place}: {beginning}")
                continue
            values = list(zip(sides, fields, strict=True))
            questions += _question(values, "all", place, left_out)
    return questions


def from_entries(path: Path, left_out: LeftOut) -> list[Question]:
    """Make a question of each entry, by its keys; its category is the entry's, else the file's
    name.
    """
    questions = []
    for number, entry in enumerate(_entries(path), 1):
        values = _texts(entry)
        missing = NEEDED.keys() - {side for side, _ in values}
        if number == 1 and missing:
            absent = " or ".join(sorted(missing))
            keys = ", ".join(entry)[:120]
            raise InputError(
                f"{path}: the first entry has no text for {absent}, its keys are {keys}; "
                "expected such as filename, caption, negative_caption"
            )
        if "bbox_x" in entry:
            raise InputError(f"{path}: asks about boxes, as ARO does; read it with --format aro")
        questions += _question(values, path.stem, f"entry {number} of {path.name}", left_out)
    return questions


def _texts(entry: Mapping[str, Any]) -> list[tuple[str | None, str]]:
    """The texts of an entry, each with what it is, a key of `SPELT`."""
    values: list[tuple[str | None, str]] = []
    for key, value in entry.items():
        side = _side(key)
        if side is None:
            continue
        texts = value if isinstance(value, list) else [value]
        values += [(side, text) for text in texts if isinstance(text, str)]
    return values


def _side(name: str) -> str | None:
    """What an entry's key or a column is."""
    spelling = name.strip().lower()
    for side, spellings in SPELT.items():
        if spelling in spellings:
            return side
    return None


def _question(
    values: Sequence[tuple[str | None, str]], category: str, place: str, left_out: LeftOut
) -> list[Question]:
    """The question of an entry's or line's texts; none where one is missing."""
    texts: dict[str | None, list[str]] = {side: [] for side in SPELT}
    for side, value in values:
        if side is not None and value.strip():
            texts[side].append(value.strip())
    for side, what in NEEDED.items():
        if not texts[side]:
            left_out.add(f"no {what}", place)
            return []
    question = Question(
        image=texts["image"][0],
        positives=tuple(texts["positive"]),
        negatives=tuple(texts["negative"]),
        category=(texts["category"] or [category])[0],
        group=(texts["group"] or [""])[0],
    )
    return [question]


def sugarcrepe(path: Path, left_out: LeftOut) -> list[Question]:
    """Make a question of each entry; its category is the file's name."""
    questions = []
    for file in _files(path, FILES["sugarcrepe"]):
        questions += from_entries(file, left_out)
    return questions


def _files(path: Path, names: Iterable[str]) -> list[Path]:
    """A benchmark's files in its folder; or the one that is named."""
    if path.is_dir():
        return [path / name for name in names]
    return [path]


def winoground(path: Path, left_out: LeftOut) -> list[Question]:
    """Make a group of two questions of each entry; their category is the entry's
    `collapsed_tag`.
    """
    (file,) = _files(path, FILES["winoground"])
    questions = []
    for number, entry in enumerate(_entries(file)):
        captions = [_text(entry, f"caption_{side}", file) for side in (0, 1)]
        category = "all"
        if "collapsed_tag" in entry:
            category = _text(entry, "collapsed_tag", file)
        for side in (0, 1):
            image = _text(entry, f"image_{side}", file)
            right = (captions[side],)
            wrong = (captions[1 - side],)
            questions.append(Question(image, right, wrong, category, group=str(number)))
    return questions


def aro(path: Path, left_out: LeftOut) -> list[Question]:
    """Make a question of each entry; its category is "relation" or "attribution"."""
    questions = []
    for file in _files(path, FILES["aro"]):
        category = file.stem.rsplit("_", 1)[-1]
        for entry in _entries(file):
            image = _crop(entry, file)
            right = _text(entry, "true_caption", file)
            wrong = _text(entry, "false_caption", file)
            questions.append(Question(image, (right,), (wrong,), category))
    return questions


def _entries(path: Path) -> list[Mapping[str, Any]]:
    """The objects of a list, of an object of objects or, with the suffix .jsonl, one a line."""
    with refusing(ValueError, lambda error: f"{path}: not readable as JSON: {error}"):
        text = text_of(path)
        if path.suffix == ".jsonl":
            lines = text.split("\n")
            entries = [from_json(line) for line in lines if line.strip()]
        else:
            entries = from_json(text)
    if isinstance(entries, dict):
        entries = list(entries.values())
    is_list = isinstance(entries, list) and entries
    if not is_list or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{path}: expected a list of objects")
    return entries


def _text(entry: Mapping[str, Any], key: str, path: Path) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise InputError(f"{path}: expected a text {key!r} in every entry, got {str(entry)[:120]}")
    return value


def _crop(entry: Mapping[str, Any], file: Path) -> str:
    box = [entry.get(f"bbox_{side}") for side in "xywh"]
    if not all(isinstance(side, int | float) for side in box):
        raise InputError(
            f"{file}: expected bbox_x, bbox_y, bbox_w and bbox_h in every entry, got {str(entry)[:120]}"
        )
    image = PurePosixPath(_text(entry, "image_path", file))
    numbers = "_".join(f"{side:g}" for side in box)
    return f"{image.stem}_{numbers}{image.suffix}"
