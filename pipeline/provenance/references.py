"""References to heads, feature stores and manifests, as records of what is made from them hold them."""

from pathlib import Path

from pipeline.artefacts import Reference, Versions
from pipeline.manifest.request import reference
from pipeline.settings.paths import Paths
from pipeline.training import inputs
from pipeline.training.artefact import OPENED, HeadArtefact


def of_features(store: Path) -> Reference:
    """Refer to a feature store; its shards are not read."""
    return Reference(kind="features", name=store.stem, identity=inputs.whole(store))


def of_use(paths: Paths, folder: Path, dataset: str) -> tuple[dict[str, Reference], Versions]:
    """Refer to all that a head's use on a data set reads; also the versions of the head's parts."""
    head = HeadArtefact.open(folder, *OPENED).require_finished()
    made_from = {"head": head.reference, "manifest": reference(paths.manifest(dataset), dataset)}
    if not head.facts.own_network:  # which reads the manifest's photographs
        made_from["features"] = of_features(paths.features(dataset, head.request.feature))
    return made_from, head.request.versions()
