"""Files of hits: the rank of each query's best right candidate, which is published where scores are
too large.

An .npz, compressed, that `np.load` reads:

    hits_facts        uint8, the bytes of a JSON object, see `_Facts`
    caption_image     [C], the row of each caption's image, -1 for none
    image_ids         [I]; this and caption_ids only where the ids are known
    caption_ids       [C]
    caption_language  [C], the place of each caption's language in the facts; only where they have
                      languages
    i2t_greater       [I], fold after fold: wrong captions more similar than the image's best one
    i2t_equal         likewise: wrong captions exactly as similar
    i2t_right         likewise: right captions that share that best similarity; 0 for no query
    t2i_greater, t2i_equal, t2i_right   likewise of the captions of each fold
    t2i_judged        [C], how many images are right for each caption; this and the next only where
                      other answers are right than each caption's own image
    t2i_answer        their rows, caption after caption
    i2t_judged, i2t_answer   likewise the right captions of each image; only where these are other
                      pairs

After all captions come those of each language, in the order of their names, as a pool of their own
with the images that have one: fold after fold, too.
How ties count is chosen when the file is read.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from pipeline.foundation.evaluation.metrics import Metrics
from pipeline.foundation.evaluation.retrieval import (
    PROTOCOLS,
    Collection,
    Direction,
    Ids,
    KnownRanks,
    Positives,
    Protocol,
    QueryRanks,
    Relevance,
    protocol,
)
from pipeline.foundation.evaluation.retrieval.owners import NO_IMAGE, renumbered
from pipeline.foundation.evaluation.retrieval.placements import NEVER
from pipeline.foundation.evaluation.retrieval.ranks import RankedPool
from pipeline.foundation.evaluation.statistics.intervals import Languages, divide
from pipeline.foundation.files import atomic
from pipeline.foundation.parts.errors import InputError, counted, refusing, sized
from pipeline.foundation.parts.wrapping import printable
from pipeline.judge.systems.scores.foreign.arrays import Arrays
from pipeline.judge.systems.scores.foreign.identified import Given, Scores, identified, in_words
from pipeline.judge.systems.scores.judged import Columns
from pipeline.judge.systems.scores.system import Part, System

VERSION: Literal[1] = 1  # of this form
# The array by which such a file is recognised.
MARK = "hits_facts"
COUNTS = ("greater", "equal", "right")
WAYS: tuple[Direction, Direction] = ("i2t", "t2i")
# The most ranks of a direction, and the most folds, that are read.
MOST = 20_000_000
FOLDS = 1000
LONGEST = 10_000  # bytes of the facts
LANGUAGES = 200
LONGEST_LANGUAGE = 32  # letters of its name
_Right: TypeAlias = Literal["own", "qrels", "same_text"]
_Language = Annotated[str, Field(min_length=1, max_length=LONGEST_LANGUAGE)]


class _Form(BaseModel):
    """In which version of this form a file is, whatever else it says."""

    model_config = ConfigDict(frozen=True, strict=True)

    version: int = Field(ge=1, le=1000)


class _Facts(BaseModel):
    """What a file of hits says of itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    version: Literal[1] = VERSION
    system: str
    dataset: str  # "" where it is unknown
    split: str  # likewise
    protocol: str
    folds: int = Field(ge=1, le=FOLDS)
    images: int = Field(ge=0)
    # of captions; [] for none
    languages: list[_Language] = Field(max_length=LANGUAGES)
    right: _Right
    judgements: str  # the name of the file of judgements; "" for none
    scores: str  # SHA-256 of the files of scores; "" where there are none, as of a model


