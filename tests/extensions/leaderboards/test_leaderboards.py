"""Files of the tools behind leaderboards, made as their sources write them: the numbers are those
of plain NumPy on what was written.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from command_line import Cli

from pipeline.extensions.leaderboards import multi_vectors
from pipeline.extensions.leaderboards.mmeb import Labels
from pipeline.foundation import settings
from pipeline.foundation.evaluation.statistics.contrast import together
from pipeline.foundation.files import expansion
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import measured
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns, Truth, judge
from pipeline.judge.tables.evaluated import to_text

SETTINGS = settings.load(Path(__file__).parents[3] / "params.yaml")
QUERIES, CANDIDATES, OWN, DIMENSION = 30, 40, 8, 16
# The vectors of clip-retrieval's images.
PHOTOS = np.random.default_rng(8).normal(size=(8, 6))
NAMES = [f"candidate {number}" for number in range(CANDIDATES)]


def recall_at_1(file: str, columns: Columns = Columns()) -> float:
    """R@1 of the queries of a file, in percent."""
    system = open_system(file, columns)
    if columns.judgements is not None:
        system = judge(system, Truth(qrels=columns.judgements), None)
    value: float = measured.measure(system, "all", "expected", SETTINGS.evaluate).numbers["t2i"][
        "R@1"
    ]
    return value


def write_lines(path: Path, lines: Iterable[Any]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


class Encoded:
    """A data set of MMEB: candidate i is right for query i, which has `OWN` candidates of its
    own.
    """

    def __init__(self, folder: Path, rng: np.random.Generator) -> None:
        self.path = folder / "made_qry"
        self.vectors = rng.normal(size=(CANDIDATES, DIMENSION)).astype(np.float32)
        noise = rng.normal(size=(QUERIES, DIMENSION)).astype(np.float32)
        self.queries = self.vectors[:QUERIES] + 1.5 * noise
        self.own = []
        for query in range(QUERIES):
            others = rng.choice(np.delete(np.arange(CANDIDATES), query), OWN - 1, replace=False)
            self.own.append([query, *others.tolist()])
        self.path.write_bytes(pickle.dumps(self.queries))
        named = dict(zip(NAMES, self.vectors, strict=True))
        (folder / "made_tgt").write_bytes(pickle.dumps(named))
        names = [[NAMES[each] for each in row] for row in self.own]
        info = [{"cand_names": row, "label_name": NAMES[query]} for query, row in enumerate(names)]
        write_lines(folder / "made_info.jsonl", info)

    def ranked(self, query: int, among: list[int]) -> list[int]:
        scores = self.vectors[among] @ self.queries[query]
        return [among[each] for each in np.argsort(-scores)]

    def first_are_right(self, pools: list[list[int]]) -> float:
        """Percent of queries whose first candidate is right."""
        first = [self.ranked(query, pool)[0] for query, pool in enumerate(pools)]
        return 100 * float(np.mean(np.array(first) == np.arange(QUERIES)))

    def predict(self, pools: list[list[int]]) -> Path:
        """Write the ranked lists, as VLM2Vec does."""
        lines = []
        for query, pool in enumerate(pools):
            ranked = [NAMES[each] for each in self.ranked(query, pool)]
            lines.append({"prediction": ranked, "label": [NAMES[query]], "rel_scores": None})
        path = self.path.with_name("made_pred.jsonl")
        write_lines(path, lines)
        return path


@pytest.fixture
def encoded(tmp_path: Path, rng: np.random.Generator) -> Encoded:
    return Encoded(tmp_path, rng)


def test_queries_of_mmeb_are_ranked_among_their_own_or_all_candidates(encoded: Encoded) -> None:
    every = [list(range(CANDIDATES))] * QUERIES
    expected = {
        "local": encoded.first_are_right(encoded.own),
        "global": encoded.first_are_right(every),
    }
    assert expected["local"] > expected["global"] > 0
    for pool, recall in expected.items():
        assert recall_at_1(f"{encoded.path}:{pool}") == pytest.approx(recall)
    with pytest.raises(InputError, match=r"type .*made_qry:local or .*made_qry:global"):
        open_system(str(encoded.path))
    # The ranked lists beside them say it, and hold the same ranks and labels.
    for pools, recall in ((encoded.own, expected["local"]), (every, expected["global"])):
        predicted = encoded.predict(pools)
        assert recall_at_1(str(encoded.path)) == pytest.approx(recall)
        assert recall_at_1(str(predicted)) == pytest.approx(recall)
    assert "ties cannot be seen" in open_system(str(predicted)).read_as
    with pytest.raises(InputError, match=r"made_pred\.jsonl: holds one list .* leave out :local"):
        open_system(f"{predicted}:local")


def test_a_file_of_mmeb_alone_says_what_is_missing_beside_it(encoded: Encoded) -> None:
    queries = encoded.path
    candidates = queries.with_name("made_tgt")
    info = queries.with_name("made_info.jsonl")
    for typed in (candidates, info, f"{queries}:{candidates}"):
        with pytest.raises(InputError, match=r": (holds no queries; )?name .*made_qry"):
            open_system(str(typed))
    for typed, missing in (
        (f"{queries}:local", [info]),
        (candidates, [queries, info]),
        (queries, [candidates, info]),
        (info, [queries, candidates]),
    ):
        kept = [(file, file.read_bytes()) for file in missing]
        for file in missing:
            file.unlink()
        said = f"lacks {' and '.join(file.name for file in missing)} beside it"
        with pytest.raises(InputError, match=said):
            open_system(str(typed))
        for file, content in kept:
            file.write_bytes(content)


def test_the_same_candidates_in_another_order_are_all_candidates(encoded: Encoded) -> None:
    """VLM2Vec lists the right one first."""
    info = encoded.path.with_name("made_info.jsonl")
    lines = []
    for query in range(QUERIES):
        names = [NAMES[query], *(name for name in NAMES if name != NAMES[query])]
        lines.append({"cand_names": names, "label_name": NAMES[query]})
    write_lines(info, lines)
    every = [list(range(CANDIDATES))] * QUERIES
    assert recall_at_1(str(encoded.path)) == pytest.approx(encoded.first_are_right(every))
    # With a vector more it is not known whether that candidate is one.
    more = dict(zip([*NAMES, "another"], [*encoded.vectors, encoded.vectors[0]], strict=True))
    encoded.path.with_name("made_tgt").write_bytes(pickle.dumps(more))
    with pytest.raises(InputError, match="lists 40 of 41 candidates"):
        open_system(str(encoded.path))
    shown = open_system(f"{encoded.path}:local").read_as
    assert (
        "41 candidates; each query is ranked among its own candidates; the pool has 40: 40 of these 41"
        in shown
    )
    info.write_text("")
    encoded.path.write_bytes(pickle.dumps(encoded.queries[:0]))
    with pytest.raises(InputError, match=r"made_info\.jsonl: is empty"):
        open_system(str(encoded.path))


def test_ranked_lists_are_compared_with_vectors_of_the_same_candidates(
    encoded: Encoded, pipeline: Cli, refused: Callable[..., str]
) -> None:
    """Queries list a wrong candidate and the right one twice, as MMEB's may."""
    own = [[*row[:-1], row[1], row[0]] for row in encoded.own]
    names = [[NAMES[each] for each in row] for row in own]
    info = [{"cand_names": row, "label_name": NAMES[query]} for query, row in enumerate(names)]
    write_lines(encoded.path.with_name("made_info.jsonl"), info)
    lists = encoded.predict(own)
    system = open_system(str(encoded.path))
    listed = {*np.ravel(own).tolist()}
    again = {row[1] for row in own}
    assert system.shape[0] == len(listed) + len(again)
    said = (
        f"the pool has {system.shape[0]}: {len(listed)} of these 40 are in lists, {len(again)} are"
    )
    assert said in system.read_as
    code, out, _ = pipeline("compare", lists, encoded.path, "--json")
    assert code == 0
    (contrast,) = json.loads(out)
    row = contrast["t2i"]["R@1"]
    recall = encoded.first_are_right(own)
    assert row["a"] == row["b"] == pytest.approx(recall)
    other = lists.with_name("other_pred.jsonl")
    lists.rename(other)
    lines = other.read_text().splitlines()
    vectors = f"{encoded.path}:local"
    said = refused("compare", other, f"{encoded.path}:global")
    assert said.endswith("different candidates: query 0 has 8 in other_pred, 40 in made_qry:global")
    other.write_text("\n".join([*lines[:-1], lines[0]]))
    assert refused("compare", other, vectors).endswith("as many for each query, but others")
    other.write_text("\n".join(lines[1:]))
    assert "other_pred has 29 queries, made_qry:local 30" in refused("compare", other, vectors)


