"""`pipeline add`: scores from elsewhere as a system of the run, in every command that takes one."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import invented_run
import numpy as np
import pytest

from pipeline.foundation import settings
from pipeline.foundation.artefacts import record as records
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.made import OfGiven
from pipeline.judge.systems.scores.system import System
from pipeline.run.report.tables import TABLES
from stages import add as adding

pytestmark = pytest.mark.slow

IMAGES, CAPTIONS = 6, 12
HEAD, ADD = "vse2ad-region-bigru-s0", ("add", "ours", "--title", "Ours & theirs")
STORE = Path("similarities", "sample", "ours.zarr")
METRICS = Path("results", "metrics.json")


@pytest.fixture
def scores(pipeline: Any, invented: Path, tmp_path: Path, rng: np.random.Generator) -> np.ndarray:
    """The invented run, and the file of another system's scores, float64 [I, C]."""
    shutil.copytree(invented, tmp_path, dirs_exist_ok=True)
    own = np.arange(CAPTIONS) // invented_run.EACH == np.arange(IMAGES)[:, None]
    values: np.ndarray = own + 0.5 * rng.standard_normal((IMAGES, CAPTIONS))
    np.save("ours.npy", values)
    return values


@pytest.fixture
def added(pipeline: Any, scores: np.ndarray) -> np.ndarray:
    """The same, added to the run."""
    code, out, err = pipeline(*ADD, "--scores", "ours.npy")
    assert code == 0, err
    assert "ours.zarr: 6 images x 12 captions of test" in out
    return scores


def traced(pipeline: Any, *result: str | Path) -> list[tuple[str, str, str]]:
    """The steps of a trace that are of given files, or do not match: path, what is compared,
    verdict.
    """
    steps = json.loads(pipeline("trace", *result, "--embed", "0", "--json")[1])
    return [
        (step["path"], step["what"], step["verdict"])
        for step in steps
        if step["path"].endswith(".npy") or "given" in step["what"]
    ]


@pytest.mark.specification
def test_scores_are_stored_as_they_are_with_what_they_are_of(added: np.ndarray) -> None:
    system, manifest = System.open_named(STORE), Manifest.load(Path("data/sample.parquet"))
    split = manifest.split("test")
    np.testing.assert_array_equal(system.similarity[:], added)
    for mine, wanted in (
        (system.image_ids, split.image_ids),
        (system.caption_ids, split.caption_ids),
        (system.caption_image, split.caption_image),
    ):
        np.testing.assert_array_equal(mine, wanted)
    made = system.made_from
    assert (made.dataset, made.split, made.manifest) == ("sample", "test", manifest.digest)
    assert isinstance(made, OfGiven)
    member = made.member
    assert member.given is not None
    assert (member.given.title, [*member.given.files]) == ("Ours & theirs", ["ours.npy"])
    record = records.load(STORE)
    assert (record.kind, record.request["files"]) == ("given", member.given.files)
    assert record.made_from["manifest"].name == "sample"


def test_scores_lie_at_their_data_set_and_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[Path, str]] = []
    monkeypatch.setattr(
        adding, "unless_up_to_date", lambda path, request, *_: written.append((path, request.split))
    )
    monkeypatch.setattr(adding, "reference", lambda file, dataset: None)
    np.save(tmp_path / "scores.npy", np.eye(2))
    shipped = settings.load(Path(__file__).parents[2] / "params.yaml")
    paths = Paths(tmp_path)
    own = shipped.run.dataset
    for scored, options, dataset, split in (
        ("test", {}, own, "test"),
        ("val", {}, own, "val"),
        ("test", {"split": "val"}, own, "val"),
        ("val", {"split": "test"}, own, "test"),
        ("val", {"dataset": "mine", "split": "train"}, "mine", "train"),
        ("val", {"dataset": "mine"}, "mine", "val"),
    ):
        score = shipped.score.model_copy(update={"split": scored})
        chosen = shipped.model_copy(update={"score": score})
        asked: Any = adding.AddOptions(name="ours", scores="scores.npy", **options)
        adding.add(paths, chosen, asked)
        assert written.pop() == (paths.similarity(dataset, "ours", split), split)


def test_what_the_file_was_read_as_and_what_was_assumed_is_said(
    pipeline: Any, scores: np.ndarray
) -> None:
    np.savez("ours.npz", sims=scores, losses=np.zeros(3))
    code, _, err = pipeline(*ADD, "--scores", "ours.npz")
    assert code == 0, err
    assert (
        "ours.npz: read as a NumPy archive: sims float64 [6, 12]; images and captions in the "
        "manifest's order (assumed); not used: losses float64 [3]"
    ) in " ".join(err.split())


