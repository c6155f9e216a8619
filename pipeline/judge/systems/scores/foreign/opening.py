"""From what a user types to a system: what each file is, by how it begins, and what reads it."""

import os
import zipfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.foundation import files, manifest as manifests
from pipeline.foundation.evaluation.retrieval import Lists, as_similarity
from pipeline.foundation.files import npy, regular
from pipeline.foundation.files.digest import digest, of_folder, sha256
from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError, counted, meant, refusing, similar
from pipeline.foundation.settings.kinds import TABLES
from pipeline.judge import systems
from pipeline.judge.systems.scores.foreign import unscored
from pipeline.judge.systems.scores.foreign.arrays import Arrays, stored_as
from pipeline.judge.systems.scores.foreign.identified import Given, Scores, identified, in_words
from pipeline.judge.systems.scores.judged import Columns, Truth, judge
from pipeline.judge.systems.scores.layout import is_store
from pipeline.judge.systems.scores.made import OfFile
from pipeline.judge.systems.scores.sources import Vectors
from pipeline.judge.systems.scores.system import (
    CANDIDATES_AND_QUERIES,
    IMAGES_AND_CAPTIONS,
    System,
)

if TYPE_CHECKING:
    from pipeline.judge.systems.scores.foreign.file_sets import FileSet

# What a file is, by how it begins (see `kind_of`) -> a function of its path that gives its
# `Arrays`; None for a run, which `RUN` reads.
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
# What reads files of a tool that belong together.
SETS = "pipeline.judge.systems.scores.foreign.file_sets:of_typed"
# What finds the scores among the arrays of one or two files.
ARRAYS = "pipeline.judge.systems.scores.foreign.scores:of_files"
# What reads the lists of a run, within the images and captions of `Columns`.
RUN = "pipeline.judge.systems.scores.foreign.top_lists:of_run"
# What recognises a file that holds results and no scores.
RESULTS = "pipeline.judge.systems.scores.foreign.results_file:described"

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


def open_system(
    text: str, columns: Columns = Columns(), normalise: bool = False, root: Path = Path()
) -> System:
    """Open scores that a user names.

    Args:
        text: What the user typed, see `pipeline.judge.systems.scores.foreign`.
        columns: Which images and captions the rows and columns are, for a file without ids.
        normalise: Whether vectors are divided by their lengths.
        root: The folder that relative paths are in.

    Returns:
        The system; its `read_as` says what was read as what.

    Raises:
        InputError: In one line, for what cannot be read as scores, or does not fit `columns`.
    """
    model = model_of(text, root)
    if model:
        return _of_model(model, columns)
    named = places(text, root)
    path = named[0][0]
    if is_store(path) and len(named) == 1:
        return _of_store(path, columns, normalise)
    with refusing(InputError, lambda error: _if_results(path) or str(error)):
        return _of_files(text, named, columns, normalise)


def _if_results(path: Path) -> str:
    """What is wrong with a file of results; "" for any other file."""
    found = lazy.imported(RESULTS)(path)
    if not found:
        return ""
    return f"{path}: {found}"


def _of_files(
    text: str, named: Sequence[tuple[Path, list[str]]], columns: Columns, normalise: bool
) -> System:
    """Open the scores of one or two files."""
    path, names = named[0]
    if len(named) == 1 and not names and kind_of(path) == "npy" and npy.holds_matrix(path):
        with _telling(text, path):
            scores = _matrix(path, columns)
    else:
        of_tool: FileSet | None = lazy.imported(SETS)(named)
        if of_tool is None:
            scores = _scores(text, named, columns, normalise)
        else:
            scores = of_tool.scores(named, columns, normalise)
    return _as_system(text, named, columns, normalise, scores)


def _as_system(
    text: str,
    named: Sequence[tuple[Path, list[str]]],
    columns: Columns,
    normalise: bool,
    scores: Scores,
) -> System:
    """The system of the scores of files, and of what these are when they are read otherwise."""
    if normalise and not scores.of_vectors:
        raise InputError(f"--normalise is for vectors; {text} holds similarities")
    if columns.distance and scores.of_vectors:
        raise InputError(
            "--distance is for a matrix; the inner products of vectors are similarities"
        )
    path = named[0][0]
    source = scores.source
    if columns.distance:
        source = _reversed(as_similarity(source, str(path)))
    sides = IMAGES_AND_CAPTIONS
    if scores.of_anything:
        sides = CANDIDATES_AND_QUERIES

    def opened(read_otherwise: Callable[[], Scores]) -> System:
        return _as_system(text, named, columns, normalise, read_otherwise())

    otherwise = {reading: partial(opened, read) for reading, read in scores.otherwise.items()}
    system = System.of(
        _name(named),
        source,
        scores.pool.caption_image,
        scores.pool.image_ids,
        scores.pool.caption_ids,
        file=str(path),
        has_ids=scores.has_ids,
        languages=scores.languages,
        relevance=scores.relevance,
        split=columns.known_split or scores.split,
        sides=sides,
        read_as=scores.read_as,
        otherwise=otherwise,
        siblings=scores.siblings,
    )
    if scores.judgements is None or columns.judgements is not None:
        return system
    return judge(system, Truth(qrels=scores.judgements), None)


