"""The curve over noisy pairs: recipes trained at several shares of noise, and their recalls on the
test split.

    # trains eight heads; quiet cores, some hours
    python -m benchmarks.noise --root flickr8k-run --dataset flickr8k
    python -m benchmarks.noise --root flickr8k-run --dataset flickr8k --seed 1 \\
        -S training.flickr8k.epochs=10

The root holds the manifest and the region features. A head that is finished is not trained again.
Prints a Markdown table; intervals are over images, with the seed held fixed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from pipeline.foundation.evaluation import statistics
from pipeline.foundation.evaluation.metrics import RSUM, STATISTICS, evaluate
from pipeline.foundation.settings.paths import Paths, system_name
from pipeline.foundation.settings.recipe import Variation
from pipeline.judge.systems.scores.system import System

RECIPES = ("vse_infty", "vse_infty-crcl")
SHARES = (0.0, 0.2, 0.4, 0.6)


def run(*arguments: str) -> None:
    """Run a command, and stop where it fails."""
    subprocess.run([sys.executable, "-m", "stages.cli", *arguments], check=True)


def row(paths: Paths, dataset: str, share: float, head: str) -> str:
    """A line of the table."""
    store = System.open(paths.similarity(dataset, head, "test"))
    found = evaluate(store.path / "similarity", store.caption_image)
    rsum = statistics.intervals(found)[RSUM]
    recalls = [f"{found[name]:.1f}" for name in STATISTICS[:-1]]
    return " | ".join(
        [f"| {share:.0%}", head, *recalls, f"{rsum.value:.1f} [{rsum.low:.1f}, {rsum.high:.1f}] |"]
    )


def main(
    root: Path, dataset: str, seed: int, shares: tuple[float, ...], changes: list[str]
) -> None:
    """Train, score and print."""
    common = ["--root", str(root), "--dataset", dataset, "--feature", "region", "--seed", str(seed)]
    settings = [word for change in changes for word in ("-S", change)]
    paths, heads = Paths(root), []
    for share in shares:
        run(
            "train",
            *common,
            *settings,
            "--noise",
            str(share),
            *(w for name in RECIPES for w in ("--recipe", name)),
        )
        names = [Variation(noise=share).name(recipe) for recipe in RECIPES]
        run("score", *common, *(word for name in names for word in ("--recipe", name)))
        heads += [(share, system_name(name, "region", "bigru", seed)) for name in names]
    print(
        "| noise | system | i2t R@1 | R@5 | R@10 | t2i R@1 | R@5 | R@10 | RSUM |\n|--:|:--|"
        + "--:|" * 7
    )
    for share, head in heads:
        print(row(paths, dataset, share, head))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path())
    parser.add_argument("--dataset", default="flickr8k")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--share", type=float, action="append", default=None, help=f"in place of {SHARES}"
    )
    parser.add_argument("-S", dest="changes", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    main(given.root, given.dataset, given.seed, tuple(given.share or SHARES), given.changes)
