"""Annotations that are tables: one file, or a folder of files of one format with the splits in
their names.

Of several captions in a row (a list, or several columns) each is a caption. Rows that name one
image, together or apart, are that image's captions.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.files import containers, remote
from pipeline.files.left_out import LeftOut
from pipeline.manifest.columns import LANGUAGE
from pipeline.manifest.reader import Reader, Source
from pipeline.manifest.rows import cells, columns
from pipeline.manifest.rows.columns import Columns
from pipeline.manifest.rows.json_rows import LINES, JsonRows
from pipeline.manifest.rows.parquet_rows import ParquetRows
from pipeline.manifest.rows.row_file import RowFile
from pipeline.manifest.rows.separated import SeparatedFile, layout_of
from pipeline.manifest.split_names import split_in
from pipeline.manifest.text_file import TextFile
from pipeline.parts.errors import InputError, counted

SPAN = ("start", "end")
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
    numbers: dict[Any, int] = field(
        default_factory=dict
    )  # image, or a clip's file and span -> its number
    parts: list[pd.DataFrame] = field(default_factory=list)
    captions: int = 0
    blank: list[str] = field(default_factory=list)  # where the rows with the caption "" are
    ids: dict[str, bool] = field(
        default_factory=lambda: {"image id": True, "caption id": True}
    )  # whether to be used

    def add(self, file: RowFile, used: Columns, split: str | None, folder: str) -> None:
        """Read a file's rows."""
        asked = [*dict.fromkeys(column for columns_ in used.roles.values() for column in columns_)]
        for batch in file.batches(asked, self.left_out):
            of_column = dict(zip(asked, batch.columns, strict=True))
            values = {
                role: [of_column[column] for column in columns_]
                for role, columns_ in used.roles.items()
            }
            part = self._rows(file, batch.places, values, used.kind, folder)
            if "split" not in used.roles:
                part["split"] = split
            self.parts.append(part)

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
        span = [
            _seconds(values[edge][0], file.path)
            for edge in SPAN
            if edge in values and kind == "video"
        ]
        images = [*zip(files, *span, strict=True)] if span else files
        numbers, whole = self.numbers, len(rows) == len(files) and rows == range(len(files))
        taken: Callable[[Sequence[Any]], Sequence[Any]] = (
            (lambda column: column) if whole else lambda column: [column[row] for row in rows]
        )
        part: dict[str, Any] = {
            "image_id": [numbers.setdefault(image, len(numbers)) for image in taken(images)],
            "file": taken(files),
            "caption_id": range(self.captions, self.captions + len(rows)),
            "caption": captions,
        }
        self.captions += len(rows)
        if "split" in values:
            part["split"] = [
                "" if value is None else str(value).strip() for value in taken(values["split"][0])
            ]
        if "language" in values:
            part[LANGUAGE] = [str(value or "").strip() for value in taken(values["language"][0])]
        part |= {edge: taken(seconds) for edge, seconds in zip(SPAN, span, strict=False)}
        for role, used in self.ids.items():
            if (
                used
                and role in values
                and (values_read := cells.whole(taken(values[role][0]))) is not None
            ):
                part[role] = values_read
            else:
                self.ids[role] = False
        return pd.DataFrame(part)

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

        columns = values["caption"]
        if len(columns) == 1 and None not in names:
            with suppress(TypeError):  # lists, or null
                captions = list(map(str.strip, columns[0]))
                if "" not in captions and not any(caption[0] == "[" for caption in captions):
                    return range(len(captions)), captions
        rows, texts, status = (
            list[int](),
            list[str](),
            values.get("status", [[None] * len(names)])[0],
        )
        for row, of_row in enumerate(zip(*columns, strict=True)):
            if names[row] is None:
                failed = file.images is not None or status[row] not in (None, "success")
                if failed or not self.with_alone:
                    self.left_out.add(
                        NOT_FETCHED if failed else "no image name", where(row), by_origin=failed
                    )
                    continue
            captions = [caption for value in of_row for caption in cells.captions_of(value)]
            good = [caption for caption in captions if caption]
            if not good and (self.with_alone or not captions):
                self.blank.append(where(row))
                good = [""]
            elif (
                not good or len(of_row) == 1
            ):  # an image may have fewer captions than there are columns
                for _ in range(len(captions) - len(good)):
                    self.left_out.add("no caption", where(row))
            rows += [row] * len(good)
            texts += good
        return rows, texts

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
        if "split" in table.columns and (table["split"].isna() | (table["split"] == "")).all():
            table = table.drop(columns="split")
        elif (
            "split" in table.columns
            and (silent := table["split"].isna() | (table["split"] == "")).any()
        ):
            for row in table[silent].itertuples():
                self.left_out.add("no split", f"{row.file}")
            table = table[~silent]
        if not table["image_id"].is_monotonic_increasing:
            table = table.sort_values("image_id", kind="stable", ignore_index=True)
        return self._with_ids(table)

    def _with_ids(self, table: pd.DataFrame) -> pd.DataFrame:
        """Replace numbers by the file's own ids, if they are ids: of one image each."""
        for role, column in (("image id", "image_id"), ("caption id", "caption_id")):
            if self.ids[role] and role in table.columns:
                pairs = table[[role, column]].drop_duplicates()
                if not pairs[role].duplicated().any() and not pairs[column].duplicated().any():
                    table[column] = table[role]
        return table.drop(columns=[role for role in self.ids if role in table.columns])


