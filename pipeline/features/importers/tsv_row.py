"""A row of a bottom-up-attention TSV: plain text fields, and arrays in base64."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

import numpy as np

from pipeline.features.importers.base import SourceItems, UnusableItems

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
class TsvRow:
    """One row's fields."""

    columns: tuple[str, ...]  # the names of the columns
    fields: list[bytes]  # their raw contents

    @classmethod
    def of(cls, line: bytes, columns: tuple[str, ...]) -> TsvRow:
        """Split a line into fields."""
        fields = line.rstrip(b"\r\n").split(b"\t")
        if len(fields) != len(columns):
            raise UnusableItems(f"expected {len(columns)} columns, got {len(fields)}")
        return cls(columns, fields)

    def field(self, name: str) -> bytes:
        """Look up a field."""
        return self.fields[self.columns.index(name)]

    def number(self, name: str) -> int:
        """Read a field that is a count."""
        text = self.field(name)
        if not text.isdigit() or not 0 < int(text) < 2**31:
            raise UnusableItems(f"{name}: expected a positive number, got {text[:20].decode(errors='replace')!r}")
        return int(text)

    def array(self, name: str, dtype: str, boxes: int, values: int) -> np.ndarray:
        """Decode a base64 field: [boxes, values]; [boxes] if `values` is 1."""
        try:
            raw = base64.b64decode(self.field(name), validate=True)
        except binascii.Error as error:
            raise UnusableItems(f"{name}: not whole base64 ({error})") from None
        expected = boxes * values * np.dtype(dtype).itemsize
        if len(raw) != expected:
            raise UnusableItems(f"{name}: num_boxes {boxes} of {values} values make {expected} bytes, got {len(raw)}")
        array = np.frombuffer(raw, dtype)
        return array if values == 1 else array.reshape(boxes, values)

    def dimension(self) -> int:
        """Derive the number of values of an item from the features' length."""
        boxes, length = self.number("num_boxes"), len(self.field("features").rstrip(b"=")) * 3 // 4
        if not length or length % (4 * boxes):
            raise UnusableItems(f"features: num_boxes {boxes} does not divide their {length} bytes into float32")
        return length // (4 * boxes)

    def found(self, dimension: int) -> SourceItems:
        """Decode the row's features, boxes and labels."""
        boxes = self.number("num_boxes")
        width, height = (self.number(next(name for name in self.columns if name.endswith(axis)))
                         for axis in ("_w", "_h"))
        extras = {EXTRAS[name][0]: self.array(name, EXTRAS[name][1], boxes, EXTRAS[name][2])
                  for name in self.columns if name in EXTRAS}
        return SourceItems(self.array("features", "<f4", boxes, dimension), extras, (width, height))


def length_after(boxes: int, dimension: int) -> int:
    """Compute the length of the part of a row that follows num_boxes: a tab, the boxes, a tab, the features."""
    return 2 + sum(-(-boxes * values * 4 // 3) * 4 for values in (4, dimension))
