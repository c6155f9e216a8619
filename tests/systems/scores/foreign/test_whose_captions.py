"""Files say in many ways which images and captions their rows are; what they say is read, what
cannot be read is refused, and what is assumed is said.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zarr

from pipeline.foundation.evaluation.retrieval import mistakes
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.foreign.arrays import Array, of_values
from pipeline.judge.systems.scores.judged import Columns, notes_of_vectors

IMAGES = 30
COUNT = np.full(IMAGES, 5)
COUNT[3], COUNT[20] = 4, 6
OWNER = np.repeat(np.arange(IMAGES), COUNT)
CAPTIONS = len(OWNER)
MIXED = np.random.default_rng(0).permutation(OWNER)
SHOWN = np.random.default_rng(1).normal(size=(IMAGES, 8)).astype(np.float32)
TEXTS = np.random.default_rng(2).normal(size=(CAPTIONS, 8)).astype(np.float32)
VECTORS = {"image_features": SHOWN, "text_features": TEXTS}
IDS = np.random.default_rng(3).permutation(IMAGES) + 1000
NAMES = np.array([f"photos/{each}.jpg" for each in IDS])
LISTED = {int(row): np.flatnonzero(row == MIXED).tolist() for row in range(IMAGES)}
PADDED = np.full((IMAGES, max(map(len, LISTED.values()))), -1)
for row, held in LISTED.items():
    PADDED[row, : len(held)] = held
PAIRED = np.stack([MIXED, np.arange(CAPTIONS)])
ONE = np.zeros((IMAGES, CAPTIONS), bool)
ONE[MIXED, np.arange(CAPTIONS)] = True
# What is beside the vectors -> what it is called where something is read by it.
OWNERS: dict[str, dict[str, Any]] = {
    "caption_image": {"caption_image": MIXED},
    "a column": {"caption_image": MIXED[:, None]},
    "a row": {"image_ids": IDS[None], "text_image_ids": IDS[MIXED][None]},
    "floats": {"text_to_image_map": MIXED.astype(np.float64)},
    "uint16": {"cap2img": MIXED.astype(np.uint16)},
    "ids": {"image_ids": IDS, "text_image_ids": IDS[MIXED]},
    "ids of other words": {"img_ids": IDS, "caption_img_ids": IDS[MIXED]},
    "names": {"image_names": NAMES, "text_image_names": NAMES[MIXED]},
    "names without folder": {
        "image_paths": NAMES,
        "image_of_caption": np.array([f"{each}.jpg" for each in IDS[MIXED]]),
    },
    "rows beside ids": {"image_ids": np.roll(np.arange(IMAGES), 1), "caption_image": MIXED},
    "captions' ids": {
        "image_ids": NAMES,
        "caption_ids": np.array([f"{NAMES[row]}#{at}" for at, row in enumerate(MIXED)]),
    },
    "captions by their images' ids": {"image_ids": IDS, "caption_ids": IDS[MIXED]},
    "how many": {"captions_per_image": COUNT},
    "how many, as floats": {"n_caps": COUNT.astype(np.float32)},
    "how many, by another name": {"lengths": COUNT},
    "where each image's begin": {"cap_start": np.cumsum(COUNT) - COUNT},
    "where each image's begin and end": {"offsets": np.array([0, *np.cumsum(COUNT)])},
    "what is right": {"gt": MIXED},
    "lists of what is right": {"gt": PADDED},
    "rows of pairs": {"positive_pairs": PAIRED.T},
    "rows of turned pairs": {"pairs": PAIRED[::-1].T},
    "two rows of pairs": {"matches": PAIRED},
    "pairs in floats": {"gt": ONE.astype(np.float32)},
    "turned pairs in floats": {"labels": ONE.T.astype(np.float64)},
    "pairs": {"positive_pairs": ONE},
    "turned pairs": {"labels": ONE.T.astype(np.int64)},
    "a name that says nothing": {"idx_b": MIXED},
    "twice": {"caption_image": MIXED, "labels": ONE},
}
# Beside the vectors in a pickle and a file of torch.
CONTAINERS: dict[str, dict[str, Any]] = {
    "txt2img": {"txt2img": {at: int(row) for at, row in enumerate(MIXED)}},
    "unsorted": {"txt2img": {int(at): int(MIXED[at]) for at in np.argsort(-MIXED)}},
    "of texts": {"txt2img": {str(at): str(row) for at, row in enumerate(MIXED)}},
    "by captions": {"text2image": {f"caption {at}": int(row) for at, row in enumerate(MIXED)}},
    "by ids": {"image_ids": IDS.tolist(), "t2i": dict(enumerate(IDS[MIXED].tolist()))},
    "img2txt": {"img2txt": LISTED},
    "lists": {"image_to_text_map": [*LISTED.values()]},
    "lists of one": {"text_to_image_map": [[int(row)] for row in MIXED]},
    "tuple": {"caption_image": tuple(MIXED.tolist())},
    "numpy's numbers": {"caption_image": [*MIXED]},
    "right answers of each image": {"gt": LISTED},
    "right answers of each caption": {"gt": dict(enumerate(MIXED.tolist()))},
    "lists of right answers": {"labels": [*LISTED.values()]},
    "lists of one right answer": {"ground_truth": [[int(row)] for row in MIXED]},
    "in a dict": {"maps": {"caption_to_image": MIXED.tolist()}},
    "img2txt by ids": {
        "image_ids": NAMES.tolist(),
        "caption_ids": [f"c{at}" for at in range(CAPTIONS)],
        "img2txt": {str(NAMES[row]): [f"c{at}" for at in held] for row, held in LISTED.items()},
    },
}


def opened(folder: Path, name: str, columns: Columns = Columns()) -> Any:
    return open_system(name, columns, root=folder)


def refused(folder: Path, name: str, columns: Columns = Columns()) -> str:
    with pytest.raises(InputError) as raised:
        opened(folder, name, columns)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("said", [*OWNERS])
def test_each_captions_image_is_what_arrays_say(tmp_path: Path, said: str) -> None:
    beside = OWNERS[said]
    np.savez(tmp_path / "a.npz", **VECTORS, **beside)
    zarr.save_group(tmp_path / "a.zarr", **VECTORS, **beside)
    owner = OWNER if said.startswith(("how many", "where")) else MIXED
    for name in ("a.npz", "a.zarr"):
        system = opened(tmp_path, name)
        assert system.caption_image.tolist() == owner.tolist()
        assert "assumed" not in system.read_as
        assert "not used" not in system.read_as
        assert "each caption's image by " in system.read_as


@pytest.mark.parametrize("said", [*CONTAINERS])
def test_each_captions_image_is_what_dicts_and_lists_say(tmp_path: Path, said: str) -> None:
    tree = {**VECTORS, **CONTAINERS[said]}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(tree))
    torch.save(
        {
            name: torch.from_numpy(each) if isinstance(each, np.ndarray) else each
            for name, each in tree.items()
        },
        tmp_path / "a.pt",
    )
    for name in ("a.pkl", "a.pt"):
        system = opened(tmp_path, name)
        assert system.caption_image.tolist() == MIXED.tolist()
        assert "not used" not in system.read_as


def test_images_without_ids_are_in_the_order_of_ascending_names(tmp_path: Path) -> None:
    """Where each caption names its image, and images have no ids."""
    names = np.array([f"{row:05}.jpg" for row in OWNER])
    np.savez(tmp_path / "a.npz", **VECTORS, text_image_names=names)
    assert opened(tmp_path, "a.npz").caption_image.tolist() == OWNER.tolist()
    np.savez(tmp_path / "b.npz", **VECTORS, image_ids=OWNER * 7 + 12)
    assert opened(tmp_path, "b.npz").caption_image.tolist() == OWNER.tolist()
    np.savez(tmp_path / "c.npz", **VECTORS, text_image_names=names[::-1])
    assert "save image_ids, or caption_image" in refused(tmp_path, "c.npz")


def test_two_files_have_ids_of_their_own(tmp_path: Path) -> None:
    np.savez(tmp_path / "i.npz", vectors=SHOWN, ids=IDS)
    np.savez(tmp_path / "c.npz", vectors=TEXTS, ids=np.arange(CAPTIONS), image_ids=IDS[MIXED])
    system = opened(tmp_path, "i.npz:c.npz")
    assert system.caption_image.tolist() == MIXED.tolist()
    assert system.image_ids.tolist() == IDS.tolist()


def test_images_that_are_there_once_for_each_caption_tell_it(tmp_path: Path) -> None:
    """With their ids, and whatever number is assumed; ids that differ say that images do."""
    shown, ids = np.repeat(SHOWN, 3, 0), np.repeat(IDS, 3)
    texts = np.random.default_rng(4).normal(size=(3 * IMAGES, 8)).astype(np.float32)
    np.savez(tmp_path / "a.npz", img_embs=shown, cap_embs=texts, image_ids=ids)
    system = opened(tmp_path, "a.npz")
    assert system.image_ids.tolist() == IDS.tolist()
    assert system.caption_image.tolist() == np.repeat(np.arange(IMAGES), 3).tolist()
    said = refused(tmp_path, "a.npz", Columns(captions_per_image=1))
    assert "gives image 0 3 captions, and --captions-per-image says 1" in said
    np.savez(tmp_path / "b.npz", img_embs=shown, cap_embs=texts, image_ids=np.arange(3 * IMAGES))
    assert opened(tmp_path, "b.npz", Columns(captions_per_image=1)).shape == (90, 90)


EVEN = np.random.default_rng(5).normal(size=(5 * IMAGES, 8)).astype(np.float32)
PLAIN = {"image_features": SHOWN, "text_features": EVEN}
# What is beside the vectors, five captions an image -> what the error says.
CONTRADICTING: dict[str, tuple[dict[str, Any], str]] = {
    "rows or ids": (
        {"image_ids": np.roll(np.arange(IMAGES), 1), "cap2img": np.arange(150) // 5},
        "may be read in several ways, such as by rows or by ids",
    ),
    "too few": ({"caption_image": np.arange(149) // 5}, "does not say which of 30 images"),
    "unknown": (
        {"image_ids": IDS, "text_image_ids": np.arange(150) % 30 + 5},
        "neither rows nor the file's image ids",
    ),
    "beyond": (
        {"caption_image": np.arange(150)[::-1] // 5 + 1},
        "caption_image int64 [150] does not say",
    ),
    "two": (
        {"caption_image": np.arange(150) // 5, "txt2img": np.arange(150) % 30},
        "give captions different images",
    ),
    "one set of numbers": (
        {"image_ids": np.arange(30), "caption_ids": np.arange(150)[::-1] % 40},
        "twice",
    ),
    "not of every image": (
        {"gt": np.arange(150)[::-1] // 10},
        "gt int64 [150] may say which image each caption is of",
    ),
    "several images": (
        {
            "positive_pairs": np.eye(30, dtype=bool)[np.arange(150) % 30].T
            | (np.arange(30) == 4)[:, None]
        },
        "positive_pairs bool [30, 150] may say which image",
    ),
    "several images, listed": (
        {"gt": np.stack([np.arange(150) % 30, np.arange(150) % 29], 1)},
        "gt int64 [150, 2] may say which image",
    ),
    "captions of other images, listed": (
        {"gt": np.arange(300).reshape(30, 10) % 150},
        "gt int64 [30, 10] may say which image",
    ),
    "numbered captions of unknown images": (
        {"caption_ids": np.array([f"{at % 30}.jpg#{at // 30}" for at in range(150)])},
        "does not say which",
    ),
}


@pytest.mark.specification
@pytest.mark.parametrize("said", [*CONTRADICTING])
def test_what_contradicts_the_assumed_order_is_refused(tmp_path: Path, said: str) -> None:
    beside, expected = CONTRADICTING[said]
    np.savez(tmp_path / "a.npz", **PLAIN, **beside)
    assert expected in refused(tmp_path, "a.npz")


def test_what_is_assumed_and_what_is_not_used_is_said(tmp_path: Path) -> None:
    more = {f"more_{at}": np.zeros((at + 1, 2, 2)) for at in range(8)}
    np.savez(tmp_path / "a.npz", **PLAIN, lengths=np.arange(150), epoch=3, **more)
    np.save(tmp_path / "s.npy", SHOWN @ EVEN.T)
    read_as = opened(tmp_path, "a.npz").read_as
    assert "each image's 5 captions follow one another (assumed)" in read_as
    assert "not used: lengths int64 [150], more_0 float64 [1, 2, 2]" in read_as
    assert read_as.endswith(" and 3 more")
    assert opened(tmp_path, "s.npy").read_as.endswith("follow one another (assumed)")
    five = opened(tmp_path, "s.npy", Columns(captions_per_image=5))
    assert five.read_as == "a NumPy array: float32 [30, 150]"


# Ids that cannot be read as ids, by the kind of file that holds them.
UNREADABLE: dict[str, tuple[Any, str]] = {
    "fractions": (np.arange(IMAGES) + 0.5, "its image ids are float64, such as 0.5"),
    "rounded": (np.arange(IMAGES, dtype=np.float32) + 2**24, "its image ids are float32"),
    "missing": (np.where(np.arange(IMAGES) == 3, np.nan, np.arange(IMAGES)), "float64"),
    "bool": (np.arange(IMAGES) % 2 == 0, "its image ids are bool"),
    "dates": (np.arange(IMAGES).astype("M8[s]"), "its image ids are datetime64[s]"),
    "complex": (np.arange(IMAGES) + 0j, "its image ids are complex128"),
    "large": (np.arange(IMAGES, dtype=np.uint64) + np.uint64(2**63), "save such ids as texts"),
    "objects": (np.array([None, *range(1, IMAGES)], object), "holds a pickle"),
    "empty": (np.array(["", *map(str, range(1, IMAGES))]), "row 1 of its image ids is empty"),
    "twice": (np.array([3, *range(IMAGES - 1, 0, -1)]), "has the image id 3 twice"),
    "too few": (np.arange(IMAGES - 1), "has 29 image ids for 30 images"),
    "two columns": (np.zeros((IMAGES, 2), "M8[s]"), "save ids as one column"),
    "two columns of whole numbers": (
        np.arange(2 * IMAGES).reshape(IMAGES, 2),
        "save ids as one column",
    ),
    "one text": (np.array("0,1,2"), "save ids as one column"),
    "blocks": (np.arange(2 * IMAGES).reshape(IMAGES, 2, 1), "save ids as one column"),
    "a half": (np.arange(IMAGES) + np.eye(IMAGES)[3] / 2, "float64, such as 3.5"),
}
UNREADABLE_LISTS: dict[str, tuple[Any, str]] = {
    "None": ([None, *range(1, IMAGES)], "image_ids is a list of None and int"),
    "mixed": (["a.jpg", *range(1, IMAGES)], "image_ids is a list of int and str"),
    "tuples": ([(each, "a") for each in range(IMAGES)], "image_ids is a list of tuples"),
    "lists": ([[each] * (1 + each % 2) for each in range(IMAGES)], "image_ids is a list of lists"),
    "dicts": ([{"id": each} for each in range(IMAGES)], "image_ids is a list of dicts"),
    "a dict": ({f"{each}.jpg": "a" for each in range(IMAGES)}, "save its ids in the order"),
    "a set": ({*range(IMAGES)}, "image_ids is a set"),
    "one text": (" ".join(map(str, range(IMAGES))), "image_ids is one text"),
    "one number": (7, "image_ids is one int"),
    "none of them": ([], "image_ids is an empty list"),
    "empty": ({}, "image_ids is an empty dict"),
    "bools": ([True] * IMAGES, "its image ids are bool"),
    "beyond floats": ([2**53 + 1, 0.5, *range(2, IMAGES)], "image_ids is a list of float and int"),
}


@pytest.mark.parametrize("kind", [*UNREADABLE])
def test_ids_that_are_none_are_refused(tmp_path: Path, scenes: Manifest, kind: str) -> None:
    """With a manifest, too, where the file's rows may be in its order or not."""
    ids, expected = UNREADABLE[kind]
    np.savez(tmp_path / "a.npz", **PLAIN, image_ids=ids, allow_pickle=True)
    assert expected in refused(tmp_path, "a.npz")
    scenes.save(tmp_path / "m.parquet")
    assert refused(tmp_path, "a.npz", Columns(tmp_path / "m.parquet"))


