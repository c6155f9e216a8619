"""The noise of a system: how far its numbers move when it is only computed in another way.

command.py     `pipeline noise`: its options
stage.py       and what it does
tables.py      what it prints
variations.py  the runs of an encoder or trained head that --make computes

The statistics are those of `pipeline compare`, in `noise.py` of the core's statistics.
"""

from pipeline.foundation.parts.extension import Command, Extension

_COMMAND = Command(
    section="Results",
    purpose="Measure how far repeated runs of one system differ.",
    place="pipeline.extensions.noise.command:noise_command",
)
EXTENSION = Extension(commands={"noise": _COMMAND})
