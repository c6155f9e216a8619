"""The differences between two measurements of one system that people really make. A new one is a
line of `DIFFERENCES`.

A `Measurement` says how a number comes from scores, step by step. A `Difference` is another choice
at one step, or at two that go together. `threads` says where people met it: threads of
repositories, or released code.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeAlias

from pipeline.foundation.evaluation.retrieval import Protocol, Ties
from pipeline.foundation.evaluation.retrieval.rounding import Precision

Step: TypeAlias = Literal["vectors", "scores", "pool", "ranking", "metric", "rounding"]
Summed: TypeAlias = Literal["both", "i2t", "t2i", "half", "third", "sixth"]
Side: TypeAlias = Literal["none", "images", "captions", "both"]


class Correction(NamedTuple):
    """A correction of hubs by the queries that are ranked, and with what it is tried."""

    words: str
    rescorer: str  # Its name in `RESCORERS`
    option: str  # Which of its options is tried
    symbol: str  # What papers call that option
    values: tuple[int, ...]


FORMS = (
    Correction("CSLS", "csls", "neighbours", "k", (10,)),
    Correction("inverted softmax", "inverted-softmax", "beta", "β", (20, 100)),
    # A scale of 1 is of scores that have one already, such as CLIP's logits.
    Correction("dual softmax", "dual-softmax", "beta", "β", (1, 10, 20, 50, 100)),
)
# Each of them in words -> the form and the value.
CORRECTIONS: Mapping[str, tuple[Correction, int]] = {
    f"{form.words}, {form.symbol} = {value}": (form, value)
    for form in FORMS
    for value in form.values
}


def _tried(form: Correction) -> str:
    return f"{form.words}: {form.symbol} = {', '.join(map(str, form.values))}"


# The choices of a `Measurement` that each step takes.
STEPS: Mapping[Step, tuple[str, ...]] = {
    "vectors": ("seed", "unit", "vectors", "tokens", "joined"),
    "scores": ("reading", "scores", "rescored"),
    "pool": ("split", "captions", "unpaired", "right", "folds", "parts"),
    "ranking": ("ties",),
    "metric": (
        "instead",
        "at",
        "tool",
        "hits",
        "cutoff",
        "fold",
        "directions",
        "averaged",
        "median",
        "from_zero",
        "summed",
    ),
    "rounding": ("rounding", "sum_of_rounded"),
}


@dataclass(frozen=True)
class Measurement:
    """How a number comes from vectors or scores: a choice at each step."""

    seed: int | None = None  # Which of several seeds; None for the mean of their numbers
    unit: Side = "none"  # Whose vectors are divided by their lengths
    vectors: Precision = "given"  # The type to which vectors are rounded
    tokens: int | None = None  # At how many tokens captions are cut; None for the encoder's limit
    joined: bool = False  # Whether each caption has the mean of its image's captions
    # How the files are read, where they can be read otherwise: a key of `Given.otherwise`; "" as
    # they are.
    reading: str = ""
    scores: Precision = "given"  # The type to which scores are rounded
    rescored: str = ""  # A key of `CORRECTIONS`; "" for none
    # Which split is ranked, where there are several; "candidates" for its queries among all.
    split: str = ""
    captions: int | None = None  # How many first captions of each image are ranked; None for all
    unpaired: bool = True  # Whether images without captions, and the reverse, are candidates
    right: str = "own"  # "own" image, "equal" or "merged" captions, or the name of judgements
    folds: Literal["consecutive", "interleaved"] | None = None  # How images are cut; None for not
    parts: int | None = None  # Into how many folds; None for folds of the size that is known
    ties: Ties | Literal["first", "last"] = "expected"  # "first" and "last": by position
    fold: int | None = None  # The only fold that counts; None for the mean of all
    # The name of the metric, without its cutoff, that is measured in place of a share; "" for none.
    instead: str = ""
    at: int = 0  # Its cutoff; 0 for the same
    tool: str = ""  # Whose conventions are followed, as `conventions.of_tool` reads it; "" for ours
    # Whether the two directions are mistaken for each other, or their mean is taken.
    directions: Literal["own", "exchanged", "mean"] = "own"
    # "any" right caption is a hit; or the "share" of right captions; or each caption a pair with an
    # image of its own.
    hits: Literal["any", "share", "pairs"] = "any"
    cutoff: int = 0  # How much more than K the last rank is that is a hit
    # Over what the mean is taken; "judged" also over queries that the run does not list, "found"
    # over those alone whose list has a right candidate.
    averaged: Literal["queries", "images", "judged", "found"] = "queries"
    median: Literal["mean", "lower", "upper", "floor"] = "mean"  # Of an even number of ranks
    from_zero: bool = False  # Whether the best rank is 0
    # What of the six recalls RSUM is: of "both" directions or of one, or a share of their sum.
    summed: Summed = "both"
    rounding: Literal["nearest", "truncated", "coarser"] = "nearest"
    sum_of_rounded: bool = False  # Whether RSUM is the sum of recalls that are rounded already

    @classmethod
    def by(
        cls,
        rules: Protocol,
        ties: Ties = "expected",
        unit: bool = False,
        split: str = "",
        right: str = "own",
    ) -> "Measurement":
        """The choices of a protocol; `right` unless it merges captions of equal text."""
        if rules.same_text:
            right = "merged"
        return cls(
            unit="both" if unit else "none",
            split=split,
            captions=rules.captions_per_image,
            ties=ties,
            right=right,
            folds="consecutive" if rules.folds > 1 else None,
        )

    def of(self, *steps: Step) -> tuple[Any, ...]:
        """The choices at some steps: equal for measurements that share them."""
        choices: tuple[Any, ...] = _chosen(steps)(self)
        return choices


@lru_cache(maxsize=64)
def _chosen(steps: tuple[Step, ...]) -> Callable[["Measurement"], Any]:
    """What reads a measurement's choices at some steps; the search asks for them thousands of
    times.
    """
    return attrgetter(*chain.from_iterable(map(STEPS.__getitem__, steps)))


class Family(NamedTuple):
    """Differences of one kind, in words."""

    words: str
    choices: tuple[str, ...]  # The fields of `Measurement` that they set
    idle: str = ""  # Why they change nothing, where they do not; {images}, {size} as of folds


FAMILIES: tuple[Family, ...] = (
    Family("seeds", ("seed",), "one seed is given; give several as a.npy,b.npy"),
    Family(
        "lengths of vectors",
        ("unit",),
        "all vectors have one length: they do not show whether they were divided by it",
    ),
    Family("float16 and bfloat16", ("vectors", "scores")),
    Family("captions cut at fewer tokens", ("tokens",), "no caption is longer"),
    Family("other splits", ("split",)),
    Family(
        f"corrections of hubs by the test queries ({'; '.join(map(_tried, FORMS))})",
        ("rescored",),
    ),
    Family("fewer captions of each image", ("captions", "joined"), "no image has more captions"),
    Family(
        "images and captions without a partner",
        ("unpaired",),
        "every image has captions, every caption an image",
    ),
    Family("other right answers", ("right",)),
    Family("other readings of the files", ("reading",), "these can be read in one way"),
    Family(
        "folds", ("folds", "fold", "parts"), "{images} cannot be cut into several folds of one size"
    ),
    Family("the order of ties", ("ties",)),
    Family(
        "directions exchanged or averaged", ("directions",), "the numbers are of both directions"
    ),
    Family(
        "another metric under the same name",
        ("instead", "at"),
        "the numbers are recalls of images and captions, or have no cutoff",
    ),
    Family(
        "the conventions of other tools, in ties and in what they leave out",
        ("tool",),
        "no two candidates of a query are tied, and none is left out",
    ),
    Family("what counts as a hit", ("hits", "cutoff"), "no published number is a recall"),
    Family("what means are over", ("averaged",)),
    Family("the median of an even number", ("median",), "no published number is a median"),
    Family("ranks from 0", ("from_zero",), "no published number is a rank"),
    Family("what of the recalls RSUM sums", ("summed",), "no published number is RSUM or mR"),
    Family("rounding", ("rounding", "sum_of_rounded")),
)


@dataclass(frozen=True)
class Difference:
    """Another choice than that of the protocol."""

    # What is different, as a table says it; {folds}, {size}: how many folds there are, of how many
    # images
    words: str
    threads: str  # Where people met it
    choices: tuple[tuple[str, Any], ...]  # The fields of `Measurement` that it sets, and to what

    def changed(self, measurement: Measurement) -> frozenset[str]:
        """The fields in which it differs from a measurement; none where it is the same."""
        return frozenset(
            name for name, value in self.choices if getattr(measurement, name) != value
        )

    @property
    def family(self) -> Family:
        """The family that it is of, by the first choice that it sets."""
        choice = self.choices[0][0]
        return next(family for family in FAMILIES if choice in family.choices)


def _difference(words: str, threads: str, **choices: Any) -> Difference:
    return Difference(words, threads, tuple(choices.items()))


def of_part(name: str) -> Difference:
    """Another part of the file, by its reading's name, which others may have measured."""
    words = name.replace("{", "{{").replace("}", "}}")
    return _difference(f"{words} of the same file", "subsets and splits", reading=name)


