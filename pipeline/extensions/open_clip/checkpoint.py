"""What OpenCLIP's training leaves: `epoch_N.pt`, or a folder of torch's distributed checkpoints,
and params.txt.
"""

import ast
import json
import shutil
import warnings
from collections.abc import Mapping, Set
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch

from pipeline.extensions.open_clip.places import CONFIG, PARAMS, params as find_params
from pipeline.foundation.files import distributed_checkpoint, weights
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.parts.errors import InputError, InputWarning, refusing
from pipeline.make.dual_encoders.base import read_folder

# The training's flags that change its network or preprocessing -> the section and key of a
# configuration.
FLAGS = {
    "force_quick_gelu": ("model_cfg", "quick_gelu"),
    "force_custom_text": ("model_cfg", "custom_text"),
    "force_image_size": ("vision_cfg", "image_size"),
    "force_context_length": ("text_cfg", "context_length"),
    "image_mean": ("preprocess_cfg", "mean"),
    "image_std": ("preprocess_cfg", "std"),
    "image_interpolation": ("preprocess_cfg", "interpolation"),
    "image_resize_mode": ("preprocess_cfg", "resize_mode"),
}
# Its other flags that are read: they say which configuration, and what preprocessing was begun
# with.
OTHERS = ("model", "pretrained", "force_naflex_vision")
# Where a checkpoint has its weights. The trainer, too, evaluates the average where it keeps one.
STATES = ("state_dict_ema", *weights.STATES)
TOKENIZER = ("tokenizer*", "special_tokens_map.json", "vocab*", "merges.txt", "*.model")
# What explains a tensor of another shape, by the end of its name.
FORGOTTEN = {
    "visual.positional_embedding": "image size (force_image_size)",
    "pos_embed": "image size (force_image_size)",
    "positional_embedding": "context length (force_context_length)",
}


class Trained(NamedTuple):
    """A training's network."""

    state: dict[str, torch.Tensor]  # its tensors
    files: list[Path]  # the files that were read
    facts: dict[str, Any]  # what is recorded of them


def read(place: str, library: Any, into: Path) -> Trained:
    """Read a checkpoint, and write its configuration into a folder as OpenCLIP's format has it.

    place: the checkpoint; `#state_dict` after it chooses among averaged and last weights. library:
        `open_clip`.
    """
    path, _, chosen = place.partition("#")
    checkpoint = Path(path)
    params = find_params(checkpoint)
    values = _values(params)
    config, used = _configuration(params, values, library)
    begun = library.get_pretrained_cfg(
        values["model"].replace("/", "-"), str(values.get("pretrained"))
    )
    preprocessing = dict(config.get("preprocess_cfg", {}))
    for section, name in FLAGS.values():
        if section == "preprocess_cfg" and name in begun:
            preprocessing[name] = begun[name]
    config["preprocess_cfg"] = preprocessing
    used += _tokenizer(params.parent, config, into)
    state, weights_name = _state(checkpoint, chosen)
    flags = {flag: values[flag] for flag in FLAGS if values.get(flag) not in (None, False, "")}
    names_activation = flags.get("force_quick_gelu") or "quick_gelu" in config["model_cfg"]
    if values.get("pretrained") == "openai" and not names_activation:
        warnings.warn(
            f"{params}: the training began with OpenAI's weights and names no activation; OpenCLIP before "
            "2.29 then trained with QuickGELU: if yours did, write force_quick_gelu: True there",
            InputWarning,
            stacklevel=2,
        )
    sections = {**config["model_cfg"], **config}
    for flag, value in flags.items():
        section, key = FLAGS[flag]
        sections.get(section, {})[key] = value
    if "logit_bias" in state:
        config["model_cfg"]["init_logit_bias"] = 0.0  # its value is read
    (into / CONFIG).write_text(json.dumps(config))
    facts = {"model": values["model"], "weights": weights_name, **flags}
    files = [checkpoint]
    if not checkpoint.is_file():
        files = sorted(filter(Path.is_file, checkpoint.iterdir()))
    return Trained(state, [params, *used, *files], facts)


