"""Scores in every kind of file that people have: each is measured and compared as the matrix that
it holds.
"""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import safetensors.torch
import torch
import zarr
from click.testing import CliRunner
from pyarrow import parquet

from pipeline.foundation.evaluation.retrieval import rank
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import open_system, table
from pipeline.judge.systems.scores.judged import Columns
from stages.cli import cli

IMAGES, EACH, WIDTH = 6, 2, 4
CAPTIONS = IMAGES * EACH
COLUMNS = Columns(captions_per_image=EACH)
ROOT = Path(__file__).parents[4]
VECTORS = np.random.default_rng(0).integers(-8, 8, (IMAGES + CAPTIONS, WIDTH)).astype(np.float32)
SHOWN, TEXTS = VECTORS[:IMAGES], VECTORS[IMAGES:]
SCORES = SHOWN @ TEXTS.T  # whole numbers, the same in all types, with ties


def _npz(**arrays: Any) -> Callable[[Path], object]:
    return lambda path: np.savez(path, **arrays)


def _torch(tree: Any) -> Callable[[Path], object]:
    return lambda path: torch.save(tree, path)


def _safetensors(**arrays: torch.Tensor) -> Callable[[Path], object]:
    return lambda path: safetensors.torch.save_file(arrays, path)


def _text(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text, encoding="utf-8")


def _rows(row: str = "{query},{candidate},{score}\n") -> str:
    both = [(f"image:{i}", f"caption:{c}", i, c) for i in range(IMAGES) for c in range(CAPTIONS)]
    both += [(caption, image, i, c) for image, caption, i, c in both]
    return "".join(
        row.format(query=query, candidate=candidate, score=float(SCORES[i, c]))
        for query, candidate, i, c in both
    )


def _tree() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for line in _rows().split():
        query, candidate, score = line.split(",")
        found.setdefault(query, {})[candidate] = float(score)
    return found


def _matrix_text(corner: str, matrix: np.ndarray) -> str:
    lines = [",".join([corner, *map(str, range(matrix.shape[1]))])]
    return (
        "\n".join(
            lines
            + [",".join(map(str, (number, *row))) for number, row in enumerate(matrix.tolist())]
        )
        + "\n"
    )


def _parquet(**columns: Any) -> Callable[[Path], object]:
    return lambda path: parquet.write_table(pa.table(columns), path)


def _lists(way: str, scores: np.ndarray) -> dict[str, np.ndarray]:
    order = np.argsort(-scores, axis=1, kind="stable")
    return {f"{way}_ids": order, f"{way}_scores": np.take_along_axis(scores, order, 1)}


def _of_rows() -> dict[str, list[Any]]:
    rows = [line.split(",") for line in _rows().split()]
    return {
        "query": [row[0] for row in rows],
        "candidate": [row[1] for row in rows],
        "score": [float(row[2]) for row in rows],
    }


def _best() -> dict[str, list[Any]]:
    return {
        "query": [*_tree()],
        "candidates": [[*listed] for listed in _tree().values()],
        "scores": [[*listed.values()] for listed in _tree().values()],
    }


