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
    found = {}
    for feature, engine in system.origin.features:
        network = next((name for spelling, name in SPELLINGS.items() if spelling in engine.lower()), OTHER)
        trusted = network in PAPERS[feature] and feature not in system.origin.untrained
        found[feature] = network if trusted else OTHER
    return found


def backbone(system: Measured) -> str:
    """The papers' name for all of a system's networks, e.g. BUTD or BUTD+ViT-B/16; `OTHER` if one of them is
    not theirs."""
    names = list(dict.fromkeys(networks(system).values()))
    return OTHER if OTHER in names else "+".join(names)


def stand_ins(system: Measured) -> list[str]:
    """What made those of its features that do not come from the papers' networks, e.g. `patch (vit_tiny,
    untrained)`."""
    made_by, untrained = dict(system.origin.features), system.origin.untrained
    return [
        f"{feature} ({made_by[feature]}{', untrained' if feature in untrained else ''})"
        for feature, network in networks(system).items()
        if network == OTHER
    ]
