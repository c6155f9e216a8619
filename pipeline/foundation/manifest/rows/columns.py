"""Which column of a table holds what, by the names that tools and data sets give their columns."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pipeline.foundation.parts.errors import InputError

IMAGE_FILES = (
    "image",
    "images",
    "imagepath",
    "imagefile",
    "imagefilename",
    "imagefilepath",
    "imagename",
    "img",
    "imgpath",
    "imgfile",
    "imgname",
    "file",
    "filename",
    "filepath",
    "filenames",
    "path",
    "photo",
    "picture",
)
# Beside the name of a file they are no second reading of the image.
IMAGE_ADDRESSES = ("url", "imageurl", "uri", "link", "imageid", "imgid", "id")
CAPTIONS = (
    "caption",
    "captions",
    "text",
    "texts",
    "title",
    "raw",
    "sentence",
    "sentences",
    "comment",
    "comments",
    "description",
    "descriptions",
    "alttext",
    "alt",
    "conversations",
)
# Role -> names of its columns, without case, blanks, _ and -. Earlier names are taken before later
# ones.
NAMES: Mapping[str, tuple[str, ...]] = {
    "image": (*IMAGE_FILES, *IMAGE_ADDRESSES),
    "video": ("video", "videos", "videopath", "videofile", "videoname", "videoid", "clip"),
    "caption": CAPTIONS,
    "split": ("split", "subset", "partition"),
    "language": ("language", "lang"),
    "start": ("start", "starttime"),
    "end": ("end", "endtime"),
    "image id": ("cocoid", "imageid", "imgid", "key"),
    "caption id": ("captionid", "sentid", "annotationid"),
    "status": ("status",),  # img2dataset's: "success", or why a row has no image
}
NUMBERED = re.compile(r"(.*?)\d+")
LONGEST_NAME = 100  # characters
SHOWN = 300  # characters of columns and first row in a message


@dataclass(frozen=True)
class Columns:
    """The columns that are used."""

    names: Sequence[str]  # All names, as the table has them
    # Role, a key of `NAMES` -> numbers of its columns; several only for captions.
    roles: Mapping[str, tuple[int, ...]]
    unused: Sequence[str] = ()  # Names of the other columns

    def __str__(self) -> str:
        used = []
        for role, columns in self.roles.items():
            names = " and ".join(self.names[column] for column in columns)
            used.append(f"{role} in {names}")
        description = ", ".join(used)
        if self.unused:
            description += f" (not used: {_cut(', '.join(self.unused))})"
        return description

    @property
    def kind(self) -> str:
        """What the rows describe."""
        return "video" if "video" in self.roles else "image"


def plain(name: str) -> str:
    """A column's name without what spellings differ in; "" for one that is too long for a name."""
    if len(name) > LONGEST_NAME:
        return ""
    return re.sub(r"[\s_\-﻿]+", "", name).casefold()


def find(names: Sequence[str], by_cells: Mapping[str, int] | None = None) -> Columns:
    """Find the roles of columns by their names. by_cells: role -> the column whose cells show that
    it has it, whatever its name. Check them with `require`.
    """
    shown_by_cells = by_cells or {}
    plain_names = [plain(name) for name in names]
    columns_of: dict[str, list[int]] = {}
    for column, name in enumerate(plain_names):
        columns_of.setdefault(name, []).append(column)
    roles: dict[str, tuple[int, ...]] = {}
    for role, role_names in NAMES.items():
        if role in shown_by_cells:
            roles[role] = (shown_by_cells[role],)
            continue
        if role == "caption":
            caption_columns = _captions(columns_of, role_names)
            if caption_columns:
                roles[role] = caption_columns
            continue
        of_role = chain.from_iterable(columns_of.get(name, []) for name in role_names)
        taken_columns = {*chain.from_iterable(roles.values())}
        free_columns = [column for column in of_role if column not in taken_columns]
        if free_columns:
            roles[role] = (free_columns[0],)
    if {"image", "video"} <= roles.keys():
        image_column = roles["image"][0]
        if plain_names[image_column] in ("id", "imageid", "imgid", "url", "path"):
            del roles["image"]
    used_columns = {*chain.from_iterable(roles.values())}
    unused = []
    for column, name in enumerate(names):
        if column not in used_columns and plain_names[column] not in ("", *IMAGE_ADDRESSES):
            unused.append(name)
    return Columns(names, roles, unused)


def _captions(columns_of: Mapping[str, list[int]], caption_names: Sequence[str]) -> tuple[int, ...]:
    """All columns of the first name that there is: caption twice, or caption1, caption2 and so
    on.

    columns_of: the columns of each name.
    """
    numbered_columns: dict[str, list[int]] = {}
    for name, caption_columns in columns_of.items():
        match = NUMBERED.fullmatch(name)
        if match is not None:
            numbered_columns.setdefault(match[1], []).extend(caption_columns)
    for name in caption_names:
        caption_columns = [*columns_of.get(name, []), *sorted(numbered_columns.get(name, []))]
        if caption_columns:
            return tuple(caption_columns)
    return ()


def require(columns: Columns, path: object, first: Sequence[object] = ()) -> Columns:
    """Check that a table has captions, and images or videos but not both. path, first row: for the
    message.
    """
    roles = columns.roles
    if {"image", "video"} <= roles.keys():
        image = columns.names[roles["image"][0]]
        video = columns.names[roles["video"][0]]
        raise InputError(
            f"{path}: has both columns {image} and {video}; a data set holds images or videos"
        )
    lacking_columns = []
    if not {"image", "video"} & roles.keys():
        lacking_columns.append("image (or file_name, url, video)")
    if "caption" not in roles:
        lacking_columns.append("caption (or text)")
    if not columns.names:
        raise InputError(f"{path}: is empty; expected columns such as image and caption")
    if lacking_columns and not find(columns.names).roles:
        raise InputError(
            f"{path}: no known heading in {_shown(columns.names)}: rename the columns to image, caption and, "
            "if there is one, split; or name another format with --format"
        )
    if lacking_columns:
        first_row = f", the first row {_shown(first)}" if first else ""
        raise InputError(
            f"{path}: has no column {' nor '.join(lacking_columns)}; its columns are {_shown(columns.names)}"
            f"{first_row}. Call them image, caption and, if there is one, split; or name another format with --format"
        )
    edges = [edge for edge in ("start", "end") if edge in roles]
    if columns.kind == "video" and len(edges) == 1:
        raise InputError(
            f"{path}: has a column {edges[0]} alone; expected start and end, in seconds, or neither"
        )
    return columns


def _shown(values: Sequence[object]) -> str:
    return _cut(", ".join(f"{value!r:.60}" for value in values) or "none")


def _cut(text: str) -> str:
    if len(text) > SHOWN:
        return f"{text[:SHOWN]}…"
    return text