def test_runs_by_other_labels_are_not_compared(
    encoded: Encoded, pipeline: Cli, refused: Callable[..., str]
) -> None:
    lists = encoded.predict(encoded.own)
    lines = lists.read_text().splitlines()
    changed = json.loads(lines[3]) | {"label": [NAMES[encoded.own[3][2]]]}
    other = lists.with_name("other_pred.jsonl")
    other.write_text("\n".join([*lines[:3], json.dumps(changed), *lines[4:]]))
    said = refused("compare", other, encoded.path)
    assert "made_qry: have other right candidates for query 3; give --qrels" in said
    info = encoded.path.with_name("made_info.jsonl")
    assert pipeline("compare", other, encoded.path, "--qrels", info)[0] == 0


def test_two_pools_of_one_run_are_no_seeds(encoded: Encoded, refused: Callable[..., str]) -> None:
    lists = encoded.predict(encoded.own)
    for pool in ("global", "local"):
        said = refused("compare", f"A={encoded.path}:{pool},{encoded.path}", f"B={lists}")
        assert f"made_qry:{pool} and made_qry: are one run of {encoded.path}" in said


def test_a_candidate_that_comes_twice_takes_two_places(tmp_path: Path) -> None:
    lines = [
        {"prediction": ["b", "b", "a"], "label": ["a"], "rel_scores": None},
        {"prediction": [1, 2, 3], "label": [2], "rel_scores": [2]},
    ]
    write_lines(tmp_path / "x_pred.jsonl", lines)
    system = open_system(str(tmp_path / "x_pred.jsonl"))
    how = SETTINGS.evaluate.model_copy(update={"metrics": ["MRR"]})
    numbers = measured.measure(system, "all", "expected", how).numbers["t2i"]
    assert numbers["MRR"] == pytest.approx(100 * (1 / 3 + 1 / 2) / 2)


