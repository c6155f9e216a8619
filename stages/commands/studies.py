"""The command line of `stages.studies`."""

from dataclasses import dataclass
from typing import Annotated

import click

from pipeline.run.studies import synthetic
from stages import declared, options


@dataclass(frozen=True, kw_only=True)
class SyntheticOptions(declared.Options):
    """Train GPO's generators on known pooling patterns, as VSE∞ Table 11; write RMSE beside the
    published numbers.

    Each of the 25 trainings takes a minute or two on one core, and is kept in
    results/synthetic.json: run again to resume; with other settings all are trained again.
    `pipeline tables` shows a generator once its patterns are done.

    Example: pipeline lab synthetic

    Example: pipeline lab synthetic --generator Cos/Sin/BiGRU --pattern A --pattern L
    """

    generators: Annotated[
        tuple[str, ...],
        click.option(
            "--generator",
            multiple=True,
            show_default="all",
            type=click.Choice(["/".join(design) for design in synthetic.DESIGNS]),
            help="Input representation and decoder, as in Table 11; give several for one after another.",
        ),
    ] = ()
    patterns: Annotated[
        tuple[str, ...],
        click.option(
            "--pattern",
            type=click.Choice(list(synthetic.PATTERNS)),
            multiple=True,
            show_default="all",
            help="A: average. M-K: the K largest. T-50%: the largest half. L: falling weights.",
        ),
    ] = ()


synthetic_command = declared.command(
    SyntheticOptions, "studies.learn_patterns", declared.with_settings_or_shipped
)


@dataclass(frozen=True, kw_only=True)
class ThroughputOptions(declared.Options):
    """Time every recipe's pooling, a query's answer and a cross-encoder's cost into
    results/throughput.json.

    The poolings' #OIPs and the figure of retrieval times come from it. If other work ran on the
    machine meanwhile, the file, the table and this command say so. With --retriever and --with one
    query is timed, too: by the retriever's head, and with its best candidates, throughput.reranked
    of them, reranked.

    Example: pipeline lab throughput

    Example: pipeline lab throughput --retriever vse2ad-region-bigru-s0 --with ce-region-bert-s0
    """

    retriever: Annotated[str | None, options.retriever] = None
    scorer: Annotated[str | None, options.scorer] = None


throughput_command = declared.command(
    ThroughputOptions, "studies.measure_throughput", declared.with_settings_or_shipped
)
