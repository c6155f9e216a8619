"""Make a head from a cross-encoder of the released code of OSCAR (microsoft/Oscar) or of
UKPLab/MMT-Retrieval.

OSCAR           a folder with pytorch_model.bin, names with `bert.`: pre-trained with `cls.`, which
is not read, or
                fine-tuned for retrieval with `classifier.`, of two labels or one
MMT-Retrieval   a folder or a zip with 0_OSCAR/pytorch_model.bin, names without `bert.`,
1_ClassificationHead/
                class_head.pt and, if it embeds too, 2_Pooling/
"""

import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.foundation.files import torch_save
from pipeline.foundation.files.digest import sha256
from pipeline.foundation.files.expansion import Expansion
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings import ArchitectureSettings, Recipe
from pipeline.make.training.artefact import Origin
from pipeline.make.training.released import fill, reading, state_dict, write
from pipeline.make.training.training_job import TrainingJob

NETWORK = "pytorch_model.bin"
HEAD = "class_head.pt"
POOLING = "Pooling"
# The heads of pre-training, and the position ids, 0, 1, 2 and so on.
UNUSED = ("cls.", "bert.embeddings.position_ids")
# The most that both read of an image and of a caption: `max_img_seq_length` and `max_seq_length`.
REGIONS = 50
PIECES = 70
LAYER = r"encoder\.layer\.\d+\."
KNOWN = re.compile(
    r"bert\.(?:embeddings\.(?:word_embeddings|position_embeddings|token_type_embeddings)\.weight"
    rf"|(?:embeddings\.LayerNorm|{LAYER}attention\.self\.(?:query|key|value)|{LAYER}attention\.output\.(?:dense|LayerNorm)"
    rf"|{LAYER}intermediate\.dense|{LAYER}output\.(?:dense|LayerNorm)|pooler\.dense|img_embedding|LayerNorm)"
    r"\.(?:weight|bias))|classifier\.(?:weight|bias)"
)


@dataclass(frozen=True)
class ReleasedCross:
    """A checkpoint of one of the two."""

    path: Path  # its folder or file
    state: Mapping[str, Tensor]  # name -> tensor, by the names of `CrossEncoder`
    embeds: bool  # whether it was also trained to embed images and captions separately
    sha256: str  # the digest of the network's file

    @property
    def layers(self) -> int:
        """How many layers it has."""
        return len({name.split(".")[3] for name in self.state if name.startswith("bert.encoder.")})

    @property
    def width(self) -> int:
        """The width of its items, with their boxes."""
        return self.state["bert.img_embedding.weight"].shape[1]

    @property
    def words(self) -> tuple[int, int]:
        """How many word pieces it knows, and its width."""
        pieces, hidden = self.state["bert.embeddings.word_embeddings.weight"].shape
        return pieces, hidden

    @property
    def tasks(self) -> list[str]:
        """What it was trained to do, as in a recipe; of a pre-trained one, which does neither,
        `emb`.
        """
        scores = "classifier.weight" in self.state
        if scores:
            return ["emb", "ce"] if self.embeds else ["ce"]
        return ["emb"]


def read(path: Path) -> ReleasedCross:
    """Read a checkpoint at a path: a folder, a zip, or the file pytorch_model.bin. Nothing in it is
    executed.

    Raises:
        InputError: If it is not such a checkpoint; the message names a weight that does not belong.
    """
    files = _files(path)
    network = _ending_with(files, NETWORK)
    if network is None and path.is_file() and path.name in files:
        network = path.name
    if network is None:
        raise InputError(
            f"{path}: holds no {NETWORK}; give the folder of a checkpoint of OSCAR or MMT-Retrieval"
        )
    state = _loaded(path, files[network])
    head = _ending_with(files, HEAD)
    if head is not None:
        for name, value in _loaded(path, files[head]).items():
            state[f"classifier.{name.removeprefix('classifier.')}"] = value
    state = _by_our_names(path, state)
    for name in ("bert.img_embedding.weight", "bert.embeddings.word_embeddings.weight"):
        if name not in state or state[name].dim() != 2:
            raise InputError(
                f"{path}: has no {name.removeprefix('bert.')}; it is no network of images and words"
            )
    _give_two_labels(state)
    embeds = any(f"{POOLING}/" in place for place in files)
    source = files[network]
    if not isinstance(source, Path):
        source = path
    return ReleasedCross(path, state, embeds, sha256(source))


def _ending_with(files: Mapping[str, object], ending: str) -> str | None:
    for place in sorted(files):
        if place.endswith(ending):
            return place
    return None


