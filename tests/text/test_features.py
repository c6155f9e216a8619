"""A text side of stored features: a package's frozen tower computes captions once, and a head
trains on its store.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import saved

from pipeline.foundation import settings
from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.files import blake
from pipeline.foundation.files.compared import MATCHES
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts import plugins
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.system import System
from pipeline.make import training
from pipeline.make.features import extraction
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.store import FeatureStore, StoreError, ledger, verify
from pipeline.make.features.store.item_format import ItemFormat
from pipeline.make.features.store.rewrite import rewrite
from pipeline.make.text.features import FeatureText
from pipeline.run.provenance import references
from pipeline.run.provenance.trace import Traced, trace
from stages.commands.extract import ExtractOptions
from stages.commands.heads import TrainOptions
from stages.commands.scores import ScoreOptions
from stages.extract import extract
from stages.heads import train
from stages.scores import score

TOWER = '''"""A frozen tower: a fixed vector for each word."""

import hashlib

import numpy as np

from pipeline.make.features.extractors.base import Items
from pipeline.foundation.files.images import ImageError


class Tower:
    """Reads captions, at most 12 words of each."""

    items, extras, trained, backend, version = 12, {}, False, "torch", 1
    reported_as, depends_on_id = "tower", False

    def __init__(self, runtime, options):
        self.dimension, self.settings = options.width, options.recorded()
        self.table = np.random.default_rng(0).normal(size=(997, options.width)).astype("f4")
        self.weights = hashlib.sha256(self.table.tobytes()).hexdigest()

    def prepare(self, text):
        words = text.lower().split()
        if "unreadable" in words:
            raise ImageError("unreadable")
        return [int(hashlib.sha256(word.encode()).hexdigest(), 16) % 997 for word in words[:self.items]]

    def extract(self, batch, sizes):
        assert set(sizes) == {(0, 0)}
        return [Items(self.table[numbers]) for numbers in batch]
'''
OPTIONS = '''"""The options of the tower."""

from typing import ClassVar

from pipeline.make.features.extractors.options import EngineOptions


class TowerOptions(EngineOptions):
    READS: ClassVar[str] = "captions"
    width: int = 6
    reported_as: ClassVar[str] = "tower"
'''
SETTINGS = settings.load(
    Path(__file__).parents[2] / "params.yaml",
    ("training.sample.dimension=16", "training.sample.batch_size=16", "training.sample.epochs=3"),
)


@pytest.fixture(autouse=True)
def _package(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """An installed package whose engine `tower` reads captions."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "frozen").mkdir()
    for name, text in {"__init__": "", "tower": TOWER, "options": OPTIONS}.items():
        (folder / "frozen" / f"{name}.py").write_text(text, encoding="utf-8")
    about = folder / "frozen-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: frozen\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(
        "[vse_pipeline.extractors]\ntower = frozen.tower:Tower\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(folder)
    plugins.all_offers.cache_clear()
    yield
    for module in [name for name in sys.modules if name.partition(".")[0] == "frozen"]:
        del sys.modules[module]
    plugins.all_offers.cache_clear()
    plugins._read.cache_clear()


def extraction_of(manifest: Manifest, store: Path) -> extraction.ExtractionJob:
    engine = extraction.EngineSpec("tower", {}, Runtime())
    return extraction.ExtractionJob(
        manifest, manifest.images_folder, store, engine, batch_size=8, shard_images=32
    )


@pytest.fixture
def paths(scenes: Manifest, store: FeatureStore, tmp_path: Path) -> Paths:
    """A project of the scenes, with their region features and the tower's features of their
    captions.
    """
    paths = Paths(tmp_path / "project")
    scenes.save(paths.manifest("sample"))
    shutil.copytree(store.path, paths.features("sample", "region"))
    extraction.extract(extraction_of(scenes, paths.features("sample", "tower")))
    return paths


def captions_of(paths: Paths, manifest: Manifest) -> FeatureStore:
    return FeatureStore(paths.features("sample", "tower")).require(manifest)


@pytest.fixture
def job(paths: Paths, scenes: Manifest, store: FeatureStore) -> training.TrainingJob:
    how = SETTINGS.training_of("sample")
    return training.TrainingJob(
        scenes,
        store.require(scenes),
        "region",
        "features",
        "vse2ad",
        SETTINGS.recipe("vse2ad"),
        how,
        0,
        paths.head("sample", "frozen"),
        captions=captions_of(paths, scenes),
    )


