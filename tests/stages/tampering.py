"""Every kind of file below a root, and the ways in which tests change it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from safetensors.torch import load_file, save_file

from pipeline.foundation.manifest import Manifest
from pipeline.run.provenance.results import Result

Change = Callable[[Path], object]


def flip(file: Path) -> None:
    """One bit in the middle; the size stays."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def swap_rows(file: Path) -> None:
    """The first and the last row of the array that a chunk belongs to, through zarr, as any library
    would.
    """
    path = next(each for each in file.parents if (each / "zarr.json").exists())
    array: Any = zarr.open_array(path, mode="r+")
    array[:] = np.concatenate([array[-1:], array[1:-1], array[:1]])


def swap_lines(file: Path) -> None:
    first, *lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([first, *reversed(lines)]))


def swap_captions(file: Path) -> None:
    manifest = Manifest.load(file)
    captions = manifest.table["caption"].tolist()
    manifest.table["caption"] = [captions[-1], *captions[1:-1], captions[0]]
    manifest.save(file)


def swap_words(file: Path) -> None:
    tree = json.loads(file.read_text())
    tree["words"][-2:] = reversed(tree["words"][-2:])
    file.write_text(json.dumps(tree))


def edit(*keys: Any, value: Any = None) -> Change:
    """A value of a JSON file by its keys: this one, or another number or text than is there."""

    def change(file: Path) -> None:
        tree = json.loads(file.read_text())
        within = tree
        for key in keys[:-1]:
            within = within[key]
        old = within[keys[-1]]
        within[keys[-1]] = (
            value if value is not None else old + 1 if isinstance(old, int | float) else "another"
        )
        file.write_text(json.dumps(tree))

    return change


def edit_weight(file: Path) -> None:
    tensors = load_file(file)
    name = sorted(tensors)[0]
    tensors[name] = tensors[name] + 1e-3
    save_file(tensors, file, metadata={"json": "{}"})


def edit_number(file: Path) -> None:
    """The last digit of a text."""
    text = file.read_text().rstrip()
    file.write_text(f"{text[:-1]}{(int(text[-1]) + 1) % 10 if text[-1].isdigit() else 1}\n")


