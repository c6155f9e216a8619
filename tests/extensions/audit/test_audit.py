"""An audit finds photographs by number, content and look, and captions by their words."""

from __future__ import annotations

from pathlib import Path

import foreign
import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageFilter

from pipeline.extensions.audit import fingerprints
from pipeline.extensions.audit.collection import Collection
from pipeline.extensions.audit.findings import Findings, compare
from pipeline.extensions.audit.fingerprints import Fingerprints
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.columns import NO_FILE
from tests.clips import encode

pytestmark = pytest.mark.slow


def photo(rng: np.random.Generator) -> Image.Image:
    """Smooth blobs, as photographs are smoother than noise."""
    cells = Image.fromarray(rng.integers(0, 255, (12, 16, 3), dtype=np.uint8))
    return cells.resize((256, 192), Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(2))


def data_set(
    folder: Path,
    name: str,
    files: dict[str, Image.Image | None],
    splits: list[str],
    captions: list[str],
) -> Manifest:
    """A manifest with one caption an image; an image of None has no file."""
    images = folder / name
    images.mkdir(parents=True)
    for file, image in files.items():
        if image is not None:
            image.save(images / file, quality=95)
    count = len(files)
    table = pd.DataFrame(
        {
            "image_id": np.arange(count),
            "file": list(files),
            "bytes": NO_FILE,
            "split": splits,
            "caption_id": np.arange(count),
            "caption": captions,
        }
    )
    return Manifest(
        table.astype({"image_id": "int64", "bytes": "int64", "caption_id": "int64"}), name, images
    )


def findings(
    one: Manifest, other: Manifest | None = None, bits: int = 16, **split: str
) -> Findings:
    first = Collection.of(one, split.get("split"))
    second = first if other is None else Collection.of(other)
    prints = fingerprints.take(first, 2), fingerprints.take(second, 2)
    return compare(first, second, prints, bits)


@pytest.fixture
def photos(rng: np.random.Generator) -> list[Image.Image]:
    return [photo(rng) for _ in range(12)]


@pytest.mark.specification
def test_two_data_sets(tmp_path: Path, photos: list[Image.Image]) -> None:
    one = data_set(
        tmp_path,
        "one",
        {
            "1000268201_693b08cb0e.jpg": photos[0],
            "a.jpg": photos[1],
            "b.png": photos[2],
            "c.jpg": photos[3],
        },
        ["test"] * 4,
        ["A dog runs.", "two cats", "a man", "a boat"],
    )
    smaller = photos[2].resize((150, 112))
    other = data_set(
        tmp_path,
        "other",
        {
            "1000268201.jpg": photos[0].rotate(2),
            "x.jpg": photos[1],
            "y.jpg": smaller,
            "z.jpg": photos[5],
        },
        ["train", "train", "val", "train"],
        ["a dog runs", "a dog, runs!", "a bird", "a tree"],
    )
    found = findings(one, other)
    assert [(pair.one, pair.other, pair.by) for pair in found.certain] == [
        (0, 0, "photo number"),
        (1, 1, "content"),
    ]
    assert [(pair.one, pair.other) for pair in found.doubtful] == [(2, 2)]
    assert 0 <= found.doubtful[0].bits <= 16
    assert found.leaks == found.certain
    assert found.texts == [("a dog runs", [0], [0, 1])]
    assert found.lines() == [
        "2 of 4 images of one (test) are images of other (train)",
        "further pairs that look alike: 1",
        "captions of one that other has too: 1 of 4, different texts: 1",
    ]


