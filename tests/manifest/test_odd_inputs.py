"""Annotations as people have them: other spellings of known layouts, and rows that cannot be
used.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest
from read_examples import check, read, rows

from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest.examples import Example, as_json, as_lines, picture, table
from pipeline.foundation.parts.errors import InputError

DOG, CAT, BUS = "A dog runs.", "A cat sleeps.", "A red bus, seen from above."
AB = {"images/a.jpg": picture(40), "images/b.jpg": picture(120)}
ABC = AB | {"images/c.jpg": picture(200)}
ROWS = [("a.jpg", "test", DOG), ("b.jpg", "test", CAT)]
SPLIT_ROWS = [("a.jpg", "train", DOG), ("b.jpg", "val", CAT), ("c.jpg", "test", BUS)]
TWO = ("a.jpg", "test", "Two.")
ARABIC, HINDI = "كلب يجري", "कुत्ता दौड़ता है"
FIVE = [DOG, "Two.", "Three.", "Four.", "Five."]


def csv(
    content: str | bytes,
    name: str = "captions.csv",
    images: dict[str, Any] = AB,
    read: list[tuple[str, str, str]] = ROWS,
    **more: Any,
) -> Example:
    return Example("", images | {name: content}, read, name, **more)


def one(*captions: str) -> list[tuple[str, str, str]]:
    return [("a.jpg", "test", caption) for caption in captions]


def renamed(**names: str) -> dict[str, Any]:
    return {f"images/{name}": picture(1) for name in names.values()}


ONE = {"images/a.jpg": picture(1)}
COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "café.jpg") for form in ("NFC", "NFD"))

ODD: dict[str, Example] = {
    # rows of Parquet
    "3 a row a caption, url five times": csv(
        table({"url": ["a.jpg"] * 5, "caption": FIVE}), "c.parquet", ONE, one(*FIVE)
    ),
    "4 columns URL and TEXT": csv(
        table({"URL": ["a.jpg", "b.jpg"], "TEXT": [DOG, CAT]}), "c.parquet"
    ),
    "5 line ends in a caption of Parquet": csv(
        table({"url": ["a.jpg"], "caption": ["one\x0btwo\x85three\u2028four\nfive"]}),
        "c.parquet",
        ONE,
        one("one\x0btwo\x85three\u2028four\nfive"),
    ),
    "5 line ends in JSON": csv(
        as_json([{"image": "a.jpg", "caption": "one\u2028two\x85three\x1cfour"}]),
        "c.json",
        ONE,
        one("one\u2028two\x85three\x1cfour"),
    ),
    "letters in two forms of Unicode": csv(
        unicodedata.normalize("NFD", "image,caption\na.jpg,A café.\n"),
        images=ONE,
        read=one(unicodedata.normalize("NFC", "A café.")),
    ),
    "10 null and blank captions": csv(
        table({"url": ["a.jpg"] * 3, "caption": ["a dog", None, ""]}),
        "c.parquet",
        ONE,
        one("a dog"),
        left_out={"no caption": 2},
    ),
    "20 sentences, restval": csv(
        table(
            {
                "sentences": [[{"raw": DOG, "tokens": ["A"]}, {"raw": "Two.", "tokens": []}]],
                "split": ["restval"],
                "url": ["a.jpg"],
            }
        ),
        "c.parquet",
        ONE,
        [("a.jpg", "train", DOG), ("a.jpg", "train", "Two.")],
    ),
    "20 images, a list of structs": Example(
        "",
        {
            "web/0.parquet": table(
                {
                    "images": [
                        [{"bytes": picture(1), "path": "a.jpg"}],
                        [{"bytes": picture(2), "path": "b.jpg"}],
                    ],
                    "sentences": [[DOG], [CAT]],
                }
            )
        },
        [("0.parquet/0", "test", DOG), ("0.parquet/1", "test", CAT)],
        "web",
        "web",
    ),
    "parquet, null among a list": csv(
        table({"file_name": ["a.jpg"], "captions": [[DOG, None, " "]]}),
        "c.parquet",
        ONE,
        one(DOG),
        left_out={"no caption": 2},
    ),
    "parquet, paths in image structs": csv(
        table(
            {
                "image": [{"bytes": None, "path": "a.jpg"}, {"bytes": None, "path": "b.jpg"}],
                "text": [DOG, CAT],
            }
        ),
        "c.parquet",
    ),
    # CSV and its kin
    "6 caption twice": csv(
        f"image,caption,caption\na.jpg,{DOG},Two.\nb.jpg,{CAT},\n", read=[ROWS[0], TWO, ROWS[1]]
    ),
    "6 caption1 to caption3": csv(
        f"Image Name,Caption 1,Caption 2,caption_3\na.jpg,{DOG},Two.,\nb.jpg,{CAT},,\n",
        read=[ROWS[0], TWO, ROWS[1]],
    ),
    "17 backslashes": csv(
        f"image,caption\nbeach\\a.jpg,{DOG}\n",
        images={"images/beach/a.jpg": picture(1)},
        read=[("beach/a.jpg", "test", DOG)],
    ),
    "18 a.JPG, ./a.jpg, blank": csv(
        f"image,caption\na.JPG,{DOG}\n./a.jpg,Two.\n a.jpg,Three.\na.jpg ,Four.\n",
        images=ONE,
        read=one(DOG, "Two.", "Three.", "Four."),
        said="spelled differently",
    ),
    "18 Unicode forms": csv(
        f"image,caption\n{COMPOSED},{DOG}\n",
        images={f"images/{DECOMPOSED}": picture(1)},
        read=[(DECOMPOSED, "test", DOG)],
    ),
    "18 names without a suffix": csv(
        f"img_id,caption\n1001,{DOG}\n1002,{CAT}\n",
        images={"images/1001.jpg": picture(1), "images/1002.png": picture(2, "PNG")},
        read=[("1001.jpg", "test", DOG), ("1002.png", "test", CAT)],
    ),
    "25 semicolons": csv(f"image;caption\na.jpg;{DOG}\nb.jpg;{CAT}\n"),
    "25 split dev, training": csv(
        f"image,caption,split\na.jpg,{DOG},training\nb.jpg,{CAT},dev\nc.jpg,bus,Testing\n",
        images=ABC,
        read=[*SPLIT_ROWS[:2], ("c.jpg", "test", "bus")],
    ),
    "25 split valid, validation": csv(
        f"image,caption,split\na.jpg,{DOG},valid\nb.jpg,{CAT}, validation\n",
        read=[("a.jpg", "val", DOG), ("b.jpg", "val", CAT)],
    ),
    "26 one blank caption": csv(
        f"image,caption\na.jpg,{DOG}\na.jpg,  \nb.jpg,{CAT}\n", left_out={"no caption": 1}
    ),
    "27 filepath, title": csv(f"filepath\ttitle\na.jpg\t{DOG}\nb.jpg\t{CAT}\n", "captions.tsv"),
    "quotes of Windows-1252": csv(
        f"image,caption\na.jpg,The dog’s ball – new\nb.jpg,{CAT}\n".encode("cp1252"),
        read=[("a.jpg", "test", "The dog’s ball – new"), ROWS[1]],
        said="Windows-1252",
    ),
    "a byte that is no UTF-8": csv(
        f"image,caption\na.jpg,{ARABIC}\nb.jpg,{CAT}\n".encode() + b"a.jpg,bad \xff\n",
        read=[("a.jpg", "test", ARABIC), ROWS[1]],
        left_out={"damaged row": 1},
    ),
    "a quote that is not closed": csv(
        f'image,caption\na.jpg,"The dog\nb.jpg,{CAT}\na.jpg,"{DOG}"\n',
        read=[ROWS[1], ROWS[0]],
        left_out={"damaged row": 1},
    ),
    "blank after the comma, quotes": csv(
        f'image, caption\na.jpg, "{DOG[:-1]}, too."\nb.jpg, {CAT}\n',
        read=[("a.jpg", "test", "A dog runs, too."), ROWS[1]],
    ),
    "Excel's empty columns and rows": csv(f"image,caption,,\na.jpg,{DOG},,\nb.jpg,{CAT},,,\n,,,\n"),
    "Excel's blank rows": csv(f"image;caption;\na.jpg;{DOG};\nb.jpg;{CAT};\n" + ";;\n" * 5),
    "a numbered first column of pandas": csv(f",image,caption\n0,a.jpg,{DOG}\n1,b.jpg,{CAT}\n"),
    "lists that Python wrote": csv(
        f"image,captions\na.jpg,\"['{DOG}', 'Two.']\"\nb.jpg,\"['{CAT}']\"\n",
        read=[ROWS[0], TWO, ROWS[1]],
    ),
    "UTF-8 with a mark": csv(
        f"image,caption\na.jpg,{HINDI}\nb.jpg,{CAT}\n".encode("utf-8-sig"),
        read=[("a.jpg", "test", HINDI), ROWS[1]],
    ),
    "a caption over two lines": csv(
        f'image,caption\na.jpg,"one\ntwo"\nb.jpg,{CAT}\n',
        read=[("a.jpg", "test", "one\ntwo"), ROWS[1]],
    ),
    "no header, CC3M": csv(f"{DOG}\ta.jpg\n{CAT}\tb.jpg\n", "cc3m.tsv", said="no header"),
    # Headings that nobody knows
    "a split, and two odd headings": csv(
        f"Pic Ref,What I see,split\na.jpg,{DOG},train\nb.jpg,{CAT},val\nc.jpg,{BUS!r},test\n".replace(
            "'", '"'
        ),
        images=ABC,
        read=SPLIT_ROWS,
        said="image in Pic Ref, caption in What I see, split in split",
    ),
    "an odd heading of many captions": csv(
        f"image;What I see;Nr\na.jpg;{DOG};1\n" + f"b.jpg;{CAT};2\n",
        said="image in image, caption in What I see (not used: Nr)",
    ),
    "an odd heading of many images": csv(
        "Pic Ref,caption,Part\n" + "".join(f"a.jpg,dog {number},one\n" for number in range(40)),
        images=ONE,
        read=one(*(f"dog {number}" for number in range(40))),
        said="image in Pic Ref, caption in caption (not used: Part)",
    ),
    "odd headings alone": csv(
        f"Nr\tPic Ref\tWhat I see\n1\ta.jpg\t{DOG}\n2\tb.jpg\t{CAT}\n",
        said="image in Pic Ref, caption in What I see (not used: Nr)",
    ),
    "a number beside an odd heading of images": csv(
        f"id,Pic Ref,What I see\n1,a.jpg,{DOG}\n2,b.jpg,{CAT}\n",
        said="image in Pic Ref, caption in What I see",
    ),
    "a known number and an address beside known captions": csv(
        f"image_id,caption,coco_url\n42,{DOG}.,http://images/42.jpg\n42,Two.,http://images/42.jpg\n",
        images={"images/000000000042.jpg": picture(1)},
        read=[("000000000042.jpg", "test", f"{DOG}."), ("000000000042.jpg", "test", "Two.")],
        said="image in image_id, caption in caption (not used: coco_url)",
    ),
    "an unknown column beside known ones": csv(
        f"image,caption,Part\na.jpg,{DOG},x\nb.jpg,{CAT},y\n", said="(not used: Part)"
    ),
    **{
        f"a column {heading} of names of splits": csv(
            f"image,caption,{heading}\na.jpg,{DOG},Train\nb.jpg,{CAT},dev\nc.jpg,'{BUS}',test\n".replace(
                "'", '"'
            ),
            images=ABC,
            read=SPLIT_ROWS,
            said=f"image in image, caption in caption, split in {heading}",
        )
        for heading in ("Part", "set", "subset", "fold", "partition", "which")
    },
    "a column of names of splits in JSON Lines": csv(
        as_lines(
            {"image": "a.jpg", "caption": DOG, "Nr": 1, "Part": "train"},
            {"image": "b.jpg", "caption": CAT, "Nr": 2, "Part": "val"},
            {"image": "c.jpg", "caption": BUS, "Nr": 3, "Part": "test"},
        ),
        "c.jsonl",
        ABC,
        SPLIT_ROWS,
        said="split in Part (not used: Nr)",
    ),
    "a column of names of splits in Parquet": csv(
        table(
            {
                "Part": ["train", "val", "test"],
                "image": ["a.jpg", "b.jpg", "c.jpg"],
                "caption": [DOG, CAT, BUS],
            }
        ),
        "c.parquet",
        ABC,
        SPLIT_ROWS,
        said="split in Part",
    ),
    "a column of names, not only of splits": csv(
        f"image,caption,Part\na.jpg,{DOG},test\nb.jpg,{CAT},one\n", said="(not used: Part)"
    ),
    "no header, and a first row without an image": csv(
        ",Nobody's caption.\n" + "".join(f"a.jpg,dog {number}\n" for number in range(20)),
        images=ONE,
        read=[*one(*(f"dog {number}" for number in range(20))), ("", "test", "Nobody's caption.")],
        said="no header",
    ),
    "no header, and splits": csv(
        f"a.jpg,{DOG},train\nb.jpg,{CAT},val\n",
        read=[SPLIT_ROWS[0], SPLIT_ROWS[1]],
        said="no header",
    ),
    "a missing image": csv(
        f"image,caption\na.jpg,{DOG}\nb.jpg,{CAT}\nd.jpg,A bus.\nd.jpg,A bus again.\n",
        left_out={"image missing": 2},
    ),
    "a name below the folder's own": csv(
        f"image,caption\nimages/a.jpg,{DOG}\nimages/b.jpg,{CAT}\n",
        said="such as a.jpg for 'images/a.jpg'",
    ),
    "COCO's numbers": csv(
        f"image_id,caption\n42,{DOG}\n42,Two.\n",
        images={"images/000000000042.jpg": picture(1)},
        read=[("000000000042.jpg", "test", DOG), ("000000000042.jpg", "test", "Two.")],
    ),
    "captions of a part of the folder": csv(
        f"image,caption\na.jpg,{DOG}\n",
        images={f"images/{name}.jpg": picture(number) for number, name in enumerate("abcdef")},
        read=ROWS[:1],
        left_out={"image without a caption": 5},
    ),
    "13 companions of macOS": csv(
        f"image,caption\na.jpg,{DOG}\nb.jpg,{CAT}\n",
        images=AB
        | {
            "images/._a.jpg": b"x",
            "images/__MACOSX/._a.jpg": b"x",
            "images/.DS_Store": b"x",
            "images/Thumbs.db": b"x",
        },
        said="ignored 4 files that macOS or Windows added",
    ),
    # JSON
    "15 LAVIS' train": csv(
        as_json(
            [
                {"caption": DOG, "image": "a.jpg", "image_id": "coco_1"},
                {"caption": "Two.", "image": "a.jpg", "image_id": "coco_1"},
            ]
        ),
        "coco_train.json",
        ONE,
        [("a.jpg", "train", DOG), ("a.jpg", "train", "Two.")],
    ),
    "15 LAVIS' val": csv(
        as_json([{"image": "a.jpg", "caption": FIVE}]),
        "coco_karpathy_val.json",
        ONE,
        [("a.jpg", "val", caption) for caption in FIVE],
    ),
    "19 COCO without ids": csv(
        as_json(
            {
                "images": [{"id": 7, "file_name": "b.jpg"}, {"id": 5, "file_name": "a.jpg"}],
                "annotations": [{"image_id": 5, "caption": DOG}, {"image_id": 7, "caption": CAT}],
            }
        ),
        "captions.json",
        read=[ROWS[1], ROWS[0]],
    ),
    "COCO with null, doubled and foreign captions": csv(
        as_json(
            {
                "images": [{"id": 7, "file_name": "a.jpg"}],
                "annotations": [
                    {"id": 1, "image_id": 7, "caption": DOG},
                    {"id": 1, "image_id": 7, "caption": DOG},
                    {"id": 2, "image_id": 7, "caption": None},
                    {"id": 3, "image_id": 9, "caption": CAT},
                ],
            }
        ),
        "captions.json",
        ONE,
        one(DOG),
        left_out={"no caption": 1, "image not listed": 1, "doubled": 1},
    ),
    "RSITMD's JSON": csv(
        as_json(
            {
                "dataset": "RSITMD",
                "images": [
                    {
                        "filename": "a.tif",
                        "split": "train",
                        "imgid": 0,
                        "sentids": [0],
                        "sentences": [{"tokens": ["A"], "raw": DOG, "imgid": 0, "sentid": 0}],
                    }
                ],
            }
        ),
        "dataset_RSITMD.json",
        {"images/a.tif": picture(1, "TIFF")},
        [("a.tif", "train", DOG)],
    ),
    "Karpathy's layout without ids": csv(
        as_json(
            {
                "images": [
                    {
                        "filename": "a.jpg",
                        "split": "dev",
                        "sentences": [{"raw": DOG}, {"raw": None}],
                    }
                ]
            }
        ),
        "c.json",
        ONE,
        [("a.jpg", "val", DOG)],
        left_out={"no caption": 1},
    ),
    "VizWiz, nocaps": csv(
        as_json(
            {
                "info": {},
                "images": [{"id": 0, "file_name": "a.jpg", "vizwiz_url": "http://x/a"}],
                "annotations": [
                    {
                        "image_id": 0,
                        "id": 0,
                        "caption": DOG,
                        "is_rejected": False,
                        "text_detected": True,
                    }
                ],
            }
        ),
        "val.json",
        ONE,
        one(DOG),
    ),
    "Label Studio's JSON-MIN": csv(
        as_json(
            [{"id": 1, "annotator": 1, "image": "a.jpg", "caption": DOG, "created_at": "2024"}]
        ),
        "min.json",
        ONE,
        one(DOG),
    ),
    "a line that is no JSON": csv(
        as_lines({"file_name": "a.jpg", "text": DOG})
        + "{oops\n"
        + as_lines({"file_name": "b.jpg", "text": CAT}),
        "captions.jsonl",
        left_out={"damaged row": 1},
    ),
    "a list in an object": csv(
        as_json(
            {
                "annotations": [
                    {"image": "a.jpg", "caption": DOG},
                    {"image": "b.jpg", "caption": CAT},
                ]
            }
        ),
        "captions.json",
    ),
    "annotations of COCO's kind that name the files": csv(
        as_json(
            {
                "annotations": [
                    {"image": "a.jpg", "caption": DOG, "image_id": "coco_1"},
                    {"image": "b.jpg", "caption": CAT, "image_id": "2"},
                ],
                "info": {},
            }
        ),
        "captions.json",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_it_is_read_as_it_is_meant(name: str, tmp_path: Path) -> None:
    check(ODD[name], tmp_path)


REFUSED: dict[str, tuple[Example, str]] = {
    "14 two years of COCO": (
        Example(
            "",
            AB
            | {
                f"lists/captions_val{year}.json": as_json({"images": [], "annotations": []})
                for year in (2014, 2017)
            },
            [],
            "lists",
        ),
        r"lists: holds captions of 2014 and 2017, which are the same images; name one file, such as .*_val2014",
    ),
    "20 no caption": (
        csv(table({"url": ["a.jpg"], "words": ["x"]}), "c.parquet"),
        r"no column caption \(or text\); its columns are 'url', 'words', the first row 'a\.jpg', 'x'",
    ),
    "two columns of names of splits": (
        csv(f"image,caption,Part,Set\na.jpg,{DOG},train,val\nb.jpg,{CAT},test,test\n"),
        r"captions\.csv: the columns Part and Set hold names of splits; call the one that counts split$",
    ),
    "two files without splits": (
        Example("", AB | {"lists/one.csv": "image,caption\n", "lists/two.csv": "x"}, [], "lists"),
        r"holds 2 files .* one\.csv says no split; name one of them",
    ),
    "Label Studio's whole export": (
        csv(as_json([{"id": 1, "data": {"image": "a.jpg"}, "annotations": [{}]}]), "c.json"),
        r"no column caption .*its columns are 'id', 'data', 'annotations'",
    ),
    "two columns that may be the captions": (
        csv(f"Pic Ref,Remark,What I see\na.jpg,at dusk,{DOG}\nb.jpg,blurred,{CAT}\n"),
        r"^[^\n]*no known heading in 'Pic Ref', 'Remark', 'What I see': rename the columns to image, caption and, "
        r"if there is one, split[^\n]*$",
    ),
    "many rows of two columns that may be the captions": (
        csv("Pic Ref,Remark,What I see\n" + f"a.jpg,at dusk,{DOG}\nb.jpg,blurred,{CAT}\n" * 20),
        r"no known heading in 'Pic Ref', 'Remark', 'What I see': rename",
    ),
    "an image's heading, and two columns that may be the captions": (
        csv("image,What I see,Nr,Who\n" + f"a.jpg,{DOG},1,Ada\nb.jpg,{CAT},2,Ben\n" * 20),
        r"^[^\n]*has no column caption .*its columns are 'image', 'What I see', 'Nr', 'Who'.*"
        r"Call them image, caption and, if there is one, split[^\n]*$",
    ),
    "GBK": (
        csv(b"image,caption\n" + "a.jpg,一只狗在草地上跑\n".encode("gbk") * 5),
        r"damaged row: 5.*line 2: not UTF-8; if it is GBK, convert it with iconv",
    ),
    "all images missing": (
        csv(f"image,caption\nC:\\photos\\a.jpg,{DOG}\n"),
        r"no such image.*did you mean a\.jpg\?",
    ),
    "too many blanks": (
        csv("image,caption\n" + f"a.jpg,{DOG}\nb.jpg,\n" * 5),
        r"captions\.csv: 5 of 10 captions \(no caption: 5\), more than 1 % of all; .*csv, line 3",
    ),
    "a path that leaves the folder": (
        csv(f"image,caption\n../a.jpg,{DOG}\n"),
        r"'\.\./a\.jpg' leaves the image",
    ),
    "zero bytes": (csv("image,caption\n".encode("utf-16-le")), "UTF-16 without a mark"),
    "an Excel workbook": (
        csv(b"PK\3\4 xl", "captions.xlsx"),
        "is an Excel workbook, to be saved as CSV UTF-8",
    ),
    "a compressed table": (
        csv(b"\x1f\x8b\x08", "captions.csv.gz"),
        "is compressed by gzip; unpack it",
    ),
    "pandas' to_json": (
        csv(as_json({"image": {"0": "a.jpg"}, "caption": {"0": DOG}}), "captions.json"),
        r"beginning with \"image\", as pandas' to_json writes them; write it with orient='records'",
    ),
    "JSON of another kind": (
        csv('{\n "version": 2,\n "files": {"a.jpg": {"alt": "x"}}\n}', "captions.json"),
        "is a JSON object with the keys version, files, a.jpg, alt; expected a list of objects",
    ),
    "COCO's layout with texts and numbers for ids": (
        csv(
            as_json(
                {
                    "images": [{"id": 7, "file_name": "a.jpg"}],
                    "annotations": [{"image_id": "x1", "caption": DOG}],
                }
            ),
            "c.json",
        ),
        r"in COCO's layout: lists .*; expected a whole number, got 'x1'$",
    ),
    "an unknown split": (csv(f"image,caption,split\na.jpg,{DOG},fold3\n"), "unknown split 'fold3'"),
}


@pytest.mark.specification
@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_what_is_there(name: str, tmp_path: Path) -> None:
    example, said = REFUSED[name]
    with pytest.raises(InputError, match=said):
        read(example, tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("list.json", as_json([{"image": "a.jpg", "caption": DOG}, 5]), "row 2"),
        ("inner.json", as_json({"rows": [{"image": "a.jpg", "caption": DOG}, 5]}), "row 2"),
        ("lines.jsonl", as_lines({"image": "a.jpg", "caption": DOG}) + "\n5\n", "row 3"),
        ("lines.jsonl", as_lines({"image": "a.jpg", "caption": DOG}) + "{\n", "line 2"),
    ],
)
def test_a_damaged_row_is_named_by_its_number_from_1(
    name: str, content: str, place: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=rf"{name}, {place}: "):
        read(csv(content, name, ONE), tmp_path, LeftOut(fail=True))


def test_nothing_is_left_out_with_on_error_fail(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"1 of 3 captions \(no caption: 1\); repair them, .*line 3"
    ):
        read(ODD["26 one blank caption"], tmp_path, LeftOut(fail=True))


def test_two_readings_are_said(tmp_path: Path) -> None:
    made, said = read(csv(f"image,path,caption,text\na.jpg,x,{DOG},y\n"), tmp_path)
    assert rows(made) == ROWS[:1]
    assert "image in image, caption in caption (not used: path, text)" in said[0]