def changed(manifest: Manifest, number: int, text: str) -> Manifest:
    table = manifest.table.copy()
    table.loc[number, "caption"] = text
    return replace(manifest, source=table)


def test_a_store_holds_captions_by_their_ids(paths: Paths, scenes: Manifest) -> None:
    store = captions_of(paths, scenes)
    assert (store.layout.kind, store.layout.shards) == ("captions", 4)
    assert store.ids.tolist() == scenes.table["caption_id"].tolist()
    assert store.counts.tolist() == [min(12, len(text.split())) for text in scenes.table["caption"]]
    assert store.columns("bytes").tolist() == [
        len(text.encode()) for text in scenes.table["caption"]
    ]
    rows = store.rows_of(np.array([store.ids[7], store.ids[3]]))
    assert rows.tolist() == [7, 3]
    with pytest.raises(StoreError, match="holds no features of caption -9"):
        store.rows_of(np.array([-9]))
    sources = {
        row: text
        for entry in ledger.entries(store.path, store.layout)
        for row, text in entry.sources.items()
    }
    assert sources == {
        row: blake.of_bytes(text.encode()) for row, text in enumerate(scenes.table["caption"])
    }


def test_it_resumes_grows_and_is_verified_as_any_store(paths: Paths, scenes: Manifest) -> None:
    job = extraction_of(scenes, paths.features("sample", "tower"))
    assert extraction.extract(job).extracted == 0
    ledger.erase(job.store, 2)
    assert extraction.extract(job).extracted == 32
    other = changed(scenes, 5, "A caption that nobody wrote before.")
    with pytest.raises(StoreError, match="was made for another manifest's captions"):
        FeatureStore(job.store).require(other)
    assert extraction.extract(replace(job, manifest=other)).extracted == 1
    grown = FeatureStore(job.store).require(other)
    assert grown.counts[5] == 6
    whole = grown.content(np.arange(len(grown.rows)))
    rewrite(job.store, other)
    assert FeatureStore(job.store).require(other).content(np.arange(len(grown.rows))) == whole
    assert [fault for _, faults in verify.verify(job.store) for fault in faults] == []
    (job.store / "zarr.json").unlink()
    assert extraction.extract(replace(job, manifest=other)).extracted == 0
    assert FeatureStore(job.store).require(other).content(np.arange(len(grown.rows))) == whole


def test_a_store_of_captions_is_none_of_images(paths: Paths, scenes: Manifest) -> None:
    region = FeatureStore(paths.features("sample", "region"))
    with pytest.raises(StoreError, match="holds images; the text encoder features reads captions"):
        FeatureText.of(region)
    job = training.TrainingJob(
        scenes,
        region,
        "region",
        "features",
        "vse2ad",
        SETTINGS.recipe("vse2ad"),
        SETTINGS.training_of("sample"),
        0,
        paths.root,
    )
    with pytest.raises(InputError, match="reads features of captions; name them as"):
        job.learn([])
    with pytest.raises(StoreError, match="holds captions; the head reads features of images"):
        training.stored(paths.features("sample", "tower"), scenes, SETTINGS.recipe("vse2ad"))


@pytest.fixture
def once(job: training.TrainingJob) -> training.TrainingJob:
    """The head of a single epoch."""
    return replace(job, training=job.training.model_copy(update={"epochs": 1, "decay_epoch": 1}))


def test_a_head_trains_on_it_and_scores(
    job: training.TrainingJob, paths: Paths, scenes: Manifest
) -> None:
    state = training.train(job)
    assert state.epochs == 3
    assert state.history[-1]["loss"] < state.history[0]["loss"]
    opened = training.OpenHead.open(training.HeadUse(paths, job.folder, "sample"))
    val = opened.split("val")
    images, captions = opened.head.embed(opened.source, val)
    found = evaluate(retrieval.Embeddings(images, captions), val.caption_image)
    assert found.rsum == pytest.approx(state.history[state.best - 1]["RSUM"])
    np.testing.assert_allclose(np.linalg.norm(captions, axis=1), 1, atol=1e-5)


def test_a_digest_says_which_feature_it_is_and_how_it_was_made() -> None:
    made = ItemFormat({"engine": "text-tower", "settings": {}}, 4, 6, "float16", False)
    digest = FeatureText("tower", made).digest
    assert FeatureText("tower", replace(made, place={"weights": "elsewhere"})).digest == digest
    others = [
        FeatureText("tower2", made),
        FeatureText("tower", replace(made, made={**made.made, "settings": {"width": 7}})),
        FeatureText("tower", replace(made, items=5)),
        FeatureText("tower", replace(made, dimension=7)),
        FeatureText("tower", replace(made, dtype="float32")),
    ]
    assert len({digest, *(other.digest for other in others)}) == 6


