"""Damaged TSV files: each fault ends the import with file, line and id, or is one failed image, and
no other is.
"""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import foreign
import numpy as np
import pytest

from pipeline.extensions.importers import ImportJob, butd_tsv, import_features
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.store import FeatureStore

pytestmark = pytest.mark.slow

TABLE = foreign.manifest(6)
ITEMS, DIMENSION = 4, 9
LINE = 3  # the damaged one


def fields(**changes: str) -> Callable[[str], str]:
    """A row with some of its fields changed."""
    columns = [
        "img_id",
        "img_h",
        "img_w",
        "objects_id",
        "objects_conf",
        "attrs_id",
        "attrs_conf",
        "num_boxes",
        "boxes",
        "features",
    ]

    def change(row: str) -> str:
        return "\t".join(
            changes.get(name, value) for name, value in zip(columns, row.split("\t"), strict=True)
        )

    return change


def of(value: float) -> str:
    """Features whose sixth value in the second item is `value`."""
    features = np.ones((ITEMS, DIMENSION), np.float32)
    features[1, 5] = value
    return foreign.text(features)


DAMAGE: list[tuple[Callable[[str], str], str]] = [
    (
        lambda row: row[:-3],
        "features: is cut off or damaged, its 189 characters are no whole base64, expected 192",
    ),
    (
        lambda row: row[:-4],
        rf"features: num_boxes 4 of {DIMENSION} values make 144 bytes, got 14\d, so it is cut off",
    ),
    (lambda row: row + "AAAA", "make 144 bytes, got 147"),
    (lambda row: row + "\tmore", "expected 10 columns, got 11"),
    (lambda row: row.rsplit("\t", 1)[0], "expected 10 columns, got 9"),
    (fields(num_boxes="5"), "make 4. bytes, got"),
    (fields(num_boxes="0"), "num_boxes: expected a positive number, got '0'"),
    (fields(num_boxes="many"), "num_boxes: expected a positive number, got 'many'"),
    (fields(img_w="-1"), "img_w: expected a positive number, got '-1'"),
    (fields(features=of(np.nan)), "features: expected finite values, got nan in item 1"),
    (fields(features=of(-np.inf)), "features: expected finite values, got -inf in item 1"),
    (fields(features="!" * 192), "features: is cut off or damaged"),
    (
        fields(attrs_id="AAA"),
        "attrs_id: is cut off or damaged, its 3 characters are no whole base64, expected 44",
    ),
    (
        fields(boxes=foreign.text(np.full((ITEMS, 4), np.nan, np.float32))),
        "boxes: expected finite values",
    ),
    (
        fields(objects_id=foreign.text(np.full(ITEMS, 2**40))),
        "object: expected values up to 2147483647 as int32",
    ),
    (
        fields(objects_id=foreign.text(np.zeros(ITEMS, np.int32))),
        "objects_id: num_boxes 4 of 1 values make 32 bytes",
    ),
]


PICTURES = foreign.pictures(TABLE, [ITEMS] * 6, DIMENSION)


@pytest.fixture
def job(tmp_path: Path) -> ImportJob:
    paths = foreign.lxmert_tsv(tmp_path, PICTURES)
    return foreign.job(TABLE, "butd-tsv", paths, tmp_path / "s.zarr")


def damage(job: ImportJob, change: Callable[[str], str], line: int = LINE) -> str:
    """Change one row; returns the file of its image."""
    rows = job.paths[0].read_text().split("\n")
    name = rows[line - 1].split("\t")[0]
    rows[line - 1] = change(rows[line - 1])
    job.paths[0].write_text("\n".join(rows))
    return f"val2014/{name}.jpg"


@pytest.mark.specification
@pytest.mark.parametrize(("change", "said"), DAMAGE)
def test_a_damaged_row(change: Callable[[str], str], said: str, job: ImportJob) -> None:
    """It is one failed image, and no other is."""
    row = TABLE.images["file"].tolist().index(damage(job, change))
    ((failed, reason),) = import_features(replace(job, on_error="skip")).failed.items()
    assert failed == row
    assert re.search(rf"obj36.tsv, line {LINE}, id .*{said}", reason)
    assert "\n" not in reason
    assert np.flatnonzero(~FeatureStore(job.store).done).tolist() == [row]


def test_a_damaged_row_ends_an_import_unless_it_is_skipped(job: ImportJob) -> None:
    damage(job, fields(num_boxes="many"))
    said = rf"obj36.tsv, line {LINE}, id .*num_boxes: expected .*--on-error skip"
    with pytest.raises(InputError, match=said) as caught:
        import_features(job)
    assert "\n" not in str(caught.value)


def test_too_large_for_float16(job: ImportJob) -> None:
    damage(job, fields(features=of(1e5)))
    with pytest.raises(
        InputError, match=f"line {LINE}, id .*65504.* as float16, got 100000.*--dtype float32"
    ):
        import_features(replace(job, dtype="float16"))
    assert import_features(replace(job, if_changed="redo")).failed == {}


