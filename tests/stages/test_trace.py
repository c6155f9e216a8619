"""`pipeline trace`: from a figure to the photograph, every step compared; whatever is changed, it
says which.
"""

from __future__ import annotations

import fnmatch
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import saved
import tampering
import zarr
from command_line import PARAMS

from pipeline.foundation import artefacts, settings
from pipeline.foundation.artefacts import record as records
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.request import ManifestRequest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.system import System
from pipeline.run.provenance.trace import Traced, trace

pytestmark = pytest.mark.slow

HEAD, ENSEMBLE = "vse2ad-region-bigru-s0", "vse2ad-R-bigru-s0"
SCORES, FUSED = (Path("similarities/sample", f"{name}.zarr") for name in (HEAD, ENSEMBLE))
RERANKED = Path("similarities/sample/a-reranked.zarr")
METRICS = Path("results/metrics.json")
RESULT = (METRICS, ENSEMBLE)
RUN = ("-S", "run.features=[region]", "-S", "run.ablations=[]")


def traced(pipeline: Any, *arguments: str | Path) -> tuple[int, list[dict[str, Any]], str]:
    code, out, err = pipeline("trace", *arguments, "--json")
    return code, json.loads(out or "[]"), err


def wrong(pipeline: Any, *arguments: str | Path) -> list[str]:
    """What a trace that must end with 2 says: a line for each step that does not match, or the one
    error.
    """
    code, steps, err = traced(pipeline, *(arguments or RESULT))
    assert code == 2
    return [
        f"{step['path']}: {step['what']} {step['verdict']}"
        for step in steps
        if step["verdict"] != "matches"
    ] or err.strip().splitlines()[-1:]


def test_every_step_from_the_figure_to_the_photograph_matches(pipeline: Any, run: Path) -> None:
    manifest = Manifest.load(Path("data/sample.parquet"))
    split = manifest.split("test")
    caption, image = int(split.caption_ids[-1]), int(split.image_ids[split.caption_image[-1]])
    row = int(np.flatnonzero(manifest.images["image_id"] == image)[0])
    code, steps, _ = traced(pipeline, *RESULT)
    assert (code, {step["verdict"] for step in steps}) == (0, {"matches"})
    assert any("of every file of its 3 shards" in step["what"] for step in steps)
    assert steps[-1]["what"] == "BLAKE2b of 24 images, by region.zarr"
    code, steps, _ = traced(pipeline, *RESULT, "--caption", str(caption))
    assert (code, {step["verdict"] for step in steps}) == (0, {"matches"})
    assert f"features/sample/region.zarr/features/c/{row // 10}/0/0" in [
        step["path"] for step in steps
    ]
    assert steps[-1]["path"] == str(manifest.images_folder / manifest.images["file"][row])
    assert steps == traced(pipeline, *RESULT, "--image", str(image))[1]
    # A store by itself is traced from there on: nothing above it vouches for it.
    alone = traced(pipeline, FUSED, "--caption", str(caption))[1]
    above = ("measured again", "intervals again", "hits of each image again")
    rest = [
        step
        for step in steps
        if step["path"] != str(METRICS)
        and step["what"] != "the system of metrics"
        and not step["what"].startswith(above)
    ]
    assert alone == rest


