"""Readers of questions by name, and the cards of published benchmarks."""

from collections import Counter
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pipeline.files.parsing import from_yaml
from pipeline.parts import lazy
from pipeline.parts.errors import InputError, unknown
from pipeline.settings import first_fault
from pipeline.studies.hard_negatives.question import Question

READERS: lazy.LookupTable[Callable[[Path], list[Question]]] = lazy.LookupTable({
    "csv": "pipeline.studies.hard_negatives.question:read",
    "sugarcrepe": "pipeline.studies.hard_negatives.json_files:sugarcrepe",
    "aro": "pipeline.studies.hard_negatives.json_files:aro",
    "winoground": "pipeline.studies.hard_negatives.json_files:winoground",
}, "readers of questions")


class Card(BaseModel):
    """One `manifests/hard_negatives/NAME.yaml`.

    `questions` is a path below the root, `format` a key of `READERS`, `counts` the number of questions in each
    category.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    title: str
    licence: str
    source: str
    questions: str
    images: str
    format: str
    counts: dict[str, int] = {}


def read(name: str, form: str | None, root: Path = Path()) -> list[Question]:
    """Read questions.

    Args:
        name: A benchmark that has a card, or a file or folder.
        form: The format, a key of `READERS`; None for the card's, or csv.
        root: The project's folder, below which a card's files lie.

    Returns:
        The questions.

    Raises:
        InputError: If there is no such card or file, or it is malformed, or has other numbers of questions than its
            card.
    """
    card = None if Path(name).exists() else _card(name)
    path = root / card.questions if card else Path(name)
    if not path.exists():
        assert card is not None
        raise InputError(f"{path}: not there; {card.title} comes from {card.source}")
    form = form or (card.format if card else "csv")
    if form not in READERS:
        raise unknown("format of questions", form, READERS)
    questions = READERS[form](path)
    if not questions:
        raise InputError(f"{path}: holds no questions")
    counts = Counter(question.category for question in questions)
    if card and card.counts and counts != card.counts:
        raise InputError(f"{path}: expected the questions {card.counts}, got {dict(counts)}; fetch it again")
    return questions


def _card(name: str) -> Card:
    cards = {file.name.removesuffix(".yaml"): file
             for file in (resources.files("manifests") / "hard_negatives").iterdir() if file.name.endswith(".yaml")}
    if name not in cards:
        raise unknown("benchmark or file", name, sorted(cards))
    try:
        return Card.model_validate(from_yaml(cards[name].read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise InputError(f"manifests/hard_negatives/{name}.yaml: {first_fault(error)}") from None
