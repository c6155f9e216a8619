"""Pairs a second of a cross-encoder's scorer against a bare forward loop of the same network on
preloaded tensors.

MiniLM's size with random weights: 6 layers of 384 dimensions, captions of 8 to 18 word pieces, 36
items of 1,280.

    python -m benchmarks.pairs
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig

from benchmarks import numbers
from benchmarks.measure import Step, least_times, precisions
from pipeline.foundation import settings
from pipeline.make import heads
from pipeline.make.heads.cross import CrossEncoder
from pipeline.make.heads.sides import Side
from pipeline.make.text.bert import BertText
from pipeline.make.training.optimizer import TrainingPrecision
from pipeline.make.training.scoring import LEAST, score_pairs

PARAMS = Path(__file__).parents[1] / "params.yaml"
IMAGES, CAPTIONS, ITEMS, WIDTH, PAIRS = 100, 500, 36, 1286, 1024


class Words(BertText):
    """Captions of token ids, without a tokenizer, and a BERT with random weights."""

    def __init__(self) -> None:
        self.before, self.after, self.source = [101], [102], None
        self.config = BertConfig(
            vocab_size=30522,
            hidden_size=384,
            num_hidden_layers=6,
            num_attention_heads=12,
            intermediate_size=1536,
        )
        self.longest = self.config.max_position_embeddings

    def split(self, captions: Sequence[str]) -> list[list[list[int]]]:
        """One token id a word."""
        return [[[int(word)] for word in caption.split()] for caption in captions]


class InMemory:
    """Features as a store gives them."""

    width = WIDTH

    def __init__(self) -> None:
        self.items = np.random.default_rng(0).normal(size=(IMAGES, ITEMS, WIDTH)).astype(np.float16)

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Some images, all with all items."""
        return self.items[rows], np.full(len(rows), ITEMS)


def build(text: Words) -> CrossEncoder:
    """The network."""
    torch.manual_seed(0)
    chosen = settings.load(PARAMS)
    model = heads.build(chosen.recipe("ce"), "region", WIDTH, text, chosen.training_of("flickr8k"))
    assert isinstance(model, CrossEncoder)
    return model.eval()


def steps(precision: str) -> tuple[Step, Step]:
    """The scorer, and the bare loop over the same pairs in batches of one length, whose inputs are
    made before.
    """
    rng, text, source = np.random.default_rng(1), Words(), InMemory()
    model = build(text)
    # Without start and end.
    words = [rng.integers(1000, 20000, size=size - 2) for size in rng.integers(8, 19, CAPTIONS)]
    captions = text.captions([" ".join(map(str, ids)) for ids in words])
    rows, caption = rng.integers(IMAGES, size=PAIRS), rng.integers(CAPTIONS, size=PAIRS)
    autocast = TrainingPrecision(precision, "cpu").autocast
    order = np.argsort(captions.lengths[caption], kind="stable")
    batches = []
    for start in range(0, PAIRS, LEAST):
        pairs = order[start : start + LEAST]
        items = torch.from_numpy(source.items[rows[pairs]]).float()
        each = torch.arange(len(pairs))
        batches.append(
            (
                Side.of(*captions.read(caption[pairs])),
                Side(items, torch.full((len(pairs),), ITEMS)),
                each,
                each,
            )
        )

    def ours() -> None:
        score_pairs(model, source, rows, captions, caption, LEAST, autocast)

    @torch.inference_mode()
    def bare() -> None:
        for batch in batches:
            with autocast():
                model(*batch)

    return ours, bare


def main() -> None:
    """Print pairs a second of both, and their ratio."""
    torch.set_num_threads(2)
    rows = []
    for precision in precisions("cpu"):
        mine, bare = least_times(*steps(precision), repeats=3)
        print(
            f"pairs, {precision}: {PAIRS / mine:.0f}/s, bare forward loop {PAIRS / bare:.0f}/s, ratio "
            f"{bare / mine:.2f}",
            flush=True,
        )
        rows.append([precision, PAIRS / mine, PAIRS / bare, bare / mine])
    numbers.keep(
        "pairs",
        [("", ""), ("pairs /s", ",.0f"), ("bare forward loop", ",.0f"), ("ratio", ".2f")],
        rows,
    )


if __name__ == "__main__":
    main()