def test_a_reranked_system_is_traced_to_its_retriever_and_its_scorer(
    pipeline: Any, run: Path
) -> None:
    code, steps, _ = traced(pipeline, RERANKED, "--embed", "0")
    assert (code, {step["verdict"] for step in steps}) == (0, {"matches"})
    assert [step["what"] for step in steps if step["path"] == str(RERANKED)] == [
        "the name it was written under",
        "whose scores, by the manifest",
        f"candidates again, by {ENSEMBLE}",
        f"what made its scorer {HEAD}",
        "its facts, by what it was made from",
        "pairs scored again",
    ]
    inside = [Path(step["path"]) for step in steps if Path(step["path"]).parent == RERANKED]
    assert sorted(inside) == sorted(RERANKED.iterdir())
    assert {str(SCORES), str(FUSED)} <= {step["path"] for step in steps}
    # Somebody who changes scores or candidates and writes new digests of them is found out all the
    # same.
    for array in ("t2i_scores", "i2t_candidates", "i2t_retrieved"):
        shutil.copytree(RERANKED, "kept.zarr")
        values: Any = zarr.open_array(RERANKED / array, mode="r+")
        values[:] = values[:][:, ::-1] if array == "i2t_candidates" else values[:] + 1e-3
        saved.sealed_anew(RERANKED)
        what = "pairs scored again" if array == "t2i_scores" else "candidates again"
        assert any(f"{RERANKED}: {what}" in line for line in differs(RERANKED))
        shutil.rmtree(RERANKED)
        Path("kept.zarr").rename(RERANKED)


def test_an_ensemble_of_a_reranked_system_is_traced_to_its_members(
    pipeline: Any, run: Path
) -> None:
    mine = Path("similarities/sample/mine.zarr")
    members = ("--member", HEAD, "--member", RERANKED.stem)
    assert pipeline("ensemble", "mine", *members, "--fusion", "rank")[0] == 0
    code, steps, _ = traced(pipeline, mine, "--embed", "0")
    assert (code, {step["verdict"] for step in steps}) == (0, {"matches"})
    assert {str(SCORES), str(FUSED), str(RERANKED)} <= {step["path"] for step in steps}
    assert any(step["what"] == "scores again, by rank of its members" for step in steps)
    values: Any = zarr.open_array(mine / "similarity_2", mode="r+")  # by which captions rank images
    values[:] = values[:][::-1]
    saved.sealed_anew(mine)
    assert any(f"{mine}: scores again, by rank of its members" in line for line in differs(mine))


def test_the_query_is_told_with_its_rank(pipeline: Any, run: Path) -> None:
    split = Manifest.load(Path("data/sample.parquet")).split("test")
    caption, image = int(split.caption_ids[-1]), int(split.image_ids[split.caption_image[-1]])
    similarity = System.open(FUSED).similarity[:]
    own = similarity[split.caption_image[-1], split.caption_image == split.caption_image[-1]].max()
    rank = 1 + int((similarity[split.caption_image[-1]] > own).sum())
    out = pipeline("trace", *RESULT, "--image", image, "--embed", 0, "-v")[1]
    assert (
        f"image {image}: the best of its captions has rank {rank} of {len(split.caption_ids)}"
        in out
    )
    assert "embedded again" not in out
    rank = 1 + int((similarity[:, -1] > similarity[split.caption_image[-1], -1]).sum())
    out = pipeline("trace", *RESULT, "--caption", caption, "-v")[1]
    assert f"caption {caption}: its image {image} has rank {rank} of {len(split.image_ids)}" in out
    assert "embedded again" in out


def test_a_trace_says_first_what_the_number_rests_on(pipeline: Any, run: Path) -> None:
    rsum = json.loads(METRICS.read_text())[ENSEMBLE]["all"]["RSUM"]
    behind = [
        f"  ← head {HEAD}",
        "  ← store of features: features/sample/region.zarr",
        "  ← data/sample.parquet",
        "  ← 24 photographs in data/sample/images",
    ]
    ensemble = f"the scores of {HEAD} alone"
    entry = [f"RSUM {rsum:.1f} of {ENSEMBLE}, in {METRICS}", f"  ← {ensemble}"]
    reranked = [
        f"scores of {RERANKED.stem}, in {RERANKED}",
        f"  ← the 3 best candidates of {ENSEMBLE}, reordered by {HEAD}",
        f"  ← {ENSEMBLE}: {ensemble}",
    ]
    # By its name, a system is its entry in the results, and its store if it has none.
    for asked, expected in {
        RESULT: entry,
        (ENSEMBLE,): entry,
        ("vse2ad-R-bigru",): entry,
        (RERANKED.stem,): reranked,
        (RERANKED,): reranked,
    }.items():
        code, out, err = pipeline("trace", *asked, "--embed", "0")
        lines = out.splitlines()
        assert (code, lines[:-1]) == (0, [*expected, *behind]), err
        assert lines[-1].endswith("steps, all match; -v prints each digest")


