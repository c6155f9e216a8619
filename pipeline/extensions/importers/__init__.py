"""Features of other code bases: into a feature store, and out of one. A new format is a file and a
line in formats.py.

    base.py             the interface of a format: an index of the manifest's images, the features
                        of one image
    import_features.py  what is imported into which store; reads the images in the manifest's
                        order, writes the failures
    export.py           formats of `pipeline store export` that other code bases read
    command.py          `pipeline store import`: its options
    stage.py            and what it does
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.extension import Command, Extension

if TYPE_CHECKING:
    from pipeline.extensions.importers.formats import FORMATS
    from pipeline.extensions.importers.import_features import ImportJob, import_features

_COMMAND = Command(
    purpose="Import features of another code base into a store.",
    place="pipeline.extensions.importers.command:import_command",
)
_PARTS = {
    "kinds of parts": {"importers": "pipeline.extensions.importers.formats:FORMATS"},
    "store_formats": {
        "scan": "pipeline.extensions.importers.export:SCAN",
        "butd-tsv": "pipeline.extensions.importers.export:TSV",
        "folder": "pipeline.extensions.importers.export:FOLDER",
    },
}
EXTENSION = Extension(parts=_PARTS, commands={"store import": _COMMAND})

lazy.imports(__name__)
