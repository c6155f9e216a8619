"""A pretrained text network of `transformers` with its tokenizer: from captions to a vector for
each token.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig

from pipeline.foundation.files import model_folder, parsing, pretrained, weights
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.remembered import sha256_of_unchanged
from pipeline.foundation.parts.errors import InputError, refusing

# Networks of images and captions -> the class of their text part, which alone is loaded.
TEXT_PARTS = {"clip": "CLIPTextModel", "siglip": "SiglipTextModel", "siglip2": "Siglip2TextModel"}
# Networks whose positions come after that of padding; those of the others begin at 0.
AFTER_PADDING = ("camembert", "mpnet", "roberta", "xlm-roberta", "xlm-roberta-xl")
# What a text network has beside the tokens' vectors, as a regular expression of its tensors' names.
UNUSED = pretrained.COMPUTED + r"|(^|\.)pooler\."
UNUSED_OF_DECODER = UNUSED + r"|(^|\.)decoder\."
# The most tokens that are read of a caption, also where a network has no limit.
LONGEST = 512


class TokenVectors(nn.Module):
    """A pretrained text network. padded: the length and token id to which it pads captions; None
    for a mask.
    """

    def __init__(self, pretrained: nn.Module, padded: tuple[int, int] | None) -> None:
        super().__init__()
        self.pretrained = pretrained
        self.padded = padded

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Encode captions, int64 [B, T] of lengths [B]: [B, T, width]. Padded values are
        unspecified.
        """
        count = tokens.shape[1]
        present = torch.arange(count, device=tokens.device) < lengths[:, None]
        if self.padded is None:
            output = self.pretrained(input_ids=tokens, attention_mask=present.long())
            states: Tensor = output.last_hidden_state
            return states
        length, padding = self.padded
        filled = tokens.masked_fill(~present, padding)
        filled = nn.functional.pad(filled, (0, length - count), value=padding)
        return self.pretrained(input_ids=filled).last_hidden_state[:, :count]

    def train(self, mode: bool = True) -> Self:
        """Set the mode; a frozen network has no dropout in training either."""
        super().train(mode)
        is_frozen = not any(weight.requires_grad for weight in self.pretrained.parameters())
        self.pretrained.train(mode and not is_frozen)
        return self


