"""Bring features that another code base made into a feature store. A new format is a file and a line in FORMATS.

    base.py       what a format offers: an index of the manifest's images, and the features of one
    ids.py        which image of the manifest an id of a source means
    job.py        what is to be brought in, and what the store will say of it
    bring_in.py   the store prepared, the images read in its order, the failures written
    sampling.py   what a store's fingerprint says of the files that it came from
"""

from typing import TYPE_CHECKING

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.importers.base import Found, Source, Unusable
    from pipeline.importers.bring_in import Imported, bring_in
    from pipeline.importers.formats import FORMATS
    from pipeline.importers.job import Import

__all__ = ["FORMATS", "Found", "Import", "Imported", "Source", "Unusable", "bring_in"]

lazy.offer(__name__)
