"""BERT (Devlin et al. 2019) through `transformers`: word pieces, and a pretrained network that is fine-tuned.

DistilBERT and XLM-RoBERTa (Conneau et al. 2020), which knows a hundred languages, are used in the same way.
VSE∞ section 5.1.1 and A.1, VSE+2AD section 4.2 and B: bert-base-uncased, its tokens projected from 768 to d.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer

from pipeline.files import parsing, weights
from pipeline.files.digest import digest
from pipeline.files.remembered import in_process
from pipeline.parts.errors import InputError, first_line, refusing
from pipeline.settings import Training
from pipeline.text.base import LinearProjection
from pipeline.text.tokens import TokenText, Words

# torch's own attention. A config.json may name another, which `transformers` would fetch from the hub and run.
ATTENTION = {"attn_implementation": "sdpa"}
# Networks that read a caption between a first and a last token of their own: [CLS] and [SEP], <s> and </s>.
KINDS = ("bert", "distilbert", "xlm-roberta")


class Bert(nn.Module):
    """A pretrained encoder, and a linear layer from its tokens to the joint space.

    All tokens count, including the first and the last; the pooling chooses among them.
    """

    def __init__(self, pretrained: nn.Module, width: int, dimension: int) -> None:
        super().__init__()
        self.pretrained = pretrained
        self.linear = LinearProjection(width, dimension)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Encode captions, int64 [B, T] of lengths [B]: [B, T, dimension]. Padded values are unspecified."""
        present = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        states = self.pretrained(input_ids=tokens, attention_mask=present.long()).last_hidden_state
        return self.linear(states, lengths)


class BertText(TokenText):
    """Word pieces, and a BERT that reads them."""

    def __init__(self, tokenizer: Any, config: Any, source: Path | None, weights_digest: str,
                 found: Mapping[str, str] | None = None) -> None:
        self.tokenizer, self.config, self.source, self.weights = tokenizer, config, source, weights_digest
        # Some checkpoints' tokenizers cut and pad, until they are first called: the digest must not depend on that.
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
        self.found = dict(found or {})
        self.start, self.end, self.mask, self.unknown_token = (
            getattr(tokenizer, f"{name}_token_id") for name in ("cls", "sep", "mask", "unk"))
        # [PAD], <s>, [unused12] and the like stand for no text.
        self.others = np.array(sorted(number for piece, number in tokenizer.get_vocab().items()
                                      if not (piece.startswith("[") and piece.endswith("]"))
                                      and number not in tokenizer.all_special_ids))
        # XLM-RoBERTa's positions come after that of padding, BERT's begin at 0.
        before = int(config.pad_token_id) + 1 if config.model_type == "xlm-roberta" else 0
        self.longest = config.max_position_embeddings - before
        if not len(self.others) or len(tokenizer) > config.vocab_size:  # a tokenizer without files is empty
            raise InputError(f"{source}: a tokenizer of {len(self.others)} word pieces for a BERT of "
                             f"{config.vocab_size}; the folder needs the checkpoint's tokenizer.json")

    @classmethod
    def learn(cls, captions: Iterable[str], training: Training) -> "BertText":
        """Load the checkpoint `training.bert`: a folder, or a name on the Hugging Face hub."""
        folder = weights.folder(training.bert, "BERT checkpoint", "set training.NAME.bert to the folder")
        network = _without_pooler(_pretrained(folder))
        return cls(_tokenizer(folder), network.config, folder, weights.digest(network), _found(training.bert, folder))

    @classmethod
    def load(cls, folder: Path) -> "BertText":
        """Load config.json, source.json and the tokenizer's files."""
        with refusing((OSError, ValueError, KeyError, TypeError, RecursionError), f"{folder}: not a tokenizer with its "
                      "BERT's configuration; train the head again"):
            source = parsing.from_json((folder / "source.json").read_text(encoding="utf-8"))
            return cls(_tokenizer(folder), AutoConfig.from_pretrained(folder, **weights.LOCAL), None, source["weights"],
                       source.get("found"))

    def save(self, folder: Path) -> None:
        """Write config.json, source.json and the tokenizer's files."""
        self.tokenizer.save_pretrained(folder)
        self.config.to_json_file(folder / "config.json")
        (folder / "source.json").write_text(json.dumps({"weights": self.weights, "found": self.found}),
                                            encoding="utf-8")

    @property
    def digest(self) -> str:
        """SHA-256 over tokenizer, configuration and pretrained weights."""
        config = {key: value for key, value in self.config.to_dict().items() if not key.startswith("_")}
        return digest({"tokenizer": self.tokenizer.backend_tokenizer.to_str(), "config": config,
                       "weights": self.weights})

    @property
    def checkpoint(self) -> dict[str, Any]:
        """Where the checkpoint was found (see `_found`), the kind of network, its layers, width and word pieces."""
        return {**self.found, "kind": self.config.model_type, "layers": self.config.num_hidden_layers,
                "width": self.config.hidden_size, "pieces": self.config.vocab_size}

    def split(self, captions: Sequence[str]) -> list[Words]:
        """Convert captions to token ids. A word has one or more, as the tokenizer splits it."""
        encoded = self.tokenizer(list(captions), add_special_tokens=False)
        captions_words: list[Words] = []
        for row, numbers in enumerate(encoded["input_ids"]):
            numbers_of_word: dict[int | None, list[int]] = {}
            for number, word in zip(numbers, encoded.word_ids(row), strict=True):
                numbers_of_word.setdefault(word, []).append(number)
            captions_words.append(list(numbers_of_word.values()))
        return captions_words

    def unknown(self, caption: str) -> tuple[list[str], int]:
        """Find words without word pieces, such as those in an unknown script."""
        words = caption.split()
        pieces = self.split(words)
        return [word for word, parts_of_word in zip(words, pieces, strict=True)
                if all(piece == self.tokenizer.unk_token_id for parts in parts_of_word for piece in parts)], len(words)

    def encoder(self, dimension: int, training: Training) -> Bert:
        """Build the text encoder's network, see `network`, with a projection to the joint space."""
        return Bert(self.network(), self.config.hidden_size, dimension)

    def network(self, pooler: bool = False) -> nn.Module:
        """Build the checkpoint's network: pretrained, or untrained for a saved head, whose checkpoint fills it."""
        network = _pretrained(self.source) if self.source else AutoModel.from_config(
            self.config, trust_remote_code=False, **ATTENTION)
        return network if pooler else _without_pooler(network)


