"""The request for an extraction: the feature, its name, the images and the devices, without loading
the network.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Self

from pipeline.foundation import artefacts
from pipeline.foundation.artefacts import Artefact, Request, Versions, record as records
from pipeline.foundation.files import regular, weights
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.weights import UNTRAINED, checkpoints
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.request import reference
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.make.features.extractors import ENGINES, Runtime
from pipeline.make.features.store import FeatureStore, StoreError, ledger, read_header
from pipeline.make.features.store.layout import FeaturesRequest, imported

# The settings of `extract` on which features depend. The others say where and how fast they are
# computed, and how they are stored.
CONTENT = {"backend", "precision", "dtype"}


class ExtractRequest(Request):
    """What features are asked for, known before a network is loaded; `FeaturesRequest` says what
    the network is.
    """

    kind: ClassVar[str] = "extraction"
    engine: str  # A key of `ENGINES`
    options: dict[str, Any]  # Files are named by their SHA-256
    # SHA-256 of the weights' file, or "untrained"; None if it is only known after loading them.
    network: str | None
    precision: str
    backend: str
    dtype: str
    only: tuple[int, ...] | None = None  # Ids of the images to extract, ascending; None for all
    libraries: dict[str, str]  # Library -> its version

    @classmethod
    def of(
        cls,
        engine: str,
        options: Mapping[str, Any],
        extract: Mapping[str, Any],
        only: frozenset[int] | None = None,
    ) -> Self:
        """The request for an engine with its options. It digests the weights' file.

        extract: the settings named in `CONTENT`. only: ids of the images to extract; None for all.
        """
        checked: Any = ENGINES.options(engine, options)
        network = None
        name = getattr(checked, "weights", None)
        if name == weights.UNTRAINED:
            network = name
        elif name is not None:
            with suppress(OSError, InputError):
                network = weights.content(
                    Path(name) if weights.is_checkpoint(name) else weights.locate(name)[0]
                )
        return cls(
            engine=engine,
            options=weights.by_digest(options)[0],
            network=network,
            only=None if only is None else tuple(sorted(only)),
            libraries=_installed(checked.LIBRARIES),
            **extract,
        )

    def versions(self) -> Versions:
        """The versions of the engine and of decoding images, as `artefacts.versions`."""
        return made_by(self.engine)


def _installed(libraries: Iterable[str]) -> dict[str, str]:
    """The versions of libraries; of those that an engine can do without, such as `transformers`, if
    they are here.
    """
    versions = {}
    for library in libraries:
        with suppress(PackageNotFoundError):
            versions[library] = version(library)
    return versions


@dataclass(frozen=True)
class Target:
    """A store to extract features into."""

    manifest: Path  # the manifest's file
    dataset: str  # its data set
    store: Path  # where the features go
    engine: str  # a key of `ENGINES`
    options: Mapping[str, Any]  # the engine's settings
    runtime: Runtime  # where and how the network runs
    content: Mapping[str, Any]  # the settings named in `CONTENT`
    only: frozenset[int] | None = None  # ids of the images to extract; None for all

    @property
    def request(self) -> ExtractRequest:
        """The request for the store."""
        return ExtractRequest.of(self.engine, self.options, self.content, self.only)

    def _asked(self) -> str | None:
        """Digest what is asked, known before the network is loaded; None if it is not."""
        request = self.request
        if request.network is None or not self.manifest.is_file():
            return None
        manifest = reference(self.manifest, self.dataset).identity
        return digest([request.recorded(), manifest, places(self.engine, self.options)])

    def is_made(self, images_folder: Path | None = None) -> bool:
        """Whether the store is up to date by its record, of the same files (in images_folder): the
        network would say the same of itself as when the same was asked before.
        """
        existing = Artefact.existing(self.store)
        if existing is None:
            return False
        record = existing.record
        asked = self._asked()
        if asked is None or record.facts.get("asked") != asked:
            return False
        same = FeaturesRequest.of_record(record, made_by(self.engine))
        if not artefacts.is_up_to_date(self.store, same, record.made_from):
            return False
        photographs = record.facts["photographs"]
        if images_folder is not None and photographs != str(images_folder.absolute()):
            return False
        with suppress(StoreError):
            layout, _ = read_header(self.store)
            is_whole = not ledger.pending(self.store, layout)
            return is_whole and not photographs_changed(photographs, record.facts["since"])
        return False

    def finish(self, images_folder: Path, since: int) -> None:
        """Record what was asked, of files in images_folder; since: nanoseconds when it began."""
        facts = records.require(self.store).facts
        folder = str(images_folder.absolute())
        asked = {"asked": self._asked(), "photographs": folder, "since": since}
        records.update(self.store, facts={**facts, **asked})

    def imported(self) -> str | None:
        """The name of features that were imported into the store; None without any, StoreError if
        of other images.
        """
        try:
            made_from = read_header(self.store)[1]
        except StoreError:
            return None
        if not imported(made_from):
            return None
        FeatureStore(self.store).require(Manifest.load(self.manifest))
        return str(made_from["recipe"])


def photographs_changed(photographs: str, since: int) -> bool:
    """Whether a file below a folder changed after that time. The system sets change times; programs
    cannot.
    """
    for folder, _, names in os.walk(photographs):
        for name in names:
            place = os.path.join(folder, name)
            try:
                status = os.stat(place)
            except OSError:  # a link that leads nowhere, or in a circle
                status = os.lstat(place)
            if status.st_ctime_ns > since:
                return True
    return False


def made_by(engine: str) -> dict[str, int | str]:
    """The versions of an engine (a key of `ENGINES`) and of decoding images, as
    `artefacts.versions`.
    """
    return artefacts.versions((ENGINES, engine), "images")


def places(engine: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Option -> the file that it names, of an engine (a key of `ENGINES`) with its options, see
    `by_digest`.
    """
    return weights.by_digest(dict(ENGINES.options(engine, options)))[1]


