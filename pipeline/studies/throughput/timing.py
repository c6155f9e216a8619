"""results/throughput.json: what was timed, how, and on what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import torch

from pipeline.compute import machine, products
from pipeline.errors import InputError
from pipeline.settings import Named, Recipe, Throughput, Training
from pipeline.studies.throughput import steps
from pipeline.studies.throughput.clock import seconds

ENSEMBLE = 3  # heads of RGP, each with its own text encoder and matrix


@torch.inference_mode()
def measure(recipes: Mapping[str, Recipe], training: Training, settings: Throughput,
            progress: Callable[[str], object] = lambda what: None) -> dict[str, Any]:
    """Time everything; `progress` is told what comes next.

    Returns JSON values: `poolings`, images a second by recipe; `retrieval`, candidates a second by recipe-text and of
    the cross-encoder; `pools`, seconds of a query by the number of images; `methods`, in words; `settings` and
    `made_with`.
    Raises InputError where the device is not there.
    """
    s, d = settings, training.dimension
    _require(s.device)

    def timed(what: str, step: Callable[[], steps.Step]) -> float:
        progress(what)
        return seconds(step(), s.device, s.repeats, s.seconds)

    pooled = _each(recipes, lambda recipe: recipe.image_pooling, lambda pooling: timed(
        f"images by {pooling.name}", lambda: steps.pool(pooling, d, s.batch_size, s.items, s.device)))
    joined = _each(recipes, lambda recipe: recipe.text_pooling, lambda pooling: timed(
        f"caption by {pooling.name}", lambda: steps.pool(pooling, d, 1, s.tokens, s.device)))
    layers = steps.BERT["layers"]
    encoded = {"bigru": timed("caption by BiGRU", lambda: steps.bigru(training, s.tokens, s.device)),
               "bert": timed("caption by BERT", lambda: steps.transformer_layer(1, s.tokens, s.device)) * layers}
    searched = {n: timed(f"search {n:,} images", lambda: steps.search(n, d, s.device))  # noqa: B023 (called at once)
                for n in dict.fromkeys([s.candidates, *s.pools])}
    layer = timed("cross-encoder", lambda: steps.transformer_layer(s.pairs, s.items + s.tokens, s.device))
    crossed = s.pairs / (layer * layers)
    queries = {(name, text): taken + encoded[text] for name, taken in joined.items() for text in encoded}
    first = next(iter(recipes))
    return {
        "poolings": {name: s.batch_size / taken for name, taken in pooled.items()},
        "retrieval": {f"{name}-{text}": s.candidates / (ENSEMBLE * (taken + searched[s.candidates]))
                      for (name, text), taken in queries.items()} | {"cross-encoder": crossed},
        "pools": [_pool(n, queries[first, "bigru"] + searched[n], crossed) for n in s.pools],
        "methods": methods(first, d, s),
        "settings": {"dimension": d, **s.model_dump()},
        "made_with": _made_with(s.device),
    }


def _pool(images: int, head: float, crossed: float) -> dict[str, float]:
    """Seconds of a query among so many images; `crossed`: pairs a second of the cross-encoder."""
    return {"images": images, "head": head, "ensemble": ENSEMBLE * head, "cross_encoder": images / crossed}


def methods(recipe: str, dimension: int, s: Throughput) -> dict[str, str]:
    """How each was timed, a sentence or two for a caption or a footnote."""
    size = steps.BERT
    cross = (f"A cross-encoder's time is a model: {size['layers']} times that of one Transformer layer of BERT-base's "
             f"size ({size['width']} wide) on {s.pairs} pairs of {s.items} items and {s.tokens} tokens at once, "
             "for every pair of the query with an image; its other parts are left out.")
    query = (f"a caption of {s.tokens} tokens is encoded, multiplied with all image embeddings (d = {dimension}, "
             f"computed before), and the {steps.FOUND} most similar are found")
    bert = f"BERT counts as {size['layers']} such layers on the caption."
    how = f"Least of at least {s.repeats} runs on {_machine(s.device)}, float32, random values."
    return {
        "poolings": f"Forward pass of the image pooling on {s.batch_size} images of {s.items} items, d = {dimension}. "
                    f"{how}",
        "retrieval": f"Candidates a second for one query among {s.candidates:,} images: {query}; {ENSEMBLE} heads one "
                     f"after the other. {cross} {bert} {how}",
        "pools": f"One query: {query} (BiGRU, pooling of {recipe}); the ensemble does so {ENSEMBLE} times. {cross} "
                 f"{how}",
    }


def _each(recipes: Mapping[str, Recipe], part: Callable[[Recipe], Named],
          taken: Callable[[Named], float]) -> dict[str, float]:
    """Recipe -> seconds of its part; what several recipes share is timed once."""
    known: dict[str, float] = {}
    for recipe in recipes.values():
        if (key := part(recipe).model_dump_json()) not in known:
            known[key] = taken(part(recipe))
    return {name: known[part(recipe).model_dump_json()] for name, recipe in recipes.items()}


def _require(device: str) -> None:
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError):
        raise InputError(f"throughput.device {device!r} is not here; cpu always is") from None


def _machine(device: str) -> str:
    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    threads = torch.get_num_threads()
    return f"{threads} CPU thread{'s' * (threads > 1)}"


def _made_with(device: str) -> dict[str, str]:
    return {"machine": _machine(device), "processor": machine.processor(), "products": products.current(),
            **{name: version(name) for name in ("vse-pipeline", "torch")}}
