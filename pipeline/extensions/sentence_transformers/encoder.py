"""Models of the library sentence-transformers that embed images and captions, read from files
alone.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from pipeline.extensions.sentence_transformers import places
from pipeline.foundation.files import model_folder, pretrained, regular, weights
from pipeline.foundation.files.digest import of_files
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.files.remembered import sha256_of_unchanged
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError, InputWarning, refusing
from pipeline.make.dual_encoders.base import DualEncoder, Pixels, Usage, middle, placed
from pipeline.make.dual_encoders.hugging_face import crops, described, used_as
from pipeline.make.dual_encoders.places import TEXT_FILES

CONFIG = "config_sentence_transformers.json"
PACKAGE = "sentence_transformers."
# The files that say what is built. A tokenizer.json is long, and names no code.
SETTINGS = ("*config*.json", "modules.json")
# The keys whose values, unless they are empty or false, name code of the model's own.
CODE = ("auto_map", "custom_pipelines", "trust_remote_code")


class SentenceTransformersEncoder(DualEncoder):
    """A `SentenceTransformer` of images and texts, or a `MultiVectorEncoder`, such as a ColPali:
    `per_token`.
    """

    library = places.PLACES.library

    def __init__(self, folder: Path, usage: Usage) -> None:
        self.folder = folder
        self.usage = usage
        if usage.preprocessing == "torchvision":
            raise InputError(
                f"{folder}: is prepared as its own `encode` does it, which is by torchvision: "
                "--preprocessing own"
            )
        extras.require("sentence-transformers", f"{folder}: a model of sentence-transformers")
        kind = _checked(folder)
        for part in model_folder.parts(folder):
            if model_folder.weights_of(part):
                pretrained.source(part)
        _refuse_unreadable_modules(folder)
        self.per_token = kind == "MultiVectorEncoder"
        library = pretrained.reading(
            folder, "network", lambda: import_module("sentence_transformers")
        )
        with _reports() as loaded:
            model = pretrained.reading(
                folder,
                "network",
                lambda: getattr(library, kind)(
                    str(folder),
                    device="cpu",
                    local_files_only=True,
                    trust_remote_code=False,
                    model_kwargs={"attn_implementation": "sdpa", "dtype": torch.float32},
                ),
            )
        for network, report in loaded:
            pretrained.check_complete(folder, network, report, whole=True)
        if not (model.supports("image") and model.supports("text")):
            raise InputError(
                f"{folder}: embeds {' and '.join(map(str, model.modalities))} alone; expected a model of "
                "images and texts"
            )
        model[0].processor.image_processor = processor = used_as(
            folder, usage, model[0].processor.image_processor
        )
        config = next(
            module.config for module in model.modules() if isinstance(module, PreTrainedModel)
        )
        text_config = config.get_text_config()
        pretrained.check_side(folder, processor, config)
        if not self.per_token:  # such networks have word pieces for places in an image, too
            pretrained.check_tokenizer(folder, model.tokenizer, text_config.vocab_size)
        if config.model_type == "clip":
            pretrained.check_end(folder, model.tokenizer, text_config)
        positions = getattr(text_config, "max_position_embeddings", None)
        self.token_limit = usage.limit(
            min(limit for limit in (model.max_seq_length, positions) if limit)
        )
        model.max_seq_length = self.token_limit
        self._reads_middle = crops(processor)
        self.preprocessing = described(processor)
        self.activation = {
            "image": _activation(getattr(config, "vision_config", None)),
            "text": _activation(getattr(config, "text_config", None)),
        }
        used = _files_below(folder, (*TEXT_FILES, "*.safetensors", "*.bin"))
        digests = dict(zip(used, of_files(used, sha256_of_unchanged), strict=True))
        self.files = {str(file.relative_to(folder)): sha for file, sha in digests.items()}
        tensors = [file for file in used if file.suffix in (".safetensors", ".bin")]
        self.weights_file = digests[tensors[0]] if len(tensors) == 1 else None
        self.facts = {
            "prompts": {name: text for name, text in model.prompts.items() if text},
            "default_prompt_name": model.default_prompt_name,
            "similarity": model.similarity_fn_name,
            "truncate_dim": getattr(model, "truncate_dim", None),
        }
        if not self.per_token and model.similarity_fn_name != "cosine":
            warnings.warn(
                f"{folder}: its similarity is {model.similarity_fn_name!r}, of vectors of any length; here "
                "they have length 1, and are compared by the cosine",
                InputWarning,
                stacklevel=2,
            )
        self.network = placed(model, usage)

    @classmethod
    def load(cls, place: str, usage: Usage) -> "SentenceTransformersEncoder":
        """Load a model, see `DualEncoder.load`."""
        return cls(places.find(place), usage)

    def _prompt(self, task: str) -> str:
        """The model's own prompt, as in `encode`, or in `encode_query`; of captions that of the
        usage replaces it.
        """
        name = task if self.per_token else self.network.default_prompt_name
        replaced = task == "query" and self.usage.text != "{}"
        return "" if replaced else self.network.prompts.get(name) or ""

    def prepare(self, image: Image.Image) -> Pixels:
        """The pixels, uint8 [H, W, 3]: the library prepares images of a batch together, see
        `DualEncoder.prepare`.
        """
        if self._reads_middle:
            image = middle(image)
        return {"pixels": torch.from_numpy(np.array(image))}

    def image_vectors(self, batch: Sequence[Pixels]) -> torch.Tensor:
        """The vectors of images, see `DualEncoder.image_vectors`."""
        images = [Image.fromarray(prepared["pixels"].numpy()) for prepared in batch]
        return self._vectors(images, "document")

    def caption_vectors(self, captions: Sequence[str]) -> torch.Tensor:
        """The vectors of captions, see `DualEncoder.caption_vectors`.

        A text by itself may be read as an image's file or address, which the library opens or
        fetches.
        """
        return self._vectors([{"text": caption} for caption in self.usage.read(captions)], "query")

    def _vectors(self, inputs: list[Any], task: str) -> torch.Tensor:
        by_task = {"task": task} if self.per_token else {}
        features = self.network.preprocess(inputs, prompt=self._prompt(task) or None, **by_task)
        on_device = {
            name: value.to(self.usage.device) if isinstance(value, torch.Tensor) else value
            for name, value in features.items()
        }
        if "pixel_values" in on_device:
            on_device["pixel_values"] = on_device["pixel_values"].to(self.network.dtype)
        output = self.network(on_device, **by_task)
        if self.per_token:
            both = zip(output["token_embeddings"], output["attention_mask"].bool(), strict=True)
            return pad_sequence([vectors[mask] for vectors, mask in both], batch_first=True)
        return output["sentence_embedding"][:, : self.network.truncate_dim]

    def tokens(self, captions: Sequence[str], whole: bool = False) -> list[list[int]]:
        """Convert captions to the numbers that are read, see `DualEncoder.tokens`."""
        read = [self._prompt("query") + text for text in self.usage.read(captions)]
        return pretrained.tokenized(
            self.network.tokenizer, read, None if whole else self.token_limit
        )

    def save(self, folder: Path) -> None:
        """Write a folder that `SentenceTransformer` opens, see `DualEncoder.save`."""
        self.network.save(str(folder), create_model_card=False)


def _activation(tower: Any) -> str:
    """The activation function of a tower's configuration."""
    return str(getattr(tower, "hidden_act", "unknown"))


