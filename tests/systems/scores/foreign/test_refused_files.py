"""Files that hold no scores, several, or damaged ones: one line says what is wrong and what to
type.
"""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import scipy.sparse
import torch
import zarr

from pipeline.foundation.evaluation.retrieval import rank
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns

SCORES = np.arange(72, dtype=np.float32).reshape(6, 12)
COLUMNS = Columns(captions_per_image=2)


class Other:
    """An object that only its own code can make."""


def _lists(path: Path, way: str, queries: int, number: int) -> None:
    """One candidate of each query, of which the last has this number."""
    ids = np.zeros((queries, 1), int)
    ids[-1] = number
    np.savez(path, **{f"{way}_ids": ids})


WRITTEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty.npy": (lambda path: path.touch(), "is empty"),
    "none.npy": (lambda path: np.save(path, np.zeros((0, 5))), "float64 [0, 5] is empty"),
    "one.npy": (
        lambda path: np.save(path, np.zeros(5)),
        "holds float64 [5]; expected a matrix of images x captions",
    ),
    "table.feather": (
        lambda path: pd.DataFrame(SCORES, columns=[*map(str, range(12))]).to_feather(path),
        "is a file of Arrow's or Feather's form, which is not read; numpy.save('scores.npy', ARRAY)",
    ),
    "raw.dat": (
        SCORES.tofile,
        "if it is 72 float32 or 36 float64 numbers as tofile and numpy.memmap write them",
    ),
    "wide.csv": (
        lambda path: path.write_bytes("0.5,0.25\n".encode("utf-16")),
        "is text in UTF-16; save it in UTF-8",
    ),
    "packed.npy.gz": (
        lambda path: path.write_bytes(gzip.compress(b"\x93NUMPY" + bytes(100))),
        "is another file that gzip packed; unpack it with gunzip",
    ),
    "sparse.npz": (
        lambda path: scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(SCORES)),
        "is a sparse matrix of scipy; numpy.save('scores.npy', scipy.sparse.load_npz(FILE).toarray())",
    ),
    "dict.npz": (
        lambda path: np.savez(path, **{f"{name}.jpg": row for name, row in enumerate(SCORES)}),
        "is a dict of 6 vectors by name, such as 0.jpg float32 [12]; of it, D, save numpy.stack(",
    ),
    "objects.npy": (
        lambda path: np.save(path, np.array({"sims": Other()}, object)),
        "holds test_refused_files.Other, and not only arrays in dicts and lists",
    ),
    "three.npz": (
        lambda path: np.savez(path, a=SCORES, b=SCORES, c=SCORES),
        "name the scores, {path}:a, or the vectors of images, then captions: {path}:a:b",
    ),
    "image.npz": (
        lambda path: np.savez(path, img_embs=SCORES, ids=np.arange(6), more=np.zeros(3)),
        "vectors of one side; name the other side's too: images.npy:captions.npy",
    ),
    "void.npz": (lambda path: np.savez(path), "holds no array"),
    "other.npz:d": (lambda path: np.savez(path, a=SCORES), "holds no 'd', but a float32 [6, 12]"),
    "ids.npz": (
        lambda path: np.savez(path, sims=SCORES, image_ids=np.arange(5)),
        "has 5 image ids for 6 images",
    ),
    "twice.npz": (
        lambda path: np.savez(
            path, sims=SCORES, image_ids=np.array(["a"] * 6), caption_ids=np.arange(12)
        ),
        "has the image id a twice",
    ),
    "unlike.npz": (
        lambda path: np.savez(path, sims_i2t=SCORES, sims_t2i=SCORES),
        "are no two directions of one pool",
    ),
    "module.pt": (
        lambda path: torch.save(torch.nn.Linear(2, 2), path),
        "holds a whole network (torch.nn.modules.linear.Linear): save its .state_dict()",
    ),
    "float8.pt": (
        lambda path: torch.save({"sims": torch.zeros(6, 12).to(torch.float8_e4m3fn)}, path),
        "holds float8 values (float8_e4m3fn): save .float()",
    ),
    "sparse.pt": (
        lambda path: torch.save({"sims": torch.zeros(6, 12).to_sparse()}, path),
        "holds a sparse tensor (torch._utils._rebuild_sparse_tensor): save its .to_dense()",
    ),
    "frame.pkl": (
        lambda path: pd.DataFrame(SCORES).to_pickle(path),
        "is a pickle of pandas (pandas.",
    ),
    "masked.npy": (
        lambda path: np.ma.array(SCORES, mask=SCORES < 1).dump(path),
        "holds a masked array (numpy.ma.core._mareconstruct): save its .filled(VALUE)",
    ),
    "tensor.pkl": (
        lambda path: path.write_bytes(pickle.dumps({"sims": torch.zeros(6, 12)})),
        "is a plain pickle of torch's tensors",
    ),
    "expanded.pt": (
        lambda path: torch.save(torch.zeros(1).expand(10**6, 10**6), path),
        "become more than",
    ),
    "object.pt": (
        lambda path: torch.save({"sims": Other()}, path),
        "save the tensors alone, torch.save(",
    ),
    "words.csv": (
        lambda path: path.write_text("image,caption\na.jpg,A dog.\nb.jpg,A cat.\n"),
        "'A dog.', which is no",
    ),
    "short.csv": (
        lambda path: path.write_text("1,2,3,4\n1,2,3\n"),
        "row 2 has 3 numbers, the first 4: is it cut",
    ),
    "scores.h5": (
        lambda path: h5py.File(path, "w").create_dataset("s", data=SCORES),
        "is a file of HDF5 form",
    ),
    "folder": (lambda path: path.mkdir(), "is an empty folder; expected a zarr array"),
    "list.json": (lambda path: path.write_text("[1, 2]"), "expected JSON, query: document: score"),
    "run.txt": (
        lambda path: path.write_text("caption:0 Q0 image:0 1 0.5 a\n"),
        "are no numbers from 0 with 2",
    ),
    "nan.npz": (
        lambda path: np.savez(
            path, t2i_ids=np.zeros((12, 1), int), t2i_scores=np.full((12, 1), np.nan)
        ),
        "is nan: it cannot be ranked",
    ),
    "bool.npy": (
        lambda path: np.save(path, SCORES > 0),
        "{path}: expected float16, float32 or float64",
    ),
    "wide.npy": (
        lambda path: np.save(path, np.zeros((6, 13))),
        "wide.npy: the matrix is 6 x 13, expected 6 images",
    ),
    "vectors.npz": (
        lambda path: np.savez(path, img=np.full((6, 3), np.nan), cap=np.ones((12, 3))),
        "vectors.npz: image embeddings: row 0, dimension 0 is nan",
    ),
    "beyond.npz": (
        lambda path: np.savez(path, t2i_ids=np.full((12, 1), 6), image_ids=np.arange(6) + 100),
        "lists candidate 6, which is neither an id nor a row of 6 candidates",
    ),
    "owned.npz": (
        lambda path: np.savez(path, sims=SCORES, caption_image=np.full(12, 6)),
        "its values are neither rows nor the file's image ids",
    ),
    "unowned.npz": (
        lambda path: np.savez(path, sims=SCORES, caption_image=np.full(12, -2)),
        "its values are neither rows nor the file's image ids",
    ),
    **{
        f"{way}{number}.npz": (
            partial(_lists, way=way, queries=queries, number=number),
            "its ids are no numbers from 0",
        )
        for way, queries, number in (("t2i", 12, 6), ("i2t", 6, 12), ("t2i", 12, -2))
    },
}


