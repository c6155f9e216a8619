"""Files of results, as mteb, CLIP_benchmark and LAVIS write them: numbers without scores.

results.json            numbers of one evaluation
results.json:en:test    those of a subset and split, of the several that a file may hold; or of
                        a data set, an epoch, a line: words by which it tells them apart
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from pipeline.foundation.evaluation.metrics.spelt import spelt
from pipeline.foundation.files import long_json, parsing
from pipeline.foundation.files.expansion import unpacked
from pipeline.foundation.parts.errors import InputError, counted, few, refusing

LARGEST = 1 << 23  # bytes of a file of results
LONGEST_LOG = 1 << 20  # characters of one that is neither JSON nor YAML
LONGEST_LABEL = 60  # characters of what tells results apart
# How JSON begins that holds names.
JSON = re.compile(r'\s*(?:\[\s*)*\{\s*"')
YAML = (".yaml", ".yml")
# A name and its number in lines of a log.
NUMBER = re.compile(
    r"""(?<![\w@./-])["']?(?P<name>[A-Za-z][\w@./-]{0,60}?)["']?\s*[:=]\s*(?P<number>\d{1,4}(\.\d{1,20})?)(?![\w.])"""
)
EPOCH = re.compile(r"""\bepoch["']?\s*[:=]?\s*\[?(\d{1,9})\b""", re.IGNORECASE)
# How BLIP writes two splits in one object: val_txt_r1, test_txt_r1.
OF_SPLIT = re.compile(r"(val|test)[_/]")
# Members that say what the numbers beside or below them are of.
SUBSET, SPLIT, EPOCHS = "hf_subset", "split", "epoch"
FIELDS = (SUBSET, "dataset", "task", "model", "pretrained", "language", SPLIT, EPOCHS)
# Members that hold results, and say nothing of them.
STRUCTURE = {"scores", "metrics", "results"}
LEVEL, ENTRY = "level", "entry"  # kinds of labels, before the depth: a key, a place in a list
LEVELS = [f"{LEVEL} {depth}" for depth in range(parsing.DEEPEST + 1)]
ENTRIES = [f"{ENTRY} {depth}" for depth in range(parsing.DEEPEST + 1)]
# mteb's number of a task, which is one of the others.
MAIN = "main_score"
QUERIES = "num_data"
MOST = 10_000  # No share or rank of a file is larger.
DIGITS = 10  # Digits after the point beyond which floats differ by their arithmetic.
# Numbers that are taken of a file, and the cutoffs of the first of them.
SHOWN = 6
PREFERRED = (10, 5, 1)
# What a tool's results hold -> the tool, and how it keeps scores.
TOOLS = {
    '"vidore_benchmark_version"': (
        "vidore-benchmark",
        "run mteb's ViDoRe tasks with prediction_folder",
    ),
    '"mteb_version"': ("mteb", "mteb.evaluate(…, prediction_folder='predictions') keeps them"),
    '"hit@1"': ("VLM2Vec", "NAME_qry beside it has the vectors"),
    '"image_retrieval_recall@': (
        "CLIP_benchmark",
        "torch.save({'image_features': …, 'text_features': …}, 'vectors.pt') in its zeroshot_retrieval.py",
    ),
    '"image_to_text_R@1"': (
        "open_clip",
        "torch.save({'image_features': …, 'text_features': …}, 'vectors.pt') in its metrics.py",
    ),
    'txt_r1"': (
        "LAVIS' or BLIP's",
        "numpy.savez('scores.npz', score_matrix_i2t=…, score_matrix_t2i=…) in its retrieval task",
    ),
}


@dataclass(frozen=True)
class Results:
    """The numbers of one evaluation."""

    labels: Mapping[str, str]  # What they are of, by kind: a field of `FIELDS`, a level, an entry
    numbers: Mapping[str, Decimal]  # By the file's names
    main: Decimal | None  # The task's own of these numbers, where the file says it
    queries: int | None  # Of how many queries they are, where the file says it

    @property
    def typed(self) -> str:
        """The numbers as `pipeline explain --published` takes them, the most asked for alone."""
        names = [*self.numbers]
        if len(names) > SHOWN:
            names.sort(key=self._preference)
        return ",".join(f"{name}={self.numbers[name]:f}" for name in names[:SHOWN])

    def _preference(self, name: str) -> int:
        """Which numbers are taken first: the task's own, then by their cutoffs."""
        if self.numbers[name] == self.main:
            return -1
        for place, cutoff in enumerate(PREFERRED):
            if re.search(rf"\D{cutoff}$", name):
                return place
        return len(PREFERRED)


@dataclass(frozen=True)
class _Above:
    """What the objects and lists around a value say of it."""

    labels: Mapping[str, str] = field(default_factory=dict)
    queries: int | None = None
    depth: int = 0

    def inside(self, members: Mapping[str, Any]) -> "_Above":
        """The same in an object, which may say more."""
        labels = dict(self.labels)
        for name in FIELDS:
            label = _label(members.get(name))
            if label:
                labels[name] = label
        queries = self.queries
        if isinstance(members.get(QUERIES), int):
            queries = int(members[QUERIES])
        return replace(self, labels=labels, queries=queries)

    def below(self, kind: str, label: str) -> "_Above":
        """The same one level deeper."""
        labels = dict(self.labels)
        if label and label not in STRUCTURE:
            labels[f"{kind} {self.depth}"] = label
        return replace(self, labels=labels, depth=self.depth + 1)


