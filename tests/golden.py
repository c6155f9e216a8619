"""Golden values: a tiny fixed input of every part that has a version, and some numbers of what it
makes of it.

    python tests/golden.py             what differs from tests/golden.json, and from those of
                                       the extensions' tests
    python tests/golden.py PART...     write these parts there, after their version was raised in
                                       pipeline/foundation/artefacts/code.py
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import foreign
import given_cpus
import h5py
import invented_facts
import numpy as np
import pytest
import saved
import tiny_detectors
import torch
from foreign import manifest as invented_manifest
from new_stores import prepare
from PIL import Image
from shallow import shallow
from tiny_bert import tiny_bert
from tiny_dual_encoders import FOLDERS, sentence_transformers, vision_text
from tiny_open_clip import OWN, written
from tiny_scorers import CLASSES, checkpoint

import pipeline.extensions
from pipeline.foundation import artefacts, manifest, settings
from pipeline.foundation.compute import measured
from pipeline.foundation.evaluation.retrieval import PerDirection, as_similarity, protocol
from pipeline.foundation.files import images
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest import Manifest, sample
from pipeline.foundation.manifest.sample.scenes import compose
from pipeline.foundation.manifest.sample.shots import choose, tell
from pipeline.foundation.manifest.sample.wording import FORMS, write_captions
from pipeline.foundation.settings import ArchitectureSettings, Recipe
from pipeline.foundation.settings.kinds import TABLES
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems import rescoring
from pipeline.judge.systems.fusion.methods import FUSIONS
from pipeline.judge.systems.reranking import SCORERS, build as build_scorer, candidates
from pipeline.judge.systems.reranking.base import PairSource
from pipeline.judge.systems.rescoring import RESCORERS
from pipeline.judge.systems.rescoring.bank import Bank
from pipeline.judge.systems.scores.fuse import fuse
from pipeline.judge.systems.scores.system import System
from pipeline.make import dual_encoders, heads, training
from pipeline.make.dual_encoders import DUAL_ENCODERS
from pipeline.make.dual_encoders.base import Usage
from pipeline.make.dual_encoders.tuning.course import TuningCourse
from pipeline.make.dual_encoders.tuning.job import TuningJob
from pipeline.make.features import extractors
from pipeline.make.features.extractors import ENGINES, Runtime
from pipeline.make.features.store import FeatureStore, ItemFormat, Shard, StoreLayout, write_shard
from pipeline.make.heads import HEADS, objectives, pooling
from pipeline.make.heads.objectives import OBJECTIVES
from pipeline.make.heads.pooling import POOLINGS
from pipeline.make.heads.sides import Side
from pipeline.make.text import TEXTS
from pipeline.make.text.features import FeatureCaptions, FeatureText
from pipeline.make.text.tokens import encode, pad

# The butd engines' own, where `make test` put it
sys.path.append(str(Path(sys.prefix) / "detectron2-tests"))
FILE = Path(__file__).with_suffix(".json")
EXTENSIONS = FILE.parent / "extensions"  # whose parts have their values in a folder each
PARAMS = Path(__file__).parents[1] / "params.yaml"
SIZES = tuple(
    f"training.sample.{change}"
    for change in (
        "dimension=8",
        "word_dimension=6",
        "batch_size=8",
        "epochs=2",
        "decay_epoch=1",
        "minimum_count=1",
    )
)
SETTINGS = settings.load(PARAMS, SIZES)
CAPTIONS = [
    "a dog runs, a cat sleeps on the mat",
    "a small red circle",
    "the cat runs and the dog sleeps",
]
GRAPHS = [
    (
        [["V", [2]], ["ARG0", [0, 1]], ["V", [5]], ["ARG1", [3, 4]], ["ARGM-LOC", [6, 7, 8]]],
        [[0, 1], [2, 3], [2, 4]],
    ),
    ([["NOUN", [3]]], []),
    ([["C-ARG1", [0, 1]], ["V", [2]], ["R-ARG0", [3]], ["ARGM-GOL", [6]]], [[1, 0], [1, 3]]),
]
COUNTS = torch.tensor([5, 1, 3])
NUMBERS = 8
"""How many numbers of an array are kept, evenly chosen, besides the mean of all absolute ones."""

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "adpool": [{"token": False}, {"embedding": False}, {"balance": 0.25}],
    "gcn": [{"layers": 1}, {"layers": 4, "readout": "seq2seq"}],
    "gpo": [{"per_dimension": True}, {"generator": "transformer"}, {"data_dependent": True}],
    "kmax": [{"k": 2}],
    "adopt": [{"margin": 0.2}, {"margin": 0.2, "count": "released"}],
    "triplet": [{"margin": 0.1, "all_negatives_epochs": 0, "reduction": "mean"}],
    "infonce": [{"temperature": 0.5}],
}
"""Pooling or objective -> options, besides its defaults, that compute something else."""

Make = Callable[[Path], Iterator[Any]]
"""Yields the arrays that a part makes."""


def part(name: str) -> list[list[float]]:
    """Some numbers of each array that a part makes now."""
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        return [_some(np.asarray(each, np.float64).ravel()) for each in MAKE[name](Path(folder))]


def _some(found: np.ndarray) -> list[float]:
    chosen = found[np.linspace(0, len(found) - 1, min(NUMBERS, len(found))).astype(int)]
    return [float(f"{value:.7g}") for value in (np.abs(found).mean(), *chosen)]


def _pooling(name: str, folder: Path) -> Iterator[Any]:
    for options in ({}, *VARIANTS.get(name, ())):
        torch.manual_seed(0)
        built = pooling.build(name, 8, **options).eval()
        items = torch.randn(3, 6, 8, requires_grad=True)
        found = built(items, torch.tensor([6, 1, 4]))
        (found * torch.arange(1.0, 25.0).view(3, 8)).sum().backward()
        yield found.detach()
        yield items.grad


def _objective(name: str, folder: Path) -> Iterator[Any]:
    for options in ({}, *VARIANTS.get(name, ())):
        torch.manual_seed(0)
        built, losses, gradients = objectives.build(name, **options), [], []
        for epoch in (0, 1, 3):
            similarity = torch.empty(6, 6).uniform_(-0.5, 0.9).requires_grad_()
            built.start_epoch(epoch)
            loss = built(similarity)
            loss.backward()
            losses.append(loss.item())
            gradients.append(similarity.grad)
        yield losses
        yield torch.stack(gradients)
    if name == "matryoshka":
        yield from _of_prefixes()


def _of_prefixes() -> Iterator[Any]:
    """The loss of a sum over prefixes, and its gradients by vectors."""
    images, captions = torch.nn.functional.normalize(torch.randn(2, 6, 16), dim=2)
    images.requires_grad_()
    built = objectives.build(
        "matryoshka", objective="adopt", dimensions=[4, 16], weights=[0.5, 2.0]
    )
    loss = built.of_vectors(images, captions, images @ captions.T, None)
    loss.backward()
    yield [loss.item()]
    yield images.grad


def _text(name: str, folder: Path) -> Iterator[Any]:
    how = SETTINGS.training_of("sample").model_copy(update={"bert": str(tiny_bert(folder))})
    torch.manual_seed(1)
    if name == "features":
        text = FeatureText("frozen", ItemFormat({"engine": "frozen"}, 5, 6, "float32", boxes=False))
        values, counts = torch.randn(3, 5, 6).numpy(), COUNTS.numpy()
        reader = FeatureCaptions(lambda rows: (values[rows], counts[rows]), counts, 5)
    else:
        options = {"weights": str(FOLDERS["clip"][1](folder / "clip"))} if name == "tokens" else {}
        text = TEXTS[name].learn(CAPTIONS, how, *TEXTS.further(name, options))
        reader = text.captions(CAPTIONS)
    tokens, lengths = map(torch.from_numpy, reader.read(np.arange(len(reader.lengths))))
    yield tokens
    torch.manual_seed(0)
    found = text.encoder(8, how).eval()(tokens, lengths).detach()
    yield torch.cat([row[:length] for row, length in zip(found, lengths.tolist(), strict=True)])


def _head(name: str, folder: Path) -> Iterator[Any]:
    how = SETTINGS.training_of("sample").model_copy(update={"bert": str(tiny_bert(folder))})
    kind = "bert" if name == "cross" else "bigru"
    recipe = {"two_tower": "vse2ad", "cross": "join"}.get(name, name)
    text = TEXTS[kind].learn(CAPTIONS, how)
    torch.manual_seed(0)
    model = heads.build(SETTINGS.recipe(recipe), "region", 6, text, how).eval()
    tokens, lengths = map(torch.from_numpy, pad(encode(text, CAPTIONS)))
    items = torch.randn(3, 5, 6)
    with torch.no_grad():
        if name == "two_tower":
            yield model.embed_images(Side(items, COUNTS))
            yield model.embed_captions(Side(tokens, lengths))
        elif name == "cross":
            yield model(
                Side(tokens, lengths),
                Side(items, COUNTS),
                caption=torch.tensor([0, 2, 1, 1]),
                image=torch.tensor([1, 0, 2, 1]),
            )
        elif model.caption_reading is not None:
            read = model.caption_reading.read(text, CAPTIONS, [*map(json.dumps, GRAPHS)])
            captions = Side(tokens, lengths, further=read(np.arange(3), tokens.shape[1]))
            yield model.similarity(
                model.image_parts(Side(items, COUNTS)), model.caption_parts(captions)
            )
        else:
            (own, _), (words, _) = (
                model.image_parts(Side(items, COUNTS)),
                model.caption_parts(Side(tokens, lengths)),
            )
            yield model.similarity((own, COUNTS), (words, lengths))


def _pictures() -> list[Image.Image]:
    noise = np.random.default_rng(0).integers(0, 255, (2, 20, 30, 3), dtype=np.uint8)
    return [Image.fromarray(noise[0]).resize((90, 60)), Image.fromarray(noise[1]).resize((64, 96))]


ENGINE_OPTIONS: dict[str, dict[str, Any]] = {
    "pyramid": {"network": "test_efficientnet", "image_size": 128},
    "grid": {"network": "test_efficientnet", "image_size": 128, "grid": 2},
    "patch": {"network": "test_vit", "image_size": 160, "cls": True},
    "frame": {"network": "test_efficientnet", "image_size": 128, "frames": 1},
    "detector": {"min_boxes": 4, "max_boxes": 4, "whole_image": True},
    "butd-36": {"short_side": 96, "long_side": 160, "min_boxes": 4, "max_boxes": 4, "proposals": 8},
    "butd-10-100": {
        "short_side": 96,
        "long_side": 160,
        "min_boxes": 2,
        "max_boxes": 5,
        "proposals": 8,
    },
    "butd-given": {"short_side": 96, "long_side": 160},
    "naflex": {"patches": 16},
    "text-tower": {"tokens": 9},
    "grid-feats-x101": {"short_side": 96, "long_side": 160},
    "grid-feats-x152": {"short_side": 64, "long_side": 96},
}


CHECKPOINTS = {"naflex": "siglip2-naflex", "text-tower": "siglip"}
"""Engine -> the folder that it reads, of `tiny_dual_encoders`."""


def _engine(name: str, folder: Path) -> Iterator[Any]:
    options = {"weights": "untrained", **ENGINE_OPTIONS[name]}
    pictures = _pictures()
    if name == "detector":
        options["weights"] = str(tiny_detectors.written(folder, "rt_detr"))
    if name == "butd-given":
        options["boxes"] = str(folder / "boxes.npz")
        np.savez(
            folder / "boxes.npz", picture=np.array([[5, 6, 60, 50], [0, 0, 40, 40]], np.float32)
        )
        for picture in pictures:
            picture.info["file"] = "picture"
    if name in CHECKPOINTS:
        options["weights"] = str(FOLDERS[CHECKPOINTS[name]][1](folder / "model"))
    with pytest.MonkeyPatch.context() as patch:
        if name.startswith(("butd-", "grid-feats-")):
            shallow(patch)
        engine = extractors.build(name, options, Runtime())
    given: list[Any] = CAPTIONS if name == "text-tower" else pictures
    found = engine.extract(
        [engine.prepare(each) for each in given], [getattr(each, "size", (0, 0)) for each in given]
    )
    yield np.concatenate([items.features for items in found])
    yield from (
        np.concatenate([items.extras[extra] for items in found]) for extra in sorted(engine.extras)
    )


def _fusion(name: str, folder: Path) -> Iterator[Any]:
    scores = np.random.default_rng(0).normal(size=(3, 5, 20)).astype(np.float32)
    ids = np.arange(5), np.arange(20)
    members = [System.of(str(number), each, None, *ids) for number, each in enumerate(scores)]
    yield from _cells(fuse(members, name, [1.0, 2.0, 0.5]).scores, 5, 20)


def _cells(scores: Any, rows: int, columns: int) -> Iterator[Any]:
    sides = (
        [scores.direction("i2t", 2**20), scores.direction("t2i", 2**20)]
        if isinstance(scores, PerDirection)
        else [scores]
    )
    yield from (side.block(slice(0, rows), slice(0, columns)) for side in sides)


def _rescorer(name: str, folder: Path) -> Iterator[Any]:
    rng = np.random.default_rng(0)
    scores, captions, queries, own, theirs = (
        as_similarity(rng.uniform(-0.2, 0.9, shape).astype(np.float32))
        for shape in ((6, 18), (6, 12), (4, 18), (6, 4), (12, 18))
    )
    bank: Any = Bank(captions, queries, lambda: own, lambda: theirs)  # type: ignore[arg-type]
    yield from _cells(rescoring.build(name).rescore(scores, bank), 6, 18)  # type: ignore[arg-type]


def _dual_encoder(name: str, folder: Path) -> Iterator[Any]:
    made = {
        "open_clip": lambda place: written(place, OWN),
        "st": sentence_transformers,
        "vision_text": vision_text,
        "tuned": _tuned,
    }
    place = (made.get(name) or FOLDERS[name][1])(folder / name)
    encoder = dual_encoders.load(f"{name}:{place}", Usage())
    yield encoder.embed_images([encoder.prepare(each) for each in _pictures()])
    yield encoder.embed_captions(["a red circle", "The Blue square, left of it", "green"])


def _tuned(folder: Path) -> Path:
    """The projections of a CLIP after two steps."""
    table = invented_manifest(8, 2, "sample")
    for number, file in enumerate(table.images["file"]):
        (folder / "images" / file).parent.mkdir(parents=True, exist_ok=True)
        _pictures()[0].rotate(30 * number).save(folder / "images" / file)
    shown = Manifest(table.table, "sample", folder / "images")
    changes = (f"finetuning.projections.{each}" for each in ("batch_size=2", "epochs=1", "steps=2"))
    recipe = settings.load(PARAMS, tuple(changes)).finetuning["projections"]
    job = TuningJob(
        f"clip:{FOLDERS['clip'][1](folder / 'clip')}",
        shown,
        shown.images_folder,
        "projections",
        recipe,
        0,
        folder / "tuned",
    )
    training.train(job, course=TuningCourse)
    return folder / "tuned"


def _features(folder: Path, graphs: bool = False) -> tuple[Paths, Manifest]:
    """A manifest of 24 images without image files, and a store of invented features of them."""
    table = invented_manifest(24, 2, "sample")
    rng = np.random.default_rng(0)
    words = np.array(["dog", "cat", "mat", "runs", "sleeps", "on", "the", "a", "red", "circle"])
    captions = [" ".join(rng.choice(words, 5)) for _ in range(len(table.table))]
    made = table.table.assign(caption=captions)
    if graphs:
        made = made.assign(
            role_graph=[json.dumps([[["V", [1]], ["ARG0", [0]], ["ARG1", [4]]], [[0, 1], [0, 2]]])]
            * len(made)
        )
    table, paths = Manifest(made, "sample", Path("nowhere")), Paths(folder)
    table.save(paths.manifest("sample"))
    ids = table.images["image_id"].to_numpy()
    features = [rng.normal(size=(int(image) % 3 + 1, 6)).astype(np.float32) for image in ids]
    store = paths.features("sample", "region")
    layout = StoreLayout(len(ids), 3, 6, shard_rows=8, dtype="float16")
    made = {"dataset": "sample", "recipe": "invented", "trained": True, "ids": table.images_digest}
    sizes = table.images["bytes"].to_numpy()
    for number in prepare(store, layout, made, ids, sizes):
        shard = Shard.empty(layout, number)
        for row in shard.rows:
            shard.fill(row, features[row], (0, 0), {}, int(sizes[row]))
        write_shard(store, layout, shard, digest(made))
    return paths, table


def _trained(
    folder: Path, name: str, **changes: Any
) -> tuple[Paths, Manifest, training.TrainingJob]:
    recipe: Recipe = SETTINGS.recipe(name).model_copy(update=changes)
    if recipe.architecture.name == "cross":
        recipe = recipe.model_copy(
            update={"architecture": ArchitectureSettings(name="cross", boxes=False)}
        )
    paths, table = _features(folder, name == "hgr")
    text = "bert" if recipe.architecture.name == "cross" or "ance" in recipe.tasks else "bigru"
    how = SETTINGS.training_of("sample").model_copy(
        update={"bert": str(tiny_bert(folder / "bert", layers=1))}
    )
    job = training.TrainingJob(
        table,
        FeatureStore(paths.features("sample", "region")),
        "region",
        text,
        name,
        recipe,
        how,
        0,
        paths.head("sample", "head"),
    )
    return paths, table, job


def _training(name: str, folder: Path) -> Iterator[Any]:
    _, _, job = _trained(folder, name)
    losses: list[float] = []
    training.train(
        job,
        on_step=lambda epoch, step, log: losses.extend(
            value for key, value in sorted(log.items()) if key.endswith("loss")
        ),
    )
    yield losses


def _scorer(name: str, folder: Path) -> Iterator[Any]:
    if name in CLASSES:
        return (yield from _pixels(name, folder))
    if name == "system":
        return (yield from _system(folder))
    recipe = {"cross": "ce"}.get(name, name)
    paths, table, job = _trained(folder, recipe, learning_rate=1e-30)  # of its first weights
    training.train(job)
    yield _of_pairs(
        build_scorer(name, "head", PairSource(paths, "sample", "sample", "sample")), table
    )


def _of_pairs(scorer: Any, table: Manifest) -> Any:
    rng = np.random.default_rng(0)
    return scorer.score(
        rng.choice(table.images["image_id"].to_numpy(), 12),
        rng.choice(table.table["caption_id"].to_numpy(), 12),
    )


def _pixels(name: str, folder: Path) -> Iterator[Any]:
    (folder / "images").mkdir()
    for number, picture in enumerate(_pictures()):
        picture.save(folder / "images" / f"{number}.png")
    (folder / "captions.csv").write_text(
        "image,caption,split\n0.png,a red circle,test\n1.png,the small square,test\n"
    )
    table, paths = (
        manifest.build("sample", folder / "images", folder / "captions.csv"),
        Paths(folder),
    )
    table.save(paths.manifest("sample"))
    source = PairSource(paths, "sample", "sample", "sample", batch_size=5)
    yield _of_pairs(build_scorer(name, str(checkpoint(name, folder / "model")), source), table)


def _system(folder: Path) -> Iterator[Any]:
    table, paths = invented_manifest(4, 2, "sample"), Paths(folder)
    table.save(paths.manifest("sample"))
    scores = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    made = invented_facts.of_file(manifest=table.digest)
    saved.save(
        paths.similarity("sample", "mine", "test"),
        [as_similarity(scores)],  # type: ignore[list-item]
        table.images["image_id"].to_numpy(),
        table.table["caption_id"].to_numpy(),
        np.repeat(np.arange(4), 2),
        made,
    )
    yield _of_pairs(
        build_scorer("system", "mine", PairSource(paths, "sample", "sample", "sample")), table
    )


def _importer(name: str, folder: Path) -> Iterator[Any]:
    """What is written without the project's code, and read back."""
    from pipeline.extensions.importers import ImportJob, import_features

    table, files = invented_manifest(8), [folder / "stacks"]
    if name == "hgr":
        table = _clips(folder)
    else:
        write = {"scan": foreign.scan, "butd-tsv": foreign.anderson_tsv, "folder": foreign.npz}[
            name
        ]
        files = write(folder, foreign.pictures(table, [3] * 8, 6))
    store = folder / "store.zarr"
    import_features(ImportJob(table, name, tuple(files), store, 8, dtype="float32"))
    found = FeatureStore(store)
    rows = np.arange(len(table.images))
    yield from found.read(rows)
    yield from (found.extra(extra, rows) for extra in sorted(found.layout.extras))