def late_interaction(query: np.ndarray, page: np.ndarray) -> float:
    """MaxSim by its definition, of tokens in float64."""
    total = 0.0
    for token in query.astype(np.float64):
        total += max(float(token @ other) for other in page.astype(np.float64))
    return total


def test_tokens_are_compared_by_their_best_matches_and_padding_is_none(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multi_vectors, "PRODUCTS", 100)  # two tokens of a query at a time
    pages = [rng.normal(size=(rng.integers(2, 7), 4)) - 1.5 for _ in range(12)]
    queries = [rng.normal(size=(3, 4)) + 1.5 for _ in range(12)]
    scores = np.array([[late_interaction(query, page) for page in pages] for query in queries])
    assert (scores < 0).any()
    expected = 100 * float(np.mean(scores.argmax(1) == np.arange(12)))
    padded = np.zeros((12, 7, 4), np.float32)
    for number, page in enumerate(pages):
        padded[number, : len(page)] = page
    np.save(tmp_path / "pages.npy", padded)
    np.save(tmp_path / "queries.npy", np.array(queries, np.float32))
    (tmp_path / "pages.pkl").write_bytes(pickle.dumps([page.astype(np.float32) for page in pages]))
    padded[0, 0, 0] = np.nan
    np.save(tmp_path / "nan.npy", padded)
    with pytest.raises(InputError, match="NaN or infinity"):
        open_system(
            f"{tmp_path / 'nan.npy'}:{tmp_path / 'queries.npy'}", Columns(captions_per_image=1)
        )
    for file in ("pages.npy", "pages.pkl"):
        typed = f"{tmp_path / file}:{tmp_path / 'queries.npy'}"
        system = open_system(typed, Columns(captions_per_image=1))
        lists: Any = system.scores
        listed = lists.listed["t2i"]
        np.testing.assert_allclose(listed.score.reshape(12, 12), scores, rtol=1e-4)
        assert recall_at_1(typed, Columns(captions_per_image=1)) == pytest.approx(expected)


def test_tokens_by_id_are_those_of_their_ids(tmp_path: Path, rng: np.random.Generator) -> None:
    """Dicts of torch or pickle, archives, and lists of batches of one."""
    pages = {}
    for number in range(8):
        tokens = rng.normal(size=(number + 2, 4))
        pages[f"page {10 - number}"] = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    queries = {f"q{number}": page[:2] for number, page in enumerate(pages.values())}
    tensors = {each: torch.from_numpy(page) for each, page in pages.items()}
    torch.save(tensors, tmp_path / "pages.pt")
    torch.save([page[None] for page in tensors.values()], tmp_path / "batches.pt")
    np.savez(tmp_path / "pages.npz", **pages)  # type: ignore[arg-type]
    np.savez(tmp_path / "numbered.npz", *pages.values())
    (tmp_path / "queries.pkl").write_bytes(pickle.dumps([*queries.values()][::-1]))
    np.savez(tmp_path / "queries.npz", **dict([*queries.items()][::-1]))  # type: ignore[arg-type]
    qrels = tmp_path / "qrels.json"
    right = zip(queries, pages, strict=True)
    qrels.write_text(json.dumps({query: {page: 1} for query, page in right}))
    for file in ("pages.pt", "pages.npz"):
        typed = f"{tmp_path / file}:{tmp_path / 'queries.npz'}"
        assert recall_at_1(typed, Columns(judgements=qrels)) == 100
    for file in ("pages.pt", "batches.pt", "numbered.npz"):
        typed = f"{tmp_path / file}:{tmp_path / 'queries.pkl'}"
        system = open_system(typed, Columns(captions_per_image=1))
        lists: Any = system.scores
        best = lists.listed["t2i"].score.reshape(8, 8).argmax(1)
        assert best.tolist() == [*range(8)][::-1]