@pytest.mark.parametrize("kind", [*UNREADABLE_LISTS])
def test_lists_of_ids_that_are_none_are_refused(tmp_path: Path, kind: str) -> None:
    ids, expected = UNREADABLE_LISTS[kind]
    tree = {**PLAIN, "image_ids": ids}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(tree))
    assert expected in refused(tmp_path, "a.pkl")


def test_names_of_models_are_no_ids(tmp_path: Path) -> None:
    """Texts beside the arrays that say how these were made, and what is not there."""
    texts = {"image_model_name": "ViT", "text_encoder_name": "BERT", "dataset_name": "coco"}
    tree = {**PLAIN, **texts, "history": [], "image_ids": None, "image_key": "jpg", "caption_id": 3}
    torch.save({name: _tensor(each) for name, each in tree.items()}, tmp_path / "a.pt")
    np.savez(tmp_path / "a.npz", **PLAIN, **texts, image_key="jpg")
    for name in ("a.pt", "a.npz"):
        assert opened(tmp_path, name).shape == (IMAGES, 5 * IMAGES)


def _tensor(value: Any) -> Any:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def test_annotations_as_a_list_of_dicts_say_each_captions_image(tmp_path: Path) -> None:
    """As COCO's files have them, with what else is in them; refused where they cannot be read."""
    annotations = [
        {"image_id": int(IDS[row]), "id": 7 * at + 3, "caption": "a b", "tokens": ["a", "b"]}
        for at, row in enumerate(MIXED)
    ]
    images = [
        {"file_name": str(name), "id": int(each), "height": 480, "license": None}
        for name, each in zip(NAMES, IDS, strict=True)
    ]
    whole = {"annotations": annotations, "images": images}
    ids = {"annotations": annotations, "image_ids": IDS.tolist()}
    rows_of_images = {"annotations": [{"image_id": int(row)} for row in MIXED]}
    for beside in (whole, ids, rows_of_images):
        (tmp_path / "a.pkl").write_bytes(pickle.dumps({**VECTORS, **beside}))
        system = opened(tmp_path, "a.pkl")
        assert system.caption_image.tolist() == MIXED.tolist()
        assert "assumed" not in system.read_as
    assert opened(tmp_path, "a.pkl").shape == (IMAGES, CAPTIONS)
    (tmp_path / "b.pkl").write_bytes(pickle.dumps({**VECTORS, **whole}))
    assert opened(tmp_path, "b.pkl").image_ids.tolist() == IDS.tolist()
    assert opened(tmp_path, "b.pkl").caption_ids.tolist() == [7 * at + 3 for at in range(CAPTIONS)]
    lacking = [*annotations[:-1], {"id": 5}]
    (tmp_path / "c.pkl").write_bytes(pickle.dumps({**VECTORS, "annotations": lacking}))
    assert "annotations.image_id is a list of None and int" in refused(tmp_path, "c.pkl")


