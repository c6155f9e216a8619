"""Kinds of text: how captions become numbers, and the network that makes a vector of each.

A new one is a file with a class that offers what `base.Text` lists, and a line in TEXTS.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from pipeline import lazy
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.text.base import Text

# Kind -> (module, class); the module is imported when it is used.
TEXTS = {"bigru": ("pipeline.text.bigru", "BiGRUText"), "bert": ("pipeline.text.bert", "BertText")}


def kind(name: str) -> type[Text]:
    """A kind of text by name. Raises InputError for an unknown one."""
    if name not in TEXTS:
        raise InputError(f"unknown text {name!r}; known: {', '.join(TEXTS)}")
    module, of = TEXTS[name]
    return cast("type[Text]", getattr(import_module(module), of))


__all__ = ["TEXTS", "Text", "kind"]

lazy.offer(__name__)
