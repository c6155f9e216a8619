"""Dual encoders of the library `transformers`, read from files alone: no code that a model brings
is run.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from PIL import Image
from transformers import AutoModel

from pipeline.foundation.compute.device import PRECISIONS
from pipeline.foundation.files import digest, model_folder, pretrained
from pipeline.foundation.files.remembered import sha256_of_unchanged
from pipeline.foundation.parts.errors import InputError
from pipeline.make.dual_encoders import base
from pipeline.make.dual_encoders.base import DualEncoder, Pixels, Usage
from pipeline.make.dual_encoders.places import MODEL_TYPES, TEXT_FILES, transformers


class TransformersEncoder(DualEncoder):
    """A model with `get_image_features` and `get_text_features`. A class of models says what it
    needs beside them.
    """

    model_types: ClassVar[tuple[str, ...]]
    pads_to_limit: ClassVar[bool]
    lowers: ClassVar[bool] = False
    library = "transformers"

    def __init__(self, folder: Path, usage: Usage) -> None:
        self.folder = folder
        self.usage = usage
        config = pretrained.configuration(folder)
        tower = str(getattr(config.vision_config, "architecture", ""))
        if ":" in tower:  # a network of timm
            raise InputError(
                f"{folder}: its image tower {tower!r} would be downloaded by name, which is refused; "
                "take a model whose folder holds all of it"
            )
        backend = "torchvision" if usage.preprocessing == "torchvision" else "pil"
        processor = pretrained.image_processor(folder, backend=backend)
        self.processor = used_as(folder, usage, processor)
        pretrained.check_side(folder, self.processor, config)
        self.tokenizer = pretrained.tokenizer(folder, config.text_config.vocab_size)
        self._padded = int(config.text_config.max_position_embeddings)
        self.token_limit = usage.limit(self._padded)
        of_images = getattr(config.vision_config, "hidden_act", "unknown")
        of_texts = getattr(config.text_config, "hidden_act", "unknown")
        self.activation: Mapping[str, str] = {"image": str(of_images), "text": str(of_texts)}
        if config.model_type == "siglip":
            self._refuse_other_siglip()
        self._reads_middle = crops(self.processor)
        self.preprocessing = described(self.processor)
        tensors = model_folder.weights_of(folder)
        used = [*base.read_folder(folder, TEXT_FILES), *tensors]
        digests = dict(zip(used, digest.of_files(used, sha256_of_unchanged), strict=True))
        self.files: Mapping[str, str] = {file.name: sha for file, sha in digests.items()}
        self.weights_file = None
        if len(tensors) == 1:
            self.weights_file = digests[tensors[0]]
        if config.model_type == "clip":
            pretrained.check_end(folder, self.tokenizer, config.text_config)
        network = pretrained.network(folder, AutoModel, config, pickled=True, whole=True)
        if "text_projection" in dict(network.named_children()):
            base.note_activation(
                folder,
                self.activation,
                network.text_projection.weight,
                '"hidden_act": "quick_gelu" of both towers in config.json',
            )
        self.network = base.placed(network, usage)

    def _refuse_other_siglip(self) -> None:
        """Refuse a SigLIP 2 as a SigLIP, and the reverse."""
        is_gemma = pretrained.is_gemma(self.tokenizer)
        if is_gemma == self.lowers:
            return
        is_a = "is a SigLIP, because its tokenizer is not Gemma's"
        kind = "siglip"
        if is_gemma:
            is_a = "is a SigLIP 2, because its tokenizer is Gemma's"
            kind = "siglip2"
        raise InputError(
            f"{self.folder}: {is_a}; SigLIP 2 was trained on captions in lower case, so write {kind}:"
        )

    @classmethod
    def load(cls, place: str, usage: Usage) -> "TransformersEncoder":
        """Load a model, see `DualEncoder.load`."""
        return cls(transformers(place, cls.model_types), usage)

    def prepare(self, image: Image.Image) -> Pixels:
        """Prepare an image, see `DualEncoder.prepare`."""
        shown = base.middle(image) if self._reads_middle else image
        prepared = self.processor(images=shown, return_tensors="pt")
        return {name: values[0] for name, values in prepared.items()}

    def image_vectors(self, batch: Sequence[Pixels]) -> torch.Tensor:
        """The vectors of images, see `DualEncoder.image_vectors`."""
        stacked = {}
        for name in batch[0]:
            values = torch.stack([image[name] for image in batch])
            stacked[name] = values.to(self.usage.device)
        stacked["pixel_values"] = stacked["pixel_values"].to(PRECISIONS[self.usage.precision])
        return _pooled(self.network.get_image_features(**stacked))

    def caption_vectors(self, captions: Sequence[str]) -> torch.Tensor:
        """The vectors of captions, see `DualEncoder.caption_vectors`."""
        padding = "max_length" if self.pads_to_limit else "longest"
        tokens = self.tokenizer.pad(
            {"input_ids": self.tokens(captions)},
            max_length=self._padded,
            return_tensors="pt",
            padding=padding,
        )
        inputs = {"input_ids": tokens["input_ids"].to(self.usage.device)}
        if not self.pads_to_limit:
            inputs["attention_mask"] = tokens["attention_mask"].to(self.usage.device)
        return _pooled(self.network.get_text_features(**inputs))

    def tokens(self, captions: Sequence[str], whole: bool = False) -> list[list[int]]:
        """Convert captions to the numbers that are read, see `DualEncoder.tokens`."""
        texts = self.usage.read(captions)
        if self.lowers:
            texts = [text.lower() for text in texts]
        limit = None if whole else self.token_limit
        return pretrained.tokenized(self.tokenizer, texts, limit)

    def save(self, folder: Path) -> None:
        """Write a folder that `AutoModel` opens, see `DualEncoder.save`."""
        for part in (self.network, self.tokenizer, self.processor):
            part.save_pretrained(folder)


def used_as(place: Path, usage: Usage, processor: Any) -> Any:
    """An image processor with the settings of a usage."""
    changes: dict[str, Any] = {}
    if usage.interpolation != "own":
        changes["resample"] = Image.Resampling[usage.interpolation.upper()].value
    if usage.preprocessing == "squash":
        is_cropped = getattr(processor, "do_center_crop", None)
        size = processor.crop_size if is_cropped else processor.size
        sides = dict(size or {})
        if not {"height", "width"} <= sides.keys():
            raise InputError(
                f"{place}: has no single size to squash images to; use its own preprocessing"
            )
        changes["size"] = {"height": sides["height"], "width": sides["width"]}
        changes["do_center_crop"] = False
    if not changes:
        return processor
    return type(processor).from_dict(processor.to_dict() | changes)


def crops(processor: Any) -> bool:
    """Whether only the middle of a long image is read."""
    size = dict(processor.size or {})
    return bool(size.get("shortest_edge") and not size.get("longest_edge"))


def described(processor: Any) -> dict[str, Any]:
    """The settings of an image processor, of types that JSON can hold."""
    json_types = (bool, int, float, str, list, dict, type(None))
    settings: dict[str, Any] = {}
    for name, value in processor.to_dict().items():
        if isinstance(value, tuple):
            settings[name] = list(value)
        elif isinstance(value, json_types):
            settings[name] = value
    return settings


def _pooled(output: Any) -> torch.Tensor:
    """The vectors of what a network gives: a tensor, or an object with one."""
    return getattr(output, "pooler_output", output)


class Clip(TransformersEncoder):
    """A CLIP of `transformers` (Radford et al., ICML 2021), and models of other data in its
    architecture.

    These are OpenCLIP's and MetaCLIP's. Images are cropped to their centre, captions read up to 77
    tokens.
    """

    model_types = MODEL_TYPES["clip"]
    pads_to_limit = False


class Siglip(TransformersEncoder):
    """A SigLIP of `transformers` (Zhai et al., ICCV 2023): trained by a sigmoid for each pair.

    Images are squashed, captions padded to 64 tokens and read without a mask. Its bias and scale
    change no order. Its tokenizer needs the package sentencepiece, which the extra `encoders`
    brings.
    """

    model_types = MODEL_TYPES["siglip"]
    pads_to_limit = True


class Siglip2(TransformersEncoder):
    """A SigLIP 2 of `transformers`: captions in lower case, padded to 64 tokens and read without a
    mask.

    Checkpoints of fixed size have SigLIP's architecture and say `siglip` in their config.json.
    """

    model_types = MODEL_TYPES["siglip2"]
    pads_to_limit = True
    lowers = True


class VisionText(TransformersEncoder):
    """Any two towers of `transformers` with a projection each, its VisionTextDualEncoder: LiT's
    form, CLIP's loss.
    """

    model_types = MODEL_TYPES["vision_text"]
    pads_to_limit = False
