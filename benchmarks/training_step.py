"""A whole training step of VSE+2AD on regions against the released code's: batch 128, 2048 → 1024, BiGRU.

The released code is timed as its users run it, and with float32 products through oneDNN as ours; ours also in bfloat16.

python -m benchmarks.training_step
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import nn

from benchmarks.measure import Step, least_times_apart, peak_memory, report
from benchmarks.released import CaptionEncoder, RegionEncoder, adcto
from pipeline import objectives, settings
from pipeline.compute import memory, products
from pipeline.heads.two_tower import TwoTower
from pipeline.text.bigru import BiGRUText
from pipeline.text.vocabulary import SPECIAL, Vocabulary
from pipeline.training import optimizer
from pipeline.training.batches import Batch
from pipeline.training.optimizer import TrainingPrecision
from pipeline.training.processes import SingleProcess
from pipeline.training.step import TrainingStep
from pipeline.training.update import Update

PARAMS = Path(__file__).parents[1] / "params.yaml"
PAIRS, ITEMS, WIDTH, DIM, WORD_DIM, WORDS = 128, 36, 2048, 1024, 300, 8000
TOKENS = (8, 18)
"""The shortest and the longest caption."""


def data(pairs: int, width: int) -> Batch:
    """Random pairs: a fifth of each image's items left out; captions of different lengths, words by Zipf's law."""
    torch.manual_seed(0)
    counts = (torch.rand(pairs, ITEMS) > 0.2).sum(1)
    lengths = torch.randint(*TOKENS, (pairs,))
    frequency = 1 / torch.arange(1, WORDS - len(SPECIAL) + 1)
    tokens = len(SPECIAL) + torch.multinomial(frequency, pairs * int(lengths.max()), replacement=True)
    return Batch(torch.randn(pairs, int(counts.max()), width), counts, tokens.view(pairs, -1), lengths,
                 torch.arange(pairs))


def words() -> BiGRUText:
    """The text encoder of a vocabulary of made-up words: their numbers."""
    return BiGRUText(Vocabulary((*SPECIAL, *map(str, range(WORDS - len(SPECIAL))))))


def trainer(text: BiGRUText, width: int, dim: int, precision: str = "fp32") -> TrainingStep:
    """The recipe vse2ad by `pipeline train`'s own step."""
    chosen = settings.load(PARAMS, (f"training.flickr30k.dimension={dim}",))
    recipe, training = chosen.recipe("vse2ad"), chosen.training_of("flickr30k")
    model = TwoTower("region", width, text, recipe, training).train()
    update = Update(optimizer.build(model, recipe), TrainingPrecision(precision, "cpu"), SingleProcess(), 1,
                    recipe.gradient_clip)
    return TrainingStep(model, update, objectives.build(recipe.objective.name), recipe.same_image_negatives)


def ours(batch: Batch, width: int, dim: int, precision: str = "fp32") -> Step:
    """Our step on a batch, again and again, as `pipeline train` has it: with products as the probe chooses."""
    products.apply("auto")
    memory.keep_freed()
    step = trainer(words(), width, dim, precision)
    return lambda: step(batch)


def released(batch: Batch, width: int, dim: int, kind: products.Kind = "default") -> Step:
    """The same with the released code's formulas, and Adam as it calls it."""
    products.use(kind)
    images, captions = RegionEncoder(width, dim), CaptionEncoder(WORDS, WORD_DIM, dim)
    weights = [*images.parameters(), *captions.parameters()]
    adam = torch.optim.Adam(weights, lr=5e-4)

    def step() -> None:
        adam.zero_grad()
        adcto(images(batch.items, batch.counts), captions(batch.tokens, batch.lengths)).backward()
        nn.utils.clip_grad_norm_(weights, 2.0)
        adam.step()

    return step


VARIANTS: dict[str, Callable[..., Step]] = {
    "ours": ours,
    "ours, bf16": partial(ours, precision="bf16"),
    "released": released,
    "released, oneDNN": partial(released, kind="onednn"),
}


def training_step(name: str, pairs: int = PAIRS, width: int = WIDTH, dim: int = DIM) -> Step:
    """One of VARIANTS."""
    return VARIANTS[name](data(pairs, width), width, dim)


def main(pairs: int = PAIRS, width: int = WIDTH, dim: int = DIM) -> None:
    """Print time and memory of a step. Each variant has a process of its own, for what they switch is a process's."""
    size = (pairs, width, dim)
    seconds = least_times_apart(training_step, [(name, *size) for name in VARIANTS], repeats=5)
    taken = dict(zip(VARIANTS, seconds, strict=True))
    growth = {name: peak_memory(training_step, name, *size) for name in VARIANTS}
    for mine, theirs in (("ours", "released"), ("ours", "released, oneDNN"), ("ours, bf16", "released")):
        report(f"training step, {width}→{dim}: {mine} / {theirs}", (taken[mine], taken[theirs]),
               (growth[mine], growth[theirs]))


if __name__ == "__main__":
    main()
