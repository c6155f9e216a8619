"""Names that commands and tables know of trained networks."""

FROM_PIXELS = ("grid", "patch")
"""Features whose networks can be trained end to end. Regions come from a detector, which the papers never train on."""
RELEASED = "vse_infty's release"
"""The weights of a network that came with a head of VSE-infinity's released code."""
