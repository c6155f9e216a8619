"""The record of what made a system, which is kept in its store, in results and in systems made of it."""

from typing import Any

from pipeline.files.digest import digest
from pipeline.systems.scores import ENCODER

# The key of the digests of a store's arrays.
CONTENTS = "contents"
# The key of what a reranked system was made by: the retriever (system, seal), the scorer, `roles` (a digest of what
# each of the two is on any split), k (a number or "all"; the store may hold more candidates), the combination and its
# weight, whether scores are logits, the protocol (name, folds) and the distractors (dataset, seal).
RERANKED = "reranked"
# The keys of the system whose scores were corrected (system, seal), and of the embeddings of the correction's bank.
RESCORED, BANK = "rescored", "bank"


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
