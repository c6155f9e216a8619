"""Extraction, a training step, pooling and ranking on a GPU, each beside a bare loop on the same
device, in one run.

    # on the first GPU, or --device cuda:1; --tiny for a look on any machine
    python -m benchmarks.gpu

Memory and the clock are the device's: each timing ends when it is idle. The bare loops are what one
would write with torch alone: inputs are there before the clock starts, nothing is decoded, checked
or written.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import nn

from benchmarks import released
from benchmarks.extraction import EFFICIENTNET, job, pixels
from benchmarks.measure import Step, least_times, precisions
from benchmarks.ranking import noisy_pairs
from pipeline.foundation import manifest, settings
from pipeline.foundation.compute.device import autocast
from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.manifest import sample
from pipeline.make.features import extraction
from pipeline.make.features.extraction import worker
from pipeline.make.features.extractors import Runtime
from pipeline.make.heads import objectives, pooling
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


@dataclass(frozen=True)
class Sizes:
    """images: extracted, of `side` pixels. pairs: of a training step. width, dim: of items and
    embeddings. words: of the vocabulary. gallery: images ranked, with five captions each."""

    images: int = 1024
    side: int = 512
    batch: int = 64
    pairs: int = 128
    items: int = 36
    width: int = 2048
    dim: int = 1024
    words: int = 8000
    gallery: int = 5000


TINY = Sizes(images=12, side=64, batch=4, pairs=4, items=5, width=16, dim=8, words=20, gallery=20)


def timed(device: str, name: str, ours: Step, bare: Step, repeats: int) -> None:
    """Print how long each takes on the device, and the ratio."""
    module = torch.get_device_module(device)

    def finished(step: Step) -> None:
        step()
        module.synchronize(device)

    took, alone = least_times(partial(finished, ours), partial(finished, bare), repeats)
    print(
        f"{name:44} ours {took * 1e3:10.2f} ms  bare {alone * 1e3:10.2f} ms  bare / ours {alone / took:6.2f}",
        flush=True,
    )


def extraction_of(device: str, precision: str, sizes: Sizes, folder: Path, repeats: int) -> None:
    """Photographs to a store on disk, against the network alone over tensors that are on the
    device.
    """
    scenes = manifest.build(
        "sample", folder / "sample" / "images", folder / "sample" / "dataset_sample.json"
    )
    engine = ("grid", {**EFFICIENTNET, "image_size": sizes.side, "grid": min(8, sizes.side // 32)})
    stores = (folder / f"{precision}{count}.zarr" for count in range(repeats + 1))

    def made(store: Path) -> extraction.ExtractionJob:
        return job(scenes, store, engine, Runtime(device, precision), sizes.batch)

    network = worker.load_engine(made(folder).engine).network  # type: ignore[attr-defined]
    batches = [batch.to(device) for batch in pixels(scenes, network, sizes.side, sizes.batch)]

    @torch.inference_mode()
    def bare() -> None:
        with autocast(device, precision):
            for batch in batches:
                network.model.forward_features(batch)

    timed(
        device,
        f"extraction of {len(scenes.images)} images, {precision}",
        lambda: extraction.extract(made(next(stores))),
        bare,
        repeats,
    )


def data(sizes: Sizes) -> Batch:
    """Random pairs, a fifth of each image's items left out."""
    torch.manual_seed(0)
    counts = (torch.rand(sizes.pairs, sizes.items) > 0.2).sum(1).clamp(min=1)
    lengths = torch.randint(8, 18, (sizes.pairs,))
    tokens = torch.randint(len(SPECIAL), sizes.words, (sizes.pairs, int(lengths.max())))
    return Batch(
        Side(
            torch.randn(sizes.pairs, int(counts.max()), sizes.width),
            counts,
            torch.arange(sizes.pairs),
        ),
        Side(tokens, lengths),
    )


def training_step(device: str, precision: str, sizes: Sizes, repeats: int) -> None:
    """A whole step of VSE+2AD on regions from a batch on the host, against the network's matrix
    products alone.
    """
    chosen = settings.load(PARAMS, (f"training.flickr30k.dimension={sizes.dim}",))
    recipe, training = chosen.recipe("vse2ad"), chosen.training_of("flickr30k")
    text = BiGRUText(Vocabulary((*SPECIAL, *map(str, range(sizes.words - len(SPECIAL))))))
    model = TwoTower("region", sizes.width, text, recipe, training).train().to(device)
    update = Update(
        optimizer.build(model, recipe),
        TrainingPrecision(precision, device),
        Processes(),
        1,
        recipe.gradient_clip,
    )
    step = TrainingStep(model, update, objectives.build("adopt"), recipe.same_image_negatives)
    batch = data(sizes)
    layers = nn.Sequential(
        nn.Linear(sizes.width, sizes.dim // 2), nn.ReLU(), nn.Linear(sizes.dim // 2, sizes.dim)
    ).to(device)
    items = batch.images.values.to(device)

    def products() -> None:
        with autocast(device, precision):
            layers(items).sum().backward()

    timed(
        device,
        f"training step of {sizes.pairs} pairs, {precision}",
        lambda: step(batch),
        products,
        repeats,
    )


def poolings(device: str, sizes: Sizes, repeats: int) -> None:
    """AdPool and GPO forward and backward, against the released modules."""
    for name, theirs in (("adpool", released.AP(sizes.dim)), ("gpo", released.GPO())):
        items = torch.randn(sizes.pairs, sizes.items, sizes.dim, device=device, requires_grad=True)
        counts = torch.full((sizes.pairs,), sizes.items, device=device)

        def step(
            module: nn.Module, items: torch.Tensor = items, counts: torch.Tensor = counts
        ) -> None:
            module(items, counts).sum().backward()

        timed(
            device,
            f"{name} {list(items.shape)}",
            partial(step, pooling.build(name, sizes.dim).to(device)),
            partial(step, theirs.to(device)),
            repeats,
        )


def ranking(device: str, sizes: Sizes, repeats: int) -> None:
    """Embeddings to metrics, which is the CPU's work, against the product alone on the device."""
    images, captions = noisy_pairs(sizes.gallery, sizes.dim)
    owner = retrieval.consecutive_captions((sizes.gallery, 5 * sizes.gallery))
    there = images.to(device), captions.to(device)
    timed(
        device,
        f"ranking {sizes.gallery} x {5 * sizes.gallery}, by the CPU",
        lambda: evaluate(retrieval.Embeddings(images, captions), owner),
        lambda: there[0] @ there[1].T,
        repeats,
    )


def main(device: str = "cuda", sizes: Sizes | None = None, repeats: int = 3) -> None:
    """Print every comparison. Raises InputError where the device is not here."""
    sizes = sizes or Sizes()
    Runtime(device).checked()
    name = torch.cuda.get_device_name(device) if torch.device(device).type == "cuda" else "CPU"
    print(f"{device}: {name}, torch {torch.__version__}", flush=True)
    worthwhile = precisions(device)
    with tempfile.TemporaryDirectory() as folder:
        sample.render(Path(folder) / "sample", images=sizes.images, size=sizes.side, seed=0)
        for precision in worthwhile:
            extraction_of(device, precision, sizes, Path(folder), repeats)
    for precision in worthwhile:
        training_step(device, precision, sizes, repeats)
    poolings(device, sizes, repeats)
    ranking(device, sizes, repeats)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="sizes for a look at whether it runs")
    given = parser.parse_args()
    main(given.device, TINY if given.tiny else Sizes())
