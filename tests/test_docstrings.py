"""Public docstrings: a sentence; for what rooms export and what others implement also arguments,
result and errors.

An argument is described under Args, or named in the text above, and so is an error; a summary that
begins as `GIVING` says the result.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(file for file in ROOT.glob("pipeline/**/*.py") if "extensions" not in file.parts)
NOTHING = {"None", "NoReturn", "Iterator[None]"}
GIVING = re.compile(r"(The|An?|Another|Whether|Return|Compose|Load|Open|Read|Build|Draw)\b")
SECTIONS = re.compile(r"^(Args|Returns|Yields|Raises|Attributes):", re.MULTILINE)
OVERRIDES = {"Module": {"train"}, "BatchNorm1d": {"forward"}, "Function": {"forward", "backward"}}
"""Methods of torch's classes that are documented there, or by the class that overrides them."""


@cache
def trees() -> dict[Path, ast.Module]:
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}


@cache
def classes() -> dict[str, ast.ClassDef]:
    """Every class by its name."""
    found = {}
    for tree in trees().values():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name] = node
    return found


def exports() -> Iterator[tuple[Path, str]]:
    """What the rooms export: the file and the name there of each thing that an `__init__` defines
    or imports.
    """
    for file, tree in trees().items():
        if file.name != "__init__.py":
            continue
        blocks = (each.body for each in tree.body if isinstance(each, ast.If | ast.With))
        for node in [*tree.body, *chain.from_iterable(blocks)]:
            if isinstance(node, ast.ImportFrom) and node.module:
                module = ROOT.joinpath(*node.module.split("."))
                yield from ((module.with_suffix(".py"), alias.name) for alias in node.names)
        yield from (
            (file, node.name)
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        )


def is_interface(method: ast.FunctionDef, owner: ast.ClassDef) -> bool:
    """Whether others implement a method: one of a Protocol, or an abstract one."""
    return any(ast.unparse(base).partition("[")[0] == "Protocol" for base in owner.bases) or any(
        "abstractmethod" in ast.unparse(each) for each in method.decorator_list
    )


def names(function: ast.FunctionDef, is_method: bool) -> list[str]:
    """The parameters that callers give."""
    given = function.args
    every = [*given.posonlyargs, *given.args]
    is_static = any(ast.unparse(each) == "staticmethod" for each in function.decorator_list)
    every = every[1 if is_method and not is_static else 0 :]
    return [
        each.arg
        for each in (
            *every,
            *filter(None, (given.vararg,)),
            *given.kwonlyargs,
            *filter(None, (given.kwarg,)),
        )
    ]


def raises(node: ast.AST) -> bool:
    """Whether a function raises something itself, outside functions that it defines."""
    return any(
        (isinstance(inner, ast.Raise) and inner.exc is not None) or raises(inner)
        for inner in ast.iter_child_nodes(node)
        if not isinstance(inner, ast.FunctionDef | ast.Lambda | ast.ClassDef)
    )


def is_property(function: ast.FunctionDef) -> bool:
    """Whether it is a property, or a fact of `judge.systems.scores.made`, which is one."""
    decorators = [ast.unparse(each) for each in function.decorator_list]
    return any("property" in name or name == "fact" for name in decorators)


def method_named(text: str) -> ast.FunctionDef | None:
    """The method of an interface that a docstring's summary refers to: "Sum a block, see
    `Similarity.block`.".
    """
    said = re.search(r", see `(\w+)\.(\w+)`\.$", text.partition("\n")[0])
    methods = classes()[said[1]].body if said and said[1] in classes() else []
    return next(
        (
            each
            for each in methods
            if isinstance(each, ast.FunctionDef) and said and each.name == said[2]
        ),
        None,
    )


def faults(function: ast.FunctionDef, is_method: bool, module: str = "") -> Iterator[str]:
    """What is missing in a docstring, beside what the module's docstring says of the arguments of
    all its functions.
    """
    text = ast.get_docstring(function)
    if not text:
        yield "no docstring"
        return
    interface = method_named(text)
    above = ""
    if interface is not None and names(interface, True) == names(function, is_method):
        above = ast.get_docstring(interface) or ""
    prose = (SECTIONS.split(text)[0] + SECTIONS.split(above)[0]).replace("_", " ")
    says_result = GIVING.match(text) or GIVING.match(above)
    text = "\n\n".join((text, module, above))
    if missing := [
        name
        for name in names(function, is_method)
        if not re.search(rf"^    \*{{0,2}}{name}: ", text, re.MULTILINE)
        and not re.search(rf"\b{name.replace('_', ' ')}\b", prose)
    ]:
        yield f"Args without {', '.join(missing)}"
    returned = ast.unparse(function.returns) if function.returns else "None"
    gives = returned not in NOTHING and not is_property(function)
    if gives and not says_result and not re.search(r"^(Returns|Yields):", text, re.MULTILINE):
        yield "no Returns"
    if (
        raises(function)
        and not re.search(r"^Raises:", text, re.MULTILINE)
        and not re.search(r"\w+Error\b", prose)
    ):
        yield "no Raises"