def test_a_number_alone_does_not_make_one_photograph_of_images_that_look_different(
    tmp_path: Path, photos: list[Image.Image]
) -> None:
    one = data_set(
        tmp_path, "one", {"10000.jpg": photos[0], "10001.jpg": photos[1]}, ["test"] * 2, ["a", "b"]
    )
    other = data_set(
        tmp_path, "other", {"10000.jpg": photos[2], "10001.jpg": None}, ["train"] * 2, ["c", "d"]
    )
    found = findings(one, other)
    assert [pair[:3] for pair in found.leaks] == [
        (1, 1, "photo number")
    ]  # not seen, so its number counts
    assert [pair[:3] for pair in found.doubtful] == [(0, 0, "photo number")]
    assert "pairs of one photo number that look different: 1" in found.lines()
    assert "further pairs that look alike: 0" in found.lines()
    assert f"the same photo number, but {found.doubtful[0].bits} of 256 bits differ" in found.page()


def prints(*dark: int) -> Fingerprints:
    """Images of which so many of the 256 bits are set, each of a content of its own."""
    look = np.stack([np.packbits(np.arange(256) < bits).view(np.uint64) for bits in dark])
    return Fingerprints(
        [f"{id(look)} {row}" for row in range(len(dark))], look, np.ones(len(dark), bool)
    )


def test_bounds_of_bits_are_within_what_they_bound(tmp_path: Path) -> None:
    """At most 16 of them differ: looks alike. More than 64, and a number alone does not make one
    photograph.
    """
    one, other = (
        Collection.of(
            data_set(
                tmp_path,
                name,
                {f"1000{row}.jpg": None for row in rows},
                ["train"] * len(rows),
                ["a"] * len(rows),
            )
        )
        for name, rows in (("one", (0, 1, 2)), ("other", (3, 4, 1, 2)))
    )
    found = compare(one, other, (prints(0, 100, 100), prints(16, 17, 164, 165)), 16)
    assert [pair[:2] for pair in found.certain] == [(1, 2)]
    assert found.leaks == found.certain, "of two collections, whatever the splits' names"
    assert [pair[:2] for pair in found.doubtful] == [(0, 0), (2, 3)]


def looks(count: int, copies: int, seed: int = 0) -> Fingerprints:
    """Images of random bits, of which every COPIES-th is one before it with 0 to 60 bits
    changed.
    """
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (count, 256), dtype=np.uint8)
    for row in range(copies, count, copies):
        bits[row] = bits[rng.integers(row)]
        bits[row, rng.permutation(256)[: rng.choice([0, 1, 2, 15, 16, 17, 32, 60])]] ^= 1
    return Fingerprints(
        [""] * count, np.packbits(bits, axis=1).view(np.uint64), rng.random(count) < 0.95
    )


def every_two(
    one: Fingerprints, other: Fingerprints, most_bits: int, alone: bool
) -> list[tuple[int, int, int]]:
    apart = np.bitwise_count(one.look[:, None] ^ other.look).sum(axis=2, dtype=int)
    return [
        (row, column, int(apart[row, column]))
        for row, column in np.argwhere(apart <= most_bits).tolist()
        if one.is_seen[row] and other.is_seen[column] and (not alone or row < column)
    ]


@pytest.mark.parametrize(
    ("equal", "most_bits"),
    [
        (0, 0),
        (0, 16),
        (0, 64),
        (0, 256),
        (1, 0),
        (1, 16),
        (1, 64),
        (2, 0),
        (2, 1),
        (2, 16),
        (2, 33),
        (3, 0),
        (3, 2),
        (3, 16),
    ],
)
def test_pairs_that_look_alike_are_those_of_comparing_every_two(
    equal: int, most_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "_bands_to_share", lambda bits, images: equal)
    monkeypatch.setattr(fingerprints, "BLOCK", 1000)
    one, other = looks(120, 3), looks(150, 5, seed=0)
    for pair in ((one, one, most_bits, True), (one, other, most_bits, False)):
        found = sorted(fingerprints.alike(*pair))
        assert found == every_two(*pair)
        assert found


