"""A row of a bottom-up-attention TSV: plain text fields, and arrays in base64."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

import numpy as np

from pipeline.importers.base import Found, Unusable

# peteanderson80/bottom-up-attention, tools/generate_tsv.py, and LXMERT (airsplay/lxmert), whose arrays of objects and
# attributes stand before num_boxes. Neither writes a header.
ANDERSON = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")
LXMERT = ("img_id", "img_h", "img_w", "objects_id", "objects_conf", "attrs_id", "attrs_conf", "num_boxes", "boxes",
          "features")
COLUMNS = {len(columns): columns for columns in (ANDERSON, LXMERT)}
# Column -> (what the BUTD engines call it, its dtype in the file, values an item).
EXTRAS = {"boxes": ("boxes", "<f4", 4), "objects_id": ("object", "<i8", 1), "objects_conf": ("object_score", "<f4", 1),
          "attrs_id": ("attribute", "<i8", 1), "attrs_conf": ("attribute_score", "<f4", 1)}


@dataclass(frozen=True)
class Row:
    """One row's fields. Raises Unusable where they are too few or too many, or num_boxes is no count."""

    columns: tuple[str, ...]
    fields: list[bytes]

    @classmethod
    def of(cls, line: bytes, columns: tuple[str, ...]) -> Row:
        fields = line.rstrip(b"\r\n").split(b"\t")
        if len(fields) != len(columns):
            raise Unusable(f"expected {len(columns)} columns, got {len(fields)}")
        return cls(columns, fields)

    def field(self, name: str) -> bytes:
        return self.fields[self.columns.index(name)]

    def number(self, name: str) -> int:
        """A field that is a count. Raises Unusable where it is none, or is zero."""
        text = self.field(name)
        if not text.isdigit() or not 0 < int(text) < 2**31:
            raise Unusable(f"{name}: expected a positive number, got {text[:20].decode(errors='replace')!r}")
        return int(text)

    def array(self, name: str, dtype: str, boxes: int, values: int) -> np.ndarray:
        """A base64 field as [boxes, values], [boxes] where values is 1. Raises Unusable where the bytes do not fit."""
        try:
            raw = base64.b64decode(self.field(name), validate=True)
        except binascii.Error as error:
            raise Unusable(f"{name}: not whole base64 ({error})") from None
        expected = boxes * values * np.dtype(dtype).itemsize
        if len(raw) != expected:
            raise Unusable(f"{name}: num_boxes {boxes} of {values} values make {expected} bytes, got {len(raw)}")
        array = np.frombuffer(raw, dtype)
        return array if values == 1 else array.reshape(boxes, values)

    def dimension(self) -> int:
        """Values an item, from the features' length. Raises Unusable where no number of them fits."""
        boxes, length = self.number("num_boxes"), len(self.field("features").rstrip(b"=")) * 3 // 4
        if not length or length % (4 * boxes):
            raise Unusable(f"features: num_boxes {boxes} does not divide their {length} bytes into float32")
        return length // (4 * boxes)

    def found(self, dimension: int) -> Found:
        """The row's features, boxes and labels. Raises Unusable where any of them is damaged."""
        boxes = self.number("num_boxes")
        width, height = (self.number(next(name for name in self.columns if name.endswith(axis)))
                         for axis in ("_w", "_h"))
        extras = {EXTRAS[name][0]: self.array(name, EXTRAS[name][1], boxes, EXTRAS[name][2])
                  for name in self.columns if name in EXTRAS}
        return Found(self.array("features", "<f4", boxes, dimension), extras, (width, height))


def length_after(boxes: int, dimension: int) -> int:
    """Characters of a row behind its num_boxes: a tab, the boxes, a tab, the features."""
    return 2 + sum(-(-boxes * values * 4 // 3) * 4 for values in (4, dimension))