# Metrics that are called by each other's names, without their cutoffs -> what they are.
METRICS = {
    "R": "a hit, of any right candidate",
    "Recall": "the share of the right candidates that are found",
    "P": "the share of the first K that are right",
    "MRR": "the reciprocal rank",
    "nDCG": "nDCG with the grade as gain",
    "nDCG_exp": "nDCG with the gain 2^grade − 1",
    "AP": "the average precision, divided by all right candidates",
    "AP_min": "the average precision, divided by min(right candidates, K)",
}
SAME_AT_ONE = ("P", "MRR")  # which are hits where K is 1
# The cutoffs that tools print.
CUTOFFS = (1, 3, 5, 10, 20, 50, 100)
# What is typed after `--as` -> what the tool does, and where it was met.
TOOLS = {
    "trec_eval": (
        "trec_eval's and mteb's ties (the larger id, as text, first), scores of 32 bits",
        "mteb #5092, beir #105",
    ),
    "sentence-transformers": (
        "sentence-transformers' ties (the smaller id first), every grade as 1",
        "its source",
    ),
    "ranx": ("ranx's ties (in the order of its sort)", "its source"),
    "mteb:ignore_identical_ids": (
        "candidates with the id of the query left out (mteb's ignore_identical_ids)",
        "64 places in mteb's tasks",
    ),
    "mteb:skip_first_result": (
        "each query's first candidate left out (mteb's skip_first_result)",
        "mteb PR 5045",
    ),
    "vidore-benchmark": (
        "scores below 0 cut to 0, the file's first candidate's excepted (vidore-benchmark)",
        "its source",
    ),
}
# Another reading of the same files, by the name that its reader gives it -> what is different, and
# where it was met.
READINGS = {
    "MaxSim in float16": (
        "MaxSim in float16: tokens, their products and the sum",
        "PyLate PR 237, sentence-transformers PR 3924",
    ),
    "MaxSim in bfloat16": (
        "MaxSim in bfloat16: tokens, their products and the sum",
        "PyLate PR 237, sentence-transformers PR 3924",
    ),
    "padding": (
        "candidates padded with zeros to the longest one, so that no product is below 0",
        "vidore-benchmark #111, colpali #274",
    ),
    "mean of subsets": (
        "the mean over all subsets of the split, such as languages",
        "leaderboards' averages, mteb's ViDoRe",
    ),
    "subsets together": (
        "the queries of all subsets of the split in one mean",
        "leaderboards' averages, mteb's ViDoRe",
    ),
    "doubles of images": (
        "images with equal vectors or scores merged into one",
        "mteb #2510, VLM2Vec's candidates by name",
    ),
    "doubles of captions": (
        "captions with equal vectors or scores merged into one",
        "mteb #2510, VLM2Vec's candidates by name",
    ),
    "marks as scores": (
        "−100, which marks pairs that were not scored, read as a score",
        "ALBEF's, BLIP's and LAVIS' matrices",
    ),
    "its own candidates": (
        "each query ranked among its own candidates alone",
        "MMEB's and M-BEIR's local and global pools",
    ),
    "all candidates": (
        "each query ranked among the candidates of all queries",
        "MMEB's and M-BEIR's local and global pools",
    ),
    "tokens of length 1": ("tokens divided by their lengths", "models in bfloat16"),
    "tokens as given": ("tokens not divided by their lengths", "models in bfloat16"),
}
# Into how many folds images are cut where a paper does not say it.
PARTS = (2, 5, 10)

