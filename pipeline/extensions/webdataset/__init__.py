"""Images with their captions beside them: `reader.py` reads WebDataset's tars, img2dataset's tars
and folders, and plain folders of image and text; examples.yaml shows each.
"""

from pipeline.foundation.parts.extension import Extension

EXTENSION = Extension(
    parts={"readers": {"webdataset": "pipeline.extensions.webdataset.reader:READER"}}
)
