"""Parts that other installed packages offer: an entry point each, in the group of its kind.

A package of your own adds a pooling, say, by three lines in its pyproject.toml:

    [project.entry-points."vse_pipeline.poolings"]
    median = "my_package.median:MedianPool"

Its module is imported when the name is used. What is built in keeps its name: a package cannot take it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from pipeline.errors import InputError, InputWarning

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*")
"""Names become parts of file names."""


@dataclass(frozen=True)
class Offer:
    """One entry point.

    Attributes:
        package: Whose it is, with its version.
        place: "module:object".
    """

    package: str
    place: str


@cache
def offered(kind: str) -> dict[str, Offer]:
    """List what installed packages offer of one kind. Nothing is imported for it.

    Args:
        kind: For example "poolings", for the group "vse_pipeline.poolings".

    Returns:
        Name -> offer.

    Raises:
        InputError: If two packages offer the same name.
    """
    from importlib.metadata import entry_points

    offers = [(point.name, Offer(f"{point.dist.name} {point.dist.version}" if point.dist else "a package", point.value))
              for point in entry_points(group=f"vse_pipeline.{kind}")]
    found: dict[str, Offer] = {}
    for name, offer in sorted(offers, key=lambda each: (each[0], each[1].package)):
        if name in found:
            raise InputError(f"{found[name].package} and {offer.package} both offer {name!r} of the {kind}; "
                             "uninstall one of them")
        found[name] = offer
    return found


def besides(kind: str, built_in: Collection[str]) -> dict[str, Offer]:
    """What installed packages add to what is built in.

    Args:
        kind: As in `offered`.
        built_in: Names that are taken.

    Returns:
        Name -> offer. A name that is taken or that is no name is left out, with a warning.
    """
    added = dict(offered(kind))
    for name in list(added):
        if name in built_in:
            reason = "that name is built in and stays so"
        elif not NAME.fullmatch(name):
            reason = "a name has letters, digits and _, in parts joined by -"
        else:
            continue
        warnings.warn(f"{added.pop(name).package} offers {name!r} of the {kind}, which is left out: {reason}",
                      InputWarning, stacklevel=3)
    return added
