"""Leakage: images and captions that two data sets, or the splits of one, have in common.

    collection.py    the images that are compared, and the numbers that name their photographs
    fingerprints.py  digests of files, and what images look like in 256 bits
    shared.py        pairs of images that are one photograph, or look alike; captions that several images have
    findings.py      what was found, in numbers and names
    page.py          the report, with the doubtful pairs side by side
"""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.studies.audit.collection import Collection, photograph, trained_on
    from pipeline.studies.audit.fingerprints import Fingerprints, take
    from pipeline.studies.audit.shared import EqualCaptions, Pair, Shared, equal_captions, find

lazy.offer(__name__)
