"""A data set's card: what it is, its licence, where its files go, how it is measured."""

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pipeline.foundation.files.gallery_file import Kind
from pipeline.foundation.files.parsing import from_yaml
from pipeline.foundation.parts.errors import InputError, refusing, unknown
from pipeline.foundation.settings import first_fault
from pipeline.foundation.settings.parts import ProtocolName
from pipeline.foundation.settings.recipe import Languages

# The licence of a data set whose owner states none, and the source of one without a card.
NOT_STATED = "not stated"


class Statistics(BaseModel):
    """What one split holds. What a card does not state is None, and not compared."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    images: int | None = None
    captions: int | None = None
    unique_captions: int | None = None  # captions whose text differs in any letter
    shortest: int | None = None  # characters
    longest: int | None = None


class Dataset(BaseModel):
    """One `manifests/NAME.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    title: str
    description: str
    licence: str
    source: str
    images: str  # A path below the root
    annotations: str  # A path below the root
    protocols: list[ProtocolName]
    # Of the annotations, a key of `READERS`; None for the one that recognises them
    format: str | None = None
    kind: Kind = "image"  # What the folder `images` holds
    # The paths of further inputs of captions by column, see `CAPTION_INPUTS`; none for those that
    # the annotations have
    caption_inputs: dict[str, str] = {}
    revision: str = ""  # The version of the source
    languages: Languages = []
    bibtex: str = ""
    # What each split should hold, by which a copy is checked
    statistics: dict[str, Statistics] = {}
    unstated: str = ""  # Why some of these numbers are missing

    @property
    def is_own(self) -> bool:
        """Whether it is a user's own, whose licence is not stated."""
        return self.licence == NOT_STATED

    def protocols_of(self, split: str | None) -> list[str]:
        """The card's protocols for the split test, else `["all"]`; split None: several splits."""
        if split == "test":
            return self.protocols
        return ["all"]


# The keys that a card needs.
CARD = [name for name, field in Dataset.model_fields.items() if field.is_required()]
CARD.remove("name")  # the name of its file


def names(root: Path) -> list[str]:
    """The names of the data sets that have a card, below a project's root or built-in, sorted."""
    return sorted(_cards(root))


def load(name: str, root: Path) -> Dataset:
    """Read the card of a data set by name, of the project's root or built-in; InputError if it
    cannot be read.
    """
    # A name without a card is a user's own folder of images with a CSV.
    card = _cards(root).get(name)
    if card is None:
        return Dataset(
            name=name,
            title=name,
            description="Your own photographs.",
            licence=NOT_STATED,
            source=NOT_STATED,
            images=f"data/{name}/images",
            annotations=f"data/{name}/captions.csv",
            protocols=["all"],
        )
    with refusing(
        (ValueError, TypeError),
        lambda error: f"manifests/{name}.yaml: {first_fault(error, Dataset)}",
    ):
        card_entries = from_yaml(card.read_text(encoding="utf-8"))
        if not isinstance(card_entries, dict):
            raise ValueError(f"expected keys such as {', '.join(CARD)}, got {card_entries!r:.60}")
        return Dataset.model_validate({"name": name, **card_entries})


def refuse_unknown(name: str, root: Path) -> None:
    """Check that a data set of this name has a card, a manifest or a folder below the root; else
    InputError.
    """
    data = root / "data"
    manifests = [manifest.stem for manifest in data.glob("*.parquet")]
    known = sorted({*names(root), *manifests})
    if name not in known and not (data / name).is_dir():
        raise InputError(
            f"{unknown('data set', name, known)}; `pipeline manifest {name} --images FOLDER --annotations "
            "FILE` makes it"
        )


def _cards(root: Path) -> dict[str, Traversable]:
    built_in = list(resources.files("manifests").iterdir())
    of_project = list((root / "manifests").glob("*.yaml"))
    others = ("weights.yaml", "claims.yaml")
    cards: dict[str, Traversable] = {}
    for file in [*built_in, *of_project]:
        if file.name.endswith(".yaml") and file.name not in others:
            dataset = file.name.removesuffix(".yaml")
            cards[dataset] = file
    return cards
