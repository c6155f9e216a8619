"""A file that was edited: every command that reads it refuses, `trace` and `verify` name it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tampering
from tampering import edit

from pipeline.foundation.artefacts import Record, record as records

pytestmark = pytest.mark.slow

HEAD, ENSEMBLE = "vse2ad-region-bigru-s0", "vse2ad-R-bigru-s0"
SCORES, FUSED, RERANKED = (
    Path("similarities/sample", f"{name}.zarr") for name in (HEAD, ENSEMBLE, "a-reranked")
)
METRICS, FOLDER, STORE = (
    Path("results/metrics.json"),
    Path("heads/sample", HEAD),
    Path("features/sample/region.zarr"),
)
RUN = ("-S", "run.features=[region]", "-S", "run.ablations=[]")
FACTS = "facts"
ADDED: dict[str, Any] = {"kind": "inline", "must_understand": False, "metadata": {}}


def consolidate(file: Path) -> None:
    """Name no array, as other libraries do that list the arrays in the group's metadata."""
    file.write_text(json.dumps(json.loads(file.read_text()) | {"consolidated_metadata": ADDED}))


def test_an_edited_record_of_what_made_a_system_is_evaluated_by_nobody(
    refused: Callable[..., str], run: Path
) -> None:
    record = SCORES / "record.json"
    as_it_was = record.read_bytes()
    for change in (
        edit(FACTS, "member", "features", value="butd-36"),
        edit(FACTS, "is_untrained", value=False),
        edit(FACTS, "seed"),
        edit(FACTS, "recipe"),
        edit(FACTS, "text"),
        edit(FACTS, "dataset"),
        edit(FACTS, "member", "head"),
        edit("machines", 0, "processor"),
        edit(FACTS, "manifest"),
        edit("contents", "similarity"),
        edit("request", "name"),
        edit("seal"),
    ):
        record.write_bytes(as_it_was)
        change(record)
        edited = record.read_text(encoding="utf-8")
        assert f"{record}: was edited" in refused("evaluate", "--system", SCORES), edited
    assert f"{record}: was edited" in refused("evaluate", *RUN)
    assert "not match" in refused("trace", METRICS, ENSEMBLE, "--embed", "0")


@pytest.mark.specification
def test_an_edited_group_of_arrays_is_evaluated_by_nobody(
    refused: Callable[..., str], run: Path
) -> None:
    consolidate(SCORES / "zarr.json")
    for command in (("evaluate", *RUN), ("evaluate", "--system", SCORES)):
        assert f"{SCORES}/zarr.json: changed after it was written" in refused(*command), command


COMMANDS: dict[Path, list[tuple[str | Path, ...]]] = {
    SCORES: [
        ("report",),
        ("figures",),
        ("ensemble", "R"),
        ("ensemble", "mine", "--member", HEAD, "--member", RERANKED),
        ("compare", HEAD, ENSEMBLE),
        ("rescore", HEAD, "--by", "csls"),
        ("search", "a house"),
        ("rerank", "--retriever", HEAD, "--with", HEAD, "--k", "2", "--name", "b"),
        ("rerank", "--retriever", ENSEMBLE, "--with", f"system:{HEAD}", "--k", "2", "--name", "b"),
        ("score", "--system", SCORES),
        ("trace", SCORES),
    ],
    FUSED: [
        ("evaluate", *RUN),
        ("tables",),
        ("report",),
        ("compare", HEAD, ENSEMBLE),
        ("rescore", ENSEMBLE, "--by", "csls"),
        ("evaluate", "--system", RERANKED),
        ("trace", RERANKED),
    ],
    RERANKED: [
        ("evaluate", "--system", RERANKED),
        ("compare", HEAD, RERANKED),
        ("trace", RERANKED),
        ("rerank", "--retriever", ENSEMBLE, "--with", HEAD, "--k", "3", "--name", RERANKED.stem),
        ("ensemble", "mine", "--member", HEAD, "--member", RERANKED),
    ],
}


@pytest.mark.parametrize("system", COMMANDS, ids=lambda system: system.stem)
def test_every_command_that_reads_a_system_compares_its_record(
    refused: Callable[..., str], run: Path, system: Path
) -> None:
    change = edit(FACTS, "untrained", value=["another"])
    if system == SCORES:
        change = edit(FACTS, "is_untrained", value=False)
    change(system / "record.json")
    for command in COMMANDS[system]:
        assert f"{system}/record.json: was edited" in refused(*command), command
    (system / "record.json").unlink()
    for command in COMMANDS[system]:
        said = refused(*command)
        assert str(system) in said, command
        assert "no record.json" in said, command


