"""Dual encoders of the library `transformers`, read from files alone: no code that a model brings is run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from PIL import Image
from transformers import AutoConfig, AutoImageProcessor, AutoModel, AutoTokenizer
from transformers.utils import logging

from pipeline.compute.device import PRECISIONS
from pipeline.dual_encoders.base import (
    DualEncoder,
    Pixels,
    Usage,
    middle,
    note_activation,
    placed,
    read_folder,
    reading,
)
from pipeline.dual_encoders.places import MODEL_TYPES, TEXT_FILES, WEIGHTS, transformers
from pipeline.files import digest, weights
from pipeline.files.remembered import in_process
from pipeline.parts.errors import InputError

# Tokens of Gemma's tokenizer, which SigLIP 2 has; SigLIP has T5's, whose end is </s>.
GEMMA = {"<bos>", "<eos>"}
# Attention is torch's own: a config.json may name another, which `transformers` would fetch from the hub and run.
NETWORK = {**weights.LOCAL, "weights_only": True, "dtype": torch.float32, "attn_implementation": "sdpa"}


class TransformersEncoder(DualEncoder):
    """A model with `get_image_features` and `get_text_features`. A class of models says what it needs beside them."""

    model_types: ClassVar[tuple[str, ...]]
    pads_to_limit: ClassVar[bool]
    lowers: ClassVar[bool] = False
    library = "transformers"

    def __init__(self, folder: Path, usage: Usage) -> None:
        self.folder, self.usage = folder, usage
        logging.disable_progress_bar()  # a command has its own
        logging.set_verbosity_error()  # it warns of token ids that SigLIP's own configurations have and never use
        config = reading(folder, "configuration", lambda: AutoConfig.from_pretrained(folder, **weights.LOCAL))
        if ":" in (tower := str(getattr(config.vision_config, "architecture", ""))):  # a network of timm
            raise InputError(f"{folder}: its image tower {tower!r} would be downloaded by name, which is refused; "
                             "take a model whose folder holds all of it")
        self.processor = reading(folder, "image preprocessing", lambda: AutoImageProcessor.from_pretrained(
            folder, backend="torchvision" if usage.preprocessing == "torchvision" else "pil", **weights.LOCAL))
        self.tokenizer = reading(folder, "tokenizer", lambda: AutoTokenizer.from_pretrained(folder, **weights.LOCAL))
        self._padded = int(config.text_config.max_position_embeddings)
        self.token_limit = usage.limit(self._padded)
        self.activation: Mapping[str, str] = {
            side: str(getattr(tower, "hidden_act", "unknown"))
            for side, tower in (("image", config.vision_config), ("text", config.text_config))}
        pieces = self.tokenizer.get_vocab()
        words = {*pieces.values()} - {*self.tokenizer.all_special_ids}
        if not words or len(self.tokenizer) > config.text_config.vocab_size:  # without its files it is built empty
            raise InputError(f"{folder}: a tokenizer of {len(words)} tokens for a network of "
                             f"{config.text_config.vocab_size}; the folder needs the model's tokenizer.json, "
                             "vocab.json and merges.txt, or spiece.model")
        self.refuse_other(config.model_type, pieces.keys() >= GEMMA)
        self.changes = changed(folder, self.processor, usage)
        self._reads_middle = crops(self.processor, self.changes)
        self.preprocessing = described(self.processor, self.changes)
        tensors = next(filter(None, (read_folder(folder, patterns) for patterns in WEIGHTS)), [])
        used = [*read_folder(folder, TEXT_FILES), *tensors]
        digests = dict(zip(used, digest.of_files(used, in_process), strict=True))
        self.files: Mapping[str, str] = {file.name: found for file, found in digests.items()}
        self.weights_file = digests[tensors[0]] if len(tensors) == 1 else None
        network = _network(folder, config)
        if "text_projection" in dict(network.named_children()):
            note_activation(folder, self.activation, network.text_projection.weight,
                            '"hidden_act": "quick_gelu" of both towers in config.json')
        self.network = placed(network, usage)

    @classmethod
    def load(cls, place: str, usage: Usage) -> "TransformersEncoder":
        """Load a model, see `DualEncoder.load`."""
        return cls(transformers(place, cls.model_types), usage)

    def refuse_other(self, model_type: str, gemma: bool) -> None:
        """Refuse a model of this type that another class reads. gemma: whether its tokenizer is Gemma's."""

    def prepare(self, image: Image.Image) -> Pixels:
        """Prepare an image, see `DualEncoder.prepare`."""
        shown = middle(image) if self._reads_middle else image
        prepared = self.processor(images=shown, return_tensors="pt", **self.changes)
        return {name: values[0] for name, values in prepared.items()}

    def image_vectors(self, batch: Sequence[Pixels]) -> torch.Tensor:
        """The vectors of images, see `DualEncoder.image_vectors`."""
        stacked = {name: torch.stack([each[name] for each in batch]).to(self.usage.device) for name in batch[0]}
        stacked["pixel_values"] = stacked["pixel_values"].to(PRECISIONS[self.usage.precision])
        return _pooled(self.network.get_image_features(**stacked))

    def caption_vectors(self, captions: Sequence[str]) -> torch.Tensor:
        """The vectors of captions, see `DualEncoder.caption_vectors`."""
        tokens = self.tokenizer.pad({"input_ids": self.tokens(captions)}, max_length=self._padded, return_tensors="pt",
                                    padding="max_length" if self.pads_to_limit else "longest")
        inputs = ("input_ids",) if self.pads_to_limit else ("input_ids", "attention_mask")
        return _pooled(self.network.get_text_features(**{name: tokens[name].to(self.usage.device) for name in inputs}))

    def tokens(self, captions: Sequence[str]) -> list[list[int]]:
        """Convert captions to the numbers that are read, see `DualEncoder.tokens`."""
        return list(self.tokenizer(self._read(captions), truncation=True, max_length=self.token_limit)["input_ids"])

    def is_cut(self, captions: Sequence[str]) -> list[bool]:
        """Find captions that are longer than the limit, see `DualEncoder.is_cut`."""
        tokens = self.tokenizer(self._read(captions), truncation=False, padding=False, verbose=False)["input_ids"]
        return [len(each) > self.token_limit for each in tokens]

    def _read(self, captions: Sequence[str]) -> list[str]:
        read = self.usage.read(captions)
        return [each.lower() for each in read] if self.lowers else read

    def save(self, folder: Path) -> None:
        """Write a folder that `AutoModel` opens, see `DualEncoder.save`."""
        for part in (self.network, self.tokenizer, self.processor):
            part.save_pretrained(folder)