@pytest.mark.parametrize("by", ["content", "look", "number"])
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("together", [True, False])
def test_copies_of_one_image_take_pairs_in_the_order_of_their_number(
    by: str, alone: bool, together: bool, rng: np.random.Generator
) -> None:
    """Every image is in a pair, and in one with each split, as where all pairs are listed."""

    def copies(count: int) -> tuple[Collection, Fingerprints]:
        files = [
            f"{row}/1000268201.jpg" if by == "number" else f"{row}.jpg" for row in range(count)
        ]
        same = "same" if by == "content" else ""
        splits = rng.choice(["train", "val", "test"], count)
        made = Collection(
            "copies",
            Path(),
            np.arange(count),
            files,
            np.sort(splits) if together else splits,
            [],
            np.zeros(0, np.int64),
        )
        return made, Fingerprints(
            [same or f"{count} {row}" for row in range(count)],
            np.full((count, 4), 5, np.uint64),
            np.full(count, by == "look"),
        )

    (one, mine), (other, theirs) = copies(400), copies(200)
    second, prints = (one, mine) if alone else (other, theirs)
    found = compare(one, second, (mine, prints), 16)
    pairs = found.doubtful if by == "look" else found.certain
    assert len(pairs) <= 3 * (400 + (400 if alone else 200))
    listed = {pair[:2] for pair in pairs}
    assert len(listed) == len(pairs)
    both = [(row, column, second.splits[column]) for row, column in listed]
    back = [(column, row, one.splits[row]) for row, column in listed]
    for found_with, rows, splits in (
        ((both + back, 400, one.splits),)
        if alone
        else ((both, 400, second.splits), (back, 200, one.splits))
    ):
        assert {(row, str(split)) for row, _, split in found_with} == {
            (row, split) for row in range(rows) for split in set(splits.tolist())
        }