def test_a_trace_prints_the_steps_that_differ_and_those_alone(pipeline: Any, run: Path) -> None:
    tampering.flip(SCORES / "caption_ids" / "c" / "0")
    tampering.edit_number(Path("heads/sample", HEAD, "history.csv"))
    code, out, err = pipeline("trace", ENSEMBLE, "--embed", "0")
    assert code == 2
    differing = [line for line in out.splitlines() if line.startswith("    ")]
    assert int(err.split(": ")[1].split()[0]) == len(differing) >= 2
    assert all("  differs" in line or "  missing" in line for line in differing)
    named = {line for line in out.splitlines() if line and line[0] != " "}
    assert {f"{SCORES}/caption_ids", f"heads/sample/{HEAD}/history.csv"} <= named
    assert f"do not match; look first at heads/sample/{HEAD}/history.csv: " in err


def test_a_changed_record_of_the_manifest_is_named(pipeline: Any, run: Path) -> None:
    folder = Paths(Path()).remembered("sample")
    request = ManifestRequest(
        dataset="sample",
        form=None,
        caption_inputs=(),
        items=None,
        draws=False,
        fetch=False,
        left_out=0,
        fails=True,
        places=(),
        states="",
    )
    artefacts.record_files(folder, request, [Paths(Path()).manifest("sample")])
    assert traced(pipeline, *RESULT, "--embed", "0")[0] == 0
    tampering.edit("request", "dataset")(folder / "record.json")
    assert any(f"{folder / 'record.json'}: its seal" in line for line in differs(SCORES))
    shutil.rmtree(folder)


def differs(store: Path, embedded: int = 0) -> list[str]:
    """What a trace of a store, by the function, says like `wrong`."""
    chosen = settings.load(Path(PARAMS))
    try:
        steps = [*trace(Traced.of_store(store), Paths(Path()), chosen, embedded)]
    except InputError as error:
        return [str(error)]
    return [
        f"{step.path}: {step.what} {step.verdict}" for step in steps if step.verdict != "matches"
    ]


@contextmanager
def put_back(folder: Path) -> Iterator[None]:
    """What is changed in a folder is undone at the end, without removing folders, which takes a
    disk milliseconds each.
    """
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    yield
    for file in folder.rglob("*"):
        if file.is_file() and file not in before:
            file.unlink()
    for file, content in before.items():
        if not file.exists() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


def names(line: str, file: Path, is_alone: bool) -> bool:
    """Whether a line of a trace names a file, or the array that it is a chunk of. Where a store
    cannot be opened, nothing in it is compared, and the line names the store.
    """
    folders = [folder for folder in file.parents if (folder / "zarr.json").exists()]
    is_whole = is_alone and file.parts[0] == "features" and file.name != "failures.csv"
    allowed = folders if is_whole or file.name == "zarr.json" else folders[:1]
    return any(f"{path}: " in line for path in (file, *allowed))


# A trace that finds one of these changed does not read what it was made from: other changes would
# be missed, so each of these is made alone.
ALONE = ("features/*", "data/*.parquet", "similarities/[*]/[*].zarr/[*]/zarr.json")
CHANGES = [
    (pattern, number, change)
    for pattern, changes in tampering.CHECKED.items()
    for number, change in enumerate(changes)
]


def is_alone(pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(pattern, alone) for alone in ALONE)


