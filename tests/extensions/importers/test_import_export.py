"""`pipeline store import` and `pipeline store export` as they are typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import foreign
import numpy as np
import pytest
from folders import tree

from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extractors
from pipeline.make.features.store import FeatureStore, ItemFormat

pytestmark = pytest.mark.slow

Cli = Callable[..., tuple[int, str, str]]
TABLE = foreign.manifest(8, captions=6)


@pytest.fixture
def there(tmp_path: Path) -> list[foreign.Picture]:
    """A manifest at its usual place, and a TSV of its images."""
    TABLE.save(tmp_path / "data" / "coco.parquet")
    images = foreign.pictures(TABLE, [2, 3] * 4, 5)
    foreign.lxmert_tsv(tmp_path, images)
    return images


IMPORT = ("store", "import", "butd-tsv", "obj36.tsv")
TO_STORE = (*IMPORT, "--manifest", "data/coco.parquet", "--out", "s.zarr")
TO_REGION = (*IMPORT, "--dataset", "coco", "--feature", "region")


def test_in_and_out(pipeline: Cli, there: list[foreign.Picture], tmp_path: Path) -> None:
    code, out, _ = pipeline(*TO_REGION, "--network", "butd-2-3", "--dtype", "float32")
    assert code == 0
    assert (
        out.splitlines()[0] == "features/coco/region.zarr: 8 images imported, reported as butd-2-3"
    )
    assert out.splitlines()[1].startswith("  read as LXMERT's TSV, 10 columns: img_id, ")
    code, out, _ = pipeline(
        "store",
        "import",
        "butd-tsv",
        "obj36.tsv",
        "--manifest",
        "data/coco.parquet",
        "--network",
        "butd-2-3",
        "--dtype",
        "float32",
        "--out",
        "features/coco/region.zarr",
    )
    assert (code, out.splitlines()[0]) == (
        0,
        "features/coco/region.zarr: nothing to do, reported as butd-2-3",
    )
    code, out, _ = pipeline("store", "verify", "features/coco/region.zarr")
    assert code == 0
    for again in ("", ", up to date"):
        code, out, _ = pipeline(
            "store", "export", "features/coco/region.zarr", "--split", "train", "--out", "precomp"
        )
        assert code == 0
        assert out.splitlines() == [
            f"precomp/train_ims.npy: 4 images x 3 items x 5, 20 captions of train{again}",
            "  images have 2 to 3 items: shorter ones are padded with zeros, which older code takes for items; "
            "train_counts.npy holds how many are valid",
            "  left out: 4 captions after an image's fifth",
        ]
    array = np.load(tmp_path / "precomp" / "train_ims.npy")
    assert array[0, :2].tobytes() == there[0].features.tobytes()
    code, out, _ = pipeline(
        "store",
        "export",
        "features/coco/region.zarr",
        "--split",
        "test",
        "--out",
        "precomp",
        "--manifest",
        "data/coco.parquet",
    )
    assert out.startswith("precomp/testall_ims.npy: 2 images")
    (tmp_path / "mine" / "manifests").mkdir(parents=True)
    (tmp_path / "mine" / "manifests" / "coco.yaml").write_text(
        files("manifests").joinpath("coco.yaml").read_text().replace(", coco_5k", "")
    )
    code, out, _ = pipeline(
        "store",
        "export",
        tmp_path / "features/coco/region.zarr",
        "--split",
        "test",
        "--out",
        "own",
        "--root",
        "mine",
        "--manifest",
        tmp_path / "data/coco.parquet",
    )
    assert out.startswith("mine/own/test_ims.npy: 2 images"), (
        "the card of the project that --root names"
    )


def test_an_import_has_a_card_that_its_header_fills(
    pipeline: Cli, there: list[foreign.Picture]
) -> None:
    assert pipeline(*TO_REGION, "--network", "butd-2-3")[0] == 0
    store = Path("features/coco/region.zarr")
    code, _, err = pipeline("store", "export", "croissant", str(store), "--out", "cards")
    assert code == 0, err
    card = json.loads(Path("cards/coco-region.croissant.json").read_text(encoding="utf-8"))
    assert card["description"].startswith(f"butd-2-3 features of {len(there)} images, ")
    filled = {}
    for field in card["recordSet"][0]["field"]:
        file = store / field["source"]["fileObject"]["@id"]
        value = json.loads(file.read_text(encoding="utf-8"))
        for key in field["source"]["extract"]["jsonPath"].removeprefix("$.").split("."):
            value = value[key]
        filled[field["name"]] = value
    assert (filled["name"], filled["format"]) == ("butd-2-3", "butd-tsv")


def test_scans_folder_is_all_that_its_features_need(pipeline: Cli, tmp_path: Path) -> None:
    (folder,) = foreign.scan_by_caption(tmp_path, foreign.pictures(TABLE, [3] * 8, 5))
    code, out, err = pipeline("manifest", "mine", "--annotations", folder, "--without-images")
    assert (code, "mine: 8 images (train 4, val 2, test 2), 40 captions" in out) == (0, True), err
    code, out, err = pipeline(
        "store", "import", "scan", folder, "--dataset", "mine", "--feature", "region"
    )
    assert (
        code,
        out.splitlines()[0].startswith("features/mine/region.zarr: 8 images imported"),
    ) == (0, True), err
    (tmp_path / "dev_ids.txt").write_text("seven\n" * 10)
    said = pipeline("manifest", "mine", "--annotations", folder, "--without-images")[2]
    assert "dev_ids.txt: expected an image's number, got 'seven'" in said


def test_without_a_recipe_and_with_the_settings_dtype(
    pipeline: Cli, there: list[foreign.Picture]
) -> None:
    code, out, _ = pipeline(*TO_STORE)
    assert (code, out.splitlines()[0]) == (
        0,
        "s.zarr: 8 images imported, reported as butd-tsv-2-3x5",
    )
    assert FeatureStore(Path("s.zarr")).layout.dtype == "float16"


def test_failures_are_told(
    pipeline: Cli, refused: Callable[..., str], there: list[foreign.Picture], tmp_path: Path
) -> None:
    rows = (tmp_path / "obj36.tsv").read_text().split("\n")
    gone = rows[0].split("\t")[0]
    (tmp_path / "obj36.tsv").write_text(
        "\n".join([*rows[1:], rows[0].replace(gone, "COCO_val2014_000000099999")])
    )
    said = f"1 of 8 images are missing or damaged, the first val2014/{gone}.jpg"
    assert said in refused(*TO_STORE)
    code, out, _ = pipeline(*TO_STORE, "--on-error", "skip")
    lines = out.splitlines()
    assert (code, lines[:2]) == (
        0,
        [
            "s.zarr: 8 images imported, reported as butd-tsv-2-3x5",
            "  1 of 8 images have no features, see s.zarr/failures.csv; training and scores leave them out",
        ],
    )
    assert lines[3:] == ["  1 of 8 rows are of no image of coco"]
    split = next(image.split for image in there if image.stem == gone)
    code, out, _ = pipeline("store", "export", "s.zarr", "--split", split, "--out", "precomp")
    assert (
        f"  1 failed images are left out with their captions: val2014/{gone}.jpg"
        in out.splitlines()
    )


def test_a_damaged_import_is_repaired_by_importing_again(
    pipeline: Cli, refused: Callable[..., str], there: list[foreign.Picture]
) -> None:
    command = (*TO_STORE, "-S", "extract.shard_images=3")
    pipeline(*command)
    whole = tree(Path("s.zarr"))
    file = Path("s.zarr/boxes/c/1/0/0")
    file.write_bytes(b"\1" + file.read_bytes()[1:])
    assert "damaged or missing: 1 of 3 shards" in refused("store", "verify", "s.zarr")
    assert pipeline(*command)[1].startswith("s.zarr: nothing to do")
    pipeline("store", "verify", "s.zarr", "--repair")
    assert pipeline(*command)[1].startswith("s.zarr: 3 images imported")
    assert tree(Path("s.zarr")) == whole


def test_an_import_serves_as_the_feature_until_another_engine_is_named(
    pipeline: Cli, refused: Callable[..., str], there: list[foreign.Picture]
) -> None:
    store = Path("features/coco/region.zarr")
    extract = ("extract", "--dataset", "coco", "--feature", "region", "--if-changed", "redo")
    pipeline(*TO_REGION, "--network", "butd-2-3")
    before = tree(store)
    code, out, err = pipeline(*extract)
    assert (code, "nothing to do, it was imported and is reported as butd-2-3" in out) == (
        0,
        True,
    ), err
    assert tree(store) == before
    assert "engine was nothing, is grid" in refused(
        *extract[:-1],
        "refuse",
        "--engine",
        "grid",
        "-S",
        "features.paper.region={engine: grid, network: test_efficientnet, weights: untrained, image_size: 64, grid: 2}",
    )
    foreign.manifest(9, captions=6).save(Path("data/coco.parquet"))
    assert (
        "another manifest's images; run `pipeline store import` again with --if-changed redo"
        in refused(*extract)
    )


def test_a_rewritten_import_is_imported_already(
    pipeline: Cli, there: list[foreign.Picture]
) -> None:
    command = (*TO_REGION, "--if-changed", "redo")
    pipeline(*command)
    pipeline(
        "store",
        "rewrite",
        "features/coco/region.zarr",
        "--compressor",
        "zstd",
        "--shard-images",
        "3",
    )
    before = tree(Path("features/coco/region.zarr"))
    assert ": nothing to do" in pipeline(*command)[1]
    assert tree(Path("features/coco/region.zarr")) == before


def test_the_network_of_an_import_is_not_known(pipeline: Cli, there: list[foreign.Picture]) -> None:
    pipeline(*TO_STORE)
    with pytest.raises(InputError, match=r"features butd-tsv-2-3x5 were imported"):
        extractors.rebuild(ItemFormat.of(FeatureStore(Path("s.zarr"))))


BAD_INPUT: list[tuple[tuple[str, ...], str]] = [
    (
        ("store", "import", "butd-tsv", "obj36.tsv", "--dataset", "coco"),
        "give --feature, or the store with --out",
    ),
    (
        (
            "store",
            "import",
            "scan",
            ".",
            "--dataset",
            "coco",
            "--feature",
            "grid",
            "--out",
            "s.zarr",
        ),
        "give --feature, or",
    ),
    (
        (
            "store",
            "import",
            "butd-tsv",
            "obj36.tsv",
            "--dataset",
            "coco",
            "--manifest",
            "m",
            "--out",
            "s",
        ),
        "leave out --dataset",
    ),
    (
        ("store", "import", "butd-tsv", "--dataset", "coco", "--out", "s.zarr"),
        "Missing argument 'SOURCE...'",
    ),
    (
        ("store", "import", "hdf5", "x", "--dataset", "coco", "--out", "s.zarr"),
        "'hdf5'; there are: scan, butd-tsv",
    ),
    (
        ("store", "import", "scan", "nowhere", "--dataset", "coco", "--out", "s.zarr"),
        "nowhere: no such file or folder",
    ),
    (
        ("store", "import", "scan", ".", "--manifest", "m.parquet", "--out", "s.zarr"),
        "unknown data set 'm'",
    ),
    (
        ("store", "import", "butd-tsv", "obj36.tsv", "--dataset", "coco", "--out", "data"),
        "data: exists, holds ",
    ),
    (
        ("store", "export", "nowhere.zarr", "--split", "val", "--out", "precomp"),
        "nowhere.zarr: no feature store there",
    ),
    (
        ("store", "export", "nowhere.zarr", "--split", "dev", "--out", "precomp"),
        "'dev'; there are: train, val, test",
    ),
]


def test_bad_input(refused: Callable[..., str], there: list[foreign.Picture]) -> None:
    for arguments, said in BAD_INPUT:
        assert said in refused(*arguments), arguments


def test_export_of_single_images(pipeline: Cli, there: list[foreign.Picture]) -> None:
    pipeline(*TO_STORE)
    for form, place in (("butd-tsv", "out/all.tsv"), ("folder", "out")):
        for again in ("", ", up to date"):
            code, out, err = pipeline(
                "store", "export", form, "s.zarr", "--manifest", "data/coco.parquet", "--out", "out"
            )
            assert (code, out) == (0, f"{place}: 8 images of all splits{again}\n"), err
        Path("out", "all_made_from.json").unlink()
    for words, said in (
        (("npz", "s.zarr"), "one of scan, butd-tsv, folder"),
        (("s.zarr",), "name it with --split"),
    ):
        code, _, err = pipeline(
            "store", "export", *words, "--out", "out", "--manifest", "data/coco.parquet"
        )
        assert (code, said in err) == (2, True), err
