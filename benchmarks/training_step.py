"""A whole training step of VSE+2AD on regions against the released code's: batch 128, 2048 → 1024,
BiGRU.

The released code is timed as its users run it; ours also in bfloat16.

    python -m benchmarks.training_step
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks import numbers
from benchmarks.measure import Step, least_times_apart, peak_memory, precisions, report
from benchmarks.released import CaptionEncoder, RegionEncoder, adcto
from pipeline.foundation import settings
from pipeline.foundation.compute import machine
from pipeline.make.heads import objectives
from pipeline.make.heads.sides import Side
from pipeline.make.heads.two_tower import TwoTower
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.vocabulary import SPECIAL, Vocabulary
from pipeline.make.training import optimizer
from pipeline.make.training.batches import Batch
from pipeline.make.training.optimizer import TrainingPrecision, Update
from pipeline.make.training.processes import Processes
from pipeline.make.training.step import TrainingStep

PARAMS = Path(__file__).parents[1] / "params.yaml"
PAIRS, ITEMS, WIDTH, DIM, WORD_DIM, WORDS = 128, 36, 2048, 1024, 300, 8000
TOKENS = (8, 18)
"""The shortest and the longest caption."""


def data(pairs: int, width: int) -> Batch:
    """Random pairs: a fifth of each image's items left out; captions of different lengths, words by
    Zipf's law.
    """
    torch.manual_seed(0)
    counts = (torch.rand(pairs, ITEMS) > 0.2).sum(1)
    lengths = torch.randint(*TOKENS, (pairs,))
    frequency = 1 / torch.arange(1, WORDS - len(SPECIAL) + 1)
    tokens = len(SPECIAL) + torch.multinomial(
        frequency, pairs * int(lengths.max()), replacement=True
    )
    return Batch(
        Side(torch.randn(pairs, int(counts.max()), width), counts, torch.arange(pairs)),
        Side(tokens.view(pairs, -1), lengths),
    )


def words() -> BiGRUText:
    """The text encoder of a vocabulary of made-up words: their numbers."""
    return BiGRUText(Vocabulary((*SPECIAL, *map(str, range(WORDS - len(SPECIAL))))))


def trainer(text: BiGRUText, width: int, dim: int, precision: str = "fp32") -> TrainingStep:
    """The recipe vse2ad by `pipeline train`'s own step."""
    chosen = settings.load(PARAMS, (f"training.flickr30k.dimension={dim}",))
    recipe, training = chosen.recipe("vse2ad"), chosen.training_of("flickr30k")
    model = TwoTower("region", width, text, recipe, training).train()
    update = Update(
        optimizer.build(model, recipe),
        TrainingPrecision(precision, "cpu"),
        Processes(),
        1,
        recipe.gradient_clip,
    )
    return TrainingStep(
        model, update, objectives.build(recipe.objective.name), recipe.same_image_negatives
    )


def ours(batch: Batch, width: int, dim: int, precision: str = "fp32") -> Step:
    """Our step on a batch, again and again, as `pipeline train` has it."""
    step = trainer(words(), width, dim, precision)
    return lambda: step(batch)


def products_alone(batch: Batch, width: int, dim: int) -> Step:
    """The matrix products of our step alone, forward and backward: as many, of these shapes and
    layouts.
    """
    step, threads = trainer(words(), width, dim), torch.get_num_threads()
    torch.set_num_threads(
        1
    )  # the step then stays in this Python thread, which is the one that is listened to
    with Listener() as listener:
        step(batch)
    torch.set_num_threads(threads)
    # One tensor for all factors of a layout: weights stay in the processor's cache, as in the step.
    factors = {layout: filled(*layout) for layout in {*chain.from_iterable(listener.heard)}}

    def again() -> None:
        for left, right in listener.heard:
            torch.matmul(factors[left], factors[right])

    return again


Layout = tuple[tuple[int, ...], tuple[int, ...]]  # shape and strides


def filled(shape: tuple[int, ...], strides: tuple[int, ...]) -> torch.Tensor:
    """Random values in a layout; where a stride is 0, many places have one value."""
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return torch.randn(last + 1).as_strided(shape, strides)


class Listener(TorchDispatchMode):
    """Hears each matrix product: the layouts of its factors."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[Layout, Layout]] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        first = FIRST_FACTOR.get(function.overloadpacket)
        if first is not None:
            left, right = ((tuple(each.shape), each.stride()) for each in args[first : first + 2])
            self.heard.append((left, right))
        return function(*args, **(kwargs or {}))


FIRST_FACTOR = {
    torch.ops.aten.mm: 0,
    torch.ops.aten.bmm: 0,
    torch.ops.aten.addmm: 1,
    torch.ops.aten.baddbmm: 1,
}
"""Its place among the arguments of a product."""


def released(batch: Batch, width: int, dim: int) -> Step:
    """The same with the released code's formulas, and Adam as it calls it."""
    images, captions = RegionEncoder(width, dim), CaptionEncoder(WORDS, WORD_DIM, dim)
    weights = [*images.parameters(), *captions.parameters()]
    adam = torch.optim.Adam(weights, lr=5e-4)

    def step() -> None:
        adam.zero_grad()
        adcto(
            images(batch.images.values, batch.images.counts),
            captions(batch.captions.values, batch.captions.counts),
        ).backward()
        nn.utils.clip_grad_norm_(weights, 2.0)
        adam.step()

    return step


VARIANTS: dict[str, Callable[..., Step]] = {
    "ours": ours,
    "ours, bf16": partial(ours, precision="bf16"),
    "ours, products alone": products_alone,
    "released": released,
}


def training_step(name: str, pairs: int = PAIRS, width: int = WIDTH, dim: int = DIM) -> Step:
    """One of VARIANTS; the released code's has glibc's and torch's own ways with memory."""
    if not name.startswith("released"):
        machine.keep_freed()  # before the first tensor
    return VARIANTS[name](data(pairs, width), width, dim)


def main(pairs: int = PAIRS, width: int = WIDTH, dim: int = DIM) -> None:
    """Print time and memory of a step. Each variant has a process of its own, for what they switch
    is a process's.
    """
    size = (pairs, width, dim)
    names = [name for name in VARIANTS if name != "ours, bf16" or "bf16" in precisions("cpu")]
    seconds = least_times_apart(training_step, [(name, *size) for name in names], repeats=5)
    taken = dict(zip(names, seconds, strict=True))
    growth = {name: peak_memory(training_step, name, *size) for name in names}
    for mine, theirs in (
        ("ours", "released"),
        ("ours, bf16", "released"),
    ):
        if mine in names:
            report(
                f"training step, {width}→{dim}: {mine} / {theirs}",
                (taken[mine], taken[theirs]),
                (growth[mine], growth[theirs]),
            )
    alone = taken["ours, products alone"]
    numbers.keep(
        "training_step",
        [
            ("ms of a step", ""),
            *((name, ",.0f") for name in VARIANTS),
            ("ours ÷ products alone", ".2f"),
        ],
        [
            [
                f"{width} → {dim}",
                *(1e3 * taken[name] if name in taken else None for name in VARIANTS),
                taken["ours"] / alone,
            ]
        ],
    )
    print(
        f"training step, {width}→{dim}: ours {taken['ours'] * 1e3:.1f} ms, its matrix products alone "
        f"{alone * 1e3:.1f} ms: {taken['ours'] / alone:.2f} times its products",
        flush=True,
    )


if __name__ == "__main__":
    main()
