"""Rescored similarities on disk: their record, and how they are computed again from it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.evaluation.retrieval import Similarity, as_similarity
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.settings.paths import Paths
from pipeline.systems.rescoring import RESCORERS, bank as banks
from pipeline.systems.scores import ENCODER, sources
from pipeline.systems.scores.made import BANK, RESCORED, Made
from pipeline.systems.scores.system import System


def made_from(source: System, name: str, options: Mapping[str, Any], paths: Paths) -> Made:
    """Compose the record of a rescored system: its source's, with one more step."""
    split = RESCORERS.build(name, **options).bank
    bank = {BANK: {store.name: store.seal for store in _embedded(source, paths)}} if split == "train" else {}
    return source.made_from.with_step({"name": name, "bank": split, **options}, **{
        RESCORED: {"system": source.name, "seal": source.seal, "options": dict(options)}}, **bank)


def compute(source: System, made: Made, paths: Paths) -> System:
    """Rescore a system by the last recorded step."""
    step = dict(made.steps[-1])
    name, split = step.pop("name"), step.pop("bank", "test")
    chooses_bank = "bank" in RESCORERS.declared(name).model_fields
    rescorer = RESCORERS.build(name, **step, **({"bank": split} if chooses_bank else {}))
    scores: Similarity = as_similarity(source.similarity)  # type: ignore[assignment]
    if split == "test":
        bank = banks.of_test(scores, lambda: _vectors(source, paths))
    else:
        embedded = _embedded(source, paths)
        for store in embedded:
            if made[BANK].get(store.name) != store.seal:
                raise InputError(f"{store.path}: is not the bank that was used; rescore again")
        test, weights = _vectors(source, paths)
        train = Manifest.load(paths.manifest(source.made_from.dataset)).split("train")
        bank = banks.of_train(train, test, embedded, weights)
    corrected = rescorer.rescore(scores, bank)
    return replace(source, kind=sources.Given(lambda: corrected))


def _vectors(source: System, paths: Paths) -> tuple[list[System], list[float]]:
    """The ranked vectors of the heads that a system averages, and the heads' weights."""
    (names, weights), made = banks.heads_of(source), source.made_from
    return [System.open_vectors(paths.similarity(made.dataset, name, made["split"])) for name in names], weights


def _embedded(source: System, paths: Paths) -> list[System]:
    """The embeddings of the split train by the same heads."""
    made, stores = source.made_from, []
    dataset, trained_on = made.dataset, made.trained_on
    before = "" if trained_on == dataset else f"{trained_on}-"  # of the name that a head's system has on other data
    members = {member["head"] if ENCODER in member else before + member["head"]: member for member in made.members}
    names = banks.heads_of(source)[0]
    for name in names:
        member = made.members[0] if len(names) == 1 else members.get(name, {"head": name})
        path, how = paths.embeddings(dataset, trained_on, member["head"]), f"--system {member['head']}"
        if before:
            how += f" --trained-on {trained_on}"
        if ENCODER in member:
            path, how = paths.encoded(dataset, name), f"--system … --name {name}"
        if not path.exists():
            raise InputError(f"{source.name}: a bank of the split train needs {path}; make it with `pipeline "
                             f"embed {dataset} {how}`, or take --bank test, the queries that are ranked")
        stores.append(System.open_vectors(path))
    return stores
