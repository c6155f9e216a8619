"""Parts that other installed packages add, each by an entry point in the group of its kind.

A package of your own adds a pooling, for example, by two lines in its pyproject.toml:

    [project.entry-points."vse_pipeline.poolings"]
    median = "my_package.median:MedianPool"

Its module is imported when the name is used. A package cannot replace a built-in part. A part of
another package has no version; digests of its source files are recorded instead. They ignore
comments, docstrings and layout, and are computed without importing the files.
"""

import ast
import hashlib
import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path

from pipeline.foundation.parts.errors import InputError, InputWarning

# Before the kind in the group of an entry point.
GROUP = "vse_pipeline."
# Names become parts of file names.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*")


@dataclass(frozen=True)
class Offer:
    """One entry point."""

    package: str  # whose it is, with its version
    place: str  # "module:object"


@cache
def all_offers() -> dict[str, list[tuple[str, Offer]]]:
    """Kind -> names and offers of installed packages, in any order. Nothing is imported for it."""
    # Searched once for all kinds, since a search reads a file of every installed package.
    from importlib.metadata import entry_points

    points = entry_points()
    offers: dict[str, list[tuple[str, Offer]]] = {}
    for group in points.groups:
        if not group.startswith(GROUP):
            continue
        of_kind = offers.setdefault(group.removeprefix(GROUP), [])
        for point in points.select(group=group):
            package = "a package"
            if point.dist:
                package = f"{point.dist.name} {point.dist.version}"
            of_kind.append((point.name, Offer(package, point.value)))
    return offers


def offered(kind: str) -> dict[str, Offer]:
    """List what installed packages offer of one kind."""
    offers = sorted(all_offers().get(kind, []), key=lambda named: (named[0], named[1].package))
    offer_of: dict[str, Offer] = {}
    for name, offer in offers:
        if name in offer_of:
            raise InputError(
                f"{offer_of[name].package} and {offer.package} both offer {name!r} of the {kind}; "
                "uninstall one of them"
            )
        offer_of[name] = offer
    return offer_of


def besides(kind: str, built_in: Collection[str]) -> dict[str, Offer]:
    """What installed packages add to the built-in parts. A warning names what is left out."""
    added = dict(offered(kind))
    for name in list(added):
        if name in built_in:
            reason = "that name is built in and stays so"
        elif not NAME.fullmatch(name):
            reason = "a name has letters, digits and _, in parts joined by -"
        else:
            continue
        warnings.warn(
            f"{added.pop(name).package} offers {name!r} of the {kind}, which is left out: {reason}",
            InputWarning,
            stacklevel=3,
        )
    return added


def sources(module: str) -> dict[str, str]:
    """Digest a module of another package and all that it imports from that package, directly or
    not, sorted by name.
    """
    digests: dict[str, str] = {}
    waiting = [module]
    package = module.partition(".")[0]
    while waiting:
        name = waiting.pop()
        if name not in digests and name.partition(".")[0] == package:
            digests[name], imports = _read(name)
            waiting += imports
    return {name: digest for name, digest in sorted(digests.items()) if digest}


@cache
def _read(module: str) -> tuple[str, tuple[str, ...]]:
    """A module's digest and its imports; the digest is "" for a name that is no module."""
    file = _file(module)
    if file is None:
        return "", ()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))  # only once: it takes most of the time
    package = module
    if file.name != "__init__.py":
        package = module.rpartition(".")[0]
    imports = tuple(_imports(nodes, package))
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_text(statement)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16], imports


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring, or another string that does nothing."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return isinstance(statement.value.value, str)


def _file(module: str) -> Path | None:
    top, *rest = module.split(".")
    spec = find_spec(top)
    folders = [] if spec is None else spec.submodule_search_locations
    if spec is not None and folders is None:  # a package that is one file
        folders = [str(Path(spec.origin).with_suffix(""))] if spec.origin else []
    for folder in folders or ():
        place = Path(folder).joinpath(*rest)
        for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
            if file.is_file():
                return file
    return None


def _imports(nodes: Iterable[ast.AST], package: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            source = str(node.module)
            if node.level:
                source = resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{source}.{alias.name}" for alias in node.names)
            yield source
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
