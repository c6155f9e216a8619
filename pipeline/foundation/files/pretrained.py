"""What a folder of `transformers` holds, read from its files alone: no code that a folder brings is
run.
"""

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import AutoConfig, AutoImageProcessor, AutoProcessor, AutoTokenizer
from transformers.models.auto import auto_factory
from transformers.utils import logging as library_logging

from pipeline.foundation.files import model_folder, weights
from pipeline.foundation.files.alignment import align
from pipeline.foundation.files.weights import LOCAL
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError, InputWarning, counted, first_line, refusing

# Tokens of Gemma's tokenizer, which SigLIP 2 has; it was trained on captions in lower case.
# SigLIP's is T5's.
GEMMA = {"<bos>", "<eos>"}
# The files of which a tokenizer is read, any of these.
TOKENIZERS = ("tokenizer.json", "*vocab*", "*.model", "*.tiktoken")
# The least share of a network's word pieces that its tokenizer has.
FEWEST = 0.9
# Tensors that are computed and not learnt, a regular expression: newer files lack them, and older
# ones have more.
COMPUTED = (
    r"(position_ids|token_type_ids|relative_position_index|relative_coords_table|inv_freq"
    r"|num_batches_tracked)$"
)
# How a network is loaded, so that it is known what its files lack or hold beyond it.
REPORTED = {"output_loading_info": True, "ignore_mismatched_sizes": True}
# What libraries say of every model of some kind, or of what `check_complete` judges.
SAID_ALWAYS = re.compile(
    r"LOAD REPORT|_token_id must be|deprecat|has been renamed|backward compatibility|slower|README"
    r"|chat template|Default prompt name is set|initialized (randomly|partially)|no CLIP weights found",
    re.IGNORECASE,
)
# How they say that a part of a model's files is left out or replaced.
SAID_OF_LOSS = re.compile(
    r"ignor|fall(s|ing)? ?back|skipp|dropp|not trusted|corrupt|incorrect|will not tie",
    re.IGNORECASE,
)


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Collect what libraries warn of in the block, in the place of printing it.

    OpenCLIP and sentence-transformers speak to the root logger, `transformers` to one of its own.
    """
    said: list[str] = []
    ear = logging.Handler(logging.WARNING)
    ear.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [logging.getLogger(), logging.getLogger("transformers")]
    before = [(each, each.handlers, each.level) for each in loggers]
    library_logging.warning_once.cache_clear()  # what is said once a process is said of each model
    for each in loggers:
        each.handlers = [ear]
        each.setLevel(logging.WARNING)
    try:
        yield said
    finally:
        for each, handlers, level in before:
            each.handlers = handlers
            each.setLevel(level)


def _judge(folder: Path | str, said: list[str]) -> None:
    """Refuse a model of which a library says that it left out or replaced a part; pass on what else
    it warns of.
    """
    for message in dict.fromkeys(said):
        if SAID_ALWAYS.search(message):
            continue
        line = message.strip().splitlines()[0].partition(". ")[0].removesuffix(".")
        if SAID_OF_LOSS.search(message):
            raise InputError(
                f"{folder}: its library would not use all that it says: {line}; take a model without that, "
                "or compute its vectors by its own code and give those"
            )
        warnings.warn(f"{folder}: its library says: {line}", InputWarning, stacklevel=3)


def reading(folder: Path | str, what: str, read: Callable[[], Any]) -> Any:
    """Read a part of a model, or all of it, by a library, which may raise anything, and judge what
    it warns of.
    """

    def why(error: Exception) -> str:
        if isinstance(error, ImportError):
            return (
                f"{folder}: its {what} needs a package that is not here ({first_line(error)}); "
                f"{extras.line('encoders')}"
            )
        return f"{folder}: no {what} that can be read: {first_line(error)}"

    library_logging.disable_progress_bar()  # a command has its own
    library_logging.set_verbosity_error()
    with _heard() as said, refusing(Exception, why):
        result = read()
    _judge(folder, said)
    return result


def configuration(folder: Path, what: str = "configuration") -> Any:
    """Read config.json, of a folder that is a model's as it seems."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no {what} that can be read: there is no such folder")
    model_folder.check(folder)
    if not (folder / model_folder.CONFIG).is_file():
        raise InputError(
            f"{folder}: no {what} that can be read: it has no config.json{model_folder.instead(folder)}"
        )
    return reading(folder, what, lambda: AutoConfig.from_pretrained(folder, **LOCAL))


