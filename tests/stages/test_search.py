"""`pipeline search` and `pipeline embed`, with a tiny head that is really trained."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import forged
import numpy as np
import pandas as pd
import pytest
import saved
import tampering

from pipeline.foundation.evaluation.retrieval.blocks import Ids
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.columns import COLUMNS
from pipeline.judge.systems import reranking
from pipeline.judge.systems.reranking.base import PairSource
from pipeline.judge.systems.scores.system import System
from pipeline.make.features.store import FeatureStore
from pipeline.run.provenance import results
from stages import search

pytestmark = pytest.mark.slow

HEAD = "vse2ad-region-bigru-s0"
OWN = Path("similarities/sample", f"{HEAD}.zarr")


def found(out: str) -> list[tuple[int, float, int, str]]:
    """Rank, similarity, image id and file of each line of the table."""
    lines = re.findall(r"^ +(\d+)  (-?\d\.\d+) +(\d+)  (\S+)", out, re.MULTILINE)
    return [
        (int(rank), float(similarity), int(image), file) for rank, similarity, image, file in lines
    ]


@pytest.mark.specification
def test_a_splits_own_caption_finds_images_in_the_order_of_its_similarities(
    pipeline: Any, project: Path, scenes: Manifest
) -> None:
    store = System.open(OWN)
    column = 7
    code, out, err = pipeline("search", scenes.split("test").captions[column], "--top", "3")
    assert code == 0, err
    header, first, *_ = out.splitlines()
    assert header.split("  ") == ["rank", "score", "image id", "file", "its first caption"]
    assert header.index("file") == first.index("sample_")
    similarity = store.similarity[:, column]
    order = np.argsort(-similarity)[:3]
    assert [image for _, _, image, _ in found(out)] == store.image_ids[order].tolist()
    assert [close for _, close, _, _ in found(out)] == pytest.approx(
        similarity[order].tolist(), abs=6e-4
    )
    html = Path("results/search.html").read_text(encoding="utf-8")
    assert html.count("data:image/webp;base64,") == 3
    caption = escape(scenes.split("test").captions[column])
    assert f"<h1>Images of sample (test) nearest to “{caption}”, by {HEAD}</h1>" in html


def test_a_file_of_queries_finds_for_each_what_it_finds_alone(
    pipeline: Any, project: Path, scenes: Manifest
) -> None:
    captions = scenes.split("test").captions[3:6]
    Path("queries.txt").write_text(
        "\n".join([captions[0], "", f"  {captions[1]} ", captions[2]]) + "\n"
    )
    code, out, err = pipeline("search", "--queries", "queries.txt", "--top", "3")
    assert code == 0, err
    assert [line for line in out.splitlines() if line.startswith("“")] == [
        f"“{caption}”" for caption in captions
    ]
    html = Path("results/search.html").read_text(encoding="utf-8")
    assert (html.count("<section"), html.count("data:image/webp;base64,")) == (3, 9)
    assert f"<h1>Images of sample (test) nearest to 3 texts, by {HEAD}</h1>" in html
    assert found(out) == [
        hit for caption in captions for hit in found(pipeline("search", caption, "--top", "3")[1])
    ]


def test_a_query_ends_at_a_line_feed_alone(tmp_path: Path) -> None:
    """`str.splitlines` cuts at ten characters. Windows' editors begin a file with U+FEFF."""
    (tmp_path / "queries.txt").write_bytes("a dog\x85\u2028at dawn\r\na cat\n".encode("utf-8-sig"))
    assert search._texts(None, None, tmp_path / "queries.txt") == [
        "a dog\x85\u2028at dawn",
        "a cat",
    ]


def test_files_of_queries_that_hold_none_are_refused(
    refused: Callable[..., str], project: Path
) -> None:
    Path("empty.txt").write_text(" \n\n")
    Path("binary.txt").write_bytes(b"\xff\xfe\x00")
    assert "empty.txt: holds no text" in refused("search", "--queries", "empty.txt")
    assert "binary.txt: expected a file of text in UTF-8" in refused(
        "search", "--queries", "binary.txt"
    )
    assert "nowhere.txt: no such file" in refused("search", "--queries", "nowhere.txt")
    assert "give exactly one of" in refused("search", "a house", "--queries", "empty.txt")