def published(text: str) -> str:
    """The numbers of a file of results, as `pipeline explain --published` takes them.

    Args:
        text: FILE, or FILE:WORD:WORD, as the user typed it. The file's name may have colons.

    Returns:
        NAME=NUMBER, with commas between; "" where there is no such file.

    Raises:
        InputError: If the file holds no numbers, or those of several evaluations of which the words
            choose none or more than one.
    """
    results = _chosen(text)
    if results is None:
        return ""
    return results.typed


def queries(text: str) -> int | None:
    """How many queries a file of results, or what is chosen in it (see `published`), says that its
    numbers are of; None where it says none.
    """
    results = _chosen(text)
    if results is None:
        return None
    return results.queries


def described(path: Path) -> str:
    """What a file of results is, and what to give in its place, for a message; "" for any other
    file.
    """
    text = ""
    of_file: list[Results] = []
    with suppress(OSError, ValueError):  # Why it cannot be read is said by who asks.
        text = _text(path)
        of_file = _read(path, text)
    found = [tool for mark, tool in TOOLS.items() if mark in text]
    if not found and len(of_file) != 1:  # many objects hold names like those of metrics
        return ""
    whose, advice = next(iter(found), ("", ""))
    said = f"holds {whose} results, not scores".replace("  ", " ")
    if advice:
        said += f"; {advice}"
    if of_file:
        wanted = of_file[0].typed
        if len(of_file) > 1:
            wanted = f"{path}:{_names(of_file)[-1]}"
        said += (
            "; give the scores that they were measured on, to `pipeline explain` with --published "
            f"{wanted}"
        )
    return said


def _chosen(text: str) -> Results | None:
    """The results that a user names; None where there is no such file."""
    path, words = _named(text)
    if path is None:
        return None
    with (
        refusing(ValueError, lambda error: f"--published {path}: {error}"),
        refusing(OSError, lambda error: f"cannot read {path}: {error.strerror or error}"),
    ):
        of_file = _read(path, _text(path))
    if not of_file:
        raise InputError(
            f"--published {path}: holds no number by a name that is known, such as R@1, recall@5 or "
            "ndcg_at_10; type the numbers, i2t_R@1=58.4"
        )
    names = _names(of_file)
    chosen = [place for place, name in enumerate(names) if name == ":".join(words)]
    if not chosen:
        for place, results in enumerate(of_file):
            if {*words} <= {*results.labels.values()}:
                chosen.append(place)
    if not chosen:
        raise InputError(
            f"--published {text}: holds no results of {':'.join(words)}, but {_listed(path, names)}"
        )
    if len(chosen) > 1:
        some = [names[place] for place in chosen]
        raise InputError(
            f"--published {text}: holds {counted(len(some), 'evaluation')}: {_listed(path, some)}"
        )
    return of_file[chosen[0]]


def _listed(path: Path, names: Sequence[str]) -> str:
    """What may be chosen, and how."""
    named = [name for name in names if name]
    if not named:
        return f"numbers without a label; give {path} alone"
    return f"{few(named)}; name one, such as {path}:{named[-1]}"


def _named(text: str) -> tuple[Path | None, list[str]]:
    """The longest file that a user names, and the words behind it."""
    words = text.split(":")
    for count in range(len(words), 0, -1):
        file = ":".join(words[:count])
        if os.path.isfile(file):
            return Path(file), words[count:]
    return None, []


def _names(of_file: Sequence[Results]) -> list[str]:
    """By what each of a file's results is chosen: the labels that are not those of all."""
    held = {kind for results in of_file for kind in results.labels}
    kinds = [kind for kind in (*FIELDS, *LEVELS) if kind in held]
    if len(of_file) > 1:
        kinds = [kind for kind in kinds if _differs(kind, of_file)]
    names = [_name(results, kinds) for results in of_file]
    if len({*names}) < len(names):
        kinds += [kind for kind in ENTRIES if kind in held]
        names = [_name(results, kinds) for results in of_file]
    return names


def _differs(kind: str, of_file: Sequence[Results]) -> bool:
    return len({results.labels.get(kind) for results in of_file}) > 1


def _name(results: Results, kinds: Sequence[str]) -> str:
    """The labels of some kinds."""
    return ":".join(results.labels[kind] for kind in kinds if kind in results.labels)


def _text(path: Path) -> str:
    """The text of a file; ValueError for one that is larger than any file of results."""
    with unpacked(path) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"is larger than {LARGEST:,} bytes: no file of results")
    return content.decode("utf-8-sig", errors="replace")