def test_a_file_cut_short(job: ImportJob) -> None:
    """The last row ends in the middle of its features, and the one before it is whole."""
    content = job.paths[0].read_bytes()
    job.paths[0].write_bytes(content[:-72])
    with pytest.raises(
        InputError,
        match=r"1 of 6 images .*line 6, id .*num_boxes 4 of 9 values make 144 bytes, got",
    ):
        import_features(job)
    assert len(import_features(replace(job, on_error="skip")).failed) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda text: text + "\nnot a row" * 4,
            r"obj36.tsv: 4 of 10 rows \(damaged row: 4\), more than 1 % of all.*line 7",
        ),
        (
            lambda text: text.replace("\t", " "),
            r"line 1: expected 3, 6 or 10 columns with tabs between them, got 1",
        ),
        (lambda text: "", r"line 1: expected 3, 6 or 10 columns"),
        (
            lambda text: (
                "\t".join(["img_id", *["x"] * 6, "num_boxes", "boxes", "features"]) + "\n" + text
            ),
            "line 1: the header names img_id, x, .*; expected image_id, image_w, ",
        ),
        (
            lambda text: text.split("\n")[0][:-4],
            "line 1: features: num_boxes 4 does not divide .*, so the row is cut off or damaged; correct or remove the row",
        ),
    ],
)
def test_a_damaged_file(change: Callable[[str], str], said: str, job: ImportJob) -> None:
    job.paths[0].write_text(change(job.paths[0].read_text()))
    with pytest.raises(InputError, match=said) as caught:
        import_features(replace(job, on_error="skip"))
    assert "\n" not in str(caught.value)


HEADER = "img_id\timg_h\timg_w\tobjects_id\tobjects_conf\tattrs_id\tattrs_conf\tnum_boxes\tboxes\tfeatures"


@pytest.mark.parametrize(
    ("lines", "left_out", "notes"),
    [
        (
            lambda rows: [rows[0], rows[1][:-30] + rows[2], *rows[3:], rows[1]],
            1,
            0,
        ),  # a process died; the row came again
        (lambda rows: [rows[0], rows[1][:40] + rows[2], *rows[3:], rows[1]], 1, 0),  # in its head
        (
            lambda rows: [rows[0], rows[1][:-30] + rows[1], *rows[2:]],
            1,
            0,
        ),  # and the next began with the same image
        (
            lambda rows: [rows[0], rows[1][:-30] + rows[2][:-50] + rows[3], *rows[4:], *rows[1:3]],
            1,
            0,
        ),  # twice
        (lambda rows: [rows[0][:-7], *rows[1:], rows[0]], 1, 0),  # in the first row
        (
            lambda rows: [rows[0] + rows[1], *rows[2:]],
            0,
            0,
        ),  # two files without a newline between them
        (lambda rows: [*rows, rows[2][:90]], 1, 0),  # the last is cut off, and is there
        (lambda rows: [*rows, rows[2], rows[4]], 0, 1),  # two GPUs
        (lambda rows: [*rows, "not a row", "\tx"], 2, 0),
        (lambda rows: [HEADER, *rows], 0, 0),
        (lambda rows: ["", *rows, "", ""], 0, 0),
    ],
    ids=range(11),
)
def test_rows_as_dying_processes_leave_them(
    lines: Callable[[list[str]], list[str]], left_out: int, notes: int, job: ImportJob
) -> None:
    """As in bottom-up-attention's files of test2014: the whole row counts, the damaged one is
    listed.
    """
    expected = np.stack([image.features for image in PICTURES])
    rows = job.paths[0].read_text().split("\n")
    for name, end in (("unix", "\n"), ("windows", "\r\n")):
        job.paths[0].write_bytes(end.join(lines(rows)).encode())
        store = job.store.with_name(f"{name}.zarr")
        done = import_features(replace(job, store=store))
        assert (done.images, done.failed) == (6, {}), name
        assert np.array_equal(FeatureStore(store).read(np.arange(6))[0], expected), name
        assert sum("left out" in note for note in done.notes) == bool(left_out), name
        assert sum("repeated with the same features" in note for note in done.notes) == notes, name
        assert done.notes[0].startswith("read as LXMERT's TSV, 10 columns: img_id"), name
        listed = store.with_name(f".{name}.left_out.csv")
        damaged = listed.read_text().count("damaged row,") if listed.exists() else 0
        assert damaged == left_out, name


def test_an_image_with_two_rows_of_other_features_keeps_the_first_and_says_so(
    job: ImportJob,
) -> None:
    rows = job.paths[0].read_text().split("\n")
    other = fields(features=of(3.0))(rows[2])
    job.paths[0].write_text("\n".join([*rows, other]))
    (note,) = [note for note in import_features(job).notes if "left out" in note]
    assert note.startswith(
        "left out 1 of 7 rows (an image has other features there, too, and the first count: 1)"
    )
    job.paths[0].write_text("\n".join([*rows, *(fields(features=of(3.0))(row) for row in rows)]))
    with pytest.raises(
        InputError, match=r"6 of 12 rows .*more than 1 % of all"
    ):  # two sets of features
        import_features(replace(job, store=job.store.with_name("t.zarr")))


