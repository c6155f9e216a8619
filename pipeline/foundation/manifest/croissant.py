"""A manifest's card in Croissant (mlcommons.org/croissant), the JSON-LD that catalogues of data
sets read.
"""

import os
from pathlib import Path
from typing import Any

from pipeline.foundation.files.digest import sha256
from pipeline.foundation.manifest.caption_inputs import CAPTION_INPUTS
from pipeline.foundation.manifest.columns import columns_of
from pipeline.foundation.manifest.dataset import Dataset
from pipeline.foundation.manifest.table import Manifest
from pipeline.foundation.parts.errors import counted

FORM = "http://mlcommons.org/croissant/1.0"
TYPES = {"int64": "sc:Integer", "float64": "sc:Float", "str": "sc:Text"}
MEANING = {
    "image_id": "the image; -1 for a caption that belongs to none",
    "file": "its file in the folder of images",
    "bytes": "the file's size; -1 if it was not looked at",
    "split": "train, val, test or another split",
    "caption_id": "the caption; -1 in the row of an image that has none",
    "caption": "the caption's text",
    "photograph": "checksum of the image file",
    "language": "the caption's language",
    "kind": "video, or image",
    "start": "seconds at which a clip begins",
    "end": "seconds at which it ends",
}
TERMS = (
    "citeAs",
    "column",
    "equivalentProperty",
    "extract",
    "field",
    "fileObject",
    "fileProperty",
    "fileSet",
    "format",
    "includes",
    "isLiveDataset",
    "jsonPath",
    "key",
    "md5",
    "parentField",
    "path",
    "recordSet",
    "references",
    "regex",
    "repeated",
    "replace",
    "samplingRate",
    "separator",
    "source",
    "subField",
    "transform",
)
# The context of Croissant 1.0, whole: readers warn of any other.
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
} | {term: f"cr:{term}" for term in TERMS}


def describe(manifest: Manifest, card: Dataset, table: Path, folder: Path) -> dict[str, Any]:
    """Describe a manifest's file `table` and its columns by what a card says, as seen from a
    folder: JSON-LD.
    """
    images = counted(len(manifest.images), manifest.noun)
    captions = counted(manifest.captions, "caption")
    counts = f"{images} with {captions}"
    named = {
        "@type": "sc:Dataset",
        "name": manifest.dataset,
        "alternateName": card.title,
        "description": counts,
        "conformsTo": FORM,
        "citeAs": card.bibtex.strip(),
        "inLanguage": manifest.languages or card.languages,
    }
    if not card.is_own:
        source = ", ".join(filter(None, (card.source, card.revision)))
        named["description"] = f"{card.description}; {counts}; source: {source}"
        named["license"] = card.licence
    known = {key: value for key, value in named.items() if value}
    meaning = MEANING | {name: CAPTION_INPUTS[name].meaning for name in manifest.caption_inputs}
    fields = []
    for column, dtype in columns_of(manifest.columns).items():
        place = {"column": column}
        fields.append(field("captions", column, dtype, meaning[column], "manifest", place))
    parquet = file(table, folder, "application/x-parquet", "manifest")
    rows = records("captions", "a row for each caption", fields)
    return {"@context": CONTEXT, **known, "distribution": [parquet], "recordSet": [rows]}


def relative(path: Path, folder: Path) -> str:
    """A path as a card in a folder names it."""
    below = os.path.relpath(path, folder)
    return Path(below).as_posix()


def file(path: Path, folder: Path, form: str, key: str) -> dict[str, Any]:
    """A file with its size and digest. form: its media type. key: by which fields refer to it."""
    return {
        "@type": "cr:FileObject",
        "@id": key,
        "name": path.name,
        "encodingFormat": form,
        "contentUrl": relative(path, folder),
        "contentSize": f"{path.stat().st_size} B",
        "sha256": sha256(path),
    }


def records(key: str, meaning: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    """A set of records with these fields."""
    return {
        "@type": "cr:RecordSet",
        "@id": key,
        "name": key,
        "description": meaning,
        "field": fields,
    }


def field(
    record: str, name: str, dtype: str, meaning: str, source: str, place: dict[str, str]
) -> dict[str, Any]:
    """A field of a set of records. source: the key of the file that has it. place: where it is
    there.
    """
    return {
        "@type": "cr:Field",
        "@id": f"{record}/{name}",
        "name": name,
        "description": meaning,
        "dataType": TYPES[dtype],
        "source": {"fileObject": {"@id": source}, "extract": place},
    }
