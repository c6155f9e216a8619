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
ENGINE = {"engine": ("str", "request.engine", "what made them")}
FORMAT = {"format": ("str", "request.format", "the format from which they were imported")}
FORMS = {".json": "application/json", ".csv": "text/csv"}


def describe(
    store: FeatureStore, manifest: Manifest, card: Dataset, table: Path, folder: Path
) -> dict[str, Any]:
    """Describe a store and its manifest, whose file is `table`, by what a card says; paths are from
    a folder.
    """
    layout = store.layout
    made = store.fingerprint
    described = croissant.describe(manifest, card, table, folder)
    size = counted(int(store.done.sum()), layout.noun)
    features = (
        f"{made['recipe']} features of {size}, {layout.items} x {layout.dimension} {layout.dtype}, "
        "in zarr's format 3"
    )
    source = FORMAT if imported(made) else ENGINE
    dataset = f"made_from.{layout.kind}.name"
    fields_of_record = {"dataset": ("str", dataset, "the data set")} | FIELDS | source
    files = [
        croissant.file(store.path / name, folder, FORMS[Path(name).suffix], name)
        for name in DESCRIPTION
        if (store.path / name).stat().st_size
    ]
    arrays = [
        {
            "@type": "cr:FileSet",
            "@id": array.parent.name,
            "name": array.parent.name,
            "encodingFormat": "application/octet-stream",
            "includes": f"{croissant.relative(array.parent, folder)}/**",
        }
        for array in sorted(store.path.glob("*/zarr.json"))
    ]
    fields = [
        croissant.field("store", name, dtype, meaning, "record.json", {"jsonPath": f"$.{place}"})
        for name, (dtype, place, meaning) in fields_of_record.items()
    ]
    rows = {"jsonPath": "$.attributes.layout.total"}
    fields.append(
        croissant.field("store", "rows", "int64", "the rows of its arrays", "zarr.json", rows)
    )
    return described | {
        "name": f"{manifest.dataset}-{store.path.stem}",
        "description": f"{features}; {described['description']}",
        "distribution": [*files, *arrays, *described["distribution"]],
        "recordSet": [
            croissant.records("store", "what the features are, one record", fields),
            *described["recordSet"],
        ],
    }