def _clips(folder: Path) -> Manifest:
    """Three clips with stacks of frames, as HGR's code has them."""
    (folder / "public_split").mkdir()
    (folder / "stacks").mkdir()
    for number, short in enumerate(("trn", "val", "tst")):
        np.save(folder / "public_split" / f"{short}_names.npy", [f"clip{number}"])
        with h5py.File(folder / "stacks" / f"{short}_ft.hdf5", "w") as file:
            file.create_dataset(
                f"clip{number}",
                data=np.random.default_rng(number).normal(size=(25 * number + 3, 6)),
            )
    captions = folder / "captions.csv"
    captions.write_text(
        "video,caption,split\nclip0.mp4,clip 0,train\nclip1.mp4,clip 1,val\nclip2.mp4,clip 2,test\n"
    )
    return manifest.build("clips", None, captions)


def _images(folder: Path) -> Iterator[Any]:
    for number, picture in enumerate(_pictures()):
        file = folder / f"{number}.png"
        picture.convert("CMYK" if number else "LA").convert("RGBA" if number else "LA").save(file)
        yield images.decode(file).resize((4, 4))


def _sample(folder: Path) -> Iterator[Any]:
    place = sample.render(folder / "sample", images=12, size=32, seed=0).parent
    yield np.stack(
        [
            np.asarray(Image.open(file).resize((4, 4)))
            for file in sorted((place / "images").iterdir())
        ]
    )
    said, rng = hashlib.blake2b(digest_size=8), np.random.default_rng(0)
    for index in range(100):
        scene = compose(0, index)
        for caption in (
            *write_captions(scene, len(FORMS), rng),
            *tell(scene, choose(0, index), 4, rng),
        ):
            said.update(caption.encode())
    yield np.frombuffer(said.digest(), np.uint8)


