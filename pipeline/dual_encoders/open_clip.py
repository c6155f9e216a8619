"""Models of the library OpenCLIP, also those with an image tower of timm, read from a folder."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from pipeline.compute.device import PRECISIONS
from pipeline.dual_encoders.base import (
    TEXT_FILES,
    DualEncoder,
    Pixels,
    Usage,
    middle,
    note_activation,
    placed,
    read_folder,
    reading,
)
from pipeline.files import weights
from pipeline.files.digest import of_files
from pipeline.files.parsing import from_json
from pipeline.files.remembered import in_process
from pipeline.parts.errors import InputError, refusing

CONFIG = "open_clip_config.json"
WEIGHTS = "open_clip_model.safetensors"
ADVICE = (f"name the folder with {CONFIG} and {WEIGHTS}; of a checkpoint of OpenCLIP's training docs/clip.md has the "
          "lines that write it")
# What a config may ask of its tokenizer. Others download something, or could run code of the folder.
TOKENIZER_OPTIONS = frozenset({"clean", "strip_sep_token"})


class OpenClip(DualEncoder):
    """A model in OpenCLIP's format: open_clip_config.json and open_clip_model.safetensors."""

    def __init__(self, folder: Path, usage: Usage) -> None:
        self.folder, self.usage = folder, usage
        if usage.preprocessing == "torchvision":
            raise InputError(f"{folder}: OpenCLIP has one own preprocessing, --preprocessing own; torchvision is for "
                             "models of transformers")
        says_which = "quick_gelu" in _checked(folder)
        tensors = folder / WEIGHTS
        if not tensors.is_file():
            raise InputError(f"{tensors}: is missing; OpenCLIP's weights are read as safetensors only")
        squash = {"image_resize_mode": "squash"} if usage.preprocessing == "squash" else {}
        library = reading(folder, "network", lambda: import_module("open_clip"))
        place = f"local-dir:{folder}"
        network, self.transform = reading(folder, "network", lambda: library.create_model_from_pretrained(
            place, precision="fp32", device="cpu", weights_only=True, **squash))
        self.tokenizer = reading(folder, "tokenizer", lambda: library.get_tokenizer(place))
        self.token_limit = int(self.tokenizer.context_length)
        self.preprocessing: Mapping[str, Any] = dict(network.visual.preprocess_cfg) | squash
        self._reads_middle = (self.preprocessing.get("resize_mode") or "shortest") == "shortest"
        used = [*read_folder(folder, TEXT_FILES), tensors]
        self.files: Mapping[str, str] = {
            file.name: found for file, found in zip(used, of_files(used, in_process), strict=True)}
        self.weights_file = self.files[WEIGHTS]
        self.activation: Mapping[str, str] = {"image": _activation(network.visual), "text": _activation(
            getattr(network, "text", None) or network.transformer)}
        projection = getattr(getattr(network, "text", network), "text_projection", None)
        if isinstance(projection, torch.Tensor) and not says_which:
            note_activation(folder, self.activation, projection, f'"quick_gelu": true in model_cfg of {CONFIG}')
        self.network = placed(network, usage)

    @classmethod
    def load(cls, place: str, usage: Usage) -> "OpenClip":
        """Load a model, see `DualEncoder.load`."""
        return cls(weights.folder(place, "model", ADVICE, [*TEXT_FILES, WEIGHTS]), usage)

    def prepare(self, image: Image.Image) -> Pixels:
        """Prepare an image, see `DualEncoder.prepare`."""
        return {"pixel_values": self.transform(middle(image) if self._reads_middle else image)}

    def image_vectors(self, batch: Sequence[Pixels]) -> torch.Tensor:
        """The vectors of images, see `DualEncoder.image_vectors`."""
        pixels = torch.stack([each["pixel_values"] for each in batch])
        return self.network.encode_image(pixels.to(self.usage.device, PRECISIONS[self.usage.precision]))

    def caption_vectors(self, captions: Sequence[str]) -> torch.Tensor:
        """The vectors of captions, see `DualEncoder.caption_vectors`."""
        return self.network.encode_text(self._tokens(captions).to(self.usage.device))

    def tokens(self, captions: Sequence[str]) -> list[list[int]]:
        """Convert captions to the numbers that are read, padded, see `DualEncoder.tokens`."""
        return list(self._tokens(captions).tolist())

    def _tokens(self, captions: Sequence[str]) -> torch.Tensor:
        return self.tokenizer(self.usage.read(captions))

    def is_cut(self, captions: Sequence[str]) -> list[bool]:
        """Find captions that are longer than the limit, see `DualEncoder.is_cut`."""
        tokenizer, read = getattr(self.tokenizer, "tokenizer", None), self.usage.read(captions)
        if tokenizer is None:  # a beginning and an end are added
            return [len(self.tokenizer.encode(text)) + 2 > self.token_limit for text in read]
        tokens = tokenizer([*map(self.tokenizer.clean_fn, read)], truncation=False, verbose=False)["input_ids"]
        return [len(each) > self.token_limit for each in tokens]


def _activation(tower: torch.nn.Module) -> str:
    """The activation function of a tower, that of its first block: "GELU" or "QuickGELU" of OpenCLIP's own."""
    blocks = (type(module).__name__ for name, module in tower.named_modules() if name.endswith((".gelu", ".act")))
    return next(blocks, "unknown")


def _checked(folder: Path) -> Mapping[str, Any]:
    """Refuse what would fetch files or run code besides those of the folder; the configuration of the network."""
    with (refusing((OSError, ValueError, KeyError, TypeError, AttributeError), f"{folder / CONFIG}: is not a "
                   "configuration of OpenCLIP"),
          refusing(FileNotFoundError, f"{folder}: has no {CONFIG}; expected a model of OpenCLIP, or use clip: or "
                   "siglip:")):
        model = from_json((folder / CONFIG).read_text())["model_cfg"]
        image, text = model["vision_cfg"], model["text_cfg"]
        odd = {*text.get("tokenizer_kwargs", {})} - TOKENIZER_OPTIONS
        tower = str(image.get("timm_model_name", ""))
        by_name = text.get("hf_model_name")
    if by_name:
        raise InputError(f"{folder}: its text tower {str(by_name)!r} would be downloaded by name, which is refused; "
                         "take a model whose folder holds all of it")
    if odd or ":" in tower or text.get("tokenizer_mode"):
        raise InputError(f"{folder / CONFIG}: asks for {', '.join(sorted(odd)) or tower or 'a tokenizer_mode'}, which "
                         "could fetch or run more than the folder's files; take a model without it")
    return dict(model)
