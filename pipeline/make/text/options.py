"""What text encoders are called in the papers' tables, and their options, in
`training.NAME.texts.ENCODER`.
"""

from pipeline.foundation.settings import Section


class BertTextOptions(Section):
    """No options."""

    TITLE = "BERT"


class BiGRUTextOptions(Section):
    """No options."""

    TITLE = "BiGRU"


class TowerTextOptions(Section):
    """weights: A folder, also one of sentence-transformers, or a name on the Hugging Face hub."""

    weights: str