@pytest.mark.specification
def test_of_distances_the_smallest_is_the_best(pipeline: Any, scores: np.ndarray) -> None:
    assert pipeline(*ADD, "--scores", "ours.npy", "--distance")[0] == 0
    system = System.open(STORE)
    np.testing.assert_array_equal(system.similarity[:], -scores)
    assert evaluate(system.similarity[:], system.caption_image).rsum < 300


@pytest.mark.usefixtures("added")
def test_an_older_manifest_asks_to_add_it_again(pipeline: Any, refused: Callable[..., str]) -> None:
    manifest = Manifest.load(Path("data/sample.parquet"))
    manifest.table["caption"] += "."
    Manifest(manifest.table, "sample", Path()).save(Path("data/sample.parquet"))
    evaluated = ("evaluate", str(STORE), "--same-text", "positive")
    assert "is of another manifest of sample; add it again" in refused(*evaluated)
    assert pipeline("add", "theirs", "--scores", "ours.npy")[0] == 0
    assert f"add theirs again, or score {HEAD} again" in pipeline("evaluate")[2]


@pytest.mark.usefixtures("added")
def test_the_same_file_is_nothing_to_do_and_another_one_is_asked_about(
    pipeline: Any, refused: Callable[..., str], scores: np.ndarray
) -> None:
    again = (*ADD, "--scores", "ours.npy")
    assert "nothing to do" in pipeline(*again)[1]
    assert "title was Ours & theirs, is ours; --if-changed redo replaces it" in refused(
        "add", "ours", "--scores", "ours.npy"
    )
    np.save("ours.npy", -scores)
    assert re.search(
        r"files\.ours\.npy was \w+\.\.\., is \w+\.\.\.; --if-changed redo replaces it",
        refused(*again),
    )
    assert System.open(STORE).similarity[0, 0] == scores[0, 0]
    assert "6 images x 12 captions" in pipeline(*again, "--if-changed", "redo")[1]
    assert System.open(STORE).similarity[0, 0] == -scores[0, 0]


def test_it_is_measured_and_shown_beside_the_heads(pipeline: Any, added: np.ndarray) -> None:
    assert pipeline("evaluate")[0] == 0
    measured = json.loads(METRICS.read_text(encoding="utf-8"))
    assert {"vse2ad-R-bigru-s0", "ours"} <= measured.keys()
    owner = System.open(STORE).caption_image
    assert measured["ours"]["all"]["RSUM"] == evaluate(added, owner).rsum
    assert pipeline("tables", "-S", "tables=[vse2ad_table1, vse_infty_table9]")[0] == 0
    table = Path("results/tables/vse2ad_table1.md").read_text(encoding="utf-8")
    assert re.search(r"\n\| \*Given\* [ |]+\n\|  \| Ours &amp; theirs \| [\d.]+ \|", table)
    assert "Given: scores that were computed elsewhere: Ours &amp; theirs (ours.npy)." in table
    assert f"ours.npy, SHA-256 {records.load(STORE).request['files']['ours.npy']}." in table
    assert r"Ours \& theirs" in Path("results/tables/vse2ad_table1.tex").read_text(encoding="utf-8")


def test_two_systems_of_one_title_have_a_row_each(pipeline: Any, added: np.ndarray) -> None:
    np.save("again.npy", added + 1)
    assert pipeline("add", "again", "--scores", "again.npy", "--title", "Ours & theirs")[0] == 0
    assert pipeline("evaluate")[0] == 0
    assert pipeline("tables", "--table", "systems")[0] == 0
    table = Path("results/tables/systems.md").read_text(encoding="utf-8")
    assert "| Ours &amp; theirs (again) |" in table
    assert "| Ours &amp; theirs (ours) |" in table
    assert "Ours &amp; theirs (again.npy), Ours &amp; theirs (ours.npy)." in table


@pytest.mark.usefixtures("added")
def test_other_systems_are_made_of_it(pipeline: Any) -> None:
    for command in (
        ("ensemble", "both", "--member", "ours", "--member", HEAD),
        ("rescore", "ours", "--by", "csls"),
        ("rerank", "--retriever", "ours", "--with", HEAD, "--k", "3", "--name", "first"),
        ("rerank", "--retriever", HEAD, "--with", "ours", "--k", "3", "--name", "second"),
        ("compare", "ours", HEAD),
        ("evaluate",),
        ("tables", "-S", "tables=[vse2ad_table1]"),
        ("report",),
    ):
        code, _, err = pipeline(*command)
        assert code == 0, (command, err)
    made = [*json.loads(METRICS.read_text(encoding="utf-8"))]
    assert {"both", "ours+csls", "first", "second"} <= {*made}
    table = Path("results/tables/vse2ad_table1.md").read_text(encoding="utf-8")
    for label in (
        "ensemble both (mean)",
        "theirs, csls (bank test)",
        "theirs, rerank (with vse2ad-region-bigru, k 3)",
    ):
        assert label in table
    page = Path("results/report.html").read_text(encoding="utf-8")
    assert page.count("Ours &amp; theirs") > 2  # among the results, and the hubs
    for name in ("both", "ours+csls", "first", "second"):
        assert traced(pipeline, METRICS, name) == [
            ("ours.npy", "SHA-256, by the record", "matches"),
            (str(STORE), "scores again, from the given files", "matches"),
        ], name


