"""The command line of `stages.export`."""

from typing import Any

import click

from stages import options
from stages.arguments import Source
from stages.values import below_root


@click.command
@click.argument("head", shell_complete=options.names("head"))
@click.option(
    "--to",
    type=click.Choice(["onnx", "sentence-transformers", "transformers", "open_clip"]),
    required=True,
    help="The other library.",
)
@options.dataset
@options.out("exported/DATASET/HEAD-TO", "The folder.", "exported head")
@options.with_settings_or_shipped
def export_command(head: str, **given: Any) -> None:
    """Write HEAD, a trained head's name or folder or tuned:FOLDER, for use without this package.

    onnx: images.onnx reads items of images, captions.onnx token ids of captions, which
        tokenizer.json makes of texts; both give unit vectors. Every head of two towers on stored
        features can be written so.

    sentence-transformers: a folder that SentenceTransformer opens, for captions alone. It has
    modules for a pretrained text encoder with the pooling mean, max or cls.

    A dual encoder of `pipeline finetune`, tuned:FOLDER, becomes a whole model of the library that
    it is of, with the adapters in its weights: transformers, open_clip (opened as local-dir:FOLDER)
    or sentence-transformers.

    Example: pipeline export vse2ad-region-bigru-s0 --to onnx

    Example: pipeline export tuned:encoders/flickr8k/lora-clip-s0 --to transformers
    """
    from stages.export import export

    export(head=Source(head, below_root("")), **given)
