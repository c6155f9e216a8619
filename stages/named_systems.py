"""What a user's names of systems mean: files of scores, stores, and the seeds of a system."""

from __future__ import annotations

import glob
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pipeline.foundation.parts.errors import InputError, few, similar
from pipeline.foundation.settings.paths import Paths, of_seed
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.foreign import model_of
from pipeline.judge.systems.scores.system import System
from stages.arguments import Source, is_of_scores, refuse_model, refuse_repeats
from stages.progress import say

if TYPE_CHECKING:
    from pipeline.foundation.settings import AnySettings

# What a file can only be read as: one array without a name, as a matrix; what was assumed follows.
PLAIN = re.compile(r"^a (NumPy|zarr) array: \w+ \[\d+, \d+\](; |$)")
# What `open_system` takes, and the folder that it is in.
Place: TypeAlias = tuple[str, Path]


def place(paths: Paths, settings: AnySettings, name: str, dataset: str | None = None) -> Place:
    """What `open_system` takes for a name of a system, or for scores from elsewhere: the text and
    its folder.
    """
    if ":" in name or "/" in name or is_of_scores(paths.root, name):
        _refuse_unopened(paths, name)
        return name, paths.root
    dataset = dataset or settings.run.dataset
    store = paths.similarity(dataset, name, settings.score.split)
    if not store.exists():
        raise unknown(name, dataset, store, paths.root)
    return str(store), Path()


def expanded(root: Path, names: Iterable[str]) -> list[str]:
    """Names of systems, with each pattern such as *.npy replaced by the files that match, as a
    shell does it.
    """
    systems: list[str] = []
    for name in names:
        is_of_seeds = "=" in name or "," in name  # whose files are found by `named`
        if is_of_seeds or not _is_pattern(root, name):
            systems.append(name)
        else:
            systems += _matching(root, name)
    return systems


def _is_pattern(root: Path, name: str) -> bool:
    """Whether a name is a pattern of files' names, and no file's or model's own name."""
    if ":" in name or is_of_scores(root, name):
        return False
    return re.search(r"[*?]|\[.+\]", name) is not None


def _matching(root: Path, pattern: str) -> list[str]:
    """The files of a pattern, in order of their names and of the numbers in them."""
    files = glob.glob(pattern, root_dir=root)
    if not files:
        raise InputError(f"{pattern}: no file's name is of this pattern{similar(root / pattern)}")

    def numbers_as_such(file: str) -> list[tuple[int, str]]:
        return [(int(digits or 0), text) for text, digits in re.findall(r"(\D*)(\d*)", file)]

    return sorted(files, key=numbers_as_such)


def _refuse_unopened(paths: Paths, name: str) -> None:
    """Check, before others are embedded, which takes minutes, that a model can be opened; refuse a
    head.
    """
    model = model_of(name, paths.root)
    if model:
        from pipeline.make import dual_encoders  # only where there is a model

        dual_encoders.check(model)
    head = Source(name, paths.root).head
    if head:
        from pipeline.make.training import HeadArtefact  # only where there is a head

        HeadArtefact.open(head)  # it may be a tuned encoder
        raise InputError(f"{name}: is a head; `pipeline score --system {name}` makes its scores")


def named(
    paths: Paths, settings: AnySettings, text: str, dataset: str | None = None
) -> tuple[str, list[Place]]:
    """What a user calls a system, "" for nothing, and its stores or scores from elsewhere, one for
    each seed.

    text: a name of one seed or of all, of what `open_system` takes, or a pattern of files' names;
        several with commas between; TITLE=… of these.
    """
    title, names = _divided(paths, settings, text, dataset)
    places = _seeds(paths, settings, dataset, names)
    refuse_repeats(root / text for text, root in places)
    if len(places) > 1:
        from pipeline.run.provenance import checks  # only where there are several

        stores = [root / text for text, root in places if layout.is_store(root / text)]
        checks.refuse_other_systems([System.open_either(store) for store in stores])
    return title, places


def refuse_shared_titles(titles: Iterable[str]) -> None:
    """Check that no two systems are called the same by their user."""
    titles_before = set[str]()
    for title in filter(None, titles):
        if title in titles_before:
            raise InputError(
                f"{title}: is the title of two systems; different systems need different titles, and seeds of one are "
                f"named together, {title}=FILE,FILE"
            )
        titles_before.add(title)


def _divided(
    paths: Paths, settings: AnySettings, text: str, dataset: str | None
) -> tuple[str, str]:
    """The title and the names of TITLE=NAMES, either of which may contain a =.

    The title ends at the first = after which all names are there; if there is none, at the first =.
    """

    def are_there(names: str) -> bool:
        if _is_there(paths, settings, names, dataset, ""):
            return True
        each_name = names.split(",")
        return all(_is_there(paths, settings, name.strip(), dataset, "") for name in each_name)

    if "=" not in text or are_there(text):
        return "", text.strip()
    divided = []
    for mark in re.finditer("=", text):
        title = text[: mark.start()].strip()
        names = text[mark.end() :].strip()
        if title and names:
            divided.append((title, names))
    for title, names in divided:
        if are_there(names):
            return title, names
    if divided:
        return divided[0]
    return "", text.strip()


