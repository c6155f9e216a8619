"""The captions and photographs of a system, from its manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.manifest import Manifest
from pipeline.judge.systems.scores.judged import of_captions
from pipeline.judge.systems.scores.system import System


@dataclass(frozen=True)
class Items:
    """What is known of a system's images and captions beside their ids, in its order."""

    captions: Sequence[str] | None = None  # C texts
    photographs: Sequence[GalleryFile] | None = None  # I files

    @classmethod
    def of(cls, system: System, manifest: Manifest, images_folder: Path) -> Items:
        """Read the captions of a system with ids, and find its photographs in a folder."""
        captions = of_captions(system, manifest, "caption")
        ids = manifest.images["image_id"].tolist()
        file_of = dict(zip(ids, manifest.gallery(images_folder), strict=True))
        photographs = [file_of[image] for image in system.image_ids.tolist()]
        return cls(captions.tolist(), photographs)
