"""What images and captions there are, which caption tells of which image, and who is in which split."""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.manifest.build import build, differences
    from pipeline.manifest.dataset import Dataset, refuse_unknown
    from pipeline.manifest.dataset import load as dataset
    from pipeline.manifest.dataset import names as datasets
    from pipeline.manifest.photographs import with_checksums
    from pipeline.manifest.split import Split
    from pipeline.manifest.table import SPLITS, Manifest

lazy.offer(__name__)
