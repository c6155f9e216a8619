"""How numbers are named: a direction and a metric; in JSON {"i2t": {"R@1": 55.1}, "t2i": {...},
"RSUM": 412.3}.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

# What is asked and what is found; the last two are tasks of CxC alone.
TASKS = {
    "i2t": "image → caption",
    "t2i": "caption → image",
    "i2i": "image → image",
    "t2t": "caption → caption",
}


class Statistic(NamedTuple):
    """What a number is: the metric of a direction, or of both together."""

    # A key of `TASKS`, "" for both. Tables also have metrics of something else, such as a language.
    direction: str
    metric: str  # Its name, see `pipeline.foundation.evaluation.metrics`

    def __str__(self) -> str:
        """The heading of its column in a flat table: i2t R@1, RSUM."""
        return f"{self.direction} {self.metric}".lstrip()


RECALLS = (1, 5, 10)
RSUM = Statistic("", "RSUM")
# What systems are compared by: six recalls and their sum.
STATISTICS = (*(Statistic(way, f"R@{k}") for way in ("i2t", "t2i") for k in RECALLS), RSUM)


def nested(numbers: Mapping[Statistic, Any]) -> dict[str, Any]:
    """Numbers as JSON has them: by direction and metric."""
    tree: dict[str, Any] = {}
    for (direction, metric), value in numbers.items():
        if direction:
            tree.setdefault(direction, {})[metric] = value
        else:
            tree[metric] = value
    return tree


def at(numbers: Mapping[str, Any], statistic: Statistic) -> Any:
    """One of the numbers that `nested` nested."""
    if statistic.direction:
        return numbers[statistic.direction][statistic.metric]
    return numbers[statistic.metric]


def joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Nested numbers of both; the first's where both have one."""
    both = dict(first)
    for name, value in second.items():
        if name not in first:
            both[name] = value
        elif isinstance(first[name], Mapping):
            both[name] = joined(first[name], value)
    return both


def flat(numbers: Mapping[str, Any]) -> dict[Statistic, Any]:
    """What `nested` was made of."""
    values: dict[Statistic, Any] = {}
    for name, value in numbers.items():
        if name not in TASKS:
            values[Statistic("", name)] = value
            continue
        for metric, number in value.items():
            values[Statistic(name, metric)] = number
    return values