def image_processor(
    folder: Path, what: str = "image preprocessing", backend: str | None = "pil"
) -> Any:
    """Read what prepares images."""
    model_folder.require_preprocessing(folder)
    return reading(
        folder, what, lambda: AutoImageProcessor.from_pretrained(folder, backend=backend, **LOCAL)
    )


def processor(folder: Path, what: str) -> Any:
    """Read what prepares images and words together."""
    model_folder.require_preprocessing(folder)
    return reading(folder, what, lambda: AutoProcessor.from_pretrained(folder, **LOCAL))


def own_attention(kind: Any) -> str:
    """The attention of a network's class: torch's own, or for the few without it plain products.

    A config.json may name another, which would be fetched from the hub and run.
    """
    return "sdpa" if kind._supports_sdpa else "eager"


def network(
    folder: Path,
    kind: Any,
    config: Any,
    what: str = "network",
    attention: str = "sdpa",
    optional: str = COMPUTED,
    pickled: bool = False,
    whole: bool = False,
) -> Any:
    """Load a network of a class, in float32. attention: see `own_attention`.

    optional: a regular expression of the tensors that its files may lack. pickled: whether files of
        torch are read, too. whole: whether the class is to read all that they hold.
    """
    if hasattr(kind, "_model_mapping"):  # an Auto class, which needs a folder
        kind = auto_factory._get_model_class(config, kind._model_mapping)
    place, given = source(folder, pickled)
    loaded, report = reading(
        folder,
        what,
        lambda: kind.from_pretrained(
            place,
            config=config,
            dtype=torch.float32,
            attn_implementation=attention,
            **given,
            **REPORTED,
            **LOCAL,
        ),
    )
    check_complete(folder, loaded, report, optional, whole)
    align(loaded)
    return loaded


def source(folder: Path, pickled: bool = True) -> tuple[Path | None, dict[str, Any]]:
    """Where the library reads a network's tensors: the folder, or None and the tensors as its
    argument.

    They are read here where they are files of torch, and where a wrapper has put its name before
    theirs.
    """
    files = model_folder.weights_of(folder, pickled)
    if not files:
        raise model_folder.without_weights(folder, pickled)
    unread = model_folder.unread(folder, files)
    if unread:
        warnings.warn(
            f"{folder}: {files[0].name} is read, as the library does it, and not {' or '.join(unread)} beside it",
            InputWarning,
            stacklevel=3,
        )
    if files[0].suffix == ".safetensors":
        names = [name for file in files for name in _stored(file)]
        if all(name == now for name, now in weights.unwrapped(names).items()):
            return folder, {"use_safetensors": True}
    tensors: dict[str, torch.Tensor] = {}
    for file in files:
        tensors |= weights.read(file)
    return None, {"state_dict": tensors}


def _stored(file: Path) -> list[str]:
    """The names of a file's tensors, which are stored as numbers that can be used."""
    with weights.readable(file), safe_open(file, "pt") as opened:
        kinds = {name: opened.get_slice(name).get_dtype() for name in opened.keys()}  # noqa: SIM118
    weights.refuse_stored(file, kinds)
    return list(kinds)