def test_the_tokens_of_one_item_are_known_beside_those_of_others(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    pages = [rng.normal(size=(number + 2, 4)) for number in range(3)]
    for name, held in (("pages", pages), ("one", pages[:1]), ("bare", pages[0])):
        (tmp_path / f"{name}.pkl").write_bytes(pickle.dumps(held))
    np.save(tmp_path / "one.npy", pages[0][None])
    many, one = tmp_path / "pages.pkl", tmp_path / "one.pkl"
    system = open_system(f"{one}:{many}", Columns(captions_per_image=3))
    assert "tokens of 1 page and 3 queries" in system.read_as
    one_each = f"{tmp_path / 'one.npy'}:{one}"
    assert recall_at_1(one_each, Columns(captions_per_image=1)) == 100
    for typed, said in (
        (f"{one}:{one}", r"tokens of one page and of one query, save arrays \[1, tokens, D\]"),
        (f"{many}:{tmp_path / 'bare.pkl'}", r"save \[1, 2, 4\] if .* or \[2, 1, 4\] if they"),
        (f"{many}:{one}", r"pages\.pkl and .*one\.pkl: 3 x 1 vectors, expected 3 of images"),
    ):
        with pytest.raises(InputError, match=said) as refused:
            open_system(typed, Columns(captions_per_image=2))
        assert "\n" not in str(refused.value)


def test_one_array_of_many_names_is_counted_for_each(
    encoded: Encoded, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of 40 kB, whose candidates are 20 MB when each has tokens of its own."""
    monkeypatch.setattr(expansion, "ALLOWED", 1 << 20)
    tokens = rng.normal(size=(640, DIMENSION)).astype(np.float32)
    names = [*NAMES, *(f"another {number}" for number in range(460))]
    pages = encoded.path.with_name("made_tgt")
    pages.write_bytes(pickle.dumps(dict.fromkeys(names, tokens)))
    queries = encoded.path.with_name("queries.pkl")
    queries.write_bytes(pickle.dumps([tokens[:3], tokens[:2]]))
    listed = encoded.path.with_name("pages.pkl")
    listed.write_bytes(pickle.dumps([tokens] * 500))
    for typed in (f"{encoded.path}:global", f"{listed}:{queries}"):
        with pytest.raises(InputError, match=r"bytes become more than .* for each name"):
            open_system(typed, Columns(captions_per_image=1))


def test_a_candidate_is_in_memory_once_however_often_a_query_lists_it(
    encoded: Encoded, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_together = []

    def counting(items: Any, padded_to: int) -> Any:
        put_together.append(len(items))
        return of(items, padded_to)

    of = multi_vectors.Candidates.of
    monkeypatch.setattr(multi_vectors.Candidates, "of", counting)
    line = {"cand_names": [NAMES[0]] + 2000 * [NAMES[1]], "label_name": NAMES[0]}
    write_lines(encoded.path.with_name("made_info.jsonl"), [line] * QUERIES)
    lists: Any = open_system(f"{encoded.path}:local").scores
    assert {*put_together} == {2}
    assert len(lists.listed["t2i"].query) == 2001 * QUERIES


ONE = {"a": 0.9, "b": 0.1}


@pytest.mark.parametrize(
    ("run", "judged", "recall"),
    [
        # Judgements with an id of text beside the numbers; 19 digits, and hexadecimal ones.
        ({str(10**18 + 1): ONE}, {str(10**18 + 1): "a", "x": "a"}, 100),
        ({"q": {"0x01": 1.0}}, {"q": "0x01", "x": "text"}, 100),
        # Two candidates of one number, which are as similar.
        ({"q": {"1": 0.9, "01": 0.9}}, {"q": "01"}, 50),
        ({"q": {"image_3": 0.9, "caption_3": 0.1, "3": 0.5}}, {"q": "image_3"}, 100),
        ({"q": {"٣": 0.9, "3": 0.1}}, {"q": "3"}, 0),
        ({"q": {"": 0.9, "3": 0.1}}, {"q": ""}, 100),
        ({"q": {"": 0.9, "\0": 0.1}}, {"q": "\0"}, 0),
        # A column of numbers is written as floats where a row has none.
        ({"q": {"5": 0.9, "3": 0.1}}, {"q": "5.0"}, 100),
    ],
)
def test_ids_of_a_tool_are_their_exact_text(
    tmp_path: Path, run: dict[str, Any], judged: dict[str, str], recall: float
) -> None:
    path = tmp_path / "Made_predictions.json"
    path.write_text(json.dumps({"mteb_model_meta": {}, "en": {"test": run}}))
    qrels = tmp_path / "qrels.json"
    qrels.write_text(json.dumps({query: {right: 1} for query, right in judged.items()}))
    assert recall_at_1(str(path), Columns(judgements=qrels)) == recall


def test_candidates_of_ids_written_in_another_way_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "Made_predictions.json"
    run = {"q1": {"000000391895": 0.9}, "q2": {"000000522418": 0.8}}
    path.write_text(json.dumps({"mteb_model_meta": {}, "en": {"test": run}}))
    qrels = tmp_path / "qrels.json"
    for judged in ("391895", "000000391895"):
        qrels.write_text(json.dumps({"q1": {judged: 1}, "q2": {"522418": 1}}))
        system = open_system(str(path), Columns(judgements=qrels))
        system = judge(system, Truth(qrels=qrels), None)
        result = measured.measure(system, "all", "expected", SETTINGS.evaluate)
        of_run = measured.of_lists(result)["t2i"]
        is_shown = of_run.get("candidates_such_as") == ["000000391895", judged]
        assert is_shown == (judged == "391895")


def test_runs_of_uniir_have_a_column_more(tmp_path: Path) -> None:
    run = tmp_path / "run.txt"
    qrels = tmp_path / "qrels.txt"
    run.write_text(
        "8:1 Q0 9:5 1 0.9 mbeir 7\n8:1 Q0 9:6 2 0.5 mbeir 7\n8:2 Q0 9:5 1 0.8 mbeir 7\n8:2 Q0 9:7 2 0.1 mbeir 7\n"
    )
    qrels.write_text("8:1 0 9:5 1 7\n8:2 0 9:7 1 7\n")
    assert recall_at_1(str(run), Columns(judgements=qrels)) == 50
    system = judge(open_system(str(run), Columns(judgements=qrels)), Truth(qrels=qrels), None)
    result = measured.measure(system, "all", "expected", SETTINGS.evaluate)
    described = {"sides": system.sides, "lists": measured.of_lists(result)}
    shown = to_text([("", result.numbers | described)])
    assert shown.startswith("3 candidates x 2 queries")
    assert "query → candidate: lists of up to 2 candidates, each with a right one" in shown


def test_a_subset_and_split_of_mteb_are_chosen(tmp_path: Path) -> None:
    right = {"q1": {"a": 0.1, "b": 0.9}, "q2": {"a": 0.7, "b": 0.2}}
    wrong = {"q1": {"a": 0.9, "b": 0.1}, "q2": {"a": 0.2, "b": 0.7}}
    held = {
        "mteb_model_meta": {"model_name": "org/m"},
        "en": {"test": right},
        "fr": {"test": wrong},
        "eng-Latn:visual": {"test": right, "dev": wrong},
    }
    path = tmp_path / "Made_predictions.json"
    path.write_text(json.dumps(held))
    qrels = tmp_path / "qrels.json"
    qrels.write_text('{"q1": {"b": 1}, "q2": {"a": 1}}')
    columns = Columns(judgements=qrels)
    assert recall_at_1(f"{path}:en:test", columns) == 100
    assert recall_at_1(f"{path}:fr", columns) == 0
    assert recall_at_1(f"{path}:eng-Latn:visual:test", columns) == 100
    assert recall_at_1(f"{path}:eng-Latn:visual:dev", columns) == 0
    for typed, said in (
        (str(path), "holds en:test, fr:test, eng-Latn:visual:test and .*:dev; name one: .*:dev"),
        (f"{path}:eng-Latn:visual", "name one: .*:eng-Latn:visual:dev"),
        (f"{path}:de", "holds en:test, fr:test, eng-Latn:visual:test and .*:dev, not de"),
    ):
        with pytest.raises(InputError, match=said):
            open_system(typed, columns)


def write_shard(folder: Path, number: int, images: np.ndarray, captions: np.ndarray) -> None:
    """Write a partition as clip-retrieval does. images: the number of each row's image."""
    for name in ("img_emb", "text_emb", "metadata"):
        (folder / name).mkdir(exist_ok=True)
    np.save(folder / f"img_emb/img_emb_{number}.npy", PHOTOS[images].astype(np.float16))
    np.save(folder / f"text_emb/text_emb_{number}.npy", captions.astype(np.float16))
    paths = [f"/photos/{image}.jpg" for image in images]
    pd.DataFrame({"image_path": paths, "caption": paths}).to_parquet(
        folder / f"metadata/metadata_{number}.parquet"
    )


def test_rows_of_one_path_are_one_image_of_clip_retrieval(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    image_of_row = rng.permutation(np.repeat(np.arange(8), 5))
    images = PHOTOS
    captions = images[image_of_row] + rng.normal(size=(40, 6))
    for shard in range(2):
        rows = slice(20 * shard, 20 * shard + 20)
        write_shard(tmp_path, shard, image_of_row[rows], captions[rows])
    halves = captions.astype(np.float16).astype(np.float64), images.astype(np.float16)
    best = (halves[0] @ halves[1].T).argmax(1)
    expected = 100 * float(np.mean(best == image_of_row))
    assert recall_at_1(str(tmp_path)) == pytest.approx(expected)
    assert "another vector" not in open_system(str(tmp_path)).read_as
    vectors = np.load(tmp_path / "img_emb/img_emb_1.npy")
    vectors[-1] *= np.float16(1.5)
    np.save(tmp_path / "img_emb/img_emb_1.npy", vectors)
    assert "1 row of an image with another vector" in open_system(str(tmp_path)).read_as
    pipe = tmp_path / "metadata/metadata_1.parquet"
    pipe.unlink()
    os.mkfifo(pipe)  # pyarrow would wait for its writer
    with pytest.raises(InputError, match=r"metadata_1\.parquet: is no regular file"):
        open_system(str(tmp_path))


def test_partitions_without_rows_have_no_shards(tmp_path: Path, rng: np.random.Generator) -> None:
    """clip-retrieval writes nothing for them, in none of its folders."""
    rows = np.repeat(np.arange(8), 5)
    captions = PHOTOS[rows] + rng.normal(size=(40, 6))
    numbers = [1, 2, 4, 7]
    for number, part in zip(numbers, np.split(np.arange(40), 4), strict=True):
        write_shard(tmp_path, number, rows[part], captions[part])
    halves = captions.astype(np.float16).astype(np.float64), PHOTOS.astype(np.float16)
    expected = 100 * float(np.mean((halves[0] @ halves[1].T).argmax(1) == rows))
    assert recall_at_1(str(tmp_path)) == pytest.approx(expected)
    assert "3 empty partitions: no shard 3, 5, 6 in any" in open_system(str(tmp_path)).read_as
    # Rows that moved from one file to another, as many in all.
    table = tmp_path / "metadata/metadata_4.parquet"
    whole = pd.read_parquet(table)
    whole[:4].to_parquet(table)
    with pytest.raises(InputError, match=r"shard 4 has .*\[10, 6\].* and 4 rows in metadata"):
        open_system(str(tmp_path))
    table.unlink()
    with pytest.raises(InputError, match="shard 4 is missing in metadata, and there in img_emb"):
        open_system(str(tmp_path))


def test_a_folder_of_clip_retrieval_says_which_one_is_missing(tmp_path: Path) -> None:
    rows = np.arange(8)
    write_shard(tmp_path, 0, rows, PHOTOS)
    assert "of 1 part," in open_system(str(tmp_path), Columns(captions_per_image=1)).read_as
    for name in ("img_emb", "text_emb", "metadata"):
        with pytest.raises(InputError, match=f"{name}: is one of .*; name {tmp_path}$"):
            open_system(str(tmp_path / name))
    away = tmp_path / "away"
    away.mkdir()
    for name, said in (
        ("img_emb", "has clip-retrieval's text_emb and metadata, and lacks img_emb"),
        ("text_emb", "has clip-retrieval's img_emb and metadata, and lacks text_emb"),
        ("metadata", f"name .* images first: {tmp_path}/img_emb:{tmp_path}/text_emb"),
    ):
        (tmp_path / name).rename(away / name)
        left = "text_emb" if name == "img_emb" else "img_emb"
        for typed in (tmp_path, tmp_path / left):
            with pytest.raises(InputError, match=said):
                open_system(str(typed))
        (away / name).rename(tmp_path / name)


@pytest.mark.parametrize("processes", [1, 3])
def test_pairs_that_were_not_scored_are_no_candidates(
    tmp_path: Path, rng: np.random.Generator, processes: int
) -> None:
    scores = rng.normal(size=(10, 50)) + 3 * np.repeat(np.eye(10), 5, axis=1)
    kept = {"i2t": np.argsort(-scores)[:, :20], "t2i": np.argsort(-scores.T)[:, :4]}
    stored = {}
    for way, matrix in (("i2t", scores), ("t2i", scores.T)):
        whole = np.full(matrix.shape, -100.0 * processes, np.float32)
        values = np.take_along_axis(matrix, kept[way], 1) - 100 * (processes - 1)
        np.put_along_axis(whole, kept[way], values.astype(np.float32), 1)
        stored[f"score_matrix_{way}"] = whole
    np.savez(tmp_path / "blip.npz", **stored)  # type: ignore[arg-type]
    system = open_system(str(tmp_path / "blip.npz"))
    assert "no candidates" in system.read_as
    whole = measured.measure(system, "all", "expected", SETTINGS.evaluate)
    numbers = whole.numbers
    hits = kept["t2i"][:, :1] == np.repeat(np.arange(10), 5)[:, None]
    assert numbers["t2i"]["R@1"] == pytest.approx(100 * hits.mean())
    missing = ~(kept["t2i"] == np.repeat(np.arange(10), 5)[:, None]).any(1)
    assert measured.of_lists(whole)["t2i"] == {"longest": 4, "without_right": missing.sum()}
    # A matrix of candidates of images does not rank images for captions, whichever were scored.
    one = stored["score_matrix_i2t"]
    for rows in (slice(0), slice(1), slice(5), slice(5, None)):
        partly = one.copy()
        partly[rows] = -100.0 * processes
        np.save(tmp_path / "one.npy", partly)
        scores_of_images: Any = open_system(str(tmp_path / "one.npy")).scores
        assert [*scores_of_images.listed] == ["i2t"]
    # Matrices of known directions may be scored in most of their pairs, or in all.
    for t2i in (scores.T, np.where(scores.T < -1, -100.0 * processes, scores.T)):
        both = {"score_matrix_i2t": one, "score_matrix_t2i": t2i.astype(np.float32)}
        np.savez(tmp_path / "both.npz", **both)  # type: ignore[arg-type]
        lists: Any = open_system(str(tmp_path / "both.npz")).scores
        assert {way: len(rows.query) for way, rows in lists.listed.items()} == {
            "i2t": 200,
            "t2i": int((t2i > -100).sum()),
        }
    # A score that cannot be ranked is refused, as in any matrix.
    for value in (np.nan, np.inf, -np.inf):
        broken = one.copy()
        broken[3, 15] = value
        np.save(tmp_path / "one.npy", broken)
        with pytest.raises(InputError, match=rf"row 3 \(image\), column 15 .* is {value}"):
            open_system(str(tmp_path / "one.npy"))


def test_judgements_of_other_queries_are_of_another_pool(tmp_path: Path) -> None:
    """The judgements of one language's subset are in a file with those of all languages."""
    path = tmp_path / "Made_predictions.json"
    held = {"q1": {"a.jpg": 0.9, "image:3": 0.1}, "q2": {"a.jpg": 0.7, "image:3": 0.2}}
    path.write_text(json.dumps({"mteb_model_meta": {}, "en": {"test": held}}))
    qrels = tmp_path / "qrels.json"
    judged = {"q1": {"a.jpg": 1}, "q2": {"image:3": 1}, "fr1": {"a.jpg": 1}, "b.jpg": {"a.jpg": 1}}
    qrels.write_text(json.dumps(judged))
    columns = Columns(judgements=qrels)
    assert recall_at_1(str(path), columns) == 50
    system = judge(open_system(str(path), columns), Truth(qrels=qrels), None)
    assert system.judgements is not None
    assert system.judgements.left_out == {"queries that the file does not list": 2}
    # A file's name may have colons, too.
    with_colon = tmp_path / "a:b.json"
    with_colon.write_text(path.read_text())
    assert recall_at_1(f"{with_colon}:en:test", columns) == 50
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"english-q1": {"a.jpg": 1}}))
    run = open_system(str(path), Columns(judgements=other))
    with pytest.raises(InputError, match=r"other\.json: says of none of the queries .* is right"):
        judge(run, Truth(qrels=other), None)
    # An empty list is one, of a query whose right candidate was not found.
    held["fr1"] = {}
    path.write_text(json.dumps({"mteb_model_meta": {}, "en": {"test": held}}))
    assert recall_at_1(str(path), columns) == pytest.approx(100 / 3)
    sentences = [
        {"query_id": query, "query": "", "results": results}
        for query, results in (("q1", [{"corpus_id": "a.jpg", "score": 0.9}]), ("q2", []))
    ]
    write_lines(tmp_path / "st.jsonl", sentences)
    assert recall_at_1(str(tmp_path / "st.jsonl"), columns) == 50
    ranked = [{"prediction": ["a"], "label": ["a"]}, {"prediction": [], "label": ["b"]}]
    write_lines(tmp_path / "y_pred.jsonl", [{**line, "rel_scores": None} for line in ranked])
    assert recall_at_1(str(tmp_path / "y_pred.jsonl")) == 50