TENSOR, IDS = torch.from_numpy(SCORES), np.array([f"{number}.jpg" for number in range(IMAGES)])
NAMED = {"image_ids": np.arange(IMAGES), "caption_ids": np.arange(CAPTIONS)}
# What a user types -> what writes its file. Every one holds SCORES.
FILES: dict[str, Callable[[Path], object]] = {
    "plain.npy": lambda path: np.save(path, SCORES),
    "half.npy": lambda path: np.save(path, SCORES.astype(np.float16)),
    "whole.npy": lambda path: np.save(path, SCORES.astype(np.int32)),
    "vse_infty.npy": lambda path: np.save(path, np.array({"npts": IMAGES, "sims": SCORES}, object)),
    "one.npz": _npz(arr_0=SCORES),
    "packed.npz": lambda path: np.savez_compressed(path, sims=SCORES),
    "named.npz": _npz(similarity=SCORES, **NAMED),
    "many.npz:b": _npz(a=SCORES + 1, b=SCORES, c=SCORES * 2),
    "directions.npz": _npz(score_matrix_i2t=SCORES, score_matrix_t2i=SCORES.T),
    "logits.npz": _npz(logits_per_image=SCORES, logits_per_text=SCORES.T),
    "vectors.npz": _npz(img_embs=SHOWN, cap_embs=TEXTS, lengths=np.arange(CAPTIONS)),
    "repeated.npz": _npz(img_embs=np.repeat(SHOWN, EACH, 0), cap_embs=TEXTS),
    "odd.npz:x:y": _npz(x=SHOWN, y=TEXTS),
    "top.npz": _npz(**_lists("i2t", SCORES), **_lists("t2i", SCORES.T)),
    "tensor.pt": _torch(TENSOR),
    "dict.pt": _torch({"sims": TENSOR, "epoch": 3}),
    "transposed.pt": _torch({"sims": TENSOR.T.contiguous().T}),
    "inner.pth": _torch({"out": {"scores": SCORES}}),
    "bfloat16.pt": _torch(TENSOR.bfloat16()),
    "half.pt": _torch([TENSOR.half()]),
    "old.pt": lambda path: torch.save(TENSOR, path, _use_new_zipfile_serialization=False),
    "slice.pt": _torch(torch.cat([torch.zeros(1, CAPTIONS), TENSOR])[1:]),
    "shared.pt:sims": _torch({"other": TENSOR[:3], "sims": TENSOR}),
    "parameter.pt": _torch({"sims": torch.nn.Parameter(TENSOR)}),
    "beside.pt": _torch({"sims": TENSOR, "image_ids": [*NAMED["image_ids"]]}),
    "of_numpy.pt": _torch({"sims": SCORES}),
    "clip.pt": _torch(
        {"image_features": torch.from_numpy(SHOWN), "text_features": torch.from_numpy(TEXTS)}
    ),
    "plain.safetensors": _safetensors(sims=TENSOR),
    "bfloat16.safetensors": _safetensors(sims=TENSOR.bfloat16()),
    "clip.safetensors": _safetensors(
        image_embeds=torch.from_numpy(SHOWN).half(), text_embeds=torch.from_numpy(TEXTS).half()
    ),
    "plain.pkl": lambda path: path.write_bytes(pickle.dumps({"sims": SCORES})),
    "oldest.pkl": lambda path: path.write_bytes(pickle.dumps({"sims": SCORES}, 0)),
    "newest.pkl": lambda path: path.write_bytes(pickle.dumps({"sims": SCORES}, 5)),
    "objects.npy": lambda path: np.save(path, SCORES.astype(object)),
    "plain.csv": lambda path: np.savetxt(path, SCORES, delimiter=","),
    "plain.txt": lambda path: np.savetxt(path, SCORES),
    "wide.csv": _text(_matrix_text("", SCORES)),
    "captions.csv": _text(_matrix_text("caption_id", SCORES.T)),
    "long.csv": _text("query,candidate,score\n" + _rows()),
    "long.tsv": _text("query-id\tcorpus-id\tscore\n" + _rows("{query}\t{candidate}\t{score}\n")),
    "run.txt": _text(_rows("{query} Q0 {candidate} 0 {score} mine\n")),
    "run.json": _text(json.dumps(_tree())),
    "pairs.json": _text(
        json.dumps({query: [*map(list, listed.items())] for query, listed in _tree().items()})
    ),
    "wide.parquet": _parquet(
        image_id=list(range(IMAGES)), **{str(c): SCORES[:, c] for c in range(CAPTIONS)}
    ),
    "long.parquet": _parquet(**_of_rows()),
    "best.parquet": _parquet(**_best()),
    "plain.zarr": lambda path: zarr.save_array(path, SCORES),
    "group.zarr": lambda path: zarr.save_group(path, sims=SCORES, **NAMED),
    "i.npy:c.npy": lambda path: (np.save(path, SHOWN), np.save(path.with_name("c.npy"), TEXTS)),
}
LISTS = {
    "top.npz",
    "long.csv",
    "long.tsv",
    "run.txt",
    "run.json",
    "pairs.json",
    "long.parquet",
    "best.parquet",
}
ROUNDED = ("t2i", "i2t", "RSUM", "tied")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("scores")
    for name, write in FILES.items():
        write(place / name.partition(":")[0])
    return place


def run(folder: Path, *arguments: str) -> Any:
    found = CliRunner().invoke(
        cli,
        [*arguments, "--root", str(folder), "--captions-per-image", str(EACH), "--json"],
        catch_exceptions=False,
    )
    return json.loads(found.stdout)


