"""The command line of `stages.evaluate`."""

import inspect
from typing import Any

import click

from pipeline.foundation.parts.errors import InputError
from stages import measuring, options
from stages.arguments import Source

# Options of a matrix from elsewhere.
OF_MATRIX = ("manifest_file", "split", "captions_per_image", "distance", "images", "captions")
# Options that have no effect on the run, which is measured by its data set's card.
OF_FILES = (
    *OF_MATRIX,
    "folds",
    "protocol",
    "keep",
    "run",
    "top",
    "save_qrels",
    "normalise",
    "beside",
)
# Options that are for one file alone.
OF_ONE_FILE = ("distractors", "keep", "run", "top", "save_qrels", "card")
# Options that distractors exclude.
WITHOUT_DISTRACTORS = (
    "embeddings",
    *OF_MATRIX,
    "folds",
    "protocol",
    "extended",
    "beside",
    "qrels",
    "same_text",
)


@click.command
@click.argument("systems", nargs=-1, metavar="[FILE ...]", shell_complete=options.names("scored"))
@click.option(
    "--system",
    "more",
    multiple=True,
    metavar="FILE",
    shell_complete=options.names("scored"),
    help="As FILE.",
)
@click.option(
    "--embeddings",
    nargs=2,
    metavar="IMAGES CAPTIONS",
    help="As IMAGES:CAPTIONS: the inner products of these vectors, [I, D] and [C, D].",
)
@click.option(
    "--normalise",
    is_flag=True,
    help="Divide each vector by its length, so that inner products are cosines.",
)
@options.distractors
@click.option(
    "--record",
    "keep",
    is_flag=True,
    help="Also write the numbers of a store to results/recorded.json: for tables of larger pools and of "
    "zero-shot retrieval.",
)
@options.usage
@measuring.columns
@measuring.truth
@measuring.rules
@measuring.ties
@click.option(
    "--extended",
    type=click.Choice(["eccv_caption", "cxc"]),
    help="Also with right pairs beyond COCO's own: ECCV Caption (mAP@R, R-Precision) with CxC; or "
    "CxC alone, also within images and within captions, from its own files in evaluate.cxc.",
)
@click.option(
    "--metric",
    "names",
    metavar="NAME",
    multiple=True,
    show_default="evaluate.metrics",
    help="Also this metric, as ir_measures writes it: nDCG@10, MRR, Recall@100, AP, mAP@R, mR. May be given "
    "several times.",
)
@measuring.files
@options.scheduler
@measuring.printed(
    verbose="each of several systems by itself, with ranks and all intervals",
    latex="the rows of a paper's table in LaTeX",
    markdown="them in Markdown",
    csv="them as CSV",
    json="JSON, with all that was measured",
    model_index="the model-index of a model card on Hugging Face",
)
@click.option(
    "--beside",
    metavar="BENCHMARK[:METHODS]",
    help="Measure by this benchmark's protocol, and print the row below those that papers print of it: "
    "flickr30k, coco_1k, coco_5k, msrvtt or vatex; of some methods: flickr30k:VSE∞,VSE+2AD.",
)
@options.with_settings_or_shipped
@options.of_dataset
def evaluate_command(**given: Any) -> None:
    """Measure R@K and RSUM of the run's heads and ensembles into results/metrics.json, or of any
    files of scores.

    Several systems are printed as one table. Each FILE is measured alone: a system by its name, its
    store, or scores from elsewhere: a matrix of images x captions (.npy, .npz, .pt, .safetensors,
    zarr, CSV, Parquet), vectors as IMAGES.npy:CAPTIONS.npy, lists of the best (arrays of ids and
    scores, TREC's and ranx's runs, JSON). FILE:NAME is one array of a file with several. FILE,FILE
    are seeds of one system, a row of means; TITLE=FILE names the row. Ids in a file are compared
    with those of --manifest; nothing is unpickled.

    Systems that `add`, `rerank`, `ensemble` and `rescore` made by name, and heads of recipes that
    `train` varied, are measured with the run's. Others that are scored are left out with a message.
    To drop one, delete its store.

    Every recall and RSUM has a 95 % interval over images, each drawn with its captions.

    Example: pipeline evaluate sims.npy --captions-per-image 5 --folds 5 --json

    Example: pipeline evaluate "Ours=seed0.npy,seed1.npy" --beside flickr30k:VSE∞ --latex
    """
    embeddings = given.pop("embeddings")
    given["systems"] += given.pop("more")
    if embeddings:
        given["systems"] += (":".join(embeddings),)
    systems = given["systems"]
    if not any(Source(text).is_encoder for text in systems):
        options.refuse(*options.USAGE, why="is for a model, KIND:PLACE")
    if given["distractors"]:
        options.refuse(
            *WITHOUT_DISTRACTORS,
            why="cannot be given with --distractors, which enlarge the pool of a head's store",
        )
    elif not systems:
        options.refuse(*OF_FILES, why="needs a FILE; the run is measured by its data set's card")
        options.refuse_shipped()
    if given["beside"] and given["output"] == "verbose":
        raise InputError("--verbose prints no published rows; leave it or --beside out")
    if len(systems) != 1:
        options.refuse(*OF_ONE_FILE, why="needs one FILE alone")

    if not systems:
        from stages.evaluate_run import evaluate_run

        of_run = inspect.signature(evaluate_run).parameters
        given["per_query"] = given["files"].per_query
        evaluate_run(**{name: value for name, value in given.items() if name in of_run})
        return
    from stages.evaluate import evaluate

    evaluate(**given)
