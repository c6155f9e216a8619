"""A data set's statistics by split: counted in a manifest, stated by its card, and compared."""

from collections.abc import Iterator, Mapping

import pandas as pd

from pipeline.manifest.dataset import Statistics
from pipeline.manifest.table import Manifest


def of(manifest: Manifest) -> dict[str, Statistics]:
    """Count a manifest: split -> its statistics, all of them known."""
    return {str(split): _count(rows) for split, rows in manifest.table.groupby("split")}


def differences(stated: Mapping[str, Statistics], manifest: Manifest) -> Iterator[str]:
    """Compare a manifest with what its card states.

    Args:
        stated: Split -> what the card says of it.
        manifest: The manifest.

    Yields:
        A line for each number that differs.
    """
    found = of(manifest)
    for split, expected in stated.items():
        here = found.get(split, Statistics(images=0, captions=0)).model_dump()
        for name, value in expected.model_dump(exclude_none=True).items():
            if here[name] != value:
                yield f"{split}: {name.replace('_', ' ')}: expected {value}, found {here[name]}"


def _count(rows: pd.DataFrame) -> Statistics:
    lengths = rows["caption"].str.len()
    return Statistics(images=rows["image_id"].nunique(), captions=len(rows), unique_captions=rows["caption"].nunique(),
                      shortest=int(lengths.min()), longest=int(lengths.max()))
