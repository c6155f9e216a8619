"""The command line of `stages.export`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from stages import declared, options
from stages.arguments import Source


@dataclass(frozen=True, kw_only=True)
class ExportOptions(declared.Options):
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

    head: Annotated[
        Source,
        click.argument("head", callback=options.opened, shell_complete=options.names("head")),
    ]
    to: Annotated[
        str,
        click.option(
            "--to",
            type=click.Choice(["onnx", "sentence-transformers", "transformers", "open_clip"]),
            required=True,
            help="The other library.",
        ),
    ]
    dataset: Annotated[str | None, options.dataset] = None
    out: Annotated[
        Path | None, options.out("exported/DATASET/HEAD-TO", "The folder.", "exported head")
    ] = None


export_command = declared.command(ExportOptions, "export.export", declared.with_settings_or_shipped)
