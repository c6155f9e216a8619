"""The command line of `stages.studies`."""

from typing import Any

import click

from pipeline.studies import synthetic
from stages import options


@click.command
@click.option(
    "--split",
    type=click.Choice(["val", "test"]),
    default="val",
    show_default=True,
    help="Where systems are measured. Look at val as often as you like; test is read once, at the end.",
)
@click.option(
    "--no-training",
    is_flag=True,
    help="Test the claims with the seeds whose heads are finished, and train nothing.",
)
@options.with_settings
def study_command(**given: Any) -> None:
    """Test the papers' claims of manifests/claims.yaml on run.dataset, with every seed of
    run.seeds.

    Missing heads are trained, on the first feature of run.features; those of ensembles on the
    ensemble's features. An interrupted run resumes. A head whose training fails is left out, and
    named. Claims about features that the run does not have are not tested. The schedule is that of
    training.DATASET; the papers have 25 epochs.

    Example: pipeline lab study -S run.dataset=flickr8k -S run.seeds=[0,1,2] -S
        training.light.epochs=25
    """
    from stages.studies import study

    study(**given, changes=options.changes())


@click.command
@click.option(
    "--generator",
    "generators",
    multiple=True,
    show_default="all",
    type=click.Choice(["/".join(design) for design in synthetic.DESIGNS]),
    help="Input representation and decoder, as in Table 11; give several for one after another.",
)
@click.option(
    "--pattern",
    "patterns",
    type=click.Choice(list(synthetic.PATTERNS)),
    multiple=True,
    show_default="all",
    help="A: average. M-K: the K largest. T-50%: the largest half. L: falling weights.",
)
@options.with_settings_or_shipped
def synthetic_command(**given: Any) -> None:
    """Train GPO's generators on known pooling patterns, as VSE∞ Table 11; write RMSE beside the
    published numbers.

    Each of the 25 trainings takes a minute or two on one core, and is kept in
    results/synthetic.json: run again to resume; with other settings all are trained again.
    `pipeline tables` shows a generator once its patterns are done.

    Example: pipeline lab synthetic

    Example: pipeline lab synthetic --generator Cos/Sin/BiGRU --pattern A --pattern L
    """
    from stages.studies import learn_patterns

    learn_patterns(**given)


@click.command
@options.retriever
@options.scorer
@options.with_settings_or_shipped
def throughput_command(**given: Any) -> None:
    """Time every recipe's pooling, a query's answer and a cross-encoder's cost into
    results/throughput.json.

    The poolings' #OIPs and the figure of retrieval times come from it. If other work ran on the
    machine meanwhile, the file, the table and this command say so. With --retriever and --with one
    query is timed, too: by the retriever's head, and with its best candidates, throughput.reranked
    of them, reranked.

    Example: pipeline lab throughput

    Example: pipeline lab throughput --retriever vse2ad-region-bigru-s0 --with ce-region-bert-s0
    """
    from stages.studies import measure_throughput

    measure_throughput(**given)
