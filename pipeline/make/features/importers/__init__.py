"""Features of other code bases: into a feature store, and out of one. A new format is a file and a
line in formats.py.

base.py             the interface of a format: an index of the manifest's images, the features of
one image import_features.py  what is imported into which store; reads the images in the manifest's
order, writes the failures export.py           writes a store in formats that other code bases read
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.make.features.importers.formats import FORMATS
    from pipeline.make.features.importers.import_features import ImportJob, import_features

lazy.imports(__name__)
