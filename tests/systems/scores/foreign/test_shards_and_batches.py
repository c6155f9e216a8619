"""Folders of shards and lists of batches are the arrays that they were cut from."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.foundation.evaluation.retrieval import rank
from pipeline.foundation.files import expansion
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns

COLUMNS = Columns(captions_per_image=2)
RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(30, 8)).astype("f4")
CAPTIONS = IMAGES.repeat(2, 0) + RNG.normal(size=(60, 8)).astype("f4")


def expected() -> list[float]:
    """The rank of each caption's image, by sorting."""
    scores = CAPTIONS @ IMAGES.T
    return [int((row > row[number // 2]).sum()) + 1 for number, row in enumerate(scores)]


def ranks(text: str) -> list[float]:
    pool = open_system(text, COLUMNS)
    return rank(pool.scores, pool.caption_image).t2i.ranks().tolist()


def shards(folder: Path, values: np.ndarray, name: str, start: int = 0) -> Path:
    """Write twelve shards, whose names are in another order than their numbers."""
    folder.mkdir(parents=True)
    for number, part in enumerate(np.array_split(values, 12), start):
        np.save(folder / f"{name}_{number}.npy", part)
    return folder


@pytest.mark.parametrize("start", [0, 1])
def test_shards_are_joined_by_their_numbers(start: int, tmp_path: Path) -> None:
    images = shards(tmp_path / "img_emb", IMAGES, "img_emb", start)
    captions = shards(tmp_path / "text_emb", CAPTIONS, "text_emb", start)
    assert ranks(f"{images}:{captions}") == expected()
    np.save(tmp_path / "captions.npy", CAPTIONS)
    assert ranks(f"{images}:{tmp_path / 'captions.npy'}") == expected()


def lose(folder: Path) -> None:
    (folder / "img_emb_4.npy").unlink()


def lose_first(folder: Path) -> None:
    (folder / "img_emb_0.npy").unlink()
    (folder / "img_emb_1.npy").unlink()


def repeat(folder: Path) -> None:
    np.save(folder / "img_emb_04.npy", IMAGES[:3])


def widen(folder: Path) -> None:
    np.save(folder / "img_emb_4.npy", np.zeros((3, 9), "f4"))


def add_other(folder: Path) -> None:
    np.save(folder / "text_emb_0.npy", CAPTIONS)


def clear(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def hold_several(folder: Path) -> None:
    ragged = np.empty(2, object)
    ragged[:] = [IMAGES[0], IMAGES[0, :5]]
    np.save(folder / "img_emb_4.npy", ragged, allow_pickle=True)


def only_tensors(folder: Path) -> None:
    clear(folder)
    for number in range(3):
        torch.save(torch.zeros(3, 8), folder / f"{number}.pt")


REFUSED = {
    "shard 4 is missing": lose,
    "shard 1 is missing": lose_first,
    "two shards of the number 4": repeat,
    "no rows of one array": widen,
    "are no shards of one array": add_other,
    r"img_emb_4\.npy: holds 2 arrays by name": hold_several,
    "is an empty folder": clear,
    "a folder of 3 .pt files": only_tensors,
}


@pytest.mark.parametrize("refusal", REFUSED)
def test_a_folder_that_is_not_whole_is_refused(refusal: str, tmp_path: Path) -> None:
    folder = shards(tmp_path / "img_emb", IMAGES, "img_emb")
    REFUSED[refusal](folder)
    np.save(tmp_path / "captions.npy", CAPTIONS)
    with pytest.raises(InputError, match=refusal):
        open_system(f"{folder}:{tmp_path / 'captions.npy'}", COLUMNS)


def test_a_folder_of_both_sides_names_them(tmp_path: Path) -> None:
    shards(tmp_path / "img_emb", IMAGES, "img_emb")
    shards(tmp_path / "text_emb", CAPTIONS, "text_emb")
    with pytest.raises(InputError, match=f"{tmp_path}/img_emb:{tmp_path}/text_emb$"):
        open_system(str(tmp_path), COLUMNS)


def test_lists_of_batches_are_joined(tmp_path: Path) -> None:
    images, captions = torch.from_numpy(IMAGES), torch.from_numpy(CAPTIONS)
    both: dict[str, Any] = {
        "image_features": [*images.split(7)],
        "text_features": [*captions.split(16)],
    }
    torch.save(both, tmp_path / "both.pt")
    assert ranks(str(tmp_path / "both.pt")) == expected()
    for name, tensor in (("im", images), ("ca", captions)):
        (tmp_path / f"{name}.pkl").write_bytes(
            pickle.dumps([batch.numpy() for batch in tensor.split(7)])
        )
    assert ranks(f"{tmp_path}/im.pkl:{tmp_path}/ca.pkl") == expected()


def test_two_sides_in_a_list_are_no_batches(tmp_path: Path) -> None:
    torch.save([torch.from_numpy(CAPTIONS), torch.from_numpy(IMAGES)], tmp_path / "both.pt")
    with pytest.raises(InputError, match="holds 2 arrays that may be meant"):
        open_system(str(tmp_path / "both.pt"), COLUMNS)
    assert ranks(f"{tmp_path}/both.pt:1:0") == expected()


def test_a_batch_that_is_listed_often_is_counted_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "ALLOWED", 1 << 20)
    many = IMAGES.repeat(100, 0)
    held = {"image_embs": [many] * 50, "text_embs": [many.repeat(2, 0)] * 50}
    (tmp_path / "batches.pkl").write_bytes(pickle.dumps(held))
    with pytest.raises(InputError, match=r"bytes become more than .* for each name"):
        ranks(str(tmp_path / "batches.pkl"))
