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

from pipeline import training as training_room
from pipeline.compute import device, machine
from pipeline.evaluation.retrieval.nearest import Exact
from pipeline.files.parsing import from_yaml
from pipeline.heads import pooling
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError, counted, refusing
from pipeline.settings import PoolingSettings, Recipe, Throughput, Training
from pipeline.systems import reranking
from pipeline.systems.scores.system import System
from pipeline.text.bigru import BiGRU

Step = Callable[[], object]
FOUND = 10  # candidates in the answer to a query
DRAWN = 10_000  # random vectors; more images repeat them
WORDS = 10_000  # of the BiGRU's vocabulary
# BERT-base: the size of the cross-encoders UNITER-base and OSCAR-base, with which VSE∞ (figure 3)
# compares.
BERT = {"layers": 12, "width": 768, "heads": 12, "feedforward": 3072}
ENSEMBLE = 3  # heads of RGP, each with its own text encoder and matrix
SAID: dict[str, dict[str, str]] = from_yaml(
    Path(__file__).with_name("throughput.yaml").read_text(encoding="utf-8")
)


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
    s, d = settings, training.dimension
    with refusing(InputError, lambda error: f"throughput.{error}"):
        device.require(s.device)
    began = machine.now()
    poolings = {
        recipe.image_pooling.model_dump_json(): recipe.image_pooling for recipe in recipes.values()
    }
    taken = _timed(
        {
            f"images by {each.name}, {key}": pool_step(each, d, s.batch_size, s.items, s.device)
            for key, each in poolings.items()
        },
        s,
        progress,
    )
    pooled = dict(zip(poolings, taken.values(), strict=True))
    name, first = next(iter(recipes.items()))
    parts = {
        "caption pooled": pool_step(first.text_pooling, d, 1, s.tokens, s.device),
        "caption by BiGRU": bigru_step(training, s.tokens, s.device),
        "cross-encoder": transformer_layer_step(s.pairs, s.items + s.tokens, s.device),
        "reranked pairs": transformer_layer_step(s.reranked, s.items + s.tokens, s.device),
    }
    parts |= {
        f"search {n:,} images": search_step(n, d, s.device) for n in sorted({*s.pools, *s.searched})
    }
    query = _timed(parts, s, progress)
    encoded = query["caption pooled"] + query["caption by BiGRU"]
    crossed = s.pairs / (query["cross-encoder"] * BERT["layers"])  # pairs a second
    used = machine.others(began, machine.now())
    return {
        "poolings": {
            recipe: s.batch_size / pooled[of.image_pooling.model_dump_json()]
            for recipe, of in recipes.items()
        },
        "pools": [
            {
                "images": n,
                "head": encoded + query[f"search {n:,} images"],
                "ensemble": ENSEMBLE * (encoded + query[f"search {n:,} images"]),
                "cross_encoder": n / crossed,
            }
            for n in s.pools
        ],
        "latency": {
            "images_per_second": s.batch_size / next(iter(pooled.values())),
            "encode": encoded,
            "search": {str(n): query[f"search {n:,} images"] for n in s.searched},
            "pairs": s.reranked,
            "rerank": query["reranked pairs"] * BERT["layers"],
        },
        "methods": methods(name, d, s),
        "others": used,
        "busy": machine.disturbed(used, torch.get_num_threads()),
        "settings": {"dimension": d, **s.model_dump()},
        "made_with": {
            "machine": _machine(s.device),
            "processor": machine.processor(),
            **{name: version(name) for name in ("vse-pipeline", "torch")},
        },
    }


def _timed(
    steps: Mapping[str, Step], settings: Throughput, progress: Callable[[str], object]
) -> dict[str, float]:
    return interleaved(steps, settings.device, settings.repeats, settings.seconds, progress)


def methods(recipe: str, dimension: int, s: Throughput) -> dict[str, str]:
    """Describe how each number was measured, for a caption or a footnote, by throughput.yaml."""
    named = {
        **s.model_dump(),
        **BERT,
        "recipe": recipe,
        "dimension": dimension,
        "found": FOUND,
        "ensemble": ENSEMBLE,
        "machine": _machine(s.device),
    }
    named |= {name: text.format(**named) for name, text in SAID["parts"].items()}
    return {name: text.format(**named) for name, text in SAID["methods"].items()}


