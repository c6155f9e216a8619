"""Find a published checkpoint's files: in a folder, in the Hugging Face hub's cache, or on the hub."""

from collections.abc import Sequence
from pathlib import Path

from pipeline.parts.errors import InputError

FILES = ["*.json", "*.txt", "model*.safetensors"]
"""Of a checkpoint's files, all that are ever read: no pickle, no code."""
LOCAL = {"local_files_only": True, "trust_remote_code": False}
"""How a checkpoint is read: its files alone, no Python that it brings (`auto_map`), and without asking whether to."""


def folder(checkpoint: str, what: str, advice: str, files: Sequence[str] = FILES) -> Path:
    """Find where a checkpoint's files lie on this machine.

    Args:
        checkpoint: A folder, or a name on the hub.
        what: What it is, for messages.
        advice: Where the folder is to be named, for messages.
        files: Patterns of the files that are fetched.

    Returns:
        The folder.

    Raises:
        InputError: If it is neither a folder nor can be downloaded.
    """
    if Path(checkpoint).is_dir():
        return Path(checkpoint)
    from huggingface_hub import HfApi, snapshot_download

    try:
        return Path(snapshot_download(checkpoint, allow_patterns=list(files), local_files_only=True))
    except (OSError, ValueError):
        pass  # not a name, or never fetched
    try:
        HfApi().model_info(checkpoint, timeout=10)  # fails at once without a network; a download tries for a minute
        return Path(snapshot_download(checkpoint, allow_patterns=list(files)))
    except Exception as error:  # the hub's client and what it stands on raise many kinds
        raise InputError(f"{what} {checkpoint!r} is not a folder and cannot be downloaded from the Hugging Face hub "
                         f"({type(error).__name__}); on a machine with a network `hf download {checkpoint}`, and "
                         f"{advice}") from None
