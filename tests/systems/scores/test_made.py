"""The facts of a system: what each kind says by itself, and what it leaves to its source."""

from __future__ import annotations

from typing import Any

from pipeline.judge.systems.scores.made import OfEncoder, OfGiven, Unknown, facts, read
from tests import invented_facts

MEMBERS = [{"head": "a", "checkpoint": "a"}, {"head": "b", "checkpoint": "b"}]
HEAD = invented_facts.of_head(
    "vse2ad-grid-bigru-s3", seed=3, languages=["de"], trained_on="other", lacks={"no caption": 2}
)
ENSEMBLE = invented_facts.ensemble("both", MEMBERS, left_out=[7], files=["f"], seed=None)


def corrected(source: Any) -> Any:
    """A system after a correction and a reranking, read from what is recorded of it."""
    corrected = invented_facts.rescored(source)
    return read(invented_facts.reranked(corrected, protocol={"name": "all", "folds": 1}).recorded())


def test_scores_after_a_correction_have_the_facts_of_their_first_scores() -> None:
    of_head = corrected(HEAD)
    assert (of_head.dataset, of_head.split, of_head.manifest) == ("sample", "test", "m")
    assert (of_head.recipe, of_head.text, of_head.seed) == ("vse2ad", "bigru", 3)
    assert (of_head.languages, of_head.lacks) == (["de"], {"no caption": 2})
    assert (of_head.training_data, of_head.letters, of_head.is_named) == ("other", "G", False)
    assert of_head.series == "vse2ad-grid-bigru+csls+rerank"
    assert of_head.origin == HEAD
    of_several = corrected(ENSEMBLE)
    assert (of_several.left_out, of_several.files, of_several.seed) == ([7], ["f"], None)
    assert of_several.fused_by == {"method": "mean", "weights": [0.5, 0.5]}
    assert of_several.reasons_left_out == {"images that a member lacks": 1}
    assert of_several.is_named
    assert of_several.first == "both"


def test_a_reranked_system_says_of_itself_what_it_gained() -> None:
    source = invented_facts.ensemble("both", MEMBERS, features={"grid": "g"})
    made = invented_facts.reranked(
        source, features={"grid": "g", "region": "r"}, members=[*MEMBERS, {"head": "c"}], named=True
    )
    assert made.features == {"grid": "g", "region": "r"}
    assert made.letters == "G"  # its retriever's
    assert made.heads == ["a", "b", "c"]
    assert (made.protocol.name, made.source.protocol) == ("all", None)
    corrected = invented_facts.rescored(made)
    assert corrected.protocol == made.protocol
    assert corrected.heads == ["a", "b", "c"]


def test_nothing_is_said_of_what_a_kind_does_not_know() -> None:
    one = invented_facts.of_one()
    cases = {
        "unknown": (Unknown(), None, None, None, []),
        "file": (invented_facts.of_file(), None, None, None, ["f"]),
        "encoder": (OfEncoder.model_validate(one), "mine", "zero-shot", 0, []),
        "given": (OfGiven.model_validate(one), "mine", "given", None, []),
    }
    for kind, (made, *known) in cases.items():
        assert made.kind == kind
        assert [made.recipe, made.text, made.seed, made.files] == known, kind
        assert (made.features, made.untrained, made.left_out, made.protocol) == ({}, [], [], None)
        assert made.training_data == made.dataset
        assert made.recorded().keys() == {"kind", *type(made).model_fields}, kind


def test_a_setting_that_one_of_two_members_has_is_a_difference() -> None:
    plain, with_margin = (
        facts.Member(head="a", settings=settings) for settings in ({"k": 1}, {"k": 1, "margin": 2})
    )
    assert facts.differences([plain], [with_margin]) == "margin None and 2"
    assert facts.differences([with_margin], [plain]) == "margin 2 and None"
    assert facts.differences([with_margin], [with_margin]) == ""


def test_seeds_of_one_system_differ_in_nothing_else() -> None:
    """Systems are averaged as seeds only where data, features, members and fusion are the same."""

    def ensemble(**facts: Any) -> Any:
        return invented_facts.ensemble("both", facts.pop("members", MEMBERS), **facts)

    weighted = {"method": "mean", "weights": [0.3, 0.7], "members": ["a", "b"]}
    of_ranks = {"method": "rrf", "weights": [0.5, 0.5], "members": ["a", "b"]}
    other_member = [MEMBERS[0], {**MEMBERS[1], "features": "other"}]
    retrained = [{**member, "checkpoint": "another"} for member in MEMBERS]
    same = {ensemble(seed=seed).without_seed for seed in (0, 1)}
    same.add(ensemble(members=retrained).without_seed)
    assert len(same) == 1
    others = [
        ensemble(fusion=weighted),
        ensemble(fusion=of_ranks),
        ensemble(members=other_member),
        ensemble(dataset="other", trained_on="sample"),
        ensemble(split="val"),
        ensemble(manifest="n"),
        ensemble(trained_on="other"),
        ensemble(features={"grid": "g"}),
        ensemble(untrained=["grid"]),
        invented_facts.rescored(ensemble()),
        invented_facts.rescored(ensemble(), bank="test"),
        invented_facts.rescored(ensemble(), k=3),
    ]
    digests = {made.without_seed for made in others}
    assert len(digests | same) == len(others) + 1