def _files_below(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """The files of some patterns in a folder and those below it."""
    files: set[Path] = set()
    for pattern in patterns:
        files.update(folder.rglob(pattern))
    return sorted(files)


def _refuse_unreadable_modules(folder: Path) -> None:
    """Refuse modules beside the network whose folder is missing, or whose weights have a wrapper's
    names. A folder of Normalize may be missing: nothing is in it.
    """
    modules = folder / model_folder.MODULES
    if not modules.is_file():
        return
    for module in from_json(regular.content(modules)):
        name = str(module["type"])
        part = folder / str(module.get("path") or "")
        if not part.is_dir() and not name.endswith(".Normalize"):
            raise InputError(
                f"{part}: is missing, which modules.json names for {name}; copy the whole folder again"
            )
        if part == folder or name.endswith("Transformer"):
            continue
        for file in model_folder.weights_of(part):
            names = weights.unwrapped(list(weights.read_tree(file)))
            wrapped = [name for name, unwrapped in names.items() if name != unwrapped]
            if wrapped:
                raise InputError(
                    f"{file}: {wrapped[0]!a} has the name of a wrapper (torch.compile or of several processes), "
                    f"which {name} does not read; save the model without it"
                )


@contextmanager
def _reports() -> Iterator[list[tuple[Any, Mapping[str, Any]]]]:
    """Collect the networks that `transformers` loads in the block and what it reports of each:
    sentence-transformers drops that.
    """
    networks: Any = PreTrainedModel
    load = vars(networks)["from_pretrained"]
    loaded: list[tuple[Any, Mapping[str, Any]]] = []

    def with_report(cls: Any, folder: str, *arguments: Any, **options: Any) -> Any:
        place, given = pretrained.source(Path(folder, options.get("subfolder") or ""))
        network, report = load.__func__(
            cls, place and folder, *arguments, **options, **given, **pretrained.REPORTED
        )
        loaded.append((network, report))
        return network

    networks.from_pretrained = classmethod(with_report)
    try:
        yield loaded
    finally:
        networks.from_pretrained = load


def _checked(folder: Path) -> str:
    """Refuse a model that brings code, or is of another kind; the name of its class in the
    library.
    """
    known: dict[str, Any] = {}
    for file in _files_below(folder, SETTINGS):
        with refusing((OSError, ValueError), f"{file}: is no JSON; copy the folder again"):
            tree = from_json(regular.content(file))
        known[str(file.relative_to(folder))] = tree
        named = _code_of(tree)
        if named:
            raise InputError(
                f"{file}: asks for code of its own ({named}), which is not run; take a model "
                "without it"
            )
    modules = known.get("modules.json", [])
    settings = known.get(CONFIG, {})
    with refusing(
        (TypeError, KeyError, AttributeError), f"{folder}: is not a model of sentence-transformers"
    ):
        types = [str(module["type"]) for module in modules]
        kind = str(settings.get("model_type", "SentenceTransformer"))
    foreign = [name for name in types if not name.startswith(PACKAGE)]
    if foreign:
        raise InputError(
            f"{folder}: its module {foreign[0]} is no part of sentence-transformers, and is not run; take a "
            "model without it"
        )
    if kind not in ("SentenceTransformer", "MultiVectorEncoder"):
        raise InputError(
            f"{folder}: is a {kind}; expected a SentenceTransformer or a MultiVectorEncoder"
        )
    return kind


def _code_of(tree: Any) -> str | None:
    """The first key at any depth of a parsed JSON that names code of the model's own; None for
    none.
    """
    waiting = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            named = [key for key in CODE if value.get(key)]
            if named:
                return named[0]
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return None