@pytest.mark.slow
@pytest.mark.specification
def test_every_file_is_measured_as_its_matrix(folder: Path) -> None:
    """In one call, with one shape of JSON; in types and lists, ties are those of the matrix."""
    found = run(folder, "evaluate", *FILES)
    assert {tuple(each) for each in found} == {tuple(found[0])}
    expected = {key: found[0][key] for key in ROUNDED}
    measured = {
        name: {key: each[key] for key in ROUNDED} for name, each in zip(FILES, found, strict=True)
    }
    assert measured == dict.fromkeys(FILES, expected)
    assert sum(expected["tied"].values()) > 0
    assert [each["read_as"] for each in found if not each["read_as"]] == []
    stored = {name: each["read_as"] for name, each in zip(FILES, found, strict=True)}
    assert "sims bfloat16 [6, 12]" in stored["bfloat16.safetensors"]
    assert (
        "image_embeds float16 [6, 4] and captions text_embeds float16 [12, 4], inner products in float32"
        in (stored["clip.safetensors"])
    )
    assert "each image's vector is there 2 times, and counts once" in stored["repeated.npz"]


@pytest.mark.parametrize(("one", "other"), [*pairwise([*FILES, "plain.npy"])][::3])
def test_any_two_are_compared(folder: Path, one: str, other: str) -> None:
    found = run(folder, "compare", one, other)
    assert found[0]["RSUM"]["difference"] == 0


@pytest.mark.parametrize("name", [*FILES])
def test_a_file_has_every_score_as_it_is_stored(folder: Path, name: str) -> None:
    system = open_system(name, COLUMNS, root=folder)
    assert (system.shape, system.caption_image.tolist()) == (
        SCORES.shape,
        np.repeat(range(IMAGES), EACH).tolist(),
    )
    if name not in LISTS:
        scores = system.scores
        source = scores.direction("t2i", 1) if hasattr(scores, "direction") else scores
        assert np.array_equal(source.block(slice(0, IMAGES), slice(0, CAPTIONS)), SCORES)


WITHOUT = """
import sys
sys.path[:0] = [ROOT]
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "safetensors", "dask", "torchvision", "timm"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
from stages import cli
for names, code in ((NAMES, 0), (["tensor.pt"], 2)):
    sys.argv = ["pipeline", "evaluate", *names, "-v", "--captions-per-image", "2", "--root", FOLDER]
    try:
        cli.main()
    except SystemExit as ended:
        assert ended.code == code
"""


@pytest.mark.slow
def test_only_tensors_of_torch_need_torch(folder: Path) -> None:
    others = [name for name in FILES if ".pt" not in name] + ["of_numpy.pt"]
    code = (
        WITHOUT.replace("ROOT", repr(str(ROOT)))
        .replace("NAMES", repr(others))
        .replace("FOLDER", repr(str(folder)))
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.count("RSUM")) == (0, len(others)), ran.stderr
    assert re.search(
        r"tensor\.pt needs torch, .*pip install .*, or save it as \.npy", ran.stderr
    ), ran.stderr


def test_float16_keeps_the_ties_that_it_makes(tmp_path: Path) -> None:
    """Two scores that are one number in float16 or bfloat16 tie, and stay apart in float32."""
    scores = np.array([[1.0, 1.0001], [0.2, 0.3]], np.float32)
    np.save(tmp_path / "s.npy", scores)
    np.save(tmp_path / "h.npy", scores.astype(np.float16))
    torch.save(torch.from_numpy(scores).bfloat16(), tmp_path / "b.pt")
    found = CliRunner().invoke(
        cli,
        [
            "evaluate",
            "s.npy",
            "h.npy",
            "b.pt",
            "--root",
            str(tmp_path),
            "--json",
            "--captions-per-image",
            "1",
        ],
        catch_exceptions=False,
    )
    assert [each["tied"]["i2t"] for each in json.loads(found.stdout)] == [0, 1, 1]


