"""Network weights: a named checkpoint, a folder or file, or none (a seeded, untrained network).

Pickled code is never run: files are read as safetensors, or by torch with `weights_only`.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from pipeline.foundation.files import model_folder, not_weights, torch_save
from pipeline.foundation.files.digest import digest as total
from pipeline.foundation.files.parsing import from_yaml
from pipeline.foundation.files.remembered import sha256_of_unchanged
from pipeline.foundation.parts.errors import InputError, meant, refusing, similar

if TYPE_CHECKING:
    import torch

UNTRAINED = "untrained"
# The weights of a feature network that came with a head of VSE∞'s released code.
RELEASED = "vse_infty's release"
# The only files of a checkpoint that are read: no pickle, no code.
HUB_FILES = ["*.json", "*.txt", "*.model", "model*.safetensors"]
# Those of a folder on which features depend.
FOLDER_FILES = [*HUB_FILES, "pytorch_model*.bin", "*.npz"]
# How a checkpoint is read: only files of this machine, and without running or offering to run its
# code (`auto_map`).
LOCAL = {"local_files_only": True, "trust_remote_code": False}
# The file that describes a folder of torch's distributed checkpoints.
DISTRIBUTED = ".metadata"
# Where a torch file may have its state dict.
STATES = ("state_dict", "model_state_dict", "model")
# What torch.compile and wrappers of several processes put into names.
WRAPPERS = re.compile(r"(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
# The names of tensors that change other weights, by the parts that adapters of peft have.
UNMERGED = re.compile(r"\.(base_layer|(lora|ia3|hada|lokr|oft|boft|vera|randlora)_\w+)(\.|$)")
# The file of timm's weights whose digest a card has.
TIMM_FILE = "model.safetensors"
# How long the Hugging Face hub is waited for.
HUB_SECONDS = 5.0


class Checkpoint(BaseModel):
    """One entry of manifests/weights.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    title: str  # what it is
    package: str | None = None  # the Python package that contains it
    file: str | None = None  # its file: in the package, or below the working folder
    timm: str | None = None  # the name under which timm downloads it
    hub: str | None = None  # its name on the Hugging Face hub
    revision: str | None = Field(None, pattern="^[0-9a-f]{40}$")  # its commit on the hub, or timm's
    # how the names in its state dict are made, where they differ from the network's
    layout: str | None = None
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")  # the digest of its file
    unchecked: str | None = None  # why that is not known
    licence: str  # its licence
    trained_on: str  # the data it was trained on
    overlaps: str  # how these data overlap with test data
    get: str  # how to get it
    bibtex: str = Field(pattern=r"^@\w+\{\w+,\n(.|\n)*\}\}\n$")  # what to cite


@functools.cache
def checkpoints() -> Mapping[str, Checkpoint]:
    """Read manifests/weights.yaml: name -> checkpoint."""
    text = (resources.files("manifests") / "weights.yaml").read_text(encoding="utf-8")
    entries = {name: Checkpoint.model_validate(entry) for name, entry in from_yaml(text).items()}
    return MappingProxyType(entries)