def _read(path: Path, text: str) -> list[Results]:
    """The results in a file's text, with shares in percent; ValueError for what begins as JSON or
    YAML and is none.
    """
    if path.suffix.lower() in YAML:
        found = [*_in_tree(parsing.from_yaml(text), _Above())]
    elif JSON.match(text):
        found = [*_in_json(text)]
    else:
        found = [*_in_log(text)]
    largest = [max(results.numbers.values()) for results in found]
    is_in_percent = max(largest, default=Decimal(0)) > 1
    different: dict[tuple[object, ...], Results] = {}
    for results in found:
        if not is_in_percent:
            results = _in_percent(results)
        results = replace(results, numbers=_as_long(results.numbers))
        labels = [label for label in results.labels.items() if not label[0].startswith(ENTRY)]
        key = (*labels, *results.numbers.items(), results.queries)
        different.setdefault(key, results)  # A resumed run may write the same again.
    return [*different.values()]


def _in_json(text: str) -> Iterator[Results]:
    """The results in one value of JSON, or in JSON Lines."""
    with refusing(ValueError, lambda error: f"is no whole JSON: {error}", ValueError):
        trees = [parsing.shallow(tree) for tree in long_json.values([text])]
    if len(trees) == 1:
        yield from _in_tree(trees[0], _Above())
        return
    for line, tree in enumerate(trees, start=1):
        yield from _in_tree(tree, _Above().below(ENTRY, f"line{line}"))


def _in_tree(tree: Any, above: _Above) -> Iterator[Results]:
    """The results in an object or list, and in those below it."""
    if isinstance(tree, list):
        for place, element in enumerate(tree, start=1):
            yield from _in_tree(element, above.below(ENTRY, f"entry{place}"))
    if not isinstance(tree, dict):
        return
    here = above.inside(tree)
    numbers: dict[str, Decimal] = {}
    for name, value in tree.items():
        number = _number(value)
        if number is not None:
            numbers[name] = number
    yield from _by_split(numbers, here)
    for name, value in tree.items():
        if isinstance(value, dict | list):
            yield from _in_tree(value, here.below(LEVEL, _label(name)))


def _in_log(text: str) -> Iterator[Results]:
    """The results in a log, which begin anew with each name that comes again."""
    if len(text) > LONGEST_LOG:
        raise ValueError(f"is larger than {LONGEST_LOG:,} characters: no log of results")
    numbers: dict[str, Decimal] = {}
    where = _Above()
    for place, line in enumerate(text.splitlines(), start=1):
        here = _Above().below(ENTRY, f"line{place}")
        epoch = EPOCH.search(line)
        if epoch is not None:
            here = here.inside({EPOCHS: epoch[1]})
        for match in NUMBER.finditer(line):
            name = match["name"]
            found = spelt(name)
            if found is None or not found.is_known:
                continue
            if name in numbers:
                yield from _by_split(numbers, where)
                numbers = {}
            if not numbers:
                where = here
            numbers[name] = Decimal(match["number"])
    yield from _by_split(numbers, where)


def _by_split(numbers: Mapping[str, Decimal], above: _Above) -> Iterator[Results]:
    """The results among the numbers of one object, or of two splits that it has."""
    # VLM2Vec's recall is the share of the right candidates, and its hit a recall.
    other_recall = any(name.startswith("ndcg_linear@") for name in numbers)
    of_split: dict[str, dict[str, Decimal]] = {}
    seen = set()
    for name, number in numbers.items():
        found = spelt(name)
        if found is None or not found.is_known or (other_recall and name.startswith("recall@")):
            continue
        split = ""
        match = OF_SPLIT.match(name)
        if match is not None:
            split = match[1]
        statistic = (split, found.direction, found.metric, number)
        if statistic not in seen:  # mteb's hit_rate_at_1 and cv_recall_at_1 are one
            of_split.setdefault(split, {})[name] = number
        seen.add(statistic)
    for split, own in of_split.items():
        labels = dict(above.labels)
        if split:
            labels[SPLIT] = split
        yield Results(labels, own, numbers.get(MAIN), above.queries)


def _number(value: object) -> Decimal | None:
    """A number of a file as it is written; None for what can be no metric, such as NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value < MOST:
        return None
    return Decimal(repr(value))


def _label(value: object) -> str:
    """What tells results apart, as the user types it; "" for what is no name and no number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)[:LONGEST_LABEL]


def _in_percent(results: Results) -> Results:
    """Results with shares from 0 to 1, in percent."""
    numbers = {name: number.scaleb(2) for name, number in results.numbers.items()}
    main = results.main
    if main is not None:
        main = main.scaleb(2)
    return replace(results, numbers=numbers, main=main)


def _as_long(numbers: Mapping[str, Decimal]) -> dict[str, Decimal]:
    """Numbers with as many digits as the longest of them: 0.5 beside 0.71234 is 0.50000."""
    finest = Decimal(1).scaleb(-DIGITS)
    rounded = {name: number.quantize(finest).normalize() for name, number in numbers.items()}
    digits = max(-int(number.as_tuple().exponent) for number in rounded.values())
    unit = Decimal(1).scaleb(-max(digits, 0))
    return {name: number.quantize(unit) for name, number in rounded.items()}
