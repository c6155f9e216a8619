"""Names that commands and tables know of trained networks."""

RELEASED = "vse_infty's release"
"""The weights of a network that came with a head of VSE∞'s released code."""
