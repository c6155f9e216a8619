"""The engine that made a feature store, built anew from what the store says of its making."""

from __future__ import annotations

from pipeline import extractors
from pipeline.errors import InputError
from pipeline.extractors import Extractor, Runtime
from pipeline.store import FeatureStore


def network_of(store: FeatureStore, device: str = "cpu") -> Extractor:
    """The store's engine with its settings, and the weights of that name as they are here now.

    It computes by torch, also where OpenVINO made the store: their features differ by less than the store's rounding,
    and one image is done before a graph is compiled.

    Args:
        store: whose engine.
        device: a torch device.

    Returns:
        The engine, loaded.

    Raises:
        InputError: the weights are not on this machine, or the features were imported.
    """
    made = store.fingerprint
    if "settings" not in made:
        raise InputError(f"{store.path}: was imported ({made['recipe']}); its network is not known here")
    return extractors.build(made["engine"], made["settings"], Runtime(device, made["precision"]))


def extractor_of(store: FeatureStore, device: str = "cpu") -> Extractor:
    """The engine, whose features of another image may stand beside the store's.

    Raises InputError where the weights are not on this machine, or are not those that made the store.
    """
    extractor = network_of(store, device)
    if extractor.weights != store.fingerprint["weights"]:
        raise InputError(f"{store.path}: was made with other weights than its engine loads now; extract again")
    return extractor
