"""The command line of `stages.export`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from pipeline.make.training.exporters import EXPORTERS
from stages import declared, options
from stages.arguments import Source
from stages.values import OneOf


class _Library(OneOf):
    """A library that heads are written for, or that encoders are of."""

    def __init__(self) -> None:
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        from pipeline.make.dual_encoders import places  # and with it pydantic

        return tuple(dict.fromkeys([*EXPORTERS, *places.libraries()]))


@dataclass(frozen=True, kw_only=True)
class ExportOptions(declared.Options):
    """Write a model for use without this package. HEAD is the name or the folder of a trained head,
    or tuned:FOLDER.

    onnx: images.onnx reads the features of images (their items), captions.onnx the token ids of
    captions, which tokenizer.json makes of texts; both give vectors of length 1. For every head of
    two towers on stored features.

    sentence-transformers: a folder that SentenceTransformer opens, for captions alone. For heads
    whose captions are read by a pretrained text encoder, with the pooling mean, max or cls.

    tuned:FOLDER, a dual encoder of `pipeline finetune`, becomes a whole model of its library, such
    as transformers; trained adapters are added to its weights.

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
            type=_Library(),
            metavar="LIBRARY",
            required=True,
            help="The library that will read it, such as onnx; an unknown one lists all.",
        ),
    ]
    dataset: Annotated[str | None, options.dataset] = None
    out: Annotated[
        Path | None,
        options.out("exported/DATASET/HEAD-TO", "Where to write the folder.", "exported head"),
    ] = None


export_command = declared.command(ExportOptions, "export.export", declared.with_settings_or_shipped)
