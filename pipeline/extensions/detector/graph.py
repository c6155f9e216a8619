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

from pipeline.extensions.detector.pooling import FeatureMap
from pipeline.extensions.detector.selection import Found
from pipeline.foundation.files import digest, images, regular
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError, InputWarning, first_line, refusing

MEAN = np.array([0.485, 0.456, 0.406])  # ImageNet's
DEVIATION = np.array([0.229, 0.224, 0.225])
BOXES = re.compile("boxes|dets|coord")


class Graph:
    """A compiled graph. Its bytes are read here, so that it opens no other file but its own
    .bin.
    """

    at_once = 1

    def __init__(self, path: Path) -> None:
        extras.require("openvino", f"the graph {path}")

        files = [path]
        if path.suffix == ".xml":
            files.append(path.with_suffix(".bin"))
        config = path.parent / "config.json"
        processor = path.parent / "preprocessor_config.json"
        beside = [file for file in (config, processor) if file.is_file()]
        self.path = path
        self.weights = digest.digest([digest.sha256(file) for file in (*files, *beside)])
        self.side, compiled = _compiled(path, files)
        self.request = compiled.create_infer_request()
        self.inputs = []
        for place, given in enumerate(compiled.inputs):
            self.inputs.append(next(iter(given.names), str(place)))
        self.classes = 0
        if config in beside:
            self.classes = len(from_json(regular.content(config)).get("id2label", {}))
        if not self.classes:
            warnings.warn(
                f"{path}: no config.json is beside it, so every logit is read as a class's; the last one of "
                "DETR and YOLOS is not",
                InputWarning,
                stacklevel=2,
            )
        self.processor: Any = None
        if processor in beside:
            from pipeline.foundation.files import pretrained

            self.processor = pretrained.image_processor(path.parent, backend=None)
        elif self.side is None:
            raise InputError(
                f"{path}: has no fixed size; put the model's preprocessor_config.json beside it"
            )

    def prepare(self, image: Image.Image) -> Mapping[str, torch.Tensor]:
        """Resize and normalise a photograph: the graph's inputs, see `Finder.prepare`."""
        if self.processor is not None:
            fixed = {}
            if self.side:
                height, width = self.side
                fixed["size"] = {"height": height, "width": width}
            prepared = self.processor(images=image, return_tensors="pt", **fixed)
            names = ("pixel_values", "pixel_mask")
            return {name: prepared[name][0] for name in names if name in prepared}
        assert self.side is not None
        height, width = self.side
        pixels = np.asarray(images.resize(image, width, height), np.float32) / 255
        normalised = torch.from_numpy((pixels - MEAN) / DEVIATION)
        return {"pixel_values": normalised.permute(2, 0, 1).float()}

    def find(
        self, batch: Sequence[Mapping[str, torch.Tensor]], sizes: Sequence[tuple[int, int]]
    ) -> Iterator[Found]:
        """Run the graph over photographs, one by one, see `Finder.find`."""
        for prepared, size in zip(batch, sizes, strict=True):
            outputs = self._run(prepared)
            queries = outputs.pop("last_hidden_state", None)
            boxes, logits = self._boxes(outputs)
            if queries is not None:
                queries = queries[0, -len(boxes) :]
            height, width = prepared["pixel_values"].shape[-2:]
            maps = []
            for values in outputs.values():
                if values.ndim == 4:
                    maps.append(FeatureMap.of_input(values[0], (width, height), size))
            yield Found.of_logits(
                logits,
                boxes,
                size,
                none_last=bool(self.classes) and logits.shape[1] == self.classes + 1,
                queries=queries,
                maps=maps,
            )

    def _run(self, prepared: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The graph's outputs of one photograph by their names."""
        inputs = {}
        for place, name in enumerate(self.inputs):
            values = prepared.get(name, prepared["pixel_values"])
            inputs[place] = values[None].contiguous().numpy()
        with refusing(
            RuntimeError, lambda error: f"{self.path}: fails on a photograph ({first_line(error)})"
        ):
            outputs = self.request.infer(inputs)
        named = {}
        for output, values in outputs.items():
            named[next(iter(output.names), "")] = torch.from_numpy(np.array(values))
        return named

    def _boxes(self, outputs: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """The boxes and logits among the outputs."""
        rows = {}
        for name, values in outputs.items():
            if values.ndim == 3 and len(values) == 1:
                rows[name] = values[0].float()
        of_four = [name for name, values in rows.items() if values.shape[1] == 4]
        named = [name for name in of_four if BOXES.search(name)]
        if of_four:
            boxes = (named or of_four)[0]
            for name, logits in rows.items():
                if name != boxes and len(logits) == len(rows[boxes]):
                    return rows[boxes], logits
        shapes = ", ".join(f"{name} {list(values.shape)}" for name, values in outputs.items())
        raise InputError(
            f"{self.path}: expected boxes [1, Q, 4] and logits [1, Q, C], as before any "
            f"post-processing; it gives {shapes}"
        )


def _compiled(path: Path, files: Sequence[Path]) -> tuple[list[int] | None, Any]:
    """The height and width of a graph's photographs, None for any, and the compiled graph."""
    import openvino

    core = openvino.Core()
    # It raises RuntimeError, and others.
    with refusing(
        Exception,
        lambda error: (
            f"{path}: OpenVINO cannot read it ({first_line(error)}); expected one file .onnx with its "
            "weights inside, or .xml and .bin"
        ),
    ):
        graph = core.read_model(*map(regular.content, files))
        side = None
        if graph.inputs[0].partial_shape[2:].is_static:
            pixels = graph.input("pixel_values" if len(graph.inputs) > 1 else 0)
            side = [size.get_length() for size in pixels.partial_shape[2:]]
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        }
        return side, core.compile_model(graph, "CPU", settings)
