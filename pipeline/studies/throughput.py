"""How fast things are on this machine: poolings, the answer to a query, and what a cross-encoder would take.

Values are random; no step's time depends on them. The results are the content of results/throughput.json.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import torch
from torch import nn
from torch.nn.functional import normalize

from pipeline.compute import machine, products
from pipeline.errors import InputError
from pipeline.heads import pooling
from pipeline.settings import Named, Recipe, Throughput, Training
from pipeline.text.bigru import BiGRU

Step = Callable[[], object]
FOUND = 10  # candidates that a query's answer lists
WORDS = 10_000  # of the BiGRU's vocabulary
BERT = {"layers": 12, "width": 768, "heads": 12, "feedforward": 3072}
"""BERT-base: the text encoder, and the size of the cross-encoders UNITER-base and OSCAR-base, with which VSE+2AD (Table
2) and VSE∞ (figure 3) compare."""
ENSEMBLE = 3  # heads of RGP, each with its own text encoder and matrix


@torch.inference_mode()
def measure(recipes: Mapping[str, Recipe], training: Training, settings: Throughput,
            progress: Callable[[str], object] = lambda what: None) -> dict[str, Any]:
    """Time all poolings, the answer to a query, and a cross-encoder.

    Args:
        recipes: The recipes whose poolings are timed.
        training: The size of heads.
        settings: Device, sizes and repeats.
        progress: Called with what is timed next.

    Returns:
        JSON values. poolings: images a second by recipe. retrieval: candidates a second by recipe-text, and of the
        cross-encoder. pools: seconds of a query by the number of images. methods: in words. settings and made_with.

    Raises:
        InputError: If the device is not available.
    """
    s, d = settings, training.dimension
    _require(s.device)

    def timed(what: str, step: Callable[[], Step]) -> float:
        progress(what)
        return seconds(step(), s.device, s.repeats, s.seconds)

    pooled = _each(recipes, lambda recipe: recipe.image_pooling, lambda pooling: timed(
        f"images by {pooling.name}", lambda: pool_step(pooling, d, s.batch_size, s.items, s.device)))
    joined = _each(recipes, lambda recipe: recipe.text_pooling, lambda pooling: timed(
        f"caption by {pooling.name}", lambda: pool_step(pooling, d, 1, s.tokens, s.device)))
    layers = BERT["layers"]
    encoded = {"bigru": timed("caption by BiGRU", lambda: bigru_step(training, s.tokens, s.device)),
               "bert": timed("caption by BERT", lambda: transformer_layer_step(1, s.tokens, s.device)) * layers}
    searched = {n: timed(f"search {n:,} images", lambda: search_step(n, d, s.device))  # noqa: B023 (called at once)
                for n in dict.fromkeys([s.candidates, *s.pools])}
    layer = timed("cross-encoder", lambda: transformer_layer_step(s.pairs, s.items + s.tokens, s.device))
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
    """Describe how each number was measured, for a caption or a footnote.

    Args:
        recipe: The recipe of the answer by pool size.
        dimension: d of the joint space.
        s: The settings.

    Returns:
        A few sentences for each kind of number.
    """
    size = BERT
    cross = (f"A cross-encoder's time is a model: {size['layers']} times that of one Transformer layer of BERT-base's "
             f"size ({size['width']} wide) on {s.pairs} pairs of {s.items} items and {s.tokens} tokens at once, "
             "for every pair of the query with an image; its other parts are left out.")
    query = (f"a caption of {s.tokens} tokens is encoded, multiplied with all image embeddings (d = {dimension}, "
             f"computed before), and the {FOUND} most similar are found")
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
        raise InputError(f"throughput.device {device!r} is not available; use cpu") from None


def _machine(device: str) -> str:
    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    threads = torch.get_num_threads()
    return f"{threads} CPU thread{'s' * (threads > 1)}"


def _made_with(device: str) -> dict[str, str]:
    return {"machine": _machine(device), "processor": machine.processor(), "products": products.current(),
            **{name: version(name) for name in ("vse-pipeline", "torch")}}


def pool_step(setting: Named, dimension: int, batch: int, items: int, device: str) -> Step:
    """Pool a batch in which all items are valid.

    Args:
        setting: The pooling.
        dimension: D.
        batch: B.
        items: N.
        device: A torch device.

    Returns:
        The step to time.
    """
    module = pooling.build(setting.name, dimension, **setting.options).to(device).eval()
    values = torch.randn(batch, items, dimension, device=device)
    counts = torch.full((batch,), items, device=device)
    return lambda: module(values, counts)


def bigru_step(training: Training, tokens: int, device: str) -> Step:
    """Encode one caption with a BiGRU.

    Args:
        training: The size of the head.
        tokens: Words of the caption.
        device: A torch device.

    Returns:
        The step to time.
    """
    text = BiGRU(WORDS, training.dimension, training.word_dimension).to(device).eval()
    caption = torch.randint(WORDS, (1, tokens), device=device)
    length = torch.tensor([tokens], device=device)
    return lambda: text(caption, length)


def search_step(images: int, dimension: int, device: str) -> Step:
    """Compute one caption's similarity with every image, and find the `FOUND` most similar.

    Args:
        images: How many images.
        dimension: d.
        device: A torch device.

    Returns:
        The step to time.
    """
    vectors = normalize(torch.randn(images, dimension, device=device), dim=-1)
    caption = normalize(torch.randn(dimension, device=device), dim=-1)
    return lambda: (vectors @ caption).topk(min(FOUND, images))


def transformer_layer_step(inputs: int, positions: int, device: str) -> Step:
    """Run one layer of BERT-base.

    Args:
        inputs: Sequences in the batch.
        positions: Length of a sequence.
        device: A torch device.

    Returns:
        The step to time.
    """
    layer = nn.TransformerEncoderLayer(BERT["width"], BERT["heads"], BERT["feedforward"], activation="gelu",
                                       batch_first=True).to(device).eval()
    values = torch.randn(inputs, positions, BERT["width"], device=device)
    return lambda: layer(values)


def seconds(step: Callable[[], object], device: str, repeats: int, at_least: float) -> float:
    """Time a step: the least of several runs, which other work on the machine disturbs least, after one run to warm up.

    On a GPU a run ends when the device is idle.

    Args:
        step: What is timed.
        device: A torch device.
        repeats: The fewest runs.
        at_least: Seconds that all runs together must take.

    Returns:
        Seconds.
    """
    taken: list[float] = []
    step()
    while len(taken) < repeats or sum(taken) < at_least:
        _wait(device)
        start = time.perf_counter()
        step()
        _wait(device)
        taken.append(time.perf_counter() - start)
    return min(taken)


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
