"""Detectors of `transformers` in a folder: closed lists of classes, and those that are asked by
prompts.

Only the network's own outputs are used: logits and boxes of each query, its vector, and the
backbone's or the hybrid encoder's maps. Which models those are: docs/detectors.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from PIL import Image
from transformers.models.auto import modeling_auto as models

from pipeline.extensions.detector.pooling import FeatureMap
from pipeline.extensions.detector.selection import Found
from pipeline.foundation.files import pretrained, weights
from pipeline.foundation.files.images import ImageError
from pipeline.foundation.parts.errors import InputError, first_line, refusing
from pipeline.make.features.extractors.runtime import Runtime

CLOSED = dict(models.MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES)
PROMPTED = dict(models.MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION_MAPPING_NAMES)
EXPECTED = "detector with config.json, preprocessor_config.json and model.safetensors"
# Where maps are: of the output, or else what the first of these modules returns.
MAPS = ("encoder_last_hidden_state", "encoder_extracted_states", "backbone_features")
BACKBONES = ("model.backbone.conv_encoder", "model.backbone", "vision_backbone")
FRAMES = ("pixel_values", "pixel_mask")  # what a network gets of an image
# The names that outputs have.
LOGITS = ("logits", "decoder_class_logits")
BOXES = ("pred_boxes", "decoder_coord_logits")


class HuggingFace:
    """A detector of `transformers` with its own preprocessing."""

    def __init__(self, folder: Path, runtime: Runtime, prompts: Sequence[str]) -> None:
        self.folder = folder
        self.runtime = runtime
        self.config: Any = pretrained.configuration(folder, EXPECTED)
        self.kind: str = self.config.model_type
        asked = self.kind in PROMPTED
        if not asked and self.kind not in CLOSED:
            raise InputError(
                f"{folder}: is a {self.kind}; expected a detector of transformers, such as rf_detr, "
                "rt_detr, detr or owlv2"
            )
        if asked and not prompts:
            raise InputError(
                f"{folder}: a {self.kind} looks for what prompts name; set the option prompts, such "
                "as [a person, a dog]"
            )
        if prompts and not asked:
            raise InputError(
                f"{folder}: a {self.kind} has a list of classes of its own; leave the option prompts "
                "out"
            )
        auto: Any
        self.processor: Any
        self.classes = None
        if asked:
            auto = transformers.AutoModelForZeroShotObjectDetection
            self.processor = pretrained.processor(folder, EXPECTED)
        else:
            auto = transformers.AutoModelForObjectDetection
            self.processor = pretrained.image_processor(folder, EXPECTED, backend=None)
            self.classes = len(self.config.id2label)
        network = pretrained.network(
            folder, auto, self.config, EXPECTED, "eager", pickled=True, whole=True
        )
        self.network: Any = network.eval().requires_grad_(False).to(runtime.device)
        self.weights = weights.digest(self.network)
        self.at_once = 1 if asked or runtime.on_cpu else 16
        self._words = self._ask(prompts) if asked else {}
        self._hooked: dict[str, Any] = {}
        self._hook()

    def _hook(self) -> None:
        """Keep what the first of the backbones returns, and OmDet's decoder."""
        modules = dict(self.network.named_modules())
        parts = [name for name in BACKBONES if name in modules][:1]
        if "omdet" in self.kind:
            parts.append("decoder")
        for part in parts:
            modules[part].register_forward_hook(partial(self._keep, part))

    def _keep(self, part: str, module: Any, inputs: Any, output: Any) -> None:
        self._hooked[part] = output

    def prepare(self, image: Image.Image) -> Mapping[str, torch.Tensor]:
        """Resize and normalise a photograph as the folder says, see `Finder.prepare`."""
        images = getattr(self.processor, "image_processor", self.processor)
        with refusing(
            (ValueError, RuntimeError, ZeroDivisionError),
            lambda error: (
                f"the detector takes no {image.width} x {image.height} pixels ({first_line(error)})"
            ),
            ImageError,
        ):
            prepared = images(images=image, return_tensors="pt")
        return {name: prepared[name][0] for name in FRAMES if name in prepared}

    def find(
        self, batch: Sequence[Mapping[str, torch.Tensor]], sizes: Sequence[tuple[int, int]]
    ) -> Iterator[Found]:
        """Run the network over photographs of one shape, of these widths and heights, see
        `Finder.find`.
        """
        inputs = {}
        for name in batch[0]:
            stacked = torch.stack([prepared[name] for prepared in batch])
            inputs[name] = self.runtime.send(stacked)
        height, width = inputs["pixel_values"].shape[-2:]
        with (
            self.runtime.autocast(),
            refusing(
                (ValueError, RuntimeError, IndexError),
                lambda error: (
                    f"{self.folder}: "
                    f"takes no input of {width} x {height} pixels ({first_line(error)})"
                ),
            ),
        ):
            out = self.network(**inputs, **self._words)
        logits = _first(out, LOGITS)
        boxes = _first(out, BOXES)
        if logits is None or boxes is None or boxes.shape[-1] != 4:
            raise InputError(
                f"{self.folder}: a {self.kind} gives no boxes of four numbers; expected a detector"
            )
        none_last = self.classes is not None and logits.shape[-1] == self.classes + 1
        if self.classes not in (None, logits.shape[-1] - none_last):
            raise InputError(
                f"{self.folder}: gives {logits.shape[-1]} classes, its config.json lists {self.classes}"
            )
        count = boxes.shape[1]
        queries = self._queries(out, count)
        maps = self._maps(out, count, height, width)
        for row, size in enumerate(sizes):
            # OWLv2 pads a photograph to a square, and its boxes are shares of that.
            shown = (max(size), max(size)) if self.kind == "owlv2" else size
            yield Found.of_logits(
                logits[row],
                boxes[row],
                shown,
                none_last=none_last,
                queries=None if queries is None else queries[row].float(),
                maps=[
                    FeatureMap.of_input(of_batch[row], (width, height), shown) for of_batch in maps
                ],
            )

    def _queries(self, out: Any, count: int) -> torch.Tensor | None:
        """The vectors [B, Q, d] from which queries are scored."""
        vectors = out.get("last_hidden_state", out.get("class_embeds"))
        if vectors is None:
            vectors = next(_tensors(self._hooked.get("decoder"), 3), None)
        if vectors is None:
            return None
        return vectors[:, -count:]  # YOLOS has its patches before them

    def _maps(self, out: Any, count: int, height: int, width: int) -> list[torch.Tensor]:
        """The maps [B, C, h, w], each with its own stride."""
        outputs = [out.get(name) for name in MAPS]
        outputs += [self._hooked.get(name) for name in BACKBONES]
        for output in outputs:
            maps = list(_tensors(output, 4))
            if maps:
                return maps
        if "image_embeds" in out:  # OWL
            return [out["image_embeds"].permute(0, 3, 1, 2)]
        if self.kind == "yolos":
            side = self.config.patch_size
            patches = out["last_hidden_state"][:, 1:-count].transpose(1, 2)
            return [patches.unflatten(2, (height // side, width // side))]
        return []

    def _ask(self, prompts: Sequence[str]) -> dict[str, torch.Tensor]:
        """The network's inputs of words, the same for every photograph."""
        blank = Image.new("RGB", (64, 64))
        text: Any = [list(prompts)]
        if "grounding" in self.kind:
            text = ". ".join([*prompts, ""]).strip().lower()
        words = pretrained.reading(
            self.folder,
            "answer to these prompts",
            lambda: self.processor(images=blank, text=text, return_tensors="pt"),
        )
        device = self.runtime.device
        return {name: values.to(device) for name, values in words.items() if name not in FRAMES}


def _first(out: Any, names: Sequence[str]) -> torch.Tensor | None:
    """The first of an output's tensors by these names."""
    for name in names:
        if isinstance(out.get(name), torch.Tensor):
            values: torch.Tensor = out[name].float()
            return values
    return None


def _tensors(given: Any, dimensions: int) -> Iterator[torch.Tensor]:
    """Walk a tensor, or nested lists and tuples of some, for those of so many dimensions."""
    if isinstance(given, torch.Tensor):
        if given.ndim == dimensions and given.is_floating_point():
            yield given
    elif isinstance(given, list | tuple | dict):
        for inner in given.values() if isinstance(given, dict) else given:
            yield from _tensors(inner, dimensions)
