"""The built-in samples: rendered scenes with five captions each, and moving shots of them, without
any download.
"""

from pipeline.parts import lazy

with lazy.imports(__name__):
    from pipeline.manifest.sample.corpus import render
    from pipeline.manifest.sample.shots import render as render_shots