class TextTower:
    """A checkpoint's tokenizer and configuration, and the network that they are of.

    source: the folder with the weights; None for a saved head's, whose own checkpoint fills the
        network.
    """

    NOUN: ClassVar[str] = "text network"  # what messages call it

    def __init__(
        self,
        tokenizer: Any,
        config: Any,
        source: Path | None,
        weights_digest: str,
        found: Mapping[str, str] | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.config = config
        self.source = source
        self.weights = weights_digest
        self.found = dict(found or {})
        # Some cut and pad until they are first called: the digest must not depend on that.
        if tokenizer.is_fast:
            tokenizer.backend_tokenizer.no_truncation()
            tokenizer.backend_tokenizer.no_padding()
        self.before, self.after = _added(tokenizer)
        self.unknown_token = -1
        # CLIP's [UNK] is the end of a caption, too.
        if tokenizer.unk_token_id not in {None, *self.before, *self.after}:
            self.unknown_token = int(tokenizer.unk_token_id)
        kind = config.model_type.removesuffix("_text_model")
        # Trained on captions of its limit's length, without a mask.
        of_siglip = kind.startswith("siglip")
        self.lowers = of_siglip and pretrained.is_gemma(tokenizer)
        limit = getattr(config, "max_position_embeddings", None) or LONGEST
        if kind in AFTER_PADDING:
            limit -= int(config.pad_token_id) + 1
        self.longest = min(limit, LONGEST)
        self.padded = (self.longest, int(tokenizer.pad_token_id)) if of_siglip else None

    @classmethod
    def of(cls, name: str, advice: str) -> Self:
        """Load a checkpoint: a folder, also one of sentence-transformers, or a name on the Hugging
        Face hub.
        """
        folder = weights.folder(name, f"{cls.NOUN} checkpoint", advice)
        inner = _first_module(folder)
        config, network = cls._pretrained(inner)
        tokenizer = cls._tokenizer(inner, config)
        return cls(tokenizer, config, inner, weights.digest(network), _origin(name, inner))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load config.json, source.json and the tokenizer's files, which `save` wrote."""
        model_folder.check(folder)
        with refusing(
            (OSError, ValueError, KeyError, TypeError, AttributeError),
            f"{folder}: not a tokenizer with its {cls.NOUN}'s configuration; train the head again",
        ):
            source = parsing.from_json((folder / "source.json").read_text(encoding="utf-8"))
            config = AutoConfig.from_pretrained(folder, **weights.LOCAL)
            tokenizer = cls._tokenizer(folder, config)
            return cls(tokenizer, config, None, source["weights"], source.get("found"))

    def save(self, folder: Path) -> None:
        """Write config.json, source.json and the tokenizer's files."""
        self.tokenizer.save_pretrained(folder)
        self.config.to_json_file(folder / "config.json")
        source = json.dumps({"weights": self.weights, "found": self.found})
        (folder / "source.json").write_text(source, encoding="utf-8")

    @property
    def digest(self) -> str:
        """SHA-256 over tokenizer, configuration and pretrained weights."""
        settings = self.config.to_dict()
        config = {key: value for key, value in settings.items() if not key.startswith("_")}
        if self.tokenizer.is_fast:
            pieces = self.tokenizer.backend_tokenizer.to_str()
        else:
            pieces = self.tokenizer.sp_model.serialized_model_proto().hex()
        return digest({"tokenizer": pieces, "config": config, "weights": self.weights})

    @property
    def checkpoint(self) -> dict[str, Any]:
        """Where the checkpoint was found (see `_found`), the kind of network, its layers, width and
        word pieces.
        """
        return {
            **self.found,
            "kind": self.config.model_type,
            "layers": self.config.num_hidden_layers,
            "width": self.config.hidden_size,
            "pieces": self.config.vocab_size,
        }

    def read(self, captions: Sequence[str]) -> list[str]:
        """The captions as the tokenizer gets them."""
        if self.lowers:
            return [caption.lower() for caption in captions]
        return list(captions)

    def network(self, pooler: bool = False) -> Any:
        """Build the network: pretrained, or untrained for a saved head."""
        if self.source:
            _, network = self._pretrained(self.source)
        else:
            kind, attention = _class(self.config)
            network = _text_part(kind._from_config(self.config, attn_implementation=attention))
        if not pooler and hasattr(network, "pooler"):
            network.pooler = None  # a layer on top of the first token, which would have no gradient
        return network

    @classmethod
    def _tokenizer(cls, folder: Path, config: Any) -> Any:
        tokenizer = pretrained.tokenizer(folder, config.vocab_size)
        if not tokenizer.is_fast and not hasattr(tokenizer, "sp_model"):
            raise InputError(
                f"{folder}: expected a tokenizer.json, or a SentencePiece model; save it again with a "
                "present `transformers`"
            )
        return tokenizer

    @classmethod
    def _pretrained(cls, folder: Path) -> tuple[Any, Any]:
        """The configuration and the network, with its pooler if it has one."""
        config = pretrained.configuration(folder, cls.NOUN)
        if config.model_type in TEXT_PARTS:
            config = config.text_config
        for name in ("vocab_size", "hidden_size", "num_hidden_layers"):
            if not hasattr(config, name):
                raise InputError(
                    f"{folder}: is a {config.model_type}, no {cls.NOUN}; its config.json has no {name}"
                )
        kind, attention = pretrained.reading(folder, cls.NOUN, lambda: _class(config))
        unused = UNUSED_OF_DECODER if getattr(config, "is_encoder_decoder", False) else UNUSED
        network = pretrained.network(folder, kind, config, cls.NOUN, attention, unused)
        return config, _text_part(network)


def _added(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The tokens that a tokenizer adds before a caption, and after it."""
    whole = tokenizer("a", add_special_tokens=True)["input_ids"]
    inner = tokenizer("a", add_special_tokens=False)["input_ids"]
    places = range(len(whole))
    first = next(place for place in places if whole[place : place + len(inner)] == inner)
    return whole[:first], whole[first + len(inner) :]


def _class(config: Any) -> tuple[Any, str]:
    """The class of a network, and its attention."""
    part = TEXT_PARTS.get(config.model_type.removesuffix("_text_model"))
    kind: Any = getattr(transformers, part) if part else transformers.MODEL_MAPPING[type(config)]
    return kind, pretrained.own_attention(kind)


def _text_part(network: Any) -> Any:
    return network.get_encoder() if network.config.is_encoder_decoder else network


def _first_module(folder: Path) -> Path:
    """The folder of the network in one of sentence-transformers; any other folder is its own."""
    modules = folder / "modules.json"
    if not modules.exists():
        return folder
    with refusing(
        (ValueError, KeyError, TypeError, IndexError),
        f"{modules}: is not that of a model of sentence-transformers",
    ):
        listed = parsing.from_json(modules.read_text(encoding="utf-8"))
        inner = folder / parsing.text(listed[0]["path"])
    if not inner.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{modules}: names a folder outside of its own, {inner}")
    return inner


def _origin(name: str, folder: Path) -> dict[str, str]:
    """Where a checkpoint is from: `hub`, its name there, or `folder`, the last part of its path.

    The digest of its weights stands beside it, if they are one file.
    """
    origin = {"hub": name}
    if Path(name).is_dir():
        origin = {"folder": Path(name).resolve().name}
    weights = list(folder.glob("model*.safetensors"))
    if len(weights) == 1:
        origin["sha256"] = sha256_of_unchanged(weights[0])
    return origin
