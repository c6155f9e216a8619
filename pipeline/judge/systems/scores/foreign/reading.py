"""What a file is, by how it begins, and its arrays."""

import os
import zipfile
from pathlib import Path

from pipeline.foundation import files
from pipeline.foundation.files import regular
from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.judge.systems.scores.foreign.arrays import Arrays

# What a file is, by how it begins (see `kind_of`) -> a function of its path that gives its
# `Arrays`; None for a run, which `runs` reads.
READERS = {
    "npy": "pipeline.judge.systems.scores.foreign.numpy_files:read_npy",
    "npz": "pipeline.judge.systems.scores.foreign.numpy_files:read_npz",
    "pickle": "pipeline.judge.systems.scores.foreign.numpy_files:read_pickle",
    "torch": "pipeline.judge.systems.scores.foreign.torch_tensors:read",
    "safetensors": "pipeline.judge.systems.scores.foreign.safetensors_file:read",
    "zarr": "pipeline.judge.systems.scores.foreign.zarr_folder:read",
    "parquet": "pipeline.judge.systems.scores.foreign.table:read_parquet",
    "text": "pipeline.judge.systems.scores.foreign.table:read_text",
}

# What compares the images and captions of `Columns` by a model: their split, and their scores. It
# is a text, since the room of models imports this one.
MODEL = "pipeline.make.dual_encoders.scored:open_encoder"
# What reads the recalls of a file that holds results and no scores.
RECALLS = "pipeline.judge.systems.scores.foreign.results_file:published"

# How files begin -> what they are.
MARKS = {b"\x93NUMPY": "npy", b"PAR1": "parquet"}
# How files begin that are not read -> whose they are, and what makes an array of one.
UNREAD = {
    b"\x89HDF": ("HDF5", "h5py.File({path!r})['NAME'][:] or, of pandas, pandas.read_hdf({path!r})"),
    b"ARROW1": ("Arrow's or Feather's", "pandas.read_feather({path!r})"),
    b"FEA1": ("Feather's", "pandas.read_feather({path!r})"),
    b"MATLAB": ("MATLAB's", "scipy.io.loadmat({path!r})['NAME']"),
    b"\xd0\xcf\x11\xe0": ("Excel's", "pandas.read_excel({path!r}, index_col=0)"),
}
ARCHIVE, LOOKED_AT = b"PK", 16
# Pickles of dicts, lists and arrays; the last ones as Python 2 wrote them.
PICKLES = (b"\x80", b"(dp", b"(lp", b"}q", b"]q", b"cnumpy", b"ccollections\n")

# Bytes of the length of a .safetensors file's header; and the library's own limit of it.
LENGTH, LONGEST_HEADER = 8, 100_000_000


def read(path: Path) -> Arrays | None:
    """Read a file or a zarr folder: its arrays by name; None for a run."""
    arrays: Arrays | None = lazy.imported(READERS[kind_of(path)])(path)
    return arrays


def kind_of(path: Path) -> str:
    """A key of `READERS`."""
    if path.is_dir():
        return "zarr"
    with (
        refusing(
            zipfile.BadZipFile,
            f"{path}: is damaged or cut short: it begins like an archive (.npz, .pt), and "
            "has no end",
        ),
        refusing(OSError, lambda error: f"cannot read {path}: {error.strerror or error}"),
        regular.opened(path) as file,
    ):
        start, size = file.read(LOOKED_AT), os.fstat(file.fileno()).st_size
        if not start:
            raise InputError(f"{path}: is empty; expected a file of scores")
        if header_length(start, size) is not None:  # whatever its length is
            return "safetensors"
        if unread := next((each for mark, each in UNREAD.items() if start.startswith(mark)), None):
            name, array = unread
            raise InputError(
                f"{path}: is a file of {name} form, which is not read; numpy.save('scores.npy', ARRAY) of "
                f"ARRAY = {array.format(path=str(path))}"
            )
        if known := next((kind for mark, kind in MARKS.items() if start.startswith(mark)), None):
            return known
        if what := files.archives.named(path):
            raise InputError(f"{path}: is {what}")
        if start.startswith(ARCHIVE):
            return "torch" if files.torch_save.is_archive(file) else "npz"
        if start.startswith(files.torch_save.LEGACY):
            return "torch"
        if start.startswith(PICKLES):
            return "pickle"
        return "text"


def header_length(start: bytes, size: int) -> int | None:
    """The length of the header of a .safetensors file that begins so and has so many bytes; None
    for any other file.
    """
    length = int.from_bytes(start[:LENGTH], "little")
    return length if start[LENGTH : LENGTH + 1] == b"{" and length <= LONGEST_HEADER else None