def _candidates(folder: Path) -> Iterator[Any]:
    """Candidates of scores with many ties, as a reranker seeks them."""
    scores = np.random.default_rng(0).integers(0, 4, (6, 18)).astype(np.float32)
    found = candidates.find(
        System.of("tied", scores, np.repeat(np.arange(6), 3)), protocol("all"), 4
    )
    yield from (
        each for way in ("i2t", "t2i") for each in (found[way].places, found[way].retrieved)
    )


MAKE: dict[str, Make] = {
    f"{table.kind}/{name}": partial(make, name)
    for table, make in (
        (POOLINGS, _pooling),
        (OBJECTIVES, _objective),
        (TEXTS, _text),
        (HEADS, _head),
        (ENGINES, _engine),
        (RESCORERS, _rescorer),
        (DUAL_ENCODERS, _dual_encoder),
        (SCORERS, _scorer),
    )
    for name in table
    if table.is_built_in(name)
}
if "importers" in TABLES:  # an extension brings them
    MAKE |= {f"importers/{name}": partial(_importer, name) for name in TABLES["importers"]}
MAKE |= {f"fusions/{name}": partial(_fusion, name) for name in FUSIONS}
MAKE |= {
    "training": partial(_training, "vse2ad"),
    "training/ce": partial(_training, "ce"),
    "training/emb": partial(_training, "emb"),
    "training/ance": partial(_training, "emb-tance"),
    "reranking": _candidates,
    "images": _images,
    "sample": _sample,
}