def test_a_system_in_the_place_of_another_one_is_not_taken_for_it(
    refused: Callable[..., str], run: Path
) -> None:
    shutil.rmtree(FUSED)
    shutil.copytree(SCORES, FUSED)
    for command in (
        ("evaluate", *RUN),
        ("compare", HEAD, ENSEMBLE),
        ("rescore", ENSEMBLE, "--by", "csls"),
        ("rerank", "--retriever", ENSEMBLE, "--with", HEAD, "--k", "2", "--name", "b"),
    ):
        assert f"{FUSED}: holds the scores of {HEAD}; move them back" in refused(*command), command
    assert "not match" in refused("trace", METRICS, ENSEMBLE, "--embed", "0")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("record.json", edit("request", "name")),
        ("record.json", edit("facts", "features", "recipe")),
        ("record.json", edit("request", "seed")),
        ("best.safetensors", tampering.edit_weight),
        ("text/vocabulary.json", edit("words", 7)),
    ],
)
def test_an_edited_head_neither_scores_nor_embeds(
    refused: Callable[..., str], run: Path, name: str, change: tampering.Change
) -> None:
    change(FOLDER / name)
    for command in (
        ("score", "--feature", "region"),
        ("embed", "sample", "--system", HEAD),
        ("search", "a house"),
    ):
        what = "was edited" if name == "record.json" else "changed after it was written"
        assert f"{FOLDER / name}: {what}" in refused(*command), command


def test_no_name_of_a_sealed_record_leads_out_of_its_folder(
    refused: Callable[..., str], run: Path
) -> None:
    def change(folder: Path, *keys: str) -> None:
        """A name that leads elsewhere, with a seal that fits."""
        tree = records.load(folder).model_dump()
        within = tree
        for key in keys[:-1]:
            within = within[key]
        within[keys[-1]] = "../x"
        records.save(folder, Record.model_validate(tree))

    for folder, keys, command in (
        (FOLDER, ("request", "feature"), ("score", "--system", HEAD)),
        (FOLDER, ("request", "feature"), ("search", "a house")),
        (FOLDER, ("made_from", "manifest", "name"), ("embed", "sample", "--system", HEAD)),
        (FOLDER, ("made_from", "features", "name"), ("trace", SCORES, "--embed", "0")),
        (SCORES, ("facts", "dataset"), ("trace", SCORES, "--embed", "0")),
        (FUSED, ("made_from", "member.0", "name"), ("evaluate", "--system", FUSED)),
        (RERANKED, ("made_from", "retriever", "name"), ("evaluate", "--system", RERANKED)),
    ):
        kept = records.load(folder)
        change(folder, *keys)
        assert "'../x': there is no such file, and a name cannot be" in refused(*command), keys
        records.save(folder, kept)
    for name in ("text/../../../../x", "/dev/zero", "../../x", "a\0b"):
        kept = records.load(SCORES)
        records.save(SCORES, kept.changed(contents=kept.contents | {name: "0"}))
        assert f"{SCORES}/record.json: damaged" in refused("evaluate", "--system", SCORES), name
        records.save(SCORES, kept)


@pytest.mark.parametrize("folder", [FUSED, SCORES, FOLDER, STORE])
def test_a_record_that_was_deleted_is_said_not_to_be_recorded(
    pipeline: Any, run: Path, folder: Path
) -> None:
    (folder / "record.json").unlink()
    code, out, _ = pipeline("trace", METRICS, ENSEMBLE, "--embed", "0", "--json")
    assert code == 2
    verdicts = [
        step["verdict"] for step in json.loads(out) if step["path"] == str(folder / "record.json")
    ]
    assert verdicts == ["not recorded"]


def test_results_without_a_digest_make_no_tables(refused: Callable[..., str], run: Path) -> None:
    entries = json.loads(METRICS.read_text())
    entries[ENSEMBLE]["record"]["contents"] = {}
    entries[ENSEMBLE]["all"]["t2i"]["R@1"] = 99.0
    METRICS.write_text(json.dumps(entries))
    for command in ("tables", "report", "figures"):
        assert f"the entry of {ENSEMBLE} is not as it was measured" in refused(command)
    del entries[ENSEMBLE]["record"]
    METRICS.write_text(json.dumps(entries))
    for command in ("tables", "report", "figures"):
        assert f"the entry of {ENSEMBLE} does not say what made it" in refused(command)


OF_STORES: dict[str, tuple[tampering.Change, ...]] = {
    "zarr.json": (edit("attributes", "layout", "items"), consolidate),
    "failures.csv": (tampering.edit_number,),
    "record.json": (edit("versions", "images"), Path.unlink),
    "ledger/000002.json": (edit("sources", "20"), edit("values", "20"), edit("maker")),
    "features/zarr.json": (edit("fill_value", value=1.0),),
    "ids/c/0": (tampering.swap_rows,),
}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(name, change, id=f"{name.replace('/', '-')}-{number}")
        for name, changes in OF_STORES.items()
        for number, change in enumerate(changes)
    ],
)
def test_verify_and_trace_see_the_same_edits_of_a_feature_store(
    pipeline: Any, refused: Callable[..., str], run: Path, name: str, change: tampering.Change
) -> None:
    change(STORE / name)
    assert STORE.name in refused("store", "verify", STORE)
    assert "not match" in refused("trace", METRICS, ENSEMBLE, "--embed", "0")
    assert pipeline("store", "verify", STORE, "--repair")[0] == 0
    assert not (STORE / name).exists() or not (STORE / "zarr.json").exists()
