"""Manifests: what goes in comes out in order, and bad input is refused in one line."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from counted import Counted
from PIL import Image

from pipeline.foundation import manifest
from pipeline.foundation.files import remembered
from pipeline.foundation.manifest import Manifest, drawn_splits, reader, table, text_file
from pipeline.foundation.manifest.image_names import Folder
from pipeline.foundation.manifest.reader import Source
from pipeline.foundation.manifest.rows.reader import CSV
from pipeline.foundation.manifest.split import Split, SplitName
from pipeline.foundation.parts.errors import InputError


def picture(path: Path, shade: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (shade, shade, shade)).save(path)
    return path


def entry(number: int, **changes: Any) -> dict[str, Any]:
    sentences = [
        {"raw": f"picture {number}, caption {k}", "sentid": 10 * number + k} for k in range(2)
    ]
    return {
        "filename": f"{number}.png",
        "imgid": number,
        "split": "train",
        "sentences": sentences,
        **changes,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(4):
        picture(tmp_path / "images" / f"{number}.png", number)
    return tmp_path / "images"


def build(folder: Path, images: Any) -> Manifest:
    file = folder.parent / "dataset.json"
    file.write_text(json.dumps({"images": images}), encoding="utf-8")
    return manifest.build("mine", folder, file)


@pytest.mark.specification
def test_karpathy_keeps_order_ids_and_any_number_of_captions(folder: Path) -> None:
    images = [
        entry(2, split="test", cocoid=99),
        entry(0, split="restval"),
        entry(1, split="test", sentences=[{"raw": "one", "sentid": 5}]),
        entry(3, split="val"),
    ]
    table = build(folder, images)
    assert table.images["image_id"].tolist() == [99, 0, 1, 3]
    assert table.images["split"].tolist() == ["test", "train", "test", "val"]
    assert table.images["bytes"].tolist() == [
        (folder / f"{n}.png").stat().st_size for n in (2, 0, 1, 3)
    ]
    test = table.split("test")
    assert test.captions.tolist() == ["picture 2, caption 0", "picture 2, caption 1", "one"]
    assert test.caption_image.tolist() == [0, 0, 1]
    assert test.store_rows.tolist() == [0, 2]
    assert test.caption_ids.tolist() == [20, 21, 5]


def test_coco_folders(folder: Path) -> None:
    picture(folder / "val2014" / "a.png")
    table = build(folder, [entry(7, filepath="val2014", filename="a.png")])
    assert table.images["file"].tolist() == ["val2014/a.png"]


def test_saved_and_loaded_is_the_same(folder: Path, tmp_path: Path) -> None:
    table = build(folder, [entry(0), entry(1)])
    table.save(tmp_path / "deep" / "m.parquet")
    again = Manifest.load(tmp_path / "deep" / "m.parquet")
    assert again.digest == table.digest
    assert (again.dataset, again.images_folder) == ("mine", folder)
    with pytest.raises(InputError, match="unknown data set 'nothing'"):
        Manifest.load(tmp_path / "nothing.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match="not a manifest"):
        Manifest.load(tmp_path / "bad.parquet")


def test_images_are_found_from_another_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    replace(build(folder, [entry(0)]), images_folder=Path("photographs")).save(
        Path("data/m.parquet")
    )
    assert Manifest.load(Path("data/m.parquet")).images_folder == Path("photographs")
    monkeypatch.chdir(folder.parent)
    found = Manifest.load(Path(folder.name) / "data" / "m.parquet").images_folder
    assert found == Path(folder.name) / "photographs"


@pytest.mark.specification
def test_digests_tell_what_changed(folder: Path) -> None:
    one = build(folder, [entry(0), entry(1)])
    captioned = build(folder, [entry(0), entry(1, sentences=[{"raw": "other", "sentid": 10}])])
    assert one.digest != captioned.digest
    assert one.images_digest == captioned.images_digest  # features need not be extracted again
    picture(folder / "1.png").write_bytes((folder / "0.png").read_bytes() + b"more")
    another = build(folder, [entry(0), entry(1)])
    assert another.digest != one.digest
    assert (
        another.images_digest == one.images_digest
    )  # stores hold each file's size beside its features
    assert build(folder, [entry(1), entry(0)]).images_digest != one.images_digest
    fewer = replace(one, left_out={"no caption": 1})
    assert fewer.digest != one.digest
    assert fewer.images_digest == one.images_digest


@pytest.mark.parametrize(
    ("alone", "together", "encoding"), [(9, 1, "cp1252"), (7, 3, "utf-8"), (0, 1, "utf-8")]
)
def test_odd_bytes_are_western_letters_where_nine_of_ten_stand_alone(
    alone: int, together: int, encoding: str, tmp_path: Path
) -> None:
    path = tmp_path / "captions.csv"
    path.write_bytes(b"caf\xe9 " * alone + b"\xe9\xe8\xff " * together)
    file = text_file.TextFile(path)
    assert file.encoding == encoding
    assert file.is_damaged == (encoding == "utf-8")


def test_digests_are_computed_once_while_the_file_is_unchanged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "SETTLED", -(10**18))
    computed, digest = [], table._digest
    monkeypatch.setattr(table, "_digest", lambda rows: computed.append(1) or digest(rows))
    path = folder / "m.parquet"
    for images, counts in (([entry(0), entry(1)], [2, 2, 4]), ([entry(1)], [2, 2, 4])):
        build(folder, images).save(path)
        computed.clear()
        found = []
        for asked, count in zip((False, False, True), counts, strict=True):
            manifest = Manifest.load(path, computed=asked)
            found.append((manifest.digest, manifest.images_digest))
            assert len(computed) == count
        assert len(set(found)) == 1


def test_pieces_are_the_split_cut_in_time_of_its_captions() -> None:
    numbers = []
    for images in (100, 1000):
        owner = np.random.default_rng(0).integers(0, images, 5 * images)
        ids = np.arange(images)
        split = Split(
            "test",
            ids + 7,
            ids,
            np.arange(5 * images).view(Counted),
            owner.view(Counted),
            np.arange(5 * images).astype("T"),
            np.array(["de", "fr"] * (5 * images // 2)),
        )
        Counted.numbers = 0
        pieces = list(split.pieces(7))
        numbers.append(Counted.numbers)
        for first, piece in zip(range(0, images, 7), pieces, strict=True):
            expected = split.only((ids >= first) & (ids < first + 7))
            for name in (
                "store_rows",
                "image_ids",
                "caption_ids",
                "caption_image",
                "captions",
                "languages",
            ):
                assert np.array_equal(getattr(piece, name), getattr(expected, name)), name
            assert piece.caption_inputs == {}
    assert 0 < numbers[1] < 12 * numbers[0]


@pytest.mark.specification
@pytest.mark.parametrize(
    ("images", "said"),
    [
        ([entry(9)], "9.png: no such image"),
        ([entry(0), entry(0, imgid=5, sentences=[{"raw": "x", "sentid": 77}])], "names two images"),
        ([entry(0), entry(1, imgid=0)], "names two images"),
        ([entry(0), entry(1, sentences=[{"raw": "x", "sentid": 0}])], "caption id 0 is used twice"),
        ([entry(0, imgid=-1)], "no image may have the id -1"),
        (
            [entry(0, split="val", sentences=[]), entry(1)],
            "no image of the split val has a caption; .*captions: train",
        ),
        ([entry(0, sentences=[])], "holds no captions"),
        (
            [entry(0, sentences=[{"raw": "  ", "sentid": 0}])],
            "holds no captions; left out 1 of 1 caption .no caption: 1",
        ),
        ([entry(0, sentences=[{"raw": "\ud800", "sentid": 0}])], "not UTF-8"),
        ([entry(0, sentences=[{"raw": 3, "sentid": 0}])], "no caption: 1"),
        (
            [entry(number % 4, imgid=number, sentences=[{"raw": ""}]) for number in range(4)],
            r"dataset\.json: 4 of 4 captions \(no caption: 4\), more than 1 % of all; .*the first: .*image 0, 0\.png",
        ),
        ([entry(0, filename="../0.png")], "leaves the image folder"),
        ([entry(0, imgid=float("inf"))], "image 0: not in Karpathy's layout"),
        ([entry(0, imgid=1.5)], "expected a whole number, got 1.5"),
        ([entry(0, imgid=True)], "expected a whole number, got True"),
        ([entry(0, sentences=[{"raw": "x", "sentid": 0.5}])], "expected a whole number, got 0.5"),
        ([entry(0, filename="/etc/passwd")], "leaves the image folder"),
        ([entry(0, split="other")], "unknown split 'other'"),
        ([entry(0, imgid=2**70)], "64 bits"),
        ([entry(0), {"filename": "0.png"}], "image 1: not in Karpathy's layout"),
        ([entry(0), "0.png"], "image 1: not in Karpathy's layout"),
        (
            [{"filename": "0.png"}],
            r"no column caption \(or text\); its columns are 'filename', the first row '0.png'",
        ),
        ({"x": entry(0)}, "not in Karpathy's layout: expected a list 'images'"),
        ([], "no column caption .*; its columns are 'images'"),
    ],
)
def test_karpathy_refuses(folder: Path, images: Any, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        build(folder, images)
    assert "\n" not in str(caught.value)


@pytest.mark.specification
def test_a_link_out_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    secret = picture(tmp_path / "secret.png")
    (folder / "link.png").symlink_to(secret)
    with pytest.raises(InputError, match=r"link\.png: is a link that leaves the image folder"):
        build(folder, [entry(0, filename="link.png")])


@pytest.mark.specification
def test_csv(folder: Path) -> None:
    file = folder.parent / "captions.csv"
    file.write_text(
        'image,caption,split\n1.png,"one, first",train\n0.png,zero,test\n1.png,one again,train\n'
        "2.png,zwei – δύο,test\n3.png,three,val\n",
        encoding="utf-8",
    )
    table = manifest.build("mine", folder, file)
    assert table.images["file"].tolist() == ["1.png", "0.png", "2.png", "3.png"]
    assert table.table["caption"].tolist()[:2] == ["one, first", "one again"]
    assert table.split("test").caption_image.tolist() == [0, 1]
    file.write_text("image,caption\n" + "".join(f"{n}.png,c\n" for n in range(4)), encoding="utf-8")
    assert len(manifest.build("mine", folder, file).split("test").image_ids) == 4


@pytest.mark.slow
def test_a_long_csv_is_never_held_as_python_objects(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder.parent / "captions.csv"
    file.write_text(
        "image,caption,split\n"
        + "".join(f"{row % 4}.png,caption {row} of a photograph,test\n" for row in range(40_000)),
        encoding="utf-8",
    )
    whole = manifest.build("mine", folder, file).table
    monkeypatch.setattr(table, "AT_ONCE", 1000)
    tracemalloc.start()
    try:
        read = CSV.read(Source(file))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * file.stat().st_size
    assert manifest.build("mine", folder, file).table.equals(whole)
    assert read["caption_id"].tolist() == whole["caption_id"].tolist()
    assert sorted(read["caption_id"]) == list(range(40_000))


@pytest.mark.parametrize(
    ("image_ids", "caption_ids", "images", "captions"),
    [
        ((7, 7, 3), (5, 9, 4), [3, 7], [5, 9, 4]),
        ((7, 3, 5), (5, 9, 4), [0, 1], [5, 9, 4]),  # two ids of one image
        ((7, 7, 7), (5, 9, 4), [0, 1], [5, 9, 4]),  # one id of two images
        ((7, 7, 3), (5, 9, 9), [3, 7], [0, 1, 2]),  # one id of two captions
    ],
)
def test_ids_of_a_file_are_kept_if_each_is_of_one_image_or_caption(
    folder: Path,
    image_ids: tuple[int, ...],
    caption_ids: tuple[int, ...],
    images: list[int],
    captions: list[int],
) -> None:
    file = folder.parent / "captions.csv"
    named = zip(("0.png", "0.png", "1.png"), image_ids, caption_ids, strict=True)
    rows = [f"{image},{number},{sentence},words\n" for image, number, sentence in named]
    file.write_text("image,image_id,caption_id,caption\n" + "".join(rows), encoding="utf-8")
    table = manifest.build("mine", folder, file).table
    assert sorted({*table["image_id"]}) == images
    assert table["caption_id"].tolist() == captions


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_csv_of_any_system(folder: Path, end: str) -> None:
    file = folder.parent / "captions.csv"
    lines = ["image,caption", *(f"{number}.png,picture {number}" for number in range(4)), ""]
    file.write_bytes(end.join(lines).encode("utf-8-sig"))
    assert manifest.build("mine", folder, file).table["caption"].tolist() == [
        f"picture {n}" for n in range(4)
    ]


@pytest.mark.specification
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("image,words\n0.png,x\n", "no column caption"),
        ("", "is empty; expected columns such as image and caption"),
        (
            "image,caption\n" + "0.png\n" * 4,
            "damaged row: 4.*captions.csv, line 2: a field is missing",
        ),
        ("image,caption,split\n0.png,x,train\n0.png,y,test\n", "two images or splits"),
        (
            'image,caption\n0.png,"x\n',
            r"holds no captions; left out 1 of 1 caption \(damaged row: 1\)",
        ),
        (
            "image,caption\n" + "0.png,A dog , running\n" * 4,
            "damaged row: 4.*line 2: more fields than columns; put quotes round a caption that holds a separator",
        ),
        (
            "name;words;" + "x" * 400 + "\n0.png;x\n",
            r"captions.csv: no known heading in 'name', 'words', .{60,70}: rename the columns to image, caption",
        ),
        (
            "image,caption\nphotos/0.png,x\nphotos/1.png,x\n",
            r"photos/0\.png: no such image, though captions\.csv names it; 2 of 2 .*; did you mean 0\.png\?",
        ),
    ],
)
def test_csv_refuses(folder: Path, text: str, said: str) -> None:
    file = folder.parent / "captions.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        manifest.build("mine", folder, file)


@pytest.mark.parametrize("part", [1, 2, 5, 1 << 20])
def test_a_file_is_read_in_parts_as_it_is_at_once(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_file, "PART", part)
    file = tmp_path / "a.txt"
    for text in ("", "é\r\n€\r\r\n𝄞\n\u2028x\x0b", "a\r", "\ufeffb\n\n"):
        file.write_bytes(text.encode())
        assert text_file.text_of(file) == text.removeprefix("\ufeff")
        with file.open(encoding="utf-8-sig") as opened:
            assert [line for line in text_file.TextFile(file).lines() if line] == list(opened)
    for content, place in ((b"ab\xe2\x82", 2), (b"\xef\xbb\xbfab\xff", 5), (b"abcdef\xe2\x82x", 6)):
        file.write_bytes(content)
        with pytest.raises(InputError, match=f"byte {place} is not UTF-8"):
            text_file.text_of(file)


def test_files_that_are_not_there_or_not_text(folder: Path) -> None:
    for name, content, said in (
        ("a.json", b'{"images": "\xe2\x82"}', "not readable as JSON: not UTF-8"),
        ("a.json", b"{", "not readable as JSON"),
        ("a.txt", b"A dog.", r"it begins with 'A dog\.'"),
    ):
        (folder.parent / name).write_bytes(content)
        with pytest.raises(InputError, match=said):
            manifest.build("mine", folder, folder.parent / name)
    with pytest.raises(InputError, match="no such annotation file"):
        manifest.build("mine", folder, folder / "nowhere.json")
    with pytest.raises(InputError, match="no such folder"):
        manifest.build("mine", folder / "nowhere", folder.parent / "a.json")


def test_without_images(folder: Path) -> None:
    whole = build(folder, [entry(0), entry(1)])
    shutil.rmtree(folder)
    bare = manifest.build("mine", None, folder.parent / "dataset.json")
    assert bare.images["bytes"].tolist() == [-1, -1]
    assert bare.images_digest == whole.images_digest  # features of the one serve the other
    assert bare.digest != whole.digest
    (folder.parent / "bad.json").write_text(json.dumps({"images": [entry(0, filename="../0.png")]}))
    with pytest.raises(InputError, match="leaves the image folder"):
        manifest.build("mine", None, folder.parent / "bad.json")


def test_unknown_split(scenes: Manifest) -> None:
    with pytest.raises(InputError, match="there are: "):
        scenes.split("dev")


def test_a_split_without_failed_images(scenes: Manifest) -> None:
    train = scenes.split("train")
    keep = np.ones(len(train.image_ids), dtype=bool)
    keep[[0, 3]] = False
    left = train.only(keep)
    assert left.image_ids.tolist() == train.image_ids[keep].tolist()
    assert len(left.captions) == len(train.captions) - 10
    owner = dict(zip(train.caption_ids, train.image_ids[train.caption_image], strict=True))
    assert all(
        owner[c] == left.image_ids[i]
        for c, i in zip(left.caption_ids, left.caption_image, strict=True)
    )


@pytest.mark.parametrize("name", manifest.datasets(Path()))
def test_cards_are_whole(name: str) -> None:
    from pipeline.foundation.evaluation.retrieval import PROTOCOLS

    card = manifest.dataset(name, Path())
    assert card.licence
    assert card.source
    assert set(card.protocols) <= set(PROTOCOLS)


def test_a_format_can_be_named_and_an_unknown_one_is_refused(folder: Path) -> None:
    file = folder.parent / "captions.txt"
    file.write_text(
        "image,caption\n" + "".join(f"{n}.png,picture {n}\n" for n in range(4)), encoding="utf-8"
    )
    assert len(manifest.build("mine", folder, file, manifest.Reading("csv")).table) == 4
    with pytest.raises(
        InputError, match=r"--format: unknown format 'tsv'; there are: coco, msrvtt, .*, json, csv"
    ):
        manifest.build("mine", folder, file, manifest.Reading("tsv"))


def test_a_link_that_leads_in_a_circle_is_no_image(folder: Path) -> None:
    (folder / "circle.png").symlink_to("circle.png")
    made = build(folder, [entry(0), entry(9, filename="circle.png")])
    assert made.images["file"].tolist() == ["0.png"]
    assert made.left_out == {"image missing": 2}
    assert build(folder, [entry(0)]).images["file"].tolist() == ["0.png"]


def test_captions_of_no_image_stay_where_images_are_left_out() -> None:
    captions = np.array(["a", "b", "c", "d", "e", "f"], np.dtypes.StringDType())
    split = Split(
        "test",
        np.arange(3),
        np.array([5, 6, 7]),
        np.arange(6),
        np.array([0, 0, -1, 1, 2, -1]),
        captions,
        np.array(["de", "en"] * 3),
    )
    for part, images, caption_ids, owners in (
        (split.only(np.array([True, False, True])), [5, 7], [0, 1, 2, 4, 5], [0, 0, -1, 1, -1]),
        (split.in_languages(["de"]), [5, 7], [0, 2, 4], [0, -1, 1]),
        (split.with_images(), [5, 6, 7], [0, 1, 3, 4], [0, 0, 1, 2]),
        (split.in_languages(["de"]).of_pairs(), [5, 7], [0, 4], [0, 1]),
    ):
        assert part.image_ids.tolist() == images
        assert part.caption_ids.tolist() == caption_ids
        assert part.caption_image.tolist() == owners
        assert part.captions.tolist() == captions[part.caption_ids].tolist()


def test_splits_are_drawn_of_the_images_that_have_a_caption_and_the_others_are_in_test(
    folder: Path,
) -> None:
    images = [entry(0), entry(1, sentences=[]), entry(2), entry(3)]
    for image in images:
        del image["split"]
    file = folder.parent / "dataset.json"
    file.write_text(json.dumps({"images": images}), encoding="utf-8")
    asked: list[str] = []

    def draw(files: list[str]) -> dict[str, str]:
        asked.extend(files)
        return dict(zip(files, ("train", "val", "test"), strict=True))

    made = manifest.build("mine", folder, file, manifest.Reading(draw=draw))
    assert asked == ["0.png", "2.png", "3.png"]
    assert made.images["split"].tolist() == ["train", "test", "val", "test"]


def test_a_caption_of_no_image_and_no_split_is_in_test(folder: Path) -> None:
    file = folder.parent / "captions.csv"
    file.write_text("image,caption\n0.png,a\n,none\n1.png,b\n", encoding="utf-8")
    for splits in (["test", "test"], ["train", "test"]):
        drawn = dict(zip(("0.png", "1.png"), splits, strict=True))
        reading = manifest.Reading(draw=lambda files, drawn=drawn: drawn)  # type: ignore[misc]
        made = manifest.build("mine", folder, file, reading)
        assert made.images["split"].tolist() == splits
        assert made.split("test").captions.tolist()[-1] == "none"


def test_numbers_of_coco_mean_its_files_with_and_without_leading_zeros(tmp_path: Path) -> None:
    for number in (42, 100):
        picture(tmp_path / f"COCO_val2014_{number:012}.jpg")
    names = ["42", "042", f"{42:012}", "COCO_val2014_000000000042", "100", "1"]
    found = Folder(tmp_path).find(names, tmp_path)
    of_42 = dict.fromkeys(names[:4], "COCO_val2014_000000000042.jpg")
    assert found == {**of_42, "100": "COCO_val2014_000000000100.jpg"}


@pytest.mark.parametrize("count", range(8))
def test_rows_of_any_number_of_parts_are_one_table(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "AT_ONCE", 3)
    made = reader.table_of_rows(((row, f"r{row}") for row in range(count)), ["number", "name"])
    assert made["number"].tolist() == [*range(count)]
    assert made["name"].tolist() == [f"r{row}" for row in range(count)]
    if count:  # a part without rows has no say in the columns' types
        whole = pd.DataFrame({"number": [1], "name": ["a"]})
        assert made.dtypes.equals(whole.dtypes)


def test_drawn_splits_have_a_tenth_of_the_images_to_the_nearest_one() -> None:
    for count, tenth in ((12, 2), (24, 2), (26, 3), (34, 3), (36, 4)):
        drawn = drawn_splits.draw([f"{number}.jpg" for number in range(count)])
        expected = {"train": count - 2 * tenth, "val": tenth, "test": tenth}
        assert Counter(drawn.values()) == expected


def test_several_splits_as_one_keep_their_names() -> None:
    joined = SplitName.of(["train", "test"])
    assert (joined, joined.parts, SplitName("val").parts) == (
        "train+test",
        ("train", "test"),
        ("val",),
    )


@pytest.mark.parametrize("named", ["beach\\{}.png", "beach/{}.png", "Beach\\{}.PNG", "beach\\{}"])
def test_a_backslash_may_be_a_part_of_a_files_name(named: str, tmp_path: Path) -> None:
    """Where an archive of Windows was unpacked, `beach\\0.png` is the name of one file."""
    files = [f"beach\\{number}.png" for number in range(2)]
    for number, file in enumerate(files):
        picture(tmp_path / "images" / file, number)
    images = [entry(number, filename=named.format(number)) for number in range(2)]
    made = build(tmp_path / "images", images)
    assert made.images["file"].tolist() == files
    assert all(file.path.is_file() for file in made.gallery())
    assert made.left_out == {}
