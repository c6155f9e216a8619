"""What extraction needs and this machine lacks, told before anything is computed and without loading a network."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from pipeline.features.extractors import PACKAGES, PRESETS, check_options
from pipeline.files import weights
from pipeline.parts.errors import InputError
from pipeline.settings import Settings


@dataclass(frozen=True)
class Lack:
    """Something that is missing."""

    feature: str  # which feature cannot be extracted without it
    what: str  # what it is and where to get it, in one line


def missing(settings: Settings, dataset: str, features: Iterable[str]) -> list[Lack]:
    """Find what features of a data set need that is not here.

    It gives packages and checkpoints that are not here, in the order of the features.
    """
    found: list[Lack] = []
    for feature in features:
        engine = settings.engine_of(dataset, feature)
        check_options(engine.engine, engine.options)
        found += [Lack(feature, what) for what in lacks(engine.engine, engine.options)]
    return found


def lacks(engine: str, options: Mapping[str, Any]) -> list[str]:
    """Find what one engine needs that is not here: a line for each thing that is missing, with where to get it."""
    package = PACKAGES.get(engine)
    found = [f"the package {package[0]}; with torch installed, run: {package[1]}"] \
        if package and find_spec(package[0]) is None else []
    given = {**PRESETS.get(engine, {}), **options}
    name = given["weights"] if "weights" in given else getattr(check_options(engine, options), "weights", None)
    if name not in (None, weights.UNTRAINED):
        try:
            weights.require(str(name))
        except InputError as error:
            found.append(str(error))
    return found


def refuse(lacking: list[Lack], dataset: str, besides: Iterable[str] = ()) -> None:
    """Say in one message all that is missing."""
    if lacking:
        each = "; ".join(f"({place}) {lack.feature}: {lack.what.rstrip('.;')}" for place, lack in enumerate(lacking, 1))
        more = "".join(f". It would also take {note}" for note in besides)
        raise InputError(f"features of {dataset} cannot be extracted here: {each}{more}. Or leave the feature out of "
                         f"run.features, take the preset `light` (presets.{dataset}), or import features that others "
                         "extracted (pipeline import). manifests/weights.yaml has licences and training data")