def _found(checkpoint: str, folder: Path) -> dict[str, str]:
    """Where a checkpoint was found: `hub`, its name there, or `folder`, the last part of its path."""
    place = {"folder": folder.resolve().name} if Path(checkpoint).is_dir() else {"hub": checkpoint}
    files = list(folder.glob("model*.safetensors"))
    return place | ({"sha256": in_process(files[0])} if len(files) == 1 else {})


def _tokenizer(folder: Path) -> Any:
    with refusing((OSError, ValueError, KeyError, TypeError), lambda error: f"{folder}: no tokenizer that can be read: "
                  f"{first_line(error)}"):
        tokenizer = AutoTokenizer.from_pretrained(folder, **weights.LOCAL)
    if not tokenizer.is_fast or None in (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.mask_token_id):
        raise InputError(f"{folder}: not a BERT's tokenizer: expected tokenizer.json with [CLS], [SEP] and [MASK], or "
                         "<s>, </s> and <mask>")
    return tokenizer


def _pretrained(folder: Path) -> Any:
    with refusing((OSError, ValueError, KeyError, TypeError, RuntimeError), lambda error: f"{folder}: no BERT that can "
                  f"be read from config.json and model.safetensors: {first_line(error)}"):
        kind = parsing.from_json((folder / "config.json").read_text(encoding="utf-8"))["model_type"]
        if kind not in KINDS:
            raise InputError(f"{folder}: is a {kind}; expected one of {', '.join(KINDS)}")
        config = AutoConfig.from_pretrained(folder, **weights.LOCAL)
        return AutoModel.from_pretrained(folder, config=config, use_safetensors=True, dtype=torch.float32,
                                         **weights.LOCAL, **ATTENTION)


def _without_pooler(network: Any) -> nn.Module:
    """Remove the layer on top of the first token, which is not used here and would have no gradient."""
    if hasattr(network, "pooler"):
        network.pooler = None
    return network
