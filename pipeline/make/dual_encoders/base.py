"""What every class of dual encoder offers, how one is used, and what all libraries' networks
need.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from PIL import Image

from pipeline.foundation.compute.device import PRECISIONS, require
from pipeline.foundation.files.alignment import align
from pipeline.foundation.parts.errors import InputError, InputWarning, counted, first_line, refusing

Preprocessing: TypeAlias = Literal["own", "squash", "torchvision"]
Precision: TypeAlias = Literal["fp32", "bf16", "fp16"]
Interpolation: TypeAlias = Literal["own", "bilinear", "bicubic"]
# One prepared image: the network's inputs by name.
Pixels: TypeAlias = Mapping[str, torch.Tensor]
# The longest image, in shorter sides, that is resized whole by its shorter side: 13 MB at 224
# pixels.
LONGEST = 32
# GELU as it is defined (Hendrycks and Gimpel, 2016). QuickGELU, x σ(1.702 x), is near it but not
# the same.
EXACT = ("gelu", "gelutanh", "gelu_new", "gelu_pytorch_tanh")


@dataclass(frozen=True)
class Usage:
    """How an encoder is used. Vectors of different usages are not compared."""

    # What is read instead of a caption, which replaces {}; "own" for the prompt that it was
    # fine-tuned with, else {}.
    prompt: str = "own"
    # "own" for the model's own; "squash" resizes to the model's size without a crop; "torchvision"
    # is the model's own as `transformers` computes it by default, with other rounding.
    preprocessing: Preprocessing = "own"
    precision: Precision = "fp32"  # In which the encoder computes
    device: str = "cpu"
    interpolation: Interpolation = "own"  # By which images are resized
    # How many tokens of a caption are read at most, if fewer than the model's own limit.
    token_limit: int | None = None

    def __post_init__(self) -> None:
        if self.text.count("{}") != 1:
            raise InputError(
                f"prompt {self.prompt!r}: expected a text with one {{}}, where the caption goes"
            )
        _refuse_unknown(self.preprocessing, get_args(Preprocessing))
        _refuse_unknown(self.precision, get_args(Precision))
        _refuse_unknown(self.interpolation, get_args(Interpolation))
        if self.token_limit is not None and self.token_limit < 3:
            raise InputError(
                f"a token limit of {self.token_limit}: expected at least 3, with a beginning and an end"
            )

    @property
    def text(self) -> str:
        """The prompt's text."""
        return "{}" if self.prompt == "own" else self.prompt

    def read(self, captions: Sequence[str]) -> list[str]:
        """The captions, as in a manifest, in the prompt."""
        before, after = self.text.split("{}")
        return [f"{before}{caption}{after}" for caption in captions]

    @property
    def recorded(self) -> dict[str, Any]:
        """The parts on which vectors depend. The last two are left out where they have their
        defaults.
        """
        values: dict[str, Any] = {
            "prompt": self.text,
            "preprocessing": self.preprocessing,
            "precision": self.precision,
        }
        if self.interpolation != "own":
            values["interpolation"] = self.interpolation
        if self.token_limit is not None:
            values["token_limit"] = self.token_limit
        return values

    def limit(self, own: int) -> int:
        """The number of tokens that are read at most of a model with a limit of its own."""
        if self.token_limit and self.token_limit > own:
            warnings.warn(
                f"a token limit of {self.token_limit} changes nothing: the model reads {own} tokens at most",
                InputWarning,
                stacklevel=2,
            )
        return min(own, self.token_limit or own)


