"""The command line of `stages.evaluate`."""

from typing import Any

import click

from stages import measuring, options


@click.command
@options.source("Measure this alone and print it: a system by its name, its similarity store, or any images x captions "
                "matrix (.npy, zarr).")
@click.option("--embeddings", type=options.FilePath(), nargs=2, metavar="IMAGES.npy CAPTIONS.npy",
              help="Measure the inner products of these vectors, [I, D] and [C, D], computed block by block.")
@click.option("--normalise", is_flag=True,
              help="Divide each vector of --embeddings by its length, so that inner products are cosines.")
@options.distractors
@click.option("--record", "keep", is_flag=True,
              help="Also write the numbers of a store to results/recorded.json: for tables of larger pools and of "
              "zero-shot retrieval.")
@measuring.columns
@measuring.truth
@measuring.rules
@measuring.ties
@click.option("--extended", type=click.Choice(["eccv_caption", "cxc"]),
              help="Also with right pairs beyond COCO's own: ECCV Caption (mAP@R, R-Precision) with CxC; or "
              "CxC alone, also within images and within captions, from its own files in evaluate.cxc.")
@click.option("--metric", "names", metavar="NAME", multiple=True, show_default="evaluate.metrics",
              help="Also this metric, as ir_measures writes it: nDCG@10, MRR, Recall@100, AP, mAP@R, mR. May be given "
              "several times.")
@measuring.files
@click.option("--from-run", type=options.FilePath(dir_okay=False), metavar="FILE",
              help="Measure a run of any system, TREC's or ranx's; --manifest or --qrels has the right answers.")
@options.scheduler
@measuring.printed(latex="the rows of a paper's table in LaTeX", markdown="them in Markdown", csv="them as CSV",
                   json="JSON, with all that was measured")
@click.option("--beside", metavar="BENCHMARK",
              help="Measure by this benchmark's protocol, and print the row below those that papers print of it: "
              "flickr30k, coco_1k, coco_5k, msrvtt or vatex.")
@options.with_settings_or_shipped
def evaluate_command(**given: Any) -> None:
    """Measure R@K and RSUM of the run's heads and ensembles into results/metrics.json, or of any matrix or run file.

    Systems that `rerank`, `ensemble`, `rescore` and `score --system` made by name are measured with the run's. A system
    that no longer fits the run is left out with a message. To drop one, delete its store.

    Every recall and RSUM has a 95 % interval over images, each drawn with its captions.

    Example: pipeline evaluate --system sims.npy --captions-per-image 5 --folds 5 --json

    Example: pipeline evaluate --system sims.npy --beside flickr30k --latex
    """
    from stages.evaluate import evaluate

    if given["from_run"]:
        options.refuse("source", "embeddings", "normalise", "distractors", "distance", "folds", "protocol", "extended",
                       "beside", "keep", "run", "top", "save_qrels", "per_query", "scheduler",
                       why="cannot be given with --from-run, whose lists are measured as they are")
    elif given["distractors"]:
        options.refuse("embeddings", "manifest_file", "split", "captions_per_image", "distance", "folds", "protocol",
                       "extended", "beside", "qrels", "same_text",
                       why="cannot be given with --distractors, which enlarge the pool of a head's store")
    elif not (given["source"] or given["embeddings"]):
        options.refuse("manifest_file", "split", "captions_per_image", "distance", "folds", "protocol", "keep", "run",
                       "top", "save_qrels", "normalise", "beside",
                       why="needs --system or --embeddings; the run is measured by its data set's card")
        options.refuse_shipped()
    if not given["embeddings"]:
        options.refuse("normalise", why="is for --embeddings; a matrix holds similarities already")
    evaluate(**given)
