"""An R-CNN of detectron2: its configuration .yaml and a file of weights. Only this needs
detectron2.

Configurations are read without Python's tags, weights without unpickling: safetensors, `.pth`, or
`.pkl` of arrays.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from pipeline.extensions.detector.selection import Found
from pipeline.foundation.files import weights
from pipeline.foundation.parts.errors import InputError, first_line, refusing
from pipeline.make.features.extractors.base import with_weights
from pipeline.make.features.extractors.butd.checkpoint import read_state
from pipeline.make.features.extractors.butd.options import DETECTRON2
from pipeline.make.features.extractors.grid_feats import resized
from pipeline.make.features.extractors.runtime import Runtime


class Detectron2:
    """A GeneralizedRCNN, its parts called one by one up to the scores and boxes of every
    proposal.
    """

    at_once = 1

    def __init__(self, file: Path, name: str, runtime: Runtime) -> None:
        with refusing(
            ImportError,
            lambda error: (
                f"the detector {file} needs detectron2, which cannot be used here "
                f"({error}); with torch installed, run: {DETECTRON2}"
            ),
        ):
            from detectron2.config import get_cfg
            from detectron2.modeling import GeneralizedRCNN, build_model
        self.runtime = runtime
        self.config = get_cfg()
        with refusing(
            Exception,
            lambda error: f"{file}: not a configuration of detectron2 ({first_line(error)})",
        ):
            self.config.merge_from_file(str(file), allow_unsafe=False)
        self.config.MODEL.DEVICE = runtime.device
        self.network: Any = with_weights(
            lambda: build_model(self.config), name, read_state, f"the network of {file}"
        )
        is_rcnn = isinstance(self.network, GeneralizedRCNN)
        if not is_rcnn or not hasattr(self.network.roi_heads, "box_pooler"):
            raise InputError(
                f"{file}: expected an R-CNN with a head on pooled boxes (StandardROIHeads)"
            )
        self.weights = weights.digest(self.network)

    def prepare(self, image: Image.Image) -> Mapping[str, torch.Tensor]:
        """Resize a photograph as the configuration says, see `Finder.prepare`."""
        settings = self.config.INPUT
        size = resized(*image.size, settings.MIN_SIZE_TEST, settings.MAX_SIZE_TEST)
        pixels = np.array(image.resize(size, Image.Resampling.BILINEAR), np.float32)
        if settings.FORMAT == "BGR":
            pixels = pixels[:, :, ::-1]
        return {"pixels": torch.from_numpy(pixels.transpose(2, 0, 1).copy())}

    def find(
        self, batch: Sequence[Mapping[str, torch.Tensor]], sizes: Sequence[tuple[int, int]]
    ) -> Iterator[Found]:
        """Run the network over photographs, one by one, see `Finder.find`."""
        heads = self.network.roi_heads
        predictor = heads.box_predictor
        for prepared, size in zip(batch, sizes, strict=True):
            with self.runtime.autocast():
                pixels = self.runtime.send(prepared["pixels"])
                given = self.network.preprocess_image([{"image": pixels}])
                maps = self.network.backbone(given.tensor)
                proposals, _ = self.network.proposal_generator(given, maps, None)
                pooled_maps = [maps[name] for name in heads.box_in_features]
                pooled = heads.box_pooler(pooled_maps, [proposals[0].proposal_boxes])
                vectors = heads.box_head(pooled)
                out = predictor(vectors)
                (scores,) = predictor.predict_probs(out, proposals)
                (boxes,) = predictor.predict_boxes(out, proposals)
            yield Found.of_classes(
                scores[:, :-1],
                boxes.unflatten(1, (-1, 4)),
                size,
                given.image_sizes[0],
                given.tensor.shape,
                vectors,
                maps.values(),
            )