def load(place: str, network: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> None:
    """Put tensors into a network, which must have exactly these: the library would resize some
    without a word.
    """
    tensors = network.state_dict()
    state = _renamed(network, state, tensors.keys())
    other = sorted(tensors.keys() ^ state.keys())
    if other:
        hint = ""
        prefix = weights.prefix_of(state, other[0])
        if any(name.startswith("text.") for name in state.keys() - tensors.keys()):
            hint = "; of a CustomTextCLIP: write force_custom_text: True"
        elif prefix:
            hint = f"; its names begin with {prefix}: save the network without its wrapper"
        raise InputError(
            f"{place}: its weights are not of the model that its {PARAMS} or {CONFIG} names: {len(other)} "
            f"tensors are in one alone, such as {other[0]}{hint}"
        )
    for name, value in state.items():
        needed = tensors[name]
        # One scale is a number in one release, and a vector of one in another.
        if value.shape != needed.shape and (value.numel(), needed.numel()) != (1, 1):
            hint = next((flag for end, flag in FORGOTTEN.items() if name.endswith(end)), "model")
            raise InputError(
                f"{place}: {name} has the shape {[*value.shape]}, and its configuration asks for "
                f"{[*needed.shape]}: the {hint} is another than it was trained with"
            )
        needed.copy_(value.reshape(needed.shape))


def _renamed(
    network: torch.nn.Module, state: Mapping[str, torch.Tensor], needed: Set[str]
) -> dict[str, torch.Tensor]:
    """The tensors of an older or foreign file by their names of today, by the library's own
    rules.
    """
    converted = dict(import_module("open_clip.convert").convert_state_dict(network, dict(state)))
    if "positional_embedding" in converted and "text.positional_embedding" in needed:
        converted = import_module("open_clip.model").convert_to_custom_text_state_dict(converted)
    if "logit_bias" in needed:  # it is added to all similarities alike
        converted.setdefault("logit_bias", torch.zeros(()))
    return {
        name: value
        for name, value in converted.items()
        if name in needed or not name.endswith("position_ids")
    }


def _values(params: Path) -> dict[str, Any]:
    """The flags that are read. A line break in a value makes lines that look like flags: the first
    one counts.
    """
    values: dict[str, Any] = {}
    with refusing((OSError, ValueError), f"{params}: not readable as text"):
        lines = params.read_text(encoding="utf-8").splitlines()
    for line in lines:
        name, colon, value = line.partition(": ")
        if colon and name in (*FLAGS, *OTHERS):
            values.setdefault(name, _value(value))
    if not isinstance(values.get("model"), str):
        raise InputError(f"{params}: names no model; expected a line such as `model: ViT-B-32`")
    if values.get("force_naflex_vision"):
        raise InputError(
            f"{params}: the training used NaFlex, which is not read of OpenCLIP; siglip2: reads NaFlex"
        )
    return values


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _configuration(
    params: Path, values: Mapping[str, Any], library: Any
) -> tuple[dict[str, Any], list[Path]]:
    """The configuration of the model that was trained, and the file that it is from, if it is not
    the library's.
    """
    name = values["model"].removeprefix("local-dir:")
    beside = [
        params.parent / f"{Path(name).name}.json",
        params.parent / CONFIG,
        Path(name) / CONFIG,
    ]
    for file in beside:
        if file.is_file():
            with refusing((OSError, ValueError), f"{file}: is not a configuration of OpenCLIP"):
                config = from_json(file.read_text(encoding="utf-8"))
                if "model_cfg" not in config:
                    config = {"model_cfg": config}
                return config, [file]
    known = None
    if ":" not in name:
        known = library.get_model_config(name.replace("/", "-"))
    if known is None:
        raise InputError(
            f"{params}: the model {values['model']!r} is none that OpenCLIP {library.__version__} knows; "
            f"put its configuration beside it, {beside[0].name} or {CONFIG}"
        )
    return {"model_cfg": known}, []


def _tokenizer(folder: Path, config: Mapping[str, Any], into: Path) -> list[Path]:
    """Copy the files of a tokenizer of `transformers`: those beside params.txt, or of its name on
    the hub.
    """
    name = config["model_cfg"].get("text_cfg", {}).get("hf_tokenizer_name")
    if not name:
        return []
    if not any(folder.glob("tokenizer*")):
        folder = weights.folder(str(name), "tokenizer", f"put its files beside {PARAMS}", TOKENIZER)
    return [Path(shutil.copy(file, into)) for file in read_folder(folder, TOKENIZER)]


def _state(checkpoint: Path, chosen: str) -> tuple[dict[str, torch.Tensor], str]:
    """The weights, without the prefixes of wrappers, and where in the file they are."""
    tree: Any
    if checkpoint.is_dir():
        tree = {"model": distributed_checkpoint.read(checkpoint)}
    else:
        tree = weights.read_tree(checkpoint)
    states = []
    if isinstance(tree, Mapping):
        states = [name for name in STATES if isinstance(tree.get(name), Mapping)]
    if chosen and chosen not in states:
        raise InputError(
            f"{checkpoint}: has no {chosen}; it holds {', '.join(states) or 'a state dict alone'}"
        )
    if not chosen and states[:2] == list(STATES[:2]):
        warnings.warn(
            f"{checkpoint}: the averaged weights are read, which its trainer evaluates; "
            f"{checkpoint.name}#state_dict has the last ones",
            InputWarning,
            stacklevel=2,
        )
    name = chosen or next(iter(states), "")
    state = tree[name] if name else tree
    return weights.state_dict(state, checkpoint), name
