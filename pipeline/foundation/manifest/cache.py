"""What is kept beside a manifest's file while that is unchanged: its digests, and a list of its
images.

The list has a row for each image, where the manifest has one for each caption: reading it takes a
tenth of the time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.foundation.files import atomic
from pipeline.foundation.files.remembered import Remembered, has_settled, state_of

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1  # of the list of images; a list of another format is made again


class ManifestCache:
    """Digests and list of images of a manifest's file, in the hidden folder beside it; make it
    before reading.
    """

    def __init__(self, manifest: Path | None = None) -> None:
        self.manifest = manifest
        self.folder: Path | None = None
        if manifest is not None:
            self.folder = manifest.with_name(f".{manifest.stem}")
            self._digest = Remembered(self.folder / "digests.json").of(manifest)
            self._images = self.folder / "images.parquet"
            self._state = state_of(manifest)

    def digest(self, name: str, compute: Callable[[], str]) -> str:
        """A digest of the manifest by its name, which `compute` computes if it is not known."""
        if self.manifest is None:
            return compute()
        return self._digest(name, compute)

    def images(self, read: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """The list of images, which `read` reads from the manifest if it is not known."""
        if self.manifest is None:
            return read()
        import pyarrow as pa
        from pyarrow import parquet

        manifest_state = json.dumps([FORMAT, self._state]).encode()
        if self._images.is_file():
            with suppress(OSError, ValueError, pa.ArrowException):
                # `read_table` would import pyarrow.dataset, which takes 0.4 s
                list_file = parquet.ParquetFile(self._images, page_checksum_verification=True)
                image_list = list_file.read()
                image_list.validate(full=True)
                list_state = (image_list.schema.metadata or {}).get(b"state")
                if list_state == manifest_state and self._state == state_of(self.manifest):
                    return image_list.to_pandas(split_blocks=True, self_destruct=True)
        table = read()
        if has_settled(self.manifest, self._state):
            image_list = pa.Table.from_pandas(table, preserve_index=False)
            image_list = image_list.replace_schema_metadata({b"state": manifest_state})
            # The disk may be read-only, or full.
            with (
                suppress(*atomic.NOT_WRITTEN),
                atomic.replacing(self._images, durable=False) as partial,
            ):
                parquet.write_table(
                    image_list,
                    partial,
                    compression="zstd",
                    use_dictionary=["split"],
                    write_page_checksum=True,
                )
        return table