def feature_name(reported_as: str, weights_name: str | None, precision: str, digest: str) -> str:
    """The engine's own name, and unusual weights and precision:
    `pyramid36-resnet152.tv_in1k-untrained-bf16`.
    """
    # Usual weights have an entry in manifests/weights.yaml; others are named by the digest of the
    # loaded ones.
    parts = [reported_as]
    if weights_name == UNTRAINED:
        parts.append(UNTRAINED)
    elif weights_name is not None and weights_name not in checkpoints():
        parts.append(f"weights{digest[:8]}")
    return "-".join(parts if precision == "fp32" else [*parts, precision])


def chosen_images(manifest: Manifest, split: str | None, only: Path | None) -> frozenset[int]:
    """The ids of the manifest's images in a split and the file `only`, an id a line; InputError for
    other ids.
    """
    images = manifest.images["image_id"].tolist()
    chosen = frozenset(images if split is None else manifest.split(split).image_ids.tolist())
    if only is not None:
        with refusing(
            (OSError, UnicodeDecodeError),
            lambda error: (
                f"{only}: cannot be read as a text file with an image id a line ({error})"
            ),
        ):
            lines = regular.text(only).splitlines()
        listed = set()
        known = frozenset(images)
        for number, text in enumerate(map(str.strip, lines), 1):
            if text and not (text.removeprefix("-").isdecimal() and int(text) in known):
                raise InputError(
                    f"{only}, line {number}: expected the id of an image of the manifest, got "
                    f"{text[:40]!a}"
                )
            listed |= {int(text)} if text else set()
        chosen &= listed
    if not chosen:
        raise InputError(f"{only}: lists no image of the split {split}")
    return chosen


def devices(asked: str) -> list[str]:
    """The torch devices asked for, such as "cuda:0,cuda:1" or "cuda:*"; InputError for one twice,
    or none.
    """
    listed: list[str] = []
    for name in asked.split(","):
        kind, star, rest = name.strip().partition(":*")
        if not kind or rest:
            raise InputError(
                f"device {asked!r}: expected devices such as cpu, cuda:0,cuda:1 or cuda:*"
            )
        listed += _all_devices(kind) if star else [kind]
    twice = [name for name in listed if name != "cpu" and listed.count(name) > 1]
    if twice:
        raise InputError(f"device {asked!r}: {twice[0]} is listed twice; each GPU gets one worker")
    return listed


def _all_devices(kind: str) -> list[str]:
    import torch

    if kind == "cpu":
        raise InputError(
            "device 'cpu:*': there is one CPU; --workers N starts several processes on it"
        )
    try:
        count = torch.get_device_module(kind).device_count()
    except (RuntimeError, AttributeError):
        count = 0
    if not count:
        raise InputError(f"device '{kind}:*': no such device here; use cpu")
    return [f"{kind}:{number}" for number in range(count)]