MEMBER = ("facts", "member")
# Files by their pattern below the root -> the ways in which the first of them is changed.
CHECKED: dict[str, tuple[Change, ...]] = {
    "results/metrics.json": (
        edit("vse2ad-R-bigru-s0", "all", "t2i", "R@1"),
        edit("vse2ad-R-bigru-s0", "all", "interval", "t2i", "R@1", 0),
        edit("vse2ad-R-bigru-s0", "record", "facts", "recipe"),
        edit("vse2ad-R-bigru-s0", "record", "made_from", "system", "identity"),
        edit("vse2ad-R-bigru-s0", "record", "request", "name"),
        edit("vse2ad-R-bigru-s0", "image_hits", "all", "codes"),
    ),
    "similarities/*/*.zarr/record.json": (
        edit(*MEMBER, "settings", "learning_rate"),
        edit(*MEMBER, "checkpoint"),
        edit("request", "name"),
        edit("made_from", "head", "identity"),
        edit("contents", "image_ids"),
    ),
    "similarities/*/*.zarr/zarr.json": (edit("attributes", value={"a": 1}),),
    "similarities/*/*.zarr/similarity/c/*/*": (flip, swap_rows),
    "similarities/*/*.zarr/image_ids/c/*": (flip, swap_rows),
    "similarities/*/*.zarr/caption_ids/c/*": (flip, swap_rows),
    "similarities/*/*.zarr/caption_image/c/*": (flip, swap_rows),
    "similarities/*/*.zarr/*_embeddings/c/*/*": (flip, swap_rows),
    "similarities/*/*.zarr/*_candidates/c/*/*": (flip,),
    "similarities/*/*.zarr/*_retrieved/c/*/*": (flip, swap_rows),
    "similarities/*/*.zarr/*_scores/c/*/*": (flip, swap_rows),
    "similarities/*/*.zarr/*/zarr.json": (edit("fill_value", value=1.0),),
    "heads/*/*/best.safetensors": (flip, edit_weight),
    "heads/*/*/last.safetensors": (flip,),
    "heads/*/*/record.json": (
        edit("request", "recipe", "learning_rate"),
        edit("request", "seed"),
        edit("versions", "training"),
        edit("facts", "width"),
    ),
    "heads/*/*/history.csv": (edit_number,),
    "heads/*/*/steps.csv": (edit_number, swap_lines),
    "heads/*/*/text/*": (swap_words, edit("words", 7)),
    "features/*/*.zarr/zarr.json": (
        edit("attributes", "layout", "items"),
        edit("attributes", "format"),
    ),
    "features/*/*.zarr/record.json": (
        edit("versions", "images"),
        edit("request", "version"),
        edit("made_from", "images", "identity"),
    ),
    "features/*/*.zarr/features/c/*/*/*": (flip, swap_rows),
    "features/*/*.zarr/boxes/c/*/*/*": (flip,),  # fixed windows of equal images: all rows are alike
    "features/*/*.zarr/counts/c/*": (flip,),
    "features/*/*.zarr/status/c/*": (flip,),
    "features/*/*.zarr/sizes/c/*/*": (flip,),
    "features/*/*.zarr/bytes/c/*": (flip, swap_rows),
    "features/*/*.zarr/ids/c/*": (flip, swap_rows),
    "features/*/*.zarr/*/zarr.json": (edit("fill_value", value=1.0),),
    "features/*/*.zarr/ledger/*.json": (
        edit("checksums", "counts"),
        edit("sources", "20"),
        edit("values", "20"),
        edit("maker"),
    ),
    "features/*/*.zarr/failures.csv": (edit_number,),
    "data/*.parquet": (flip, swap_captions),
    "data/*/images/*": (flip,),
}
OF_CLIPS = {"data/*/videos/*": (flip,)}
"""The same in a run on clips."""
# What a trace does not look at: what was there before the manifest, what is made from results,
# locks.
NOT_CHECKED = (
    "data/*/*.json",
    "data/*/*.csv",
    "features/*/.*.lock",
    "heads/*/.*.lock",
    "similarities/*/.*.lock",
    "data/.*.lock",
    "results/.*.lock",
    "features/*/*.zarr.successor/*",
    "data/.*/*",
    ".digests.json",
    "results/tables/*",
    "results/figures/*",
    "results/headline/*",
    "results/report.html",
    "results/curves/*/*",
    "results/throughput.json",
    "results/synthetic.json",
    "results/recorded.json",
    "results/plan/*.json",
    "results/plan/*/*.json",
)


def files(root: Path, pattern: str) -> list[Path]:
    """In order, ensembles before what they are made of."""
    return sorted(path.relative_to(root) for path in root.glob(pattern) if path.is_file())


def below(root: Path) -> Iterator[Path]:
    yield from (path.relative_to(root) for path in root.rglob("*") if path.is_file())


def measured_anew(metrics: Path, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change an entry of the results and write a new digest of it."""
    tree = json.loads(metrics.read_text())
    change(tree[name])
    tree[name] = Result.read(tree[name], tree).sealed().entry
    metrics.write_text(json.dumps(tree))


def rolled(array: Path) -> None:
    """The values of an array, each in the place of the one before."""
    found: Any = zarr.open_array(array, mode="r+")
    found[:] = np.roll(found[:], 1)


def perfect(store: Path) -> None:
    """A matrix in which every caption finds its image."""
    group: Any = zarr.open_group(store, mode="r+")
    owner = group["caption_image"][:]
    group["similarity"][:] = np.where(
        owner[None] == np.arange(group["image_ids"].size)[:, None], 0.9, 0.1
    )


def perfect_vectors(store: Path) -> None:
    """The same with embeddings from which the matrix follows."""
    group: Any = zarr.open_group(store, mode="r+")
    owner, images, captions = (
        group["caption_image"][:],
        group["image_embeddings"],
        group["caption_embeddings"],
    )
    images[:] = np.eye(*images.shape, dtype=np.float32)
    captions[:] = images[:][owner]
    group["similarity"][:] = images[:] @ captions[:].T
