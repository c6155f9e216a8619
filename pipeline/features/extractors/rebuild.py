"""Rebuild the engine of a feature store from the store's fingerprint."""

from pipeline.features import extractors
from pipeline.features.extractors import Extractor, Runtime
from pipeline.features.store import FeatureStore
from pipeline.parts.errors import InputError


def network_of(store: FeatureStore, device: str = "cpu") -> Extractor:
    """Build a store's engine with its settings and the weights that are on this machine now.

    It runs on torch, also where OpenVINO made the store: the features differ by less than the store's rounding, and one
    image takes less time than compiling a graph.
    """
    made = store.fingerprint
    if "settings" not in made:
        raise InputError(f"{store.path}: was imported ({made['recipe']}); its network is not known here")
    return extractors.build(made["engine"], made["settings"], Runtime(device, made["precision"]))


def extractor_of(store: FeatureStore, device: str = "cpu") -> Extractor:
    """Build a store's engine and check its weights, so that new features are comparable with the store's."""
    extractor = network_of(store, device)
    if extractor.weights != store.fingerprint["weights"]:
        raise InputError(f"{store.path}: was made with other weights than its engine loads now; extract again")
    return extractor
