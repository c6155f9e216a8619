"""What all rooms use: errors, delayed imports, tables of parts by name, parts of other packages,
lines of text.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.parts import extras

lazy.imports(__name__)
