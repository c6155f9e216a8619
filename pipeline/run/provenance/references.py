"""References to what a use of a head, or of a dual encoder, reads."""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from pipeline.foundation.artefacts import Reference, Versions
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.request import reference
from pipeline.foundation.settings.paths import Paths
from pipeline.make.features.store import FeatureStore
from pipeline.make.training import inputs
from pipeline.make.training.artefact import OPENED, HeadArtefact


def of_features(store: Path) -> Reference:
    """Refer to a feature store; its shards are not read."""
    return Reference(kind="features", name=store.stem, identity=inputs.whole(store))


def of_photographs(
    manifest: Manifest, splits: Collection[str], folder: Path | None = None
) -> Reference:
    """Refer to the photographs of some splits, or of all; folder: where they are, None for the
    manifest's folder.
    """
    # With it comes pandas, which heads on stored features do without.
    from pipeline.foundation.manifest import photographs

    rows = None
    if splits:
        rows = np.flatnonzero(manifest.images["split"].isin(splits))
    return photographs.reference(manifest, rows, folder)


def of_use(
    paths: Paths, folder: Path, dataset: str, splits: Collection[str], images: Path | None
) -> tuple[dict[str, Reference], Versions]:
    """Refer to all that a head's use on splits of a data set reads; also the versions of the head's
    parts.
    """
    head = HeadArtefact.open(folder, *OPENED).require_finished()
    file = paths.manifest(dataset)
    made_from = {"head": head.reference, "manifest": reference(file, dataset)}
    if head.facts.own_network:
        made_from["photographs"] = of_photographs(Manifest.load(file), splits, images)
    else:
        made_from["features"] = of_features(paths.features(dataset, head.request.feature))
    captions = head.record.made_from.get("captions")
    if captions:
        store = paths.features(dataset, captions.name)
        if store.exists():  # else the engine computes them
            made_from["captions"] = of_features(store)
    return made_from, head.request.versions()


def of_training(head: HeadArtefact, role: str, store: Path, manifest: Manifest) -> str:
    """The identity of features that a head was trained on, as its record would have it now."""
    opened = FeatureStore(store).require(manifest)
    if role == "captions":
        return inputs.trained_on(opened, opened.content(np.flatnonzero(opened.done)))
    if head.facts.content is None:  # it was trained elsewhere
        return opened.identity
    return inputs.trained_on(opened, opened.content(inputs.trained_rows(manifest, opened.done)))