def test_the_command_that_makes_a_system_again_is_the_one_that_made_it() -> None:
    def ensemble(method: str, *weights: float) -> Any:
        fusion = {"method": method, "weights": weights, "members": ["a", "b"]}
        return invented_facts.ensemble("both", MEMBERS, fusion=fusion)

    head = invented_facts.of_head("a")
    papers = {"method": "mean", "weights": [1.0], "members": ["a"], "features": ["region"]}
    of_test = invented_facts.rescored(head, "nnn", "test")
    by_head = {"scorer": {"kind": "cross", "place": "ce"}}
    for made, command in (
        (ensemble("mean", 0.5, 0.5), "ensemble both --member a --member b"),
        (
            ensemble("mean", 0.25, 0.75),
            "ensemble both --member a --member b --weight 0.25 --weight 0.75",
        ),
        (ensemble("rank", 0.5, 0.5), "ensemble both --member a --member b --fusion rank"),
        (
            ensemble("mean", 0.5, 0.5).changed(left_out=[7]),
            "ensemble both --member a --member b --keep-common",
        ),
        (
            ensemble("combmnz", 0.25, 0.75),
            "ensemble both --member a --member b --weight 0.25 --weight 0.75 --fusion combmnz",
        ),
        (
            invented_facts.ensemble("R", MEMBERS[:1], fusion=papers),
            "ensemble R --recipe vse2ad --text bigru --seed 0",
        ),
        (invented_facts.rescored(head), "rescore source --by csls"),
        (
            of_test.changed(options={"bank": "test"}),
            "rescore source --by nnn --bank test",
        ),
        (
            invented_facts.reranked(head, named=True),
            "rerank --retriever retriever --with another --k 20 --protocol all --name mine --if-changed redo",
        ),
        (invented_facts.reranked(head), "rerank --if-changed redo"),  # an entry of run.rerank
        (
            invented_facts.reranked(head, named=True, **by_head),
            "rerank --retriever retriever --with cross:ce --k 20 --protocol all --name mine --if-changed redo",
        ),
    ):
        assert made.made_again("mine")[1] == command


def test_a_system_has_seen_the_queries_if_any_of_its_steps_or_its_scorer_has() -> None:
    """Tables mark it and never print it in bold."""
    head = invented_facts.of_head("a")
    seen = invented_facts.rescored(head, "nnn", "test")
    not_seen = invented_facts.rescored(head, "nnn", "train")
    by_seen = {"scorer": {"steps": [{"name": "nnn", "bank": "test"}, {"name": "csls"}]}}
    by_other = {"scorer": {"steps": [{"name": "nnn", "bank": "train"}]}}
    for made, expected in (
        (head, False),
        (seen, True),
        (not_seen, False),
        (invented_facts.reranked(seen), True),
        (invented_facts.rescored(seen, "nnn", "train"), True),
        (invented_facts.rescored(not_seen, "nnn", "test"), True),
        (invented_facts.reranked(head, **by_seen), True),
        (invented_facts.reranked(head, **by_other), False),
        (invented_facts.rescored(invented_facts.reranked(head, **by_seen)), True),
        (invented_facts.ensemble("both", MEMBERS, sees_queries=True), True),
        (invented_facts.ensemble("both", MEMBERS), False),
    ):
        assert made.has_seen_queries == expected, made.steps


def test_what_was_done_first_to_scores_tells_systems_apart() -> None:
    """Of two systems whose last steps are the same."""
    head = invented_facts.of_head("a")
    firsts = [head, invented_facts.rescored(head), invented_facts.rescored(head, k=3)]
    last = [invented_facts.rescored(first, "nnn").without_seed for first in firsts]
    last += [invented_facts.reranked(first).without_seed for first in firsts]
    assert len({*last}) == len(last)


def test_members_of_one_system_differ_in_nothing_that_made_them_but_the_seed() -> None:
    mine = facts.Member(head="a", store="s", weights="w", vocabulary="v", settings={"k": 1})
    for other, said in (
        ({}, ""),
        ({"head": "b", "checkpoint": "c", "content": "d"}, ""),
        ({"store": "t"}, "other features"),
        ({"weights": "x"}, "another network behind them"),
        ({"vocabulary": "u"}, "other words"),
        ({"settings": {"k": 2}}, "k 1 and 2"),
        ({"store": "t", "vocabulary": "u"}, "other features, other words"),
    ):
        changed = mine.changed(**other)
        assert facts.differences([mine], [changed]) == said
        # Each of them once, however many members differ in it.
        assert facts.differences([mine, mine], [changed, changed]) == said
    assert facts.differences([mine], [mine, mine]) == "1 members and 2"


def test_a_dual_encoder_is_the_same_system_wherever_its_files_lie() -> None:
    def of(**encoder: Any) -> dict[str, Any]:
        return facts.Member(head="a", encoder={"title": "CLIP", **encoder}).of_all_seeds

    assert of(place="/one") == of(place="/other") == of()
    assert of(tuned_on="flickr8k") != of()
    assert of(usage={"prompt": "a {}"}) != of()


def test_all_that_was_left_out_is_said_with_its_reason() -> None:
    for lacks, left_out, said in (
        ({}, [], {}),
        ({"no caption": 2}, [], {"no caption": 2}),
        ({}, [5, 7], {"images that a member lacks": 2}),
        ({"no caption": 2}, [5], {"no caption": 2, "images that a member lacks": 1}),
    ):
        made = invented_facts.ensemble("both", MEMBERS, lacks=lacks, left_out=left_out)
        assert made.reasons_left_out == said
        assert invented_facts.rescored(made).reasons_left_out == said