def changed(place: Path, processor: Any, usage: Usage) -> dict[str, Any]:
    """What a usage changes of an image processor's settings."""
    resampling = {} if usage.interpolation == "own" else {
        "resample": Image.Resampling[usage.interpolation.upper()].value}
    if usage.preprocessing != "squash":
        return resampling
    size = processor.crop_size if getattr(processor, "do_center_crop", None) else processor.size
    sides = dict(size or {})
    if not {"height", "width"} <= sides.keys():
        raise InputError(f"{place}: has no single size to squash images to; use its own preprocessing")
    return resampling | {"size": {"height": sides["height"], "width": sides["width"]}, "do_center_crop": False}


def crops(processor: Any, changes: Mapping[str, Any]) -> bool:
    """Whether only the middle of a long image is read."""
    size = dict(processor.size or {})
    return bool(size.get("shortest_edge") and not size.get("longest_edge")) and "size" not in changes


def described(processor: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an image processor, of types that JSON can hold."""
    json_types = (bool, int, float, str, list, tuple, dict, type(None))
    return {name: list(value) if isinstance(value, tuple) else value
            for name, value in (processor.to_dict() | changes).items() if isinstance(value, json_types)}


def _pooled(output: Any) -> torch.Tensor:
    """The vectors of what a network gives: a tensor, or an object with one."""
    return getattr(output, "pooler_output", output)


def _network(folder: Path, config: Any) -> Any:
    network, loading = reading(folder, "network", lambda: AutoModel.from_pretrained(
        folder, config=config, output_loading_info=True, **NETWORK))
    # An older file may lack what is computed and not learnt: position_ids.
    lacking = [name for name in loading["missing_keys"] if not name.endswith("position_ids")]
    if lacking := sorted([*lacking, *(str(each[0]) for each in loading["mismatched_keys"])]):
        raise InputError(f"{folder}: its weights lack {lacking[0]} and {len(lacking) - 1} more of the network's "
                         "tensors; expected a whole model")
    return network


class Clip(TransformersEncoder):
    """A CLIP of `transformers` (Radford et al., ICML 2021), and models of other data in its architecture.

    These are OpenCLIP's and MetaCLIP's. Images are cropped to their centre, captions read up to 77 tokens.
    """

    model_types = MODEL_TYPES["clip"]
    pads_to_limit = False


class Siglip(TransformersEncoder):
    """A SigLIP of `transformers` (Zhai et al., ICCV 2023): trained by a sigmoid for each pair.

    Images are squashed, captions padded to 64 tokens and read without a mask. Its bias and scale change no order.
    Its tokenizer needs the package sentencepiece, which the extra `encoders` brings.
    """

    model_types = MODEL_TYPES["siglip"]
    pads_to_limit = True

    def refuse_other(self, model_type: str, gemma: bool) -> None:
        """Refuse a SigLIP 2, which would read capitals that it was not trained on."""
        if gemma:
            raise InputError(f"{self.folder}: is a SigLIP 2, because its tokenizer is Gemma's; it was trained on "
                             "captions in lower case, so write siglip2: instead of siglip:")


class Siglip2(TransformersEncoder):
    """A SigLIP 2 of `transformers`: captions in lower case, padded to 64 tokens and read without a mask.

    Checkpoints of fixed size have SigLIP's architecture and say `siglip` in their config.json.
    """

    model_types = MODEL_TYPES["siglip2"]
    pads_to_limit = True
    lowers = True

    def refuse_other(self, model_type: str, gemma: bool) -> None:
        """Refuse a SigLIP, whose tokenizer is T5's."""
        if model_type == "siglip" and not gemma:
            raise InputError(f"{self.folder}: is a SigLIP, because its tokenizer is not Gemma's; write siglip: "
                             "instead of siglip2:")


class VisionText(TransformersEncoder):
    """Any two towers of `transformers` with a projection each, its VisionTextDualEncoder: LiT's form, CLIP's loss."""

    model_types = MODEL_TYPES["vision_text"]
    pads_to_limit = False