def _refuse_unknown(value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InputError(f"{value!r}: expected one of {', '.join(known)}")


class DualEncoder(ABC):
    """A pretrained network for images and one for captions, whose vectors are in one space."""

    usage: Usage  # how it is used
    files: Mapping[str, str]  # name -> SHA-256 of each file that it was read from
    preprocessing: Mapping[str, Any]  # what is done to an image, as the model's files say
    activation: Mapping[str, str]  # the activation function of each tower, "image" and "text"
    token_limit: int  # how many tokens of a caption it reads at most, with those that it adds
    facts: Mapping[str, Any] = MappingProxyType({})  # what else is recorded than its preprocessing
    weights_file: str | None  # SHA-256 of its weights, where they are one file
    trained_on: str | None = None  # the data set on which it was trained on here, see `tuning`
    # whether the vectors are [B, N, d], one a token, of which those of padding are zero
    per_token: bool = False
    library: str = ""  # whose format `save` writes, as `pipeline export --to` names it
    # the module of torch with both towers, on the usage's device, in its precision and evaluation
    # mode
    network: Any

    @classmethod
    @abstractmethod
    def load(cls, place: str, usage: Usage) -> "DualEncoder":
        """The encoder of a place (a folder or a name on the Hugging Face hub) for a usage.

        Raises:
            InputError: If it is missing, is not of this class, or this machine has no such device.
        """

    @abstractmethod
    def prepare(self, image: Image.Image) -> Pixels:
        """The network's inputs of an upright RGB image, without the batch's dimension; several
        threads call it.
        """

    @abstractmethod
    def image_vectors(self, batch: Sequence[Pixels]) -> torch.Tensor:
        """The vectors [B, d] of a batch of B prepared images, with gradients and of any length."""

    @abstractmethod
    def caption_vectors(self, captions: Sequence[str]) -> torch.Tensor:
        """The vectors [B, d] of B captions as in a manifest, each in the prompt, with gradients and
        of any length.
        """

    @torch.inference_mode()
    def embed_images(self, batch: Sequence[Pixels]) -> np.ndarray:
        """The unit vectors, float32 [B, d], of a batch of B prepared images."""
        return unit(self.image_vectors(batch))

    @torch.inference_mode()
    def embed_captions(self, captions: Sequence[str]) -> np.ndarray:
        """The unit vectors, float32 [B, d], of B captions as in a manifest, each in the prompt."""
        return unit(self.caption_vectors(captions))

    @abstractmethod
    def tokens(self, captions: Sequence[str], whole: bool = False) -> list[list[int]]:
        """The numbers that the encoder reads of B captions, in the prompt, cut at `token_limit`
        unless `whole`.

        Captions of equal numbers are the same to it.
        """

    def is_cut(self, captions: Sequence[str]) -> list[bool]:
        """Whether each of B captions, in its prompt, has more tokens than `token_limit`."""
        tokens = self.tokens(captions, whole=True)
        return [len(of_caption) > self.token_limit for of_caption in tokens]

    def notes_on_cut(self, cut: int, captions: int, where: str = "") -> list[str]:
        """The line that says how many of some captions are cut, if any are; where: " of val"."""
        if not cut:
            return []
        share = f"{cut / captions:.1%}".replace("%", " %")
        of_all = f"{cut:,} of {counted(captions, 'caption')}{where} ({share})"
        return [f"{of_all} are longer than {self.token_limit} tokens; their beginning is read"]

    def save(self, folder: Path) -> None:
        """Write the network as it is, with all that reads images and captions, into an empty
        folder.

        Raises:
            InputError: If the library's format cannot hold it.
        """
        raise InputError(f"{type(self).__name__} writes no folder for other libraries")


def read_folder(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """List a model's files."""
    files: set[Path] = set()
    for pattern in patterns:
        files.update(filter(Path.is_file, folder.glob(pattern)))
    return sorted(files)


def note_activation(
    folder: Path | str, activation: Mapping[str, str], projection: torch.Tensor, setting: str
) -> None:
    """Note weights that look like OpenAI's in a network whose activation is not theirs.

    OpenAI trained with QuickGELU and published in half precision, which their projection [w, d] of
    captions shows.
    setting: what sets QuickGELU.
    """
    exact = {name for name in activation.values() if name.lower() in EXACT}
    in_half = projection.half().to(projection.dtype)
    if exact and torch.equal(projection, in_half):
        names = " and ".join(sorted(exact))
        warnings.warn(
            f"{folder}: its weights are numbers of half precision, as OpenAI's are, and its configuration "
            f"says {names}; OpenAI's need QuickGELU, without which several "
            f"points are lost: if these are theirs, set {setting}",
            InputWarning,
            stacklevel=2,
        )


def placed(network: Any, usage: Usage) -> Any:
    """Move a network to its device, in its precision."""
    on_device = network.to(require(usage.device), PRECISIONS[usage.precision]).eval()
    align(on_device)
    return on_device


def try_out(place: str, encoder: DualEncoder) -> None:
    """Embed a grey image and a caption: a network that does not fit its preprocessing or tokenizer
    is found before the first photograph.
    """
    with refusing(
        (ValueError, KeyError, TypeError, RuntimeError, AttributeError),
        lambda error: (
            f"{place}: its "
            f"network does not take the images that its preprocessing prepares: {first_line(error)}"
        ),
    ):
        grey = Image.new("RGB", (64, 64), "grey")
        encoder.embed_images([encoder.prepare(grey)])
    with refusing(
        (ValueError, KeyError, TypeError, RuntimeError, AttributeError, IndexError),
        lambda error: (
            f"{place}: its network does not take the captions that its tokenizer reads: {first_line(error)}"
        ),
    ):
        encoder.embed_captions(["a photo of a dog"])


def middle(image: Image.Image) -> Image.Image:
    """Cut both ends off a very long image that is then resized by its shorter side and cropped to
    its middle.

    The crop reads the same pixels. Without this a PNG of 20,000 x 1 pixels, a file of 90 bytes,
    takes 10 GB.
    """
    longer = max(image.size)
    shorter = min(image.size)
    end = max(0, longer - LONGEST * shorter) // 2
    if end == 0:
        return image
    if image.width > image.height:
        return image.crop((end, 0, image.width - end, image.height))
    return image.crop((0, end, image.width, image.height - end))


def unit(vectors: torch.Tensor) -> np.ndarray:
    """Make unit vectors, float32 [B, d]."""
    if not torch.isfinite(vectors).all():
        precision = str(vectors.dtype).removeprefix("torch.")
        raise InputError(
            f"the encoder gives values that are not finite in {precision}; use --precision fp32, and if "
            "it does so there its weights are damaged"
        )
    unit = torch.nn.functional.normalize(vectors.float(), dim=-1)
    return unit.cpu().numpy()