def test_the_manifests_order_is_said_and_refused_where_the_file_has_another(
    tmp_path: Path, scenes: Manifest
) -> None:
    """By ids of one side, by each caption's image, or by the captions themselves."""
    scenes.save(tmp_path / "m.parquet")
    split, columns = scenes.split("test"), Columns(tmp_path / "m.parquet")
    images, captions, owner = split.image_ids, split.caption_ids, split.caption_image
    texts = scenes.rows(["caption_id", "caption"]).set_index("caption_id")["caption"]
    texts = texts[captions].to_numpy().astype(str)
    files = scenes.images["file"].to_numpy()[split.store_rows].astype(str)
    scores = {"sims": np.random.default_rng(0).random((len(images), len(captions)))}
    turned = np.arange(len(captions))[::-1]
    read: dict[str, dict[str, Any]] = {
        "images and captions in the manifest's order (assumed)": {},
        "captions in the manifest's order (assumed)": {"image_ids": images},
        "s and captions in the manifest's order (assumed)": {"txt2img": owner},
        "images in the manifest's order (assumed)": {"captions": np.char.upper(texts)},
        "float64 [4, 20]": {"image_ids": files, "caption_ids": captions},
    }
    for expected, beside in read.items():
        np.savez(tmp_path / "a.npz", **scores, **beside)
        read_as = opened(tmp_path, "a.npz", columns).read_as
        assert read_as.endswith(expected), expected
        assert "not used" not in read_as
    other: dict[str, dict[str, Any]] = {
        "save caption_ids too": {"image_ids": images[::-1]},
        "save image_ids too": {"caption_ids": captions[::-1]},
        "txt2img int64 [20] gives captions other images": {"txt2img": owner[::-1]},
        "other images than the manifest": {"text_image_names": files[owner][turned]},
        "columns are in another order": {"captions": texts[turned]},
        "its image ids are float64": {"image_ids": images + 0.5},
        "row 2 of its image ids is empty": {"image_ids": np.array([files[0], "", *files[2:]])},
        "iids int64 [4] has all images in another order": {"iids": images[::-1]},
        "x float64 [4] has all images in another order": {"x": images[::-1].astype(float)},
        "img_index int64 [4] has all images in another order": {"img_index": np.arange(4)[::-1]},
        "y int64 [1, 20] has all captions in another order": {"y": captions[None, ::-1]},
    }
    for expected, beside in other.items():
        np.savez(tmp_path / "a.npz", **scores, **beside)
        assert expected in refused(tmp_path, "a.npz", columns)
    unlike = {"x": images, "labels": images[::-1] + 99, "order": np.arange(4)[::-1], "caps": images}
    np.savez(tmp_path / "a.npz", **scores, **unlike)
    assert "not used: x int64 [4], labels" in opened(tmp_path, "a.npz", columns).read_as
    ids = {"image_ids": images[::-1], "text_image_ids": images[owner]}
    np.savez(tmp_path / "a.npz", **scores, **ids)
    assert opened(tmp_path, "a.npz", columns).image_ids.tolist() == images[::-1].tolist()


