"""Numbers of tokens as others compare them, computed here by torch: the first line of `explain`
names the reason.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.usefixtures("here")
QUERIES = 40


class Tokens:
    """Pages and queries as tokens whose products are below 0 and nearly equal. Tokens are multiples
    of 1/256, so that products and sums are exact in float32.
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        self.pages = []
        self.queries = []
        for _ in range(QUERIES):
            page = 0.2 * rng.normal(size=(rng.integers(3, 9), 4))
            query = 0.5 * page[rng.integers(len(page), size=3)] + 0.05 * rng.normal(size=(3, 4))
            # What all have in common points away from each other.
            page[:, 0] = -4
            query[:, 0] = 2
            self.pages.append(torch.tensor(np.round(256 * page) / 256, dtype=torch.float32))
            self.queries.append(torch.tensor(np.round(256 * query) / 256, dtype=torch.float32))
        torch.save(self.pages, "pages.pt")
        torch.save(self.queries, "queries.pt")

    def published(self, compared: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> str:
        """R@1 and R@5 of scores of pairs of a query and a page; ties by their expectation."""
        found = np.zeros(2)
        for right, query in enumerate(self.queries):
            scores = np.array([float(compared(query, page)) for page in self.pages])
            above = np.sum(scores > scores[right])
            tied = np.sum(scores == scores[right])
            found += np.clip((np.array([1, 5]) - above) / tied, 0, 1)
        first, five = 100 * found / QUERIES
        return f"t2i_R@1={first:.3f},t2i_R@5={five:.3f}"


def maxsim(query: torch.Tensor, page: torch.Tensor) -> torch.Tensor:
    return (query @ page.T).max(1).values.sum()


def padded(query: torch.Tensor, page: torch.Tensor) -> torch.Tensor:
    """Of a page in a batch with one of eight tokens."""
    rows = torch.zeros(8, 4)
    rows[: len(page)] = page
    return maxsim(query, rows)


def of_length_1(query: torch.Tensor, page: torch.Tensor) -> torch.Tensor:
    unit = torch.nn.functional.normalize
    return maxsim(unit(query), unit(page))


# What the first line says -> how tokens are compared.
OF_TOKENS: Mapping[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "MaxSim in float16": lambda query, page: maxsim(query.half(), page.half()),
    "MaxSim in bfloat16": lambda query, page: maxsim(query.bfloat16(), page.bfloat16()),
    "scores in float16": lambda query, page: maxsim(query, page).half(),
    "scores in bfloat16": lambda query, page: maxsim(query, page).bfloat16(),
    "candidates padded with zeros to the longest one": padded,
    "tokens divided by their lengths": of_length_1,
}


def of_tokens(pipeline: Any, *more: str) -> str:
    given = ("explain", "pages.pt:queries.pt", "--captions-per-image", "1", "--most", "1")
    code, out, err = pipeline(*given, *more)
    assert code == 0, err
    return " ".join(out.split())


@pytest.mark.parametrize("words", OF_TOKENS)
def test_tokens_are_compared_as_others_do(pipeline: Any, words: str) -> None:
    tokens = Tokens()
    said = of_tokens(pipeline, "--published", tokens.published(OF_TOKENS[words]))
    assert said.startswith(f"Reason found: {words}"), said[:300]


def test_tokens_as_they_are_need_no_reason(pipeline: Any) -> None:
    tokens = Tokens()
    said = of_tokens(pipeline, "--published", tokens.published(maxsim))
    assert said.startswith("The published numbers are those measured."), said[:300]
    published = tokens.published(maxsim)
    said = of_tokens(pipeline, "--normalise", "--published", published)
    assert said.startswith("Reason found: tokens not divided by their lengths"), said[:300]


def test_padding_of_tokens_of_mmeb_is_found(pipeline: Any) -> None:
    tokens = Tokens()
    queries = torch.nn.utils.rnn.pad_sequence(tokens.queries, batch_first=True)
    pages = torch.nn.utils.rnn.pad_sequence(tokens.pages, batch_first=True)
    names = [f"page {number}" for number in range(QUERIES)]
    named = dict(zip(names, pages.numpy(), strict=True))
    Path("x_qry").write_bytes(pickle.dumps(queries.numpy()))
    Path("x_tgt").write_bytes(pickle.dumps(named))
    lines = [json.dumps({"cand_names": names, "label_name": name}) for name in names]
    Path("x_info.jsonl").write_text("\n".join(lines))
    for compared, said in ((padded, "Reason found: candidates padded"), (maxsim, "The published")):
        published = tokens.published(compared)
        code, out, err = pipeline("explain", "x_qry", "--most", "1", "--published", published)
        assert code == 0, err
        assert out.startswith(said), out[:300]
