"""What an extraction is asked for, told without loading the network."""

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
class Request:
    """An extraction by its settings.

    Args:
        manifest: its file.
        store: where the features go.
        engine: a key of `ENGINES`.
        options: of the engine, as the settings have them.
        runtime: where the network runs.
        kept: how features are kept: shard_images, compressor, dtype.
    """

    manifest: Path
    store: Path
    engine: str
    options: Mapping[str, Any]
    runtime: Runtime
    kept: Mapping[str, Any]

    def as_json(self) -> dict[str, Any] | None:
        """All that the store depends on; None where the weights can only be told by loading them."""
        options = {**PRESETS.get(self.engine, {}), **self.options}
        try:
            name = options["weights"]
            network = name if name == weights.UNTRAINED else sha256(weights.locate(name)[0])
            files = {key: sha256(Path(value)) for key, value in options.items()
                     if isinstance(value, str) and Path(value).is_file()}
            manifest = sha256(self.manifest)
        except (KeyError, OSError, InputError):
            return None
        return {"manifest": manifest, "engine": self.engine, "options": dict(self.options), "files": files,
                "network": network, "runtime": asdict(self.runtime), "kept": dict(self.kept),
                "libraries": {library: version(library) for library in LIBRARIES}}

    def is_done(self) -> bool:
        """Whether the store holds all images, none failed, made for the same request by the same code."""
        if not (self.store / asked.FILE).exists():
            return False
        request = self.as_json()
        return request is not None and asked.is_done(self.store, request) \
            and not code.changed(self.store, made_by(self.engine))


def made_by(engine: str) -> dict[str, str]:
    """The modules that make an engine's features, with their digests."""
    return code.of([ENGINES.module(engine), "pipeline.files.images"], ROOMS)
