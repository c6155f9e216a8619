"""What the BUTD engines store beside features."""

from collections.abc import Mapping

from pipeline.make.features.store import Extra

# The box in pixels of the image as decoded, the likeliest object and attribute as
# rows of Visual Genome's 1600-400-20 vocabularies, and their probabilities.
EXTRAS: Mapping[str, Extra] = {
    "boxes": Extra((4,), "float32"),
    "object": Extra((), "int32"),
    "object_score": Extra((), "float32"),
    "attribute": Extra((), "int32"),
    "attribute_score": Extra((), "float32"),
}
