"""A data set's images and captions: which caption describes which image, and which split they are
in.
"""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.manifest.build import build
    from pipeline.manifest.dataset import (
        Dataset,
        load as dataset,
        names as datasets,
        refuse_unknown,
    )
    from pipeline.manifest.photographs import with_checksums
    from pipeline.manifest.split import SPLITS, Split, SplitName
    from pipeline.manifest.statistics import compared
    from pipeline.manifest.table import Manifest

lazy.imports(__name__)
