"""The request for a manifest."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

from pipeline.foundation import artefacts
from pipeline.foundation.artefacts import Reference, Request, Versions
from pipeline.foundation.files import remembered, remote
from pipeline.foundation.manifest.build import READERS
from pipeline.foundation.manifest.cache import ManifestCache
from pipeline.foundation.manifest.table import Manifest


class ManifestRequest(Request):
    """What a manifest is made from."""

    kind: ClassVar[str] = "manifest"
    dataset: str
    form: str | None  # The format of the annotations, None for as it looks
    items: str | None  # "image" or "video", None for captions alone
    caption_inputs: tuple[str, ...]  # The columns of further inputs that are read from files
    draws: bool  # Whether splits are drawn, where the annotations name none
    fetch: bool  # Whether images are downloaded
    left_out: float  # The share of captions that may be left out
    fails: bool  # Whether the first caption or image that cannot be used ends the command
    places: tuple[
        str, ...
    ]  # The manifest, the folder of images, the annotations, the further inputs of captions
    states: str  # Digest of the sizes and times of all files there, which are not read

    @classmethod
    def of(cls, path: Path, sources: Sequence[Path], **settings: object) -> Self | None:
        """Compose the request; None where the state of a source cannot be known without reading
        it.
        """
        if any(remote.address(place) for place in (path, *sources)):
            return None
        states = remembered.states_of(sources)
        if states is None:
            return None
        paths = tuple(str(place) for place in (path, *sources))
        return cls.model_validate({**settings, "places": paths, "states": states})

    def versions(self) -> Versions:
        """Collect the versions of all readers, see `Request.versions`."""
        readers = [(READERS, name) for name in READERS]
        return artefacts.versions("manifest", *readers)


def reference(manifest: Path, dataset: str) -> Reference:
    """Compose `Manifest.reference` of a file, without reading it if it is unchanged since it was
    digested last.
    """
    identity = ManifestCache(manifest).digest(
        "manifest", lambda: Manifest.load(manifest, computed=True).digest
    )
    return Reference(kind="manifest", name=dataset, identity=identity)