def test_images_that_are_there_almost_equal_are_named(tmp_path: Path) -> None:
    """As a GPU rounds them in other batches; in groups of one size or of several."""
    noise = np.random.default_rng(6).normal(size=(CAPTIONS, 8)).astype(np.float32)
    exact = SHOWN[OWNER]
    groups = {
        "150 rows of image vectors come in 30 groups of 5 that are almost equal": np.repeat(
            SHOWN, 5, 0
        )
        + 1e-5 * noise,
        "30 groups of 5 that are almost equal": np.repeat(SHOWN, 5, 0) + 1e-2 * noise,
        "30 groups of 4 to 6 that are almost equal": exact + 1e-4 * noise,
        "30 groups of 4 to 6 that are equal": exact,
    }
    for expected, shown in groups.items():
        np.save(tmp_path / "i.npy", shown)
        np.save(tmp_path / "c.npy", TEXTS)
        assert expected in refused(tmp_path, "i.npy:c.npy")
        system = opened(tmp_path, "i.npy:c.npy", Columns(captions_per_image=1))
        (note,) = notes_of_vectors(system)
        assert expected in note
    for other in (TEXTS, TEXTS[:, :1] + 1e-3 * noise, np.concatenate([SHOWN, SHOWN, SHOWN])):
        assert mistakes.of_rows(other) == ""


