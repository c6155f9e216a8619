"""`pipeline evaluate`: the run into metrics.json, and any matrix; intervals, formats, what is stale
or not finite.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forged
import invented_heads
import numpy as np
import pytest
import saved
from command_line import PARAMS
from scored import made_from, score

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.compute import made_with
from pipeline.foundation.evaluation.judgements import coco_pairs
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import Lists, Protocol, Relevance
from pipeline.foundation.evaluation.retrieval.lists import Listed
from pipeline.foundation.evaluation.statistics import ImageHits, intervals
from pipeline.foundation.files.compared import DIFFERS, MATCHES
from pipeline.foundation.manifest import Dataset, Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import measured
from pipeline.judge.systems.scores.system import System
from pipeline.make.training.artefact import HeadArtefact
from pipeline.run.provenance import computed_again
from pipeline.run.provenance.results import Result
from pipeline.run.report import measured as report_measured
from stages import cli
from stages.evaluate import Seed, refuse_other_seed

pytestmark = pytest.mark.slow

RUN = ("-S", "run.features=[region, grid]")
METRICS = Path("results/metrics.json")


@pytest.fixture(scope="module")
def of_two_features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run's heads and ensembles. Change a copy of them."""
    root = tmp_path_factory.mktemp("of-two-features")
    with contextlib.chdir(root):
        for feature in ("region", "grid"):
            score(feature)
        for name in ("R", "RG"):
            cli.cli.main(["ensemble", name, "--params", PARAMS], standalone_mode=False)
    return root


@pytest.fixture
def scored_run(pipeline: Any, of_two_features: Path, tmp_path: Path) -> Any:
    """A copy of them, the working directory of the test; a command there."""
    shutil.copytree(of_two_features, tmp_path, dirs_exist_ok=True)
    return pipeline


def numbers(pipeline: Any, *asked: str | Path) -> list[dict[str, Any]]:
    """What `evaluate` prints of each system."""
    code, out, err = pipeline("evaluate", *asked, "--json")
    assert code == 0, err
    listed: list[dict[str, Any]] = json.loads(out)
    return listed


def results() -> dict[str, Any]:
    """What it wrote of a run."""
    written: dict[str, Any] = json.loads(METRICS.read_text(encoding="utf-8"))
    return written


def verdicts(store: Path, entry: dict[str, Any]) -> dict[str, str]:
    """What is measured again of a system -> whether its entry matches."""
    steps = computed_again.numbers(store, Result.read(entry), store, 32)
    return {step.what: step.verdict for step in steps}


@pytest.mark.specification
def test_a_run_is_measured_with_intervals_and_what_made_it(scored_run: Any) -> None:
    assert scored_run("evaluate", *RUN)[0] == 0
    written = results()
    # R is the head of regions alone: one entry.
    assert list(written) == [f"vse2ad-{name}-bigru-s0" for name in ("grid", "R", "RG")]
    store = System.open(Path("similarities/sample/vse2ad-RG-bigru-s0.zarr"))
    metrics = evaluate(store.similarity, store.caption_image)
    of_pool = written["vse2ad-RG-bigru-s0"]["all"]
    assert {**metrics.as_dict(), "interval": of_pool["interval"]} == of_pool
    found = intervals(metrics)
    assert of_pool["interval"]["t2i"]["R@5"] == [found["t2i", "R@5"].low, found["t2i", "R@5"].high]
    assert of_pool["interval"]["RSUM"] == [found["", "RSUM"].low, found["", "RSUM"].high]
    record = written["vse2ad-RG-bigru-s0"]["record"]
    assert (record["facts"], record["machines"]) == (
        store.made_from.recorded(),
        [made_with.today()],
    )


def test_the_run_has_hits_of_each_system_for_a_board(
    scored_run: Any, refused: Callable[..., str]
) -> None:
    for _ in range(2):  # results that are up to date are measured again
        shutil.rmtree("hits", ignore_errors=True)
        assert scored_run("evaluate", *RUN, "--hits", "hits/")[0] == 0
    measured_systems = results()
    files = sorted(Path("hits").iterdir())
    assert {file.stem for file in files} == measured_systems.keys()
    for file in files:
        (of_hits,) = numbers(scored_run, file)
        assert (of_hits["dataset"], of_hits["split"]) == ("sample", "test")
        assert of_hits["interval"] == measured_systems[file.stem]["all"]["interval"]
    code, out, err = scored_run("board", f"sample={Path('hits/*.npz')}", "--json")
    assert code == 0, err
    assert {each["name"] for each in json.loads(out)["systems"]} == measured_systems.keys()
    assert "or of the run, --hits FOLDER/" in refused("evaluate", *RUN, "--hits", "one.npz")


