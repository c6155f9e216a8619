"""The built-in samples: rendered scenes with five captions each, and moving shots of them, without
any download.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.manifest.sample.corpus import render
    from pipeline.foundation.manifest.sample.shots import render as render_shots

lazy.imports(__name__)
