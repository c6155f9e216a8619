"""Files of results, as mteb, CLIP_benchmark and LAVIS write them: numbers without scores."""

import os
import re
from decimal import Decimal
from pathlib import Path

from pipeline.foundation.evaluation.metrics.spelt import spelt
from pipeline.foundation.files import regular

LARGEST = 1 << 20  # bytes of a file of results
# A name and its number, in JSON, YAML and lines of a log.
NUMBER = re.compile(
    r"""(?<![\w@./-])["']?(?P<name>[A-Za-z][\w@./-]{0,60}?)["']?\s*[:=]\s*(?P<number>\d{1,4}(\.\d{1,20})?)(?![\w.])"""
)
# Numbers that are taken of a file, and the cutoffs of the first of them.
SHOWN = 6
PREFERRED = (10, 5, 1)
# What a tool's results hold -> the tool, and how it keeps scores.
TOOLS = {
    '"vidore_benchmark_version"': (
        "vidore-benchmark",
        "run mteb's ViDoRe tasks with prediction_folder",
    ),
    '"mteb_version"': ("mteb", "mteb.evaluate(…, prediction_folder='predictions') keeps them"),
    '"hit@1"': ("VLM2Vec", "NAME_qry beside it has the vectors"),
    '"image_retrieval_recall@': (
        "CLIP_benchmark",
        "torch.save({'image_features': …, 'text_features': …}, 'vectors.pt') in its zeroshot_retrieval.py",
    ),
    '"image_to_text_R@1"': (
        "open_clip",
        "torch.save({'image_features': …, 'text_features': …}, 'vectors.pt') in its metrics.py",
    ),
    'txt_r1"': (
        "LAVIS' or BLIP's",
        "numpy.savez('scores.npz', score_matrix_i2t=…, score_matrix_t2i=…) in its retrieval task",
    ),
}


def published(path: Path) -> str:
    """The numbers of a file, as `pipeline explain --published` takes them; "" for a file without
    any, or with several of one name.
    """
    text = _text(path)
    # VLM2Vec's recall is the share of the right candidates, and its hit a recall.
    other_recall = '"ndcg_linear@' in text
    numbers: dict[str, Decimal] = {}
    for match in NUMBER.finditer(text):
        name = match["name"]
        found = spelt(name)
        if found is None or not found.is_known or (other_recall and name.startswith("recall@")):
            continue
        if name in numbers:
            return ""
        numbers[name] = Decimal(match["number"])
    if numbers and max(numbers.values()) <= 1:  # shares
        numbers = {name: 100 * number for name, number in numbers.items()}
    names = [*numbers]
    if len(names) > SHOWN:
        names.sort(key=_preference)
    return ",".join(f"{name}={numbers[name].normalize():f}" for name in names[:SHOWN])


def queries(path: Path) -> int | None:
    """How many queries a file of results says that its numbers are of; None where it says none."""
    match = re.search(r'"num_data"\s*:\s*(\d{1,9})(?![\d.])', _text(path))
    if match is None:
        return None
    return int(match[1])


def _preference(name: str) -> int:
    """Which cutoffs are taken first where a file has many."""
    for place, cutoff in enumerate(PREFERRED):
        if re.search(rf"\D{cutoff}$", name):
            return place
    return len(PREFERRED)


def described(path: Path) -> str:
    """What a file of results is, and what to give in its place, for a message; "" for any other
    file.
    """
    numbers = published(path)
    text = _text(path)
    found = [tool for mark, tool in TOOLS.items() if mark in text]
    if not numbers and not found:
        return ""
    whose, advice = next(iter(found), ("", ""))
    said = f"holds {whose} results, not scores".replace("  ", " ")
    if advice:
        said += f"; {advice}"
    if numbers:
        said += (
            "; give the scores that they were measured on, to `pipeline explain` with --published "
            f"{numbers}"
        )
    return said


def _text(path: Path) -> str:
    """The text of a file of results; "" for one that is larger, or cannot be read."""
    if not os.path.isfile(path) or path.stat().st_size > LARGEST:
        return ""
    try:
        return regular.content(path).decode("utf-8", errors="replace")
    except OSError:  # why it cannot be read is said by who asks
        return ""