def test_hits_of_the_run_are_by_the_first_protocol_of_its_card(
    scored_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = [Protocol("3fold", folds=3), "all"]
    with monkeypatch.context() as card:
        card.setattr(Dataset, "protocols_of", lambda dataset, split: several)
        code, _, err = scored_run("evaluate", *RUN, "--hits", "hits/")
    assert code == 0, err
    said = " ".join(err.split())
    assert said.count("hits are by protocol 3fold, the first of its data set's card") == 1
    assert "`pipeline evaluate 'similarities/sample/*.zarr' --protocol all --hits FOLDER/`" in said
    for name, entry in results().items():
        (of_hits,) = numbers(scored_run, f"hits/{name}.npz")
        assert of_hits["interval"] == entry["3fold"]["interval"]


def test_hits_of_the_run_are_by_its_judgements(scored_run: Any) -> None:
    right = [f"caption:{100 + 5 * image} 0 image:{10 + 10 * image} 1" for image in range(6)]
    Path("right.txt").write_text("\n".join([*right, "caption:100 0 image:30 1"]))
    code, _, err = scored_run("evaluate", *RUN, "--qrels", "right.txt", "--hits", "hits/")
    assert code == 0, err
    for name, entry in results().items():
        (of_hits,) = numbers(scored_run, f"hits/{name}.npz")
        assert of_hits["protocol"] == "qrels"
        assert of_hits["interval"] == entry["qrels"]["interval"]


def test_metrics_by_name_stand_in_the_results_and_are_traced(
    scored_run: Any, refused: Callable[..., str]
) -> None:
    named = ("--metric", "nDCG@10", "--metric", "rr", "--metric", "MedR", "--metric", "mR")
    out = scored_run("evaluate", *RUN, *named)[1]
    assert "MRR: image → caption " in out
    entry = results()["vse2ad-R-bigru-s0"]
    assert entry["record"]["request"]["settings"]["metrics"] == ["nDCG@10", "MRR", "MedR", "mR"]
    assert {"nDCG@10", "MRR", "MedR"} <= entry["all"]["t2i"].keys() & entry["all"]["interval"][
        "t2i"
    ].keys()
    assert entry["all"]["mR"] == pytest.approx(entry["all"]["RSUM"] / 6)
    store = Path("similarities/sample/vse2ad-R-bigru-s0.zarr")
    assert {*verdicts(store, entry).values()} == {MATCHES}
    entry["all"]["t2i"]["nDCG@10"] += 0.1
    assert DIFFERS in verdicts(store, entry).values()
    assert "unknown metric 'nDGC@10', with a cutoff" in refused(
        "evaluate", *RUN, "--metric", "nDGC@10"
    )
    assert "evaluate.metrics" in refused("evaluate", *RUN, "-S", "evaluate.metrics=[nDGC@10]")
    named_in_settings = numbers(scored_run, *RUN, "-S", "evaluate.metrics=[Recall@3]")
    assert json.dumps(named_in_settings).count('"Recall@3"') == 3 * 4


def test_the_hits_of_each_image_are_kept_sealed_and_traced(scored_run: Any) -> None:
    assert scored_run("evaluate", *RUN)[0] == 0
    name, written = "vse2ad-R-bigru-s0", results()
    of_pool, hits = written[name]["all"], ImageHits(written[name]["image_hits"]["all"])
    recalls = [of_pool[way][f"R@{k}"] for way in ("i2t", "t2i") for k in (1, 5, 10)]
    assert hits.statistics.tolist() == pytest.approx([*recalls, of_pool["RSUM"]])
    store = Path(f"similarities/sample/{name}.zarr")
    assert verdicts(store, written[name])["hits of each image again, all"] == MATCHES
    written[name]["image_hits"]["all"]["values"][-2] += 0.5
    found = verdicts(store, written[name])
    assert [what for what, verdict in found.items() if verdict == DIFFERS] == [
        "hits of each image again, all"
    ]
    METRICS.write_text(json.dumps(written), encoding="utf-8")
    code, _, err = scored_run("tables", *RUN)
    assert code != 0
    assert "is not as it was measured" in err


def test_tables_of_a_run_say_nothing_of_bold_where_all_tie(scored_run: Any) -> None:
    """Of few images two systems tie: none is bold."""
    run = (*RUN, "-S", "tables=[rerank_table1]")
    assert scored_run("evaluate", *run)[0] == 0
    written = Path("results/tables/rerank_table1.md")
    assert scored_run("tables", *run, "--only", "measured")[0] == 0
    tied = written.read_text(encoding="utf-8")
    assert "Bold" not in tied
    assert "**" not in tied


def test_results_are_read_once_for_all_tables(
    scored_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scored_run("evaluate", *RUN)[0] == 0
    read, counted = report_measured._evaluations, list[int]()
    monkeypatch.setattr(
        report_measured,
        "_evaluations",
        lambda metrics: counted.append(len(metrics)) or read(metrics),
    )
    assert (
        scored_run("tables", *RUN, "-S", "tables=[vse2ad_table1, vse2ad_table3, rerank_table1]")[0]
        == 0
    )
    assert [count for count in counted if count] == [3]


def test_ablations_are_measured_as_far_as_they_are_scored(scored_run: Any) -> None:
    scores = Path("similarities", "sample")
    forged.copied(scores / "vse2ad-grid-bigru-s0.zarr", scores / "vse_pp-region-bigru-s0.zarr")
    _, out, err = scored_run("evaluate", *RUN, "-S", "run.ablations=[vse_infty, vse_pp]", "--json")
    assert [each["system"] for each in json.loads(out)][3:] == ["vse_pp-region-bigru-s0"]
    mine, other = results()["vse_pp-region-bigru-s0"], results()["vse2ad-grid-bigru-s0"]
    assert {key for key in mine if mine[key] != other[key]} == {"record"}
    assert "not scored, and left out: vse_infty-region-bigru-s0" in err


def test_what_is_scored_and_not_of_the_run_is_named(scored_run: Any) -> None:
    err = scored_run("evaluate", "-S", "run.features=[region]")[2]
    assert (
        "scored, but not in `run` of params.yaml, and left out: vse2ad-RG-bigru-s0, vse2ad-grid-bigru-s0; add "
        "their recipes"
    ) in " ".join(err.split())


def test_the_data_set_is_an_option_as_everywhere(scored_run: Any) -> None:
    assert (
        "flickr8k: nothing is scored on test" in scored_run("evaluate", "--dataset", "flickr8k")[2]
    )
    assert scored_run("evaluate", *RUN, "-S", "run.dataset=flickr8k", "--dataset", "sample")[0] == 0
    tables = ("tables", "--table", "systems", *RUN, "-S", "run.dataset=flickr8k")
    assert scored_run(*tables, "--dataset", "sample")[0] == 0


def test_a_file_is_not_measured_under_the_name_of_another_data_set(
    scored_run: Any, refused: Callable[..., str]
) -> None:
    name = "vse2ad-RG-bigru-s0"
    store = f"similarities/sample/{name}.zarr"
    np.save("ours.npy", np.eye(4, dtype=np.float32))
    of_store = refused("evaluate", store, "--dataset", "flickr8k")
    assert f"--dataset flickr8k: {store} is of sample" in of_store
    of_file = ("ours.npy", "--captions-per-image", "1", "--dataset", "sample")
    assert "ours.npy is a file" in refused("evaluate", *of_file)
    assert "ours.npy is a file" in refused("evaluate", *of_file, "--as", "clip_benchmark")
    of_path, of_name = (numbers(scored_run, it, "--dataset", "sample") for it in (store, name))
    assert of_path == of_name


def test_a_varied_recipe_that_no_run_can_list_is_measured_with_the_run(scored_run: Any) -> None:
    made = made_from("grid", hashlib.sha256(b"head").hexdigest())
    member = made["member"] | {"head": "vse2ad_image_mean-grid-bigru-s0"}
    score("grid", recipe="vse2ad_image_mean", member=member)
    measured_systems = [each["system"] for each in numbers(scored_run, *RUN)]
    assert "vse2ad_image_mean-grid-bigru-s0" in measured_systems


def test_a_perfect_recall_is_not_certain(pipeline: Any) -> None:
    np.save("perfect.npy", np.eye(1000).repeat(5, 1))
    out = pipeline("evaluate", "--system", "perfect.npy")[1]
    assert "100.0 [99.6, 100.0]" in out
    assert "[100.0, 100.0]" not in out
    assert "RSUM 600.0 [597.7, 600.0]" in out


def test_a_run_is_one_table_by_rsum_and_says_where_it_wrote(
    scored_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out, err = scored_run("evaluate", *RUN)
    assert "two names has one row: vse2ad-region-bigru-s0 is vse2ad-R-bigru-s0\n" in err
    assert "±" not in out
    written = results()
    title, above, heading, *rows = out.splitlines()
    assert title == "Test split, 12 images x 60 captions, protocol all"
    assert above.split("  ")[-1].strip() == "caption → image"
    assert heading.split() == ["system", *["R@1", "R@5", "R@10"] * 2, "RSUM"]
    named = [row.split()[0] for row in rows[:3]]
    assert named == sorted(written, key=lambda name: -written[name]["all"]["RSUM"])
    best = written[named[0]]["all"]
    assert rows[0].endswith(
        "{:.1f} [{:.1f}, {:.1f}]".format(best["RSUM"], *best["interval"]["RSUM"])
    )
    assert len({row.index(".") for row in rows[:3]}) == 1  # decimal points are below each other
    assert rows[-1] == "results/metrics.json: 3 systems"
    monkeypatch.setenv("COLUMNS", "70")
    narrow = scored_run("evaluate", *RUN)[1].splitlines()
    assert [
        line.strip() for line in narrow[3:9:2]
    ] == named  # each in a line of its own, before its numbers
    assert max(map(len, narrow)) <= 80


def test_several_files_are_one_table(pipeline: Any) -> None:
    for name, scores in {"worse": np.ones((20, 100)), "better": np.eye(20).repeat(5, 1)}.items():
        np.save(f"{name}.npy", scores)
    out = pipeline("evaluate", "worse.npy", "better.npy")[1].splitlines()
    assert [line.split()[0] for line in out[3:5]] == ["better", "worse"]
    assert (
        "worse, 20 images x 100 captions, protocol all"
        in pipeline("evaluate", "worse.npy", "better.npy", "-v")[1]
    )


def test_a_pattern_in_quotes_is_the_files_that_a_shell_would_name(
    pipeline: Any, refused: Callable[..., str], rng: np.random.Generator
) -> None:
    for seed in (1, 2, 10):
        np.save(f"ours{seed}.npy", rng.random((20, 100)))
    np.save("theirs[1].npy", rng.random((20, 100)))

    def names(*asked: str) -> list[str]:
        return [each["system"] for each in numbers(pipeline, *asked)]

    assert names("ours*.npy") == ["ours1", "ours2", "ours10"]
    assert names("ours?.npy", "theirs[1].npy") == ["ours1", "ours2", "theirs[1]"]
    assert {each["series"] for each in numbers(pipeline, "Ours=ours*.npy")} == {"Ours"}
    assert len(numbers(pipeline, "Ours=ours[12].npy,ours10.npy")) == 3
    compared = json.loads(pipeline("compare", "ours*.npy", "theirs*.npy", "--json")[1])
    assert len(compared) == 6
    assert "no file's name is of this pattern" in refused("evaluate", "mine*.npy")


def test_a_note_on_all_seeds_is_said_once(pipeline: Any, rng: np.random.Generator) -> None:
    captions = np.repeat(rng.standard_normal((40, 16)), 5, 0)
    for seed in range(3):
        noisy = captions + rng.standard_normal(captions.shape)
        np.save(f"ours{seed}.npy", -captions[::5] @ noisy.T)
    said = pipeline("evaluate", "Ours=ours0.npy,ours1.npy,ours2.npy")[2]
    assert said.count("note: ") == 1
    assert "note: ours0, ours1, ours2: the right answers rank at the end" in " ".join(said.split())


def test_seeds_that_rank_other_directions_have_no_mean() -> None:
    pair = Listed(np.array([0]), np.array([0]), np.array([0.5]))
    scores: list[Any] = [np.eye(2), Lists((2, 2), {"i2t": pair}, "run")]
    for first, second, said in (
        (*scores, "b: ranks i2t, the seeds before it i2t and t2i"),
        (*reversed(scores), "b: ranks i2t and t2i, the seeds before it i2t"),
    ):
        seed = Seed.of(System.of("a", first, np.arange(2)))
        refuse_other_seed(Seed.of(System.of("also a", first, np.arange(2))), seed)
        with pytest.raises(InputError, match=said):
            refuse_other_seed(Seed.of(System.of("b", second, np.arange(2))), seed)


def test_seeds_of_other_pools_have_no_mean() -> None:
    seeds = []
    for name, images in (("large", 1000), ("small", 500)):
        scores = np.zeros((images, 5 * images), np.float32)
        seeds.append(Seed.of(System.of(name, scores, np.arange(5 * images) // 5)))
    said = "small: has 500 images x 2,500 captions, large has 1,000 x 5,000: no mean"
    with pytest.raises(InputError, match=said):
        refuse_other_seed(seeds[1], seeds[0])


def test_pools_of_two_sizes_are_told_apart_wherever_they_stand_together(pipeline: Any) -> None:
    for images in (20, 40):
        np.save(f"of{images}.npy", np.eye(images).repeat(5, 1))
    asked = ("evaluate", "of20.npy", "of40.npy")
    for more in ((), ("-v",)):
        assert "pools differ in size: a smaller one is easier" in pipeline(*asked, *more)[1]
    assert "differ in size" not in pipeline("evaluate", "of20.npy")[1]
    rows = list(csv.DictReader(io.StringIO(pipeline(*asked, "--csv")[1])))
    assert [row["test set"] for row in rows] == ["all-20x100", "all-40x200"]


def test_the_long_form_shows_ranks_ties_and_intervals(scored_run: Any) -> None:
    out = scored_run("evaluate", *RUN, "-v")[1]
    fused = results()["vse2ad-RG-bigru-s0"]["all"]
    interval = fused["interval"]["t2i"]["R@1"]
    assert "{:.1f} [{:.1f}, {:.1f}]".format(fused["t2i"]["R@1"], *interval) in out
    assert "vse2ad-RG-bigru-s0, test split, 12 images x 60 captions, protocol all" in out
    assert all(word in out for word in ("MedR", "MeanR", "tied queries", "95 % intervals"))
    assert max(map(len, out.splitlines())) <= 80


def test_a_run_is_printed_as_rows_of_a_table(scored_run: Any) -> None:
    out = scored_run("evaluate", *RUN, "--markdown")[1]
    fused = results()["vse2ad-RG-bigru-s0"]["all"]
    cells = [f"{fused[way][f'R@{k}']:.1f}" for way in ("i2t", "t2i") for k in (1, 5, 10)]
    assert out.startswith("Test split, 12 images x 60 captions, protocol all, in percent.")
    (row,) = (
        line.replace("*", "")
        for line in out.splitlines()
        if line.startswith("| vse2ad-RG-bigru-s0 |")
    )
    assert row == f"| vse2ad-RG-bigru-s0 | {' | '.join(cells)} | {fused['RSUM']:.1f} |"
    lines = scored_run("evaluate", *RUN, "--csv")[1].splitlines()
    assert lines[0].startswith("test set,rows,Method,Image → Text R@1,")
    assert f"test-all,,vse2ad-RG-bigru-s0,{','.join(cells)},{fused['RSUM']:.1f}" in lines
    assert f"vse2ad-RG-bigru-s0 & {cells[0]} &" in scored_run("evaluate", *RUN, "--latex")[
        1
    ].replace(r"\bfseries ", "")


@pytest.fixture
def benchmark(pipeline: Any, rng: np.random.Generator) -> dict[str, Any]:
    """What is measured of a matrix of Flickr30K's size by its protocol."""
    own = np.arange(5000) // 5 == np.arange(1000)[:, None]
    np.save("ours.npy", (3 * own + rng.standard_normal((1000, 5000))).astype(np.float32))
    return numbers(pipeline, "--system", "ours.npy", "--protocol", "flickr30k_1k")[0]


def test_a_row_is_below_the_published_ones_of_its_benchmark(
    pipeline: Any, benchmark: dict[str, Any]
) -> None:
    beside = ("evaluate", "--system", "ours.npy", "--beside", "flickr30k")
    rsum = f"{benchmark['RSUM']:.1f}"
    tex, markdown, text = (
        pipeline(*beside, *form)[1] for form in (["--latex"], ["--markdown"], [])
    )
    assert "of this file only the size is known" in pipeline(*beside)[2]
    assert "Flickr30K 1K, 1000 images x 5000 captions, protocol flickr30k_1k, in percent." in text
    assert text.index("VSE∞ (RG)") < text.index("Measured here") < text.index(rsum)
    assert r"\multicolumn{8}{c}{\textit{Published by Geigle et al., G2: cross-encoders}}" in tex
    assert (
        "DIME(i2t) (R) | 77.5 | 93.5 | 97.4 | 64.6<sup>a</sup>" in markdown
    )  # a cell in doubt, with its note
    assert f"ours & {benchmark['i2t']['R@1']:.1f} &" in tex
    rows = list(csv.DictReader(io.StringIO(pipeline(*beside, "--csv")[1])))
    assert (len(rows), rows[-1]["Method"], rows[-1]["RSUM"]) == (36, "ours", rsum)
    assert next(row["RSUM"] for row in rows if row["Method"] == "VSE∞ (RG)") == "514.8"


def test_seeds_with_commas_between_are_one_row_with_a_title(
    pipeline: Any, refused: Callable[..., str], rng: np.random.Generator
) -> None:
    for name in ("base", "one", "two", "a=b"):
        np.save(f"{name}.npy", np.eye(40).repeat(5, 1) + rng.standard_normal((40, 200)))
    asked = ("evaluate", "base.npy", "Our method=one.npy,two.npy")
    found = numbers(pipeline, *asked[1:])
    assert [(each["system"], each.get("series"), each.get("seed")) for each in found] == [
        ("base", None, None),
        ("one", "Our method", 0),
        ("two", "Our method", 1),
    ]
    sums = [each["RSUM"] for each in found[1:]]
    shown = f"{np.mean(sums):.1f} ± {np.std(sums, ddof=1):.1f}"
    table, markdown = (pipeline(*asked, *form)[1] for form in ([], ["--markdown"]))
    assert [line.split()[0] for line in table.splitlines() if " ± " in line] == ["Our"]
    assert shown in table
    assert shown in markdown
    assert "| one |" not in markdown
    rows = list(csv.DictReader(io.StringIO(pipeline(*asked, "--csv")[1])))
    assert [(row["Method"], row["RSUM"]) for row in rows[1:]] == [
        ("Our method", f"{np.mean(sums):.1f}")
    ]
    assert (
        "Our method, protocol all, mean ± standard deviation of 2 seeds"
        in pipeline(*asked, "-v")[1]
    )
    assert numbers(pipeline, "a=b.npy")[0]["system"] == "a=b"  # a file's own name
    (pair,) = json.loads(pipeline("compare", "Theirs=base.npy", asked[2], "--json")[1])
    assert pair["systems"] == {"a": ["Theirs"], "b": ["Our method"]}
    assert pair["RSUM"]["b"] == pytest.approx(np.mean(sums))
    for files in (["one.npy,two.npy"], ["one.npy", "two.npy"]):
        said = refused("evaluate", *files, "--card", "card.html")
        assert "one FILE alone" in said
        assert said.endswith(": each FILE needs a call of its own")
    assert "is named twice" in refused("evaluate", "one.npy,one.npy")
    assert "three.npy: no such file" in refused("evaluate", "one.npy,three.npy")


def test_a_title_and_a_file_may_contain_an_equals_sign(
    pipeline: Any, refused: Callable[..., str], rng: np.random.Generator
) -> None:
    Path("lr=1").mkdir()
    for name in ("a", "lr=1/a", "lr=1/b"):
        np.save(f"{name}.npy", np.eye(40).repeat(5, 1) + rng.standard_normal((40, 200)))
    cases = {
        "lr=1e-4=a.npy": ["lr=1e-4"],
        "Ours=lr=1/a.npy": ["Ours"],
        "lr=1=lr=1/a.npy": ["lr=1"],
        "lr=1=lr=1/a.npy,lr=1/b.npy": ["lr=1", "lr=1"],
        "lr=1/a.npy": ["a"],
    }
    for text, titles in cases.items():
        found = [each.get("series", each["system"]) for each in numbers(pipeline, text)]
        assert found == titles, text
    assert "lr=1/c.npy: no such file" in refused("evaluate", "Ours=lr=1/c.npy")


@pytest.mark.usefixtures("benchmark")
def test_methods_are_chosen_of_the_published_rows(pipeline: Any) -> None:
    def methods(asked: str) -> list[str]:
        out = pipeline("evaluate", "ours.npy", "--beside", asked, "--csv")[1]
        return [row["Method"] for row in csv.DictReader(io.StringIO(out))]

    assert methods("flickr30k:VSE∞,VSE+2AD BERT RG") == [
        "VSE∞ (R)",
        "VSE∞ (RG)",
        "VSE∞ (R)",
        "VSE∞ (RG)",
        "VSE+2AD (RG)",
        "ours",
    ]
    assert methods("Flickr30K:scan(t2i),pfan") == ["SCAN(t2i) (R)", "PFAN", "ours"]
    latex = pipeline(
        "evaluate", "ours.npy", "--beside", "flickr30k:VSE++,VSE+2AD BERT R", "--latex"
    )[1]
    assert latex.count("As printed; ") == 1  # the one note of a row that is shown
    assert latex.count("{\\fontsize{7}{7}\\selectfont a}") == 3


@pytest.mark.usefixtures("benchmark")
def test_headings_are_printed_once_for_rows_without_a_title(pipeline: Any) -> None:
    lines = pipeline("evaluate", "ours.npy", "--beside", "flickr30k:VSE∞")[1].splitlines()
    titles = [at for at, line in enumerate(lines) if line.startswith(("Published", "Measured"))]
    assert [lines[at - 1] for at in titles] == [""] * 3
    assert sum("Image → Text" in line for line in lines) == len(titles)


def test_no_other_measurement_is_beside_published_rows(refused: Callable[..., str]) -> None:
    np.save("ours.npy", np.eye(20).repeat(5, 1))
    ours = ("evaluate", "--system", "ours.npy", "--beside")
    assert "protocol flickr30k_1k is defined for 1000 images, received 20" in refused(
        *ours, "flickr30k"
    )
    for name in (
        "flickr8k",
        "flickr30",
    ):  # a near name is another data set's: no message may send one there
        assert (
            f"--beside {name}: no published rows of it are shipped; there are those of flickr30k, coco_1k, "
            "coco_5k, msrvtt, vatex"
        ) in refused(*ours, name)
    assert "needs the protocol coco_5k, received coco_1k_5fold" in refused(
        *ours, "coco_5k", "--protocol", "coco_1k_5fold"
    )
    assert "--latex and --json are two ways to print" in refused(*ours[:-1], "--json", "--latex")
    store = score("grid")
    assert (
        f"{store.stem}: is of sample, whose card does not name flickr30k_1k: published rows are of other"
        in refused("evaluate", str(store), "--beside", "flickr30k")
    )
    assert "--beside needs a FILE" in refused("evaluate", *RUN, "--beside", "coco_5k")


def test_an_ensemble_of_older_heads_is_refused(
    scored_run: Any, refused: Callable[..., str]
) -> None:
    score("grid", content=b"trained again")
    assert "vse2ad-RG-bigru-s0.zarr: is an ensemble of an older vse2ad-grid-bigru-s0" in refused(
        "evaluate", *RUN
    )
    assert not Path("results/metrics.json").exists()
    scored_run("ensemble", "RG")
    assert scored_run("evaluate", *RUN)[0] == 0


@pytest.mark.specification
def test_a_head_trained_since_it_was_scored_is_refused(
    scored_run: Any, refused: Callable[..., str]
) -> None:
    name = "vse2ad-region-bigru-s0"
    shutil.rmtree(Path("heads/sample", name))
    head = invented_heads.head(Path("heads/sample"), name, [100.0])
    saved.changed(
        Path(f"similarities/sample/{name}.zarr"),
        made_from={"head": HeadArtefact.open(head).reference},
    )
    for command in (("ensemble", "R"), ("ensemble", "RG"), ("evaluate", *RUN)):
        assert scored_run(*command)[0] == 0
    records.update(head, facts=records.load(head).facts | {"vocabulary": "of another training"})
    assert (
        "is not the head that was scored; run `pipeline score` again for vse2ad-region"
        in refused("evaluate", *RUN)
    )


def test_systems_of_another_manifest_or_split_are_refused(
    scored_run: Any, refused: Callable[..., str]
) -> None:
    store = score("grid", manifest="n" * 64)
    assert "its manifest is" in refused("evaluate", *RUN)
    shutil.rmtree(store)
    score("grid", split="val").rename(store)  # as earlier versions left it
    assert "its split is 'val', that of" in refused("evaluate", *RUN)


def test_scores_of_two_splits_stay_beside_each_other_and_are_named(scored_run: Any) -> None:
    stores = {
        "test": Path("similarities/sample/vse2ad-R-bigru-s0.zarr"),
        "val": Path("similarities/sample/val/vse2ad-R-bigru-s0.zarr"),
    }
    (before,) = numbers(scored_run, "--system", stores["test"])
    for feature in ("region", "grid"):
        score(feature, noise=4.0, split="val")
    on_val = (*RUN, "-S", "score.split=val", "-S", "run.rescorers=[{name: csls}]")
    for command in ("ensemble", "rescore", "evaluate"):
        code, out, err = scored_run(command, *on_val)
        assert code == 0, err
    assert out.startswith("Val split, 12 images x 60 captions, protocol all\n")
    assert "  vse2ad-R-bigru-s0+csls " in out
    assert {path.name for path in Path("results/headline").iterdir()} == {
        f"vse2ad-{name}-bigru-s0{step}-val.json"
        for name in ("grid", "R", "RG")
        for step in ("", "+csls")
    }
    for split, store in stores.items():
        (found,) = numbers(scored_run, "--system", store)
        assert found["split"] == split
        assert (found == before) == (split == "test")
        assert f"{split} split, 12 images" in scored_run("evaluate", "--system", store)[1]
    pair = ("vse2ad-R-bigru", "vse2ad-RG-bigru")
    compared = json.loads(scored_run("compare", *pair, "--json", "-S", "score.split=val")[1])[0]
    assert compared["split"] == "val"
    assert compared["RSUM"]["a"] == pytest.approx(found["RSUM"])
    assert "test split, 12 images x 60 captions" in scored_run("compare", *pair)[1]
    members = [
        stores["val"].with_name(f"vse2ad-{name}-bigru-s0.zarr") for name in ("region", "grid")
    ]
    assert scored_run("ensemble", "mine", "--member", members[0], "--member", members[1])[0] == 0
    assert Path("similarities/sample/val/mine.zarr").is_dir()


def test_embeddings_are_a_source_like_their_product(
    pipeline: Any, refused: Callable[..., str], rng: np.random.Generator
) -> None:
    images, captions = (rng.standard_normal((size, 8)).astype(np.float32) for size in (6, 12))
    for name, values in (("i", images), ("c", captions), ("s", images @ captions.T)):
        np.save(f"{name}.npy", values)
    few = ("--captions-per-image", "2")
    (product,) = numbers(pipeline, "--system", "s.npy", *few)
    (found,) = numbers(pipeline, "--embeddings", "i.npy", "c.npy", *few)
    assert found.pop("notes")  # lengths differ
    assert {name for name in found if found[name] != product[name]} == {"system", "read_as"}
    captions[7, 3] = np.inf
    np.save("c.npy", captions)
    said = refused("evaluate", "--embeddings", "i.npy", "c.npy", *few)
    assert "caption embeddings: row 7, dimension 3 is inf" in said


@pytest.mark.specification
def test_one_nan_is_refused_with_its_place(
    refused: Callable[..., str], rng: np.random.Generator
) -> None:
    scores = rng.random((20, 100)).astype(np.float16)
    scores[13, 44] = np.nan
    np.save("s.npy", scores)
    assert "row 13 (image), column 44 (caption) is nan" in refused("evaluate", "--system", "s.npy")


def test_a_cutoff_that_takes_every_candidate_is_noted(
    pipeline: Any, rng: np.random.Generator
) -> None:
    np.save("s.npy", rng.random((20, 100)).astype(np.float32))

    def notes(*arguments: str) -> list[str]:
        (found,) = numbers(pipeline, "s.npy", *arguments)
        return [note for note in found["notes"] if "takes all" in note]

    assert notes("--metric", "R@19", "--metric", "R@1000000", "--metric", "R@1000000") == [
        "s: R@1000000 takes all 100 captions of image → caption and all 20 images of caption → "
        "image, and is 100 there for any scores; choose a smaller cutoff"
    ]
    (note,) = notes("--metric", "Recall@20", "--metric", "nDCG@1000")
    assert "Recall@20 takes all 20 images of caption → image, and is 100 there" in note
    (note,) = notes("--metric", "R@7", "--folds", "4")
    assert "R@7 takes all 5 images" in note


def test_a_run_file_has_the_best_hundred_of_each_query_or_as_many_as_are_asked_for(
    pipeline: Any, rng: np.random.Generator
) -> None:
    np.save("s.npy", rng.normal(size=(22, 110)).astype(np.float32))
    for given, best in (((), 100), (("--top", "7"), 7)):
        code, _, err = pipeline("evaluate", "s.npy", "--run", "run.txt", *given)
        assert code == 0, err
        listed = Counter(line.split()[0] for line in Path("run.txt").read_text().splitlines())
        assert Counter(listed.values()) == Counter({best: 22}) + Counter({min(best, 22): 110})


def test_a_refusal_is_no_failed_write(pipeline: Any, refused: Callable[..., str]) -> None:
    np.save("s.npy", np.eye(4, 20, dtype=np.float32))
    assert refused("evaluate", "s.npy", "--record").endswith(
        "leave out --record; the numbers above are whole"
    )


def test_numbers_are_printed_although_a_file_beside_them_cannot_be_written(pipeline: Any) -> None:
    np.save("s.npy", np.eye(4, 20, dtype=np.float32))
    expected = numbers(pipeline, "s.npy")
    for option in ("--run", "--save-qrels", "--per-query", "--card"):
        full = Path("full").with_suffix(
            {"--per-query": ".csv", "--card": ".html"}.get(option, ".txt")
        )
        full.symlink_to("/dev/full")
        other = ("--save-qrels" if option == "--run" else "--run", "whole.txt")
        code, out, err = pipeline("evaluate", "s.npy", "--json", option, full, *other)
        assert (code, json.loads(out)) == (2, expected)
        assert err.strip().splitlines()[-1] == (
            f"error: {full}: No space left on device; the numbers above are whole; name another "
            "place, or free some space"
        )
        assert len(Path("whole.txt").read_text().splitlines()) >= 20  # the others are written
        full.unlink()
        Path("whole.txt").unlink()


def test_a_runs_numbers_are_printed_on_a_full_disk(scored_run: Any) -> None:
    score("region")
    Path("results").mkdir()
    METRICS.symlink_to("/dev/full")
    code, out, err = scored_run("evaluate", *RUN, "--json")
    assert code == 2
    assert json.loads(out)[0]["RSUM"] > 0
    assert "results/metrics.json: No space left on device; the numbers above" in err


def test_a_place_is_refused_before_anything_is_measured(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "measure", lambda *_: pytest.fail("nothing is measured"))
    np.save("s.npy", np.eye(4, 20, dtype=np.float32))
    np.savez("lists.npz", ids=np.arange(20).reshape(4, 5), scores=-np.arange(20.0).reshape(4, 5))
    Path("former.html").write_text("former")
    Path("former.html").chmod(0o444)
    for option in ("--run", "--save-qrels", "--card"):
        assert "is read-only; make it writable" in refused(
            "evaluate", "s.npy", option, "former.html"
        )
        assert "s.npy is a file" in refused("evaluate", "s.npy", option, "s.npy/a.html")
    for option in ("--run", "--card"):
        said = refused("evaluate", "lists.npz", "--captions-per-image", "5", option, "new.html")
        assert option in said
        assert "list" in said
    assert Path("former.html").read_text() == "former"


def test_options_that_would_do_nothing_are_refused(refused: Callable[..., str]) -> None:
    store = score("region")
    cases = {
        ("--manifest", "m.parquet"): "leave out --manifest",
        ("--captions-per-image", "5"): "leave out --manifest",
        ("--json", "--markdown"): "--markdown and --json are two ways to print",
        ("--protocol", "all", "--folds", "2"): "give --protocol or --folds",
    }
    for arguments, said in cases.items():
        assert said in refused("evaluate", "--system", store, *arguments)


def test_a_split_needs_a_manifest(refused: Callable[..., str]) -> None:
    np.save("s.npy", np.eye(5, 25, dtype=np.float32))
    assert "--split needs --manifest" in refused("evaluate", "--system", "s.npy", "--split", "val")
    assert "--ties" not in refused(
        "evaluate", "--ties", "pessimistic", *RUN
    )  # of use for a run as well


def test_extended_measures_need_cocos_ids_and_their_package(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    extended = ("--extended", "eccv_caption")
    np.save("s.npy", np.eye(5, 25, dtype=np.float32))
    assert "name its --manifest" in refused("evaluate", "--system", "s.npy", *extended)
    path = score("region")
    assert "5000 of the 5000 images of ECCV Caption" in refused(
        "evaluate", "--system", path, *extended
    )
    monkeypatch.setitem(sys.modules, "eccv_caption", None)
    assert "[eccv]'" in refused("evaluate", "--system", path, *extended)


def test_extended_measures_stand_beside_the_recalls(
    pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = score("region")
    store = System.open(path)
    relevance = Relevance.of_owner(store.caption_image, len(store.image_ids))
    monkeypatch.setattr(
        coco_pairs,
        "eccv_caption",
        lambda collection: (
            np.arange(len(store.image_ids)),
            np.arange(len(store.caption_ids)),
            {"eccv": relevance},
        ),
    )
    (whole,) = numbers(pipeline, "--system", path, "--extended", "eccv_caption")
    found = whole["extended"]["eccv"]
    assert found["t2i"]["R@5"] == pytest.approx(whole["t2i"]["R@5"])
    for output in ([], ["--markdown"]):
        out = pipeline("evaluate", "--system", path, "--extended", "eccv_caption", *output)[1]
        assert "eccv mAP@R: image → caption {:.1f} [".format(found["i2t"]["mAP@R"]) in out.replace(
            "\\", ""
        )


def test_judgements_of_a_file_are_taken_for_any_matrix(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    scores = np.zeros((2, 3))
    scores[0, 1] = scores[1, 2] = 1
    np.save("s.npy", scores)
    Path("j.txt").write_text("1 0 0 1\n2 0 1 1\n0 0 0 1\n0 0 1 1\n")
    code, out, _ = pipeline("evaluate", "--system", "s.npy", "--qrels", "j.txt")
    assert code == 0
    assert "2 images x 3 captions" in out
    assert "relevance: j.txt, 4 pairs" in out
    assert "100.0" in out.splitlines()[3]
    Path("j.txt").write_text("1 0 0 high\n")
    assert "the first: row 1: 1 0 high (a grade that is no number)" in refused(
        "evaluate", "--system", "s.npy", "--qrels", "j.txt"
    )
    assert "give one" in refused(
        "evaluate", "--system", "s.npy", "--qrels", "j.txt", "--same-text", "positive"
    )


def test_equal_captions_are_one_query_of_several_images(
    pipeline: Any, refused: Callable[..., str], scenes: Manifest
) -> None:
    scenes.save(Path("m.parquet"))
    split = scenes.split("test")
    np.save("s.npy", np.zeros((len(split.image_ids), len(split.caption_ids)), np.float32))
    given = ("--system", "s.npy", "--same-text", "positive")
    (found,) = numbers(pipeline, *given, "--manifest", "m.parquet")
    assert found["captions"] == len({caption.strip() for caption in split.captions})
    assert found["relevance"]["source"] == "equal captions"
    assert "name its --manifest" in refused("evaluate", *given)


def test_a_transposed_matrix_is_recognised(refused: Callable[..., str], scenes: Manifest) -> None:
    scenes.save(Path("m.parquet"))
    split = scenes.split("test")
    np.save("s.npy", np.zeros((len(split.caption_ids), len(split.image_ids)), np.float32))
    for more in ((), ("--manifest", "m.parquet")):
        said = refused("evaluate", "--system", "s.npy", *more)
        assert "it is transposed; save its transpose" in said


def test_the_file_that_vse_infty_saves_is_read(
    pipeline: Any, refused: Callable[..., str], rng: np.random.Generator
) -> None:
    scores = rng.random((6, 30)).astype(np.float32)
    np.save("plain.npy", scores)
    np.save("theirs.npy", {"npts": 6, "sims": scores})
    plain, theirs = numbers(pipeline, "plain.npy", "theirs.npy")
    assert [plain[way] for way in ("i2t", "t2i")] == [theirs[way] for way in ("i2t", "t2i")]
    for number, held in enumerate(({"npts": 6, "sims": "none"}, {"npts": Path("x")})):
        np.save(f"other{number}.npy", np.array(held, object))
        said = refused("evaluate", "--system", f"other{number}.npy")
        assert "holds no array" in said or "not only arrays in dicts and lists" in said


def test_a_likely_mistake_is_noted_and_the_note_says_what_to_type(
    pipeline: Any, rng: np.random.Generator
) -> None:
    shown = rng.standard_normal((30, 16))
    captions = np.repeat(shown, 5, 0) + rng.standard_normal((150, 16))
    np.save("s.npy", -shown @ captions.T)
    _, out, said = pipeline("evaluate", "--system", "s.npy", "--json")
    assert "note: s: the right answers rank at the end" in said
    assert "--distance ranks the smallest first" in json.loads(out)[0]["notes"][0]
    _, out, said = pipeline("evaluate", "--system", "s.npy", "--distance", "--json")
    assert "note" not in said
    assert json.loads(out)[0]["notes"] == []
    assert json.loads(out)[0]["RSUM"] > 300
    np.save("i.npy", shown)
    np.save("c.npy", captions)
    _, out, said = pipeline("evaluate", "--embeddings", "i.npy", "c.npy", "--json")
    assert "--normalise divides each vector by its length" in said
    assert said.split("note: ")[1].split() == json.loads(out)[0]["notes"][0].split()
    _, out, said = pipeline("evaluate", "--embeddings", "i.npy", "c.npy", "--normalise", "--json")
    assert "note" not in said
    np.save("t.npy", -shown @ captions.T + 1)
    _, out, said = pipeline("compare", "s.npy", "t.npy", "--json")
    assert said.count("note: ") == len(json.loads(out)[0]["notes"]) == 1
    assert "note: s, t: the right answers rank at the end" in said
    assert "note" not in pipeline("compare", "s.npy", "t.npy", "--distance")[2]


def test_the_wrong_kind_of_file_is_refused_with_the_right_option(
    refused: Callable[..., str],
) -> None:
    np.save("s.npy", np.eye(2, 10))
    np.save("i.npy", np.eye(2, 3))
    np.save("c.npy", np.ones((10, 3)))
    vectors, swapped = ("--embeddings", "i.npy", "c.npy"), ("--embeddings", "c.npy", "i.npy")
    cases = {
        ("s.npy", "--normalise"): "--normalise is for vectors; s.npy holds similarities",
        swapped: "10 vectors, then 2, captions before images: give the images' file first",
        (
            "--embeddings",
            "i.npy",
            "i.npy",
        ): "2 x 2 vectors, expected 2 of images and 10 of captions",
        (*vectors, "--distance"): "--distance is for a matrix",
        ("i.npy",): "vectors are given with those of the other side, images.npy:captions.npy",
    }
    for arguments, said in cases.items():
        assert said in refused("evaluate", *arguments)
