"""A feature store's card in Croissant: its files, what made the features, and the manifest of its
images.
"""

from pathlib import Path
from typing import Any

from pipeline.foundation.manifest import Dataset, Manifest, croissant
from pipeline.foundation.parts.errors import counted
from pipeline.make.features.store.layout import imported
from pipeline.make.features.store.reader import FeatureStore

DESCRIPTION = ("zarr.json", "failures.csv", "record.json")
# Field of the record set `store` -> its type, its place in record.json, what it is.
FIELDS = {
    "name": ("str", "request.recipe", "the name under which the features are reported"),
    "kind": ("str", "request.row.kind", "what its rows are of"),
    "items": ("int64", "request.row.items", "the most items of a row"),
    "dimension": ("int64", "request.row.dimension", "the values of an item"),
    "dtype": ("str", "request.row.dtype", "their dtype"),
}
# As in `FIELDS`, what only features that were extracted have, or only imported ones.
ENGINE = {"engine": ("str", "request.engine", "what made them")}
FORMAT = {"format": ("str", "request.format", "the format from which they were imported")}
FORMS = {".json": "application/json", ".csv": "text/csv"}


def describe(
    store: FeatureStore, manifest: Manifest, card: Dataset, table: Path, folder: Path
) -> dict[str, Any]:
    """Describe a store and its manifest, whose file is `table`, by what a card says; paths are from
    a folder.
    """
    described = croissant.describe(manifest, card, table, folder)
    layout = store.layout
    recipe = store.fingerprint["recipe"]
    size = counted(int(store.done.sum()), layout.noun)
    features = (
        f"{recipe} features of {size}, {layout.items} x {layout.dimension} {layout.dtype}, in "
        "zarr's format 3"
    )
    record = croissant.records("store", "what the features are, one record", _fields(store))
    return described | {
        "name": f"{manifest.dataset}-{store.path.stem}",
        "description": f"{features}; {described['description']}",
        "distribution": [*_files(store, folder), *described["distribution"]],
        "recordSet": [record, *described["recordSet"]],
    }


def _files(store: FeatureStore, folder: Path) -> list[dict[str, Any]]:
    """The files that describe a store, and the folder of each array."""
    files = []
    for name in DESCRIPTION:
        path = store.path / name
        if path.stat().st_size:
            files.append(croissant.file(path, folder, FORMS[path.suffix], name))
    for array in sorted(store.path.glob("*/zarr.json")):
        name = array.parent.name
        place = croissant.relative(array.parent, folder)
        files.append(
            {
                "@type": "cr:FileSet",
                "@id": name,
                "name": name,
                "encodingFormat": "application/octet-stream",
                "includes": f"{place}/**",
            }
        )
    return files


def _fields(store: FeatureStore) -> list[dict[str, Any]]:
    """What is known of a store, and in which file and where."""
    dataset = f"made_from.{store.layout.kind}.name"
    in_record = {"dataset": ("str", dataset, "the data set")} | FIELDS
    in_record |= FORMAT if imported(store.fingerprint) else ENGINE
    fields = []
    for name, (dtype, place, meaning) in in_record.items():
        path = {"jsonPath": f"$.{place}"}
        fields.append(croissant.field("store", name, dtype, meaning, "record.json", path))
    total = {"jsonPath": "$.attributes.layout.total"}
    rows = croissant.field("store", "rows", "int64", "the rows of its arrays", "zarr.json", total)
    return [*fields, rows]