def _machine(device: str) -> str:
    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    return counted(torch.get_num_threads(), "CPU thread")


def pool_step(
    setting: PoolingSettings, dimension: int, batch: int, items: int, device: str
) -> Step:
    """Pool a batch in which all items are valid."""
    module = pooling.build(setting.name, dimension, **setting.options).to(device).eval()
    values = torch.randn(batch, items, dimension, device=device)
    counts = torch.full((batch,), items, device=device)
    return lambda: module(values, counts)


def bigru_step(training: Training, tokens: int, device: str) -> Step:
    """Encode one caption with a BiGRU."""
    text = BiGRU(WORDS, training.dimension, training.word_dimension).to(device).eval()
    caption = torch.randint(WORDS, (1, tokens), device=device)
    length = torch.tensor([tokens], device=device)
    return lambda: text(caption, length)


def search_step(images: int, dimension: int, device: str) -> Step:
    """Compute one caption's similarity with every image, and find the `FOUND` most similar."""
    few = normalize(torch.randn(min(images, DRAWN), dimension, device=device), dim=-1)
    vectors = few.repeat(-(-images // len(few)), 1)[
        :images
    ]  # drawing a million takes seconds, repeating none
    caption = normalize(torch.randn(dimension, device=device), dim=-1)
    if device == "cpu":
        index, query = Exact(vectors.numpy()), caption[None].numpy()
        return lambda: index.top(query, FOUND)
    return lambda: (vectors @ caption).topk(min(FOUND, images))


def transformer_layer_step(inputs: int, positions: int, device: str) -> Step:
    """Run one layer of BERT-base."""
    layer = (
        nn.TransformerEncoderLayer(
            BERT["width"], BERT["heads"], BERT["feedforward"], activation="gelu", batch_first=True
        )
        .to(device)
        .eval()
    )
    values = torch.randn(inputs, positions, BERT["width"], device=device)
    return lambda: layer(values)


def interleaved(
    steps: Mapping[str, Callable[[], object]],
    device: str,
    repeats: int,
    at_least: float,
    progress: Callable[[str], object] = lambda what: None,
) -> dict[str, float]:
    """Time steps in rounds, so that a slow phase of the machine slows all of them."""
    taken: dict[str, list[float]] = {}
    for name, step in steps.items():
        progress(name)
        step()
        taken[name] = []
    while waiting := [
        name for name, runs in taken.items() if len(runs) < repeats or sum(runs) < at_least
    ]:
        for name in waiting:
            _wait(device)
            start = time.perf_counter()
            steps[name]()
            _wait(device)
            taken[name].append(time.perf_counter() - start)
    return {name: min(runs) for name, runs in taken.items()}


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
    head = training_room.Head.open(source.paths.head(source.dataset, retriever), source.device)
    store = System.open_vectors(source.paths.similarity(source.dataset, retriever, source.split))
    if store.checkpoints != [head.checkpoint]:
        raise InputError(
            f"{store.path}: is of another head than the current {retriever}; run `pipeline score` again"
        )
    vectors, k = np.array(store.vectors("image")), settings.reranked
    if k > len(vectors):
        raise InputError(
            f"{store.path}: has {len(vectors)} images; set throughput.reranked, {k}, to that at most"
        )
    manifest = Manifest.load(source.paths.manifest(source.dataset))
    table = (
        manifest.rows(["caption_id", "caption"])
        .set_index("caption_id")
        .loc[store.caption_ids, "caption"]
    )
    caption = table.loc[table.str.len().sort_values(kind="stable").index[len(table) // 2]]
    asked = np.full(k, table.index[table == caption][0], np.int64)
    opened = reranking.build(*reranking.resolve(scorer, source), source)

    def retrieve() -> np.ndarray:
        query = head.embed_captions([caption], 1)
        return Exact(vectors).top(query, k).places[0]

    taken = interleaved(
        {
            f"a query by {retriever}": retrieve,
            f"reranked by {scorer}": lambda: opened.score(store.image_ids[retrieve()], asked),
        },
        source.device,
        settings.repeats,
        settings.seconds,
        progress,
    )
    alone, both = taken.values()
    return {
        "retriever": retriever,
        "scorer": scorer,
        "images": len(vectors),
        "k": k,
        "retrieve": alone,
        "both": both,
        "ratio": both / alone,
    }
