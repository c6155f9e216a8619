"""What a store's fingerprint holds of the files that its features came from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 4096  # bytes
BLOCKS = 4096  # in all files together, but one a file at least


def sampled(files: Sequence[Path]) -> dict[str, Any]:
    """Describe files by names, sizes and a SHA-256 over these and over samples of their contents.

    A limited number of blocks is read, spread evenly over each file, so that resuming an import does not read 60 GB
    again. A changed name or size is always seen, changed content only where it is sampled. Files below 16 MB divided by
    the number of files are read completely. It gives the files' names, their size
    in bytes and sampled_sha256, the digest.
    """
    digest, total = hashlib.sha256(), 0
    files = sorted(files, key=lambda path: (path.name, path))
    for path in files:
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            digest.update(f"{path.name}\0{size}\n".encode(errors="surrogateescape"))
            for start in np.linspace(0, max(0, size - BLOCK), _blocks(size, len(files))).astype(np.int64):
                digest.update(os.pread(file.fileno(), BLOCK, int(start)))
        total += size
    names = [path.name for path in files]
    return {"files": ", ".join(names) if len(names) <= 12 else f"{len(names)} files, {names[0]} to {names[-1]}",
            "bytes": total, "sampled_sha256": digest.hexdigest()}


def _blocks(size: int, files: int) -> int:
    return max(1, min(-(-size // BLOCK) + 1, BLOCKS // files))