@pytest.mark.usefixtures("added")
def test_one_table_is_written_and_a_system_in_none_is_named(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    assert (
        pipeline("ensemble", "both", "--member", "ours", "--member", "vse2ad-grid-bigru-s0")[0] == 0
    )
    assert pipeline("evaluate")[0] == 0
    out = pipeline("tables", "--table", "systems")[1]
    assert out == "results/tables: systems, each as .tex and .md\n"
    assert {file.name for file in Path("results/tables").iterdir()} == {
        "systems.md",
        "systems.tex",
        "preview.tex",
    }
    assert "ensemble both (mean)" in Path("results/tables/systems.md").read_text(encoding="utf-8")
    out = pipeline("tables", "-S", "tables=[vse2ad_table1, systems]")[1]
    assert (
        "both: in none of these papers' tables: rerank_table1 and vse_infty_table2 would have it, and the settings "
        "do not list them; systems.md has it"
    ) in out
    assert "ours: in none" not in out
    shutil.rmtree("results/tables")
    out = pipeline("tables")[1]
    written = {file.stem for file in Path("results/tables").glob("*.tex")} - {"preview"}
    assert {"systems", "vse2ad_table1", "rerank_table1"} <= written
    assert not {"vse_infty_table10", "rerank_table3", "vse2ad_tableA1"} & written
    assert (
        f"left out: {len(TABLES) - len(written)} tables in which no system of the run has a row; "
        in out
    )
    assert pipeline("tables", "--all")[1].count("left out: ") == 0
    assert len([*Path("results/tables").glob("*.tex")]) > len(written) + 1
    assert "--all writes every table" in refused("tables", "--all", "--table", "systems")
    said = refused("tables", "--table", "vse2ad_tabl1")
    assert (
        "unknown table 'vse2ad_tabl1'; did you mean vse2ad_table1? (all: rerank_table1, rerank_table2"
        in said
    )


@pytest.mark.usefixtures("added")
def test_a_trace_and_verify_say_that_the_file_changed_or_is_gone(
    pipeline: Any, refused: Callable[..., str], scores: np.ndarray
) -> None:
    assert "7 files, all as written" in pipeline("store", "verify", STORE)[1]
    scores[2, 3] += 1
    np.save("ours.npy", scores)
    assert [verdict for *_, verdict in traced(pipeline, STORE)] == ["differs", "differs"]
    assert "1 of 7 files are not as they were" in refused("store", "verify", STORE)
    Path("ours.npy").unlink()
    code, out, _ = pipeline("store", "verify", STORE)
    assert (code, "ours.npy: SHA-256, by the record missing" in out) == (2, True)
    assert [verdict for *_, verdict in traced(pipeline, STORE)] == ["missing", "missing"]
    os.mkfifo("ours.npy")
    assert [verdict for *_, verdict in traced(pipeline, STORE)] == ["differs", "differs"]
    assert "1 of 7 files are not as they were" in refused("store", "verify", STORE)


@pytest.mark.usefixtures("added")
def test_what_was_made_of_other_scores_is_left_out(pipeline: Any, scores: np.ndarray) -> None:
    assert pipeline("ensemble", "both", "--member", "ours", "--member", HEAD)[0] == 0
    np.save("ours.npy", -scores)
    assert pipeline(*ADD, "--scores", "ours.npy", "--if-changed", "redo")[0] == 0
    code, _, err = pipeline("evaluate")
    assert code == 0
    assert "both.zarr: is an ensemble of an older ours than the current one" in err


@pytest.mark.usefixtures("scores")
def test_vectors_are_multiplied_and_kept_if_they_have_length_1(
    pipeline: Any, rng: np.random.Generator
) -> None:
    images, captions = (
        rng.standard_normal((size, 4)).astype(np.float32) for size in (IMAGES, CAPTIONS)
    )
    np.save("i.npy", images)
    np.save("c.npy", captions)
    np.save("short.npy", images / np.linalg.norm(images, axis=1, keepdims=True) / 2)
    np.save("long.npy", captions / np.linalg.norm(captions, axis=1, keepdims=True))
    for name, *given in (
        ("raw", "i.npy", "c.npy"),
        ("short", "short.npy", "long.npy"),
        ("unit", "i.npy", "c.npy", "--normalise"),
    ):
        code, _, err = pipeline("add", name, "--embeddings", *given)
        assert code == 0, err
    raw, short, unit = (
        System.open(STORE.with_name(f"{name}.zarr")) for name in ("raw", "short", "unit")
    )
    products = images @ captions.T
    lengths = np.linalg.norm(images, axis=1)[:, None] * np.linalg.norm(captions, axis=1)
    for system, expected in (
        (raw, products),
        (short, products / lengths / 2),
        (unit, products / lengths),
    ):
        assert np.abs(np.asarray(system.similarity[:]) - expected).max() < 1e-5
    assert (raw.has_vectors(), short.has_vectors(), unit.has_vectors()) == (False, False, True)
    for system in (raw, unit):
        assert {verdict for *_, verdict in traced(pipeline, system.path)} == {"matches"}


def test_a_run_is_measured_as_far_as_it_is_scored(
    pipeline: Any, refused: Callable[..., str], scores: np.ndarray
) -> None:
    folder = Path("similarities", "sample")
    for name in ("R", "RG", "RGP", "patch"):
        folder.joinpath(f"vse2ad-{name}-bigru-s0.zarr").rename(f"{name}.gone")
    code, out, err = pipeline("evaluate", "-S", "run.ablations=[]", "--json")
    assert code == 0, err
    assert [each["system"] for each in json.loads(out)] == [HEAD, "vse2ad-grid-bigru-s0"]
    assert (
        "not scored, and left out: vse2ad-patch-bigru-s0 (`pipeline score`); vse2ad-R-bigru-s0, "
        "vse2ad-RG-bigru-s0, vse2ad-RGP-bigru-s0 (`pipeline ensemble`)"
    ) in err
    for store in folder.glob("*.zarr"):
        store.rename(f"{store.stem}.gone")
    assert "sample: nothing is scored on test; run `pipeline score`, or `pipeline add`" in refused(
        "evaluate"
    )
    assert pipeline(*ADD, "--scores", "ours.npy")[0] == 0
    assert [each["system"] for each in json.loads(pipeline("evaluate", "--json")[1])] == ["ours"]
    assert pipeline("report")[0] == 0
    assert "b=ours" in Path("results/report.html").read_text(
        encoding="utf-8"
    )  # its numbers lead to its queries


def test_bad_input_is_refused_in_one_line(
    pipeline: Any, refused: Callable[..., str], scores: np.ndarray
) -> None:
    assert "give --scores FILE, or --embeddings IMAGES CAPTIONS" in refused(*ADD)
    assert "nothing.npy: no such file" in refused(*ADD, "--scores", "nothing.npy")
    assert "'../ours': a system's name consists of letters" in refused(
        "add", "../ours", "--scores", "ours.npy"
    )
    assert f"{HEAD}: is a system of this run" in refused("add", HEAD, "--scores", "ours.npy")
    np.save("part.npy", scores[:, :10])
    assert "the matrix is 6 x 10, expected 6 images x 12 captions" in refused(
        *ADD, "--scores", "part.npy"
    )
    np.save("turned.npy", scores.T)
    assert "it is transposed" in refused(*ADD, "--scores", "turned.npy")
    scores[1, 2] = np.nan
    np.save("nan.npy", scores)
    assert "row 1 (image), column 2 (caption) is nan" in refused(*ADD, "--scores", "nan.npy")
    assert not STORE.exists()
    assert "is for --embeddings" in refused(*ADD, "--scores", "ours.npy", "--normalise")
    assert "make it with `pipeline manifest" in refused(
        *ADD, "--scores", "ours.npy", "--dataset", "flickr8k"
    )
    assert pipeline(*ADD, "--scores", "ours.npy")[0] == 0
    assert "was added with its scores" in refused("score", "--system", "ours")
    assert "take --bank test" in refused("rescore", "ours", "--by", "nnn")
    assert (
        pipeline("rerank", "--retriever", "ours", "--with", HEAD, "--k", "3", "--name", "best")[0]
        == 0
    )
    assert "has no score for each pair" in refused(
        "add", "again", "--scores", STORE.with_name("best.zarr")
    )
    assert (
        pipeline("add", "again", "--scores", STORE.with_name(f"{HEAD}.zarr"))[0] == 0
    )  # ids are its own