def is_documented_above(owner: ast.ClassDef, name: str) -> bool:
    """Whether a base class has documented the method."""
    for base in owner.bases:
        called = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        above = classes().get(called)
        methods = (
            []
            if above is None
            else [each for each in above.body if isinstance(each, ast.FunctionDef)]
        )
        if name in OVERRIDES.get(called, ()) or any(
            each.name == name and ast.get_docstring(each) for each in methods
        ):
            return True
        if above is not None and is_documented_above(above, name):
            return True
    return False


def public(tree: ast.Module, exported: set[str]) -> Iterator[tuple[str, list[str]]]:
    """The module's public objects with their faults; those that are exported need more than a
    sentence.
    """

    def missing(node: ast.FunctionDef | ast.ClassDef | ast.Module) -> list[str]:
        return [] if ast.get_docstring(node) else ["no docstring"]

    yield "module", missing(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            whole = node.name in exported
            yield (
                node.name,
                list(faults(node, False, ast.get_docstring(tree) or ""))
                if whole
                else missing(node),
            )
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, missing(node)
            for inner in node.body:
                if (
                    isinstance(inner, ast.FunctionDef)
                    and not inner.name.startswith("_")
                    and (ast.get_docstring(inner) or not is_documented_above(node, inner.name))
                ):
                    whole = node.name in exported or is_interface(inner, node)
                    yield (
                        f"{node.name}.{inner.name}",
                        list(faults(inner, True)) if whole else missing(inner),
                    )


@pytest.mark.slow
def test_public_docstrings_have_one_form() -> None:
    exported: dict[Path, set[str]] = {file: set() for file in FILES}
    for file, name in exports():
        exported.setdefault(file, set()).add(name)
    found = {}
    for file in FILES:
        for name, wrong in public(trees()[file], exported[file]):
            if wrong:
                found[f"{file.relative_to(ROOT)} {name}"] = wrong
    assert found == {}


def test_what_rooms_export_is_found() -> None:
    exported = {*exports()}
    assert {
        (ROOT / "pipeline/make/training/loop.py", "train"),
        (ROOT / "pipeline/make/heads/__init__.py", "build"),
        (ROOT / "pipeline/make/training/head.py", "Head"),
    } <= exported
    assert (ROOT / "pipeline/make/training/optimizer.py", "Optimizer") not in exported


def test_what_is_missing_is_found() -> None:
    source = '''
def whole(one: int, *rest: int, **more: int) -> int:
    """Say it.

    Args:
        one: This.
        *rest: Those.
        **more: And these.

    Returns:
        A number.

    Raises:
        ValueError: Always.
    """
    raise ValueError

def bare(one: int) -> int:
    """Say it."""
    raise ValueError

def silent() -> None: ...

def brief(one: int, the_other: int) -> int:
    """The sum of one and the other."""

def wordless(one: int) -> int:
    """The sum."""

def inner(one: int) -> int:
    """Say it."""
    raise ValueError

class Half:
    """One."""

    def own(self, one: int) -> None:
        """Say it."""

    def block(self, images: int, captions: int) -> int:
        """Halve a block, see `Similarity.block`."""

    def pairs(self, cells: int) -> int:
        """Halve single ones, see `Similarity.pairs`."""

class Kind(Protocol):
    """One that others implement."""

    def of(self, one: int) -> int:
        """Say it."""

    def name(self) -> str: ...
'''
    found = dict(
        public(ast.parse(source), {"whole", "bare", "silent", "brief", "wordless", "Half"})
    )
    assert found == {
        "module": ["no docstring"],
        "whole": [],
        "bare": ["Args without one", "no Returns", "no Raises"],
        "silent": ["no docstring"],
        "brief": [],
        "wordless": ["Args without one"],
        "inner": [],
        "Half": [],
        "Half.own": ["Args without one"],
        "Half.block": [],
        "Half.pairs": ["Args without cells", "no Returns"],
        "Kind.of": ["Args without one", "no Returns"],
        "Kind.name": ["no docstring"],
        "Kind": [],
    }


def test_files_that_a_package_lists_are_in_it() -> None:
    listed = [
        file.parent / name
        for file in FILES
        if file.name == "__init__.py"
        for name in re.findall(r"(?<![\w/.])\w+\.py\b", ast.get_docstring(trees()[file]) or "")
    ]
    assert len(listed) > 20
    assert [file for file in listed if not file.exists()] == []
