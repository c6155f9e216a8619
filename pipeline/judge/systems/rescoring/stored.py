"""Rescored similarities on disk: their record, and how they are computed again from it."""

from collections.abc import Mapping
from dataclasses import replace

from pipeline.foundation.artefacts import Reference
from pipeline.foundation.evaluation.retrieval import Similarity, as_similarity
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.requests import RescoreRequest
from pipeline.judge.systems.rescoring import RESCORERS, bank as banks
from pipeline.judge.systems.scores import sources
from pipeline.judge.systems.scores.made import Member, Rescored
from pipeline.judge.systems.scores.system import System


def made(source: System, request: RescoreRequest) -> Rescored:
    """Compose the facts of a rescored system."""
    return Rescored(
        source=source.made_from,
        system=source.name,
        rescorer=request.rescorer,
        bank=RESCORERS.build(request.rescorer, **request.options).bank,
        options=request.options,
    )


def made_from(source: System, request: RescoreRequest, paths: Paths) -> dict[str, Reference]:
    """Compose the references to its source, and to the embeddings of its bank."""
    references = {"source": source.reference}
    rescorer = RESCORERS.build(request.rescorer, **request.options)
    if rescorer.bank == "train":
        for number, store in enumerate(_embedded(source, paths)):
            references[f"bank.{number}"] = store.reference
    return references


def compute(
    source: System, made: Rescored, made_from: Mapping[str, Reference], paths: Paths
) -> System:
    """Rescore a system; the bank must be among the references."""
    rescorer = RESCORERS.build(made.rescorer, **made.options)
    scores: Similarity = as_similarity(source.similarity)  # type: ignore[assignment]
    if rescorer.bank == "test":
        bank = banks.of_test(scores, lambda: _vectors(source, paths))
    else:
        embedded = _embedded(source, paths)
        known = {reference.identity for reference in made_from.values()}
        other = [store.path for store in embedded if store.reference.identity not in known]
        if other:
            raise InputError(f"{other[0]}: is not the bank that was used; rescore again")
        test, weights = _vectors(source, paths)
        train = Manifest.load(paths.manifest(source.made_from.dataset)).split("train")
        bank = banks.of_train(train, test, embedded, weights)
    corrected = rescorer.rescore(scores, bank)
    return replace(source, kind=sources.Given(lambda: corrected))


def _vectors(source: System, paths: Paths) -> tuple[list[System], list[float]]:
    """The ranked vectors of the heads that a system averages, and the heads' weights."""
    names, weights = banks.heads_of(source)
    made = source.made_from
    stores = [paths.similarity(made.dataset, name, str(made.split)) for name in names]
    return [System.open_vectors(store) for store in stores], weights


def _embedded(source: System, paths: Paths) -> list[System]:
    """The embeddings of the split train by the same heads."""
    made = source.made_from
    dataset = made.dataset
    trained_on = made.training_data
    lone = [member.head for member in made.members if member.given]
    if lone:
        raise InputError(
            f"{source.name}: a bank of the split train needs its embeddings, and {lone[0]} was added "
            "without; take --bank test, the queries that are ranked"
        )
    # What begins the name that a head's system has on other data.
    before = ""
    if trained_on != dataset:
        before = f"{trained_on}-"
    members = {}
    for member in made.members:
        of_system = member.head
        if not member.encoder:
            of_system = before + member.head
        members[of_system] = member
    names, _ = banks.heads_of(source)
    if len(names) == 1:  # whatever the system is called
        members = {names[0]: made.members[0]}
    stores = []
    for name in names:
        member = members.get(name, Member(head=name))
        if member.encoder:
            path = paths.encoded(dataset, name)
            how = f"--system … --name {name}"
        else:
            path = paths.embeddings(dataset, trained_on, member.head)
            how = f"--system {member.head}"
            if before:
                how += f" --trained-on {trained_on}"
        if not path.exists():
            raise InputError(
                f"{source.name}: a bank of the split train needs {path}; make it with `pipeline "
                f"embed {dataset} {how}`, or take --bank test, the queries that are ranked"
            )
        stores.append(System.open_vectors(path))
    return stores
