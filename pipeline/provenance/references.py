"""References to heads, feature stores and manifests, as records of what is made from them hold them."""

from pathlib import Path

from pipeline import training
from pipeline.artefacts import Reference, Versions
from pipeline.files import record
from pipeline.files.digest import digest, sha256
from pipeline.parts.errors import InputError, refusing
from pipeline.settings import Recipe
from pipeline.settings.paths import Paths


def of_head(folder: Path) -> Reference:
    """Refer to a head, whose files are compared with their digests."""
    digests = record.require(folder, *training.checkpoint.OPENED)
    if "head.json" not in digests:
        raise InputError(f"{folder / record.FILE}: is lost or damaged, and with it how the head was trained; put it "
                         "back, or train the head again")
    best = folder / training.checkpoint.BEST
    if not best.exists():
        raise InputError(f"{folder}: training is not finished; run the same `pipeline train` again to resume")
    return Reference(kind="head", name=folder.name,
                     identity=digest({**digests, training.checkpoint.BEST: digests.get(best.name) or sha256(best)}))


def of_features(store: Path) -> Reference:
    """Refer to a feature store; its shards are not read."""
    return Reference(kind="features", name=store.stem, identity=digest(training.request.features(store)))


def of_manifest(file: Path) -> Reference:
    """Refer to a manifest."""
    with refusing(FileNotFoundError, f"{file}: no manifest there; make it with `pipeline manifest {file.stem}`"):
        return Reference(kind="manifest", name=file.stem, identity=sha256(file))


def of_use(paths: Paths, folder: Path, dataset: str) -> tuple[dict[str, Reference], Versions]:
    """Refer to all that a head's use on a data set reads; also the versions of the head's parts."""
    described = training.read_description(folder)
    made_from = {"head": of_head(folder), "manifest": of_manifest(paths.manifest(dataset))}
    if "finetuned" not in described:  # which reads the manifest's photographs
        made_from["features"] = of_features(paths.features(dataset, described["feature"]))
    recipe = Recipe.model_validate(described["recipe_settings"])
    return made_from, training.made_by(described["text"], recipe, described["aside"].get("tokenizer"))