def test_a_number_of_captions_that_is_no_multiple_says_what_to_do(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.zeros((100, 502), np.float32))
    for columns in (Columns(), Columns(captions_per_image=5)):
        said = refused(tmp_path, "s.npy", columns)
        assert "502 is no multiple of 100" in said
        assert "save caption_image" in said
        assert "COCO's protocols take the first five captions" in said
    np.save(tmp_path / "t.npy", np.zeros((100, 700), np.float32))
    assert "--captions-per-image 7, or --manifest, says" in refused(tmp_path, "t.npy")


def test_a_file_for_each_direction_is_read_as_both(tmp_path: Path) -> None:
    """Whichever is named first, and where one is the other turned; files' names count, too."""
    i2t = np.random.default_rng(7).random((IMAGES, 5 * IMAGES))
    t2i = np.random.default_rng(8).random((IMAGES, 5 * IMAGES))
    square = i2t[:, ::5]
    for name, scores in (
        ("a", i2t),
        ("b", t2i.T),
        ("sims_i2t", square),
        ("sims_t2i", t2i[:, ::5].T),
    ):
        np.save(tmp_path / f"{name}.npy", scores)
    np.save(tmp_path / "q.npy", square)
    np.save(tmp_path / "turned.npy", square.T)
    one = Columns(captions_per_image=1)
    cases = (
        ("a.npy:b.npy", Columns(), i2t, t2i),
        ("b.npy:a.npy", Columns(), i2t, t2i),
        ("sims_t2i.npy:sims_i2t.npy", one, square, t2i[:, ::5]),
        ("q.npy:turned.npy", one, square, square),
    )
    for text, columns, of_images, of_captions in cases:
        scores = opened(tmp_path, text, columns).scores
        shape = [slice(0, size) for size in of_images.shape]
        assert np.array_equal(scores.direction("i2t", 1).block(*shape), of_images), text
        assert np.array_equal(scores.direction("t2i", 1).block(*shape), of_captions), text


