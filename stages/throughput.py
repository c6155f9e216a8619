"""Time poolings and retrieval on this machine."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import TYPE_CHECKING

import click

from pipeline.parts.errors import InputError
from pipeline.settings.paths import Paths
from stages.options import choose_products, names, with_settings_or_shipped
from stages.progress import Progress

if TYPE_CHECKING:

    from pipeline.files.atomic import write_text
    from pipeline.settings import Settings
    from pipeline.studies import throughput
    from pipeline.systems.reranking.base import PairSource


@click.command
@click.option("--retriever", metavar="SYSTEM", shell_complete=names("scored"),
              help="Also time one query by this scored head; goes with --with.")
@click.option("--with", "scorer", metavar="SCORER", shell_complete=names("system"),
              help="The scorer of pairs that reranks its best candidates, throughput.reranked of them.")
@with_settings_or_shipped
def command(paths: Paths, settings: Settings, retriever: str | None, scorer: str | None) -> None:
    """Time every recipe's pooling, a query's answer and a cross-encoder's cost into results/throughput.json.

    The poolings' #OIPs and the figure of retrieval times come from it. Where other work ran on the machine meanwhile,
    the file, the table and this command say so.

    Example: pipeline throughput

    Example: pipeline throughput --retriever vse2ad-region-bigru-s0 --with ce-region-bert-s0
    """
    if (retriever is None) != (scorer is None):
        raise InputError("give both --retriever and --with, or neither")
    choose_products(settings)
    with Progress("throughput", "step") as bar:
        measured = throughput.measure(settings.recipes, settings.training_of(settings.run.dataset),
                                      settings.throughput, bar.step)
        if retriever and scorer:
            dataset = settings.run.dataset
            source = PairSource(paths, dataset, dataset, dataset, settings.throughput.device,
                                settings.throughput.reranked, settings.compute.products, settings.score.split)
            measured["query"] = throughput.measure_query(source, retriever, scorer, settings.throughput, bar.step)
    write_text(paths.throughput, json.dumps(measured, indent=1))
    click.echo(f"{paths.throughput}: {measured['made_with']['processor']}, {measured['made_with']['machine']}")
    (slowest, least), (fastest, most) = (of(measured["poolings"].items(), key=itemgetter(1)) for of in (min, max))
    click.echo(f"  images pooled a second: from {least:,.0f} ({slowest}) to {most:,.0f} ({fastest})")
    if said := measured.get("query"):
        click.echo(f"  one query: {1000 * said['retrieve']:.1f} ms by {retriever}, {1000 * said['both']:.1f} ms with "
                   f"its best {said['k']} reranked by {scorer}: {said['ratio']:.1f} times")
    if measured["busy"]:
        click.echo(f"warning: other work used {measured['others']:.1f} cores meanwhile, and the times are marked; run "
                   "`pipeline throughput` again on an idle machine", err=True)
