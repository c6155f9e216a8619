"""The record of what made a system, which is kept in its store, in results and in systems made of it."""

from collections.abc import Mapping
from typing import Any

from pipeline.files.digest import digest
from pipeline.parts.errors import InputError
from pipeline.settings.features import letters
from pipeline.settings.paths import of_seed, system_name
from pipeline.systems.scores import ENCODER

# The key of the digests of a store's arrays.
CONTENTS = "contents"
# The key of what a reranked system was made by: the retriever (system, seal), the scorer, `roles` (a digest of what
# each of the two is on any split), k (a number or "all"; the store may hold more candidates), the combination and its
# weight, whether scores are logits, the protocol (name, folds) and the distractors (dataset, seal).
RERANKED = "reranked"
# The key of what its data set and split lack: reason -> count of captions that the manifest's reader left out and of
# images without features. Where nothing is left out there is no such key.
LACKS = "lacks"
# The keys of the system whose scores were corrected (system, seal, the correction's options), and of the embeddings of
# the correction's bank.
RESCORED, BANK = "rescored", "bank"
# The keys of a member by which the seeds of one system do not differ.
OF_ALL_SEEDS = ("feature", "features", "networks", "settings", "store", "weights", "vocabulary", "published", ENCODER)


def lacking(left_out: Mapping[str, int], without_features: int = 0) -> dict[str, Any]:
    """Compose the part of a record that says what is left out: of the manifest, and images without features."""
    counts = dict(left_out) | ({"images without features": without_features} if without_features else {})
    return {LACKS: counts} if counts else {}


