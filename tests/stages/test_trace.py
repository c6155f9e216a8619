"""`pipeline trace`: from a figure to the photograph, every step compared; whatever is changed, it
says which.
"""

from __future__ import annotations

import fnmatch
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import saved
import tampering
import zarr

from pipeline.foundation import artefacts
from pipeline.foundation.artefacts import record as records
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.request import ManifestRequest
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.system import System

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[2]
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
        assert any(
            f"{RERANKED}: {what}" in line for line in wrong(pipeline, RERANKED, "--embed", "0")
        )
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
    said = wrong(pipeline, mine, "--embed", "0")
    assert any(f"{mine}: scores again, by rank of its members" in line for line in said)


def test_the_query_is_told_with_its_rank(pipeline: Any, run: Path) -> None:
    split = Manifest.load(Path("data/sample.parquet")).split("test")
    caption, image = int(split.caption_ids[-1]), int(split.image_ids[split.caption_image[-1]])
    similarity = System.open(FUSED).similarity[:]
    own = similarity[split.caption_image[-1], split.caption_image == split.caption_image[-1]].max()
    rank = 1 + int((similarity[split.caption_image[-1]] > own).sum())
    out = pipeline("trace", *RESULT, "--image", image, "--embed", 0)[1]
    assert (
        f"image {image}: the best of its captions has rank {rank} of {len(split.caption_ids)}"
        in out
    )
    assert "embedded again" not in out
    rank = 1 + int((similarity[:, -1] > similarity[split.caption_image[-1], -1]).sum())
    out = pipeline("trace", *RESULT, "--caption", caption)[1]
    assert f"caption {caption}: its image {image} has rank {rank} of {len(split.image_ids)}" in out
    assert "embedded again" in out


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
    assert any(
        f"{folder / 'record.json'}: its seal" in line
        for line in wrong(pipeline, *RESULT, "--embed", "0")
    )
    shutil.rmtree(folder)


Changes = list[tuple[str, tampering.Change]]
# Where these are changed, what lies below is not looked at: each is changed alone.
ALONE = ("features/*", "data/*.parquet", "similarities/[*]/[*].zarr/[*]/zarr.json")


def all_changes() -> dict[str, Changes]:
    """Every change of every kind of file, by a name; those that do not hide each other together:
    the first change of each kind of record, of each kind of other file, the second, ….
    """
    groups: dict[str, Changes] = {}
    for pattern, changes in tampering.CHECKED.items():
        for number, change in enumerate(changes):
            if any(fnmatch.fnmatchcase(pattern, each) for each in ALONE):
                name = f"{pattern.replace('/', '-')}-{number}"
            elif pattern.endswith(".json"):
                name = f"records-{number}"
            else:
                name = f"files-{number}"
            groups.setdefault(name, []).append((pattern, change))
    return groups


@pytest.mark.parametrize("name", all_changes())
def test_a_change_of_any_file_is_named(pipeline: Any, run: Path, name: str) -> None:
    changes = all_changes()[name]
    files = [tampering.files(run, pattern)[-1] for pattern, _ in changes]
    for file, (_, change) in zip(files, changes, strict=True):
        change(file)
    reranked = [file for file in files if file.is_relative_to(RERANKED)]
    said = []
    if reranked:
        said += wrong(pipeline, RERANKED, "--embed", "0")
    if len(reranked) < len(files):
        said += wrong(pipeline, *RESULT, "--embed", "0")
    for file in files:
        # What lies in an array is named by the file or the array; in a feature store that cannot
        # be opened, by the store.
        inside = [each for each in file.parents if (each / "zarr.json").exists()]
        is_whole_store = len(files) == 1 and file.parts[0] == "features"
        named = [file, *(inside if is_whole_store or file.name == "zarr.json" else inside[:1])]
        assert any(f"{each}: " in line for line in said for each in named), (file, said)


def test_every_file_of_a_run_is_of_a_kind_that_is_known(run: Path) -> None:
    patterns = [*tampering.CHECKED, *tampering.OF_CLIPS, *tampering.NOT_CHECKED]
    unknown = [
        file
        for file in tampering.below(run)
        if not any(fnmatch.fnmatch(str(file), each) for each in patterns)
    ]
    assert unknown == []


def lose_the_head() -> None:
    shutil.rmtree(Path("heads/sample", HEAD))


def mislay_the_features() -> None:
    Path("features/sample/region.zarr").rename("features/sample/other.zarr")


def lose_a_photograph() -> None:
    tampering.files(Path(), "data/*/images/*")[0].unlink()


def lose_the_member() -> None:
    shutil.rmtree(SCORES)


@pytest.mark.parametrize(
    ("lose", "where"),
    [
        (lose_the_head, f"{HEAD}: the head of {HEAD} missing"),
        (mislay_the_features, f"region.zarr: the features of {HEAD} missing"),
        (lose_a_photograph, "by region.zarr missing"),
        (lose_the_member, f"{SCORES}: the member.0 of {ENSEMBLE} missing"),
    ],
)
def test_what_is_lost_is_named(
    pipeline: Any, run: Path, lose: Callable[[], None], where: str
) -> None:
    lose()
    assert any(where in line for line in wrong(pipeline))


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


