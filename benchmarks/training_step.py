"""A whole training step of VSE+2AD on regions against the released code's: batch 128, 2048 → 1024, BiGRU, float32.

python -m benchmarks.training_step
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from benchmarks.measure import Step, least_times, peak_memory, report
from benchmarks.released import CaptionEncoder, RegionEncoder, adcto
from pipeline import objectives, settings
from pipeline.heads.two_tower import TwoTower
from pipeline.text.bigru import BiGRUText
from pipeline.text.vocabulary import SPECIAL, Vocabulary
from pipeline.training import optimizer
from pipeline.training.batches import Batch
from pipeline.training.optimizer import Precision
from pipeline.training.processes import Alone
from pipeline.training.step import TrainingStep

PARAMS = Path(__file__).parents[1] / "params.yaml"
PAIRS, ITEMS, WIDTH, DIM, WORD_DIM, WORDS = 128, 36, 2048, 1024, 300, 8000
TOKENS = (8, 18)
"""The shortest and the longest caption."""


def data(pairs: int, width: int) -> Batch:
    """Random pairs: a fifth of each image's items left out, captions of different lengths."""
    torch.manual_seed(0)
    counts = (torch.rand(pairs, ITEMS) > 0.2).sum(1)
    lengths = torch.randint(*TOKENS, (pairs,))
    return Batch(torch.randn(pairs, int(counts.max()), width), counts,
                 torch.randint(len(SPECIAL), WORDS, (pairs, int(lengths.max()))), lengths, torch.arange(pairs))


def words() -> BiGRUText:
    """The text encoder of a vocabulary of made-up words: their numbers."""
    return BiGRUText(Vocabulary((*SPECIAL, *map(str, range(WORDS - len(SPECIAL))))))


def trainer(text: BiGRUText, width: int, dim: int) -> TrainingStep:
    """The recipe vse2ad by `pipeline train`'s own step."""
    chosen = settings.load(PARAMS, (f"training.flickr30k.dimension={dim}",))
    recipe, training = chosen.recipe("vse2ad"), chosen.training_of("flickr30k")
    model = TwoTower("region", width, text, recipe, training).train()
    return TrainingStep(model, objectives.build(recipe.objective.name), optimizer.build(model, recipe),
                        Precision("fp32", "cpu"), Alone(), 1, recipe.same_image_negatives, recipe.gradient_clip)


def ours(batch: Batch, width: int, dim: int) -> Step:
    """Our step on a batch, again and again."""
    step = trainer(words(), width, dim)
    return lambda: step(batch)


def released(batch: Batch, width: int, dim: int) -> Step:
    """The same with the released code's formulas, and Adam as it calls it."""
    images, captions = RegionEncoder(width, dim), CaptionEncoder(WORDS, WORD_DIM, dim)
    weights = [*images.parameters(), *captions.parameters()]
    adam = torch.optim.Adam(weights, lr=5e-4)

    def step() -> None:
        adam.zero_grad()
        adcto(images(batch.items, batch.counts), captions(batch.tokens, batch.lengths)).backward()
        nn.utils.clip_grad_norm_(weights, 2.0)
        adam.step()

    return step


def training_step(name: str, pairs: int = PAIRS, width: int = WIDTH, dim: int = DIM) -> Step:
    """One of the two, "ours" or "released"."""
    batch = data(pairs, width)
    return {"ours": ours, "released": released}[name](batch, width, dim)


def main(pairs: int = PAIRS, width: int = WIDTH, dim: int = DIM) -> None:
    """Print time and memory of a step."""
    torch.set_num_threads(2)
    size = (pairs, width, dim)
    seconds = least_times(training_step("ours", *size), training_step("released", *size), repeats=5)
    growth = peak_memory(training_step, "ours", *size), peak_memory(training_step, "released", *size)
    report(f"training step, batch {pairs}, {width}→{dim}", seconds, growth)


if __name__ == "__main__":
    main()