def test_words_that_the_head_does_not_know_are_said(
    pipeline: Any, project: Path, scenes: Manifest
) -> None:
    known = scenes.split("train").captions[0].split()[0]
    code, out, err = pipeline("search", "Zyx qwv!")
    assert (code, len(found(out))) == (0, 4)
    assert (
        "warning: “Zyx qwv!”: holds no word that the head knows, so the results mean nothing" in err
    )
    assert "the head does not know zyx" in pipeline("search", f"{known} Zyx")[2]
    assert "warning" not in pipeline("search", known)[2]


def test_what_would_move_the_terminals_cursor_is_spelled_out(
    pipeline: Any, refused: Callable[..., str], project: Path, scenes: Manifest
) -> None:
    table = scenes.table.copy()
    table["caption"] = "\x1b]0;owned\x07 a house \x9b2J \u202egpj.exe"
    table["file"] = [f"{name}\x1b[2J.jpg" for name in table["file"]]
    changed = Manifest(table, "sample", scenes.images_folder)
    changed.save(Path("data/sample.parquet"))
    head, store = (
        Path("heads/sample", HEAD, "record.json"),
        Path("features/sample/region.zarr/zarr.json"),
    )
    for path in (head, store):
        text = path.read_text().replace(scenes.digest, changed.digest)
        path.write_text(text.replace(scenes.images_digest, changed.images_digest))
    saved.sealed_anew(OWN, lambda facts: facts.update(manifest=changed.digest))
    forgive_edits(store, head)
    code, out, err = pipeline("search", "a house \x1b[31m")
    assert code == 0, err
    assert len(found(out)) == 4
    assert r"\x1b]0;owned\x07 a house \x9b2J \u202egpj.exe" in out
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*out, *err}
    assert not {"\x1b"} & {*refused("search", "--image", "photo\x1b[2J.jpg")}


def test_an_image_of_the_split_finds_captions_in_the_order_of_its_similarities(
    pipeline: Any, project: Path, scenes: Manifest
) -> None:
    store, row = System.open(OWN), 2
    file = scenes.images_folder / scenes.images.set_index("image_id")["file"][store.image_ids[row]]
    code, out, err = pipeline("search", "--image", file, "--top", "4", "--out", "page.html")
    assert code == 0, err
    order = np.argsort(-store.similarity[row])[:4]
    assert [image for _, _, image, _ in found(out)] == store.image_ids[
        store.caption_image[order]
    ].tolist()
    captions = [scenes.split("test").captions[place] for place in order]
    header, *lines = out.splitlines()
    assert header.endswith("the caption found")
    assert all(line.endswith(caption) for line, caption in zip(lines, captions, strict=False))
    html = Path("page.html").read_text(encoding="utf-8")
    assert html.count("data:image/webp;base64,") == 5  # the query and four results
    # Its own features, found among images, are nearest to themselves.
    out = pipeline("search", "--image", file, "--find", "images", "--top", "1")[1]
    assert found(out)[0][2] == store.image_ids[row]
    assert found(out)[0][1] == pytest.approx(1, abs=1e-3)


@pytest.fixture
def elsewhere(project: Path, scenes: Manifest) -> Path:
    """The same images as another data set, with features made alike."""
    other = Manifest(scenes.table, "other", scenes.images_folder)
    other.save(Path("data/other.parquet"))
    shutil.copytree("features/sample/region.zarr", "features/other/region.zarr")
    return Path("embeddings/other", f"sample-{HEAD}.zarr")


def test_another_data_set_is_embedded_and_searched(
    pipeline: Any, elsewhere: Path, scenes: Manifest
) -> None:
    code, out, err = pipeline("embed", "other", "--system", HEAD)
    assert (code, f"{elsewhere}: 24 images and 120 captions of other" in out) == (0, True), err
    store = System.open_vectors(elsewhere)
    assert (store.made_from.dataset, store.made_from.split) == ("other", "train+val+test")
    test = np.isin(store.image_ids, scenes.split("test").image_ids)
    own = System.open_vectors(OWN).embeddings()
    np.testing.assert_allclose(store.embeddings().images[test], own.images, atol=1e-6)
    np.testing.assert_allclose(
        store.embeddings().captions[test[store.caption_image]], own.captions, atol=1e-6
    )
    out = pipeline(
        "search", scenes.split("train").captions[0], "--system", elsewhere, "--top", "24"
    )[1]
    assert sorted(image for _, _, image, _ in found(out)) == sorted(store.image_ids.tolist())
    other_run = (
        "-S",
        "run.recipes=[vse_infty]",
        "-S",
        "run.dataset=other",
        "-S",
        "run.ablations=[]",
    )
    searched = ("search", scenes.split("train").captions[0], "--system", elsewhere, "--top", "24")
    assert (
        pipeline(*searched, *other_run)[1] == out
    )  # the store says whose it is, and on what that was trained