def test_an_id_that_may_be_two_behind_a_cut_row_is_not_guessed() -> None:
    assert butd_tsv._last_id("QUJD1234", ["1234", "234"], {"1234": 2, "234": 3}.get) is None
    assert butd_tsv._last_id("QUJD1234", ["1234", "999"], {"1234": 2, "999": 3}.get) == "1234"
    assert butd_tsv._last_id("QUJDCOCO_1", ["COCO_1", "COCO_2"], {"COCO_1": 2}.get) == "COCO_1"


def test_vinvls_features(tmp_path: Path) -> None:
    there = foreign.pictures(TABLE, [3] * 6, DIMENSION)
    (tmp_path / "features.tsv").write_text(
        "".join(
            f"{each.number}\t{len(each.features)}\t{foreign.text(each.features)}\n"
            for each in foreign.shuffled(there)
        )
    )
    done = import_features(
        foreign.job(TABLE, "butd-tsv", [tmp_path / "features.tsv"], tmp_path / "s.zarr")
    )
    assert done.notes == ["read as VinVL's TSV, 3 columns: image_id, num_boxes, features"]
    features, _ = FeatureStore(tmp_path / "s.zarr").read(np.arange(6))
    assert np.array_equal(features, np.stack([each.features for each in there]))


def test_blank_lines_are_passed_over(job: ImportJob) -> None:
    job.paths[0].write_text("\n\n".join(job.paths[0].read_text().split("\n")) + "\n\n")
    assert import_features(job).images == 6


def test_files_of_two_kinds_are_refused(job: ImportJob, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    others = foreign.anderson_tsv(
        tmp_path / "other", foreign.pictures(TABLE, [ITEMS] * 6, DIMENSION)
    )
    with pytest.raises(
        InputError, match=r"obj36.tsv has 10 and 9|obj36.tsv, line 1: 10 columns and 9 values a box"
    ):
        import_features(replace(job, paths=(*job.paths, *others)))
    wider = foreign.lxmert_tsv(tmp_path / "other", foreign.pictures(TABLE, [ITEMS] * 6, 5))
    with pytest.raises(InputError, match="give one set of features"):
        import_features(replace(job, paths=(*job.paths, *wider)))


def test_what_is_no_file_or_compressed(job: ImportJob, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.tsv: No such file"):
        import_features(replace(job, paths=(tmp_path / "nowhere.tsv",)))
    with pytest.raises(InputError, match="Is a directory"):
        import_features(replace(job, paths=(tmp_path,)))
    packed = tmp_path / "packed.tsv.gz"
    packed.write_bytes(gzip.compress(job.paths[0].read_bytes()))
    with pytest.raises(InputError, match="is compressed; unpack it first"):
        import_features(replace(job, paths=(packed,)))


def test_sound_rows_are_leapt_over_and_others_read(
    job: ImportJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first pass reads the first row for its columns, and whole rows only where they do not end
    as they should.
    """
    read: list[int] = []
    line = butd_tsv.TsvFile._line

    def counted(self: butd_tsv.TsvFile, file: object, number: int) -> bytes:
        read.append(number)
        return line(self, file, number)  # type: ignore[arg-type]

    monkeypatch.setattr(butd_tsv.TsvFile, "_line", counted)
    import_features(job)
    assert read == [1]
    damage(job, lambda row: row[:-3])
    import_features(replace(job, store=job.store.with_name("t.zarr"), on_error="skip"))
    assert read == [1, 1, LINE]


def test_heads_longer_than_what_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(butd_tsv, "HEAD", 30)
    there = foreign.pictures(TABLE, [1, 2, 3, 4, 5, 6], DIMENSION)
    import_features(
        foreign.job(TABLE, "butd-tsv", foreign.lxmert_tsv(tmp_path, there), tmp_path / "s.zarr")
    )
    features, counts = FeatureStore(tmp_path / "s.zarr").read(np.arange(6))
    assert counts.tolist() == [1, 2, 3, 4, 5, 6]
    assert np.array_equal(features[5], there[5].features)


def test_a_row_of_lxmert_is_decoded_field_by_field() -> None:
    def field(values: list[float], dtype: str) -> str:
        return base64.b64encode(np.array(values, dtype).tobytes()).decode()

    line = "\t".join(
        [
            "42",
            "480",
            "640",
            field([3, 5], "<i8"),
            field([0.5, 0.75], "<f4"),
            field([7, 9], "<i8"),
            field([0.25, 0.125], "<f4"),
            "2",
            field([1, 2, 3, 4, 5, 6, 7, 8], "<f4"),
            field([1.5, 2.5, 3.5, 4.5, 5.5, 6.5], "<f4"),
        ]
    )
    decoded = butd_tsv.TsvRow.of(line.encode(), butd_tsv.LXMERT).decoded(3)
    assert decoded.size == (640, 480)
    assert decoded.features.tolist() == [[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]]
    assert {name: values.tolist() for name, values in decoded.extras.items()} == {
        "boxes": [[1, 2, 3, 4], [5, 6, 7, 8]],
        "object": [3, 5],
        "object_score": [0.5, 0.75],
        "attribute": [7, 9],
        "attribute_score": [0.25, 0.125],
    }