@pytest.mark.parametrize("distance", [False, True])
@pytest.mark.parametrize("kind", ["<f2", ">f4", "f8", "i8", "u1"])
def test_a_matrix_alone_is_read_as_an_array_among_others(
    tmp_path: Path, kind: str, distance: bool
) -> None:
    values = np.asfortranarray(np.random.default_rng(0).integers(0, 99, (5, 10)).astype(kind))
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "a.npz", a=values, other=np.zeros(3))
    columns = Columns(captions_per_image=EACH, distance=distance)
    for name in ("a.npy", "a.npz:a"):
        system = open_system(name, columns, root=tmp_path)
        expected = -values.astype(np.float64) if distance else values
        np.testing.assert_array_equal(system.scores.block(slice(0, 5), slice(0, 10)), expected)
        assert system.caption_image.tolist() == (np.arange(10) // EACH).tolist()
        assert not system.has_ids
        assert f"{values.dtype.newbyteorder('=')} [5, 10]" in system.read_as
        with pytest.raises(
            InputError, match="the matrix is 5 x 10, expected 5 images x 5 captions"
        ):
            open_system(name, Columns(captions_per_image=1), root=tmp_path)


def test_a_first_row_of_different_whole_numbers_above_others_has_ids(tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    halves = [0.5, 0.25, 0.125, 1.5]
    for text, ids, rows in (
        ("3 1 2 9\n0.5 0.25 0.125 1.5\n", ["3", "1", "2", "9"], [halves]),
        ("1 1 0 9\n0.5 0.25 0.125 1.5\n", None, [[1, 1, 0, 9], halves]),
        ("3 1 2 9\n4 5 6 7\n", None, [[3, 1, 2, 9], [4, 5, 6, 7]]),
        ("0.5,0.25,0.125,1.5\n", None, [halves]),
        ("0.5;0.25;0.125;1.5\n", None, [halves]),
        ("3 1 2 9\n", None, [[3, 1, 2, 9]]),
    ):
        path.write_text(text)
        read = table.read_text(path)
        assert read is not None
        assert read.arrays[""].read().tolist() == rows, text
        captions = read.arrays.get("caption_ids")
        assert (captions and captions.read().tolist()) == ids, text


def test_lists_without_scores_are_ranked_in_their_order(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", t2i_ids=[[0, 1, 2], [1, 2, 0], [1, 2, 0]])
    system = open_system("s.npz", Columns(captions_per_image=1), root=tmp_path)
    assert rank(system.scores, system.caption_image).t2i.ranks().tolist() == [1, 1, 2]


@pytest.mark.slow
def test_two_files_of_different_pools_are_refused(tmp_path: Path) -> None:
    """Where ids or sizes tell it, also when one has ids and the other has none."""
    ids = {"image_ids": np.arange(IMAGES) + 100, "caption_ids": np.arange(CAPTIONS) + 100}
    for name, arrays in (("numbered.npz", NAMED), ("other.npz", ids), ("silent.npz", {})):
        np.savez(tmp_path / name, sims=SCORES, **arrays)
    np.save(tmp_path / "small.npy", SCORES[:3, :6])
    for one, other, said in (
        ("numbered.npz", "other.npz", "has 6 image ids that numbered lacks (100, 101, 102, ...)"),
        ("silent.npz", "other.npz", "silent: has no ids, others have; name its --manifest"),
        ("silent.npz", "small.npy", "silent has 6 images x 12 captions and small 3 x 6"),
    ):
        with pytest.raises(InputError, match=re.escape(said)):
            run(tmp_path, "compare", one, other)
    assert run(tmp_path, "compare", "numbered.npz", "silent.npz")[0]["RSUM"]["difference"] == 0


@pytest.mark.parametrize(
    ("corner", "of_rows"),
    [
        ("", "image"),
        ("id", "image"),
        ("image_id", "image"),
        ("caption_id", "caption"),
        ("Caption-ID", "caption"),
        ("query", "caption"),
        ("qid", "caption"),
        ("query-id", "caption"),
    ],
)
def test_the_corner_of_a_table_says_what_its_rows_are(
    corner: str, of_rows: str, tmp_path: Path
) -> None:
    """Two rows of three numbers: of images, or of the queries that rank images."""
    path = tmp_path / "scores.csv"
    path.write_text(f"{corner},x,y,z\nr,1.5,2.5,3.5\ns,4.5,5.5,6.5\n")
    found = table.read_text(path)
    assert found is not None
    numbers = np.array([[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]])
    rows, columns = ["r", "s"], ["x", "y", "z"]
    expected = (numbers, rows, columns)
    if of_rows == "caption":
        expected = (numbers.T, columns, rows)
    read = [found.arrays[name].read() for name in ("", "image_ids", "caption_ids")]
    np.testing.assert_array_equal(read[0], expected[0])
    assert [read[1].tolist(), read[2].tolist()] == [*expected[1:]]
    assert found.title.startswith(f"a table with a row for each {of_rows}")


@pytest.mark.parametrize(
    ("names", "are_ids"),
    [
        (["0", "1", "2"], False),
        (["1", "2", "3"], True),
        (["2", "1", "0"], True),
        (["0", "1", "3"], True),
    ],
)
def test_columns_of_parquet_that_are_numbered_from_0_have_no_ids(
    names: list[str], are_ids: bool, tmp_path: Path
) -> None:
    path = tmp_path / "scores.parquet"
    columns = {name: [float(place), 5.5] for place, name in enumerate(names)}
    parquet.write_table(pa.table(columns), path)
    found = table.read_parquet(path)
    assert found is not None
    ids = found.arrays["caption_ids"].read().tolist() if "caption_ids" in found.arrays else None
    assert ids == (names if are_ids else None)
