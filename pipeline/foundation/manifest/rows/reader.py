"""Annotations that are tables: one file, or a folder of files of one format with the splits in
their names.

Of several captions in a row (a list, or several columns) each is a caption. Rows that name one
image, together or apart, are that image's captions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.foundation.files import containers, remote
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest.columns import LANGUAGE
from pipeline.foundation.manifest.reader import Reader, Source
from pipeline.foundation.manifest.rows import cells, columns
from pipeline.foundation.manifest.rows.columns import Columns
from pipeline.foundation.manifest.rows.json_rows import LINES, JsonRows
from pipeline.foundation.manifest.rows.parquet_rows import ParquetRows
from pipeline.foundation.manifest.rows.row_file import RowFile
from pipeline.foundation.manifest.rows.separated import SeparatedFile, layout_of
from pipeline.foundation.manifest.split_names import split_in, split_of
from pipeline.foundation.manifest.text_file import TextFile
from pipeline.foundation.parts.errors import InputError, counted

SPAN = ("start", "end")
IDS = {"image id": "image_id", "caption id": "caption_id"}  # role -> the manifest's column
NOT_FETCHED = "not fetched"
SUFFIXES = {
    "csv": (".csv", ".tsv", ".tab", ".psv"),
    "json": (".json", *LINES),
    "parquet": (".parquet",),
}
OPEN: dict[str, Callable[[Path, str], RowFile]] = {
    "csv": lambda path, name: SeparatedFile(path),
    "json": lambda path, name: JsonRows(path),
    "parquet": ParquetRows,
}
METADATA = "metadata"  # the file of Hugging Face's imagefolder, in the folder of its images


@dataclass
class _Table:
    left_out: LeftOut
    # Whether a caption without an image's name is of no image, and an image with an empty caption
    # has none; else both are left out.
    with_alone: bool
    # Image, or a clip's file and span -> its number.
    numbers: dict[Any, int] = field(default_factory=dict)
    parts: list[pd.DataFrame] = field(default_factory=list)
    captions: int = 0
    blank: list[str] = field(default_factory=list)  # where the rows with the caption "" are
    # Role of the file's own ids -> whether to be used.
    ids: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(IDS, True))

    def add(self, file: RowFile, used: Columns, split: str | None, folder: str) -> None:
        """Read a file's rows."""
        asked_columns = [*dict.fromkeys(chain.from_iterable(used.roles.values()))]
        for batch in file.batches(asked_columns, self.left_out):
            of_column = dict(zip(asked_columns, batch.columns, strict=True))
            cells_of_role = {}
            for role, of_role in used.roles.items():
                cells_of_role[role] = [of_column[column] for column in of_role]
            rows_of_manifest = self._rows(file, batch.places, cells_of_role, used.kind, folder)
            if "split" not in used.roles:
                rows_of_manifest["split"] = split
            self.parts.append(rows_of_manifest)

    def _rows(
        self,
        file: RowFile,
        places: Sequence[int],
        values: dict[str, list[list[Any]]],
        kind: str,
        folder: str,
    ) -> pd.DataFrame:
        names = [*map(cells.name_of, values[kind][0])]
        files = [f"{folder}{name}" if name else "" for name in names]
        rows, captions = self._captions(file, places, names, values)
        span = {}
        if kind == "video":
            for edge in SPAN:
                if edge in values:
                    span[edge] = _seconds(values[edge][0], file.path)
        images: Sequence[Any] = files
        if span:
            images = [*zip(files, *span.values(), strict=True)]
        numbers = self.numbers
        manifest_columns: dict[str, Any] = {
            "image_id": [numbers.setdefault(image, len(numbers)) for image in _at(images, rows)],
            "file": _at(files, rows),
            "caption_id": range(self.captions, self.captions + len(rows)),
            "caption": captions,
        }
        self.captions += len(rows)
        if "split" in values:
            splits = _at(values["split"][0], rows)
            manifest_columns["split"] = list(map(_split_name, splits))
        if "language" in values:
            languages = _at(values["language"][0], rows)
            manifest_columns[LANGUAGE] = [str(name or "").strip() for name in languages]
        for edge, seconds in span.items():
            manifest_columns[edge] = _at(seconds, rows)
        for role in self.ids:
            ids = None
            if self.ids[role] and role in values:
                ids = cells.whole(_at(values[role][0], rows))
            if ids is None:
                self.ids[role] = False
            else:
                manifest_columns[role] = ids
        return pd.DataFrame(manifest_columns)

    def _captions(
        self,
        file: RowFile,
        places: Sequence[int],
        names: list[str | None],
        values: dict[str, list[list[Any]]],
    ) -> tuple[Sequence[int], list[str]]:
        """The captions of rows that name an image, or belong to none, and the row of each; others
        are left out.
        """

        # A row that says that it has no caption has the caption "".
        def where(row: int) -> str:
            return f"{file.path}, {file.unit} {places[row]}"

        caption_columns = values["caption"]
        if len(caption_columns) == 1 and None not in names:
            plain_captions = _plain_captions(caption_columns[0])
            if plain_captions is not None:
                return range(len(plain_captions)), plain_captions
        rows: list[int] = []
        caption_texts: list[str] = []
        status = [None] * len(names)
        if "status" in values:
            status = values["status"][0]
        for row, of_row in enumerate(zip(*caption_columns, strict=True)):
            if names[row] is None:
                has_failed = file.images is not None or status[row] not in (None, "success")
                if has_failed:
                    self.left_out.add(NOT_FETCHED, where(row), by_origin=True)
                    continue
                if not self.with_alone:
                    self.left_out.add("no image name", where(row))
                    continue
            captions = [*chain.from_iterable(map(cells.captions_of, of_row))]
            usable_captions = [*filter(None, captions)]
            if not usable_captions and (self.with_alone or not captions):
                self.blank.append(where(row))
                usable_captions = [""]
            # An image may have fewer captions than there are columns.
            elif not usable_captions or len(of_row) == 1:
                for _ in range(len(captions) - len(usable_captions)):
                    self.left_out.add("no caption", where(row))
            rows += [row] * len(usable_captions)
            caption_texts += usable_captions
        return rows, caption_texts

    def _without_damage(self, table: pd.DataFrame) -> pd.DataFrame:
        """Leave out blank captions but for the only row of an image, which is an image without a
        caption.
        """
        if not self.blank:
            return table
        blank = table["caption"] == ""
        keep = ~blank | ((table["file"] != "") & ~table["image_id"].duplicated(keep=False))
        for where, keeps in zip(self.blank, keep[blank], strict=True):
            if not keeps:
                self.left_out.add("no caption", where)
        return table.assign(caption_id=(~blank).cumsum() - 1)[keep]

    def whole(self) -> pd.DataFrame:
        """All rows; an image's captions may be apart in the files."""
        table = self._without_damage(pd.concat(self.parts, ignore_index=True))
        self.parts.clear()
        if "split" in table.columns:
            table = self._with_splits(table)
        if not table["image_id"].is_monotonic_increasing:
            table = table.sort_values("image_id", kind="stable", ignore_index=True)
        return self._with_ids(table)

    def _with_splits(self, table: pd.DataFrame) -> pd.DataFrame:
        """Leave out the rows without a split, or the column of splits if it is empty."""
        is_silent = table["split"].isna() | (table["split"] == "")
        if is_silent.all():
            return table.drop(columns="split")
        if not is_silent.any():
            return table
        for file in table.loc[is_silent, "file"]:
            self.left_out.add("no split", file)
        return table[~is_silent]

    def _with_ids(self, table: pd.DataFrame) -> pd.DataFrame:
        """Replace numbers by the file's own ids, if they are ids: of one image each."""
        id_roles = [role for role in self.ids if role in table.columns]
        for role in id_roles:
            if not self.ids[role]:
                continue
            column = IDS[role]
            ids_and_numbers = table[[role, column]].drop_duplicates()
            if ids_and_numbers[role].is_unique and ids_and_numbers[column].is_unique:
                table[column] = table[role]
        return table.drop(columns=id_roles)