def test_a_system_is_named_or_is_a_place(pipeline: Any, project: Path) -> None:
    for command in (("evaluate", "--json"), ("search", "a house"), ("score",)):
        place = Path("heads", "sample", HEAD) if command == ("score",) else OWN
        named, there = (pipeline(*command, "--system", system) for system in (HEAD, place))
        assert named == there
        assert named[0] == 0, named[2]


def test_vectors_and_ids_that_changed_are_neither_searched_nor_scored_nor_traced(
    pipeline: Any, refused: Callable[..., str], elsewhere: Path
) -> None:
    assert pipeline("embed", "other", "--system", HEAD, "--split", "test")[0] == 0
    code, out, err = pipeline("trace", elsewhere, "-v")
    assert code == 0, out + err
    assert {f"heads/sample/{HEAD}/best.safetensors", str(elsewhere)} <= set(out.splitlines())
    for store, searched in ((OWN, ()), (elsewhere, ("--system", elsewhere))):
        for change, array in (
            (tampering.flip, "image_embeddings"),
            (tampering.swap_rows, "image_ids"),
        ):
            file = next(path for path in (store / array / "c").rglob("*") if path.is_file())
            kept = file.read_bytes()
            change(file)
            assert f"{store / array}: has changed since it was written" in refused(
                "search", "a house", *searched
            )
            file.write_bytes(kept)
        record = store / "record.json"
        kept = record.read_bytes()
        record.write_bytes(kept.replace(b'"training": 1', b'"training": 2'))
        assert f"{record}: was edited" in refused("search", "a house", *searched)
        record.write_bytes(kept)
    vectors = elsewhere / "caption_embeddings"
    tampering.rolled(vectors)
    assert f"{vectors}: has changed" in refused("score", "--system", elsewhere)
    assert f"{vectors}: has changed" in refused("evaluate", "--system", elsewhere)
    assert pipeline("trace", elsewhere, "--embed", "0")[0] == 2


def test_a_head_whose_record_was_edited_does_not_search(
    refused: Callable[..., str], project: Path
) -> None:
    record = Path("heads/sample", HEAD, "record.json")
    record.write_bytes(record.read_bytes().replace(b'"training": 1', b'"training": 2'))
    assert f"{record}: was edited; restore it" in refused("search", "a house")


def test_distractors_enlarge_the_pool_and_ask_nothing(
    pipeline: Any, refused: Callable[..., str], elsewhere: Path
) -> None:
    assert (
        pipeline("embed", "other", "--system", HEAD, "--split", "train", "--split", "val")[0] == 0
    )
    alone = json.loads(pipeline("evaluate", "--system", OWN, "--json")[1])[0]
    enlarged = ("evaluate", "--system", OWN, "--distractors", elsewhere)
    numbers = json.loads(pipeline(*enlarged, "--json")[1])[0]
    assert (numbers["images"], numbers["captions"], numbers["protocol"]) == (24, 120, "enlarged")
    assert numbers["queries"] == alone["queries"] == {"i2t": 4, "t2i": 20}
    assert numbers["t2i"]["MeanR"] > alone["t2i"]["MeanR"]
    assert numbers["RSUM"] <= alone["RSUM"]
    assert (
        pipeline(*enlarged, "--record")[0]
        == pipeline("evaluate", "--system", OWN, "--record")[0]
        == 0
    )
    kept = results.read(Path("results", "recorded.json"), results.COMMAND)
    assert list(kept) == [f"{HEAD} on sample, among other train+val", f"{HEAD} on sample"]
    steps = json.loads(
        pipeline("trace", "results/recorded.json", next(iter(kept)), "--embed", "0", "--json")[1]
    )
    assert [each["what"] for each in steps if each["verdict"] != "matches"] == []
    assert "measured again, enlarged" in {each["what"] for each in steps}
    assert str(elsewhere) in {each["path"] for each in steps}
    caption = System.open(OWN).caption_ids[0]
    asked = pipeline(
        "trace", "results/recorded.json", next(iter(kept)), "--embed", "0", "--caption", caption
    )[1]
    assert f"caption {caption}: its image " in asked
    assert "of 24" in asked
    entry = kept[f"{HEAD} on sample, among other train+val"]
    beside = {
        "system",
        "dataset",
        "split",
        "read_as",
        "sides",
        "lists",
        "notes",
    }  # which the record has
    assert entry.numbers["enlarged"] == {
        key: value for key, value in numbers.items() if key not in beside
    }
    assert [(each.images, each.captions) for each in entry.request.distractors] == [(20, 100)]
    Path("results", "recorded.json").write_text(
        Path("results", "recorded.json").read_text().replace("20", "21", 1)
    )
    assert "is not as it was measured" in refused(*enlarged, "--record")
    assert "--record needs a FILE" in refused("evaluate", "--record")
    assert "20 of its images are in the pool already" in refused(
        *enlarged, "--distractors", elsewhere
    )
    assert "--folds cannot be given with --distractors" in refused(*enlarged, "--folds", "2")
    assert "--distractors needs one FILE" in refused("evaluate", "--distractors", elsewhere)
    change(elsewhere, "checkpoint")
    assert "holds the vectors of another head" in refused(*enlarged)


