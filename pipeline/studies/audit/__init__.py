"""Leakage: images and captions that two data sets, or the splits of one, have in common.

    collection.py    the images that are compared, and the numbers that name their photographs
    fingerprints.py  digests of files, and what images look like in 256 bits
    findings.py      pairs of images that are one photograph, or look alike; equal captions; the report
"""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.studies.audit.collection import Collection, photograph, trained_on
    from pipeline.studies.audit.findings import Findings, compare
    from pipeline.studies.audit.fingerprints import Fingerprints, take

lazy.offer(__name__)