def read() -> dict[str, Any]:
    """Part -> its version and values, as they were written."""
    written: dict[str, Any] = {}
    for file in (FILE, *sorted(EXTENSIONS.glob(f"*/{FILE.name}"))):
        written |= json.loads(file.read_text(encoding="utf-8"))
    return written


def file_of(name: str) -> Path:
    """The file with a part's values: that of its extension, or the core's."""
    kind, _, part = name.partition("/")
    for extension in pipeline.extensions.EXTENSIONS:
        added = import_module(f"pipeline.extensions.{extension}").EXTENSION
        if part in added.parts.get(kind, {}):
            return EXTENSIONS / extension / FILE.name
    if kind not in TABLES or part not in TABLES[kind]:
        return FILE
    module = TABLES[kind].module(part)
    if not module.startswith("pipeline.extensions."):
        return FILE
    return EXTENSIONS / module.split(".")[2] / FILE.name


def differs(name: str, written: dict[str, Any]) -> str:
    """What is to be done about a part; "" for nothing. CPUs round differently, so values may differ
    by 1e-4.
    """
    if name not in written:
        return f"{name} has no golden values; write them: python tests/golden.py {name}"
    now, there = part(name), written[name]["values"]
    same = [len(each) for each in now] == [len(each) for each in there] and all(
        np.allclose(mine, theirs, rtol=1e-4, atol=1e-4 * max(map(abs, theirs)))
        for mine, theirs in zip(now, there, strict=True)
    )
    if written[name]["version"] != artefacts.version(name):
        return f"{name} was raised; write its new values: python tests/golden.py {name}"
    if not same:
        return (
            f"{name} gives other numbers: {now}, not {there}. If that is wanted, raise its version in RAISED of "
            f"pipeline/foundation/artefacts/code.py and run: python tests/golden.py {name}"
        )
    return ""


def main(names: list[str]) -> None:
    """Write the named parts, or tell of those that differ: on a plain CPU, as the tests see it."""
    torch.set_num_threads(1)
    os.environ[measured.FOLDER] = str(given_cpus.write(Path(tempfile.mkdtemp()), given_cpus.PLAIN))
    written = read() if FILE.exists() else {}
    for name in names:
        written[name] = {"version": artefacts.version(name), "values": part(name)}
    for name in () if names else MAKE:
        if said := differs(name, written):
            print(said)
    lines_of: dict[Path, list[str]] = defaultdict(list)
    for name in sorted(written):
        lines_of[file_of(name)].append(f"{json.dumps(name)}: {json.dumps(written[name])}")
    for file, lines in lines_of.items():
        text = ",\n".join(lines)
        file.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