def _matrix(path: Path, columns: Columns) -> Scores:
    """The scores of a `.npy` file that is a matrix. It has no ids: `columns` say what its rows and
    columns are.
    """
    with refusing(ValueError, npy.damaged(path)):
        values = npy.mapped(path)
    shape = (values.shape[0], values.shape[1])
    rows = identified(shape, Given(), columns, path)
    array = f"a NumPy array: {stored_as(values.dtype)} {list(shape)}"
    whole = Scores(values, rows.pool, rows.has_ids, in_words(array, rows.said))
    return unscored.only_scored(whole, {None: values}, path)


def _scores(
    text: str, named: Sequence[tuple[Path, list[str]]], columns: Columns, normalise: bool
) -> Scores:
    """The scores among all arrays of one or two files, or those of a run."""
    by_file = [(path, read(path), names) for path, names in named]
    if all(arrays is not None for _, arrays, _ in by_file):
        with _telling(text, named[0][0]):
            of_arrays: Scores = lazy.imported(ARRAYS)(by_file, columns, normalise)
            return of_arrays
    path, names = named[0]
    if len(named) == 1:
        of_run: Scores = lazy.imported(RUN)(path, columns, names)
        return of_run
    raise InputError(
        f"{text}: a run is a file by itself, and two files are vectors, or candidates and scores"
    )


def _telling(text: str, path: Path) -> AbstractContextManager[None]:
    """Have messages name what the user typed, where they do not name the file."""
    return refusing(
        InputError, lambda error: str(error) if str(path) in str(error) else f"{text}: {error}"
    )


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
        start = file.read(LOOKED_AT)
        size = os.fstat(file.fileno()).st_size
        if not start:
            raise InputError(f"{path}: is empty; expected a file of scores")
        if header_length(start, size) is not None:  # whatever its length is
            return "safetensors"
        _refuse_unread(path, start)
        for mark, kind in MARKS.items():
            if start.startswith(mark):
                return kind
        archive = files.archives.named(path)
        if archive:
            raise InputError(f"{path}: is {archive}")
        if start.startswith(ARCHIVE) and files.torch_save.is_archive(file):
            return "torch"
        if start.startswith(ARCHIVE):
            return "npz"
        if start.startswith(files.torch_save.LEGACY):
            return "torch"
        if start.startswith(PICKLES):
            return "pickle"
        return "text"


def _refuse_unread(path: Path, start: bytes) -> None:
    """Refuse a file that begins as one of another library's, and say what makes an array of it."""
    for mark, (name, array) in UNREAD.items():
        if start.startswith(mark):
            raise InputError(
                f"{path}: is a file of {name} form, which is not read; numpy.save('scores.npy', ARRAY) of "
                f"ARRAY = {array.format(path=str(path))}"
            )


def header_length(start: bytes, size: int) -> int | None:
    """The length of the header of a .safetensors file that begins so and has so many bytes; None
    for any other file.
    """
    length = int.from_bytes(start[:LENGTH], "little")
    is_json = start[LENGTH : LENGTH + 1] == b"{"
    if is_json and length <= LONGEST_HEADER:
        return length
    return None


def open_recorded(text: str, columns: Columns, root: Path = Path()) -> System:
    """Open what `open_system` opens, with a record: a store has its own, a file needs the
    manifest.
    """
    if is_store(root / text):
        return System.open(root / text)
    if model_of(text, root):
        raise InputError(
            f"{text}: is a model; `pipeline embed` and then `pipeline score` make a system of it, which "
            "an ensemble takes by its name"
        )
    named = places(text, root)
    if columns.manifest is None:
        raise InputError(
            f"{text}: is a file of scores; name the --manifest whose images and captions it is of"
        )
    system = open_system(text, columns, root=root)
    known = manifests.Manifest.load(columns.manifest)
    made_from = OfFile(
        dataset=known.dataset,
        split=columns.split or "test",
        manifest=known.digest,
        file=digest_of(text, root),
        distance=columns.distance,
    )
    return replace(system, folder=named[0][0], made_from=made_from)


