"""Times on this machine: of poolings, of answering a query, and of a cross-encoder.

Inputs are random; no step's time depends on their values. The results are the content of
results/throughput.json.
"""

import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import normalize

from pipeline.foundation.compute import device, machine
from pipeline.foundation.evaluation.retrieval.nearest import Exact
from pipeline.foundation.files.parsing import from_yaml
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, counted, refusing
from pipeline.foundation.settings import PoolingSettings, Recipe, Throughput, Training
from pipeline.judge.systems import reranking
from pipeline.judge.systems.scores.system import System
from pipeline.make import training as training_room
from pipeline.make.heads import pooling
from pipeline.make.text.bigru import BiGRU

Step = Callable[[], object]
FOUND = 10  # candidates in the answer to a query
DRAWN = 10_000  # random vectors; more images repeat them
WORDS = 10_000  # of the BiGRU's vocabulary
# BERT-base: the size of the cross-encoders UNITER-base and OSCAR-base, with which VSE∞ (figure 3)
# compares.
BERT = {"layers": 12, "width": 768, "heads": 12, "feedforward": 3072}
ENSEMBLE = 3  # heads of RGP, each with its own text encoder and matrix
_TEXTS = Path(__file__).with_name("throughput.yaml")
SAID: dict[str, dict[str, str]] = from_yaml(_TEXTS.read_text(encoding="utf-8"))


@torch.inference_mode()
def measure(
    recipes: Mapping[str, Recipe],
    training: Training,
    settings: Throughput,
    progress: Callable[[str], object] = lambda what: None,
) -> dict[str, Any]:
    """Time all poolings, the answer to a query, and a cross-encoder.

    JSON values. poolings: images a second by recipe. pools: seconds of a query by the number of
    images. latency: images pooled a second, seconds to encode a query, to search so many images,
    and to score so many pairs. methods: how each was timed. others: cores that other processes used
    meanwhile, null if the system does not say. busy: whether these cores were needed. settings and
    made_with.
    """
    with refusing(InputError, lambda error: f"throughput.{error}"):
        device.require(settings.device)
    began = machine.now()
    images_per_second = _pooled(recipes, training.dimension, settings, progress)
    first_recipe, settings_of_recipe = next(iter(recipes.items()))
    steps = _steps_of_query(settings_of_recipe, training, settings)
    seconds = _timed(steps, settings, progress)
    cores_of_others = machine.others(began, machine.now())
    is_busy = machine.disturbed(cores_of_others, torch.get_num_threads())
    dimension = training.dimension
    return {
        "poolings": images_per_second,
        "pools": _pools(seconds, settings),
        "latency": _latency(seconds, images_per_second[first_recipe], settings),
        "methods": methods(first_recipe, dimension, settings),
        "others": cores_of_others,
        "busy": is_busy,
        "settings": {"dimension": dimension, **settings.model_dump()},
        "made_with": _made_with(settings.device),
    }


def _pools(seconds: Mapping[str, float], s: Throughput) -> list[dict[str, float]]:
    """Seconds of a query by the number of images, from those of its steps."""
    encoded = _encoded(seconds)
    scored = seconds["cross-encoder"] * BERT["layers"]
    pairs_per_second = s.pairs / scored
    pools = []
    for images in s.pools:
        by_head = encoded + seconds[_search(images)]
        pool = {"images": images, "head": by_head, "ensemble": ENSEMBLE * by_head}
        pool["cross_encoder"] = images / pairs_per_second
        pools.append(pool)
    return pools


def _latency(
    seconds: Mapping[str, float], images_per_second: float, s: Throughput
) -> dict[str, Any]:
    """What the steps from a caption to its answer take, each by itself."""
    searched = {str(images): seconds[_search(images)] for images in s.searched}
    reranked = seconds["reranked pairs"] * BERT["layers"]
    return {
        "images_per_second": images_per_second,
        "encode": _encoded(seconds),
        "search": searched,
        "pairs": s.reranked,
        "rerank": reranked,
    }


def _encoded(seconds: Mapping[str, float]) -> float:
    return seconds["caption pooled"] + seconds["caption by BiGRU"]