def by_digest(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Name files and checkpoints' folders by their SHA-256: the options without paths, and option
    -> path.
    """
    # A name in manifests/weights.yaml stays a name, even if a file is called like it.
    names = {UNTRAINED, *checkpoints()}
    named = dict(options)
    place = {}
    for option, value in options.items():
        if not isinstance(value, str) or value in names:
            continue
        if Path(value).is_file() or is_checkpoint(value):
            place[option] = value
            named[option] = content(Path(value))
    return named, place


def is_checkpoint(place: str) -> bool:
    """Whether this is the folder of a checkpoint, of `transformers` or sentence-transformers, or of
    arrays.
    """
    folder = Path(place)
    if (folder / "config.json").is_file() or (folder / "modules.json").is_file():
        return True
    return any(folder.glob("*.npz"))


def content(path: Path) -> str:
    """SHA-256 of a file, or of those of a checkpoint's folder that are read."""
    if path.is_file():
        return sha256_of_unchanged(path)
    digests = {}
    for pattern in FOLDER_FILES:
        for file in (*path.glob(pattern), *path.glob(f"*/{pattern}")):
            digests[str(file.relative_to(path))] = sha256_of_unchanged(file)
    return total(digests)


def locate(name: str) -> tuple[Path, Checkpoint | None]:
    """Find a checkpoint's file and its entry by a name in manifests/weights.yaml, or by its path,
    without an entry.
    """
    known = checkpoints().get(name)
    if known is None:
        path = Path(name)
        if path.is_dir():
            meant_folder = model_folder.snapshot(path)
            if meant_folder != path:
                raise InputError(
                    f"weights {name!r}: is a folder of the hub's cache; name {meant_folder}"
                )
            raise InputError(f"weights {name!r}: is a folder; name the file of weights in it")
        if not path.is_file():
            hint = similar(path)
            if not hint and {"/", "."} & {*name}:
                hint = (
                    "; no other weights are downloaded: get them from their page, and name their "
                    "file or folder"
                )
            elif not hint:
                hint = f"; {meant(name, [*checkpoints(), UNTRAINED])}"
            raise InputError(
                f"weights {name!r}: neither a file, a folder of a model nor a name of "
                f"manifests/weights.yaml{hint}"
            )
        return path, None
    path = _file(known)
    if not path.is_file():
        raise missing(name, known)
    _compare(name, known, path)
    return path, known


def _compare(name: str, known: Checkpoint, path: Path) -> None:
    if known.sha256 and sha256_of_unchanged(path) != known.sha256:
        raise InputError(
            f"weights {name!r}: {path} has another sha256 than {known.sha256}; remove it and get "
            f"it again: {known.get}"
        )


def require(name: str) -> None:
    """Check that a checkpoint is on this machine or can be downloaded, without loading it."""
    known = checkpoints().get(name)
    if known is None and is_checkpoint(name):
        model_folder.check(Path(name))
        return
    if known is None or _file(known).is_file():
        locate(name)
    elif not (known.timm and _on_hub(known)):
        raise missing(name, known, short=True)


def from_timm(name: str, known: Checkpoint) -> dict[str, Any]:
    """What `timm.create_model` takes for a checkpoint that it has: the checked file, or else timm
    downloads it.
    """
    options = {"pretrained": True, "num_classes": 0}
    if known.sha256 is None:
        return options
    from huggingface_hub import hf_hub_download

    with refusing(
        Exception, lambda error: str(missing(name, known))
    ):  # its client raises many kinds
        if not _file(known).is_file() and _on_hub(known):
            hf_hub_download(f"timm/{known.timm}", TIMM_FILE, revision=known.revision)
    return {**options, "pretrained_cfg_overlay": {"file": str(locate(name)[0])}}


def _on_hub(known: Checkpoint) -> bool:
    """Whether the Hugging Face hub answers that it has timm's weights, or its cache has them, of an
    unchecked card.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache

    repository = f"timm/{known.timm}"
    if known.sha256 is None:
        for file in (TIMM_FILE, "pytorch_model.bin"):
            if isinstance(try_to_load_from_cache(repository, file), str):
                return True
    address = hf_hub_url(repository, TIMM_FILE, revision=known.revision)
    try:
        get_hf_file_metadata(address, timeout=HUB_SECONDS)
    except Exception:  # offline, refused, or not there: the libraries below raise what they like
        return False
    return True


def missing(name: str, known: Checkpoint, short: bool = False) -> InputError:
    """The error for a checkpoint that is not on this machine, with how to get it; `short`: without
    licence and data.
    """
    about = known.title
    if not short:
        about += (
            f"; licence {known.licence}; trained on {known.trained_on}; overlap with test data: "
            f"{known.overlaps}"
        )
        if known.unchecked:
            about += f"; not checked: {known.unchecked}"
    return InputError(f"weights {name!r} ({about}) are not here. To get them: {known.get}")


def local(checkpoint: str, what: str, advice: str) -> Path | None:
    """The folder of a checkpoint, None for a name on the hub; InputError if it is a file, or a path
    to nothing.

    what, advice: for messages, what it is and where a user can name a folder.
    """
    path = Path(checkpoint)
    if path.is_dir():
        return model_folder.snapshot(path)
    if path.is_file():
        other = not_weights.named(path)
        if other:
            raise InputError(f"{what} {checkpoint}: is {other}")
        folder = path.absolute().parent
        if model_folder.is_model(folder):
            advice = f"name its folder, {folder}"
        raise InputError(f"{what} {checkpoint}: is a file; {advice}")
    if Path(checkpoint).is_absolute() or checkpoint.startswith(".") or checkpoint.count("/") > 1:
        raise InputError(f"{what} {checkpoint}: there is no such folder; {advice}")
    return None


def folder(
    checkpoint: str, what: str, advice: str, files: Sequence[str] = HUB_FILES, instead: str = ""
) -> Path:
    """Find or download a checkpoint's files: a folder, or a name on the hub at the revision in
    manifests/weights.yaml.

    what, advice: as for `local`. files: patterns of what is fetched. instead: pattern of the
        weights where the hub has none as safetensors. Digests are compared with the card's.
    """
    here = local(checkpoint, what, advice)
    if here:
        return here
    name = checkpoint.removeprefix("google-bert/")
    known = next((card for card in checkpoints().values() if card.hub == name), None)
    if known is None:
        return _downloaded(checkpoint, None, what, advice, files, instead)
    here = _downloaded(checkpoint, known.revision, what, advice, files, instead)
    weights = sorted(here.glob(HUB_FILES[-1]))
    if not weights and instead:
        weights = sorted(here.glob(instead))
    for path in weights:
        _compare(checkpoint, known, path)
    return here


def _downloaded(
    checkpoint: str,
    revision: str | None,
    what: str,
    advice: str,
    files: Sequence[str],
    instead: str,
) -> Path:
    from huggingface_hub import HfApi, snapshot_download

    def fetched(*more: str, local: bool = False) -> Path:
        folder = snapshot_download(
            checkpoint,
            revision=revision,
            allow_patterns=[*files, *more],
            local_files_only=local,
        )
        return Path(folder)

    def lacks_weights(here: Path) -> bool:
        if not instead or any(here.glob(HUB_FILES[-1])):
            return False
        return not any(here.glob(instead))

    def why(error: Exception) -> str:
        download = f"hf download {checkpoint}"
        if revision:
            download += f" --revision {revision}"
        return (
            f"{what} {checkpoint!r} is not a folder and cannot be downloaded from the Hugging Face "
            f"hub ({type(error).__name__}); on a machine with a network `{download}`, and {advice}"
            f"{similar(Path(checkpoint))}"
        )

    with suppress(OSError, ValueError):  # not a name, or never fetched
        here = fetched(local=True)
        if not lacks_weights(here):
            return here
    with refusing(Exception, why):  # its client raises many kinds
        # Fails at once without a network; a download tries for a minute.
        HfApi().model_info(checkpoint, timeout=10)
        if lacks_weights(fetched()):
            return fetched(instead)
        return fetched(local=True)


def _file(known: Checkpoint) -> Path:
    """Where its file should be. Of those that timm downloads only a checked one is looked for, in
    the cache.
    """
    if known.timm and known.sha256:
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(f"timm/{known.timm}", TIMM_FILE, revision=known.revision)
        return Path(cached if isinstance(cached, str) else "")
    if known.package is None:
        return Path(known.file or "")
    package = importlib.util.find_spec(known.package)
    if package is None or not package.submodule_search_locations:
        return Path()
    return Path(package.submodule_search_locations[0], known.file or "")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say what a file of weights is that a reader refuses, which may raise anything."""

    def why(error: Exception) -> str:
        what = not_weights.named(path)
        if what:
            return f"{path}: is {what}"
        named = re.search(r"Unsupported global: GLOBAL (\S+)", str(error))
        held = ""
        if named:
            held = f": it holds {named[1]}"
        return (
            f"{path}: not readable as weights ({type(error).__name__}{held}); "
            "expected safetensors or a torch state dict"
        )

    with refusing(Exception, why):
        yield


def read_tree(path: Path) -> Any:
    """Read a .safetensors file, or a torch file of tensors in plain containers; InputError if it is
    neither.
    """
    # What is not used of a large torch file, such as an optimizer's state, is not read into memory.
    if path.suffix != ".safetensors":
        what = ""
        if path.is_file():
            what = not_weights.named(path)
        if what:
            raise InputError(f"{path}: is {what}")
        return torch_save.load(path)
    from safetensors.torch import load_file

    with readable(path):
        return load_file(path)


def read(path: Path) -> dict[str, torch.Tensor]:
    """Read a state dict, also one below a key of `STATES`, from a file as for `read_tree`."""
    state = read_tree(path)
    for key in STATES:
        if isinstance(state, Mapping) and isinstance(state.get(key), Mapping):
            state = state[key]
    return state_dict(state, path)


def state_dict(state: Any, path: Path) -> dict[str, torch.Tensor]:
    """Check that what a file holds is a state dict of dense tensors of real numbers; InputError if
    it is not.

    What torch.compile and the wrappers of several processes put before all names is left out.
    """
    import torch

    if not isinstance(state, Mapping):
        raise InputError(f"{path}: expected a state dict of tensors")
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise InputError(f"{path}: expected a state dict of tensors")
    # Torch would drop imaginary parts, and fail to copy the others.
    for name, value in state.items():
        is_dense = value.layout == torch.strided and not value.is_quantized
        if not is_dense or value.is_complex() or value.is_meta:
            kind = f"{value.dtype}, {value.layout}".replace("torch.", "")
            if value.is_meta:
                kind = "one without values"
            raise InputError(
                f"{path}: {name!a}: expected a dense tensor of real numbers, got {kind}"
            )
    dtypes = {name: str(value.dtype) for name, value in state.items()}
    refuse_stored(path, dtypes)
    return {now: state[name] for name, now in unwrapped(state).items()}


def unwrapped(names: Iterable[str]) -> dict[str, str]:
    """The names of a state dict's tensors -> those without what wrappers put before all of them."""
    inner = {name: WRAPPERS.sub("", name) for name in names}
    wrapped = "module." if all(name.startswith("module.") for name in inner.values()) else ""
    return {name: now.removeprefix(wrapped) for name, now in inner.items()}


def prefix_of(names: Iterable[str], name: str) -> str:
    """What a wrapper of no known kind put before all of some names, one of which ends with a name;
    "" for nothing.
    """
    given = list(names)
    if not any(whole.endswith(f".{name}") for whole in given):
        return ""
    prefix = ""
    rest = given[0]
    while "." in rest:
        part, _, rest = rest.partition(".")
        longer = f"{prefix}{part}."
        if not all(whole.startswith(longer) for whole in given):
            break
        prefix = longer
    return prefix


def refuse_stored(path: Path, kinds: Mapping[str, str]) -> None:
    """Refuse tensors that are not a network's weights as they are stored.

    kinds: a tensor's name -> the kind of its numbers, by torch (float8_e5m2, int8) or safetensors
        (F8_E5M2, I8).
    """
    for name, kind in kinds.items():
        if UNMERGED.search(name):
            raise InputError(
                f"{path}: holds an adapter beside the weights that it changes ({name!a}); merge it by peft's "
                "merge_and_unload(), and save that"
            )
        number = kind.removeprefix("torch.").lower()
        scaled = number.startswith(("float8", "float4", "f8", "f4", "f6"))
        if scaled or (name.endswith("weight") and number.startswith(("i", "u"))):
            raise InputError(
                f"{path}: {name!a} is stored as {number}, whose numbers are weights only with scales; take the "
                "model in float32, float16 or bfloat16"
            )


def digest(module: torch.nn.Module) -> str:
    """SHA-256 of a network's tensors with their names and shapes, the same wherever the weights
    came from.
    """
    import torch

    total = hashlib.sha256()
    for name, value in module.state_dict().items():
        total.update(f"{name} {tuple(value.shape)} {value.dtype}\n".encode())
        flat = value.detach().cpu().contiguous().flatten()
        total.update(flat.view(torch.uint8).numpy().tobytes())
    return total.hexdigest()