def test_new_captions_are_computed_by_the_tower_from_the_folder_alone(
    once: training.TrainingJob, paths: Paths, scenes: Manifest, tmp_path: Path
) -> None:
    training.train(once)
    opened = training.OpenHead.open(training.HeadUse(paths, once.folder, "sample"))
    val = opened.split("val")
    stored = opened.head.embed(opened.source, val)[1]
    shutil.copytree(once.folder, tmp_path / "copied")
    shutil.rmtree(paths.root)
    copied = training.Head.open(tmp_path / "copied")
    np.testing.assert_allclose(copied.embed_captions(val.captions.tolist()), stored, atol=1e-5)


def test_captions_that_the_tower_cannot_read_are_left_out(
    paths: Paths, scenes: Manifest, job: training.TrainingJob
) -> None:
    split = scenes.split("train")
    number = int(np.flatnonzero(scenes.table["caption_id"] == split.caption_ids[4])[0])
    other = changed(scenes, number, "An unreadable caption.")
    extracting = replace(extraction_of(other, paths.features("sample", "tower")), on_error="skip")
    assert extraction.extract(extracting).failed == {number: "unreadable"}
    left = training.usable(job.source, other.split("train"), captions_of(paths, other))  # type: ignore[arg-type]
    assert len(left.captions) == len(split.captions) - 1
    assert split.caption_ids[4] not in left.caption_ids
    assert len(left.image_ids) == len(split.image_ids)


def test_another_tower_is_refused(
    once: training.TrainingJob, paths: Paths, scenes: Manifest
) -> None:
    training.train(once)
    wide = replace(
        extraction_of(scenes, paths.features("sample", "tower")),
        if_changed="redo",
        engine=extraction.EngineSpec("tower", {"width": 7}, Runtime()),
    )
    extraction.extract(wide)
    with pytest.raises(
        InputError, match="its dimension is 7, the head was trained with 6; extract both alike"
    ):
        training.OpenHead.open(training.HeadUse(paths, once.folder, "sample"))


def test_the_commands_go_the_whole_road(
    paths: Paths, scenes: Manifest, capfd: pytest.CaptureFixture[str]
) -> None:
    chosen = settings.load(
        Path(__file__).parents[2] / "params.yaml",
        (
            "run.dataset=sample",
            "training.sample.captions=tower",
            "training.sample.dimension=16",
            "training.sample.batch_size=16",
            "training.sample.epochs=1",
            "training.sample.steps=1",
            "training.sample.decay_epoch=1",
        ),
    )
    store = paths.features("sample", "tower")
    shutil.rmtree(store)
    extract(
        paths, chosen, ExtractOptions(feature="region", engine="tower", out=store, dry_run=True)
    )
    extract(
        paths, chosen, ExtractOptions(feature="region", engine="tower", out=store, split="test")
    )
    test = scenes.split("test")
    said = capfd.readouterr().out
    assert f"{len(scenes.table)} of {len(scenes.table)} captions" in said
    assert f"{len(test.caption_ids)} captions extracted" in said
    assert "image" not in said
    assert sorted(FeatureStore(store).ids.tolist()) == sorted(test.caption_ids.tolist())
    extract(paths, chosen, ExtractOptions(feature="region", engine="tower", out=store))
    assert len(FeatureStore(store).require(scenes).ids) == len(scenes.table)
    train(paths, chosen, TrainOptions(feature="region", text="features"))
    score(paths, chosen, ScoreOptions(feature="region", text="features"))
    system = System.open(next(Path(paths.root, "similarities", "sample").glob("*.zarr")))
    assert system.caption_ids.tolist() == test.caption_ids.tolist()
    assert np.isfinite(system.embeddings().captions).all()
    made_from, traced = system.store.record.made_from, Traced.of_store(system.path)
    assert made_from["captions"] == references.of_features(store)
    steps = [*trace(traced, paths, chosen, 2)]
    assert {step.verdict for step in steps} == {MATCHES}
    (head,) = system.made_from.heads
    assert [step.what for step in steps if step.path == store][:2] == [
        f"the captions of {head}"
    ] * 2
    other = made_from["captions"].model_copy(update={"identity": "another"})
    saved.changed(system.path, made_from=made_from | {"captions": other})
    assert [step.what for step in trace(traced, paths, chosen, 0) if step.verdict != MATCHES] == [
        f"the captions of {head}"
    ]