@pytest.mark.parametrize("folder", ["features", "data", "similarities"])
def test_a_change_of_a_file_is_named(run: Path, folder: str) -> None:
    """Each by itself, of those that hide others."""
    for pattern, number, change in CHANGES:
        if not is_alone(pattern) or not pattern.startswith(folder):
            continue
        file = tampering.files(run, pattern)[-1]
        with put_back(Path(*file.parts[:3]) if folder != "data" else Path("data")):
            change(file)
            said = differs(SCORES)
            assert any(names(line, file, True) for line in said), (pattern, number, said)


@pytest.mark.parametrize(
    ("kind", "number"),
    [*(("records", number) for number in range(6)), ("others", 0), ("others", 1)],
)
def test_changes_of_several_files_are_all_named(
    pipeline: Any, run: Path, kind: str, number: int
) -> None:
    """The first of each kind of file, the second, …: those that do not hide each other."""
    files = []
    for pattern, nth, change in CHANGES:
        is_asked = pattern.endswith(".json") == (kind == "records")
        if is_asked and nth == number and not is_alone(pattern):
            files.append(tampering.files(run, pattern)[-1])
            change(files[-1])
    reranked = [file for file in files if file.is_relative_to(RERANKED)]
    said = differs(RERANKED) if reranked else []
    if len(reranked) < len(files):
        said += wrong(pipeline, *RESULT, "--embed", "0")
    for file in files:
        assert any(names(line, file, False) for line in said), (file, said)


def test_every_file_of_a_run_is_of_a_kind_that_is_known(run: Path) -> None:
    patterns = [*tampering.CHECKED, *tampering.OF_CLIPS, *tampering.NOT_CHECKED]
    unknown = [
        file
        for file in tampering.below(run)
        if not any(fnmatch.fnmatch(str(file), each) for each in patterns)
    ]
    assert unknown == []


def test_what_is_lost_is_named(run: Path) -> None:
    head, features = Path("heads/sample", HEAD), Path("features/sample/region.zarr")
    photograph = tampering.files(Path(), "data/*/images/*")[0]
    cases = {
        head: f"{HEAD}: the head of {HEAD} missing",
        features: f"region.zarr: the features of {HEAD} missing",
        photograph: "by region.zarr missing",
        SCORES: f"{SCORES}: the member.0 of {ENSEMBLE} missing",
    }
    for lost, where in cases.items():
        elsewhere = lost.rename(lost.with_name("elsewhere"))
        assert any(where in line for line in differs(FUSED)), lost
        elsewhere.rename(lost)


def all_is_scored_anew(pipeline: Any) -> None:
    """An ensemble and results that are consistent with the member's store as it is."""
    for command in (("ensemble", "R"), ("evaluate", *RUN)):
        code, _, err = pipeline(*command)
        assert code == 0, err


def test_scores_that_were_replaced_are_not_evaluated(
    refused: Callable[..., str], run: Path
) -> None:
    tampering.perfect(SCORES)
    assert f"{SCORES}/similarity: changed after it was written" in refused("evaluate", *RUN)
    assert f"{SCORES}/similarity: changed after it was written" in refused(
        "ensemble", "R", "--keep-common"
    )


def test_a_perfect_matrix_with_new_digests_is_not_that_of_its_embeddings(
    pipeline: Any, run: Path
) -> None:
    tampering.perfect(SCORES)
    saved.sealed_anew(SCORES)
    all_is_scored_anew(pipeline)
    assert json.loads(METRICS.read_text())[ENSEMBLE]["all"]["RSUM"] == 600
    assert wrong(pipeline) == [f"{SCORES}: scores again, from its embeddings differs"]


def test_perfect_embeddings_with_new_digests_are_not_those_of_the_head(run: Path) -> None:
    tampering.perfect_vectors(SCORES)
    saved.sealed_anew(SCORES)
    assert differs(SCORES, embedded=4) == [f"{SCORES}: embedded again differs"]


def test_a_member_that_was_scored_anew_is_not_that_of_the_ensemble(run: Path) -> None:
    tampering.perfect_vectors(SCORES)
    saved.sealed_anew(SCORES)
    said = differs(FUSED)
    assert f"{SCORES}: the member.0 of {ENSEMBLE} differs" in said
    assert f"{FUSED}: scores again, by mean of its members differs" in said


