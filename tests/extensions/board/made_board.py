"""A made board as `pipeline board --json` writes one: random values, every two systems tested as
normal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.statistics.letters import letters

LEVEL = 0.05
RESOLUTION = 1 / 1001
MOST_LETTERED = 30
TREES = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine")
SIZES = ("small", "base", "large")
LANGUAGES = ("en", "de", "fr", "cs")
QUESTIONS = ("news", "recipes", "birds", "streets", "charts", "maps", "posters", "slides")


def made_board(
    systems: int = 6,
    tasks: int = 7,
    seed: int = 0,
    unmeasured: Sequence[tuple[int, int]] = ((3, 0),),
) -> dict[str, Any]:
    """A board. The first four tasks are translations of one question; on the last one less is
    better. unmeasured: a system and a task that it was not measured on.
    """
    rng = np.random.default_rng(seed)
    skill = 0.7 * np.sort(rng.normal(size=systems))[::-1]
    board_tasks = []
    for task in range(tasks):
        measured = [system for system in range(systems) if (system, task) not in unmeasured]
        name, unit = _named(task, tasks)
        less_is_better = task == tasks - 1
        of_task = skill[measured] + 0.4 * rng.normal(size=len(measured))
        board_tasks.append(
            _task(name, unit, less_is_better, measured, of_task, int(rng.integers(3, 51)) * 100)
        )
    made = []
    for system in range(systems):
        made.append(
            {
                "name": _system_name(system),
                "tasks": sum(system in _measured(task) for task in board_tasks),
                "facts": _facts(system, skill[system], rng),
            }
        )
    over_tasks, left_out = _over_tasks(board_tasks, systems)
    return {
        "tasks": board_tasks,
        "systems": made,
        "over_tasks": over_tasks,
        "left_out": left_out,
        "notes": ["The numbers are made up."],
    }


def _named(task: int, tasks: int) -> tuple[str, str]:
    if task < len(LANGUAGES) < tasks:
        return f"scenes-{LANGUAGES[task]}", "scenes"
    number = task
    if tasks > len(LANGUAGES):
        number = task - len(LANGUAGES)
    name = QUESTIONS[number % len(QUESTIONS)]
    if number >= len(QUESTIONS):
        name = f"{name}-{number // len(QUESTIONS) + 1}"
    return name, name


def _system_name(system: int) -> str:
    name = f"{TREES[system % len(TREES)]}-{SIZES[system * 7 // 3 % len(SIZES)]}"
    if system >= len(TREES):
        name = f"{name}-v{system // len(TREES) + 1}"
    return name


def _facts(system: int, skill: float, rng: np.random.Generator) -> dict[str, float]:
    parameters = float(f"{10 ** (8.3 + 0.35 * skill + 0.3 * rng.normal()):.2g}")
    seconds = round(float(parameters / 2e7 * rng.uniform(0.6, 1.8)), 1)
    if system % 7 == 5:
        return {}
    return {"parameters": parameters, "seconds": seconds}


def _measured(task: dict[str, Any]) -> list[int]:
    return [entry["system"] for entry in task["systems"]]


def _task(
    name: str, unit: str, less_is_better: bool, systems: list[int], skill: np.ndarray, images: int
) -> dict[str, Any]:
    values = 400 + 30 * skill
    sign = 1
    metric = "RSUM"
    if less_is_better:
        values = 20 - 4 * skill
        sign = -1
        metric = "i2t median rank"
    error = 6 * values.std() / math.sqrt(images)
    pairs = list(combinations(range(len(systems)), 2))
    difference = np.array([values[b] - values[a] for a, b in pairs])
    chance = np.array([math.erfc(abs(d) / (2 * error)) for d in difference])
    adjusted = _on_grid(_holm(chance))
    p = np.minimum(_on_grid(chance), adjusted)
    differ = {pair for pair, q in zip(pairs, adjusted, strict=True) if q < LEVEL}
    above = np.zeros(len(systems), int)
    below = np.zeros(len(systems), int)
    for a, b in differ:
        lower, higher = sorted((a, b), key=lambda system: sign * values[system])
        above[lower] += 1
        below[higher] += 1
    groups = [""] * len(systems)
    if len(systems) <= MOST_LETTERED:
        groups = letters(list(sign * values), differ)
    entries = []
    for place, system in enumerate(systems):
        value = float(values[place])
        entries.append(
            {
                "system": system,
                "value": value,
                "interval": [value - 1.4 * error, value + 1.4 * error],
                "rank": [1 + int(above[place]), len(systems) - int(below[place])],
                "letters": groups[place],
            }
        )
    return {
        "name": name,
        "unit": unit,
        "metric": metric,
        "less_is_better": less_is_better,
        "images": images,
        "captions": 5 * images,
        "protocol": "all",
        "ties": "expected",
        "sides": ["image", "caption"],
        "systems": entries,
        "pairs": {
            "difference": difference.tolist(),
            "p": p.tolist(),
            "adjusted": adjusted.tolist(),
        },
        "resolution": RESOLUTION,
    }


def _on_grid(chances: np.ndarray) -> np.ndarray:
    """As so many random swaps could give them."""
    return np.clip(np.ceil(chances / RESOLUTION), 1, 1001) * RESOLUTION


def _holm(chances: np.ndarray) -> np.ndarray:
    order = np.argsort(chances)
    factors = np.arange(len(chances), 0, -1)
    adjusted = np.empty(len(chances))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(chances[order] * factors))
    return adjusted


def _over_tasks(
    tasks: list[dict[str, Any]], systems: int
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    if len(tasks) == 1:
        return None, []
    units = list(dict.fromkeys(task["unit"] for task in tasks))
    missing: dict[int, list[str]] = {}
    for system in range(systems):
        names = [task["name"] for task in tasks if system not in _measured(task)]
        if names:
            missing[system] = names
    placed = [system for system in range(systems) if system not in missing]
    ranks = np.zeros((len(units), len(placed)))
    for row, unit in enumerate(units):
        of_unit = [_ranks(task, placed) for task in tasks if task["unit"] == unit]
        ranks[row] = np.mean(of_unit, axis=0)
    mean_rank = ranks.mean(0)
    order = np.argsort(mean_rank, kind="stable")
    places = [_places(mean_rank)]
    holds = _above(mean_rank)
    left_out = []
    for row, unit in enumerate(units):
        without = np.delete(ranks, row, 0).mean(0)
        places.append(_places(without))
        holds &= _above(without)
        changed = np.argsort(without, kind="stable")
        if (changed != order).any():
            then = [int(place) for place in _places(without)[changed]]
            left_out.append({"unit": unit, "order": [placed[at] for at in changed], "places": then})
    rows = []
    for at in order:
        wins = sum((ranks[:, at] < ranks[:, other]).mean() > 0.5 for other in range(len(placed)))
        rows.append(
            {
                "system": placed[at],
                "place": int(places[0][at]),
                "mean_rank": float(mean_rank[at]),
                "borda": float((len(placed) - ranks[:, at]).sum()),
                "wins": float(wins),
                "places": [int(min(p[at] for p in places)), int(max(p[at] for p in places))],
            }
        )
    stable = [[placed[int(a)], placed[int(b)]] for a, b in np.argwhere(holds)]
    over_tasks = {
        "rule": "mean rank",
        "units": len(units),
        "systems": rows,
        "unplaced": [{"system": system, "missing": names} for system, names in missing.items()],
        "stable": stable,
    }
    return over_tasks, left_out


def _ranks(task: dict[str, Any], placed: list[int]) -> np.ndarray:
    values = {entry["system"]: entry["value"] for entry in task["systems"]}
    of_placed = np.array([values[system] for system in placed])
    if not task["less_is_better"]:
        of_placed = -of_placed
    return _places(of_placed)


def _places(values: np.ndarray) -> np.ndarray:
    return 1 + (values < values[:, None]).sum(1)


def _above(values: np.ndarray) -> np.ndarray:
    return values[:, None] < values
