"""XLM-RoBERTa as a text: its tokenizer's words and special tokens, its positions, a head that needs
nothing else.

The network is random and narrow, the tokenizer a Unigram learned from a few captions.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoModel, XLMRobertaConfig, XLMRobertaTokenizerFast

from pipeline.foundation import settings
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, InputWarning
from pipeline.foundation.settings import Training
from pipeline.make import training
from pipeline.make.features.store import FeatureStore
from pipeline.make.text.bert import BertText
from pipeline.make.text.tokens import augment, encode

CAPTIONS = [
    "Ein Mann mit blauer Jacke geht über die Straße.",
    "A man in a blue jacket crosses the street.",
    "Muž v modré bundě jde přes ulici.",
    "Un homme en veste bleue traverse la rue.",
]
POSITIONS = 66
SETTINGS = settings.load(
    Path(__file__).parents[2] / "params.yaml",
    tuple(
        f"training.sample.{change}"
        for change in ("dimension=16", "batch_size=16", "epochs=1", "decay_epoch=1")
    ),
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the hub has it: config.json, model.safetensors, tokenizer.json."""
    folder = tmp_path_factory.mktemp("xlm")
    learned = Tokenizer(models.Unigram())
    learned.pre_tokenizer = pre_tokenizers.Metaspace()
    learned.train_from_iterator(
        CAPTIONS * 20,
        trainers.UnigramTrainer(
            vocab_size=120,
            special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
            unk_token="<unk>",
            show_progress=False,
        ),
    )
    pieces = [tuple(each) for each in json.loads(learned.to_str())["model"]["vocab"]]
    tokenizer = XLMRobertaTokenizerFast(vocab=pieces)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    AutoModel.from_config(
        XLMRobertaConfig(
            vocab_size=len(tokenizer),
            hidden_size=8,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=8,
            max_position_embeddings=POSITIONS,
            type_vocab_size=1,
            pad_token_id=1,
            bos_token_id=0,
            eos_token_id=2,
        )
    ).save_pretrained(folder)
    return folder


@pytest.fixture
def tiny(checkpoint: Path) -> Training:
    return SETTINGS.training_of("sample").model_copy(update={"bert": str(checkpoint)})


@pytest.fixture
def text(tiny: Training) -> BertText:
    return BertText.learn([], tiny)


def test_numbers_are_the_tokenizers_own(text: BertText, checkpoint: Path) -> None:
    own = XLMRobertaTokenizerFast.from_pretrained(checkpoint)
    assert encode(text, CAPTIONS) == own(CAPTIONS)["input_ids"]
    assert (text.before, text.after, text.mask) == ([0], [2], own.mask_token_id)
    assert text.checkpoint.items() >= {"kind": "xlm-roberta", "layers": 2, "width": 8}.items()


def test_a_word_is_what_stands_between_spaces_whatever_its_pieces(text: BertText) -> None:
    for caption in CAPTIONS:
        words = [text.tokenizer.decode(word).strip() for word in text.split([caption])[0]]
        assert words == caption.split()
    assert max(len(word) for word in text.split(CAPTIONS)[0]) > 1


def test_augmentation_masks_whole_words_and_draws_no_special_piece(text: BertText) -> None:
    special = set(text.tokenizer.all_special_ids)
    assert len(special) == 5
    assert not special & set(text.others.tolist())
    assert len(text.others) == len(text.tokenizer) - 5
    words, masked = text.split(CAPTIONS[:1])[0], 0
    rng = np.random.default_rng(0)
    for _ in range(200):
        for word in augment(words, 0.5, text, rng):
            hidden = [piece == text.mask for piece in word]
            assert all(hidden) or not any(hidden)
            masked += all(hidden) and len(word) > 1
    assert masked


def test_positions_begin_after_that_of_padding(text: BertText, tiny: Training) -> None:
    assert text.longest == POSITIONS - 2
    network = text.encoder(4, tiny).pretrained
    tokens = torch.tensor([[*text.before, 7, 8, *text.after]])
    at = torch.arange(2, 6)[None]
    torch.testing.assert_close(
        network(input_ids=tokens).last_hidden_state,
        network(input_ids=tokens, position_ids=at).last_hidden_state,
    )


def test_the_longest_caption_fits_and_padding_has_no_effect(text: BertText, tiny: Training) -> None:
    with pytest.warns(InputWarning, match=f"more than {POSITIONS - 4} words"):
        (longest,) = encode(text, ["Jacke " * 100])
    assert len(longest) == POSITIONS - 2
    encoder = text.encoder(4, tiny).eval()
    short = encode(text, CAPTIONS[1:2])[0]
    batch = torch.zeros(2, len(longest), dtype=torch.int64)
    batch[0], batch[1, : len(short)] = torch.tensor(longest), torch.tensor(short)
    found = encoder(batch, torch.tensor([len(longest), len(short)]))[1, : len(short)]
    alone = encoder(torch.tensor([short]), torch.tensor([len(short)]))[0]
    torch.testing.assert_close(found, alone)


def test_a_heads_text_needs_nothing_else(text: BertText, tiny: Training, tmp_path: Path) -> None:
    text.save(tmp_path)
    loaded = BertText.load(tmp_path)
    assert (loaded.digest, loaded.longest) == (text.digest, text.longest)
    assert encode(loaded, CAPTIONS) == encode(text, CAPTIONS)
    loaded.encoder(8, tiny).load_state_dict(text.encoder(8, tiny).state_dict())


def test_a_head_trains_with_it(
    scenes: Manifest, store: FeatureStore, tiny: Training, tmp_path: Path
) -> None:
    job = training.TrainingJob(
        scenes,
        store,
        "region",
        "bert",
        "vse_infty",
        SETTINGS.recipe("vse_infty"),
        tiny.model_copy(update={"batch_size": 8}),
        0,
        tmp_path / "head",
    )
    training.train(replace(job))
    head = training.Head.open(job.folder)
    _, captions = head.embed(store, scenes.split("val"), 8)
    assert np.isfinite(captions).all()


def test_pickled_weights_are_not_read(checkpoint: Path, tiny: Training, tmp_path: Path) -> None:
    for file in checkpoint.iterdir():
        if file.suffix == ".json":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    torch.save(AutoModel.from_pretrained(checkpoint).state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"it holds pytorch_model\.bin, which is not read"):
        BertText.learn([], tiny.model_copy(update={"bert": str(tmp_path)}))
