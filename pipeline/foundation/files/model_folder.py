"""What a folder of `transformers` or sentence-transformers holds, found out before a library opens
it: those take one of two sets of weights, or an adapter, without a word.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline.foundation.files import parsing, regular, unfetched
from pipeline.foundation.parts import extension
from pipeline.foundation.parts.errors import InputError, counted

# The weights that are read, in the library's order: the first of these that is there.
WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
INDEX = ".index.json"
# What describes a model, its tokenizer and its preprocessing.
SETTINGS = ("*.json", "*.txt", "*.model")
# Weights that other programs read, or wrote on the way.
OTHERS = (
    "*.bin",
    "*.safetensors",
    "*.pt",
    "*.pth",
    "*.ckpt",
    "*.h5",
    "*.msgpack",
    "*.gguf",
    "*.onnx",
)
# The files that say how a model's images are prepared; one of them is enough.
PREPROCESSING = ("preprocessor_config.json", "processor_config.json")
CONFIG = "config.json"
MODULES = "modules.json"
ADAPTER = "adapter_config.json"
# The files by which the folder of a model is known; extensions add those of theirs.
MARKS = (CONFIG, MODULES)


def check(folder: Path) -> None:
    """Refuse a folder whose files were not fetched, or would be read as another model than it
    seems.
    """
    for part in parts(folder):
        refuse_unfetched_settings(part)
        _refuse_adapter(part)
        _refuse_settings(part)
        weights_of(part)


def refuse_unfetched_settings(folder: Path) -> None:
    """Refuse a folder whose configuration, tokenizer or preprocessing were not fetched."""
    settings = (file for pattern in SETTINGS for file in folder.glob(pattern))
    unfetched.refuse(file for file in settings if not file.is_dir())


def parts(folder: Path) -> Iterator[Path]:
    """Walk the folders that a model is read from: its own, and those of modules of
    sentence-transformers.
    """
    yield folder
    for module in _read(folder / MODULES, []):
        path = None
        if isinstance(module, dict):
            path = module.get("path")
        if isinstance(path, str) and path and (folder / path).is_dir():
            yield folder / path


def weights_of(folder: Path, pickled: bool = True) -> list[Path]:
    """The files of weights that the library reads of a folder, by its own order; none where it
    finds none.

    pickled: whether it reads those of torch, too.

    Raises:
        InputError: If the folder holds two sets of them, or not all of one.
    """
    names = WEIGHTS if pickled else WEIGHTS[:2]
    held = [name for name in names if os.path.lexists(folder / name)]
    if any(folder.glob("shard-*-model-*-of-*.safetensors")):
        raise InputError(
            f"{folder}: holds shards of a training on several machines, which would be read before all else; "
            "save the whole model with save_pretrained()"
        )
    if not held:
        return []
    first = held[0]
    whole = first.removesuffix(INDEX)
    if {whole, whole + INDEX} <= {*held}:
        raise InputError(
            f"{folder}: holds two sets of weights, {whole} and the shards of {whole}{INDEX}; remove the one "
            "that is not this model's"
        )
    files = [folder / first]
    if first != whole:
        files = _shards(folder / first)
    stem, _, ending = whole.rpartition(".")
    shards = {file.name for file in folder.glob(f"{stem}-*-of-*.{ending}")}
    others = sorted(shards - {file.name for file in files})
    if others:
        raise InputError(
            f"{folder}: holds two sets of weights, {first} and {others[0]}, which that does not name; remove "
            "the one that is not this model's"
        )
    unfetched.refuse(files)
    return files


def unread(folder: Path, read: list[Path]) -> list[str]:
    """List weights of the library's own names that it does not read, because it reads others."""
    patterns = ("model*.safetensors", "pytorch_model*.bin")
    found = {file for pattern in patterns for file in folder.glob(pattern)} - {*read}
    return sorted(file.name for file in found if not unfetched.named(file))


def without_weights(folder: Path, pickled: bool) -> InputError:
    """The error for a folder without weights that are read; pickled: see `weights_of`."""
    names = " or ".join(WEIGHTS[: 3 if pickled else 1 : 2])
    others = sorted({file.name for pattern in OTHERS for file in folder.glob(pattern)})
    if any(file.startswith("model-") and file.endswith(".safetensors") for file in others):
        return InputError(
            f"{folder}: holds shards without model.safetensors.index.json, which names them; copy the whole "
            "folder again"
        )
    held = f"; it holds {', '.join(others[:3])}, which is not read: " if others else "; "
    return InputError(
        f"{folder}: holds no {names}{held}save it with save_pretrained(), or copy it whole"
    )


