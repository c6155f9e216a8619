"""Exports of single images: what is written is imported again value for value, and nothing else is
overwritten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import foreign
import numpy as np
import pytest
from folders import tree

from pipeline.extensions.importers import import_features
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.store import FeatureStore, StoreError
from pipeline.make.features.store.export import Exported, export

pytestmark = pytest.mark.slow

TABLE = foreign.manifest(14, captions=6, dataset="mine")
Writer = Callable[[Path, list[foreign.Picture]], list[Path]]
Export = Callable[..., Exported]
FORMS: dict[str, Export] = {
    form: partial(export, form, root=Path()) for form in ("butd-tsv", "folder")
}


def made(folder: Path, writer: Writer, form: str) -> FeatureStore:
    (folder / "source").mkdir()
    paths = writer(
        folder / "source", foreign.pictures(TABLE, [1 + place % 3 for place in range(14)], 5)
    )
    import_features(foreign.job(TABLE, form, paths, folder / "s.zarr", dtype="float32"))
    return FeatureStore(folder / "s.zarr").require(TABLE)


def sources(form: str, folder: Path) -> list[Path]:
    return sorted(folder.glob("*.tsv")) if form == "butd-tsv" else [folder]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("writer", [foreign.anderson_tsv, foreign.lxmert_tsv])
def test_exported_and_imported_again(tmp_path: Path, writer: Writer, form: str) -> None:
    store = made(tmp_path, writer, "butd-tsv")
    done = FORMS[form](store, TABLE, None, tmp_path / "out")
    assert (done.images, done.left_out, done.written) == (14, [], True)
    import_features(
        foreign.job(
            TABLE, form, sources(form, tmp_path / "out"), tmp_path / "back.zarr", dtype="float32"
        )
    )
    back = FeatureStore(tmp_path / "back.zarr").require(TABLE)
    images = np.arange(14)
    assert np.array_equal(back.read(images)[0], store.read(images)[0])
    assert back.layout.extras == store.layout.extras
    for name in store.layout.extras:
        assert np.array_equal(back.extra(name, images), store.extra(name, images)), name
    assert np.array_equal(back.columns("sizes"), store.columns("sizes"))


@pytest.mark.parametrize("form", FORMS)
def test_again_does_nothing_and_another_split_goes_beside(tmp_path: Path, form: str) -> None:
    store, out = made(tmp_path, foreign.lxmert_tsv, "butd-tsv"), tmp_path / "out"
    assert FORMS[form](store, TABLE, "train", out).written
    before = tree(out)
    assert not FORMS[form](store, TABLE, "train", out).written
    assert tree(out) == before
    assert FORMS[form](store, TABLE, "test", out).written
    assert {name: tree(out)[name] for name in before} == before


@pytest.mark.parametrize("form", FORMS)
def test_other_files_are_not_overwritten(tmp_path: Path, form: str) -> None:
    store, out = made(tmp_path, foreign.lxmert_tsv, "butd-tsv"), tmp_path / "out"
    FORMS[form](store, TABLE, "train", out)
    (out / "train_made_from.json").write_text("{}")
    before = tree(out)
    with pytest.raises(InputError, match="exists and is not"):
        FORMS[form](store, TABLE, "train", out)
    assert tree(out) == before


def test_a_folder_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    store, out = made(tmp_path, foreign.lxmert_tsv, "butd-tsv"), tmp_path / "out"

    def cut(count: int) -> None:
        if len(list(out.rglob("*.npz"))) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FORMS["folder"](store, TABLE, None, out, on_images=cut)
    reported: list[int] = []
    FORMS["folder"](store, TABLE, None, out, reported.append)
    assert reported == [10]


def test_a_store_without_boxes_has_no_tsv(tmp_path: Path) -> None:
    store = made(tmp_path, foreign.npy, "folder")
    with pytest.raises(StoreError, match="has no boxes"):
        FORMS["butd-tsv"](store, TABLE, None, tmp_path / "out")
    assert FORMS["folder"](store, TABLE, "val", tmp_path / "out").images == len(
        TABLE.split("val").image_ids
    )


def test_failed_images_are_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    there = foreign.pictures(TABLE, [2] * 14, 5)
    paths = foreign.npy(tmp_path / "source", [image for row, image in enumerate(there) if row != 3])
    import_features(foreign.job(TABLE, "folder", paths, tmp_path / "s.zarr", on_error="skip"))
    done = FORMS["folder"](FeatureStore(tmp_path / "s.zarr"), TABLE, None, tmp_path / "out")
    assert (done.images, done.left_out) == (13, [TABLE.images["file"][3]])


def test_manifest_is_the_stores(tmp_path: Path) -> None:
    store = made(tmp_path, foreign.npy, "folder")
    other: Manifest = foreign.manifest(13, captions=6, dataset="mine")
    with pytest.raises(StoreError, match="another manifest"):
        FORMS["folder"](store, other, None, tmp_path / "out")


def test_names_that_leave_the_folder_are_refused(tmp_path: Path) -> None:
    table = replace(TABLE, source=TABLE.table.assign(file="../" + TABLE.table["file"]))
    paths = foreign.anderson_tsv(tmp_path, foreign.pictures(table, [2] * 14, 5))
    import_features(foreign.job(table, "butd-tsv", paths, tmp_path / "a.zarr"))
    with pytest.raises(InputError, match=r"'\.\./.*leaves the folder"):
        FORMS["folder"](FeatureStore(tmp_path / "a.zarr"), table, None, tmp_path / "out")
