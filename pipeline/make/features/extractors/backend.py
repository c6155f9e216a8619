"""The library that runs a network's forward pass: torch, or OpenVINO, which is several times as
fast on a CPU.
"""

import platform
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch
from torch import nn

from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError

TORCH = "torch"
OPENVINO = "openvino"
AUTO = "auto"
Forward = Callable[[torch.Tensor], torch.Tensor]


def chosen(backend: str, device: str, precision: str) -> str:
    """Resolve a backend to the name that a store's fingerprint holds: "torch", or "openvino" with
    its version.
    """
    # "auto" gives OpenVINO where it is installed and supports the request, float32 on a CPU with
    # AVX2; else torch.
    if backend == TORCH:
        return TORCH
    if backend != AUTO and backend.partition(" ")[0] != OPENVINO:
        raise InputError(f"backend {backend!r}: expected {AUTO}, {TORCH} or {OPENVINO}")
    here = _installed()
    fits = torch.device(device).type == "cpu" and precision == "fp32"
    if backend == AUTO:
        return here if here and fits and not _without_avx2() else TORCH
    if not fits:
        raise InputError(
            f"backend openvino: computes fp32 on the cpu, got {precision} on {device}; use backend torch"
        )
    if not here:
        raise InputError(
            f"backend {backend}: is not installed; {extras.line('openvino')}, or use backend torch"
        )
    if backend not in (OPENVINO, here):
        raise InputError(
            f"the store was begun with {backend}, here is {here}; install that version, or make the "
            "store again with --if-changed redo and a backend by name: --backend openvino"
        )
    return here


def _installed() -> str | None:
    try:
        return f"{OPENVINO} {version('openvino')}"
    except PackageNotFoundError:
        return None


def _without_avx2() -> bool:
    """Whether this is an x86 CPU without AVX2, on which OpenVINO is slow and gives a ViT no
    outputs.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    # Which of both depends on torch's version.
    return torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "NO AVX")


def by(backend: str, module: nn.Module, function: Forward, free: tuple[int, ...] = (0,)) -> Forward:
    """Run a function of a torch module by a backend; `free` are dimensions in which inputs
    differ.
    """
    if backend == TORCH:
        return function
    return Graph(module, function, free)


class Graph:
    """A function of a torch module as an OpenVINO graph in float32, compiled when the first input
    arrives.
    """

    def __init__(self, module: nn.Module, function: Forward, free: tuple[int, ...] = (0,)) -> None:
        self._traced = _Traced(module, function)
        self._free = free
        self._request: Any = None

    def __call__(self, given: torch.Tensor) -> torch.Tensor:
        """The function's output, in memory of its own. Not for two threads at once."""
        if self._request is None:
            self._request = self._compile(given)
        inputs = {0: given.contiguous().numpy()}
        out: np.ndarray = self._request.infer(inputs, share_inputs=True)[0]
        if 0 in self._free and len(out) != len(given):
            raise InputError(
                f"backend openvino: gives {len(out)} of {len(given)} outputs here; use backend torch"
            )
        return torch.from_numpy(out)

    def _compile(self, given: torch.Tensor) -> Any:
        """Compile the graph. `openvino.convert_model` is not used, because it sends usage
        statistics to its makers.
        """
        import openvino
        from openvino.frontend import FrontEndManager
        from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

        example = given
        if 0 in self._free:
            example = torch.cat([given[:1], given[:1]])
        frontend = FrontEndManager().load_by_framework("pytorch")
        with torch.no_grad(), warnings.catch_warnings():
            # Tracing is deprecated, and fixes values that depend on the image's size.
            warnings.simplefilter("ignore")
            traced = TorchScriptPythonDecoder(
                self._traced, example_input=(example,), trace_kwargs={"check_trace": False}
            )
            graph = frontend.convert(frontend.load(traced))
        shape = [-1 if place in self._free else size for place, size in enumerate(given.shape)]
        graph.reshape(shape)
        # Threads: torch's share, which is a worker's. Not pinned to cores: two workers would take
        # the same ones.
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
            "ENABLE_CPU_PINNING": False,
        }
        return openvino.Core().compile_model(graph, "CPU", settings).create_infer_request()


class _Traced(nn.Module):
    """A function and the module whose weights it uses, as torch's tracer takes them."""

    def __init__(self, module: nn.Module, function: Forward) -> None:
        super().__init__()
        self.module = module
        self.function = function

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return self.function(given)