def refused(name: str, root: Path, columns: Columns = COLUMNS) -> str:
    with pytest.raises(InputError) as raised:
        open_system(name, columns, root=root)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.specification
@pytest.mark.parametrize("name", [*WRITTEN])
def test_a_file_of_no_scores_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    write, expected = WRITTEN[name]
    path = tmp_path / name.partition(":")[0]
    write(path)
    assert expected.format(path=path) in refused(name, tmp_path)


CUT: dict[str, Callable[[Path], Any]] = {
    "s.npy": lambda path: np.save(path, SCORES),
    "s.npz": lambda path: np.savez(path, sims=SCORES),
    "p.npz": lambda path: np.savez_compressed(path, sims=SCORES),
    "s.pt": lambda path: torch.save(torch.from_numpy(SCORES), path),
    "s.safetensors": lambda path: safetensors.torch.save_file(
        {"sims": torch.from_numpy(SCORES)}, path
    ),
    "s.json": lambda path: path.write_text(json.dumps({"caption:0": {"image:0": 0.5}})),
}


@pytest.mark.parametrize("name", [*CUT])
@pytest.mark.parametrize("share", [0.1, 0.6, 0.99])
def test_a_file_that_is_cut_short_is_refused_in_one_line(
    tmp_path: Path, name: str, share: float
) -> None:
    path = tmp_path / name
    CUT[name](path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert str(path) in refused(name, tmp_path)


@pytest.mark.parametrize("name", ["s.npy", "s.npz", "s.zarr"])
def test_scores_that_cannot_be_ranked_name_their_file(tmp_path: Path, name: str) -> None:
    spoilt = SCORES.copy()
    spoilt[3, 7] = np.inf
    write = {"s.npy": np.save, "s.npz": np.savez, "s.zarr": zarr.save_array}[name]
    write(tmp_path / name, spoilt)
    with pytest.raises(
        InputError, match=r"^\S*/s\.\w+: the similarity at row 3 .* column 7 .* is inf"
    ):
        rank(open_system(name, COLUMNS, root=tmp_path).scores, np.arange(12) // 2)


def test_a_file_that_is_not_there_and_a_zarr_without_a_chunk(tmp_path: Path) -> None:
    assert "no such file; expected a file of scores" in refused("s.npy", tmp_path)
    np.save(tmp_path / "s.npy", SCORES)
    assert "holds no 't.npy', but float32 [6, 12]" in refused("s.npy:t.npy", tmp_path)
    zarr.save_array(tmp_path / "s.zarr", SCORES)
    next(file for file in (tmp_path / "s.zarr" / "c").rglob("*") if file.is_file()).unlink()
    assert "is missing" in refused("s.zarr", tmp_path)


def test_ids_are_those_of_the_manifest(tmp_path: Path, scenes: Manifest) -> None:
    """Rows in another order are found by their ids, as numbers or by images' files; other ids are
    refused.
    """
    scenes.save(tmp_path / "m.parquet")
    split, columns = scenes.split("test"), Columns(manifest=tmp_path / "m.parquet")
    images, captions = len(split.image_ids), len(split.caption_ids)
    scores, rows = np.random.default_rng(0).random((images, captions)), np.arange(images)[::-1]
    files = scenes.images["file"].to_numpy()[split.store_rows].astype(str)
    for ids in (split.image_ids, files):
        np.savez(
            tmp_path / "s.npz",
            sims=scores[rows],
            image_ids=ids[rows],
            caption_ids=split.caption_ids,
        )
        system = open_system("s.npz", columns, root=tmp_path)
        assert system.has_ids
        assert system.image_ids.tolist() == split.image_ids[rows].tolist()
        assert (
            system.image_ids[system.caption_image] == split.image_ids[split.caption_image]
        ).all()
    np.savez(
        tmp_path / "s.npz",
        sims=scores,
        image_ids=split.image_ids + 10**6,
        caption_ids=split.caption_ids,
    )
    assert "is in the manifest's test split, whose ids are such as" in refused(
        "s.npz", tmp_path, columns
    )
    mixed = np.where(np.arange(images) == 1, 10**6, split.image_ids)
    np.savez(tmp_path / "s.npz", sims=scores, image_ids=mixed, caption_ids=split.caption_ids)
    assert f"1 of its {images} image ids, such as 1000000, are not in" in refused(
        "s.npz", tmp_path, columns
    )


def test_ids_of_text_need_no_manifest(tmp_path: Path) -> None:
    """A caption a.jpg#1 is of a.jpg; the same text is the same id in another file."""
    images = np.array(["b.jpg", "a.jpg"])
    captions = np.array(["a.jpg#0", "b.jpg#0", "b.jpg#1", "a.jpg#1"])
    np.savez(tmp_path / "s.npz", sims=np.ones((2, 4)), image_ids=images, caption_ids=captions)
    np.savez(tmp_path / "t.npz", sims=np.ones((2, 4)), image_ids=images[::-1], caption_ids=captions)
    one, other = (open_system(name, COLUMNS, root=tmp_path) for name in ("s.npz", "t.npz"))
    assert one.caption_image.tolist() == [1, 0, 0, 1]
    assert one.image_of_caption() == other.image_of_caption()