def test_a_right_candidate_is_no_rival_of_its_copy_and_may_be_missing(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    vectors = {"a": [1.0, 0.0], "b": [0.0, 1.0], "caption:3": [0.5, 0.5]}
    queries = np.array([[1.0, 0.2], [0.2, 1.0], [1.0, 0.9]], np.float32)
    info = [
        {"cand_names": ["a", "a", "b"], "label_name": "a"},
        {"cand_names": ["caption:3", "b", "b"], "label_name": "caption:3"},
        {"cand_names": ["b", "a"], "label_name": "missing"},
    ]
    (tmp_path / "x_qry").write_bytes(pickle.dumps(queries))
    named = {name: np.array(vector, np.float32) for name, vector in vectors.items()}
    (tmp_path / "x_tgt").write_bytes(pickle.dumps(named))
    write_lines(tmp_path / "x_info.jsonl", info)
    assert recall_at_1(f"{tmp_path / 'x_qry'}:local") == pytest.approx(100 / 3)
    other = open_system(f"{tmp_path / 'x_qry'}:global")
    own = open_system(f"{tmp_path / 'x_qry'}:local")
    lists: list[Any] = [own.scores, other.scores]
    assert not lists[0].has_pairs_of(lists[1], "t2i")
    (tmp_path / "x_qry").write_bytes(pickle.dumps(queries[:, :1]))
    with pytest.raises(InputError, match=r"have the size 1, the candidates' 2"):
        open_system(f"{tmp_path / 'x_qry'}:local")


class Code:
    def __reduce__(self) -> Any:
        return print, ("ran",)


def test_what_is_damaged_is_refused_in_one_line(
    tmp_path: Path, encoded: Encoded, capsys: pytest.CaptureFixture[str]
) -> None:
    info = encoded.path.with_name("made_info.jsonl")
    whole = info.read_text()
    predictions = '{"mteb_model_meta": {"model_name": "m"}, "default": '
    for name, content, said in (
        ("a.json", predictions + '{"test": {"q": {"d": "high"}}}}', "no number"),
        ("b.json", predictions + '{"test": {"q": [1, 2]}}}', "no scores by candidate"),
        ("c.json", predictions + '{"test": {"q": {"d": 1}', "at character"),
        ("d.json", predictions + "[]}", "no split with queries"),
        ("e.jsonl", '{"query_id": "q", "results": [{"corpus_id": "d"}]}', "no corpus_id and score"),
        ("f.jsonl", '{"query_id": "q", "results": 5}', "no list of results"),
        ("g.jsonl", '{"prediction": [[1]], "label": [1]}', "neither a text nor a number"),
        ("h.jsonl", '{"prediction": ["a"], "label": ["a", "b"], "rel_scores": [1]}', "one each"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(InputError, match=said) as refused:
            open_system(str(tmp_path / name), Columns(judgements=tmp_path / name))
        assert "\n" not in str(refused.value)
    for content, said in (
        (whole[:-300], "made_info.jsonl: "),
        (whole.replace("date 3", "date x"), "lacks"),
    ):
        info.write_text(content)
        with pytest.raises(InputError, match=said):
            open_system(f"{encoded.path}:local")
    info.write_text(whole)
    candidates = encoded.path.with_name("made_tgt")
    named = dict(zip(NAMES, encoded.vectors, strict=True))
    candidates.write_bytes(pickle.dumps(named | {NAMES[3]: encoded.vectors[None, :2]}))
    with pytest.raises(InputError, match=r"made_tgt: 'candidate 3' is float32 \[1, 2, 16\]"):
        open_system(f"{encoded.path}:local")
    candidates.write_bytes(pickle.dumps(named))
    encoded.path.write_bytes(pickle.dumps([Code()]))
    with pytest.raises(InputError):
        open_system(f"{encoded.path}:local")
    assert "ran" not in capsys.readouterr().out


def test_systems_of_one_direction_are_compared_in_it(encoded: Encoded, tmp_path: Path) -> None:
    metrics = []
    hits = []
    for noise in (0.0, 2.0):
        rng = np.random.default_rng(7)
        encoded.queries = encoded.vectors[:QUERIES] + noise * rng.normal(size=(QUERIES, DIMENSION))
        path = encoded.predict(encoded.own)
        hits.append(
            [encoded.ranked(query, row)[0] == query for query, row in enumerate(encoded.own)]
        )
        system = open_system(str(path))
        metrics.append(measured.measure(system, "all", "expected", SETTINGS.evaluate).ranked[0][1])
    ((contrast,),) = together([[([metrics[0]], [metrics[1]])]], 1000, 0)
    assert contrast["i2t"] is None
    row = contrast["t2i"]["R@1"]
    difference = 100 * np.subtract(np.mean(hits[1]), np.mean(hits[0]))
    assert row["difference"] == pytest.approx(difference)
    # McNemar's exact test of the queries whose hit changed, which random swaps approach.
    changed = int(np.sum(np.array(hits[0]) != np.array(hits[1])))
    fewer = min(int(np.sum(np.array(hits[0]) & ~np.array(hits[1]))), changed)
    better = changed - fewer
    expected = min(
        1.0, 2 * sum(math.comb(changed, k) for k in range(min(fewer, better) + 1)) / 2**changed
    )
    assert row["p"] == pytest.approx(expected, abs=0.03)
    recalls = [contrast["t2i"][f"R@{k}"]["difference"] for k in (1, 5, 10)]
    assert contrast["RSUM"]["difference"] == pytest.approx(sum(recalls))


def test_the_model_of_predictions_is_named_unless_their_folder_names_it(tmp_path: Path) -> None:
    answers = tmp_path / "qrels.json"
    answers.write_text('{"0": {"a": 1}}')
    held = {"mteb_model_meta": {"model_name": "org/m"}, "en": {"test": {"0": {"a": 0.9}}}}
    said = []
    for folder in ("org__m", "other"):
        path = tmp_path / folder / "T_predictions.json"
        path.parent.mkdir()
        path.write_text(json.dumps(held))
        said.append("of org/m" in open_system(str(path), Columns(judgements=answers)).read_as)
    assert said == [False, True]


def test_keys_come_in_any_order(tmp_path: Path) -> None:
    """Of two queries the first finds its candidate, whatever comes first in a file."""
    answers = tmp_path / "qrels.json"
    answers.write_text('{"0": {"a": 1}, "1": {"a": 1}}')
    scores = {"0": {"a": 0.9, "b": 0.1}, "1": {"a": 0.2, "b": 0.7}}
    subset = {"en": {"test": scores}}
    model = {"mteb_model_meta": {"model_name": "org/m"}}
    lists = []
    predictions = []
    for query, row in scores.items():
        results = [{"score": score, "corpus_id": each} for each, score in row.items()]
        lists.append({"results": results, "query_id": query, "query": 'a "dog"'})
        ranked = sorted(row, key=lambda each, row=row: -row[each])  # type: ignore[misc]
        predictions.append({"rel_scores": None, "label": ["a"], "prediction": ranked})
    names = ["query", "results", "query_id"]
    turned = [{name: line[name] for name in names} for line in lists]
    label_first = [{"label": ["a"], "prediction": line["prediction"]} for line in predictions]
    for number, lines in enumerate(
        ([subset | model], [subset], [model | subset], lists, turned, predictions, label_first)
    ):
        path = tmp_path / f"{number}.jsonl"
        write_lines(path, lines)
        assert recall_at_1(str(path), Columns(judgements=answers)) == 50
    for line in (
        {"rel_scores": [2], "label_name": "a"},
        {"label_name": ["a"], "cand_names": ["b"]},
    ):
        assert Labels.recognises(json.dumps(line))


def test_a_form_is_recognised_behind_a_long_text_and_packed(tmp_path: Path) -> None:
    """ViDoRe's ids of queries are their texts."""
    texts = ["a page " * 5000, "b"]
    answers = tmp_path / "qrels.json.gz"
    right = json.dumps({text: {"a": 1} for text in texts})
    answers.write_bytes(gzip.compress(right.encode()))
    scores = dict(zip(texts, [{"a": 0.9, "b": 0.1}, {"a": 0.2, "b": 0.7}], strict=True))
    lines = []
    for text, row in scores.items():
        results = [{"corpus_id": each, "score": score} for each, score in row.items()]
        lines.append({"query": text, "query_id": text, "results": results})
    forms = {
        "mteb.json": json.dumps({"default": {"test": scores}}),
        "sentence_transformers.jsonl": "\n".join(map(json.dumps, lines)),
    }
    for name, content in forms.items():
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress(content.encode()))
        assert recall_at_1(str(path), Columns(judgements=answers)) == 50


def test_grades_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    for grade in ("1", None, True, [1], math.nan):
        line = json.dumps({"prediction": ["a"], "label": ["a"], "rel_scores": [grade]})
        with pytest.raises(ValueError, match=r"rel_scores has .* expected a number|NaN"):
            list(Labels(tmp_path / "x_pred.jsonl", ()).rows([line]))


def test_what_lz4_packed_is_read_as_far_as_it_may_grow(tmp_path: Path) -> None:
    answers = tmp_path / "qrels.json"
    answers.write_text('{"q1": {"a": 1}, "q2": {"b": 1}}')
    run = json.dumps({"q1": {"a": 0.9, "b": 0.1}, "q2": {"a": 0.8, "b": 0.3}})
    path = tmp_path / "run.lz4"
    path.write_bytes(pa.compress(run.encode(), "lz4", asbytes=True))
    assert recall_at_1(str(path), Columns(judgements=answers)) == 50
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(InputError, match=r"cannot read .*run\.lz4: "):
        open_system(str(path), Columns(judgements=answers))
    path.write_bytes(pa.compress(b'{"q": {}' + b" " * 300_000_000, "lz4", asbytes=True))
    with pytest.raises(InputError, match=r"run\.lz4: its .* bytes become more than"):
        open_system(str(path), Columns(judgements=answers))
