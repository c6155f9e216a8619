"""Parts of other packages: found by their entry points, and never in the place of what is built
in.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import torch

from pipeline.foundation import artefacts, manifest
from pipeline.foundation.parts import lazy, plugins
from pipeline.foundation.parts.errors import InputError, InputWarning
from pipeline.make.heads import pooling
from pipeline.run.report import names
from pipeline.run.report.tables.ablations import ABLATIONS

FIRST = '''"""The smallest."""

from pipeline.make.heads.pooling.base import Pooling

from .helpers_of_first import smallest


class MinPool(Pooling):
    """The smallest of each dimension."""

    def pool(self, items, valid):
        return smallest(items, valid)
'''
SMALLEST = """def smallest(items, valid):
    return items.masked_fill(~valid.unsqueeze(2), float("inf")).amin(dim=1)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path; `offer` puts packages there."""
    monkeypatch.syspath_prepend(tmp_path)
    plugins.all_offers.cache_clear()
    yield tmp_path
    for module in [name for name in sys.modules if name.partition(".")[0] == "first"]:
        del sys.modules[module]
    plugins.all_offers.cache_clear()
    plugins._read.cache_clear()


def offer(folder: Path, package: str, **points: str) -> None:
    """An installed package without a module, that names poolings."""
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8"
    )
    lines = "\n".join(f"{name.replace('__', '-')} = {place}" for name, place in points.items())
    (about / "entry_points.txt").write_text(f"[vse_pipeline.poolings]\n{lines}\n", encoding="utf-8")


@pytest.fixture
def first(installed: Path) -> Path:
    """A package that adds the pooling `min`."""
    offer(installed, "first", min="first.smallest:MinPool")
    (installed / "first").mkdir()
    for name, text in {"__init__": "", "smallest": FIRST, "helpers_of_first": SMALLEST}.items():
        (installed / "first" / f"{name}.py").write_text(text, encoding="utf-8")
    return installed / "first"


@pytest.mark.specification
@pytest.mark.usefixtures("first")
def test_a_packages_part_is_built_by_its_name() -> None:
    assert "min" in pooling.POOLINGS
    assert list(pooling.POOLINGS)[-1] == "min"
    assert len(pooling.POOLINGS) == len(list(pooling.POOLINGS))
    built = pooling.build("min", 2)
    items = torch.tensor([[[1.0, 5.0], [3.0, -2.0], [-9.0, -9.0]]])
    assert built(items, torch.tensor([2])).tolist() == [[1.0, -2.0]]
    with pytest.raises(InputError, match=r"unknown pooling 'sum'; there are: adapool, .*, min"):
        pooling.build("sum", 2)


TITLED = """
from pipeline.foundation.settings import Section


class MinPoolOptions(Section):
    TITLE, IN_WORDS = "MinPool", "smallest-value"
