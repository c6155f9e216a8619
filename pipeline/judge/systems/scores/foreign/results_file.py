"""Files of results that are given where scores are expected, as CLIP_benchmark and LAVIS write."""

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
# Numbers that a message shows.
SHOWN = 6


def published(path: Path) -> str:
    """The recalls of a file, as `pipeline explain --published` takes them; "" for a file without
    recalls, or with several of one name.
    """
    if not os.path.isfile(path) or path.stat().st_size > LARGEST:
        return ""
    try:
        text = regular.content(path).decode("utf-8", errors="replace")
    except OSError:  # why it cannot be read is said by who asks
        return ""
    recalls: dict[str, Decimal] = {}
    for match in NUMBER.finditer(text):
        found = spelt(match["name"])
        if found is None or not found.is_recall:
            continue
        if match["name"] in recalls:
            return ""
        recalls[match["name"]] = Decimal(match["number"])
    if recalls and max(recalls.values()) <= 1:  # shares
        recalls = {name: 100 * number for name, number in recalls.items()}
    shown = [f"{name}={number.normalize():f}" for name, number in recalls.items()]
    return ",".join(shown[:SHOWN])