def _by_our_names(path: Path, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights by the names of `CrossEncoder`, in float32; InputError for one that does not
    belong.
    """
    has_prefix = any(name.startswith("bert.") for name in state)
    renamed = {}
    for name, value in state.items():
        if not has_prefix and not name.startswith(("classifier.", "cls.")):
            name = f"bert.{name}"
        if not name.startswith(UNUSED):
            renamed[name] = value.float()
    strange = sorted(name for name in renamed if not KNOWN.fullmatch(name))
    if strange:
        more = ""
        if len(strange) > 1:
            more = f", nor are {len(strange) - 1} more"
        raise InputError(f"{path}: {strange[0]} is not a weight of OSCAR's network{more}")
    return renamed


def _give_two_labels(state: dict[str, Tensor]) -> None:
    """Make two labels of one: 0 is the logit of a wrong pair."""
    weight = state.get("classifier.weight")
    if weight is None or weight.shape[:1] != (1,) or "classifier.bias" not in state:
        return
    for name in ("classifier.weight", "classifier.bias"):
        of_right = state[name]
        state[name] = torch.cat([torch.zeros_like(of_right), of_right])


def _files(path: Path) -> dict[str, Path | bytes]:
    """Place below the folder or in the zip -> file, or its bytes."""
    files: dict[str, Path | bytes] = {}
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                files[file.relative_to(path).as_posix()] = file
        return files
    if not path.is_file():
        raise InputError(f"{path}: no such file or folder")
    if path.suffix != ".zip":
        return {path.name: path}
    with (
        refusing(
            (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, MemoryError),
            f"{path}: not a zip file that can be read",
        ),
        zipfile.ZipFile(path) as archive,
    ):
        expansion = Expansion(path)
        for name in dict.fromkeys(archive.namelist()):
            files[name] = b""
            if name.endswith((NETWORK, HEAD)):
                expansion.take(archive.getinfo(name).file_size)
                files[name] = archive.read(name)
        return files


def _loaded(path: Path, file: Path | bytes) -> dict[str, Tensor]:
    with reading(path, "a state dict of tensors"):
        if isinstance(file, bytes):
            return state_dict(path, torch_save.load(path, file))
        return state_dict(path, torch_save.load(file))


def recipe_of(released: ReleasedCross, base: Recipe, boxes: bool) -> Recipe:
    """A published cross-encoder's recipe: its released layers and tasks, cut as there; all else is
    of `base`.

    boxes: whether its items come with boxes.
    """
    options: dict[str, Any] = {
        "layers": list(range(released.layers)),
        "regions": REGIONS,
        "pieces": PIECES,
    }
    if "bert.LayerNorm.weight" in released.state:
        options["image_norm"] = True
    if not boxes:
        options["boxes"] = False
    architecture = ArchitectureSettings(name="cross", **options)
    return base.model_copy(update={"architecture": architecture, "tasks": released.tasks})


def convert_cross(job: TrainingJob, released: ReleasedCross) -> None:
    """Write a cross-encoder's folder as training does, with the origin of its released weights.
    Nothing is trained.

    The words of the job are those of the BERT that `training.NAME.bert` names.

    Raises:
        InputError: If BERT, weights or features do not fit, or the folder holds another head that
            is to stay.
    """
    text = job.learn([])
    config = text.config  # type: ignore[attr-defined]
    known = (config.vocab_size, config.hidden_size)
    if known != released.words or config.num_hidden_layers < released.layers:
        pieces, hidden = released.words
        raise InputError(
            f"{released.path}: has {pieces} word pieces, a width of {hidden} and {released.layers} "
            f"layers, training.NAME.bert {config.vocab_size}, {config.hidden_size} and "
            f"{config.num_hidden_layers}; set it to the BERT that the checkpoint began with, such as "
            "bert-base-uncased"
        )
    if released.width != job.source.width:
        raise InputError(
            f"{released.path}: is for items of {released.width} values with their boxes, "
            f"{job.source.path} gives {job.source.width}; extract or import those that it was trained on"
        )
    job = replace(job, origin=Origin(file=released.path.name, sha256=released.sha256))
    model, missing, strange = fill(job, text, released.path, released.state, strict=False)
    new: tuple[str, ...] = ("classifier.", "bert.pooler.")
    if "ce" in released.tasks:
        new = ()
    lacking = [name for name in missing if not name.startswith(new)]
    if lacking:
        raise InputError(f"{released.path}: lacks {lacking[0]}")
    if strange:
        raise InputError(f"{released.path}: {strange[0]} has no place in such a head")
    write(job, text, model, 0)
