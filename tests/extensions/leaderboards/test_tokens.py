"""Tokens of late interaction, in the files of tools: the numbers are those of plain NumPy."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_files import DIMENSION, NAMES, Encoded, recall_at_1

from pipeline.extensions.leaderboards import multi_vectors
from pipeline.foundation.files import expansion
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns


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
