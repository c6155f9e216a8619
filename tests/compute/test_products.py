from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from pipeline.compute import half, machine, made_with, measured, products
from pipeline.parts.errors import InputError


@pytest.fixture(autouse=True)
def _never_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(measured.FOLDER, str(tmp_path))
    monkeypatch.setattr(measured, "SECONDS", 0.0)


@pytest.mark.parametrize(
    ("faster", "error", "kind"),
    [
        (2.0, 6e-7, "onednn"),
        (1.1, 6e-7, "default"),  # hardly faster
        (0.5, 6e-7, "default"),
        (4.0, 2e-3, "default"),  # AMX: the factors are rounded to bfloat16
        (4.0, 3e-6, "default"),
    ],
)
def test_chosen_where_faster_and_as_exact(faster: float, error: float, kind: str) -> None:
    assert products.choose(faster, error).kind == kind


@pytest.mark.parametrize(("seconds", "kind"), [((2e-3, 1e-3), "onednn"), ((1e-3, 1e-3), "default")])
def test_probe_goes_by_the_clock_and_leaves_the_switch_as_it_was(
    seconds: tuple[float, float], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "least_seconds", lambda *both: seconds)
    monkeypatch.setattr(products, "LARGEST_ERROR", 1.0)  # whatever CPU this is
    assert products.probe().kind == kind
    assert products.current() == "default"
    assert products.apply("auto").kind == products.current() == kind
    assert products.apply("default").kind == products.current() == "default"


def rounding(left: Tensor, right: Tensor) -> Tensor:
    """A product as with AMX: where the switch is on its factors are rounded to bfloat16."""
    if products.is_on() and left.dtype == torch.float32:
        left, right = left.bfloat16().float(), right.bfloat16().float()
    return torch.matmul(left, right)


def test_probe_measures_the_error_of_what_it_would_switch_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Were the switch to round factors to bfloat16, as with AMX, the probe would see it."""
    monkeypatch.setattr(Tensor, "__matmul__", rounding)
    monkeypatch.setattr(measured, "least_seconds", lambda *both: (4e-3, 1e-3))
    found = products.probe()
    assert (found.error, found.kind) == (pytest.approx(2e-3, rel=1), "default")


def test_a_torch_without_the_switch_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "has_switch", lambda: False)
    assert products.apply("auto") == products.Products("default")
    assert products.current() == "default"


@pytest.mark.parametrize("rounds", [True, False])
def test_what_is_chosen_multiplies_in_float32(
    rounds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where oneDNN is faster, on a CPU whose oneDNN rounds factors to bfloat16 and on this one."""
    if rounds:
        monkeypatch.setattr(Tensor, "__matmul__", rounding)
    monkeypatch.setattr(measured, "least_seconds", lambda *both: (4e-3, 1e-3))
    chosen = products.apply("auto")
    left, right = torch.randn(2, 300, 300, generator=torch.Generator().manual_seed(1))
    exact = left.double() @ right.double()
    assert (left @ right - exact).square().mean().sqrt() / exact.square().mean().sqrt() < 3e-6
    assert not rounds or chosen.kind == "default"


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_the_same_to_the_bit_whatever_multiplies(masked: bool) -> None:
    draws = torch.Generator().manual_seed(0)
    inputs = [torch.randn(2, 3, 40, 16, generator=draws).requires_grad_() for _ in range(3)]
    mask = (torch.arange(40) < 30).expand(2, 1, 40, 40) if masked else None

    def both_passes() -> list[Tensor]:
        out = scaled_dot_product_attention(*inputs, attn_mask=mask)
        return [out, *torch.autograd.grad(out.square().sum(), inputs)]

    before = both_passes()
    products.use("onednn")
    assert all(torch.equal(one, other) for one, other in zip(before, both_passes(), strict=True))
    assert products.current() == "onednn"


def test_attention_runs_with_the_switch_off_in_both_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    products.use("onednn")
    turned: list[bool] = []
    monkeypatch.setattr(products, "turn", turned.append)
    inputs = [torch.randn(1, 1, 4, 8, requires_grad=True) for _ in range(3)]
    out = scaled_dot_product_attention(*inputs)
    assert turned == [False, True]
    out.sum().backward()
    assert turned == [False, True] * 2


def test_threads_inside_attention_leave_the_switch_as_the_first_found_it() -> None:
    products.use("onednn")
    with products.own_products():
        with products.own_products():
            assert products.current() == "default"
        assert products.current() == "default"
    assert products.current() == "onednn"


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_is_refused_where_it_is_slower(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "least_seconds", lambda *both: (44e-3, 1e-3))
    with pytest.raises(
        InputError,
        match=f"^precision {precision}: this CPU multiplies 44 times slower.*use fp32 here.*"
        "where `pipeline lab machine` finds it faster$",
    ):
        half.refuse_slow(precision, "cpu")
    half.refuse_slow(precision, "cuda:0")
    half.refuse_slow("fp32", "cpu")


def test_half_precision_is_taken_where_it_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "least_seconds", lambda *both: (1e-3, 3e-3))
    half.refuse_slow("bf16", "cpu")


def test_the_clock_leaves_torch_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    torch.set_num_threads(2)
    try:
        measured.least_seconds(lambda: seen.append(torch.get_num_threads()), lambda: None)
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize(("seconds", "calls"), [(0.0, 5), (90.0, 6)])
def test_the_clock_gives_the_least_of_each_but_not_the_first_which_warms_up(
    seconds: float, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken in turn: one more time than `REPEATS`, or for so long."""
    takes = {
        "first": iter([1.0, 8.0, 4.0, 16.0, 8.0, 2.0]),
        "second": iter([2.0, 4.0, 32.0, 4.0, 8.0, 9.0]),
    }
    now = [0.0]
    called: list[str] = []

    def calculate(name: str) -> None:
        called.append(name)
        now[0] += next(takes[name])

    monkeypatch.setattr(measured, "SECONDS", seconds)
    monkeypatch.setattr(measured, "time", SimpleNamespace(thread_time=lambda: now[0]))
    found = measured.least_seconds(lambda: calculate("first"), lambda: calculate("second"))
    assert found == ((4.0 if calls == 5 else 2.0), 4.0)
    assert called == ["first", "second"] * calls


def test_a_record_names_torch_cpu_threads_and_products() -> None:
    products.use("onednn")
    assert made_with.record() == {
        "torch": torch.__version__,
        "processor": machine.processor(),
        "threads": 1,
        "products": "onednn",
    }
    assert machine.processor()
