"""What stands for a file that was not fetched, among photographs and annotations: pointers of Git
LFS, links of git-annex, and what a copy of DVC lacks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from stand_ins import STAND_INS

from pipeline.foundation.files import unfetched
from pipeline.foundation.manifest import build
from pipeline.foundation.parts.errors import InputError

IMAGES = 120


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Photographs, and the file of their captions beside the folder."""
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = ["image,caption"]
    for number in range(IMAGES):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number}.png")
        lines.append(f"{number}.png,a dog {number}")
    (tmp_path / "captions.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize(("stand_in", "words"), STAND_INS)
def test_photographs_are_said_not_to_be_fetched(
    stand_in: Callable[[Path], None], words: str, photos: Path
) -> None:
    captions = photos.parent / "captions.csv"
    stand_in(photos / "3.png")
    made = build("mine", photos, captions)
    assert made.left_out == {"image not fetched": 1}
    assert len(made.images) == IMAGES - 1
    for number in range(IMAGES):
        stand_in(photos / f"{number}.png")
    message = f"0.png: {words}; so are {IMAGES} of {IMAGES} images"
    with pytest.raises(InputError, match=re.escape(message)):
        build("mine", photos, captions)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.json", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize(("stand_in", "words"), STAND_INS)
def test_annotations_are_said_not_to_be_fetched(
    stand_in: Callable[[Path], None], words: str, name: str, tmp_path: Path
) -> None:
    stand_in(tmp_path / name)
    with pytest.raises(InputError, match=re.escape(f"{name}: {words}")):
        build("mine", tmp_path, tmp_path / name)


def test_what_is_missing_or_leads_in_a_circle_stands_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "file").write_text("text")
    (tmp_path / "lost").symlink_to("nowhere")
    said = {name: unfetched.stand_in(tmp_path / name) for name in ("circle", "file", "no", ".")}
    assert set(said.values()) == {""}
    assert "a link to nowhere, which is not there" in unfetched.stand_in(tmp_path / "lost")


def test_a_copy_of_dvc_is_said_to_lack_what_is_not_in_git(photos: Path, tmp_path: Path) -> None:
    captions = photos.parent / "captions.csv"
    copy = tmp_path / ".dvc" / "tmp" / "exps" / "standalone" / "tmp1" / "data" / "mine" / "images"
    with pytest.raises(InputError, match=r"DVC's temporary copies lack .* --temp -C data$"):
        build("mine", copy, captions)
    with pytest.raises(InputError, match="name it with --images"):
        build("mine", tmp_path / "images", captions)
    with pytest.raises(InputError, match="is a file; name the folder of images that it is in"):
        build("mine", captions, captions)


def test_a_link_of_annex_to_a_fetched_photograph_is_read_and_others_are_refused(
    photos: Path,
) -> None:
    captions = photos.parent / "captions.csv"
    objects = photos.parent / ".git" / "annex" / "objects" / "a" / "b"
    objects.mkdir(parents=True)
    content = photos / "3.png"
    size = content.stat().st_size
    content.rename(objects / "key.png")
    content.symlink_to("../.git/annex/objects/a/b/key.png")
    made = build("mine", photos, captions)
    assert not made.left_out
    assert made.images.set_index("file").loc["3.png", "bytes"] == size
    secret = photos.parent / "secret.png"
    secret.write_bytes((objects / "key.png").read_bytes())
    elsewhere = photos.parent / "other" / ".git" / "annex" / "objects" / "key.png"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(secret.read_bytes())
    (objects / "out.png").symlink_to(secret)
    for target in (secret, elsewhere, objects / "out.png", objects / "../../../../../secret.png"):
        content.unlink()
        content.symlink_to(target)
        with pytest.raises(InputError, match=r"3\.png: is a link that leaves .*cp -rL"):
            build("mine", photos, captions)