def test_perfect_embeddings_with_new_digests_are_not_those_of_the_head(
    pipeline: Any, run: Path
) -> None:
    tampering.perfect_vectors(SCORES)
    saved.sealed_anew(SCORES)
    all_is_scored_anew(pipeline)
    assert wrong(pipeline) == [f"{SCORES}: embedded again differs"]


def test_a_member_that_was_scored_anew_is_not_that_of_the_ensemble(
    pipeline: Any, run: Path
) -> None:
    tampering.perfect_vectors(SCORES)
    saved.sealed_anew(SCORES)
    said = wrong(pipeline)
    assert f"{SCORES}: the member.0 of {ENSEMBLE} differs" in said
    assert f"{FUSED}: scores again, by mean of its members differs" in said


@pytest.mark.parametrize("ids", ["image_ids", "caption_ids"])
def test_ids_that_are_rolled_with_new_digests_are_not_the_manifests(
    pipeline: Any, run: Path, ids: str
) -> None:
    tampering.rolled(SCORES / ids)
    saved.sealed_anew(SCORES)
    all_is_scored_anew(pipeline)
    assert f"{SCORES}: whose scores, by the manifest differs" in wrong(pipeline)


def test_settings_that_are_changed_in_all_results_are_not_the_heads(
    pipeline: Any, run: Path
) -> None:
    def faster(made_from: dict[str, Any]) -> None:
        made_from["member"]["settings"]["learning_rate"] = 1.0

    saved.sealed_anew(SCORES, faster)
    all_is_scored_anew(pipeline)
    assert wrong(pipeline) == [f"{SCORES}: its facts, by what it was made from differs"]


@pytest.mark.parametrize("role", ["head", "features", "manifest"])
def test_an_input_that_is_another_one_than_recorded_is_named(
    pipeline: Any, run: Path, role: str
) -> None:
    made_from = records.load(SCORES).made_from
    other = made_from[role].model_copy(update={"identity": "another"})
    saved.changed(SCORES, made_from={**made_from, role: other})
    assert [line.partition(": ")[2] for line in wrong(pipeline, SCORES, "--embed", "0")] == [
        f"the {role} of {HEAD} differs"
    ]


@pytest.mark.parametrize("role", ["features", "manifest"])
def test_a_head_of_other_inputs_than_recorded_is_named(pipeline: Any, run: Path, role: str) -> None:
    folder = Path("heads/sample", HEAD)
    made_from = records.load(folder).made_from
    other = made_from[role].model_copy(update={"identity": "another"})
    saved.changed(folder, made_from={**made_from, role: other})
    mine = records.load(SCORES)
    reference = mine.made_from["head"].model_copy(
        update={"identity": records.load(folder).identity}
    )
    saved.changed(SCORES, made_from={**mine.made_from, "head": reference})
    said = wrong(pipeline, SCORES, "--embed", "0")
    assert any(f"the {role} of {HEAD} differs" in line for line in said)


@pytest.mark.parametrize(
    ("keys", "what"),
    [(("t2i", "R@5"), "measured again, all"), (("interval", "RSUM"), "intervals again, all")],
)
def test_numbers_with_a_new_digest_are_not_those_that_are_measured(
    pipeline: Any, run: Path, keys: tuple[str, str], what: str
) -> None:
    def better(entry: dict[str, Any]) -> None:
        entry["all"][keys[0]][keys[1]] = [99.0, 99.5] if keys[0] == "interval" else 99.0

    tampering.measured_anew(METRICS, ENSEMBLE, better)
    assert wrong(pipeline) == [f"{FUSED}: {what} differs"]


def test_hits_that_were_removed_with_a_new_digest_are_missed(pipeline: Any, run: Path) -> None:
    tampering.measured_anew(METRICS, ENSEMBLE, lambda entry: entry.update(image_hits={}))
    assert wrong(pipeline, *RESULT, "--embed", "0") == [
        f"{FUSED}: hits of each image again, all differs"
    ]


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
        assert wrong(pipeline, store, "--embed", "0") == [
            f"{store}: its facts, by what it was made from differs"
        ]
        records.save(store, kept)


def test_a_store_under_another_name_than_its_own_is_named(pipeline: Any, run: Path) -> None:
    for store in (SCORES, FUSED, RERANKED):
        copy = store.with_name("better.zarr")
        shutil.copytree(store, copy)
        assert wrong(pipeline, copy, "--embed", "0") == [
            f"{copy}: the name it was written under differs"
        ]
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
    assert f"name one of its systems: {HEAD}, {ENSEMBLE}" in refused("trace", METRICS)
    assert "no result there" in refused("trace", "results/nothing.json", "x")
    assert "leave out x" in refused("trace", FUSED, "x")
    assert "is in its split train" in refused("trace", *RESULT, "--image", train)
    assert "is not in its manifest" in refused("trace", *RESULT, "--image", "-1")
    assert "no caption -1" in refused("trace", *RESULT, "--caption", "-1")
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
