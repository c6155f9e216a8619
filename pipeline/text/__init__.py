"""Text encoders: how captions become token ids, and the network that makes a vector of each token.

A new one is a file with a class that implements `base.Text`, and a line in TEXTS.
"""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.text.base import Text, encode, with_dropout
    from pipeline.text.role_graphs import GraphBatch

TEXTS: "lazy.LookupTable[type[Text]]" = lazy.LookupTable({
    "bigru": "pipeline.text.bigru:BiGRUText",
    "bert": "pipeline.text.bert:BertText",
}, "texts", "text encoder")
kind = TEXTS.find


lazy.offer(__name__)
