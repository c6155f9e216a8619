"""Pairs a second of a cross-encoder's scorer against a bare forward loop of the same network on preloaded tensors.

MiniLM's size with random weights: 6 layers of 384 dimensions, captions of 8 to 18 word pieces, 36 items of 1,280.

python -m benchmarks.pairs
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, BertConfig

from benchmarks import numbers
from benchmarks.measure import Step, least_times, precisions
from pipeline import heads, settings
from pipeline.compute import products
from pipeline.heads.cross import CrossEncoder
from pipeline.training.optimizer import TrainingPrecision
from pipeline.training.scoring import LEAST, score_pairs

PARAMS = Path(__file__).parents[1] / "params.yaml"
IMAGES, CAPTIONS, ITEMS, WIDTH, PAIRS = 100, 500, 36, 1286, 1024


class Words:
    """What the network asks of a kind of text, without a tokenizer."""

    start = 2
    config = BertConfig(vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
                        intermediate_size=1536)

    def network(self, pooler: bool = False) -> Any:
        """A BERT with random weights."""
        return AutoModel.from_config(self.config)


class InMemory:
    """Features as a store gives them."""

    width = WIDTH

    def __init__(self) -> None:
        self.items = np.random.default_rng(0).normal(size=(IMAGES, ITEMS, WIDTH)).astype(np.float16)

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Some images, all with all items."""
        return self.items[rows], np.full(len(rows), ITEMS)


def build() -> CrossEncoder:
    """The network."""
    torch.manual_seed(0)
    chosen = settings.load(PARAMS)
    text: Any = Words()
    model = heads.build(chosen.recipe("ce"), "region", WIDTH, text, chosen.training_of("flickr8k"))
    assert isinstance(model, CrossEncoder)
    return model.eval()


def steps(precision: str) -> tuple[Step, Step]:
    """The scorer, and the bare loop over the same pairs in batches of one length, whose inputs are made before."""
    rng, model, source = np.random.default_rng(1), build(), InMemory()
    numbers = [rng.integers(1000, 20000, size=size).tolist() for size in rng.integers(8, 19, CAPTIONS)]
    rows, caption = rng.integers(IMAGES, size=PAIRS), rng.integers(CAPTIONS, size=PAIRS)
    autocast = TrainingPrecision(precision, "cpu").autocast
    order = np.argsort([len(numbers[each]) for each in caption], kind="stable")
    batches = []
    for start in range(0, PAIRS, LEAST):
        own = [numbers[each] for each in caption[order[start:start + LEAST]]]
        tokens = torch.zeros(len(own), max(map(len, own)), dtype=torch.int64)
        for row, one in enumerate(own):
            tokens[row, :len(one)] = torch.tensor(one)
        items = torch.from_numpy(source.items[rows[order[start:start + LEAST]]]).float()
        batches.append((tokens, torch.tensor([len(one) for one in own]), items, torch.full((len(own),), ITEMS),
                        torch.arange(len(own)), torch.arange(len(own))))

    def ours() -> None:
        score_pairs(model, source, rows, numbers, caption, LEAST, autocast)  # type: ignore[arg-type]

    @torch.inference_mode()
    def bare() -> None:
        for batch in batches:
            with autocast():
                model(*batch)

    return ours, bare


def main() -> None:
    """Print pairs a second of both, and their ratio."""
    torch.set_num_threads(2)
    products.apply("auto")
    rows = []
    for precision in precisions("cpu"):
        mine, bare = least_times(*steps(precision), repeats=3)
        print(f"pairs, {precision}: {PAIRS / mine:.0f}/s, bare forward loop {PAIRS / bare:.0f}/s, ratio "
              f"{bare / mine:.2f}", flush=True)
        rows.append([precision, PAIRS / mine, PAIRS / bare, bare / mine])
    numbers.keep("pairs", [("", ""), ("pairs /s", ",.0f"), ("bare forward loop", ",.0f"), ("ratio", ".2f")], rows)


if __name__ == "__main__":
    main()