def test_pairs_that_look_alike_are_found_in_the_order_of_the_images_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten times the images take ten times the comparisons and sorted keys, not a hundred times."""
    apart, with_equal, work = fingerprints._apart, fingerprints._with_equal, []
    monkeypatch.setattr(
        fingerprints, "_apart", lambda one, other: work.append(len(one)) or apart(one, other)
    )
    monkeypatch.setattr(
        fingerprints, "_with_equal", lambda *keys: work.append(len(keys[0])) or with_equal(*keys)
    )
    total = []
    for count in (2000, 20_000):
        work.clear()
        prints = looks(count, 40)
        assert len(list(fingerprints.alike(prints, prints, 16, True))) > count / 40 / 3
        total.append(sum(work))
    assert total[1] < 12 * total[0]


def test_an_image_in_several_pairs_is_counted_once(
    tmp_path: Path, photos: list[Image.Image]
) -> None:
    one = data_set(
        tmp_path, "one", {"a.jpg": photos[0], "b.jpg": photos[1]}, ["test"] * 2, ["a", "b"]
    )
    other = data_set(
        tmp_path, "other", {"c.jpg": photos[0], "d.jpg": photos[0]}, ["train"] * 2, ["c", "d"]
    )
    assert (
        findings(one, other).lines()[0] == "1 of 2 images of one (test) are images of other (train)"
    )


def test_equal_captions_of_most_images_in_both_data_sets_come_first(tmp_path: Path) -> None:
    one, other = (
        Collection.of(
            data_set(
                tmp_path,
                name,
                {f"{row}.jpg": None for row in range(len(captions))},
                ["train"] * len(captions),
                captions,
            )
        )
        for name, captions in (("one", ["z", "z", "a"]), ("other", ["z", "z", "b", "a", "a"]))
    )
    found = compare(one, other, (prints(*range(3)), prints(*range(5))), 0)
    assert [text for text, *_ in found.texts] == ["z", "a"]


def test_one_data_set_leaks_where_splits_share_a_photograph(
    tmp_path: Path, photos: list[Image.Image]
) -> None:
    files = {"a.jpg": photos[0], "b.jpg": photos[0], "c.jpg": photos[1], "d.jpg": photos[1]}
    own = data_set(
        tmp_path, "own", files, ["train", "train", "train", "test"], ["one", "two", "two", "three"]
    )
    found = findings(own)
    assert [pair[:2] for pair in found.certain] == [(0, 1), (2, 3)]
    assert [pair[:2] for pair in found.leaks] == [(2, 3)]
    assert found.lines()[:2] == [
        f"1 of 3 images of own (train) are images of own ({split})" for split in ("test", "train")
    ]
    assert found.doubtful == []
    assert found.texts == [("two", [1, 2], [1, 2])]
    assert found.equal_captions == 2
    assert findings(own, split="train").leaks == []


def test_other_photographs_do_not_look_alike(tmp_path: Path, photos: list[Image.Image]) -> None:
    own = data_set(
        tmp_path,
        "own",
        {f"p{row}.png": each for row, each in enumerate(photos)},
        ["train"] * 12,
        list("abcdefghijkl"),
    )
    assert findings(own).certain == findings(own).doubtful == []
    assert findings(own).lines()[0] == "no image occurs twice"


def test_images_of_one_colour_and_unreadable_files_are_no_pairs(
    tmp_path: Path, photos: list[Image.Image]
) -> None:
    flat = Image.new("RGB", (64, 64), "white")
    own = data_set(
        tmp_path,
        "own",
        {"a.png": flat, "b.png": Image.new("RGB", (64, 65), "black"), "c.png": None, "d.png": None},
        ["train"] * 4,
        list("abcd"),
    )
    (own.images_folder / "d.png").write_text("no image")
    found = findings(own)
    assert found.certain == found.doubtful == []
    assert found.unread == (1, 0)  # d.png can be read, though not decoded: its content is compared


def test_the_page_escapes_what_data_say(tmp_path: Path, photos: list[Image.Image]) -> None:
    evil = "<script>alert(1)</script>"
    one = data_set(
        tmp_path, "one", {"a.jpg": photos[0], "<b>.jpg": photos[2]}, ["test"] * 2, [evil, "x y"]
    )
    other = data_set(
        tmp_path, "other", {"c.jpg": photos[0], "<b>.jpg": None}, ["train"] * 2, [evil, "x y"]
    )
    html = findings(one, other).page()
    assert "<script" not in html
    assert "<b>" not in html
    assert html.count("data:image/webp;base64,") == 2
    assert "the same content" in html


def test_clips_are_compared_by_their_middle(tmp_path: Path) -> None:
    """A clip that was encoded again has other bytes and looks the same."""
    rng = np.random.default_rng(0)
    shown = [photo(rng) for _ in range(3)]
    names = [f"{number}.mp4" for number in range(3)]
    tables = []
    for name, order, codec in (("one", (0, 1), "libx264"), ("other", (2, 1), "mpeg4")):
        made = data_set(
            tmp_path,
            name,
            dict.fromkeys(names[:2]),
            ["train"] * 2,
            [f"{name} {each}" for each in order],
        )
        for file, which in zip(names, order, strict=False):
            encode(made.images_folder / file, [shown[which]] * 5, codec=codec, b="2M")
        tables.append(made)
    found = findings(*tables)
    assert {(pair.one, pair.other, pair.by) for pair in found.doubtful} == {(1, 1, "look")}


def of_captions(*captions: str, splits: str = "") -> Collection:
    """A collection of images without files, one for each caption."""
    count = len(captions)
    return Collection(
        name="mine",
        folder=Path("nowhere"),
        image_ids=np.arange(count),
        files=[f"{row}.jpg" for row in range(count)],
        splits=np.array([*splits] or ["train"] * count),
        captions=[*captions],
        caption_image=np.arange(count),
    )


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("A dog runs.", "a dog, runs!", True),
        ("die Straße", "DIE STRASSE", True),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ", True),
        ("a  dog", "a dog", True),
        ("a dog", "a dogs", False),
        ("a dog", "dog a", False),
        ("…", "?!", False),
        ("", "", False),
    ],
)
def test_captions_are_compared_by_their_words_in_any_case(
    one: str, other: str, equal: bool
) -> None:
    """A caption without words is equal to none."""
    alone = of_captions(one, other)
    two = prints(0, 100)
    assert (compare(alone, alone, (two, two), 0).equal_captions == 2) == equal
    found = compare(of_captions(one), of_captions(other), (prints(0), prints(100)), 0)
    assert (len(found.texts), found.equal_captions) == (int(equal), int(equal))


@pytest.mark.parametrize(
    ("count", "listed"),
    [
        (2, 1),
        (10, 45),  # 10 x 10 are as many as are listed whole
        (11, 10),  # of one split: each with the next
    ],
)
def test_of_many_copies_not_every_pair_is_listed(count: int, listed: int) -> None:
    look = prints(*[50] * count)
    copies = look._replace(content=["same"] * count)
    alone = of_captions(*map(str, range(count)))
    found = compare(alone, alone, (copies, copies), 0)
    assert len(found.certain) == listed
    assert {row for pair in found.certain for row in pair[:2]} == set(range(count))
    if count == 10:
        other = of_captions(*map(str, range(100, 100 + count)))
        of_two = compare(alone, other, (copies, copies), 0)
        assert len(of_two.certain) == 100
        eleven = of_captions(*map(str, range(11)))
        more = prints(*[50] * 11)._replace(content=["same"] * 11)
        assert len(compare(alone, eleven, (copies, more), 0).certain) == 10 + 11 - 1


def test_equal_captions_are_in_the_order_of_their_images_in_both_and_of_their_words() -> None:
    one = of_captions(*"zaabcc")
    other = of_captions(*"zzzzabcc")
    found = compare(one, other, (prints(*range(6)), prints(*range(100, 108))), 0)
    images = {text: len(first) + len(second) for text, first, second in found.texts}
    assert list(images.items()) == [("z", 5), ("c", 4), ("a", 3), ("b", 2)]
    alone = of_captions(*"zzaabbb")
    look = prints(*range(7))
    assert [text for text, *_ in compare(alone, alone, (look, look), 0).texts] == ["b", "a", "z"]


@pytest.mark.parametrize(("bits", "certain"), [(0, 1), (63, 1), (64, 1), (65, 0), (256, 0)])
def test_images_of_one_number_are_one_photograph_up_to_a_quarter_of_their_bits(
    bits: int, certain: int
) -> None:
    one, other = of_captions("a"), of_captions("b")
    one.files[0] = other.files[0] = "10000.jpg"
    found = compare(one, other, (prints(0), prints(bits)), 0)
    assert (len(found.certain), len(found.doubtful)) == (certain, 1 - certain)
    if not certain:
        assert found.doubtful[0].bits == bits
    same = prints(0)
    copy = prints(bits)._replace(content=same.content)  # the same file, whatever was seen of it
    assert len(compare(one, other, (same, copy), 0).certain) == 1


def test_pairs_that_look_alike_are_in_the_order_of_the_bits_that_differ() -> None:
    found = compare(
        of_captions(*"abc"),
        of_captions(*"defg"),
        (prints(0, 100, 200), prints(9, 103, 200, 97)),
        16,
    )
    assert [(pair.bits, pair.one, pair.other) for pair in found.doubtful] == [
        (0, 2, 2),
        (3, 1, 1),
        (3, 1, 3),
        (9, 0, 0),
    ]


def test_a_split_has_its_own_captions_alone() -> None:
    manifest = foreign.manifest(8, captions=2)
    for split, count in (("train", 4), ("val", 2), ("test", 2)):
        part = Collection.of(manifest, split)
        expected = manifest.rows(["split", "image_id", "caption"])
        expected = expected[expected["split"] == split]
        assert part.captions == expected["caption"].tolist()
        assert (len(part.files), len(part.captions)) == (count, 2 * count)
        owners = part.image_ids[part.caption_image].tolist()
        assert owners == expected["image_id"].tolist()
        assert part.name == f"coco:{split}"
