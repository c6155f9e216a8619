"""Digests of the modules that make something. Comments, docstrings and formatting do not change them.

The source files are read, not imported, so it works without git and in an installed copy. Modules of other packages
that add a part (`pipeline.plugins`) are digested like ours.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path

from pipeline.files.atomic import write_text
from pipeline.files.digest import digest, sha256
from pipeline.files.parsing import from_json

PACKAGE = Path(__file__).parents[1]
FILE = "code.json"
PLACE = re.compile(r"pipeline(\.\w+)+:\w+(\.\w+)*")
"""How a `lazy.LookupTable` names an object."""
Digests = Mapping[str, str]
"""Module -> digest."""
ALIKE = {
    "d276875628b41ac3": "a7300bc233017bcc",  # extractors.butd.pixels: faster, the same bits (test_butd_pixels.py)
    # Features leave the device rounded as the store rounds them (test_to_host.py), and BUTD's first layers may
    # have several images at once (test_butd_engines.py).
    "c30774d06c24bf77": "d53bb892969a6c1d",  # extractors.base
    "dee4558ffe8cad38": "9a1081c41e171b98",  # extractors.grid
    "e1867be348e05029": "d4b40681f01b2438",  # extractors.patch
    "8c5ce9c01104d8b6": "781e6380240aca24",  # extractors.pyramid
    "149ab374f606e1da": "63154dcd3a905797",  # extractors.frame
    "2d417b45c2386a35": "e1ce5662ee0679ed",  # extractors.network
    "7601e52940af03f1": "cfe753cfc1feb4ac",  # extractors.runtime
    "0a65cef440476264": "8e0e44ffca84eab9",  # extractors.butd.detector
    "dc360b3d977e5ea0": "f3e5350fb5ed02ec",  # extractors.butd.detected
    "40ab676d0e2f1d7b": "7cac5f19894d329b",  # extractors.butd.given
    "fed5875400aab6e6": "93bc6b39cee5fbc2",  # extractors.butd.network
    # A film read packet by packet, not held in memory: the same frames (test_videos.py).
    "bc5ed120a5fe5736": "fc5c69f12674f2d5",  # files.film
    "34d36f6fae5db7fc": "80ecc5988170f909",  # files.videos
    # How a head says on which bytes it was trained, not what it learns from them (test_restore.py, test_kept_heads.py).
    "8e4a3a84d4bc4b79": "9dd9d9f7c6d3dc45",  # training.training_job
    "cf7334a1077c99aa": "30eb775c53951092",  # training.photographs
    "e1adbb963cb59ba4": "efcdf65dc96652d1",  # training.image_source, an interface
    "30eb775c53951092": "80276af5656f33ea",  # training.photographs: also in tars and Parquet (test_finetuning.py)
    # What is refused in weights; those that are taken are the same (test_engines.py).
    "8178e302ecb01a5a": "0ac59387d8355165",  # files.weights
    "a8ebd1c24b43e337": "777970b41e969121",  # extractors.butd.checkpoint
    # Where a head's pretrained parts are found; they are the same (test_step.py, test_bert.py).
    "fc8a819fd852634a": "4bfa911f8e6a66b0",  # heads.base
    "222282b082b93882": "b45b120ef605d0ef",  # heads.hgr
    "6c70311e47783012": "706cfcd1cebb9c76",  # heads.late
    "6802f17a8b8fcc9d": "8e4b4ba96426bc7e",  # heads.two_tower
    # JSON is parsed within limits: what is refused, and how that is said (test_parsing.py).
    "a5d411a9d2d139df": "61f47a65a5b6b6b7",  # reranking
    "98d311c57f6971fb": "f40066ae6375519b",  # reranking.shards
    "352a51b2b210798a": "15c385937b96ba83",  # text.bert
    "08f2bb120df6e669": "83ff06d2a0f7b947",  # text.role_graphs
    "1a2555d4d83b325c": "0b7354cc6947798a",  # text.vocabulary
    "fb3b409aeb7d41ce": "fdfa478a8293f352",  # training.checkpoint
    # Which thread multiplies, and what is kept for the backward pass: the same bits (test_sorted.py, test_gru.py).
    "ad5d8d747e6751ca": "6e1310e794575392",  # heads.pooling.adpool_levels
    "8d6755394380b1d0": "19821ffbed044c7a",  # heads.pooling.cpu_sort
    "4a3dc42885ed5437": "c9217da300a0a4e2",  # heads.pooling.sorted_sum
    "cc7ade2497d4d286": "f40b6eeb472458da",  # heads.projection
    "88b54b68116f0076": "d42a54aad24b26d2",  # text.bigru
    "cc75110427645954": "84259f366ffd808b",  # text.gru
    "7a0be3a179b57702": "367bde461567abd3",  # files.images: the same steps, also for images of mteb (test_images.py)
}
"""Digest of a module before a change that a test shows to alter no bit of a result -> its digest after it."""


def of(roots: Iterable[str], rooms: Collection[str], named: Collection[str] = ()) -> dict[str, str]:
    """Digest modules and all that they import from these packages, directly or not.

    Of a package's `__init__` only functions and classes count. The rest lists what the package offers, where another
    entry changes no result. Files beside it that are no Python, such as a page's style, count too.

    Args:
        roots: Modules, such as "pipeline.training.loop". If one belongs to another project, imports from that project's
            package are followed too.
        rooms: Packages of ours, such as "pipeline.training"; imports from other packages are not followed.
        named: Packages whose modules are followed too where a table names them as text (see `lazy.LookupTable`).

    Returns:
        Module -> digest, sorted by name.
    """
    found: dict[str, str] = {}
    waiting = list(roots)
    inside = (*rooms, *{root.partition(".")[0] for root in waiting} - {PACKAGE.name})
    while waiting:
        module = waiting.pop()
        if module not in found and f"{module}.".startswith(tuple(f"{room}." for room in inside)):
            digest, imports, places = _read(module)
            found[module] = digest
            waiting += [place for place in places if place.startswith(tuple(f"{room}." for room in named))]
            waiting += () if module in rooms else imports  # a room offers more than what was asked for
    return {module: digest for module, digest in sorted(found.items()) if digest}


def data(package: str) -> str:
    """Digest the files of a package that are no Python, in its folder and below.

    Args:
        package: Such as "manifests".

    Returns:
        SHA-256 of their names and contents.
    """
    folder = PACKAGE.parent.joinpath(*package.split("."))
    return digest([[file.relative_to(folder).as_posix(), sha256(file)] for file in _data(folder.rglob("*"))])


def _data(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if path.is_file() and path.suffix not in (".py", ".pyc"))


def changed(folder: Path, now: Digests) -> list[str]:
    """Compare recorded digests with those of the code as it is now.

    Args:
        folder: A folder with a code.json.
        now: Module -> digest.

    Returns:
        The modules that differ, sorted; all of `now` where nothing is recorded.
    """
    try:
        made_by = from_json((folder / FILE).read_text(encoding="utf-8"))
        return sorted(module for module in {*made_by, *now} if _latest(made_by.get(module)) != now.get(module))
    except (OSError, ValueError, TypeError, AttributeError):
        return list(now)


def _latest(digest: str | None) -> str | None:
    """The digest of the module after all changes that alter nothing."""
    while digest in ALIKE:
        digest = ALIKE[digest]
    return digest


def write(folder: Path, digests: Digests) -> None:
    """Record in a folder which code made it.

    Args:
        folder: The folder.
        digests: Module -> digest.
    """
    write_text(folder / FILE, json.dumps(dict(digests), indent=1))


def named(modules: Collection[str]) -> str:
    """Name some modules in a message.

    Args:
        modules: Their names.

    Returns:
        The first one and the number of others.
    """
    first = min(modules, default="")
    return first + (f" and {len(modules) - 1} more" if len(modules) > 1 else "")


@cache
def _read(module: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """A module's digest, "" for a package without code, what it imports, and the modules that it names as text."""
    file = _file(module)
    if file is None:  # a name in a module
        return "", (), ()
    tree, package = ast.parse(file.read_text(encoding="utf-8")), file.name == "__init__.py"
    nodes = list(ast.walk(tree))  # once: it is most of the time
    imports = tuple(_imports(nodes, module if package else module.rpartition(".")[0]))
    places = tuple(node.value.partition(":")[0] for node in nodes
                   if isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACE.fullmatch(node.value))
    more = ""
    if package and module.partition(".")[0] == PACKAGE.name:
        tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        more = "".join(sha256(each) for each in _data(file.parent.iterdir()))
        if not tree.body and not more:
            return "", imports, places
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [each for each in node.body if not _is_text(each)]
    return hashlib.sha256((ast.dump(tree) + more).encode()).hexdigest()[:16], imports, places


def _file(module: str) -> Path | None:
    """A module's source file. Nothing is imported to find it, so no code of another package runs."""
    top, *rest = module.split(".")
    for folder in _folders(top):
        place = folder.joinpath(*rest)
        for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
            if file.is_file():
                return file
    return None


def _folders(top: str) -> list[Path]:
    """Where a package's modules lie; of a package that is one file, that file without its ending."""
    if top == PACKAGE.name:
        return [PACKAGE]
    spec = find_spec(top)
    if spec is None:
        return []
    if spec.submodule_search_locations is None:
        return [Path(spec.origin).with_suffix("")] if spec.origin else []
    return [Path(place) for place in spec.submodule_search_locations]


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is a docstring, or another string that does nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _imports(nodes: Iterable[ast.AST], package: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package) if node.level else str(node.module)
            yield from (f"{source}.{alias.name}" for alias in node.names)
            yield source
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