"""


def test_a_packages_part_brings_its_names_for_display(first: Path) -> None:
    """They are read from its options, without the part, which cannot be imported here."""
    (first / "smallest.py").write_text("raise ImportError('no torch')\n", encoding="utf-8")
    assert names.method("vse2ad-min") == "VSE+2AD, min pooling"
    assert ABLATIONS["vse2ad_table4"].labels("vse2ad-min") == ("min",)
    (first / "options.py").write_text(TITLED, encoding="utf-8")
    importlib.invalidate_caches()
    assert names.method("vse2ad-min") == "VSE+2AD, smallest-value pooling"
    assert ABLATIONS["vse2ad_table4"].labels("vse2ad-min") == ("MinPool",)
    assert "first.smallest" not in sys.modules


@pytest.mark.parametrize("options", ["raise RuntimeError", "MinPoolOptions = 3", None])
def test_no_package_can_keep_a_report_from_being_made(installed: Path, options: str | None) -> None:
    """Its part goes by its name where its options are broken, and as a recipe where it is gone."""
    if options:
        offer(installed, "first", min="first.smallest:MinPool")
        (installed / "first").mkdir()
        (installed / "first" / "__init__.py").touch()
        (installed / "first" / "options.py").write_text(options, encoding="utf-8")
    shown = {True: "VSE+2AD, min pooling", False: "vse2ad-min"}
    assert names.method("vse2ad-min") == shown[options is not None]
    assert pooling.POOLINGS.title("min") == "min"


def test_options_that_are_no_section_are_one_line(first: Path) -> None:
    (first / "options.py").write_text("class MinPoolOptions:\n    even = 3\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"first 1\.0, .*: TypeError: first\.options\.MinPoolOptions"
    ):
        pooling.build("min", 2)


def test_what_is_built_in_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(kind: str) -> dict[str, plugins.Offer]:
        raise AssertionError("searched")

    monkeypatch.setattr(plugins, "offered", search)
    assert "mean" in pooling.POOLINGS
    assert pooling.build("mean", 2).dim == 2
    assert pooling.POOLINGS.title("mean") == "MeanPool"
    with pytest.raises(AssertionError, match="searched"):
        list(pooling.POOLINGS)


def test_packages_are_searched_once_for_all_kinds(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(installed, "mine", least="one:Pool")
    search, searches = metadata.entry_points, []
    monkeypatch.setattr(metadata, "entry_points", lambda: searches.append(1) or search())
    assert [*plugins.offered("poolings")] == ["least"]
    assert [*plugins.offered("objectives")] == []
    assert len(searches) == 1


def test_a_name_that_is_built_in_cannot_be_taken(installed: Path) -> None:
    offer(installed, "rude", mean="nowhere:Pool")
    with pytest.warns(
        InputWarning,
        match=r"rude 1\.0 offers 'mean' of the poolings, which is left out: that name is ",
    ):
        assert list(pooling.POOLINGS).count("mean") == 1
    assert pooling.POOLINGS["mean"].__module__ == "pipeline.make.heads.pooling.mean"


def test_names_that_no_file_can_have_are_left_out(installed: Path) -> None:
    offer(installed, "odd", **{"../up": "nowhere:Pool"})
    with pytest.warns(InputWarning, match="a name has letters"):
        assert "../up" not in pooling.POOLINGS


def test_two_packages_that_offer_one_name_are_refused(installed: Path) -> None:
    offer(installed, "one", least="one:Pool")
    offer(installed, "two", least="two:Pool")
    with pytest.raises(
        InputError, match=r"one 1\.0 and two 1\.0 both offer 'least' of the poolings; uninstall one"
    ):
        pooling.build("least", 2)


def test_a_part_that_cannot_be_imported_is_one_line(installed: Path) -> None:
    offer(installed, "broken", least="broken_module:Pool")
    with pytest.raises(
        InputError, match=r"'least', one of the poolings of broken 1\.0, cannot be used: ModuleNot"
    ):
        pooling.build("least", 2)


def test_a_part_of_another_type_is_one_line(installed: Path) -> None:
    offer(installed, "odd", three="math:pi")
    with pytest.raises(
        InputError, match="pooling 'three': expected a class or a function, got float"
    ):
        lazy.LookupTable({}, "poolings").build("three", 2)


@pytest.mark.parametrize("place", ["nowhere:READER", "math:pi"])
def test_a_broken_reader_stops_no_other(installed: Path, place: str) -> None:
    offer(installed, "odd", three=place)
    points = installed / "odd-1.0.dist-info" / "entry_points.txt"
    points.write_text(points.read_text().replace("poolings", "readers"))
    (installed / "captions.txt").write_text("image,caption\n")
    (installed / "captions.csv").write_text("image,caption\n0.png,a dog\n")
    assert len(manifest.build("mine", None, installed / "captions.csv").table) == 1
    with (
        pytest.warns(InputWarning, match="the reader 'three' is left out"),
        pytest.raises(InputError, match="name the format with --format"),
    ):
        manifest.build("mine", None, installed / "captions.txt")


def test_an_attribute_of_an_object_can_be_meant() -> None:
    table: lazy.LookupTable[object] = lazy.LookupTable(
        {"join": "pathlib:PurePosixPath.joinpath"}, "nothing"
    )
    assert table["join"] is __import__("pathlib").PurePosixPath.joinpath


def test_a_packages_modules_count_as_code(first: Path) -> None:
    def digests() -> dict[str, int | str]:
        plugins._read.cache_clear()
        return artefacts.versions((pooling.POOLINGS, "min"))

    before = digests()
    assert set(before) == {"first.smallest", "first.helpers_of_first"}
    (first / "helpers_of_first.py").write_text(
        f'"""Docs."""\n\n# A comment.\n{SMALLEST}', encoding="utf-8"
    )
    assert digests() == before
    (first / "helpers_of_first.py").write_text(SMALLEST.replace('"inf"', '"1e9"'), encoding="utf-8")
    after = digests()
    assert {module for module in before if before[module] != after[module]} == {
        "first.helpers_of_first"
    }


def test_options_beside_a_part_count_as_code_though_it_does_not_import_them(first: Path) -> None:
    def digests() -> dict[str, int | str]:
        importlib.invalidate_caches()
        plugins._read.cache_clear()
        return artefacts.versions((pooling.POOLINGS, "min"))

    (first / "options.py").write_text(TITLED, encoding="utf-8")
    before = digests()
    assert set(before) == {"first.smallest", "first.helpers_of_first", "first.options"}
    (first / "options.py").write_text(f"{TITLED}    power: float = 3.0\n", encoding="utf-8")
    after = digests()
    assert {module for module in before if before[module] != after[module]} == {"first.options"}


def test_relative_imports_are_followed_from_a_package_and_from_a_module(first: Path) -> None:
    (first / "__init__.py").write_text("from .inner import Deep\n", encoding="utf-8")
    (first / "inner").mkdir()
    (first / "inner" / "__init__.py").write_text("from ..smallest import MinPool\n")
    every = ["first", "first.helpers_of_first", "first.inner", "first.smallest"]
    assert list(plugins.sources("first")) == every


def test_a_package_of_one_file_counts(installed: Path) -> None:
    (installed / "single.py").write_text('"""Docs."""\nWIDTH = 4\n', encoding="utf-8")
    assert list(plugins.sources("single")) == ["single"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "class Least:\n    pass\n",
            r"expected a subclass or an instance of .*\.base\.Pooling, got Least",
        ),
        (
            "from pipeline.make.heads.pooling.base import Pooling\n\n\nclass Least(Pooling): ...\n",
            "Least lacks the method pool",
        ),
    ],
)
def test_a_part_that_is_not_what_its_kind_must_be_is_one_line(
    installed: Path, code: str, reason: str
) -> None:
    offer(installed, "first", least="first:Least")
    (installed / "first.py").write_text(code, encoding="utf-8")
    with pytest.raises(
        InputError, match=rf"'least', one of the poolings of first 1\.0, cannot be used: .*{reason}"
    ):
        pooling.build("least", 2)
