"""What a folder of `transformers` holds, read from its files alone: no code that a folder brings is
run.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoImageProcessor, AutoTokenizer
from transformers.utils import logging

from pipeline.files.weights import LOCAL
from pipeline.parts import extras
from pipeline.parts.errors import InputError, first_line, refusing

# Tokens of Gemma's tokenizer, which SigLIP 2 has; it was trained on captions in lower case.
# SigLIP's is T5's.
GEMMA = {"<bos>", "<eos>"}
# Tensors that are computed and not learnt, a regular expression: newer files lack them.
COMPUTED = "position_ids$"


def reading(folder: Path | str, what: str, read: Callable[[], Any]) -> Any:
    """Read a part of a model, or all of it, by a library, which may raise anything."""

    def why(error: Exception) -> str:
        if isinstance(error, ImportError):
            return (
                f"{folder}: its {what} needs a package that is not here ({first_line(error)}); "
                f"{extras.line('encoders')}"
            )
        return f"{folder}: no {what} that can be read: {first_line(error)}"

    logging.disable_progress_bar()  # a command has its own
    # it reports tensors of the other tower, and token ids that are never used
    logging.set_verbosity_error()
    with refusing(Exception, why):
        return read()


def configuration(folder: Path, what: str = "configuration") -> Any:
    """Read config.json."""
    return reading(folder, what, lambda: AutoConfig.from_pretrained(folder, **LOCAL))


def image_processor(
    folder: Path, what: str = "image preprocessing", backend: str | None = "pil"
) -> Any:
    """Read what prepares images."""
    return reading(
        folder, what, lambda: AutoImageProcessor.from_pretrained(folder, backend=backend, **LOCAL)
    )


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
    **options: Any,
) -> Any:
    """Load a network of a class, in float32. attention: see `own_attention`.

    optional: a regular expression of the tensors that its files may lack.
    """
    whole, report = reading(
        folder,
        what,
        lambda: kind.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            weights_only=True,
            attn_implementation=attention,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **LOCAL,
            **options,
        ),
    )
    check_complete(folder, report, optional)
    return whole


def check_complete(folder: Path, report: Mapping[str, Any], optional: str = COMPUTED) -> None:
    """Refuse a network that the library completed with random numbers, by its report
    (`output_loading_info`).
    """
    for name, stored, expected in report["mismatched_keys"]:
        if not re.search(optional, name):
            raise InputError(
                f"{folder}: its weights are of another model than its config.json: {name} has the shape "
                f"{[*stored]}, expected {[*expected]}"
            )
    if lacking := sorted(name for name in report["missing_keys"] if not re.search(optional, name)):
        raise InputError(
            f"{folder}: its weights lack {len(lacking)} of the tensors that its config.json asks for, "
            f"such as {lacking[0]}"
        )


def tokenizer(folder: Path, vocabulary: int) -> Any:
    """Read the tokenizer of a network of a vocabulary of so many word pieces."""
    read = reading(folder, "tokenizer", lambda: AutoTokenizer.from_pretrained(folder, **LOCAL))
    pieces = {*read.get_vocab().values()} - {*read.all_special_ids}
    if not pieces or len(read) > vocabulary:  # without its files it is built empty
        raise InputError(
            f"{folder}: a tokenizer of {len(pieces)} word pieces for a network of {vocabulary}; the "
            "folder needs the model's tokenizer.json, vocab.json and merges.txt, or spiece.model"
        )
    return read


def is_gemma(tokenizer: Any) -> bool:
    """Whether a tokenizer is Gemma's."""
    return bool(tokenizer.get_vocab().keys() >= GEMMA)


def tokenized(tokenizer: Any, texts: list[str], limit: int | None = None) -> list[list[int]]:
    """The numbers of some texts, each cut at a limit."""
    return list(
        tokenizer(texts, truncation=limit is not None, max_length=limit, verbose=False)["input_ids"]
    )
