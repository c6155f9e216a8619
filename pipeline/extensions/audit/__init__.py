"""Leakage: images and captions that two data sets, or the splits of one, have in common.

collection.py    the images that are compared, and the numbers that name their photographs
fingerprints.py  digests of files, and perceptual hashes of 256 bits (dHash), called looks
findings.py      pairs of images that are one photograph, or look alike; equal captions; the report
command.py       `pipeline audit`: its options
stage.py         and what it does; what the card of a system says of splits
page.html        the report
"""

from pipeline.foundation.parts.extension import Command, Extension

_COMMAND = Command(
    section="Data and features",
    purpose="Find images and captions that data sets or splits share.",
    place="pipeline.extensions.audit.command:audit_command",
    extra="project",
)
EXTENSION = Extension(
    parts={"split_checks": {"audit": "pipeline.extensions.audit.stage:across_splits"}},
    commands={"audit": _COMMAND},
)