def check_complete(
    folder: Path,
    network: Any,
    report: Mapping[str, Any],
    optional: str = COMPUTED,
    whole: bool = False,
) -> None:
    """Refuse a network that the library completed with random numbers, or of which it left some
    out, by its report (`REPORTED`).

    optional, whole: see `network`.
    """
    for name, stored, expected in report["mismatched_keys"]:
        if not re.search(optional, name):
            raise InputError(
                f"{folder}: its weights are of another model than its config.json: {name} has the shape "
                f"{[*stored]}, expected {[*expected]}"
            )
    beyond = sorted(name for name in report["unexpected_keys"] if not re.search(optional, name))
    lacking = sorted(name for name in report["missing_keys"] if not re.search(optional, name))
    if lacking:
        prefix = weights.prefix_of(beyond, lacking[0])
        hint = f"; its names begin with {prefix}: save the network without its wrapper"
        raise InputError(
            f"{folder}: its weights lack {len(lacking)} of the tensors that its config.json asks for, "
            f"such as {lacking[0]}{hint if prefix else ''}"
        )
    # Names of other parts, such as a head for another task, or the tower that is not used.
    parts = dict(network.named_children())
    whole_of = f"{network.base_model_prefix}."
    inner = [name for name in beyond if name.removeprefix(whole_of).partition(".")[0] in parts]
    if inner:
        raise InputError(
            f"{folder}: its weights hold {counted(len(inner), 'tensor')} for which its config.json has no "
            f"place, such as {inner[0]}: it is that of another model, with fewer layers or other parts"
        )
    if beyond and whole:
        warnings.warn(
            f"{folder}: its weights hold {counted(len(beyond), 'tensor')} that no part of the network "
            f"reads, such as {beyond[0]}",
            InputWarning,
            stacklevel=3,
        )


def tokenizer(folder: Path, vocabulary: int) -> Any:
    """Read the tokenizer of a network of a vocabulary of so many word pieces."""
    if not any(any(folder.glob(pattern)) for pattern in TOKENIZERS):
        raise _foreign(folder, 0, vocabulary)
    read = reading(folder, "tokenizer", lambda: AutoTokenizer.from_pretrained(folder, **LOCAL))
    check_tokenizer(folder, read, vocabulary)
    return read


def check_tokenizer(folder: Path | str, tokenizer: Any, vocabulary: int) -> None:
    """Refuse a tokenizer that is not that of a network of so many word pieces.

    Tables of word pieces are filled up to a round number, by a few of a hundred.
    """
    pieces = {*tokenizer.get_vocab().values()} - {*tokenizer.all_special_ids}
    known = len(tokenizer) if pieces else 0
    if not FEWEST * vocabulary <= known <= vocabulary:
        raise _foreign(folder, known, vocabulary)


def _foreign(folder: Path | str, known: int, vocabulary: int) -> InputError:
    return InputError(
        f"{folder}: a tokenizer of {known} word pieces for a network of {vocabulary}; the "
        "folder needs the model's tokenizer.json, vocab.json and merges.txt, or spiece.model"
    )


def check_side(folder: Path, processor: Any, config: Any) -> None:
    """Refuse a SigLIP whose preprocessing gives images of another side than its network's: it cuts
    off what is more than whole patches, without a word.
    """
    if config.model_type == "siglip":
        side = config.vision_config.image_size
        prepared = dict(processor.size or {})
        if (prepared.get("height"), prepared.get("width")) != (side, side):
            raise InputError(
                f"{folder}: its preprocessing gives images of {prepared}, its network reads {side} x {side} "
                "pixels; take both from the same model"
            )


def check_end(folder: Path | str, tokenizer: Any, config: Any) -> None:
    """Refuse a CLIP that would not read a caption's vector at its end, but at its beginning.

    config: that of its captions' tower. 2 stands for the highest number in older files.
    """
    numbers = tokenizer("a photo")["input_ids"]
    asked = config.eos_token_id
    ends = max(numbers) if asked == 2 else asked
    if ends not in numbers[-1:] or ends in numbers[:-1]:
        raise InputError(
            f"{folder}: its tokenizer ends a caption with {numbers[-1]}, and its config.json reads its vector "
            f"at {asked} (eos_token_id of text_config); take both from the same model"
        )


def is_gemma(tokenizer: Any) -> bool:
    """Whether a tokenizer is Gemma's."""
    return bool(tokenizer.get_vocab().keys() >= GEMMA)


def tokenized(tokenizer: Any, texts: list[str], limit: int | None = None) -> list[list[int]]:
    """The numbers of some texts, each cut at a limit."""
    return list(
        tokenizer(texts, truncation=limit is not None, max_length=limit, verbose=False)["input_ids"]
    )
