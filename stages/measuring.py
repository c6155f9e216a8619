"""Options of the commands that measure: a matrix's images and captions, rules, form of output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.foundation.parts.errors import InputError
from stages import options
from stages.declared import Group, flag
from stages.values import FilePath, PartName

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.retrieval import Protocol
    from pipeline.judge.systems.scores.judged import Columns, Truth

# Form of output -> its option of one letter.
SHORT = {"verbose": ("-v",)}


def _columns(manifest_file: Path | None, **given: Any) -> Columns:
    from pipeline.judge.systems.scores.judged import Columns

    return Columns(manifest_file, **given)


def _truth(qrels: Path | None, same_text: str | None) -> Truth:
    from pipeline.judge.systems.scores.judged import Truth

    if qrels and same_text:
        raise InputError(
            "--qrels and --same-text both say which candidates are positives; give one"
        )
    return Truth(qrels, same_text is not None)


def _rules(protocol: str | None, folds: int | None) -> Protocol | None:
    from pipeline.foundation.evaluation.retrieval import Protocol, protocol as named

    if protocol and folds:
        raise InputError("--protocol has its own folds; give --protocol or --folds")
    if folds:
        name = "all"
        if folds > 1:
            name = f"{folds}fold"
        return Protocol(name, folds=folds)
    if protocol:
        return named(protocol)
    return None


def _form(**given: bool) -> str:
    """The form of output that is chosen, "text" for none."""
    chosen = [name.removeprefix("as_").replace("_", "-") for name in given if given[name]]
    if len(chosen) > 1:
        raise InputError(f"--{chosen[0]} and --{chosen[1]} are two ways to print; give one")
    if chosen:
        return chosen[0]
    return "text"


def printed(**forms: str) -> Group:
    """Options that choose how results are printed, one for each form; the command takes `output`,
    "text" for none.
    """
    choices = []
    for form, what in forms.items():
        flags = (*SHORT.get(form, ()), f"--{form.replace('_', '-')}")
        choices.append(flag(*flags, f"as_{form}", help=f"Print {what}."))
    return Group("output", _form, *choices)


_manifest = options.manifest(
    "The manifest of the images (the rows) and captions (the columns) of a matrix."
)
_split = click.option(
    "--split",
    metavar="NAME",
    show_default="test",
    help="The split of the manifest whose images and captions the matrix has.",
)
_captions_per_image = click.option(
    "--captions-per-image",
    type=click.IntRange(min=1),
    show_default="5",
    help="Without a manifest: how many consecutive captions each image has.",
)
_distance = flag("--distance", help="The matrix holds distances: the smallest is best.")
_images = options.images(" that a model such as clip:FOLDER is to embed", in_store=False)
_captions = click.option(
    "--captions",
    type=FilePath(),
    metavar="FILE",
    help="The captions of --images, in any format of `pipeline manifest`.",
)
# Options on the images and captions of a matrix; the command takes `columns`.
columns = Group(
    "columns", _columns, _manifest, _split, _captions_per_image, _distance, _images, _captions
)
_qrels = click.option(
    "--qrels",
    type=FilePath(),
    metavar="FILE",
    help="The right answers: qrels of TREC, BEIR, ranx or ir_measures, or CSV with the header "
    "image,caption,grade. Ids are numbers, image:ID and caption:ID, or images' files with the manifest.",
)
_same_text = click.option(
    "--same-text",
    type=click.Choice(["positive"]),
    help="Count captions of equal text as one query, for which the images of all of them are right (as HGR and mteb "
    "do).",
)
# Options on the right answers; the command takes `truth`.
truth = Group("truth", _truth, _qrels, _same_text)
_folds = click.option(
    "--folds",
    type=click.IntRange(min=1),
    help="Cut the images into this many consecutive folds, each a pool of its own.",
)
_protocol = click.option(
    "--protocol",
    type=PartName("protocols"),
    help="A benchmark's rules; data that do not fit them are refused.",
)
# Options that say how to measure; the command takes `rules`, None where none were given.
rules = Group("rules", _rules, _folds, _protocol)
ties = click.option(
    "--ties",
    type=click.Choice(["expected", "pessimistic", "optimistic"]),
    default="expected",
    show_default=True,
    help="How ties count: the mean over all orders, the worst order or the best.",
)
# How comparisons are printed; the command takes `output`: text, markdown or json.
output = printed(markdown="Markdown", json="JSON")