def refuse_other_dataset(places: Iterable[Place], dataset: str | None) -> None:
    """Check that every place is a store of the data set that --dataset names, if it names one: a
    file and the store of another data set are measured without it.
    """
    if dataset is None:
        return
    for text, root in places:
        path = root / text
        if not layout.is_store(path):
            raise InputError(
                f"--dataset {dataset}: is for names of systems, and {text} is a file; leave --dataset out, or name "
                "the file's data set by --manifest"
            )
        own = System.open_either(path).made_from.dataset
        if own != dataset:
            raise InputError(
                f"--dataset {dataset}: {text} is of {own}; leave --dataset out, or name a system of {dataset}"
            )


def refuse_stale(
    paths: Paths, settings: AnySettings, places: Iterable[Place], dataset: str | None = None
) -> None:
    """Check that the run's own stores are up to date, see `checks.refuse_stale`; of other files
    nobody can know it.
    """
    dataset = dataset or settings.run.dataset
    folder_of_run = paths.similarity(dataset, "", settings.score.split).parent
    systems = {}
    for text, root in places:
        path = root / text
        if layout.is_store(path) and path.parent == folder_of_run:
            systems[path.stem] = System.open_named(path)
    if systems:
        from pipeline.run.provenance import checks  # only where there are stores

        checks.refuse_stale(systems, paths)


def _is_there(
    paths: Paths, settings: AnySettings, name: str, dataset: str | None, mark: str
) -> bool:
    """Whether a name that has this mark is a file, or a system, as it is."""
    if "/" not in name and ":" not in name:
        dataset = dataset or settings.run.dataset
        if paths.similarity(dataset, name, settings.score.split).exists():
            return True
    parts = (name, *name.split(":"))
    return any(mark in part and is_of_scores(paths.root, part) for part in parts)


def _seeds(paths: Paths, settings: AnySettings, dataset: str | None, name: str) -> list[Place]:
    """The stores or files that a name means: those of NAME,NAME, of all seeds of NAME, or one."""
    if "," in name and not _is_there(paths, settings, name, dataset, ","):
        parts = [part.strip() for part in name.split(",")]
        if not all(parts):
            raise InputError(f"{name!r}: expected names of systems with one comma between")
        places = []
        for part in parts:
            places += _seeds(paths, settings, dataset, part)
        return places
    if _is_pattern(paths.root, name):
        return [(file, paths.root) for file in _matching(paths.root, name)]
    if ":" in name or "/" in name or _is_there(paths, settings, name, dataset, ""):
        return [place(paths, settings, name, dataset)]
    stores = paths.similarity(dataset or settings.run.dataset, name, settings.score.split).parent
    by_seed = {}
    for path in stores.glob(f"{glob.escape(name)}*.zarr"):
        seed = layout.facts(layout.finished(path)).seed
        if seed is not None and path.stem == of_seed(name, seed):
            by_seed[seed] = path
    if not by_seed:
        return [place(paths, settings, name, dataset)]
    return [(str(by_seed[seed]), Path()) for seed in sorted(by_seed)]


def unknown(name: str, dataset: str, store: Path, root: Path) -> InputError:
    """The error for what is neither a file nor a system."""
    refuse_model(root, name)
    if (root / name).is_dir():
        return InputError(f"{name}: is a folder, and holds no scores; name a file of scores")
    if re.search(r"\.[A-Za-z]{2,12}$", name):
        return InputError(f"{name}: no such file{similar(root / name)}")
    advice = similar(store) or "; make it with `pipeline score`, `ensemble` or `add`"
    return InputError(
        f"{name!r}: neither a file nor a system of {dataset} in {store.parent}{advice}"
    )


def say_read_as(files: Iterable[tuple[str, str]]) -> None:
    """Say what files were read as, unless they can only be read so, and what was assumed, once for
    all files alike. files: the name of each and its `System.read_as`.
    """
    names_of: dict[str, list[str]] = defaultdict(list)
    for name, read_as in dict.fromkeys(files):  # one file may be for several systems
        assumed = PLAIN.sub("", read_as)
        if assumed and assumed == read_as:
            assumed = f"read as {read_as}"
        if assumed:
            names_of[assumed].append(name)
    say(*(f"{few(names)}: {assumed}" for assumed, names in names_of.items()))


@contextmanager
def saying_read_as() -> Iterator[list[tuple[str, str]]]:
    """Collect what files are read as, and say it at the end, also where one of them is refused."""
    files: list[tuple[str, str]] = []
    try:
        yield files
    finally:
        say_read_as(files)