def _made_with(device: str) -> dict[str, str]:
    return {
        "machine": _machine(device),
        "processor": machine.processor(),
        "vse-pipeline": version("vse-pipeline"),
        "torch": version("torch"),
    }


def _pooled(
    recipes: Mapping[str, Recipe],
    dimension: int,
    s: Throughput,
    progress: Callable[[str], object],
) -> dict[str, float]:
    """Images pooled a second by recipe; poolings that recipes share are timed once."""
    step_of = {}
    steps = {}
    for recipe, settings in recipes.items():
        pooled = settings.image_pooling
        name = f"images by {pooled.name}, {pooled.model_dump_json()}"
        step_of[recipe] = name
        steps[name] = pool_step(pooled, dimension, s.batch_size, s.items, s.device)
    seconds = _timed(steps, s, progress)
    return {recipe: s.batch_size / seconds[step] for recipe, step in step_of.items()}


def _steps_of_query(recipe: Recipe, training: Training, s: Throughput) -> dict[str, Step]:
    """What the answer to a query takes."""
    dimension = training.dimension
    positions = s.items + s.tokens
    steps: dict[str, Step] = {}
    steps["caption pooled"] = pool_step(recipe.text_pooling, dimension, 1, s.tokens, s.device)
    steps["caption by BiGRU"] = bigru_step(training, s.tokens, s.device)
    steps["cross-encoder"] = transformer_layer_step(s.pairs, positions, s.device)
    steps["reranked pairs"] = transformer_layer_step(s.reranked, positions, s.device)
    for images in sorted({*s.pools, *s.searched}):
        steps[_search(images)] = search_step(images, dimension, s.device)
    return steps


def _search(images: int) -> str:
    """The name of the step that searches so many images."""
    return f"search {images:,} images"


def _timed(
    steps: Mapping[str, Step], settings: Throughput, progress: Callable[[str], object]
) -> dict[str, float]:
    return interleaved(steps, settings.device, settings.repeats, settings.seconds, progress)


def methods(recipe: str, dimension: int, s: Throughput) -> dict[str, str]:
    """Describe how each number was measured, for a caption or a footnote, by throughput.yaml."""
    measured_with = {
        **s.model_dump(),
        **BERT,
        "recipe": recipe,
        "dimension": dimension,
        "found": FOUND,
        "ensemble": ENSEMBLE,
        "machine": _machine(s.device),
    }
    measured_with |= {
        step: sentence.format(**measured_with) for step, sentence in SAID["parts"].items()
    }
    return {step: sentence.format(**measured_with) for step, sentence in SAID["methods"].items()}


def _machine(device: str) -> str:
    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    return counted(torch.get_num_threads(), "CPU thread")


def pool_step(
    setting: PoolingSettings, dimension: int, batch: int, items: int, device: str
) -> Step:
    """Pool a batch in which all items are valid."""
    pooling_module = pooling.of(setting, dimension)
    pooling_module = pooling_module.to(device).eval()
    item_vectors = torch.randn(batch, items, dimension, device=device)
    counts = torch.full((batch,), items, device=device)
    return lambda: pooling_module(item_vectors, counts)


def bigru_step(training: Training, tokens: int, device: str) -> Step:
    """Encode one caption with a BiGRU."""
    text = BiGRU(WORDS, training.dimension, training.word_dimension)
    text = text.to(device).eval()
    caption = torch.randint(WORDS, (1, tokens), device=device)
    length = torch.tensor([tokens], device=device)
    return lambda: text(caption, length)


