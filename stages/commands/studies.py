"""The command line of `stages.studies`."""

from dataclasses import dataclass
from typing import Annotated

import click

from pipeline.run.studies import synthetic
from stages import declared, options


@dataclass(frozen=True, kw_only=True)
class StudyOptions(declared.Options):
    """Test the papers' claims of manifests/claims.yaml on run.dataset, with every seed of
    run.seeds.

    Missing heads are trained, on the first feature of run.features; those of ensembles on the
    ensemble's features. An interrupted run resumes. A head whose training fails is left out, and
    named. Claims about features that the run does not have are not tested. The schedule is that of
    training.DATASET; the papers have 25 epochs.

    Example: pipeline lab study -S run.dataset=flickr8k -S run.seeds=[0,1,2] -S
        training.light.epochs=25
    """

    split: Annotated[
        str,
        click.option(
            "--split",
            type=click.Choice(["val", "test"]),
            show_default=True,
            help="Where systems are measured. Look at val as often as you like; test is read once, at the end.",
        ),
    ] = "val"
    no_training: Annotated[
        bool,
        declared.flag(
            "--no-training",
            help="Test the claims with the seeds whose heads are finished, and train nothing.",
        ),
    ] = False
    # The keys of the settings that are changed for this run, as for `train`.
    changed: Annotated[tuple[str, ...], options.changed_settings] = ()


study_command = declared.command(StudyOptions, "studies.study", options.with_settings)


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
    SyntheticOptions, "studies.learn_patterns", options.with_settings_or_shipped
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
    ThroughputOptions, "studies.measure_throughput", options.with_settings_or_shipped
)
