"""A head's folder as its record describes it. Its network is not loaded, nor is torch."""

import glob
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict

from pipeline.foundation.artefacts import Artefact, Reference
from pipeline.foundation.artefacts.making import IfChanged
from pipeline.foundation.artefacts.record import FILE
from pipeline.foundation.files.atomic import SET_ASIDE
from pipeline.foundation.parts.errors import InputError, refusing, similar
from pipeline.foundation.settings.paths import plain
from pipeline.foundation.settings.section import Count
from pipeline.make.features.store import ItemFormat
from pipeline.make.training.request import ConvertRequest, TrainRequest, parsed

BEST = "best.safetensors"
LAST = "last.safetensors"
WORDS = "text"
# The contents by which a head is opened, and all.
OPENED = (BEST, WORDS)
CONTENTS = (*OPENED, LAST, "history.csv", "steps.csv")


class _Facts(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Networks(_Facts):
    """The networks behind both sides, see `training.source.networks`."""

    image: dict[str, Any]
    text: dict[str, Any]


class MadeFeatures(_Facts):
    """What made the features. recipe: their name in tables. weights: the digest of the network's
    tensors.
    """

    recipe: str
    engine: str | None = None
    format: str | None = None
    weights: str | None = None
    trained: bool


class OwnNetwork(_Facts):
    """The engine of a head whose feature network was trained with it. The head has its weights."""

    engine: str
    options: dict[str, Any]


class Origin(_Facts):
    """The published weights that a head was made from. val_rsum: in percent, by the code that
    trained them.
    """

    file: str
    sha256: str
    epochs: int | None = None
    val_rsum: float | None = None


def _item_format(recorded: Any) -> ItemFormat | None:
    if not isinstance(recorded, dict):
        return recorded  # type: ignore[no-any-return]
    with refusing(InputError, str, ValueError):
        return ItemFormat.from_record(recorded)


class HeadFacts(_Facts):
    """What readers need to know of a head besides its request.

    width: D of the items that it reads. vocabulary: the digest of its words, and of a pretrained
        network's initial weights. networks: those behind both sides. store: the identity of the
        features, or photographs, of its training.
    content: the digest of the bytes of features that it was trained on. items: how the features
        were made, for others that are made alike. scorer: how it scores pairs, a key of `SCORERS`;
        None if it only embeds.
    """

    width: Count
    vocabulary: str
    networks: Networks
    features: MadeFeatures
    store: str
    content: str | None = None
    items: Annotated[ItemFormat | None, BeforeValidator(_item_format)] = None
    own_network: OwnNetwork | None = None
    scorer: str | None = None
    origin: Origin | None = None


class HeadArtefact(Artefact):
    """A head's folder and its record, as types."""

    @staticmethod
    def folders(place: Path) -> list[Path]:
        """The folders of all heads in the folder `place`, also of those still training, in order of
        their names.
        """
        folders = [file.parent for file in sorted(place.glob(f"*/{FILE}"))]
        return [folder for folder in folders if folder.suffix not in SET_ASIDE]

    @classmethod
    def open(cls, folder: Path, *names: str) -> Self:
        """Open a head's folder, see `Artefact.open`."""
        if not any((folder / name).exists() for name in (FILE, BEST)):
            raise InputError(f"{folder}: no head there; {_instead(folder)}")
        head = super().open(folder, *names)
        if head.record.kind != TrainRequest.kind:
            if head.record.kind == "tuned encoder":
                raise InputError(f"{folder}: is a tuned encoder, not a head; write tuned:{folder}")
            raise InputError(
                f"{folder}: is not a head; its record is of the kind {head.record.kind!r}"
            )
        with refusing(
            (ValueError, TypeError, KeyError),
            f"{folder}: not a head of this version; train it again",
        ):
            names = head.request.feature, head.dataset
            _ = head.facts
        with refusing(InputError, lambda error: f"{folder / FILE}: {error}"):
            for name in names:
                plain(name)
        return head

    @classmethod
    def is_finished(cls, folder: Path) -> bool:
        """Whether a folder holds a head with all its epochs."""
        existing = Artefact.existing(folder)  # one that is only begun has no facts yet
        if existing is None or existing.record.kind != TrainRequest.kind:
            return False
        return existing.record.finished

    @classmethod
    def policy(cls, folder: Path, if_changed: IfChanged) -> IfChanged:
        """The policy for another head in a folder: `if_changed`, or "redo" if its first epoch was
        never finished.
        """
        existing = Artefact.existing(folder)
        begun = existing is not None and not existing.record.finished
        if begun and not any((folder / name).exists() for name in (BEST, LAST)):
            return "redo"
        return if_changed

    def require_finished(self) -> Self:
        """Return it.

        Raises:
            InputError: If its training was interrupted.
        """
        if not self.record.finished:
            raise InputError(
                f"{self.folder}: training is not finished; run the same `pipeline train` again to resume"
            )
        return self

    @cached_property
    def request(self) -> TrainRequest | ConvertRequest:
        """What was asked for."""
        return parsed(self.record.request)

    @cached_property
    def facts(self) -> HeadFacts:
        """What it is besides."""
        return HeadFacts.model_validate(self.record.facts)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def reference(self) -> Reference:
        """The reference of what is made from it."""
        return self.record.refers(self.name)

    @property
    def checkpoint(self) -> str:
        """SHA-256 of the network's file."""
        return self.record.contents[BEST]

    @property
    def dataset(self) -> str:
        """The data set that it was trained on."""
        return self.record.made_from["manifest"].name

    @property
    def manifest(self) -> str:
        """Digest of the manifest that it was trained on."""
        return self.record.made_from["manifest"].identity


def _instead(folder: Path) -> str:
    """What to do where a folder holds no head."""
    # Of a project, with one folder for each data set; beside it tuned encoders.
    heads = folder.parent.parent
    if heads.name == "heads":
        for record in sorted(heads.parent.glob(f"*/*/{glob.escape(folder.name)}/{FILE}")):
            other = Artefact.existing(record.parent)
            if other is not None and other.record.kind == "tuned encoder":
                return f"a tuned encoder has that name; write tuned:{record.parent}"
            return f"there is {record.parent}"
    return f"train it with `pipeline train`{similar(folder)}"
