"""The command line of `stages.export`."""

from typing import Any

import click

from stages import options
from stages.arguments import Source
from stages.values import below_root


@click.command
@click.argument("head", shell_complete=options.names("head"))
@click.option("--to", type=click.Choice(["onnx", "sentence-transformers"]), required=True, help="The other library.")
@options.dataset
@options.out("exported/DATASET/HEAD-TO", "The folder.", "exported head")
@options.with_settings_or_shipped
def export_command(head: str, **given: Any) -> None:
    """Write HEAD, the name of a trained head or its folder, for use without this package.

    onnx: images.onnx reads items of images, captions.onnx token ids of captions, which tokenizer.json makes of texts;
    both give unit vectors. Every head of two towers on stored features can be written so.

    sentence-transformers: a folder that SentenceTransformer opens, for captions alone. It has modules for a pretrained
    text encoder with the pooling mean, max or cls.

    Example: pipeline export vse2ad-region-bigru-s0 --to onnx
    """
    from stages.export import export

    export(head=Source(head, below_root("")), **given)
