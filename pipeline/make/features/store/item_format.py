"""How a store's items were made and what shape they have: enough to make items of other images
alike.

A trained head records it, so that it can be used on other images without the store that it was
trained on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

from pydantic import Field, TypeAdapter

from pipeline.foundation.artefacts.record import without_places
from pipeline.foundation.parts.errors import refusing
from pipeline.make.features.store.layout import StoreError

if TYPE_CHECKING:
    from pipeline.make.features.store.reader import FeatureStore

# The keys of a fingerprint that name the ids and the files that features were imported from.
OF_IDS = frozenset({"dataset", "ids", "source"})
# A size that a file says: a whole number that is no bool and has no point.
Size = Annotated[int, Field(ge=1, strict=True)]


@dataclass(frozen=True)
class ItemFormat:
    """How items were made, and their shape."""

    # The store's fingerprint without its ids: engine, settings, weights, precision.
    made: Mapping[str, Any]
    items: Size  # N, the most items of a row
    dimension: Size  # D
    dtype: Literal["float16", "float32"]
    boxes: bool
    # Option of the engine -> the file that it named, of which `made` has the digest. It is in no
    # identity.
    place: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, store: FeatureStore) -> Self:
        """The format of a store's items."""
        made = {key: value for key, value in store.fingerprint.items() if key not in OF_IDS}
        layout = store.layout
        dtype = cast(Literal["float16", "float32"], layout.dtype)
        has_boxes = "boxes" in layout.extras
        return cls(made, layout.items, layout.dimension, dtype, has_boxes, store.place)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The format in a record that `recorded` gave; StoreError if it is not such a record."""
        with refusing(
            (TypeError, ValueError),
            "its record of the features is not readable; train the head again",
            StoreError,
        ):
            return TypeAdapter(cls).validate_python(dict(record))

    def recorded(self) -> dict[str, Any]:
        """The format as JSON values."""
        return {**vars(self), "made": dict(self.made), "place": dict(self.place)}

    @property
    def compared(self) -> Any:
        """The same without where files were, by which formats are equal."""
        return without_places(self.recorded())

    @property
    def options(self) -> dict[str, Any]:
        """The settings with which the engine is built again, with files where they were."""
        return {**self.made["settings"], **self.place}

    def require(self, store: FeatureStore) -> None:
        """Check that a store's items were made as those that a head was trained with; StoreError if
        not.
        """
        other = self.of(store)
        mine = {**self.made, "dimension": self.dimension}
        its = {**other.made, "dimension": other.dimension}
        for key in sorted(mine.keys() | its.keys()):
            trained_with = mine.get(key)
            stored = its.get(key)
            if trained_with != stored:
                raise StoreError(
                    f"{store.path}: its {key} is {stored!r}, the head was trained with "
                    f"{trained_with!r}; extract both alike"
                )