class Made(dict[str, Any]):
    """What made a system, as JSON, see docs/provenance.md.

    It holds all that its store records, since `seal` is a digest of it. Records of plain matrices, and of earlier
    versions, may lack any part; its property is then empty.
    """

    @property
    def dataset(self) -> str:
        """The data set of its images and captions."""
        return str(self.get("dataset", ""))

    @property
    def split(self) -> str | None:
        """The split, or several joined by +; None if it is unknown."""
        return self.get("split")

    @property
    def trained_on(self) -> str:
        """The data set that its heads were trained on."""
        return str(self.get("trained_on", self.dataset))

    @property
    def lacks(self) -> dict[str, int]:
        """What was left out of its data set and pool, reason -> count."""
        apart = len(self.get("left_out", ()))  # images that not all members of an ensemble have
        return dict(self.get(LACKS, {})) | ({"images that a member lacks": apart} if apart else {})

    @property
    def seed(self) -> int | None:
        """The seed; None if its members differ in it, or it is unknown."""
        return self.get("seed")

    @property
    def members(self) -> list[dict[str, Any]]:
        """The heads and dual encoders behind it."""
        return list(self.get("members", ()))

    @property
    def heads(self) -> list[str]:
        """Its members' names."""
        return [member["head"] for member in self.members]

    @property
    def checkpoints(self) -> list[str]:
        """SHA-256 of its members' checkpoints."""
        return [member["checkpoint"] for member in self.members]

    @property
    def fusion(self) -> dict[str, Any]:
        """How an ensemble's members (names, seals) are fused: the method and the weights; {} of others."""
        return dict(self.get("fusion") or {})

    @property
    def is_own_ensemble(self) -> bool:
        """Whether a user chose its members; otherwise an ensemble averages the heads of features, as in the papers."""
        return bool(self.fusion) and "features" not in self.fusion

    @property
    def visual(self) -> str:
        """The letters of its features, by which tables name them; of a reranked system those of its retriever."""
        return letters(tuple(self.get("visual", self["features"])))

    @property
    def is_named(self) -> bool:
        """Whether a user chose its name, or that of the head, dual encoder or ensemble that it is made of."""
        if self.get("named") or self.is_own_ensemble or not self.heads:
            return True
        return self.get("ensemble") is None and self.heads[0] != of_seed(self.first, self["seed"])

    @property
    def first(self) -> str:
        """What its facts call the head, dual encoder or ensemble that it is made of, without its seed."""
        first = self.members[0] if self.members else {}
        if self.is_own_ensemble or not first or ENCODER in first:
            return str(self.get("ensemble") or self.get("recipe"))
        return system_name(self["recipe"], self.get("ensemble") or first["feature"], self["text"])

    @property
    def series(self) -> str:
        """What its facts call it, without its seed: "vse2ad-RG-bigru+csls", whatever its own name is."""
        return "+".join((self.first, *(step["name"] for step in self.steps)))

    @property
    def without_seed(self) -> str:
        """SHA-256 over what all seeds of one system have in common."""
        members = [{key: member.get(key) for key in OF_ALL_SEEDS} for member in self.members]
        kept = ("dataset", "split", "manifest", "trained_on", "features", "untrained", "visual", "steps")
        return digest([self.series, *(self.get(key) for key in kept), members,
                       self.fusion.get("method"), self.fusion.get("weights")])

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The corrections and rerankings of its scores, in their order."""
        return list(self.get("steps", ()))

    @property
    def has_seen_queries(self) -> bool:
        """Whether its scores depend on the other queries that are ranked, which tables mark."""
        return any(step.get("bank") == "test" for step in self.steps)

    @property
    def reranked(self) -> dict[str, Any]:
        """What is recorded at `RERANKED`; {} of a system that is not reranked."""
        return dict(self.get(RERANKED, {}))

    @property
    def is_encoder(self) -> bool:
        """Whether a dual encoder made it, without a head."""
        return len(self.members) == 1 and ENCODER in self.members[0]

    @property
    def parts(self) -> list[tuple[str, str]]:
        """The systems that it is made of by name, with the seals that they had; [] where that was not recorded."""
        if record := self.reranked:
            scorer = [record["scorer"]] if record["scorer"]["kind"] == "system" else []
            return [(record["retriever"]["system"], record["retriever"]["seal"]),
                    *((each["name"], each["seal"]) for each in scorer)]
        if source := self.get(RESCORED):
            return [(source["system"], source["seal"])]
        return list(zip(self.fusion.get("members", ()), self.fusion.get("seals", ()), strict=False))

    @property
    def is_made_of_others(self) -> bool:
        """Whether its scores are an ensemble's, corrected or reranked."""
        return self.get("ensemble") is not None or bool(self.parts)

    def made_again(self, name: str) -> tuple[str, str]:
        """How a system of that name was made from others, in words, and the command that makes it again."""
        if record := self.reranked:
            return "reranked with scores", (f"rerank --retriever {record['retriever']['system']} "
                                            f"--with {record['scorer']['name']} --name {name}")
        if RESCORED in self:
            source = self[RESCORED]
            return "made", (f"rescore {source['system']} --by {self['steps'][-1]['name']}"
                            + " --bank test" * (source["options"].get("bank") == "test"))
        if not self.is_own_ensemble:
            return "an ensemble", (f"ensemble {self['ensemble']} --recipe {self['recipe']} --text {self['text']} "
                                   f"--seed {self['seed']}")
        weights, method = self.fusion.get("weights", []), self.fusion.get("method", "mean")
        said = [f" --member {name}" for name in self.fusion.get("members", [])]
        said += [f" --weight {weight:g}" for weight in weights if len(set(weights)) > 1]
        said += [f" --fusion {method}"] * (method != "mean")
        return "an ensemble", f"ensemble {self.get('ensemble')}{''.join(said)}"

    def refuse_vectors(self, name: str, verb: str) -> None:
        """Refuse a system made of others' scores where vectors are needed. verb: what to do with its members."""
        if self.is_made_of_others:
            members = ", ".join(dict.fromkeys(self.heads))
            raise InputError(f"{name}: `pipeline {self.made_again(name)[1]}` makes it of other systems' scores, and it "
                             "has no vectors of its own" + f"; {verb} its members: {members}" * bool(members))

    @property
    def seal(self) -> str:
        """SHA-256 over all of it. What is made from the system records it."""
        return digest(self)

    @property
    def without_digests(self) -> "Made":
        """The same without the digests of the store's arrays, which another store has others of."""
        return Made({key: value for key, value in self.items() if key != CONTENTS})

    def with_step(self, step: dict[str, Any], **more: Any) -> "Made":
        """Add a correction or a reranking, for a system that is made of this one."""
        return Made(self.without_digests | {"steps": [*self.steps, step]} | more)
