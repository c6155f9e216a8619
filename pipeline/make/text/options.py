"""The options of text encoders, in `training.NAME.texts.ENCODER`."""

from pipeline.foundation.settings import Section


class TowerTextOptions(Section):
    """weights: A folder, also one of sentence-transformers, or a name on the Hugging Face hub."""

    weights: str