def write(path: Path, ranked: Sequence[tuple[Part, Metrics]], dataset: str, scores: str) -> None:
    """Write the ranks of a pool.

    Args:
        path: The file.
        ranked: The pool with its right answers, by its protocol; then those of its languages, see
            `measured.measure`.
        dataset: The data set's name; "" for none.
        scores: A digest of the scores.

    Raises:
        InputError: For a system that leaves ranks open, and for more folds than are read, or
            longer names of languages.
    """
    part, _ = ranked[0]
    system = part.system
    if part.rules.folds > FOLDS:
        raise InputError(f"--hits writes up to {FOLDS:,} folds, received {part.rules.folds:,}")
    languages, language_of_caption = _languages(system)
    right, judgements = _right(system)
    facts = _Facts(
        system=printable(system.name),  # a file's name may be no Unicode
        dataset=printable(dataset),
        split=printable(system.split or ""),
        protocol=part.rules.name,
        folds=part.rules.folds,
        images=system.shape[0],
        languages=languages,
        right=right,
        judgements=printable(judgements),
        scores=scores,
    )
    arrays = {
        MARK: np.frombuffer(facts.model_dump_json().encode(), np.uint8),
        "caption_image": _smallest(system.caption_image),
    }
    if system.has_ids:
        arrays["image_ids"] = _smallest(system.image_ids)
        arrays["caption_ids"] = _smallest(system.caption_ids)
    if languages:
        arrays["caption_language"] = _smallest(language_of_caption)
    if system.relevance is not None:
        arrays |= _answers(system.relevance)
    of_images = []
    of_captions = []
    for _, metrics in ranked:
        for ranks in metrics.ranks:
            of_images.append(_counts(ranks.i2t, ranks.shape[0], system.name))
            of_captions.append(_counts(ranks.t2i, ranks.shape[1], system.name))
    for way, counts in zip(WAYS, (of_images, of_captions), strict=True):
        for count, values in zip(COUNTS, np.concatenate(counts, axis=1), strict=True):
            arrays[f"{way}_{count}"] = _smallest(values)
    with atomic.replacing(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _languages(system: System) -> tuple[list[str], Ids]:
    """The names of the captions' languages, and the place of each caption's among them, int64 [C];
    none and an empty one where captions have no language.
    """
    if system.languages is None:
        return [], np.zeros(0, np.int64)
    names, of_caption = np.unique(system.languages, return_inverse=True)
    if len(names) > LANGUAGES:
        raise InputError(f"--hits writes up to {LANGUAGES} languages, received {len(names):,}")
    for name in names.tolist():
        if len(name) > LONGEST_LANGUAGE:
            raise InputError(
                f"--hits writes names of languages up to {LONGEST_LANGUAGE} letters, received {name[:60]}"
            )
    return names.tolist(), of_caption.astype(np.int64)


def _right(system: System) -> tuple[_Right, str]:
    """Which answers are right, and the name of the file that says it; "" for none."""
    if system.relevance is None:
        return "own", ""
    judgements = ""
    if system.hits is not None:
        judgements = system.hits.judgements
    if system.judgements is not None:
        judgements = system.judgements.path.name
    if judgements:
        return "qrels", judgements
    return "same_text", ""


def _answers(relevance: Relevance) -> dict[str, np.ndarray]:
    """The arrays of what is right."""
    of_ways = {"t2i": relevance.t2i}
    if relevance.order is None:
        of_ways["i2t"] = relevance.i2t
    arrays = {}
    for way, positives in of_ways.items():
        arrays[f"{way}_judged"] = _smallest(positives.count)
        arrays[f"{way}_answer"] = _smallest(positives.candidate)
    return arrays


def _counts(ranks: QueryRanks, size: int, name: str) -> Ids:
    """What was counted for each image or caption of a pool, 0 for no query: int64 [3, size]."""
    if (ranks.greater >= NEVER).any():
        raise InputError(
            f"--hits needs the rank of every query, which {name} leaves open: give scores of all pairs"
        )
    counts = np.zeros((3, size), np.int64)
    counts[:, ranks.query] = [ranks.greater, ranks.equal, ranks.right]
    return counts


def _smallest(values: Ids) -> np.ndarray:
    """The same numbers in as few bytes each as hold them."""
    ends = np.array([values.min(initial=0), values.max(initial=0)])
    dtypes = [np.min_scalar_type(end) for end in ends]
    return values.astype(np.result_type(*dtypes))


def of_arrays(path: Path, arrays: Arrays, names: Sequence[str], columns: Columns) -> Scores:
    """The ranks that a file holds.

    Args:
        path: The file, for messages.
        arrays: What it holds.
        names: The arrays that the user names, which are refused.
        columns: Which images and captions are meant.

    Returns:
        The ranks, as scores that are known by nothing else.

    Raises:
        InputError: For anything that `write` does not write, and for other images or captions than
            those of `columns`.
    """
    if names:
        raise InputError(f"{path}: is a file of hits, which is read whole; leave out :{names[0]}")
    if columns.distance:
        raise InputError(f"{path}: is a file of hits, ranked already; leave out --distance")
    read = _Reader(path, arrays)
    facts = read.facts()
    rules = _rules(facts, path)
    images = facts.images
    if images > read.size("i2t_greater"):
        raise read.damaged(f"i2t_greater is shorter than its {images:,} images")
    captions = read.size("caption_image")
    owner = read.column("caption_image", captions)
    if owner.min(initial=0) < NO_IMAGE or owner.max(initial=0) >= images:
        raise read.damaged(f"caption_image names other rows than those of {images:,} images")
    languages = read.languages(facts.languages, captions)
    relevance = None
    truth = Relevance.of_owner(owner, images)
    if facts.right != "own":
        relevance = read.relevance(owner, images)
        truth = relevance
    found = _parts(rules, truth, languages)
    pools = tuple(read.pools(found, truth))
    split = printable(facts.split)
    _refuse_other_split(split, columns, path)
    ranks = KnownRanks(
        (images, captions),
        truth,
        pools,
        rules,
        str(path),
        dataset=printable(facts.dataset),
        judgements=printable(facts.judgements),
        same_text=facts.right == "same_text",
    )
    pool, has_ids, said = _identified(read, owner, images, columns)
    read_as = "hits"
    if path.stem not in facts.system:  # files of many systems are then said to be read as one thing
        read_as += f" of {printable(facts.system)}"
    if facts.dataset:
        read_as += f" on {ranks.dataset}"
    if split:
        read_as += f" ({split})"
    if not has_ids:
        said = "without ids, so in an order that is not known"
    read_as += f" by protocol {rules.name}"
    if relevance is not None:
        read_as += f" and {ranks.right}"
    read_as += f", {sized(images, captions)}"
    return Scores(
        ranks,
        pool,
        has_ids,
        in_words(read_as, said),
        split=split or None,
        languages=languages,
        relevance=relevance,
    )


def _parts(rules: Protocol, truth: Relevance, languages: Languages | None) -> list[tuple[Ids, Ids]]:
    """The rows and columns of each fold: of all captions, then of those of each language."""
    owner = truth.owner
    images, _ = truth.shape
    parts = rules.parts(owner, images)
    if languages is None:
        return parts
    by_language = divide(truth, truth.shape, languages)
    for language, (rows, columns) in by_language.items():
        owner_within = renumbered(owner[columns], rows, images)
        of_language = rules.of_language(language)
        for places, captions in of_language.parts(owner_within, len(rows)):
            parts.append((rows[places], columns[captions]))
    return parts


def _refuse_other_split(split: str, columns: Columns, path: Path) -> None:
    """Refuse a manifest's split that is not the one of which the ranks are."""
    asked = columns.known_split
    if split and asked and split != asked:
        raise InputError(
            f"{path}: has hits of the split {split}, not of {asked}; give --split {split}"
        )


def _rules(facts: _Facts, path: Path) -> Protocol:
    """The protocol by which the ranks were counted."""
    if facts.protocol in PROTOCOLS:
        return protocol(facts.protocol)
    if facts.protocol == f"{facts.folds}fold":
        return Protocol(facts.protocol, folds=facts.folds)
    if facts.right != "own" and facts.protocol == facts.right:  # as the run calls it
        return Protocol(facts.protocol)
    raise InputError(
        f"{path}: holds ranks by protocol {printable(facts.protocol[:60])}, which is unknown here; install the "
        "package that has it"
    )


def _identified(
    read: "_Reader", owner: Ids, images: int, columns: Columns
) -> tuple[Collection, bool, str]:
    """The images and captions, whether their ids are known, and what was assumed."""
    path = read.path
    captions = len(owner)
    given = Given(read.ids("image_ids", images), read.ids("caption_ids", captions))
    if (given.images is None) != (given.captions is None):
        raise read.damaged("has ids of one side alone")
    if columns.manifest is not None:
        found = identified((images, captions), given, columns, path)
        if not np.array_equal(found.pool.caption_image, owner):
            raise InputError(
                f"{path}: its captions are of other images than in {columns.manifest}; name the manifest "
                "that the hits are of"
            )
        return found.pool, found.has_ids, found.said
    each = columns.captions_per_image
    if each is not None:
        count = np.bincount(owner[owner >= 0], minlength=images)
        if (count != each).any():
            row = int(np.argmax(count != each))
            raise InputError(
                f"{path}: has {counted(int(count[row]), 'caption')} of image {row}, and --captions-per-image "
                f"says {each}; leave the option out"
            )
    if given.images is None or given.captions is None:
        return Collection(np.arange(images), np.arange(captions), owner), False, ""
    return Collection(given.images, given.captions, owner), True, ""


class _Reader:
    """The columns of a file, each checked before it takes memory."""

    def __init__(self, path: Path, arrays: Arrays) -> None:
        self.path = path
        self.arrays = arrays.arrays

    def damaged(self, what: str) -> InputError:
        """The error for what `write` does not write."""
        return InputError(
            f"{self.path}: is a damaged file of hits: {what}; write it again with `pipeline evaluate "
            "--hits`"
        )

    def facts(self) -> _Facts:
        """What the file says of itself."""
        array = self.arrays[MARK]
        if array.stored != "uint8" or len(array.shape) != 1 or array.shape[0] > LONGEST:
            raise self.damaged(f"{MARK} is {array}")
        text = array.read().tobytes()
        with refusing(
            ValueError, lambda error: str(self.damaged(f"{MARK} is not what this version reads"))
        ):
            version = _Form.model_validate_json(text).version
            if version == VERSION:
                return _Facts.model_validate_json(text)
        raise InputError(
            f"{self.path}: is a file of hits of version {version}, written by a newer version of this "
            f"package, which reads version {VERSION}: update this package"
        )

    def size(self, name: str) -> int:
        """How long a column is."""
        if name not in self.arrays:
            raise self.damaged(f"has no {name}")
        array = self.arrays[name]
        if len(array.shape) != 1 or not array.is_whole:
            raise self.damaged(f"{name} is {array}, expected one column of whole numbers")
        if array.shape[0] > MOST:
            raise self.damaged(f"{name} has {array.shape[0]:,} numbers, more than {MOST:,}")
        return array.shape[0]

    def column(self, name: str, size: int) -> Ids:
        """The numbers of a column of this length: int64."""
        if self.size(name) != size:
            raise self.damaged(f"{name} has {self.size(name):,} numbers, expected {size:,}")
        numbers = self.arrays[name].read()
        most = np.iinfo(np.int64).max
        if numbers.max(initial=0) > most:
            raise self.damaged(f"{name} has numbers beyond {most}")
        return numbers.astype(np.int64)

    def ids(self, name: str, size: int) -> Ids | None:
        """The ids of one side, each once; None where they are unknown."""
        if name not in self.arrays:
            return None
        ids = self.column(name, size)
        if len(np.unique(ids)) < size:
            raise self.damaged(f"{name} has an id twice")
        return ids

    def languages(self, names: Sequence[str], captions: int) -> Languages | None:
        """The language of each caption; None where they have none."""
        if not names:
            return None
        numbers = self.column("caption_language", captions)
        if numbers.min(initial=0) < 0 or numbers.max(initial=0) >= len(names):
            raise self.damaged(f"caption_language names others than {len(names)} languages")
        return np.array([printable(name) for name in names])[numbers]

    def relevance(self, owner: Ids, images: int) -> Relevance:
        """What is right, where it is not each caption's own image. owner: that image, int64 [C]."""
        captions = len(owner)
        t2i = self._positives("t2i", captions, images)
        known = None
        if (owner > NO_IMAGE).any():
            known = owner
        if "i2t_judged" not in self.arrays:
            return Relevance.of_captions(t2i, images, known)
        return Relevance.of_directions(self._positives("i2t", images, captions), t2i, known)

    def _positives(self, way: Direction, queries: int, candidates: int) -> Positives:
        """The right candidates of each query of a direction."""
        count = self.column(f"{way}_judged", queries)
        if count.min(initial=0) < 0 or count.max(initial=0) > candidates:
            raise self.damaged(f"{way}_judged counts others than {candidates:,} candidates")
        candidate = self.column(f"{way}_answer", int(count.sum()))  # checked before memory is taken
        query = np.repeat(np.arange(queries), count)
        if candidate.min(initial=0) < 0 or candidate.max(initial=0) >= candidates:
            raise self.damaged(f"{way}_answer names others than {candidates:,} candidates")
        if len(np.unique(query * candidates + candidate)) < len(query):
            raise self.damaged(f"{way}_answer names a candidate of a query twice")
        return Positives.of_pairs(query, candidate, queries)

    def pools(self, parts: Sequence[tuple[Ids, Ids]], truth: Relevance) -> Iterator[RankedPool]:
        """The ranks of each fold, those of languages last.

        parts: its rows and columns. truth: what is right for all captions and images.
        """
        of_images = self._counts("i2t", sum(len(images) for images, _ in parts))
        of_captions = self._counts("t2i", sum(len(captions) for _, captions in parts))
        row = 0
        column = 0
        for images, captions in parts:
            last_row = row + len(images)
            last_column = column + len(captions)
            pool = RankedPool(
                images, captions, of_images[:, row:last_row], of_captions[:, column:last_column]
            )
            self._check(pool, truth.select(images, captions))
            yield pool
            row = last_row
            column = last_column

    def _counts(self, way: Direction, size: int) -> Ids:
        return np.stack([self.column(f"{way}_{count}", size) for count in COUNTS])

    def _check(self, pool: RankedPool, truth: Relevance) -> None:
        """Check that so many candidates may be above the best right one of each query, or tied."""
        right_of_each = (truth.i2t.count, truth.t2i.count)
        candidates = (len(pool.captions), len(pool.images))
        counts = (pool.of_images, pool.of_captions)
        for way, each, right, size in zip(WAYS, counts, right_of_each, candidates, strict=True):
            greater, equal, best = each
            wrong = size - right
            is_right = (best >= 0) & (best <= right) & ((best > 0) == (right > 0))
            is_above = (greater >= 0) & (greater <= wrong)
            is_tied = (equal >= 0) & (equal <= wrong - greater)
            is_whole = is_right & is_above & is_tied
            if not is_whole.all():
                place = int(np.argmin(is_whole))
                raise self.damaged(
                    f"{way} counts {greater[place]} above, {equal[place]} tied and {best[place]} right of "
                    f"{size:,} candidates, of which {right[place]} are right"
                )