def digest_of(text: str, root: Path = Path()) -> str:
    """A digest of the files that a user names, and of the names of their arrays."""
    digests = []
    for path, names in places(text, root):
        content = of_folder(path) if path.is_dir() else sha256(path)
        digests.append((content, names))
    first, names = digests[0]
    if len(digests) == 1 and not names:
        return first
    return digest(digests)


def model_of(text: str, root: Path = Path()) -> str | None:
    """Find the model that a user names.

    Args:
        text: What the user typed.
        root: The folder that relative paths are in.

    Returns:
        KIND:PLACE, with the place as it is from here; None for anything that is no model.
    """
    kind, _, place = text.partition(":")
    if not place or (root / kind).is_file() or kind not in TABLES["dual_encoders"]:
        return None
    if (root / place).exists():
        return f"{kind}:{root / place}"
    return f"{kind}:{place}"


def places(text: str, root: Path) -> list[tuple[Path, list[str]]]:
    """The files that a user names, each with the names of its arrays: FILE, FILE:NAME,
    FILE:FILE.
    """
    if (root / text).exists():
        return [(root / text, [])]
    named: list[tuple[Path, list[str]]] = []
    words = text.split(":")
    while words:
        count = _words_of_file(words, root)
        path = root / ":".join(words[:count])
        if not named or path.is_file() or _is_folder(path, named[-1][0]):
            named.append((path, []))
        else:
            _, names = named[-1]
            names.append(words[0])
        words = words[count:]
    for path, names in named:
        if not path.exists():
            raise InputError(
                f"{path}: no such file{similar(path)}; expected a file of scores, a store, or two files "
                f"of vectors, images.npy:captions.npy{_kind_meant(text, root)}"
            )
        if "" in names:
            raise InputError(
                f"{text}: expected a name of an array, or another file, after each colon"
            )
    return named


def _words_of_file(words: Sequence[str], root: Path) -> int:
    """How many words are the name of the file that comes first, which may have colons; 1 where
    none is a file.
    """
    for count in range(1, len(words) + 1):
        if (root / ":".join(words[:count])).is_file():
            return count
    return 1


def _is_folder(place: Path, before: Path) -> bool:
    """Whether a word is a folder of shards beside another place, and no name of an array in it."""
    if not place.is_dir():
        return False
    if before.suffix == ".npy":
        return True
    return before.is_dir() and not (before / place.name).exists()


def _kind_meant(text: str, root: Path) -> str:
    """The end of a message where KIND:FOLDER may be meant; "" where it is not."""
    kind, _, place = text.partition(":")
    if not place or not (root / place).exists():
        return ""
    kinds = list(TABLES["dual_encoders"])
    return f", or a model, KIND:FOLDER; {meant(kind, kinds)}"


def name_of(text: str, root: Path = Path()) -> str:
    """What the system is called that a user names.

    Args:
        text: What the user typed.
        root: The folder that relative paths are in.

    Returns:
        The name that `open_system` gives it.

    Raises:
        InputError: For a file that is missing.
    """
    model = model_of(text, root)
    if model:
        return _name_of_model(model)
    return _name(places(text, root))


def _name_of_model(model: str) -> str:
    """What a model is called: the last part of its place."""
    return Path(model.partition(":")[2]).name


def _name(named: Sequence[tuple[Path, list[str]]]) -> str:
    """What the system is called: the first file, with the names of its arrays."""
    path, names = named[0]
    return ":".join((path.stem, *names))


def _of_model(model: str, columns: Columns) -> System:
    split, scores = lazy.imported(MODEL)(model, columns)
    images = counted(len(split.image_ids), "image")
    captions = counted(len(split.caption_ids), "caption")
    read_as = f"a model, with {images} and {captions}"
    for option, value in columns.usage.items():
        read_as += f", {option.replace('_', ' ')} {value}"
    return System.of(
        _name_of_model(model),
        scores,
        split.caption_image,
        split.image_ids,
        split.caption_ids,
        split=split.name,
        languages=split.languages,
        read_as=read_as,
    )


def _of_store(path: Path, columns: Columns, normalise: bool) -> System:
    if columns != Columns(judgements=columns.judgements, judged=columns.judged):
        raise InputError(
            f"{path}: is a similarity store, which holds the ids of its captions; leave out "
            "--manifest, --split, --captions-per-image and --distance"
        )
    if normalise:
        raise InputError(f"--normalise is for vectors of files; those in {path} have length 1")
    system = System.open_either(path)
    if isinstance(system.kind, Vectors):
        return system
    return system.check()


def _reversed(source: Any) -> Any:
    """The scores of distances, of which the smallest is best."""
    return (
        source.reversed()
        if isinstance(source, Lists)
        else systems.fusion.combining.WeightedSum([source], [-1.0])
    )
