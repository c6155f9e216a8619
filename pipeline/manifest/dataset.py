"""A data set's card: what it is, its licence, where its files go, how it is measured."""

from __future__ import annotations

from importlib import resources

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.errors import InputError
from pipeline.settings import first_fault


class Dataset(BaseModel):
    """One `manifests/NAME.yaml`. `images` and `annotations` are paths below the root."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    title: str
    description: str
    licence: str
    source: str
    images: str
    annotations: str
    protocols: list[str]


def names() -> list[str]:
    """The data sets that have a card."""
    cards = (entry.name for entry in resources.files("manifests").iterdir() if entry.name.endswith(".yaml"))
    return sorted(card.removesuffix(".yaml") for card in cards if card != "weights.yaml")


def load(name: str) -> Dataset:
    """The card of data set `name`; a name without a card is a user's own folder of images with a CSV.

    Raises InputError where the card cannot be read.
    """
    if name not in names():
        return Dataset(name=name, title=name, description="your own data", licence="yours", source="yours",
                       images=f"data/{name}/images", annotations=f"data/{name}/captions.csv", protocols=["all"])
    text = (resources.files("manifests") / f"{name}.yaml").read_text(encoding="utf-8")
    try:
        return Dataset.model_validate({"name": name, **yaml.safe_load(text)})
    except (ValidationError, yaml.YAMLError) as error:
        fault = first_fault(error) if isinstance(error, ValidationError) else str(error)
        raise InputError(f"manifests/{name}.yaml: {fault}") from None