def _seconds(values: Iterable[Any], path: Path) -> list[float]:
    seconds = []
    for value in values:
        second = cells.seconds(value)
        if second is None:
            raise InputError(
                f"{path}: expected seconds in the columns start and end, got {value!a:.40}"
            )
        seconds.append(second)
    return seconds


def files_of(path: Path, form: str) -> list[tuple[Path, str | None]]:
    """The files of a format: the path itself, or those of a folder, each with the split that its
    name says.
    """
    suffixes = SUFFIXES[form]
    if remote.address(path) and path.suffix.lower() not in suffixes:
        names = [name for name in remote.listed(path) if name.lower().endswith(suffixes)]
        return [
            (path / name, split_in(Path(name).stem)) for name in sorted(names) if "/" not in name
        ]
    if not path.is_dir():
        return [(path, split_in(path.stem))]
    described = [
        file
        for file in sorted([*path.glob(f"{METADATA}.*"), *path.glob(f"*/{METADATA}.*")])
        if file.suffix.lower() in suffixes
    ]
    if described:
        return [
            (file, None if file.parent == path else split_in(file.parent.name))
            for file in described
        ]
    listed = [
        file
        for folder in (path, path / "data")
        if folder.is_dir()
        for file in sorted(folder.iterdir())
        if file.suffix.lower() in suffixes and not file.name.startswith(".") and file.is_file()
    ]
    return [(file, split_in(file.stem)) for file in listed]


def _read(source: Source, form: str) -> pd.DataFrame:
    path, files = source.path, files_of(source.path, form)
    if not files:
        raise InputError(f"{path}: holds no {' or '.join(SUFFIXES[form])} file")
    if form != "parquet" and len(files) > 1 and None in (splits := [split for _, split in files]):
        unnamed = files[splits.index(None)][0]
        raise InputError(
            f"{path}: holds {counted(len(files), 'file')} of captions, and the name of {unnamed.name} "
            f"says no split; name one of them with --annotations, or call them train{unnamed.suffix}, "
            f"val{unnamed.suffix} and test{unnamed.suffix}"
        )
    gathered = _Table(source.left_out, with_alone=form == "csv")
    for number, (file, split) in enumerate(files):
        below = file.relative_to(path).as_posix() if file != path else file.name
        opened = OPEN[form](file, below)
        used = columns.require(columns.find(opened.names, opened.images), file, opened.first)
        by_name = split if len(files) > 1 or source.split_by_name else None
        if number == 0:
            more = f"; {counted(len(files), 'file')}" if len(files) > 1 else ""
            named = (
                ""
                if "split" in used.roles or by_name is None
                else "; split by the name of the file"
            )
            source.say(f"{path}: read as {opened.title}{more}; {used}{named}")
        folder = (
            f"{below.rpartition('/')[0]}/"
            if "/" in below and opened.images is None and form != "parquet"
            else ""
        )
        gathered.add(opened, used, by_name, folder)
    if not gathered.parts:
        raise InputError(f"{path}: holds no captions")
    return gathered.whole().assign(kind=used.kind)


def _is_csv(path: Path) -> bool:
    if path.is_dir() or remote.address(path) or path.suffix.lower() in SUFFIXES["csv"]:
        return bool(
            [file for file, _ in files_of(path, "csv") if file.suffix.lower() in SUFFIXES["csv"]]
        )
    if not path.is_file() or path.suffix.lower() in (*containers.SUFFIXES, *SUFFIXES["json"]):
        return False
    beginning = TextFile(path).beginning()
    return "\0" not in beginning and layout_of(beginning.splitlines()[:-1]).is_whole


def _is_json(path: Path) -> bool:
    if path.is_dir():
        return bool(files_of(path, "json"))
    return path.suffix.lower() in SUFFIXES["json"] and (
        path.is_file() or bool(remote.address(path))
    )


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
