"""Backends: OpenVINO computes what torch does, or says in one line why it does not."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from test_engines import CNN, ENGINES, pictures

from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extractors
from pipeline.make.features.extractors import Runtime, backend

HERE = f"openvino {version('openvino')}"
SHIPPED = (
    "grid",
    {
        "network": "tf_efficientnet_lite0",
        "weights": "efficientnet-lite0",
        "image_size": 128,
        "grid": 4,
    },
)


DIFFERENT = [(name, options) for name, options, *_ in ENGINES if options.get("grid") != 2]
"""Engines of different graphs: cells of another size are pooled after the same one."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [*DIFFERENT, SHIPPED])
def test_openvino_gives_torchs_features(name: str, options: dict[str, Any]) -> None:
    by_torch = extractors.build(name, options, Runtime(backend="torch"))
    ours = extractors.build(name, options, Runtime(backend="openvino"))
    assert (by_torch.backend, ours.backend, ours.weights) == ("torch", HERE, by_torch.weights)
    several = [*pictures(), pictures()[0].rotate(90)]
    if backend._without_avx2() and "vit" in options.get("network", ""):  # a fault of OpenVINO
        with pytest.raises(InputError, match=r"gives \d+ of 1 outputs here; use backend torch"):
            ours.extract([ours.prepare(several[0])], [several[0].size])
        return
    for batch in (several[:1], several, several[:2]):  # any number, whatever came first
        sizes = [picture.size for picture in batch]
        prepared = [by_torch.prepare(picture) for picture in batch]
        for expected, got in zip(
            *(engine.extract(prepared, sizes) for engine in (by_torch, ours)), strict=True
        ):
            assert got.features.dtype == np.float32
            scale = np.abs(expected.features).max()
            np.testing.assert_allclose(
                got.features / scale, expected.features / scale, rtol=0, atol=1e-4
            )
            for extra, values in expected.extras.items():
                np.testing.assert_array_equal(got.extras[extra], values)


@pytest.mark.slow
def test_features_are_their_own_and_stay() -> None:
    engine = extractors.build("grid", {**CNN, "grid": 4}, Runtime(backend="openvino"))
    first, second = ([engine.prepare(picture)] for picture in pictures())
    kept = engine.extract(first, [(1, 1)])[0].features
    before = kept.copy()
    engine.extract(second, [(1, 1)])
    np.testing.assert_array_equal(kept, before)


def test_a_graph_has_torchs_threads_and_no_cores_of_its_own() -> None:
    network = torch.nn.Conv2d(3, 4, 3)
    graph = backend.Graph(network, network.forward)
    graph(torch.zeros(2, 3, 8, 8))
    compiled = graph._request.get_compiled_model()
    assert compiled.get_property("INFERENCE_NUM_THREADS") == torch.get_num_threads() == 1
    assert compiled.get_property("ENABLE_CPU_PINNING") is False
    assert compiled.get_property("INFERENCE_PRECISION_HINT").to_string() == "f32"


@pytest.mark.slow
def test_nothing_is_sent_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    import openvino  # first, since its import builds the one object that would send

    sent: list[Any] = []
    monkeypatch.setattr(
        "openvino_telemetry.main.Telemetry.init", lambda self, *given, **_: sent.append(given)
    )
    monkeypatch.setattr(
        "openvino_telemetry.main.Telemetry.send_event", lambda self, *given, **_: sent.append(given)
    )
    network = torch.nn.Conv2d(3, 4, 3)
    backend.Graph(network, network.forward)(torch.zeros(1, 3, 8, 8))
    assert not sent
    openvino.convert_model(network, example_input=torch.zeros(1, 3, 8, 8))
    assert sent


def test_another_number_of_outputs_than_inputs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    network = torch.nn.Conv2d(3, 4, 3)
    graph = backend.Graph(network, network.forward)
    graph(torch.zeros(2, 3, 8, 8))
    monkeypatch.setattr(
        graph, "_request", SimpleNamespace(infer=lambda *_, **__: [np.zeros((0, 4, 6, 6))])
    )
    with pytest.raises(InputError, match="gives 0 of 2 outputs here; use backend torch"):
        graph(torch.zeros(2, 3, 8, 8))


@pytest.mark.parametrize(
    ("machine", "instructions", "expected"),
    [
        ("x86_64", "AVX512", HERE),
        ("x86_64", "AVX2", HERE),
        ("x86_64", "DEFAULT", "torch"),
        ("x86_64", "NO AVX", "torch"),
        ("aarch64", "DEFAULT", HERE),
    ],
)
def test_auto_is_openvino_for_float32_on_a_cpu_with_avx2_and_else_torch(
    machine: str, instructions: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: instructions)
    assert backend.chosen("auto", "cpu", "fp32") == expected
    assert (
        backend.chosen("auto", "cuda:1", "fp32") == backend.chosen("auto", "cpu", "bf16") == "torch"
    )
    assert backend.chosen(HERE, "cpu", "fp32") == HERE


@pytest.mark.parametrize(
    ("asked", "device", "precision", "said"),
    [
        (
            "openvino",
            "cuda",
            "fp32",
            "computes fp32 on the cpu, got fp32 on cuda; use backend torch",
        ),
        ("openvino", "cpu", "bf16", "got bf16 on cpu"),
        (
            "openvino 2020.1",
            "cpu",
            "fp32",
            rf"begun with openvino 2020\.1, here is {HERE}; .*--if-changed redo",
        ),
        ("tvm", "cpu", "fp32", "backend 'tvm': expected auto, torch or openvino"),
    ],
)
def test_what_openvino_cannot_do_is_said(
    asked: str, device: str, precision: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        backend.chosen(asked, device, precision)


def test_without_the_extra_auto_is_torch_and_asked_for_it_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(backend, "version", missing)
    assert backend.chosen("auto", "cpu", "fp32") == "torch"
    for asked in ("openvino", HERE):
        with pytest.raises(InputError, match=r"pip install '.*\[openvino\]', or") as why:
            extractors.build(*SHIPPED, Runtime(backend=asked))
        assert "\n" not in str(why.value)
