"""Models of the library OpenCLIP, also those with an image tower of timm: a folder, or a checkpoint
of its training.
"""

import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from PIL import Image
from safetensors.torch import save_file

from pipeline.extensions.open_clip import checkpoint, places
from pipeline.extensions.open_clip.places import CONFIG, PARAMS, WEIGHTS
from pipeline.foundation.compute.device import PRECISIONS
from pipeline.foundation.files import unfetched, weights
from pipeline.foundation.files.digest import of_files
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.files.pretrained import check_tokenizer, reading, tokenized
from pipeline.foundation.files.remembered import sha256_of_unchanged
from pipeline.foundation.parts.errors import InputError, InputWarning, refusing
from pipeline.make.dual_encoders import base
from pipeline.make.dual_encoders.base import DualEncoder, Pixels, Usage
from pipeline.make.dual_encoders.places import TEXT_FILES

# The same weights as files of torch, which are not read.
PICKLED = "open_clip_pytorch_model.bin"
# What a config may ask of its tokenizer. Others download something, or could run code of the
# folder.
TOKENIZER_OPTIONS = frozenset({"clean", "strip_sep_token"})


class OpenClip(DualEncoder):
    """A model in OpenCLIP's format, open_clip_config.json and open_clip_model.safetensors, or of a
    checkpoint.
    """

    library = places.PLACES.library

    def __init__(self, place: str, usage: Usage) -> None:
        self.usage = usage
        if usage.preprocessing == "torchvision":
            raise InputError(
                f"{place}: OpenCLIP has one own preprocessing, --preprocessing own; torchvision is for "
                "models of transformers"
            )
        library = reading(place, "network", lambda: import_module("open_clip"))
        if places.is_checkpoint(place):
            with TemporaryDirectory() as made:
                folder = Path(made)
                trained = checkpoint.read(place, library, folder)
                self.facts = trained.facts
                model = _checked(folder, place)
                network = self._read(place, library, folder)
                self._load(place, network, trained.files, trained.state)
            weights_file = Path(place.partition("#")[0]).name
            quick_gelu = f"force_quick_gelu: True in {PARAMS}"
        else:
            folder = Path(place)
            self.facts = {}
            model = _checked(folder, place)
            _require_weights(folder)
            network = self._read(place, library, folder)
            files = [*base.read_folder(folder, TEXT_FILES), folder / WEIGHTS]
            self._load(place, network, files, weights.read(folder / WEIGHTS))
            weights_file = WEIGHTS
            quick_gelu = f'"quick_gelu": true in model_cfg of {CONFIG}'
        self._padded = int(self.tokenizer.context_length)
        self.token_limit = usage.limit(self._padded)
        self.preprocessing = dict(network.visual.preprocess_cfg)
        self._reads_middle = (self.preprocessing.get("resize_mode") or "shortest") == "shortest"
        self.weights_file = self.files.get(weights_file)
        self.activation = {
            "image": _activation(network.visual),
            "text": _activation(getattr(network, "text", None) or network.transformer),
        }
        projection = getattr(getattr(network, "text", network), "text_projection", None)
        if isinstance(projection, torch.Tensor) and "quick_gelu" not in model:
            base.note_activation(place, self.activation, projection, quick_gelu)
        self.network = base.placed(network, usage)

    def _read(self, place: str, library: Any, folder: Path) -> Any:
        """The network of a configuration, with transform and tokenizer."""
        usage = self.usage
        # A tower of timm takes the size of images from here alone.
        flags: dict[str, Any] = {"force_image_size": self.facts.get("force_image_size")}
        if usage.preprocessing == "squash":
            flags["image_resize_mode"] = "squash"
        if usage.interpolation != "own":
            flags["image_interpolation"] = usage.interpolation
        network, self.transform = reading(
            place, "network", lambda: _network(library, f"local-dir:{folder}", **flags)
        )
        self.tokenizer = reading(
            place, "tokenizer", lambda: library.get_tokenizer(f"local-dir:{folder}")
        )
        if hasattr(self.tokenizer, "tokenizer"):  # one of `transformers`
            check_tokenizer(place, self.tokenizer.tokenizer, network.vocab_size)
        text_files = base.read_folder(folder, TEXT_FILES)
        self._saved = {file.name: file.read_bytes() for file in text_files}
        return network

    def _load(
        self, place: str, network: Any, files: list[Path], state: Mapping[str, torch.Tensor]
    ) -> None:
        """Fill the network, and note the digests of the files that are read."""
        digests = of_files(files, sha256_of_unchanged)
        self.files = {file.name: sha for file, sha in zip(files, digests, strict=True)}
        checkpoint.load(place, network, state)

    @classmethod
    def load(cls, place: str, usage: Usage) -> "OpenClip":
        """Load a model, see `DualEncoder.load`."""
        return cls(str(places.find(place)), usage)

    def prepare(self, image: Image.Image) -> Pixels:
        """Prepare an image, see `DualEncoder.prepare`."""
        shown = base.middle(image) if self._reads_middle else image
        return {"pixel_values": self.transform(shown)}

    def image_vectors(self, batch: Sequence[Pixels]) -> torch.Tensor:
        """The vectors of images, see `DualEncoder.image_vectors`."""
        pixels = torch.stack([image["pixel_values"] for image in batch])
        pixels = pixels.to(self.usage.device, PRECISIONS[self.usage.precision])
        return self.network.encode_image(pixels)

    def caption_vectors(self, captions: Sequence[str]) -> torch.Tensor:
        """The vectors of captions, see `DualEncoder.caption_vectors`."""
        return self.network.encode_text(self._tokens(captions).to(self.usage.device))

    def tokens(self, captions: Sequence[str], whole: bool = False) -> list[list[int]]:
        """Convert captions to the numbers that are read, padded, see `DualEncoder.tokens`."""
        if not whole:
            return list(self._tokens(captions).tolist())
        own = self.tokenizer
        texts = self.usage.read(captions)
        if not hasattr(own, "tokenizer"):
            return [[own.sot_token_id, *own.encode(text), own.eot_token_id] for text in texts]
        return tokenized(own.tokenizer, list(map(own.clean_fn, texts)))

    def _tokens(self, captions: Sequence[str]) -> torch.Tensor:
        tokens = self.tokenizer(self.usage.read(captions), context_length=self.token_limit)
        filler = getattr(getattr(self.tokenizer, "tokenizer", None), "pad_token_id", None) or 0
        return torch.nn.functional.pad(tokens, (0, self._padded - self.token_limit), value=filler)

    def save(self, folder: Path) -> None:
        """Write a folder that OpenCLIP opens as local-dir:FOLDER, see `DualEncoder.save`."""
        for name, content in self._saved.items():
            (folder / name).write_bytes(content)
        state = self.network.state_dict()
        save_file({name: value.contiguous() for name, value in state.items()}, folder / WEIGHTS)


