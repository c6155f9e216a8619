"""What catalogues of data sets read: manifests and stores in Croissant."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest

from pipeline.foundation.manifest import Manifest
from pipeline.make.features.store import FeatureStore

pytestmark = pytest.mark.slow


def keys(value: Any) -> Iterator[str]:
    """The keys of JSON at any depth."""
    for key, inside in value.items() if isinstance(value, dict) else ():
        yield key
        yield from keys(inside)
    for inside in value if isinstance(value, list) else ():
        yield from keys(inside)


@pytest.mark.specification
def test_a_manifest_in_croissant_fits_its_file(pipeline: Any, corpus: Path) -> None:
    annotations = (
        "--images",
        str(corpus / "images"),
        "--annotations",
        str(corpus / "dataset_sample.json"),
    )
    for name, own in (("mine", True), ("flickr8k", False)):
        assert pipeline("manifest", name, *annotations)[0] == 0
        file = Path("cards", f"{name}.croissant.json")
        assert pipeline("store", "export", "croissant", f"data/{name}.parquet", "--out", "cards")[
            1
        ] == (f"{file}: data/{name}.parquet in Croissant\n")
        card = json.loads(file.read_text(encoding="utf-8"))
        assert (card["@type"], card["name"], card["conformsTo"]) == (
            "sc:Dataset",
            name,
            "http://mlcommons.org/croissant/1.0",
        )
        assert "24 images with 120 captions" in card["description"]
        assert ("license" in card, "citeAs" in card) == (not own, not own)
        (table,), (records,) = card["distribution"], card["recordSet"]
        path = file.parent / table["contentUrl"]
        assert table["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        schema = parquet.read_schema(path)
        assert [field["source"]["extract"]["column"] for field in records["field"]] == schema.names
        for field in records["field"]:
            kind = {"sc:Integer": "int64", "sc:Float": "double", "sc:Text": "string"}[
                field["dataType"]
            ]
            assert str(schema.field(field["name"]).type).removeprefix("large_") == kind
            assert field["source"]["fileObject"] == {"@id": table["@id"]}
        assert_known_terms(card)


def assert_known_terms(card: dict[str, Any]) -> None:
    schema_org = {
        "name",
        "alternateName",
        "description",
        "license",
        "inLanguage",
        "distribution",
        "encodingFormat",
        "contentUrl",
        "contentSize",
        "sha256",
    }
    terms = {key for part in ("distribution", "recordSet") for key in keys(card[part])} | {*card}
    assert {term for term in terms if not term.startswith("@")} <= schema_org | {*card["@context"]}


def test_a_store_in_croissant_names_its_files_and_what_made_them(
    scenes: Manifest,
    store: FeatureStore,
    pipeline: Any,
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenes.save(Path("data/sample.parquet"))
    all_but_two = np.arange(len(store.rows)) > 1
    monkeypatch.setattr(FeatureStore, "done", all_but_two)
    export = ("store", "export", "croissant", str(store.path), "--out", "cards")
    code, _, err = pipeline(*export)
    assert code == 0, err
    card = json.loads(
        Path(f"cards/sample-{store.path.stem}.croissant.json").read_text(encoding="utf-8")
    )
    assert_known_terms(card)
    size = f"{len(scenes.images) - 2} images, 36 x {store.layout.dimension} {store.layout.dtype}"
    assert card["description"].startswith(f"{store.fingerprint['recipe']} features of {size}, in")
    files = {
        each["@id"]: Path("cards", each["contentUrl"])
        for each in card["distribution"]
        if "sha256" in each
    }
    assert {"zarr.json", "record.json", "manifest"} <= files.keys()
    for each in card["distribution"]:
        if "sha256" in each:
            assert each["sha256"] == hashlib.sha256(files[each["@id"]].read_bytes()).hexdigest()
        else:
            assert [*Path("cards").glob(each["includes"])]
    features, captions = card["recordSet"]
    for each in features["field"]:
        value: Any = json.loads(files[each["source"]["fileObject"]["@id"]].read_text())
        for key in each["source"]["extract"]["jsonPath"].removeprefix("$.").split("."):
            value = value[key]
        assert type(value) is {"sc:Integer": int, "sc:Text": str}[each["dataType"]]
    assert captions["@id"] == "captions"
    assert "leave out --split" in refused(*export, "--split", "val")
