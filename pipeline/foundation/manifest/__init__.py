"""A data set's images and captions: which caption describes which image, and which split they are
in.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.manifest.build import Reading, build
    from pipeline.foundation.manifest.columns import LANGUAGE
    from pipeline.foundation.manifest.dataset import (
        Dataset,
        load as dataset,
        names as datasets,
        refuse_unknown,
    )
    from pipeline.foundation.manifest.photographs import with_checksums
    from pipeline.foundation.manifest.split import SPLITS, Split, SplitName
    from pipeline.foundation.manifest.statistics import compared
    from pipeline.foundation.manifest.table import Manifest

lazy.imports(__name__)
