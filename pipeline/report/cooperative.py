"""Systems by the part that their heads play in Geigle et al.: CE, EMB, SEP+CO, JOIN+CO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.report import names
from pipeline.report.measured import SEPARATE, MeasuredSystem
from pipeline.report.published import PublishedRow

CROSS = "cross"
"""The architecture of their heads, see `pipeline.heads.HEADS`."""


def tasks(settings: Mapping[str, Any]) -> frozenset[str]:
    """What a head was trained for.

    Args:
        settings: Those of its recipe.

    Returns:
        A subset of {"emb", "ce"}; empty for a head of another architecture.
    """
    architecture = settings.get("architecture") or {}
    if architecture.get("name") != CROSS:
        return frozenset()
    return frozenset(settings.get("tasks") or ["emb"]) - {"ance"}  # embeddings too, by near negatives


def part(system: MeasuredSystem) -> str:
    """Name a system as Geigle et al. name its kind.

    Args:
        system: A measured system.

    Returns:
        CE, EMB, JOIN+EMB, JOIN+CE, JOIN+CO or SEP+CO; "" for a system with another head than cross-encoders.
    """
    of_heads = [tasks(member.settings) for member in system.members]
    if not of_heads or not all(of_heads):
        return ""
    joint, rerank = len(of_heads[0]) == 2, dict(system.origin.rerank)
    if not rerank:
        return "JOIN+EMB" if joint else next(iter(of_heads[0])).upper()
    if len(of_heads) == 1 and SEPARATE not in rerank:
        return "JOIN+CE" if rerank.get("k") == "all" else "JOIN+CO"
    return "SEP+CO"


def label(system: MeasuredSystem) -> str:
    """Name a system for a row: "SEP+CO (emb, Region, BERT)"; with other heads as `plain_label`."""
    origin, kind = system.origin, part(system)
    read = f"{names.features(origin.visual)}, {names.encoder(origin.text)}"
    return f"{kind} ({names.method(origin.recipe, origin.visual)}, {read})" if kind else plain_label(system)


def plain_label(system: MeasuredSystem) -> str:
    """Name a system without the part that its heads play: "VSE∞ (Region, BiGRU)"."""
    origin = system.origin
    return (f"{names.method(origin.recipe, origin.visual)} ({names.features(origin.visual)}, "
            f"{names.encoder(origin.text)})")


def published_label(row: PublishedRow) -> str:
    """Name a published row: CE (OSCAR) for CE^OSCAR, for the file has a ^ before what the paper prints raised.

    Args:
        row: A row of one of the paper's tables.

    Returns:
        The name.
    """
    name, _, raised = row["method"].partition("^")
    return f"{name} ({raised.replace('_', ', ')})" if raised else name
