"""torchvision's detectors: Faster R-CNN, RetinaNet, FCOS and SSD, each by its name and a file of
weights.

Their parts are called one by one, up to the scores and boxes of every proposal or anchor; the
suppression class by class that ends their own `forward` is left out. One photograph at a time,
because they pad those of a batch alike.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from PIL import Image
from torchvision import models
from torchvision.models.detection import FCOS, FasterRCNN
from torchvision.models.detection.ssd import SSD
from torchvision.transforms.functional import pil_to_tensor

from pipeline.extensions.detector.selection import Found
from pipeline.foundation.files import weights
from pipeline.foundation.parts.errors import InputError, meant
from pipeline.make.features.extractors.base import with_weights
from pipeline.make.features.extractors.runtime import Runtime

USUAL = 91  # COCO's classes and the background
BACKGROUND_FIRST = (FasterRCNN, SSD)
# The biases of a detector's last classifier: as many as classes, or as anchors times classes.
CLASSIFIER = re.compile(
    r"roi_heads\.box_predictor\.cls_score\.bias|"
    r"head\.classification_head\.(cls_logits|module_list\.5(\.1)?)\.bias"
)


class TorchVision:
    """A detector of torchvision, by its name there, with the sizes and normalisation that it has
    itself.
    """

    at_once = 1

    def __init__(self, name: str, file: str, runtime: Runtime) -> None:
        known = models.list_models(module=models.detection, exclude=["mask*", "keypoint*"])
        if name not in known:
            raise InputError(f"network {name!r}: no detector of torchvision; {meant(name, known)}")
        self.runtime = runtime
        made = partial(models.get_model, name, weights=None, weights_backbone=None)
        # The weights say how many classes there are, in proportion to the usual 91.
        if file != weights.UNTRAINED:
            with torch.device("meta"):
                usual = _classifier(made().state_dict())
            path, _ = weights.locate(file)
            here = _classifier(weights.read(path))
            classes = max(2, USUAL * here // usual) if here else USUAL
            made = partial(made, num_classes=classes)
        network = with_weights(
            made, file, weights.read, f"torchvision's {name}", optional=".*num_batches_tracked"
        )
        self.network: Any = network.to(runtime.device)
        self.weights = weights.digest(self.network)

    def prepare(self, image: Image.Image) -> Mapping[str, torch.Tensor]:
        """Take a photograph's pixels; the network resizes and normalises them, see
        `Finder.prepare`.
        """
        return {"pixels": pil_to_tensor(image).float() / 255}

    def find(
        self, batch: Sequence[Mapping[str, torch.Tensor]], sizes: Sequence[tuple[int, int]]
    ) -> Iterator[Found]:
        """Run the network over photographs, one by one, see `Finder.find`."""
        for prepared, size in zip(batch, sizes, strict=True):
            with self.runtime.autocast():
                pixels = self.runtime.send(prepared["pixels"])
                scores, boxes, queries, given, maps = self._run(pixels)
            found = Found.of_classes(
                scores, boxes, size, given.image_sizes[0], given.tensors.shape, queries, maps
            )
            if isinstance(self.network, BACKGROUND_FIRST):
                found = replace(found, labels=found.labels + 1)
            yield found

    def _run(self, pixels: torch.Tensor) -> Any:
        """Scores [Q, C], boxes [Q, 4] or [Q, C, 4] in pixels of the input, vectors of boxes, the
        input, maps.
        """
        given, _ = self.network.transform([pixels])
        maps = self.network.backbone(given.tensors)
        levels = list(maps.values())
        if isinstance(self.network, FasterRCNN):
            heads = self.network.roi_heads
            proposals, _ = self.network.rpn(given, maps)
            vectors = heads.box_head(heads.box_roi_pool(maps, proposals, given.image_sizes))
            logits, deltas = heads.box_predictor(vectors)
            scores = logits.float().softmax(1)[:, 1:]
            boxes = heads.box_coder.decode(deltas, proposals)[:, 1:]
            return scores, boxes, vectors.float(), given, levels
        head = self.network.head(levels)
        anchors = self.network.anchor_generator(given, levels)[0]
        deltas = head["bbox_regression"][0].float()
        logits = head["cls_logits"][0].float()
        coder = self.network.box_coder
        if isinstance(self.network, FCOS):
            centred = head["bbox_ctrness"][0].float().sigmoid()
            scores = (logits.sigmoid() * centred).sqrt()
            return scores, coder.decode(deltas, anchors), None, given, levels
        scores = logits.softmax(1)[:, 1:] if isinstance(self.network, SSD) else logits.sigmoid()
        return scores, coder.decode_single(deltas, anchors), None, given, levels


def _classifier(state: Mapping[str, torch.Tensor]) -> int:
    """How many numbers the last array of a classifier has; 0 if there is none."""
    for name, values in state.items():
        if CLASSIFIER.fullmatch(name):
            return len(values)
    return 0
