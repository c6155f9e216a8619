"""The engine `naflex`: patches of a SigLIP 2 that keeps an image's aspect ratio."""

from pipeline.foundation.parts.extension import Extension

EXTENSION = Extension(parts={"extractors": {"naflex": "pipeline.extensions.naflex.engine:NaFlex"}})
