"""`pipeline rerank`: candidates scored once, resumed, measured, compared, refused and set in
tables.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import invented_facts
import invented_heads
import numpy as np
import plans
import pytest
import saved
from scored import CAPTIONS, IMAGES, score

from pipeline.foundation.artefacts.pieces import KeptPieces
from pipeline.foundation.compute import cluster
from pipeline.foundation.evaluation.retrieval import as_similarity
from pipeline.foundation.files.atomic import exclusive
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.reranking import shards, tuning
from pipeline.judge.systems.reranking.stored import StoredSystem
from pipeline.judge.systems.scores.made import Reranked, Unknown
from pipeline.judge.systems.scores.reranked import Combination, Scored
from pipeline.judge.systems.scores.system import Candidates, System
from pipeline.run.studies import throughput
from stages import rerank
from stages.commands.rerank import RerankOptions

pytestmark = pytest.mark.slow

R, G = "vse2ad-region-bigru-s0", "vse2ad-grid-bigru-s0"
NEW = f"{R}+rerank"
RERANK = ("rerank", "--retriever", R, "--with", G)


def path(name: str, split: str = "test") -> Path:
    return Paths(Path()).similarity("sample", name, split)


@pytest.fixture
def made(pipeline: Any) -> None:
    score("region", noise=2.0)
    score("grid", noise=1.5)


def measured(pipeline: Any, name: str, *more: str, split: str = "test") -> dict[str, Any]:
    code, out, err = pipeline("evaluate", "--system", path(name, split), "--json", *more)
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)[0]
    return {way: found[way] for way in ("i2t", "t2i")} | {"RSUM": found["RSUM"]}


@pytest.mark.specification
@pytest.mark.usefixtures("made")
def test_ten_candidates_leave_r10_and_all_give_the_scorers_own_numbers(pipeline: Any) -> None:
    retriever, scorer = measured(pipeline, R), measured(pipeline, G)
    assert pipeline(*RERANK, "--k", "10")[0] == 0
    ten = measured(pipeline, NEW)
    assert [ten[way]["R@10"] for way in ("i2t", "t2i")] == [
        retriever[way]["R@10"] for way in ("i2t", "t2i")
    ]
    assert ten["i2t"]["R@1"] != retriever["i2t"]["R@1"]
    for k in (str(IMAGES), "all"):  # of images these are as many, of captions more
        assert pipeline(*RERANK, "--k", k, "--name", "whole")[0] == 0
    assert measured(pipeline, "whole") == scorer
    assert (
        pipeline(*RERANK, "--k", "10", "--combine", "add", "--weight", "1", "--name", "none")[0]
        == 0
    )
    assert measured(pipeline, "none") == retriever


@pytest.mark.usefixtures("made")
def test_a_pair_is_scored_once_and_an_interrupted_run_is_resumed(
    pipeline: Any, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    original, monkey = StoredSystem.score, {"left": 2}

    def counted(self: StoredSystem, image_ids: Any, caption_ids: Any, *rest: Any) -> Any:
        if not monkey["left"]:
            raise KeyboardInterrupt
        monkey["left"] -= 1
        asked.extend(zip(image_ids.tolist(), caption_ids.tolist(), strict=True))
        return original(self, image_ids, caption_ids, *rest)

    monkeypatch.setattr(StoredSystem, "score", counted)
    monkeypatch.setattr(shards, "SHARD", 50)
    assert pipeline(*RERANK, "--k", "5")[0] != 0
    kept = sorted(Path("similarities", "sample", f"{NEW}.zarr.pieces").glob("*.npz"))
    assert len(kept) == 2
    assert not path(NEW).exists()
    assert "or for other candidates" in refused(*RERANK, "--k", "4")
    for feature, noise in (("region", 2.0), ("grid", 1.5)):
        score(feature, noise=noise, content=b"another")
        assert "were scored by another scorer, or for other" in refused(*RERANK, "--k", "5")
        score(feature, noise=noise)
    monkey["left"] = 100
    assert pipeline(*RERANK, "--k", "5")[0] == 0
    store = System.open(path(NEW))
    assert isinstance(store.kind, Candidates)
    found = store.kind.found
    wanted = {
        (10 * (q + 1), c + 100) for q, row in enumerate(found["i2t"].places.tolist()) for c in row
    } | {(10 * (i + 1), q + 100) for q, row in enumerate(found["t2i"].places.tolist()) for i in row}
    assert len(asked) == len(set(asked))
    assert set(asked) == wanted
    matrix = System.open(path(G)).similarity[:]
    np.testing.assert_array_equal(
        found["t2i"].scores, matrix.T[np.arange(60)[:, None], found["t2i"].places]
    )
    assert not list(Path("similarities", "sample").glob("*.pieces"))
    assert "nothing to do" in pipeline(*RERANK, "--k", "5")[1]
    assert (
        "0 pairs scored"
        in pipeline(*RERANK, "--k", "3", "--combine", "norm_add", "--weight", "0.5")[1]
    )
    assert System.open(path(NEW)).made_from.steps == [
        {"name": "rerank", "with": "vse2ad-grid-bigru", "k": 3, "norm_add": 0.5}
    ]


@pytest.mark.usefixtures("made", "forkserver")
def test_workers_give_the_same_bytes(
    pipeline: Any, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "SHARD", 50)
    assert pipeline(*RERANK, "--k", "5")[0] == 0
    code, _, err = pipeline(*RERANK, "--k", "5", "--name", "by-two", "--workers", "2")
    assert code == 0, err
    one, two = (System.open(path(name)) for name in (NEW, "by-two"))
    assert one.made_from.changed(named=True) == two.made_from
    # An error of a worker is the command's, in one line.
    score("patch", without=(3,))
    assert "does not score" in refused(
        "rerank",
        "--retriever",
        R,
        "--with",
        "vse2ad-patch-bigru-s0",
        "--k",
        "12",
        "--name",
        "lacking",
        "--workers",
        "2",
    )
    assert "give one" in refused(*RERANK, "--workers", "2", "--scheduler", "tcp://127.0.0.1:1")
    monkeypatch.setattr(cluster, "running", partial(cluster.running, timeout=0.05))
    assert "no dask scheduler answers" in refused(
        *RERANK, "--k", "4", "--name", "x", "--scheduler", "tcp://127.0.0.1:1"
    )


@pytest.mark.usefixtures("made")
def test_candidates_are_of_the_querys_own_fold(pipeline: Any, refused: Callable[..., str]) -> None:
    assert pipeline(*RERANK, "--k", "2", "--folds", "3")[0] == 0
    kind = System.open(path(NEW)).kind
    assert isinstance(kind, Candidates)
    found = kind.found
    per_fold = IMAGES // 3
    assert (
        found["i2t"].places // (CAPTIONS * per_fold) == (np.arange(IMAGES) // per_fold)[:, None]
    ).all()
    assert (
        found["t2i"].places // per_fold
        == (np.arange(IMAGES * CAPTIONS) // (CAPTIONS * per_fold))[:, None]
    ).all()
    assert "protocol was ['3fold', 3], is ['all', 1]; --if-changed redo" in refused(
        *RERANK, "--k", "2"
    )
    three = measured(pipeline, NEW)
    assert three == measured(pipeline, NEW, "--folds", "3")
    assert three["RSUM"] >= measured(pipeline, R, "--folds", "3")["RSUM"]
    for other in ("2", "1"):
        assert "were reranked by the protocol 3fold, not by the requested one" in refused(
            "evaluate", "--system", path(NEW), "--folds", other
        )


@pytest.mark.usefixtures("made")
def test_it_is_compared_evaluated_and_named_in_tables(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    run = (
        "-S",
        "run.features=[region, grid]",
        "-S",
        "run.ablations=[]",
        "-S",
        "run.ensembles=[RG]",
        "-S",
        "run.rerank=[{name: rr, retriever: region, with: RG, k: 4, combine: add, weight: 0.25}]",
    )
    for command in ("ensemble", "rerank", "evaluate", "tables"):
        assert pipeline(command, *run)[0] == 0
    name = f"{R}+rr"
    made_from = json.loads(Path("results/metrics.json").read_text())[name]["record"]["facts"]
    assert [member["head"] for member in made_from["members"]] == [R, G]
    table = Path("results/tables/vse2ad_table1.tex").read_text()
    assert "rerank (with vse2ad-RG-bigru, k 4, add 0.25)" in table
    assert pipeline("compare", R, name)[0] == 0
    assert pipeline("rerank", *run)[1].count("nothing to do") == 1
    assert "is reranked, and has an order of each query's candidates" in refused(
        "ensemble", "mine", "--member", name, "--member", R
    )
    assert "use its retriever" in refused("rescore", name, "--by", "csls")


@pytest.mark.usefixtures("made")
def test_what_changed_is_refused_and_what_is_done_is_kept(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    assert pipeline(*RERANK, "--k", "5")[0] == 0
    before = path(NEW).joinpath("record.json").read_bytes()
    score("grid", noise=1.0, content=b"another")
    assert (
        f"its scorer {G} is another; --if-changed redo replaces it, or keep both: --out, or another name"
        in refused(*RERANK, "--k", "5")
    )
    assert path(NEW).joinpath("record.json").read_bytes() == before
    run = (
        "-S",
        "run.features=[region, grid]",
        "-S",
        "run.ablations=[]",
        "-S",
        "run.ensembles=[]",
        "-S",
        "run.rerank=[{name: rerank, retriever: region, with: grid, k: 5}]",
    )
    assert (
        f"is reranked with scores of an older {G} than the current one; run `pipeline rerank --retriever {R} "
        f"--with {G} --k 5 --protocol all --if-changed redo --dataset sample` again"
        in refused("evaluate", *run)
    )
    assert pipeline(*RERANK, "--k", "5", "--if-changed", "redo")[0] == 0
    assert measured(pipeline, NEW)
    score("region", noise=2.0, content=b"older")
    assert f"was reranked from an older {R} than the current one" in refused(
        "evaluate", "--system", path(NEW)
    )


@pytest.mark.usefixtures("made")
def test_bad_input_is_refused_in_one_line(pipeline: Any, refused: Callable[..., str]) -> None:
    assert "k 13 is above the pool: a query of protocol all has 12 images" in refused(
        *RERANK, "--k", "13"
    )
    assert "'0': expected a number from 1 up, or all" in refused(*RERANK, "--k", "0")
    assert "no scorer 'nothing' for sample: expected a scored system" in refused(
        "rerank", "--retriever", R, "--with", "nothing"
    )
    assert "no similarity store there" in refused("rerank", "--retriever", "nothing", "--with", G)
    assert "expected --with SCORER" in refused("rerank", "--retriever", R)
    assert "give --weight with" in refused(*RERANK, "--combine", "add")
    assert "give --weight with" in refused(*RERANK, "--weight", "0.5")
    for name in (R, G):  # scores of test in the place of val's
        shutil.copytree(path(name), path(name, "val"))
    assert "k and the weight are chosen on val" in refused(
        *RERANK, "--k", "5", "--combine", "add", "--tune"
    )
    assert "expected another name" in refused(*RERANK, "--name", R)
    assert "exists and is scores, not reranked" in refused(*RERANK, "--k", "5", "--name", G)
    score("patch", without=(3,))
    assert "does not score image 40" in refused(
        "rerank", "--retriever", R, "--with", "vse2ad-patch-bigru-s0", "--k", "12"
    )
    score("patch", manifest="n" * 64)
    assert f"its manifest is '{'n' * 64}', that of the retriever {R}" in refused(
        "rerank", "--retriever", R, "--with", "vse2ad-patch-bigru-s0", "--k", "5"
    )
    assert pipeline(*RERANK, "--k", "5")[0] == 0
    assert "is reranked itself; give its retriever" in refused(
        "rerank", "--retriever", NEW, "--with", G
    )


@pytest.mark.usefixtures("made")
def test_k_and_the_weight_are_chosen_on_val_and_used_on_test(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    tune = (*RERANK, "--k", "10", "--combine", "add", "--tune", "--name", "choice")
    assert "on val, which is not scored; run `pipeline score -S score.split=val`" in refused(*tune)
    for feature, noise in (("region", 2.0), ("grid", 1.5)):
        score(feature, noise=noise, split="val")
    code, out, err = pipeline(*tune)
    assert code == 0, err
    assert "on val, the best of 42" in out
    choice, on_val = path("choice", "val"), ("-S", "score.split=val")
    record = System.open(choice).made_from
    assert isinstance(record, Reranked)
    best = record.tuned["RSUM"]
    for weight in ("0", "0.3", "1"):
        assert (
            pipeline(
                *RERANK,
                *on_val,
                "--k",
                "10",
                "--combine",
                "add",
                "--weight",
                weight,
                "--name",
                "one",
            )[0]
            == 0
        )
        assert measured(pipeline, "one", split="val")["RSUM"] <= best + 1e-9
    assert measured(pipeline, "choice", split="val")["RSUM"] == pytest.approx(best)
    assert pipeline(*RERANK, "--tuned-on", choice)[0] == 0
    used = System.open(path(NEW)).made_from
    assert isinstance(used, Reranked)
    assert (used.k, used.combine, used.weight) == (record.k, record.combine, record.weight)
    assert "cannot be given with --tuned-on" in refused(*RERANK, "--tuned-on", choice, "--k", "3")
    assert "no choice of k and weight there" in refused(*RERANK, "--tuned-on", path(R))
    assert "tune on val with --folds 3" in refused(*RERANK, "--tuned-on", choice, "--folds", "3")
    score("grid", noise=1.5, content=b"another")
    assert "were chosen there for other heads" in refused(
        *RERANK, "--tuned-on", choice, "--name", "more"
    )


@pytest.mark.parametrize(
    ("scorer", "asked"),
    [
        ({"kind": "vilt", "name": "vilt-b32", "place": "/models/vilt"}, "vilt:/models/vilt"),
        ({"kind": "system", "name": G, "place": G}, G),
    ],
)
def test_the_command_that_makes_a_system_again_names_its_scorer(
    scorer: dict[str, str], asked: str
) -> None:
    made = invented_facts.reranked(Unknown(), retriever=R, scorer=scorer, named=True)
    command = f"rerank --retriever {R} --with {asked} --k 20 "
    assert made.made_again("mine")[1].startswith(command)


def test_of_equally_good_choices_the_fewest_candidates_and_the_least_weight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "_rsum", lambda *choice: 100.0)
    twelve = Scored(np.zeros((1, 12), np.int64), np.zeros((1, 12)), np.zeros((1, 12), np.float32))
    unread: Any = None
    record = invented_facts.reranked(Unknown(), k=12, combine="add")
    assert tuning.tune(unread, {"i2t": twelve}, record, 32)[:2] == (5, Combination("add", 0.0))


@pytest.mark.usefixtures("made")
def test_a_choice_is_not_taken_over_by_the_same_heads_in_other_roles(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    for feature, noise in (("region", 2.0), ("grid", 1.5)):
        score(feature, noise=noise, split="val", content=feature.encode())
    assert pipeline(*RERANK, "--k", "5", "--combine", "add", "--tune", "--name", "choice")[0] == 0
    for feature, noise in (("region", 2.0), ("grid", 1.5)):
        score(feature, noise=noise, content=feature.encode())
    assert pipeline("ensemble", "both", "--member", R, "--member", G)[0] == 0
    assert pipeline("rescore", R, "--by", "csls")[0] == 0
    choice = path("choice", "val")
    for retriever, scorer in ((G, R), (R, "both"), (f"{R}+csls", G)):
        assert "with retriever and scorer exchanged" in refused(
            "rerank",
            "--retriever",
            retriever,
            "--with",
            scorer,
            "--tuned-on",
            choice,
            "--name",
            "swapped",
        )
    assert pipeline(*RERANK, "--tuned-on", choice)[0] == 0


@pytest.mark.usefixtures("made")
def test_the_retriever_alone_keeps_its_ties_where_k_ends(pipeline: Any) -> None:
    store = System.open(path(R))
    same = np.zeros(store.similarity.shape, np.float32)
    path(R).rename(path("former"))
    saved.save(
        path(R),
        [as_similarity(same)],
        store.image_ids,
        store.caption_ids,
        store.caption_image,
        store.made_from,
    )
    for combine in ("add", "norm_add"):
        assert (
            pipeline(*RERANK, "--k", "3", "--combine", combine, "--weight", "1", "--name", combine)[
                0
            ]
            == 0
        )
        assert measured(pipeline, combine) == measured(pipeline, R)


@pytest.mark.usefixtures("made")
def test_two_runs_of_one_system_do_not_meet(pipeline: Any, refused: Callable[..., str]) -> None:
    with exclusive(path(NEW)):
        assert "another process is writing to it" in refused(*RERANK, "--k", "5")
    assert pipeline(*RERANK, "--k", "5")[0] == 0


@pytest.mark.usefixtures("made")
def test_a_damaged_shard_is_scored_again(pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pipeline(*RERANK, "--k", "5", "--name", "whole")[0] == 0
    monkeypatch.setattr(KeptPieces, "remove", lambda self: None)
    assert pipeline(*RERANK, "--k", "5")[0] == 0
    shard = next(path(NEW).with_name(f"{NEW}.zarr.pieces").glob("*.npz"))
    good, expected = shard.read_bytes(), measured(pipeline, "whole")
    for damaged in (good[:-9], good[:200] + bytes([good[200] ^ 1]) + good[201:], b""):
        shutil.rmtree(path(NEW))
        shard.write_bytes(damaged)
        assert pipeline(*RERANK, "--k", "5")[0] == 0
        assert measured(pipeline, NEW) == expected


def test_what_later_steps_would_refuse_is_refused_by_the_plan(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    run = (
        "lab",
        "plan",
        "-S",
        "run.features=[region, grid]",
        "-S",
        "run.ensembles=[]",
        "-S",
        "run.ablations=[]",
    )
    step = "run.rerank=[{{name: rr, retriever: region, with: {}, k: 4, protocol: {}}}]"
    assert "unknown protocol 'nonsense'" in refused(*run, "-S", step.format("grid", "nonsense"))
    assert "no scorer 'nonsense' for sample" in refused(*run, "-S", step.format("nonsense", "all"))
    code, out, err = pipeline(*run, "-S", step.format("grid", "all"))
    assert (code, "2 features, 2 heads, 0 ensembles" in out) == (0, True), out + err
    one = pipeline(*run, "-S", "run.features=[region]", "-S", "run.ensembles=[R]")[1]
    assert "1 feature, 1 head, 1 ensemble\n" in one


def test_a_head_is_planned_with_the_one_that_it_starts_from(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    run = (
        "lab",
        "plan",
        "-S",
        "run.features=[region]",
        "-S",
        "run.ensembles=[]",
        "-S",
        "run.ablations=[]",
        "-S",
        "run.texts=[bert]",
        "-S",
        "run.recipes=[emb, ce-listwise]",
    )

    def key(*more: str) -> Any:
        code, _, err = pipeline(*run, *more)
        assert code == 0, err
        return plans.read()["train"]["ce-listwise-region-bert-s0"]

    before = key()
    assert key() == before
    assert (
        key("-S", "recipes.emb.objective.margin=0.3", "-S", "recipes.ce.objective.margin=0.1")
        != before
    )
    by = ("-S", "recipes.ce-listwise.pairs.retriever=other")
    missing = key(*by)
    invented_heads.head(Path("heads/sample"), "other", [100.0])
    assert key(*by) != missing
    assert "circular dependency" in refused(*run, "-S", "recipes.ce-listwise.start=ce-listwise")


def test_one_query_is_timed_with_a_scorer_of_the_run(
    pipeline: Any, refused: Callable[..., str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [
        part
        for change in (
            "batch_size=2",
            "pools=[5, 9]",
            "searched=[5, 9]",
            "pairs=1",
            "repeats=1",
            "seconds=0.0",
            "reranked=3",
        )
        for part in ("-S", f"throughput.{change}")
    ]
    assert f"--with {R}: is the retriever itself" in refused(
        "rerank", "--retriever", R, "--with", R
    )
    assert "give both --retriever and --with" in refused("lab", "throughput", "--retriever", R)
    code, out, err = pipeline("lab", "throughput", *small, "--retriever", R, "--with", R)
    assert code == 0, err
    assert "one query: " in out
    found = json.loads(Path("results/throughput.json").read_text())["query"]
    assert (found["k"], found["scorer"]) == (3, R)
    assert found["ratio"] == pytest.approx(found["both"] / found["retrieve"])
    assert min(found["retrieve"], found["both"]) > 0
    query = ("--retriever", R, "--with", R)
    monkeypatch.delattr(
        throughput, "measure"
    )  # what is refused is refused before anything else is timed
    assert "has 4 images; set" in refused(
        "lab", "throughput", *small[:-1], "throughput.reranked=500", *query
    )


def test_heads_rerank_another_data_set_zero_shot(
    pipeline: Any, refused: Callable[..., str], project: Path, scenes: Manifest
) -> None:
    """The same images under another name: the numbers must be those on the data set that the heads
    were trained on.
    """
    late, zero = "late-region-bigru-s0", f"sample-{R}"
    small = [
        part
        for change in (
            "dimension=16",
            "word_dimension=8",
            "batch_size=16",
            "epochs=1",
            "decay_epoch=1",
        )
        for part in ("-S", f"training.sample.{change}")
    ]
    assert pipeline("train", "--feature", "region", "--recipe", "late", *small)[0] == 0
    assert (
        pipeline("rerank", "--retriever", R, "--with", late, "--k", "3", "--name", "same")[0] == 0
    )
    Manifest(scenes.table, "other", scenes.images_folder).save(Path("data/other.parquet"))
    shutil.copytree("features/sample/region.zarr", "features/other/region.zarr")
    for command in (
        ("embed", "other", "--system", R, "--split", "test"),
        ("score", "--system", f"embeddings/other/{zero}.zarr"),
    ):
        code, _, err = pipeline(*command)
        assert code == 0, err
    rerank = (
        "rerank",
        "--dataset",
        "other",
        "--retriever",
        zero,
        "--protocol",
        "all",
        "--k",
        "3",
        "--name",
        "zero",
    )
    assert "no scorer" in refused(*rerank, "--with", late)
    code, _, err = pipeline(*rerank, "--with", late, "--trained-on", "sample")
    assert code == 0, err
    there = Path("similarities/other/zero.zarr")
    found = System.open(there)
    assert (found.made_from.training_data, found.made_from.dataset) == ("sample", "other")
    found_there = json.loads(pipeline("evaluate", "--system", there, "--json", "--record")[1])[0]
    assert found_there["RSUM"] == pytest.approx(measured(pipeline, "same")["RSUM"])
    steps, same = (
        {
            (step["what"].replace(zero, R), step["verdict"])
            for step in json.loads(pipeline("trace", store, "--json")[1])
        }
        for store in (there, path("same"))
    )
    assert ("pairs scored again", "matches") in steps
    assert ("embedded again", "matches") in steps
    assert (
        not {step for step in steps if step[1] != "matches"} - same
    )  # there are no photographs here
    other = [word.replace(".sample.", ".light.") for word in small]
    assert (
        pipeline("train", "--dataset", "other", "--feature", "region", "--recipe", "late", *other)[
            0
        ]
        == 0
    )
    assert "give two that were trained on the same" in refused(
        *rerank[:-2], "--name", "mixed", "--with", late
    )


def test_a_scorer_that_is_named_has_the_options_of_the_runs_first_step_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class Job:
        named: bool = False

    asked: list[Any] = []

    def job(paths: Any, settings: Any, options: Any, of_scorer: Any) -> Job:
        asked.append(of_scorer)
        return Job()

    monkeypatch.setattr(rerank, "_job", job)
    monkeypatch.setattr(rerank, "_rerank", lambda job, workers: None)
    steps = []
    for scorer, count in (("a:b", 1), ("c:d", 2), ("a:b", 3)):
        steps.append(SimpleNamespace(scorer=scorer, options={"count": count}))
    chosen: Any = SimpleNamespace(run=SimpleNamespace(rerank=steps))
    for scorer in ("a:b", "c:d", "e:f"):
        options = RerankOptions(retriever="mine", scorer=scorer)
        rerank.rerank_candidates(Paths(tmp_path), chosen, options)
    assert asked == [{"count": 1}, {"count": 2}, {}]
