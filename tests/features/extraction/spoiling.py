"""Image files mended or as they are, in a manifest made anew."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from pipeline.foundation import manifest
from pipeline.foundation.manifest import Manifest


def scenes_in(folder: Path, corpus: Path, mend: Iterable[int] = ()) -> Manifest:
    """The manifest of the scenes in `folder`, after the images in the rows `mend` were put back."""
    built = manifest.build("sample", folder, corpus / "dataset_sample.json")
    for row in mend:
        shutil.copy(
            corpus / "images" / built.images["file"][row], folder / built.images["file"][row]
        )
    return manifest.build("sample", folder, corpus / "dataset_sample.json")