def test_what_is_made_of_other_systems_has_no_vectors_and_names_its_members(
    pipeline: Any, refused: Callable[..., str], project: Path
) -> None:
    twin = OWN.with_name("vse2ad-twin-bigru-s0.zarr")
    shutil.copytree(OWN, twin)
    for key, value in (("head", twin.stem), ("checkpoint", "another")):
        change(twin, key, value)
    for made, command in {
        "fused": ("ensemble", "fused", "--member", HEAD, "--member", twin.stem),
        f"{HEAD}+csls": ("rescore", HEAD, "--by", "csls"),
    }.items():
        assert pipeline(*command)[0] == 0
        line = refused("search", "a house", "--system", made)
        again = " ".join(command)
        members = HEAD + f", {twin.stem}" * (made == "fused")
        assert (
            f"{made}: `pipeline {again}` makes it of other systems' scores, and it has no vectors of its own"
            in line
        )
        assert line.endswith(f"; search by its members: {members}")
        line = refused("evaluate", "--system", OWN.with_name(f"{made}.zarr"), "--distractors", OWN)
        assert line.endswith(
            f"has no vectors of its own; use --distractors with its members: {members}"
        )
    members = [word for file in ("a.npy", "b.npy") for word in ("--member", file)]
    for file in members[1::2]:
        np.save(file, System.open(OWN).similarity[:])
    code, _, err = pipeline("ensemble", "unknown", *members, "--manifest", "data/sample.parquet")
    assert code == 0, err
    assert "unknown: `pipeline ensemble unknown" in refused(
        "search", "a house", "--system", "unknown"
    )


class Double:
    """A scorer of pairs of any two data sets: numbers that look drawn, by ids."""

    gives_logits = True

    def __init__(self, name: str, source: PairSource) -> None:
        self.made_from = {"seen": [source.images, source.captions]}
        self.shift = len(source.images) + 2 * len(source.captions)

    def score(self, image_ids: Ids, caption_ids: Ids, progress: Any = None) -> Any:
        return np.sin(image_ids * 12.9898 + caption_ids * 78.233 + self.shift).astype(np.float32)