def _split_name(cell: Any) -> str:
    """The name of a split in a cell; "" for an empty one."""
    if cell is None:
        return ""
    return str(cell).strip()


def _at(column: Sequence[Any], rows: Sequence[int]) -> Sequence[Any]:
    """The values of a column in some rows; the column itself where a range names all of them."""
    if rows == range(len(column)):
        return column
    return [column[row] for row in rows]


def _plain_captions(values: Sequence[Any]) -> list[str] | None:
    """The captions of a column with one in each row, as almost always; else None."""
    try:
        captions = list(map(str.strip, values))
    except TypeError:  # lists, or null
        return None
    if "" in captions or any(caption[0] == "[" for caption in captions):
        return None
    return captions


def _seconds(values: Iterable[Any], path: Path) -> list[float]:
    seconds = []
    for cell in values:
        edge = cells.seconds(cell)
        if edge is None:
            raise InputError(
                f"{path}: expected seconds in the columns start and end, got {cell!a:.40}"
            )
        seconds.append(edge)
    return seconds


def files_of(path: Path, form: str) -> list[tuple[Path, str | None]]:
    """The files of a format: the path itself, or those of a folder, each with the split that its
    name says.
    """
    suffixes = SUFFIXES[form]
    if remote.address(path) and path.suffix.lower() not in suffixes:
        objects = [name for name in remote.listed(path) if name.lower().endswith(suffixes)]
        files = [path / name for name in sorted(objects) if "/" not in name]
        return [(file, split_in(file.stem)) for file in files]
    if not path.is_dir():
        return [(path, split_in(path.stem))]
    metadata = [*path.glob(f"{METADATA}.*"), *path.glob(f"*/{METADATA}.*")]
    described = [file for file in sorted(metadata) if file.suffix.lower() in suffixes]
    if described:
        return [(file, _split_of_folder(file, path)) for file in described]
    listed_files = []
    for folder in (path, path / "data"):
        if folder.is_dir():
            listed_files += sorted(folder.iterdir())
    files = [file for file in listed_files if _is_table(file, suffixes)]
    return [(file, split_in(file.stem)) for file in files]


