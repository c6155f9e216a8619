"""Numbers of a run as other tools measure them, by the ids of its files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pipeline.foundation.evaluation.metrics import Metric
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.explain.differences import TOOLS
from pipeline.judge.systems.scores import conventions
from pipeline.judge.systems.scores.conventions import ALL, Asked, Formula, OfLists, Ordered

# Our name of a metric -> its formula.
FORMULAS: Mapping[str, Formula] = {
    "R": conventions.hit,
    "Recall": conventions.share,
    "P": conventions.precision,
    "MRR": conventions.reciprocal_rank,
    "nDCG": conventions.linear_ndcg,
    "nDCG_exp": conventions.exponential_ndcg,
    "AP": conventions.average_precision,
    "AP_min": conventions.average_precision_of_possible,
}


class OfTools:
    """A run, which is read once for each tool."""

    def __init__(self, path: Path, parts: Sequence[str], judgements: Path) -> None:
        """Measure a run. parts: what the user types behind the file. judgements: what is right."""
        self.path = path
        self.parts = parts
        self.judgements = judgements
        # A tool remembers what it learns of the files when it reads the lists.
        self._tools: dict[str, OfLists] = {}
        self._lists: dict[str, list[Asked]] = {}
        self._orders: dict[tuple[str, str], list[Ordered]] = {}

    def number(self, name: str, metric: Metric) -> float:
        """A metric in percent as a tool measures it; NaN for one that it lacks. name: the tool with
        its options, see `conventions.of_tool`.
        """
        tool = self._tool(name)
        formula = FORMULAS.get(metric.name)
        names = [of_tool for of_tool, each in tool.at.items() if each is formula]
        lists = self._asked(name)
        if formula is None or not names or not lists:
            return np.nan
        orders = self._ordered(name, tool.group(names[0]))
        k = metric.k or ALL
        values = [formula(ordered, k) for ordered in orders]
        return 100 * tool.mean(names[0], np.array(values))

    def is_idle(self, name: str) -> bool:
        """Whether a tool cannot read the run, or orders it as another one that is tried before."""
        orders = self._ordered(name)
        for earlier in TOOLS:
            if earlier == name:
                break
            if _are_equal(orders, self._ordered(earlier)):
                return True
        return not orders

    def _ordered(self, name: str, group: str = "") -> list[Ordered]:
        """What is right in each list, in the order of a tool. group: of the metric."""
        if (name, group) not in self._orders:
            lists = self._asked(name)
            tool = self._tool(name)
            self._orders[name, group] = [tool.ordered(asked, group) for asked in lists]
        return self._orders[name, group]

    def _asked(self, name: str) -> list[Asked]:
        """The queries that a tool measures; none of a file that it does not read."""
        if name not in self._lists:
            tool = self._tool(name)
            self._lists[name] = []
            try:
                lists, _ = tool.lists(self.path, self.parts, self.judgements)
                self._lists[name] = [asked for asked in lists if tool.is_asked(asked)]
            except InputError:  # what our own measurement refuses is said there
                pass
        return self._lists[name]

    def _tool(self, name: str) -> OfLists:
        if name not in self._tools:
            tool = conventions.of_tool(name)
            assert isinstance(tool, OfLists)
            self._tools[name] = tool
        return self._tools[name]


def _are_equal(orders: Sequence[Ordered], others: Sequence[Ordered]) -> bool:
    if len(orders) != len(others):
        return False
    for one, other in zip(orders, others, strict=True):
        if not np.array_equal(one.gain, other.gain) or not np.array_equal(one.ideal, other.ideal):
            return False
    return True