def test_ids_that_are_rolled_with_new_digests_are_not_the_manifests(run: Path) -> None:
    for ids in ("image_ids", "caption_ids"):
        with put_back(SCORES):
            tampering.rolled(SCORES / ids)
            saved.sealed_anew(SCORES)
            assert f"{SCORES}: whose scores, by the manifest differs" in differs(SCORES), ids


def test_settings_that_are_changed_in_all_results_are_not_the_heads(
    pipeline: Any, run: Path
) -> None:
    def faster(made_from: dict[str, Any]) -> None:
        made_from["member"]["settings"]["learning_rate"] = 1.0

    saved.sealed_anew(SCORES, faster)
    all_is_scored_anew(pipeline)
    assert wrong(pipeline) == [f"{SCORES}: its facts, by what it was made from differs"]


def test_an_input_that_is_another_one_than_recorded_is_named(run: Path) -> None:
    record = records.load(SCORES)
    for role in ("head", "features", "manifest"):
        other = record.made_from[role].model_copy(update={"identity": "another"})
        saved.changed(SCORES, made_from={**record.made_from, role: other})
        said = [line.partition(": ")[2] for line in differs(SCORES)]
        assert said == [f"the {role} of {HEAD} differs"]
        records.save(SCORES, record)


def test_a_head_of_other_inputs_than_recorded_is_named(run: Path) -> None:
    folder = Path("heads/sample", HEAD)
    of_head, of_scores = records.load(folder), records.load(SCORES)
    for role in ("features", "manifest"):
        other = of_head.made_from[role].model_copy(update={"identity": "another"})
        saved.changed(folder, made_from={**of_head.made_from, role: other})
        identity = records.load(folder).identity
        reference = of_scores.made_from["head"].model_copy(update={"identity": identity})
        saved.changed(SCORES, made_from={**of_scores.made_from, "head": reference})
        assert any(f"the {role} of {HEAD} differs" in line for line in differs(SCORES)), role
        records.save(folder, of_head)
        records.save(SCORES, of_scores)


def test_numbers_with_a_new_digest_are_not_those_that_are_measured(
    pipeline: Any, run: Path
) -> None:
    as_measured = METRICS.read_text()

    def better(entry: dict[str, Any]) -> None:
        entry["all"]["t2i"]["R@5"] = 99.0

    def narrower(entry: dict[str, Any]) -> None:
        entry["all"]["interval"]["RSUM"] = [99.0, 99.5]

    def without_hits(entry: dict[str, Any]) -> None:
        entry["image_hits"] = {}

    cases = {
        better: "measured again, all",
        narrower: "intervals again, all",
        without_hits: "hits of each image again, all",
    }
    for change, what in cases.items():
        tampering.measured_anew(METRICS, ENSEMBLE, change)
        assert wrong(pipeline, *RESULT, "--embed", "0") == [f"{METRICS}: {what} differs"]
        METRICS.write_text(as_measured)


def test_facts_with_a_new_seal_are_not_those_of_what_they_are_of(pipeline: Any, run: Path) -> None:
    def trained(record: dict[str, Any]) -> None:
        record["facts"]["untrained"] = []

    tampering.measured_anew(METRICS, ENSEMBLE, lambda entry: trained(entry["record"]))
    assert wrong(pipeline, *RESULT, "--embed", "0") == [
        f"{METRICS}: the facts of {ENSEMBLE}, by its system differs"
    ]
    for store in (FUSED, RERANKED):
        kept = records.load(store)
        saved.sealed_anew(store, lambda facts: facts.update(untrained=[]))
        assert differs(store) == [f"{store}: its facts, by what it was made from differs"]
        records.save(store, kept)


