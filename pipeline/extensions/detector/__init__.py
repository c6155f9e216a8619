"""Regions of any detector as items: one engine, one selection, and one file for each kind of
detector.

    detector.py      the engine: a detector, the selection of its boxes, and what is pooled in them
    selection.py     from a detector's scores to boxes: one rule for all
    pooling.py       from a map and boxes to items
    other_map.py     the map of another network in place of the detector's own
    hugging_face.py  folders of `transformers`, also those that are asked by prompts
    torchvision.py   torchvision's detectors
    detectron2.py    R-CNNs of detectron2
    graph.py         graphs of ONNX and OpenVINO
    defaults.yaml    the feature `detector` of the preset `light`

What a detector's library does after its network (top-k over pairs of query and class, suppression
class by class) is not used: it returns a query's box several times, and differs from library to
library.
"""

from pipeline.foundation.parts.extension import Extension

EXTENSION = Extension(
    parts={"extractors": {"detector": "pipeline.extensions.detector.detector:Detector"}}
)
