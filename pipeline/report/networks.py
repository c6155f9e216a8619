"""Which image network a measured system's features come from, in the papers' names."""

from __future__ import annotations

from pipeline.report.measured import Measured

OTHER = "other"
STAND_IN = "†"
"""The mark of a measured row that rests on a network which is not the papers'."""
SPELLINGS = {"butd": "BUTD", "wsl": "WSL", "resnet152": "IN-R152", "vit_base_patch16_224": "ViT-B/16"}
"""What the name of a feature recipe holds -> the papers' network."""
PAPERS = {"region": {"BUTD"}, "grid": {"BUTD", "WSL", "IN-R152"}, "patch": {"ViT-B/16"}}
"""VSE+2AD section 4.2, VSE∞ section 5.1.1 and appendix B.2: the networks behind each feature."""


def networks(system: Measured) -> dict[str, str]:
    """Feature -> the papers' network that made it, or `OTHER`: another network, or one that is untrained."""
    untrained = system.origin.untrained
    return {feature: network(feature, engine, feature not in untrained) for feature, engine in system.origin.features}


def network(feature: str, engine: str, trained: bool) -> str:
    """The papers' network behind one feature, by the name of its engine's recipe, or `OTHER`."""
    name = next((name for spelling, name in SPELLINGS.items() if spelling in engine.lower()), OTHER)
    return name if trained and name in PAPERS[feature] else OTHER


def backbone(system: Measured) -> str:
    """The papers' name for all of a system's networks, e.g. BUTD or BUTD+ViT-B/16; `OTHER` if one of them is
    not theirs."""
    names = list(dict.fromkeys(networks(system).values()))
    return OTHER if OTHER in names else "+".join(names)


def stand_ins(system: Measured) -> list[str]:
    """What made those of its features that do not come from the papers' networks, e.g. `patch (vit_tiny,
    untrained)`."""
    untrained = system.origin.untrained
    every = (stand_in(feature, engine, feature not in untrained) for feature, engine in system.origin.features)
    return [told for told in every if told]


def stand_in(feature: str, engine: str, trained: bool) -> str:
    """What made one feature if that is not the papers' network, else ''."""
    if network(feature, engine, trained) != OTHER:
        return ""
    return f"{feature} ({engine}{'' if trained else ', untrained'})"
