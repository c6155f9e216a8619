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

import torch
from torch import Tensor

from pipeline.files import torch_save
from pipeline.files.digest import sha256
from pipeline.files.expansion import Expansion
from pipeline.parts.errors import InputError, refusing
from pipeline.settings import ArchitectureSettings, Recipe
from pipeline.training.artefact import Origin
from pipeline.training.released import fill, reading, state_dict, write
from pipeline.training.training_job import TrainingJob

NETWORK, HEAD, POOLING = "pytorch_model.bin", "class_head.pt", "Pooling"
# The heads of pre-training, and the position ids, 0, 1, 2 and so on.
UNUSED = ("cls.", "bert.embeddings.position_ids")
# The most that both read of an image and of a caption: `max_img_seq_length` and `max_seq_length`.
REGIONS, PIECES = 50, 70
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
    file_of = {
        name: next((place for place in sorted(files) if place.endswith(name)), None)
        for name in (NETWORK, HEAD)
    }
    network = file_of[NETWORK] or (path.name if path.is_file() and path.name in files else None)
    if network is None:
        raise InputError(
            f"{path}: holds no {NETWORK}; give the folder of a checkpoint of OSCAR or MMT-Retrieval"
        )
    state = _loaded(path, files[network])
    if (head := file_of[HEAD]) is not None:
        state |= {
            f"classifier.{name.removeprefix('classifier.')}": value
            for name, value in _loaded(path, files[head]).items()
        }
    bare = not any(name.startswith("bert.") for name in state)
    state = {
        name if not bare or name.startswith(("classifier.", "cls.")) else f"bert.{name}": value
        for name, value in state.items()
    }
    state = {name: value.float() for name, value in state.items() if not name.startswith(UNUSED)}
    if strange := sorted(name for name in state if not KNOWN.fullmatch(name)):
        raise InputError(
            f"{path}: {strange[0]} is not a weight of OSCAR's network"
            + (f", nor are {len(strange) - 1} more" if len(strange) > 1 else "")
        )
    for name in ("bert.img_embedding.weight", "bert.embeddings.word_embeddings.weight"):
        if state.get(name, torch.empty(0)).dim() != 2:
            raise InputError(
                f"{path}: has no {name.removeprefix('bert.')}; it is no network of images and words"
            )
    if (
        state.get("classifier.weight", torch.empty(0)).shape[:1] == (1,)
        and "classifier.bias" in state
    ):
        for name in (
            "classifier.weight",
            "classifier.bias",
        ):  # make two labels of one: 0 is the logit of a wrong pair
            state[name] = torch.cat([torch.zeros_like(state[name]), state[name]])
    embeds = any(f"{POOLING}/" in place for place in files)
    source = files[network]
    return ReleasedCross(
        path, state, embeds, sha256(source) if isinstance(source, Path) else sha256(path)
    )


def _files(path: Path) -> dict[str, Path | bytes]:
    """Place below the folder or in the zip -> file, or its bytes."""
    if path.is_dir():
        return {
            file.relative_to(path).as_posix(): file
            for file in sorted(path.rglob("*"))
            if file.is_file()
        }
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
        files: dict[str, Path | bytes] = dict.fromkeys(archive.namelist(), b"")
        for name in files:
            if name.endswith((NETWORK, HEAD)):
                expansion.take(archive.getinfo(name).file_size)
                files[name] = archive.read(name)
        return files


def _loaded(path: Path, file: Path | bytes) -> dict[str, Tensor]:
    with reading(path, "a state dict of tensors"):
        tree = torch_save.load(path, file) if isinstance(file, bytes) else torch_save.load(file)
        return state_dict(path, tree)


def recipe_of(released: ReleasedCross, base: Recipe, boxes: bool) -> Recipe:
    """A published cross-encoder's recipe: its released layers and tasks, cut as there; all else is
    of `base`.

    boxes: whether its items come with boxes.
    """
    norm = {"image_norm": True} if "bert.LayerNorm.weight" in released.state else {}
    options = {
        "layers": list(range(released.layers)),
        "regions": REGIONS,
        "pieces": PIECES,
        **norm,
        **({} if boxes else {"boxes": False}),
    }
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
    if (
        config.vocab_size,
        config.hidden_size,
    ) != released.words or config.num_hidden_layers < released.layers:
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
    new = () if "ce" in released.tasks else ("classifier.", "bert.pooler.")
    if lacking := [name for name in missing if not name.startswith(new)]:
        raise InputError(f"{released.path}: lacks {lacking[0]}")
    if strange:
        raise InputError(f"{released.path}: {strange[0]} has no place in such a head")
    write(job, text, model, 0)