DIFFERENCES: tuple[Difference, ...] = (
    *(
        _difference(f"the {name} seed alone", "one run, or a mean of several", seed=seed)
        for seed, name in enumerate(("first", "second", "third", "fourth", "fifth"))
    ),
    _difference("vectors divided by their lengths", "FG-CLIP #22", unit="both"),
    _difference("vectors not divided by their lengths", "FG-CLIP #22", unit="none"),
    _difference(
        "vectors of images alone divided by their lengths", "one side forgotten", unit="images"
    ),
    _difference(
        "vectors of captions alone divided by their lengths", "one side forgotten", unit="captions"
    ),
    _difference("vectors in float16", "openai/CLIP #115", vectors="float16"),
    _difference("vectors in bfloat16", "openai/CLIP #115", vectors="bfloat16"),
    *(
        _difference(f"captions cut at {tokens} tokens", "Long-CLIP #71, FG-CLIP #22", tokens=tokens)
        for tokens in (20, 32, 50, 64, 77)
    ),
    *(
        _difference(words, threads, reading=reading)
        for reading, (words, threads) in READINGS.items()
    ),
    _difference("scores in float16", "mteb 2.18.9", scores="float16"),
    _difference("scores in bfloat16", "mteb 2.18.9", scores="bfloat16"),
    _difference(
        "vectors and scores in float16", "mteb 2.18.9", vectors="float16", scores="float16"
    ),
    _difference(
        "vectors and scores in bfloat16", "mteb 2.18.9", vectors="bfloat16", scores="bfloat16"
    ),
    *(
        _difference(
            f"scores corrected by the test queries: {name}",
            "hubness corrections at inference",
            rescored=name,
        )
        for name in CORRECTIONS
    ),
    *(
        _difference(f"the split {split}", "frozen-in-time #28, CLIP_benchmark #7", split=split)
        for split in ("val", "test", "train")
    ),
    _difference("all splits in one pool", "CLIP_benchmark #48, mteb #1449", split="all"),
    _difference(
        "the split's queries among the candidates of all splits",
        "a gallery of the whole data set",
        split="candidates",
    ),
    _difference("only the first caption of each image", "openai/CLIP #115", captions=1),
    _difference(
        "only the first five captions of each image",
        "vision-language-models-are-bows #20",
        captions=5,
    ),
    *(
        _difference(
            f"only the first {number} captions of each image",
            "captions_per_image of another data set",
            captions=captions,
        )
        for number, captions in (("two", 2), ("three", 3), ("four", 4), ("ten", 10))
    ),
    _difference(
        "an image's captions averaged into one vector",
        "prompts averaged as CLIP's",
        joined=True,
        captions=1,
    ),
    _difference("all captions of each image", "vision-language-models-are-bows #20", captions=None),
    _difference(
        "images without captions, captions without image left in",
        "pipeline.foundation.evaluation",
        unpaired=True,
    ),
    _difference(
        "images without captions, captions without image left out",
        "pipeline.foundation.evaluation",
        unpaired=False,
    ),
    _difference(
        "equal captions right for each other's images", "frozen-in-time #28", right="equal"
    ),
    _difference("equal captions merged into one", "HGR's code", right="merged"),
    _difference("a caption's own image alone right", "HGR's code", right="own"),
    *(
        _difference(
            f"pairs that CxC rates {least:g} or more right", "VSE∞'s code", right=f"cxc {least:g}"
        )
        for least in (2.5, 3, 3.5)
    ),
    _difference("the judgements of --qrels right", "a benchmark's own positives", right="qrels"),
    _difference("one pool of all images", "SGRAF #7", folds=None, fold=None),
    _difference(
        "the mean of {folds} folds of {size} images",
        "vsepp #25, #26",
        folds="consecutive",
        fold=None,
    ),
    _difference(
        "the mean of {folds} folds, each every {folds}th image",
        "vsepp #25",
        folds="interleaved",
        fold=None,
    ),
    *(
        _difference(
            f"the mean of {parts} folds of consecutive images",
            "folds of another size",
            folds="consecutive",
            fold=None,
            parts=parts,
        )
        for parts in PARTS
    ),
    *(
        _difference(
            f"the mean of {parts} folds, image i in fold i mod {parts}",
            "folds of another size",
            folds="interleaved",
            fold=None,
            parts=parts,
        )
        for parts in PARTS
    ),
    *(
        _difference(
            f"the {name} {{size}} images alone",
            "SGRAF #7, vsepp #26",
            folds="consecutive",
            fold=fold,
        )
        for fold, name in enumerate(("first", "second", "third", "fourth", "fifth"))
    ),
    _difference(
        "ties in the best order", "counting candidates that are more similar", ties="optimistic"
    ),
    _difference(
        "ties in the worst order", "counting candidates that are as similar", ties="pessimistic"
    ),
    _difference("ties by position, the first first", "a stable sort, descending", ties="first"),
    _difference("ties by position, the last first", "vsepp's argsort, reversed", ties="last"),
    _difference("the mean over all orders of ties", "arXiv 2508.03306", ties="expected"),
    _difference("the two directions exchanged", "dsve-loc #17, BLIP #23", directions="exchanged"),
    _difference("the mean of both directions", "one number for both tasks", directions="mean"),
    _difference("ranks counted from 1 but tested with rank < K: R@(K − 1)", "rank < K", cutoff=-1),
    _difference("ranks counted from 0 but tested with rank <= K: R@(K + 1)", "rank <= K", cutoff=1),
    *(
        _difference(f"{words}, at the same K", "UniIR #29, VLM2Vec #194", instead=name)
        for name, words in METRICS.items()
    ),
    *(
        _difference(f"{METRICS[name]}, at K = {k}", "VLM2Vec #194", instead=name, at=k)
        for name, k in product(METRICS, CUTOFFS)
        if k > 1 or name not in SAME_AT_ONE
    ),
    *(_difference(words, threads, tool=tool) for tool, (words, threads) in TOOLS.items()),
    _difference(
        "the share of right candidates found, not a hit", "vsepp #14, ranx #19", hits="share"
    ),
    _difference(
        "each caption a pair with its own copy of the image", "CLIP_benchmark #7", hits="pairs"
    ),
    _difference(
        "the mean over images of their captions' mean", "captions by image", averaged="images"
    ),
    _difference(
        "the sum divided by all judged queries, also those that the run does not list",
        "qrels of all languages, mteb's ViDoRe",
        averaged="judged",
    ),
    _difference(
        "the mean over queries whose list has a right candidate",
        "lists of candidates to rerank",
        averaged="found",
    ),
    _difference("the lower of the two middle ranks", "torch.median", median="lower"),
    _difference("the upper of the two middle ranks", "sorted(ranks)[n // 2]", median="upper"),
    _difference("the median of ranks from 0, rounded down, plus 1", "vsepp's code", median="floor"),
    _difference("ranks from 0", "evaluation without + 1", from_zero=True),
    _difference("RSUM of image → caption alone", "one direction's sum", summed="i2t"),
    _difference("RSUM of caption → image alone", "SumR of text-to-video papers", summed="t2i"),
    _difference(
        "RSUM as the sum of three recalls, each the mean of both directions",
        "means, summed",
        summed="half",
    ),
    _difference(
        "RSUM as the sum of both directions' mean recalls", "vsepp's ar + ari", summed="third"
    ),
    _difference("RSUM as the mean of six recalls", "mR", summed="sixth"),
    _difference("truncated, not rounded", "print of a cut number", rounding="truncated"),
    _difference("rounded to a digit less than printed", "58.0 for 58.3", rounding="coarser"),
    _difference("the sum of recalls rounded to one decimal", "VSE∞'s Table 9", sum_of_rounded=True),
)
