"""Heads for other libraries: both sides as ONNX graphs, and captions as a model of
sentence-transformers.
"""

from __future__ import annotations

import functools
import gc
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unicodedata import normalize
from unittest import mock

import numpy as np
import onnxruntime
import pytest
import tiny_dual_encoders
import torch
from onnx import load
from tiny_bert import tiny_bert
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import NFC
from tokenizers.pre_tokenizers import Whitespace
from torch import Tensor, nn

from pipeline.extensions.exporters import onnx
from pipeline.foundation import settings
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.make import training
from pipeline.make.features import extraction
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.store import FeatureStore
from pipeline.make.heads import Backbone, pooling as poolings
from pipeline.make.heads.pooling import POOLINGS
from pipeline.make.heads.sides import Side
from pipeline.make.heads.two_tower import TwoTower
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.tokens import encode
from pipeline.make.text.vocabulary import Vocabulary
from pipeline.make.training.exporters.base import export

pytestmark = pytest.mark.slow

SETTINGS = settings.load(
    Path(__file__).parents[3] / "params.yaml",
    (
        "training.sample.dimension=16",
        "training.sample.batch_size=64",
        "training.sample.epochs=1",
        "training.sample.decay_epoch=1",
    ),
)
CAPTIONS = [
    "a red circle above the blue square",
    "Two red's, below!",
    "a",
    "an unheard-of ZEBRA of the left",
]
ELSEWHERE = """
import json, sys
import numpy as np, onnxruntime
folder, given, out = sys.argv[1:]
arrays = np.load(given)
about = json.load(open(f"{folder}/export.json"))
vectors = {}
for side in ("images", "captions"):
    session = onnxruntime.InferenceSession(f"{folder}/{about[side]['graph']}")
    names = list(about[side]["inputs"])
    vectors[side] = session.run(None, {name: arrays[f"{side} {name}"] for name in names})[0]
assert not {"torch", "pipeline", "transformers"} & set(sys.modules)
np.savez(out, **vectors)
"""


def trained(
    scenes: Manifest,
    store: FeatureStore,
    folder: Path,
    text: str,
    pooling: str,
    stored: FeatureStore | None = None,
    **changes: Any,
) -> training.Head:
    """A head whose images are pooled by GPO, and captions by the named pooling."""
    of_captions = settings.recipe.PoolingSettings(name=pooling)
    recipe = SETTINGS.recipe("vse_infty").model_copy(update={"text_pooling": of_captions})
    how = SETTINGS.training_of("sample").model_copy(update=changes)
    training.train(
        training.TrainingJob(
            scenes,
            store.require(scenes),
            "region",
            text,
            "mine",
            recipe,
            how,
            0,
            folder,
            captions=stored,
        )
    )
    return training.Head.open(folder)


@pytest.fixture(scope="module", autouse=True)
def _operators_are_read_once() -> Iterator[None]:
    """The exporter reads all that it knows for each graph, which takes as long as the graph."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry  # takes seconds

    once = functools.cache(ONNXRegistry.from_torchlib)
    once()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(once))
        yield


@pytest.fixture(autouse=True)
def _what_is_there_is_not_looked_through() -> None:
    """Each export collects garbage several times; the graphs of the tests before stay."""
    gc.freeze()


@pytest.fixture
def captions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images' graphs, which are alike for all encoders of captions, are not written."""
    write = onnx._graph

    def of_captions(file: Path, *arguments: Any) -> dict[str, Any]:
        return write(file, *arguments) if file.name == "captions.onnx" else {}

    monkeypatch.setattr(onnx, "_graph", of_captions)


def read(folder: Path, captions: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = Tokenizer.from_file(str(folder / "tokenizer.json")).encode_batch(captions)
    lengths = np.array([len(each.ids) for each in encoded])
    return np.array([each.ids + [0] * (lengths.max() - len(each.ids)) for each in encoded]), lengths


def test_a_bigru_is_used_where_there_is_onnxruntime_alone(
    scenes: Manifest, store: FeatureStore, tmp_path: Path
) -> None:
    head = trained(scenes, store, tmp_path / "head", "bigru", "max")
    ours = store.require(scenes)
    items, counts = ours.read(np.arange(7))
    counts[2] = 4
    expected = head.model.embed_images(Side(torch.from_numpy(items), torch.from_numpy(counts)))
    about = export(tmp_path / "head", "onnx", tmp_path / "exported")
    assert about["record"] == head.artefact.reference.identity
    assert json.loads((tmp_path / "exported" / "export.json").read_text()) == about
    captions = [*scenes.split("val").captions.tolist(), *CAPTIONS, "a red circle " * 200]
    tokens, lengths = read(tmp_path / "exported", captions)
    graph = load(tmp_path / "exported" / "captions.onnx").graph
    operators = {node.op_type for node in graph.node}
    assert "GRU" in operators
    assert "Loop" not in operators  # tens of times slower
    shutil.move(tmp_path / "exported", tmp_path / "copied")
    shutil.rmtree(tmp_path / "head")
    np.savez(
        tmp_path / "given.npz",
        **{
            "images items": np.concatenate([items, items[:1]]).astype("f4"),
            "images counts": np.append(counts, 0).astype("i8"),
            "captions tokens": tokens,
            "captions counts": lengths,
        },
    )
    subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            ELSEWHERE,
            tmp_path / "copied",
            tmp_path / "given.npz",
            tmp_path / "out.npz",
        ],
        check=True,
        cwd=tmp_path,
    )
    found = np.load(tmp_path / "out.npz")
    np.testing.assert_allclose(found["images"][:-1], expected.detach().numpy(), atol=1e-5)
    assert not found["images"][-1].any()  # that of an image without items
    with pytest.warns(UserWarning, match="are cut"):
        np.testing.assert_allclose(found["captions"], head.embed_captions(captions), atol=1e-5)


