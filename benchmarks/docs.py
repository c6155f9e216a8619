"""Tables of the documentation from the files of docs/measured/data, see `benchmarks.numbers`.

A page shows NAME.json or NAME.csv between the comments `numbers: NAME` and `end`. README's speeds
follow from such files, tables of `benchmarks.sizes` are computed.

    # all pages, from the files
    python -m benchmarks.docs
    # a run's results into a file first
    python -m benchmarks.docs --results RUN/results/metrics.json --name flickr8k
    # or what `pipeline compare --json` says
    python -m benchmarks.docs --compared FILE --name differences

Results are copied on the machine that made them, which the file names.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import numbers, sizes
from pipeline.foundation.files.atomic import write_text
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.made import Ensemble, Made
from pipeline.judge.tables import compared
from pipeline.run.provenance import results

PAGES = [
    numbers.ROOT / "README.md",
    *sorted((numbers.ROOT / "docs").glob("*.md")),
]
MARKED = re.compile(
    r"^(<!-- numbers: ([\w./-]+) -->\n)(?:(?!<!-- numbers: ).)*?^(<!-- end -->(?:\n|\Z))",
    re.DOTALL | re.MULTILINE,
)
CPUS = {"AVX-512": "avx512", "AVX2": "avx2"}
"""What README calls a CPU, and the folder of what was measured on it."""


def speeds() -> str:
    """README's table: how many times as fast as the released code."""
    every = [_speeds(numbers.FILES / folder) for folder in CPUS.values()]
    return numbers.table(
        ["times as fast as the released code", *CPUS],
        ([work, *(each[work] for each in every)] for work in every[0]),
    )


def _speeds(folder: Path) -> dict[str, str]:
    pools = numbers.read(folder / "pooling.json")
    faster_step = "not measured"
    if (folder / "training_step.json").exists():
        step = numbers.read(folder / "training_step.json")
        taken = dict(zip((name for name, _ in step["columns"]), step["rows"][0], strict=True))
        faster_step = f"{taken['released'] / taken['ours']:.1f} ×"
    faster = {name: f"{times:.1f} ×" for name, _, _, times, *_ in pools["rows"]}
    return {
        "training step on regions, batch 128, d = 1,024, float32": faster_step,
        **{
            f"{pool}, forward and backward, 36 and 256 items": ", ".join(
                faster[f"{pool.lower()} [128, {items}, 1024]"] for items in (36, 256)
            )
            for pool in ("AdPool", "GPO")
        },
    }


COMPUTED: dict[str, Callable[[], str]] = {
    "sizes.extraction": sizes.extraction,
    "sizes.training": sizes.training,
    "sizes.flows": sizes.flows,
    "sizes.rates": sizes.rates,
    "sizes.memory": sizes.memory,
    "speeds": speeds,
}
RECALLS = [(way, k) for way in ("i2t", "t2i") for k in (1, 5, 10)]


def rendered(page: str) -> str:
    """A page's text with the numbers of the files."""

    def shown(name: str) -> str:
        if name in COMPUTED:
            return COMPUTED[name]()
        return numbers.rendered_file(name)

    return MARKED.sub(lambda found: f"{found[1]}\n{shown(found[2])}\n\n{found[3]}", page)


def of_results(path: Path, name: str, recipe: str | None = None, commit: str | None = None) -> None:
    """Recalls and RSUM of a run's systems, or of one recipe's, those with equal hits of every image
    in one row.
    """
    every = results.read(path)
    entries = {
        system: result for system, result in every.items() if recipe in (None, result.made.recipe)
    }
    labels = {system: _label(result.made) for system, result in entries.items()}
    if len({*labels.values()}) < len(labels):
        labels = {system: system for system in entries}
    rows: dict[str, list[Any]] = {}
    for system, entry in entries.items():
        if "all" not in entry.numbers:
            raise InputError(
                f"{path}: {system} was not measured by the protocol `all`, whose table this is"
            )
        found = entry.numbers["all"]
        values = [*(found[way][f"R@{k}"] for way, k in RECALLS), found["RSUM"]]
        row = rows.setdefault(digest(entry.hits), ["", *values])
        row[0] = " = ".join(filter(None, (row[0], labels[system])))
    columns = [
        ("features", ""),
        *((f"{f'{way} ' * (k == 1)}R@{k}", ".1f") for way, k in RECALLS),
        ("RSUM", ".1f"),
    ]
    numbers.write(
        numbers.FILES / f"{name}.json", "pipeline evaluate", columns, [*rows.values()], commit
    )


def _label(made_from: Made) -> str:
    """An ensemble's letters, or the feature of a head alone."""
    alone = f"{' and '.join(made_from.features)} alone{' (untrained network)' * bool(made_from.untrained)}"
    return made_from.origin.name if isinstance(made_from.origin, Ensemble) else alone


def of_comparison(path: Path, name: str, commit: str | None = None) -> None:
    """Differences of RSUM between systems, as `pipeline compare --json` writes them."""
    found = from_json(path.read_text(encoding="utf-8"))
    pools = [", ".join(filter(None, (each["protocol"], each.get("language")))) for each in found]
    several = len({*pools}) > 1
    rows = [
        [
            *(", ".join(each["systems"][side]) for side in "ba"),
            *([pool] if several else []),
            *_difference(each["RSUM"]),
        ]
        for pool, each in zip(pools, found, strict=True)
    ]
    systems = dict.fromkeys(
        system for each in found for side in "ab" for system in each["systems"][side]
    )
    columns = [
        ("", ""),
        ("less", ""),
        *([("protocol", "")] if several else []),
        *((name, "+.1f") for name in ("RSUM", "from", "to")),
        *((name, ">") for name in ("p", "Holm")),
        ("would suffice", ">"),
    ]
    numbers.write(
        numbers.FILES / f"{name}.json",
        f"pipeline compare {' '.join(systems)}",
        columns,
        rows,
        commit,
    )


def _difference(row: Mapping[str, Any]) -> list[float | str]:
    return [
        row["difference"],
        *row["interval"],
        *map(str, compared.difference(row)[1:]),
        compared.would_suffice(row),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path)
    parser.add_argument("--recipe", help="Of the results, those of this recipe alone")
    parser.add_argument("--compared", type=Path)
    parser.add_argument("--commit", help="Of the code that made them, where it is not this clone's")
    parser.add_argument("--name")
    given = parser.parse_args()
    if (given.results or given.compared) and not given.name:
        parser.error("name the file with --name")
    if given.results:
        of_results(given.results, given.name, given.recipe, given.commit)
    if given.compared:
        of_comparison(given.compared, given.name, given.commit)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (now := rendered(text)) != text:
            write_text(page, now)
            print(f"{page}: numbers changed")


if __name__ == "__main__":
    main()