def test_a_square_matrix_of_pairs_tells_no_side(tmp_path: Path) -> None:
    """Unless it is the same turned."""
    pairs = np.eye(IMAGES, dtype=bool)
    np.savez(tmp_path / "a.npz", image_features=SHOWN, text_features=SHOWN + 1, gt=pairs)
    assert opened(tmp_path, "a.npz").caption_image.tolist() == [*range(IMAGES)]
    turned = pairs[np.random.default_rng(9).permutation(IMAGES)]
    np.savez(tmp_path / "b.npz", image_features=SHOWN, text_features=SHOWN + 1, gt=turned)
    assert "may be read in several ways" in refused(tmp_path, "b.npz")


def test_classes_of_captions_are_not_their_images(tmp_path: Path) -> None:
    of_images = {"labels int64 [30]": np.arange(30), "labels int64 [30, 2]": np.ones((30, 2), int)}
    of_captions = {
        "labels int64 [150]": np.arange(150) % 10,
        "labels int64 [150, 3]": np.ones((150, 3), int),
    }
    for listed, labels in {**of_images, **of_captions}.items():
        np.savez(tmp_path / "a.npz", **PLAIN, labels=labels)
        assert opened(tmp_path, "a.npz").read_as.endswith(f"(assumed); not used: {listed}")