def _require_weights(folder: Path) -> None:
    """Refuse a folder without the weights that are read, and say where it has others, too."""
    if not (folder / WEIGHTS).is_file():
        raise InputError(
            f"{folder / WEIGHTS}: is missing; OpenCLIP's weights are read as safetensors only"
        )
    if (folder / PICKLED).is_file() and not unfetched.named(folder / PICKLED):
        warnings.warn(
            f"{folder}: {WEIGHTS} is read, as the library does it, and not {PICKLED} beside it",
            InputWarning,
            stacklevel=3,
        )


def _network(library: Any, place: str, **flags: Any) -> tuple[Any, Any]:
    """A network, and its preprocessing."""
    network, _, transform = library.create_model_and_transforms(
        place, precision="fp32", device="cpu", load_weights=False, **flags
    )
    return network, transform


def _activation(tower: torch.nn.Module) -> str:
    """The activation function of a tower, that of its first block: "GELU" or "QuickGELU" of
    OpenCLIP's own.
    """
    blocks = (
        type(module).__name__
        for name, module in tower.named_modules()
        if name.endswith((".gelu", ".act"))
    )
    return next(blocks, "unknown")


def _checked(folder: Path, place: str) -> Mapping[str, Any]:
    """Refuse what would fetch files or run code besides those of the folder; the configuration of
    the network.
    """
    with refusing(
        (OSError, ValueError, KeyError, TypeError, AttributeError),
        f"{folder / CONFIG}: is not a configuration of OpenCLIP",
    ):
        model = from_json((folder / CONFIG).read_text())["model_cfg"]
        image = model["vision_cfg"]
        text = model["text_cfg"]
        odd = set(text.get("tokenizer_kwargs", {})) - TOKENIZER_OPTIONS
        tower = str(image.get("timm_model_name", ""))
        by_name = text.get("hf_model_name")
    if by_name:
        raise InputError(
            f"{place}: its text tower {str(by_name)!r} would be downloaded by name, which is refused; "
            "take a model whose folder holds all of it"
        )
    if odd or ":" in tower or text.get("tokenizer_mode"):
        asked = ", ".join(sorted(odd)) or tower or "a tokenizer_mode"
        raise InputError(
            f"{place}: its configuration asks for {asked}, which could fetch or run more than its files; "
            "take a model without it"
        )
    return dict(model)
