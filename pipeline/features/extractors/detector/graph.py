"""A detector as a graph of ONNX or OpenVINO in a file, run by OpenVINO on the CPU.

Its outputs are known by shape: boxes [1, Q, 4] (by name, `boxes` or `dets`, if several fit), logits
[1, Q, C], and if it has them vectors [1, Q, d] called `last_hidden_state` and maps [1, C, h, w]. A
config.json and a preprocessor_config.json of `transformers` beside it say whether the last class is
"no object", and how photographs are prepared; else logits are sigmoids', and photographs are
normalised as for ImageNet. A graph of one size gets photographs squashed to it.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from pipeline.features.extractors.detector.pooling import FeatureMap
from pipeline.features.extractors.detector.selection import Found
from pipeline.files import digest, images, regular
from pipeline.files.parsing import from_json
from pipeline.parts import extras
from pipeline.parts.errors import InputError, InputWarning, first_line, refusing

MEAN, DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])  # ImageNet's
BOXES = re.compile("boxes|dets|coord")


class Graph:
    """A compiled graph. Its bytes are read here, so that it opens no other file but its own
    .bin.
    """

    at_once = 1

    def __init__(self, path: Path) -> None:
        extras.require("openvino", f"the graph {path}")
        import openvino

        files = [path, path.with_suffix(".bin")] if path.suffix == ".xml" else [path]
        config, processor = path.parent / "config.json", path.parent / "preprocessor_config.json"
        beside = [file for file in (config, processor) if file.is_file()]
        self.path, self.weights = (
            path,
            digest.digest([digest.sha256(file) for file in (*files, *beside)]),
        )
        core = openvino.Core()
        with refusing(
            Exception,
            lambda error: (
                f"{path}: OpenVINO cannot read it ({first_line(error)}); expected one "
                "file .onnx with its weights inside, or .xml and .bin"
            ),
        ):  # it raises RuntimeError, and others
            graph = core.read_model(*map(regular.content, files))
            self.side = (
                [
                    size.get_length()
                    for size in graph.input(
                        "pixel_values" if len(graph.inputs) > 1 else 0
                    ).partial_shape[2:]
                ]
                if graph.inputs[0].partial_shape[2:].is_static
                else None
            )
            compiled = core.compile_model(
                graph,
                "CPU",
                {
                    "INFERENCE_PRECISION_HINT": "f32",
                    "INFERENCE_NUM_THREADS": torch.get_num_threads(),
                },
            )
        self.request = compiled.create_infer_request()
        self.inputs = [
            next(iter(each.names), str(place)) for place, each in enumerate(compiled.inputs)
        ]
        self.classes = (
            len(from_json(regular.content(config)).get("id2label", {})) if config in beside else 0
        )
        if not self.classes:
            warnings.warn(
                f"{path}: no config.json is beside it, so every logit is read as a class's; the last one of "
                "DETR and YOLOS is not",
                InputWarning,
                stacklevel=2,
            )
        self.processor: Any = None
        if processor in beside:
            from pipeline.files import pretrained

            self.processor = pretrained.image_processor(path.parent, backend=None)
        elif self.side is None:
            raise InputError(
                f"{path}: has no fixed size; put the model's preprocessor_config.json beside it"
            )

    def prepare(self, image: Image.Image) -> Mapping[str, torch.Tensor]:
        """Resize and normalise a photograph: the graph's inputs, see `Finder.prepare`."""
        if self.processor is not None:
            fixed = (
                {"size": dict(zip(("height", "width"), self.side, strict=True))}
                if self.side
                else {}
            )
            prepared = self.processor(images=image, return_tensors="pt", **fixed)
            return {
                name: prepared[name][0]
                for name in ("pixel_values", "pixel_mask")
                if name in prepared
            }
        assert self.side is not None
        pixels = np.asarray(images.resize(image, self.side[1], self.side[0]), np.float32) / 255
        return {
            "pixel_values": torch.from_numpy((pixels - MEAN) / DEVIATION).permute(2, 0, 1).float()
        }

    def find(
        self, batch: Sequence[Mapping[str, torch.Tensor]], sizes: Sequence[tuple[int, int]]
    ) -> Iterator[Found]:
        """Run the graph over photographs, one by one, see `Finder.find`."""
        for prepared, size in zip(batch, sizes, strict=True):
            given = [prepared.get(name, prepared["pixel_values"]) for name in self.inputs]
            with refusing(
                RuntimeError,
                lambda error: f"{self.path}: fails on a photograph ({first_line(error)})",
            ):
                out = self.request.infer(
                    {place: each[None].contiguous().numpy() for place, each in enumerate(given)}
                )
            named = {
                next(iter(key.names), ""): torch.from_numpy(np.array(value))
                for key, value in out.items()
            }
            queries = named.pop("last_hidden_state", None)
            height, width = prepared["pixel_values"].shape[-2:]
            boxes, logits = self._boxes(named)
            yield Found.of_logits(
                logits,
                boxes,
                size,
                none_last=bool(self.classes) and logits.shape[1] == self.classes + 1,
                queries=None if queries is None else queries[0, -len(boxes) :],
                maps=[
                    FeatureMap.of_input(each[0], (width, height), size)
                    for each in named.values()
                    if each.ndim == 4
                ],
            )

    def _boxes(self, named: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        rows = {
            name: value[0].float()
            for name, value in named.items()
            if value.ndim == 3 and len(value) == 1
        }
        fit = sorted(
            (name for name, value in rows.items() if value.shape[1] == 4),
            key=lambda name: BOXES.search(name) is None,
        )
        scores = [
            name
            for name, value in rows.items()
            if fit and name != fit[0] and len(value) == len(rows[fit[0]])
        ]
        if not scores:
            shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in named.items())
            raise InputError(
                f"{self.path}: expected boxes [1, Q, 4] and logits [1, Q, C], as before any "
                f"post-processing; it gives {shapes}"
            )
        return rows[fit[0]], rows[scores[0]]
