"""Folders of clip-retrieval: the numbers are those of plain NumPy."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_files import PHOTOS, recall_at_1

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns


def write_shard(folder: Path, number: int, images: np.ndarray, captions: np.ndarray) -> None:
    """Write a partition as clip-retrieval does. images: the number of each row's image."""
    for name in ("img_emb", "text_emb", "metadata"):
        (folder / name).mkdir(exist_ok=True)
    np.save(folder / f"img_emb/img_emb_{number}.npy", PHOTOS[images].astype(np.float16))
    np.save(folder / f"text_emb/text_emb_{number}.npy", captions.astype(np.float16))
    paths = [f"/photos/{image}.jpg" for image in images]
    pd.DataFrame({"image_path": paths, "caption": paths}).to_parquet(
        folder / f"metadata/metadata_{number}.parquet"
    )


def test_rows_of_one_path_are_one_image_of_clip_retrieval(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    image_of_row = rng.permutation(np.repeat(np.arange(8), 5))
    images = PHOTOS
    captions = images[image_of_row] + rng.normal(size=(40, 6))
    for shard in range(2):
        rows = slice(20 * shard, 20 * shard + 20)
        write_shard(tmp_path, shard, image_of_row[rows], captions[rows])
    halves = captions.astype(np.float16).astype(np.float64), images.astype(np.float16)
    best = (halves[0] @ halves[1].T).argmax(1)
    expected = 100 * float(np.mean(best == image_of_row))
    assert recall_at_1(str(tmp_path)) == pytest.approx(expected)
    assert "another vector" not in open_system(str(tmp_path)).read_as
    vectors = np.load(tmp_path / "img_emb/img_emb_1.npy")
    vectors[-1] *= np.float16(1.5)
    np.save(tmp_path / "img_emb/img_emb_1.npy", vectors)
    assert "1 row of an image with another vector" in open_system(str(tmp_path)).read_as
    pipe = tmp_path / "metadata/metadata_1.parquet"
    pipe.unlink()
    os.mkfifo(pipe)  # pyarrow would wait for its writer
    with pytest.raises(InputError, match=r"metadata_1\.parquet: is no regular file"):
        open_system(str(tmp_path))


def test_partitions_without_rows_have_no_shards(tmp_path: Path, rng: np.random.Generator) -> None:
    """clip-retrieval writes nothing for them, in none of its folders."""
    rows = np.repeat(np.arange(8), 5)
    captions = PHOTOS[rows] + rng.normal(size=(40, 6))
    numbers = [1, 2, 4, 7]
    for number, part in zip(numbers, np.split(np.arange(40), 4), strict=True):
        write_shard(tmp_path, number, rows[part], captions[part])
    halves = captions.astype(np.float16).astype(np.float64), PHOTOS.astype(np.float16)
    expected = 100 * float(np.mean((halves[0] @ halves[1].T).argmax(1) == rows))
    assert recall_at_1(str(tmp_path)) == pytest.approx(expected)
    assert "3 empty partitions: no shard 3, 5, 6 in any" in open_system(str(tmp_path)).read_as
    # Rows that moved from one file to another, as many in all.
    table = tmp_path / "metadata/metadata_4.parquet"
    whole = pd.read_parquet(table)
    whole[:4].to_parquet(table)
    with pytest.raises(InputError, match=r"shard 4 has .*\[10, 6\].* and 4 rows in metadata"):
        open_system(str(tmp_path))
    table.unlink()
    with pytest.raises(InputError, match="shard 4 is missing in metadata, and there in img_emb"):
        open_system(str(tmp_path))


def test_a_folder_of_clip_retrieval_says_which_one_is_missing(tmp_path: Path) -> None:
    rows = np.arange(8)
    write_shard(tmp_path, 0, rows, PHOTOS)
    assert "of 1 part," in open_system(str(tmp_path), Columns(captions_per_image=1)).read_as
    for name in ("img_emb", "text_emb", "metadata"):
        with pytest.raises(InputError, match=f"{name}: is one of .*; name {tmp_path}$"):
            open_system(str(tmp_path / name))
    away = tmp_path / "away"
    away.mkdir()
    for name, said in (
        ("img_emb", "has clip-retrieval's text_emb and metadata, and lacks img_emb"),
        ("text_emb", "has clip-retrieval's img_emb and metadata, and lacks text_emb"),
        ("metadata", f"name .* images first: {tmp_path}/img_emb:{tmp_path}/text_emb"),
    ):
        (tmp_path / name).rename(away / name)
        left = "text_emb" if name == "img_emb" else "img_emb"
        for typed in (tmp_path, tmp_path / left):
            with pytest.raises(InputError, match=said):
                open_system(str(typed))
        (away / name).rename(tmp_path / name)