def _split_of_folder(file: Path, top: Path) -> str | None:
    """The split that the folder of a file says; None for a file of the topmost folder."""
    if file.parent == top:
        return None
    return split_in(file.parent.name)


def _is_table(file: Path, suffixes: Sequence[str]) -> bool:
    if file.suffix.lower() not in suffixes or file.name.startswith("."):
        return False
    return file.is_file()


def _read(source: Source, form: str) -> pd.DataFrame:
    path = source.path
    files = files_of(path, form)
    if not files:
        raise InputError(f"{path}: holds no {' or '.join(SUFFIXES[form])} file")
    if form != "parquet" and len(files) > 1:
        _require_splits(path, files)
    captions_of_files = _Table(source.left_out, with_alone=form == "csv")
    for number, (file, split) in enumerate(files):
        below = file.relative_to(path).as_posix() if file != path else file.name
        opened = OPEN[form](file, below)
        split_by_name = split if len(files) > 1 or source.split_by_name else None
        recognised = columns.find(opened.names, opened.by_cells)
        if split_by_name is None:
            recognised = _with_split(opened, recognised)
        used = columns.require(recognised, file, opened.first)
        if number == 0:
            format_title = opened.title
            if len(files) > 1:
                format_title += f"; {counted(len(files), 'file')}"
            line = f"{path}: read as {format_title}; {used}"
            if "split" not in used.roles and split_by_name is not None:
                line += "; split by the name of the file"
            source.say(line)
        folder = ""
        if "/" in below and opened.images is None and form != "parquet":
            folder = f"{below.rpartition('/')[0]}/"
        captions_of_files.add(opened, used, split_by_name, folder)
    if not captions_of_files.parts:
        raise InputError(f"{path}: holds no captions")
    return captions_of_files.whole().assign(kind=used.kind)


def _with_split(file: RowFile, recognised: Columns) -> Columns:
    """The columns, with an unused one as the split whose cells are all names of splits, whatever
    its heading is.
    """
    if "split" in recognised.roles:
        return recognised
    candidates = []
    for at, (name, cell) in enumerate(zip(file.names, file.first, strict=False)):
        if name in recognised.unused and split_of(_split_name(cell)):
            candidates.append(at)
    if not candidates:
        return recognised
    of_splits = []
    batch = next(file.batches(candidates, LeftOut()))
    for at, values in zip(candidates, batch.columns, strict=True):
        if all(split_of(_split_name(cell)) for cell in values):
            of_splits.append(at)
    if not of_splits:
        return recognised
    if len(of_splits) > 1:
        headings = " and ".join(file.names[at] for at in of_splits)
        raise InputError(
            f"{file.path}: the columns {headings} hold names of splits; call the one that counts split"
        )
    return columns.find(file.names, {**file.by_cells, "split": of_splits[0]})


def _require_splits(path: Path, files: Sequence[tuple[Path, str | None]]) -> None:
    """Check that the name of each of several files says a split."""
    for file, split in files:
        if split is None:
            raise InputError(
                f"{path}: holds {counted(len(files), 'file')} of captions, and the name of {file.name} "
                f"says no split; name one of them with --annotations, or call them train{file.suffix}, "
                f"val{file.suffix} and test{file.suffix}"
            )


def _is_csv(path: Path) -> bool:
    if path.is_dir() or remote.address(path) or path.suffix.lower() in SUFFIXES["csv"]:
        files = [file for file, _ in files_of(path, "csv")]
        return any(file.suffix.lower() in SUFFIXES["csv"] for file in files)
    if not path.is_file() or path.suffix.lower() in (*containers.SUFFIXES, *SUFFIXES["json"]):
        return False
    beginning = TextFile(path).beginning()
    return "\0" not in beginning and layout_of(beginning.splitlines()[:-1]).is_whole


def _is_json(path: Path) -> bool:
    if path.is_dir():
        return bool(files_of(path, "json"))
    if path.suffix.lower() not in SUFFIXES["json"]:
        return False
    return path.is_file() or bool(remote.address(path))


def _is_parquet(path: Path) -> bool:
    if path.is_dir() or remote.address(path):
        return bool(files_of(path, "parquet"))
    return path.suffix.lower() == ".parquet" and path.is_file()


CSV = Reader(
    "a table of captions (CSV, TSV) with columns such as image, caption, split",
    _is_csv,
    lambda source: _read(source, "csv"),
    names_every_image=True,
)
JSON = Reader(
    "JSON with objects of image and caption", _is_json, lambda source: _read(source, "json")
)
PARQUET = Reader(
    "Parquet with captions, and images or their names",
    _is_parquet,
    lambda source: _read(source, "parquet"),
)
