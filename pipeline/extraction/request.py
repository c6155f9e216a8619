"""The request for an extraction, which can be compared with a finished store without loading the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.extractors import ENGINES, PRESETS, Runtime
from pipeline.files import asked, code, weights
from pipeline.files.digest import sha256

ROOMS = ("pipeline.extractors", "pipeline.files")
LIBRARIES = ("torch", "torchvision", "timm", "pillow", "numpy")


@dataclass(frozen=True)
class ExtractionRequest:
    """An extraction by its settings.

    Attributes:
        manifest: The manifest's file.
        store: Where the features go.
        engine: A key of `ENGINES`.
        options: The engine's settings.
        runtime: Where and how the network runs.
        kept: How features are stored: shard_images, compressor, dtype.
        only: Ids of the images to extract; None for all.
    """

    manifest: Path
    store: Path
    engine: str
    options: Mapping[str, Any]
    runtime: Runtime
    kept: Mapping[str, Any]
    only: frozenset[int] | None = None

    def as_json(self) -> dict[str, Any] | None:
        """Collect all that the store depends on.

        Returns:
            JSON values; None if the weights are only known after loading them.
        """
        options = {**PRESETS.get(self.engine, {}), **self.options}
        try:
            name = options["weights"]
            network = name if name == weights.UNTRAINED else sha256(weights.locate(name)[0])
            files = {key: sha256(Path(value)) for key, value in options.items()
                     if isinstance(value, str) and Path(value).is_file()}
            manifest = sha256(self.manifest)
        except (KeyError, OSError, InputError):
            return None
        chosen = {} if self.only is None else {"only": sorted(self.only)}
        return {**chosen, "manifest": manifest, "engine": self.engine, "options": dict(self.options), "files": files,
                "network": network, "runtime": asdict(self.runtime), "kept": dict(self.kept),
                "libraries": {library: version(library) for library in LIBRARIES}}

    def is_done(self) -> bool:
        """Compare the request with the store.

        Returns:
            Whether the store holds all images, none failed, made for the same request by the same code; and no file
            of an image has changed since.
        """
        if not (self.store / asked.FILE).exists():
            return False
        request = self.as_json()
        return request is not None and asked.is_done(self.store, request) \
            and not code.changed(self.store, made_by(self.engine))


def made_by(engine: str) -> dict[str, str]:
    """Digest the code that makes an engine's features.

    Args:
        engine: A key of `ENGINES`.

    Returns:
        Module -> digest.
    """
    return code.of([ENGINES.module(engine), "pipeline.files.images"], ROOMS)
