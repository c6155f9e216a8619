"""The command line of `stages.evaluate`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from pipeline.foundation.parts.errors import InputError
from stages import declared, measuring, options
from stages.arguments import Source
from stages.values import OutputPath, OutputsPath, PartName

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.retrieval import Protocol, Ties
    from pipeline.judge.systems.scores.judged import Columns, Truth
    from pipeline.judge.tables.catalogues import Catalogue

OF_FILES = declared.Scope("needs a FILE; the run is measured by its data set's card")
OF_ONE_FILE = declared.Scope("needs one FILE alone: each FILE needs a call of its own")
HITS_OF_SEVERAL = "--hits FILE is for one FILE alone; of several, or of the run, --hits FOLDER/ writes a file of each"
OF_OWN_NUMBERS = declared.Scope("is for our own numbers: leave it or --as out")
OF_ENCODERS = declared.Scope("is for a model, KIND:PLACE")
WITHOUT_DISTRACTORS = declared.Scope(
    "cannot be given with --distractors, which enlarge the pool of a head's store"
)

named_files = declared.Group(
    "systems",
    lambda systems, more: systems + more,
    click.argument(
        "systems", nargs=-1, metavar="[FILE ...]", shell_complete=options.names("scored")
    ),
    click.option(
        "--system",
        "more",
        multiple=True,
        metavar="FILE",
        shell_complete=options.names("scored"),
        help="Same as FILE.",
    ),
)


def _catalogue(export: str | None, about: tuple[str, ...]) -> "Catalogue | None":
    said: dict[str, str] = {}
    for pair in about:
        key, equals, value = pair.partition("=")
        if not key or not equals or not value.strip():
            raise InputError(f"--about {pair[:60]}: expected KEY=VALUE, such as model=OWNER/NAME")
        if key in said:
            raise InputError(f"--about {key} is given twice; give it once")
        said[key] = value.strip()
    if export is None:
        if said:
            raise InputError("--about says of what --export FORM writes; give --export")
        return None
    from pipeline.judge.tables.catalogues import of_form

    return of_form(export, said)


# How a catalogue of evaluations reads numbers; the command takes `catalogue`.
exported = declared.Group(
    "catalogue",
    _catalogue,
    click.option(
        "--export",
        type=PartName("catalogues"),
        help="Print the file that a catalogue of evaluations reads: the head of a model card, a record of Every Eval "
        "Ever, or a number of a benchmark's leaderboard on Hugging Face.",
    ),
    click.option(
        "--about",
        multiple=True,
        metavar="KEY=VALUE",
        help="What --export asks for and scores do not say, such as model=OWNER/NAME; an unknown key lists all. May be "
        "given several times.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(declared.Options):
    """Measure R@K and RSUM of the run's heads and ensembles into results/metrics.json, or of any
    files of scores.

    Several systems are printed as one table. Each FILE is measured alone: a system by its name, its
    store, or scores from elsewhere: a matrix of images x captions (.npy, .npz, .pt, .safetensors,
    zarr, CSV, Parquet), vectors as IMAGES.npy:CAPTIONS.npy, lists of the best (arrays of ids and
    scores, TREC's and ranx's runs, JSON). FILE:NAME is one array of a file with several. FILE,FILE
    are seeds of one system, a row of means; TITLE=FILE names the row. Ids in a file are compared
    with those of --manifest; nothing is unpickled.

    With the run are measured: systems that `add`, `rerank`, `ensemble` and `rescore` made by name,
    and heads of recipes that `train` varied. A message names what else is scored and left out. To
    leave a system out, delete its store.

    Every recall and RSUM has a 95 % interval: how much it would vary with another sample of images,
    each with its captions.

    Example: pipeline evaluate sims.npy --captions-per-image 5 --folds 5 --json

    Example: pipeline evaluate "Ours=seed0.npy,seed1.npy" --beside flickr30k:VSE∞ --latex
    """

    systems: Annotated[tuple[str, ...], named_files] = ()
    dataset: Annotated[str | None, options.dataset] = None
    embeddings: Annotated[
        tuple[str, str] | None,
        click.option(
            "--embeddings",
            nargs=2,
            metavar="IMAGES CAPTIONS",
            help="Same as IMAGES:CAPTIONS: the inner products of these vectors, [I, D] and [C, D].",
        ),
        WITHOUT_DISTRACTORS,
    ] = None
    normalise: Annotated[
        bool,
        declared.flag(
            "--normalise",
            help="Divide each vector by its length, so that inner products are cosines.",
        ),
        OF_FILES,
    ] = False
    distractors: Annotated[tuple[Path, ...], options.distractors, OF_ONE_FILE, OF_OWN_NUMBERS] = ()
    tool: Annotated[
        str | None,
        click.option(
            "--as",
            "tool",
            metavar="TOOL",
            help="Measure as this tool does, ties included, by its own metrics: trec_eval, mteb, ranx, "
            "sentence-transformers, mmeb, clip_benchmark, open_clip, vidore-benchmark. TOOL:OPTION is what it leaves out, such as mteb:skip_first_result.",
        ),
        OF_FILES,
        WITHOUT_DISTRACTORS,
    ] = None
    record: Annotated[
        bool,
        declared.flag(
            "--record",
            help="Also write the numbers of a store to results/recorded.json: for tables of larger pools and of "
            "zero-shot retrieval.",
        ),
        OF_FILES,
        OF_ONE_FILE,
        OF_OWN_NUMBERS,
    ] = False
    usage: Annotated[Mapping[str, Any], options.usage, OF_ENCODERS] = field(default_factory=dict)
    columns: Annotated["Columns", measuring.columns, OF_FILES, WITHOUT_DISTRACTORS] = field(
        default_factory=measuring.columns.default
    )
    truth: Annotated["Truth", measuring.truth, WITHOUT_DISTRACTORS] = field(
        default_factory=measuring.truth.default
    )
    rules: Annotated[
        "Protocol | None", measuring.rules, OF_FILES, WITHOUT_DISTRACTORS, OF_OWN_NUMBERS
    ] = None
    ties: Annotated["Ties", measuring.ties, OF_OWN_NUMBERS] = "expected"
    extended: Annotated[
        str | None,
        click.option(
            "--extended",
            type=click.Choice(["eccv_caption", "cxc"]),
            help="Also measure by right pairs that COCO's annotations lack: those of ECCV Caption (mAP@R, R-Precision) "
            "and CxC; or of CxC alone, also between images and between captions, from its files in evaluate.cxc.",
        ),
        WITHOUT_DISTRACTORS,
        OF_OWN_NUMBERS,
    ] = None
    metrics: Annotated[
        tuple[str, ...],
        click.option(
            "--metric",
            metavar="NAME",
            multiple=True,
            show_default="evaluate.metrics",
            help="Also this metric, as ir_measures writes it: nDCG@10, MRR, Recall@100, AP, mAP@R, mR. May be given "
            "several times.",
        ),
    ] = ()
    run: Annotated[
        Path | None,
        click.option(
            "--run",
            type=OutputPath(),
            metavar="FILE",
            help="Also write every query's best candidates, with ids such as image:12 and caption:55, as a run file "
            "of ranx (.json) or of TREC.",
        ),
        OF_FILES,
        OF_ONE_FILE,
        OF_OWN_NUMBERS,
    ] = None
    top: Annotated[
        int | None,
        click.option(
            "--top",
            type=click.IntRange(min=1),
            show_default="100",
            help="How many candidates --run writes.",
        ),
        OF_FILES,
        OF_ONE_FILE,
        OF_OWN_NUMBERS,
    ] = None
    save_qrels: Annotated[
        Path | None,
        click.option(
            "--save-qrels",
            type=OutputPath(),
            metavar="FILE",
            help="Also write the right answers as TREC qrels, for other tools that read the run.",
        ),
        OF_FILES,
        OF_ONE_FILE,
        OF_OWN_NUMBERS,
    ] = None
    hits: Annotated[
        Path | None,
        click.option(
            "--hits",
            type=OutputsPath(".npz"),
            metavar="FILE|FOLDER/",
            help="Also write the rank of each query's best right candidate (.npz): a small file that `evaluate` "
            "and `compare` read like the scores, by the same protocol. Of several systems, and of the run: SYSTEM.npz "
            "of each in FOLDER, which exists or ends in /.",
        ),
        WITHOUT_DISTRACTORS,
        OF_OWN_NUMBERS,
    ] = None
    per_query: Annotated[
        Path | None,
        click.option(
            "--per-query",
            type=OutputPath(endings=(".parquet", ".csv")),
            metavar="FILE",
            help="Also write a row for each query, with rank, ties and hits in each system (.parquet or .csv).",
        ),
        OF_OWN_NUMBERS,
    ] = None
    card: Annotated[
        Path | None,
        click.option(
            "--card",
            type=OutputPath(endings=(".html",)),
            metavar="FILE",
            help="Also write a page on the scores: ranks, ties, hubs, duplicates, worst queries, digests. It "
            "shows photographs and captions where --manifest or a store's record names the data set.",
        ),
        OF_ONE_FILE,
        OF_OWN_NUMBERS,
    ] = None
    scheduler: Annotated[str | None, options.scheduler] = None
    output: Annotated[
        str,
        measuring.printed(
            verbose="each of several systems by itself, with ranks and all intervals",
            latex="the rows of a paper's table in LaTeX",
            markdown="these rows in Markdown",
            csv="these rows as CSV",
            json="JSON, with everything that was measured",
        ),
    ] = "text"
    catalogue: Annotated["Catalogue | None", exported, OF_OWN_NUMBERS] = None
    beside: Annotated[
        str | None,
        click.option(
            "--beside",
            metavar="BENCHMARK[:METHODS]",
            help="Measure by the protocol of this benchmark, and print the rows that papers publish for it above: "
            "flickr30k, coco_1k, coco_5k, msrvtt or vatex; those of some methods: flickr30k:VSE∞,VSE+2AD (or VSEinf).",
        ),
        OF_FILES,
        WITHOUT_DISTRACTORS,
        OF_OWN_NUMBERS,
    ] = None

    @property
    def files(self) -> tuple[str, ...]:
        """All that is measured alone; none where the run is measured."""
        if self.embeddings is None:
            return self.systems
        return (*self.systems, ":".join(self.embeddings))

    @property
    def has_one_file_of_hits(self) -> bool:
        """Whether --hits names a file, and no folder."""
        if self.hits is None or self.hits.is_dir():
            return False
        return self.hits.suffix.lower() == ".npz"

    def check(self) -> None:
        if self.top and not self.run:
            raise InputError("--top says how many candidates --run writes; give --run")
        if not any(Source(file).is_encoder for file in self.files):
            self.refuse(OF_ENCODERS)
        if self.tool:
            self._check_tool()
        if self.distractors:
            self.refuse(WITHOUT_DISTRACTORS)
        elif not self.files:
            self.refuse(OF_FILES)
            declared.refuse_shipped()
        if self.beside and self.output == "verbose":
            raise InputError("--verbose prints no published rows; leave it or --beside out")
        if self.catalogue:
            self._check_catalogue()
        if len(self.files) != 1:
            self.refuse(OF_ONE_FILE)
            if self.has_one_file_of_hits:
                raise InputError(HITS_OF_SEVERAL)

    def _check_catalogue(self) -> None:
        """Refuse other ways to print."""
        other = self.output
        if self.beside:
            other = "beside"
        if other != "text":
            raise InputError(f"--export and --{other} are two ways to print; give one")

    def _check_tool(self) -> None:
        """Refuse what a tool's own numbers do not have."""
        self.refuse(OF_OWN_NUMBERS)
        if self.output not in ("text", "json"):
            raise InputError(
                f"--{self.output} prints our own numbers; --as prints text or, with --json, JSON"
            )


evaluate_command = declared.command(
    EvaluateOptions,
    "evaluate.evaluate",
    partial(declared.with_settings_or_shipped, of_files=("systems", "embeddings")),
)