def with_tokens(
    scenes: Manifest, store: FeatureStore, tmp_path: Path, kind: str, pooling: str = "max"
) -> training.Head:
    if kind == "bert":
        folder = tiny_bert(tmp_path / "tower", layers=1)
    else:
        with mock.patch.dict(tiny_dual_encoders.TOWER, num_hidden_layers=1):
            folder = tiny_dual_encoders.FOLDERS[kind][1](tmp_path / "tower")
    options = (
        {"bert": str(folder)} if kind == "bert" else {"texts": {"tokens": {"weights": str(folder)}}}
    )
    return trained(
        scenes, store, tmp_path / "head", "bert" if kind == "bert" else "tokens", pooling, **options
    )


@pytest.mark.parametrize(("kind", "pooling"), [("bert", "mean"), ("clip", "max")])
def test_captions_are_a_model_of_sentence_transformers(
    kind: str, pooling: str, scenes: Manifest, store: FeatureStore, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    head = with_tokens(scenes, store, tmp_path, kind, pooling)
    about = export(tmp_path / "head", "sentence-transformers", tmp_path / "exported")
    assert about["record"] == head.artefact.reference.identity
    (tmp_path / "exported").rename(tmp_path / "copied")
    model = SentenceTransformer(str(tmp_path / "copied"), device="cpu")
    found = model.encode([{"text": caption} for caption in CAPTIONS])
    np.testing.assert_allclose(found, head.embed_captions(CAPTIONS), atol=1e-5)
    modules = json.loads((tmp_path / "copied" / "modules.json").read_text())
    assert all(module["type"].startswith("sentence_transformers.") for module in modules)


@pytest.mark.usefixtures("captions_alone")
def test_captions_of_a_tower_are_a_graph(
    scenes: Manifest, store: FeatureStore, tmp_path: Path
) -> None:
    head = with_tokens(scenes, store, tmp_path, "siglip2", "gpo")
    export(tmp_path / "head", "onnx", tmp_path / "exported")
    tokens, lengths = read(tmp_path / "exported", CAPTIONS)
    session = onnxruntime.InferenceSession(str(tmp_path / "exported" / "captions.onnx"))
    found = session.run(None, {"tokens": tokens, "counts": lengths})[0]
    np.testing.assert_allclose(found, head.embed_captions(CAPTIONS), atol=1e-5)


@pytest.mark.usefixtures("captions_alone")
def test_a_head_of_stored_tokens_is_exported_with_the_network_that_made_them(
    scenes: Manifest, store: FeatureStore, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    engine = extraction.EngineSpec(
        "text-tower", {"weights": str(tiny_bert(tmp_path / "tower", layers=1))}, Runtime()
    )
    made = extraction.ExtractionJob(
        scenes,
        scenes.images_folder,
        tmp_path / "words.zarr",
        engine,
        batch_size=64,
        shard_images=1024,
        dtype="float32",
    )
    extraction.extract(made)
    head = trained(
        scenes,
        store,
        tmp_path / "head",
        "features",
        "mean",
        FeatureStore(made.store).require(scenes),
        captions="words",
    )
    expected = head.embed_captions(CAPTIONS)
    for to in ("onnx", "sentence-transformers"):
        export(tmp_path / "head", to, tmp_path / to)
    tokens, lengths = read(tmp_path / "onnx", CAPTIONS)
    session = onnxruntime.InferenceSession(str(tmp_path / "onnx" / "captions.onnx"))
    np.testing.assert_allclose(
        session.run(None, {"tokens": tokens, "counts": lengths})[0], expected, atol=1e-5
    )
    model = SentenceTransformer(str(tmp_path / "sentence-transformers"), device="cpu")
    np.testing.assert_allclose(
        model.encode([{"text": caption} for caption in CAPTIONS]), expected, atol=1e-5
    )


def test_what_the_other_library_lacks_is_one_line(
    scenes: Manifest, store: FeatureStore, tmp_path: Path
) -> None:
    trained(scenes, store, tmp_path / "bigru", "bigru", "mean")
    with pytest.raises(
        InputError, match="no module for the text encoder bigru; --to onnx takes every"
    ):
        export(tmp_path / "bigru", "sentence-transformers", tmp_path / "out")
    with_tokens(scenes, store, tmp_path, "bert", "gpo")
    with pytest.raises(
        InputError, match="no module for the pooling gpo; it has mean, max, cls; --to onnx takes"
    ):
        export(tmp_path / "head", "sentence-transformers", tmp_path / "out")
    late = SETTINGS.recipe("late")
    training.train(
        training.TrainingJob(
            scenes,
            store.require(scenes),
            "region",
            "bigru",
            "late",
            late,
            SETTINGS.training_of("sample"),
            0,
            tmp_path / "late",
        )
    )
    with pytest.raises(
        InputError, match="its architecture late compares pairs; heads of two towers"
    ):
        export(tmp_path / "late", "onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_head_that_reads_photographs_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = TwoTower.__new__(TwoTower)
    nn.Module.__init__(model)
    model.backbone = Backbone("grid", nn.Identity(), nn.Identity())
    head = SimpleNamespace(model=model)
    monkeypatch.setattr(training.Head, "open", lambda folder: head)
    for to in ("onnx", "sentence-transformers"):
        with pytest.raises(InputError, match=r"mine: .* by a network of its own"):
            export(tmp_path / "mine", to, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_pooling_is_a_graph(tmp_path: Path) -> None:
    """All side by side in one graph: each export has a price of its own."""
    torch.manual_seed(0)
    every = nn.ModuleDict({name: poolings.build(name, 8) for name in POOLINGS}).eval()
    with torch.no_grad():
        for weight in every.parameters():
            weight.normal_(std=0.5)

    def pool(items: Tensor, counts: Tensor) -> Tensor:
        return torch.cat([pooling(items, counts) for pooling in every.values()], 1)

    onnx._graph(tmp_path / "x.onnx", onnx._Side(pool, every), "items", torch.randn(2, 5, 8), 13)
    session = onnxruntime.InferenceSession(str(tmp_path / "x.onnx"))

    def compare(items: Tensor, counts: Tensor, whole: Tensor) -> np.ndarray:
        """Each pooling of the graph with torch's, whose counts exceed no set's items."""
        given = {"items": items.numpy(), "counts": counts.numpy()}
        found = session.run(None, given)[0]
        some = counts > 0
        for number, (name, pooling) in enumerate(every.items()):
            expected = pooling(items[some], whole[some]).detach().numpy()
            of_graph = found[some.numpy(), 8 * number : 8 * number + 8]
            np.testing.assert_allclose(of_graph, expected, atol=1e-5, err_msg=name)
        return found

    for batch, slots in ((4, 13), (1, 1), (6, 3)):
        items, counts = torch.randn(batch, slots, 8), torch.randint(1, slots + 1, (batch,))
        items[torch.arange(slots) >= counts[:, None]] = torch.nan
        compare(items, counts, counts)
    items = torch.randn(4, 3, 8)
    items[0] = torch.nan
    counts = torch.tensor([0, 3, 2, 9])
    found = compare(items, counts, counts.clamp(max=3))
    assert not found[0].any()


def test_a_graph_reads_at_least_one_and_at_most_all_slots() -> None:
    """onnxruntime refuses a GRU's lengths outside of these."""
    read_counts = onnx._Side(lambda values, counts: counts.unsqueeze(1).float())
    found = read_counts(torch.zeros(5, 3, 8), torch.tensor([0, 1, 3, 4, 9]))
    assert found.squeeze(1).tolist() == [0, 1, 3, 3, 3]  # nothing is there of a set without items


def test_an_exported_tokenizer_reads_both_unicode_forms_of_a_letter() -> None:
    caption = "Ein Mädchen im Café"
    text = BiGRUText(Vocabulary.of([caption]))
    expected = encode(text, [caption])[0]
    for form in ("NFC", "NFD"):
        assert onnx._of_words(text).encode(normalize(form, caption)).ids == expected


def test_a_tower_that_lowers_captions_has_an_exported_tokenizer_that_does() -> None:
    tokenizer = Tokenizer(WordLevel({"a": 0, "dog": 1, "?": 2}, "?"))
    tokenizer.normalizer = NFC()
    tokenizer.pre_tokenizer = Whitespace()
    fast = SimpleNamespace(is_fast=True, backend_tokenizer=tokenizer)
    for lowers, ids in ((True, [0, 1]), (False, [2, 2])):
        tower: Any = SimpleNamespace(tokenizer=fast, lowers=lowers)
        exported = onnx._of_tower(tower)
        assert exported is not None
        assert exported.encode("A DOG").ids == ids
        assert exported.encode("a dog").ids == [0, 1]
