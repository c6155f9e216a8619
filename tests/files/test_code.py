"""Which code makes a thing: what the digests see, and what they are blind to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.extraction.request import made_by as features_by
from pipeline.files import code

LOOP = '''"""Train."""

from pipeline.heads import pooling
from pipeline.heads.two_tower import TwoTower
from pipeline.store import FeatureStore


def train():
    """Train to the end."""
    return 1  # an epoch
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of four modules: training.loop imports heads.two_tower and, of another room, store."""
    for name, text in {"training/loop": LOOP, "heads/two_tower": "WIDTH = 4", "heads/pooling/__init__": "A = 1",
                       "heads/pooling/mean": "B = 2", "store": "C = 3"}.items():
        file = tmp_path / "pipeline" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(code, "PACKAGE", tmp_path / "pipeline")
    yield tmp_path / "pipeline"
    code._read.cache_clear()  # the modules of these names are others again


def digests(*more: str) -> dict[str, str]:
    code._read.cache_clear()
    return code.of(["pipeline.training.loop", *more], ("pipeline.training", "pipeline.heads"))


def test_modules_are_followed_within_the_rooms(package: Path) -> None:
    assert list(digests()) == ["pipeline.heads.two_tower", "pipeline.training.loop"]
    assert "pipeline.heads.pooling.mean" in digests("pipeline.heads.pooling.mean")


@pytest.mark.parametrize(("old", "new", "seen"), [
    ("# an epoch", "# a whole epoch", False), ('"""Train to the end."""', '"""Until it is done."""', False),
    ("def train():", "\n\ndef train( ):", False), ("return 1", "return 2", True)])
def test_comments_docstrings_and_layout_are_not_seen(package: Path, old: str, new: str, seen: bool) -> None:
    before, loop = digests(), package / "training" / "loop.py"
    loop.write_text(LOOP.replace(old, new), encoding="utf-8")
    assert (digests() != before) == seen


def test_a_change_is_named(package: Path, tmp_path: Path) -> None:
    code.write(tmp_path, digests())
    assert code.changed(tmp_path, digests()) == []
    (package / "heads" / "two_tower.py").write_text("WIDTH = 5", encoding="utf-8")
    assert code.changed(tmp_path, digests()) == ["pipeline.heads.two_tower"]
    assert code.changed(tmp_path / "elsewhere", digests()) == list(digests())
    code._read.cache_clear()


def test_an_engine_depends_on_its_own_files() -> None:
    grid, detector = features_by("grid"), features_by("butd-36")
    assert {"pipeline.extractors.grid", "pipeline.extractors.network", "pipeline.files.images"} <= grid.keys()
    assert not any(".butd" in module for module in grid)
    assert "pipeline.extractors.butd.network" in detector


def test_functions_of_a_package_count_and_what_it_lists_does_not(package: Path) -> None:
    before, file = digests(), package / "heads" / "pooling" / "__init__.py"
    file.write_text("A = 2", encoding="utf-8")
    assert digests() == before
    file.write_text("A = 1\n\n\ndef build(name):\n    return 'max'\n", encoding="utf-8")
    assert digests().keys() - before.keys() == {"pipeline.heads.pooling"}


def test_what_a_table_names_counts_where_it_is_asked_for() -> None:
    roots, rooms = ["stages.tables"], ("pipeline", "stages")
    alone, named = code.of(roots, rooms), code.of(roots, rooms, ["pipeline.report.tables"])
    added = named.keys() - alone.keys()
    assert {"pipeline.report.tables.vse2ad", "pipeline.report.retrieval_table"} <= added
    assert not any(module.startswith(("pipeline.heads.pooling.", "pipeline.metrics.recall")) for module in added)


def test_a_change_that_alters_nothing_is_vouched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(re.fullmatch("[0-9a-f]{16}", digest) for pair in code.ALIKE.items() for digest in pair)
    assert not any(code._latest(digest) in code.ALIKE for digest in code.ALIKE)
    monkeypatch.setattr(code, "ALIKE", {"first": "second", "second": "third"})
    for made_by, changed in (("first", []), ("second", []), ("third", []), ("other", ["heads"])):
        code.write(tmp_path, {"heads": made_by})
        assert code.changed(tmp_path, {"heads": "third"}) == changed
    code.write(tmp_path, {"heads": "third"})
    assert code.changed(tmp_path, {"heads": "first"}) == ["heads"]  # older code is not vouched for