def require_preprocessing(folder: Path) -> None:
    """Refuse a folder that does not say how images are prepared."""
    if not any((folder / file).is_file() for file in PREPROCESSING):
        raise InputError(
            f"{folder}: has no {PREPROCESSING[0]}, which says how images are prepared; copy it from the model "
            "that this one was trained from"
        )


def _marks() -> tuple[str, ...]:
    return (*MARKS, *extension.marks())


def is_model(folder: Path) -> bool:
    """Whether a folder is that of a model, by what describes it."""
    return any((folder / mark).is_file() for mark in _marks())


def snapshot(folder: Path) -> Path:
    """The folder of a model that was meant by a folder of the hub's cache; any other folder as it
    is.
    """
    inner = folder
    if folder.name != "snapshots":
        inner = folder / "snapshots"
    if not inner.is_dir() or is_model(folder):
        return folder
    found = sorted(each for each in inner.iterdir() if each.is_dir())
    with suppress(OSError, ValueError):
        main = regular.text(inner.parent / "refs" / "main").strip()
        found = [each for each in found if each.name == main] or found
    if len(found) == 1:
        return found[0]
    raise InputError(
        f"{folder}: is a folder of the hub's cache with {counted(len(found), 'snapshot')} of a model; name "
        f"one of them{', such as ' + str(found[0]) if found else ''}"
    )


def instead(folder: Path) -> str:
    """The end of a message on a folder that holds no model: what it is, or which folder in it may
    be meant.
    """
    if not any(folder.iterdir()):
        return "; the folder is empty"
    nested = sorted(
        {file.parent for mark in _marks() for file in folder.glob(f"*/{mark}") if file.is_file()}
    )
    cached = sorted(folder.glob("models--*/snapshots"))
    inner = nested[-1] if nested else next((each.parent for each in cached), None)
    return f"; did you mean {inner}?" if inner else ""


def _shards(index: Path) -> list[Path]:
    """The files that an index names."""
    unfetched.refuse([index])
    named = _read(index, {}).get("weight_map")
    names = {*named.values()} if isinstance(named, dict) else set()
    if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise InputError(
            f"{index}: names no files of weights beside it; copy the whole folder again"
        )
    return [index.parent / name for name in sorted(names)]


def _refuse_adapter(folder: Path) -> None:
    """Refuse an adapter of peft, which the library would put into the weights or look up its base
    for.
    """
    if (folder / ADAPTER).exists():
        said = _read(folder / ADAPTER, {})
        kind = {"LORA": "LoRA"}.get(str(said.get("peft_type")), str(said.get("peft_type")))
        base = said.get("base_model_name_or_path")
        raise InputError(
            f"{folder}: holds a {kind} adapter of {base}, which is not merged; merge it by peft's "
            "merge_and_unload() and save that model into a folder of its own, or train one by `pipeline "
            "finetune`, which tuned: reads"
        )
    others = sorted(file.name for file in folder.glob("adapter_model.*"))
    if others:
        raise InputError(
            f"{folder}: holds {others[0]}, an adapter that is not merged; remove it where the model is meant "
            "without it"
        )


def _refuse_settings(folder: Path) -> None:
    """Refuse a config.json by which the library reads other numbers than the folder's weights."""
    config = _read(folder / CONFIG, {})
    quantised = config.get("quantization_config")
    if quantised:
        method = quantised
        if isinstance(quantised, dict):
            method = quantised.get("quant_method")
        raise InputError(
            f"{folder}: its config.json says that its weights are quantised ({method}); take the model in "
            "float32, float16 or bfloat16"
        )
    file = config.get("transformers_weights")
    if file:
        raise InputError(
            f"{folder}: its config.json names other weights, {file} (transformers_weights); save the model "
            "with save_pretrained()"
        )


def _read(file: Path, otherwise: Any) -> Any:
    """Read JSON of the kind that is expected; what is none is refused where it is used."""
    with suppress(OSError, ValueError):
        read = parsing.from_json(regular.text(file))
        if isinstance(read, type(otherwise)):
            return read
        return otherwise
    return otherwise