def test_blanks_around_the_cells_of_a_table_are_no_part_of_ids(tmp_path: Path) -> None:
    header = ",".join(f" {NAMES[row]}#{at} " for at, row in enumerate(MIXED))
    lines = [f"image_id,{header}"]
    for name, scores in zip(NAMES, (SHOWN @ TEXTS.T).tolist(), strict=True):
        lines.append(f" {name} ,{','.join(map(str, scores))}")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    assert opened(tmp_path, "a.csv").caption_image.tolist() == MIXED.tolist()


def test_single_numbers_of_numpy_in_a_list_are_its_values() -> None:
    for values, stored, expected in (
        ([np.array(3), np.array(1)], "int64", [3, 1]),
        ([np.int32(3), 1, np.array(2)], "int64", [3, 1, 2]),
        ([np.float32(0.5), np.array(1.5), 2], "float64", [0.5, 1.5, 2.0]),
        ([Array.of(np.array(7)), Array.of(np.array(9))], "int64", [7, 9]),
        ([np.array(True), np.bool_(False)], "bool", [True, False]),
    ):
        read = of_values(values, "numbers", "a.pkl")
        assert (read.stored, read.shape, read.keys) == (stored, (len(values),), None)
        assert read.read().tolist() == expected
        keyed = of_values(values, "numbers", "a.pkl", [*range(5, 5 + len(values))])
        assert keyed.keys is not None
        assert keyed.keys.tolist() == [*range(5, 5 + len(values))]