def test_a_store_under_another_name_than_its_own_is_named(run: Path) -> None:
    for store in (SCORES, FUSED, RERANKED):
        copy = store.with_name("better.zarr")
        shutil.copytree(store, copy)
        assert differs(copy) == [f"{copy}: the name it was written under differs"]
        shutil.rmtree(copy)


def test_tables_and_figures_take_no_results_that_were_edited(
    pipeline: Any, refused: Callable[..., str], run: Path
) -> None:
    kept = METRICS.read_text()
    tampering.edit(ENSEMBLE, "all", "RSUM")(METRICS)
    for command in ("tables", "figures", "report"):
        assert f"the entry of {ENSEMBLE} is not as it was measured" in refused(command)
    METRICS.write_text(kept)
    tampering.edit_number(Path("heads/sample", HEAD, "history.csv"))
    for command in ("figures", "report"):
        assert "history.csv: changed after it was written" in refused(command)
    pipeline("ensemble", "R", "--keep-common")
    saved.sealed_anew(SCORES, lambda made_from: made_from.update(seed=1))
    assert "was scored again after it was measured" in refused("tables")


def test_what_cannot_be_traced_is_refused(refused: Callable[..., str], run: Path) -> None:
    train = str(Manifest.load(Path("data/sample.parquet")).split("train").image_ids[0])
    assert f"name one of its systems: {ENSEMBLE}" in refused("trace", METRICS)
    assert "no result there" in refused("trace", "results/nothing.json", "x")
    assert "leave out x" in refused("trace", FUSED, "x")
    assert "is in its split train" in refused("trace", *RESULT, "--image", train)
    assert "is not in its manifest" in refused("trace", *RESULT, "--image", "-1")
    split = Manifest.load(Path("data/sample.parquet")).split("test")
    first, last = split.caption_ids.min(), split.caption_ids.max()
    for caption, where in {
        "-1": "no caption -1",
        "0": "caption 0 is in sample's split train",
    }.items():
        said = refused("trace", *RESULT, "--caption", caption)
        assert where in said
        assert f"test split, which has the captions {first}" in said
        assert f" to {last} ({len(split.caption_ids)} in all)" in said
    assert "did you mean" in refused("trace", "vse2ad-X-bigru-s0")
    assert "is no store" in refused("trace", f"heads/sample/{HEAD}")
    assert "give one" in refused("trace", *RESULT, "-v", "--json")
    assert "give one" in refused("trace", *RESULT, "--caption", "1", "--image", "1")
    tampering.edit(ENSEMBLE, "record", "kind", value="given")(METRICS)
    assert "neither what `pipeline evaluate` writes" in refused("trace", *RESULT)
    METRICS.write_text('{"vse2ad-R-bigru-s0": 7}')
    assert "neither what `pipeline evaluate` writes" in refused("trace", *RESULT)


def test_a_rescored_system_is_traced_to_its_source(pipeline: Any, run: Path) -> None:
    name, rescored = f"{ENSEMBLE}+csls", ("-S", "run.rescorers=[{name: csls, neighbours: 2}]")
    for command in ("ensemble", "rescore", "evaluate"):
        assert pipeline(command, *RUN, *rescored, "-S", "run.ensembles=[R]")[0] == 0
    code, steps, _ = traced(pipeline, METRICS, name)
    assert code == 0
    assert {
        f"scores again, by csls of {ENSEMBLE}",
        "scores again, by mean of its members",
        "scores again, from its embeddings",
    } <= {step["what"] for step in steps}
    folder = Path("similarities/sample", f"{name}.zarr")
    tampering.edit("facts", "options", "neighbours", value=3)(folder / "record.json")
    assert f"{folder}/record.json: its seal differs" in wrong(pipeline, METRICS, name)
    saved.sealed_anew(folder)
    assert any(
        f"scores again, by csls of {ENSEMBLE} differs" in line
        for line in wrong(pipeline, METRICS, name)
    )
    shutil.rmtree(FUSED)
    assert f"{FUSED}: the source of {name} missing" in wrong(pipeline, METRICS, name)