def test_a_pool_with_distractors_is_reranked(
    pipeline: Any, refused: Callable[..., str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(reranking.SCORERS._places, "double", "test_search:Double")  # type: ignore[attr-defined]
    assert (
        pipeline("embed", "other", "--system", HEAD, "--split", "train", "--split", "val")[0] == 0
    )
    rerank = ("rerank", "--retriever", HEAD, "--with", "double:any")
    assert pipeline(*rerank, "--k", "10", "--distractors", elsewhere)[0] == 0
    store = Path("similarities", "sample", f"{HEAD}+rerank.zarr")
    enlarged = ("--distractors", elsewhere, "--json")
    alone = json.loads(pipeline("evaluate", "--system", OWN, *enlarged)[1])[0]
    numbers = json.loads(pipeline("evaluate", "--system", store, *enlarged)[1])[0]
    assert (numbers["images"], numbers["captions"], numbers["protocol"]) == (24, 120, "enlarged")
    for way in ("i2t", "t2i"):
        assert numbers[way]["R@10"] == pytest.approx(alone[way]["R@10"])
        assert numbers[way]["MeanR"] != alone[way]["MeanR"]
    assert "was reranked among distractors; name them with --distractors" in refused(
        "evaluate", "--system", store
    )
    assert pipeline("trace", store, "--embed", "0")[0] == 0
    forged.copied(OWN, OWN.with_name("twin.zarr"))
    assert "distractors of other are wanted" in refused(
        "rerank",
        "--retriever",
        HEAD,
        "--with",
        "system:twin",
        "--name",
        "more",
        "--distractors",
        elsewhere,
    )
    assert "--if-changed redo replaces it" in refused(*rerank, "--k", "4")
    assert pipeline(*rerank, "--k", "4", "--if-changed", "redo")[0] == 0
    assert "was reranked among no distractors" in refused(
        "evaluate", "--system", store, *enlarged[:2]
    )


def forgive_edits(store: Path, head: Path) -> None:
    """Let the record of an edited store, and the head's record of it, fit what the store says
    now.
    """
    forged.recorded(store.parent)
    forged.artefact(
        head.parent,
        lambda content: content["facts"].update(store=FeatureStore(store.parent).identity),
    )


def change(store: Path, key: str, value: str = "another") -> None:
    """Let a store say something else of what made it."""
    saved.sealed_anew(
        store,
        lambda facts: (facts["member"] if key in ("checkpoint", "head") else facts).update(
            {key: value}
        ),
    )


def test_what_does_not_belong_together_is_refused(
    refused: Callable[..., str], pipeline: Any, elsewhere: Path
) -> None:
    assert "give exactly one of a text, --image and --queries" in refused("search")
    assert "give exactly one of a text, --image and --queries" in refused(
        "search", "a house", "--image", "photo.jpg"
    )
    assert "it is empty" in refused("search", " ")
    assert "photo.jpg: no such file" in refused("search", "--image", "photo.jpg")
    assert "no head there" in refused("search", "a house", "--system", "nothing")
    assert "no embeddings there" in refused("search", "a house", "--system", "nothing.zarr")
    change(OWN, "manifest")
    assert "was made with another manifest" in refused("search", "a house")
    change(OWN, "checkpoint")
    assert "is of another head than" in refused("search", "a house")
    forged.artefact(
        Path("features/other/region.zarr"),
        lambda record: record["request"].update(precision="bf16"),
    )
    assert "its precision is 'bf16', the head was trained with 'fp32'" in refused(
        "embed", "other", "--system", HEAD
    )


def test_a_head_of_another_machine_is_told_where_it_must_be(
    pipeline: Any, project: Path, tmp_path: Path
) -> None:
    shutil.copytree(Path("heads/sample", HEAD), "copied")
    code, _, err = pipeline("search", "a ring", "--system", "copied")
    assert (code, "run `pipeline embed sample --system copied`" in err) == (2, True)
    assert pipeline("embed", "sample", "--system", "copied", "--out", "vectors.zarr")[0] == 0
    code, _, err = pipeline("search", "a ring", "--system", "vectors.zarr")
    assert (code, "heads/sample/copied; put it there" in err) == (2, True)


def test_a_found_caption_of_no_image_is_listed_by_itself() -> None:
    rows = [
        (5, "a.jpg", 1, "test", 9, "a dog"),
        (5, "a.jpg", 1, "test", 6, "one dog"),
        (-1, "", -1, "test", 7, "no house"),
        (-1, "", -1, "test", 8, "no tree"),
    ]
    table = Manifest(pd.DataFrame(rows, columns=list(COLUMNS)), "mine", Path("images"))
    store: Any = SimpleNamespace(
        caption_image=np.array([0, 0, -1, -1]),
        image_ids=np.array([5]),
        caption_ids=np.array([9, 6, 7, 8]),
    )
    found = np.array([[3, 1]])
    (hits,) = search._hits(table, store, True, found, np.array([[0.5, 0.25]]))
    descriptions = [
        (hit.rank, hit.similarity, hit.image_id, hit.captions, hit.found) for hit in hits
    ]
    assert descriptions == [
        (1, 0.5, -1, ["no tree"], "no tree"),
        (2, 0.25, 5, ["a dog", "one dog"], "one dog"),
    ]
    assert hits[0].file is None
    assert hits[1].file is not None
    assert hits[1].file.path == Path("images/a.jpg")
