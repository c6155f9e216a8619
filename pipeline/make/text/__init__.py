"""Text encoders: how captions become token ids or stored features, and the network that makes a
vector of each.

A new one is a file with a class that extends `tokens.TokenText`, and a line in TEXTS. How the words
of a vocabulary are found is a tokenizer: a function from a caption, in Unicode's form NFC, to its
words in order; a line in TOKENIZERS.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.make.text.base import Text, with_dropout
    from pipeline.make.text.tokens import encode

lazy.imports(__name__)

TEXTS: "lazy.LookupTable[type[Text]]" = lazy.LookupTable(
    {
        "bigru": "pipeline.make.text.bigru:BiGRUText",
        "bert": "pipeline.make.text.bert:BertText",
        "tokens": "pipeline.make.text.tower:TowerText",
        "features": "pipeline.make.text.features:FeatureText",
    },
    "texts",
    "text encoder",
    base="pipeline.make.text.tokens:TokenText",
)
kind = TEXTS.find
TOKENIZERS: "lazy.LookupTable[Callable[[str], list[str]]]" = lazy.LookupTable(
    {
        "words": "pipeline.make.text.tokenizers:words",
        "treebank": "pipeline.make.text.tokenizers:treebank",
        "unicode": "pipeline.make.text.tokenizers:unicode",
    },
    "tokenizers",
)