def search_step(images: int, dimension: int, device: str) -> Step:
    """Compute one caption's similarity with every image, and find the `FOUND` most similar."""
    drawn = torch.randn(min(images, DRAWN), dimension, device=device)
    drawn_vectors = normalize(drawn, dim=-1)
    # Drawing a million takes seconds, repeating none.
    repeats = -(-images // len(drawn_vectors))
    vectors = drawn_vectors.repeat(repeats, 1)[:images]
    vector = torch.randn(dimension, device=device)
    caption = normalize(vector, dim=-1)
    if device == "cpu":
        index = Exact(vectors.numpy())
        query = caption[None].numpy()
        return lambda: index.top(query, FOUND)
    return lambda: (vectors @ caption).topk(min(FOUND, images))


def transformer_layer_step(inputs: int, positions: int, device: str) -> Step:
    """Run one layer of BERT-base."""
    width = BERT["width"]
    layer = nn.TransformerEncoderLayer(
        width, BERT["heads"], BERT["feedforward"], activation="gelu", batch_first=True
    )
    layer = layer.to(device).eval()
    input_vectors = torch.randn(inputs, positions, width, device=device)
    return lambda: layer(input_vectors)


def interleaved(
    steps: Mapping[str, Callable[[], object]],
    device: str,
    repeats: int,
    at_least: float,
    progress: Callable[[str], object] = lambda what: None,
) -> dict[str, float]:
    """Time steps in rounds, so that a slow phase of the machine slows all of them."""
    seconds_of_step: dict[str, list[float]] = {}
    for step_name, step in steps.items():
        progress(step_name)
        step()
        seconds_of_step[step_name] = []
    waiting = list(steps)
    while waiting:
        for step_name in waiting:
            _wait(device)
            start = time.perf_counter()
            steps[step_name]()
            _wait(device)
            seconds_of_step[step_name].append(time.perf_counter() - start)
        waiting = []
        for step_name, step_seconds in seconds_of_step.items():
            if len(step_seconds) < repeats or sum(step_seconds) < at_least:
                waiting.append(step_name)
    return {step_name: min(step_seconds) for step_name, step_seconds in seconds_of_step.items()}


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


@torch.inference_mode()
def measure_query(
    source: reranking.PairSource,
    retriever: str,
    scorer: str,
    settings: Throughput,
    progress: Callable[[str], object] = lambda what: None,
) -> dict[str, Any]:
    """Time the retrieval of a caption's candidates, without and with the scorer (Geigle et al.,
    Table 3).

    Models are loaded, vectors are in memory. The caption is the one of median length. The scorer
    reads its candidates' features from their store.

    JSON values. retriever, scorer; images: how many are searched; k; retrieve: seconds; both:
    seconds of retrieving and reranking; ratio: both / retrieve.
    """
    paths = source.paths
    folder = paths.head(source.dataset, retriever)
    head = training_room.Head.open(folder, source.device)
    store = System.open_vectors(paths.similarity(source.dataset, retriever, source.split))
    if store.checkpoints != [head.checkpoint]:
        raise InputError(
            f"{store.path}: is of another head than the current {retriever}; run `pipeline score` again"
        )
    vectors = np.array(store.vectors("image"))
    k = settings.reranked
    if k > len(vectors):
        raise InputError(
            f"{store.path}: has {len(vectors)} images; set throughput.reranked, {k}, to that at most"
        )
    manifest = Manifest.load(paths.manifest(source.dataset))
    caption_id, caption = _of_median_length(manifest, store.caption_ids)
    asked = np.full(k, caption_id, np.int64)
    kind_and_name = reranking.resolve(scorer, source)
    opened = reranking.build(*kind_and_name, source)

    def retrieve() -> np.ndarray:
        query = head.embed_captions([caption], 1)
        return Exact(vectors).top(query, k).places[0]

    def rerank() -> np.ndarray:
        return opened.score(store.image_ids[retrieve()], asked)

    steps = {f"a query by {retriever}": retrieve, f"reranked by {scorer}": rerank}
    timed = interleaved(steps, source.device, settings.repeats, settings.seconds, progress)
    retrieval_seconds, reranked_seconds = timed.values()
    return {
        "retriever": retriever,
        "scorer": scorer,
        "images": len(vectors),
        "k": k,
        "retrieve": retrieval_seconds,
        "both": reranked_seconds,
        "ratio": reranked_seconds / retrieval_seconds,
    }


def _of_median_length(manifest: Manifest, caption_ids: np.ndarray) -> tuple[int, str]:
    """The caption of median length, with the id of the first one of its text."""
    table = manifest.rows(["caption_id", "caption"]).set_index("caption_id")
    captions = table.loc[caption_ids, "caption"]
    by_length = captions.str.len().sort_values(kind="stable").index
    caption = captions.loc[by_length[len(captions) // 2]]
    return captions.index[captions == caption][0], caption
