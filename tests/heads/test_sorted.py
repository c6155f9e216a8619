"""The fast CPU sort and what is built on it, against torch.sort and plain float64 formulas."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from pipeline.foundation.compute.threads import shared_out
from pipeline.make.heads.pooling import adpool_levels, cpu_sort
from pipeline.make.heads.pooling.adpool_levels import both_levels
from pipeline.make.heads.pooling.cpu_sort import (
    Chunks,
    can_sort_fast,
    read_chunk,
    sort_chunk,
    unsort_chunk,
    write_chunk,
)
from pipeline.make.heads.pooling.sort import sort_descending, sorted_sum


def batch(slots: int = 7, dim: int = 24, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """Items with zeros in padding and their mask; counts from 1 to all."""
    torch.manual_seed(slots)
    valid = torch.arange(slots) < torch.tensor([slots, 1, (slots + 1) // 2, slots]).unsqueeze(1)
    return torch.where(valid.unsqueeze(2), scale * torch.randn(4, slots, dim), 0.0), valid


@pytest.fixture(autouse=True, params=[1, 2], ids=["1 thread", "2 threads"])
def _several_chunks(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Chunks of one or two samples, on one thread and on two."""
    monkeypatch.setattr(cpu_sort, "CHUNK", 7 * 24 * 2)
    monkeypatch.setattr(cpu_sort, "FOR_ONE_THREAD", 0)
    threads = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    assert torch.get_num_threads() == request.param
    torch.set_num_threads(threads)


@pytest.mark.specification
@pytest.mark.parametrize("slots", [1, 2, 36, 256, 257, 1000])
def test_the_sort_is_exact(slots: int) -> None:
    torch.manual_seed(slots)
    values = torch.randn(4, 5, slots)
    ordered, places = sort_chunk(values)
    assert torch.equal(ordered, values.sort(2, descending=True).values)
    assert torch.equal(places.long().sort(2).values, torch.arange(slots).expand(4, 5, -1))
    assert torch.equal(values.gather(2, places.long()), ordered)
    assert torch.equal(unsort_chunk(ordered, places.long()), values)
    assert all(map(torch.equal, sort_chunk(values.double()), (ordered, places)))


@pytest.mark.parametrize("slots", [1, 2, 36])
def test_chunks_hold_every_sample_once_and_no_padding(slots: int) -> None:
    items, valid = batch(slots)
    chunks = Chunks(valid, 24)
    assert [row for chunk in chunks.chunks for row in chunk.rows] == chunks.order.tolist()
    assert sorted(chunks.order.tolist()) == [0, 1, 2, 3]
    again = torch.full_like(items, torch.nan)  # what is not written shows
    for chunk in chunks.chunks:
        values = read_chunk(items, chunk)
        assert torch.equal(read_chunk(items, chunk, torch.float64), values.double())
        assert list(values.shape) == [len(chunk.rows), 24, chunk.items]
        assert set(valid.sum(1)[chunk.rows].tolist()) == {chunk.items}
        write_chunk(again, chunk, values)
    assert torch.equal(again, items)
    assert torch.equal(chunks.in_batch(items[chunks.order]), items)


def test_the_sort_is_exact_for_awkward_numbers() -> None:
    limits = torch.finfo(torch.float32)
    values = [
        0.0,
        -0.0,
        1e-45,
        -1e-45,
        limits.tiny,
        limits.max,
        limits.min,
        1.0,
        1.0 + limits.eps,
        -1.0,
        1.0,
    ]
    items = torch.tensor(values).view(1, 1, -1)
    ordered, _ = sort_chunk(items)
    assert torch.equal(ordered.flatten(), items.flatten().sort(descending=True).values)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_goes_through_torch(value: float) -> None:
    items, valid = batch()
    items[0, 3, 2] = value
    assert not can_sort_fast(items)
    assert torch.equal(
        sort_descending(items, valid)[0].nan_to_num(),
        items[0].sort(0, descending=True).values.nan_to_num(),
    )


def test_other_dtypes_go_through_torch() -> None:
    items, _ = batch()
    assert can_sort_fast(items)
    assert not can_sort_fast(items.double())
    assert not can_sort_fast(items.bfloat16())


def results(function: Callable[..., Tensor], *tensors: Tensor) -> list[Tensor]:
    """The result of a function and its gradients, for a fixed weighting of the result."""
    inputs = [tensor.clone().requires_grad_() for tensor in tensors]
    output = function(*inputs)
    weights = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
    (output * weights).sum().backward()
    return [output.detach(), *(tensor.grad for tensor in inputs if tensor.grad is not None)]


def in_both_precisions(function: Callable[..., Tensor], *tensors: Tensor) -> None:
    """The fast float32 path against the plain formula of the same function in float64."""
    assert can_sort_fast(tensors[0])
    fast = results(function, *tensors)
    plain = results(function, *(tensor.double() for tensor in tensors))
    for ours, expected in zip(fast, plain, strict=True):
        # Rounding is relative to what was summed, not to a sum that cancels.
        largest = max(1.0, float(expected.abs().max()))
        torch.testing.assert_close(ours.double(), expected, rtol=1e-5, atol=2e-5 * largest)


@pytest.mark.parametrize("slots", [1, 7, 36, 300])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_fast_is_plain(slots: int, scale: float) -> None:
    items, valid = batch(slots, scale=scale)
    weight = torch.randn(24, 1) / (5 * scale)
    theta = torch.rand(4, slots).masked_fill(~valid, 0.0)
    in_both_precisions(lambda x: sort_descending(x, valid), items)
    in_both_precisions(lambda x, w: torch.cat(both_levels(x, valid, w)), items, weight)
    in_both_precisions(lambda x, t: sorted_sum(x, valid, t * valid), items, theta)


@pytest.mark.parametrize("offset", [1e4, -1e5])
@pytest.mark.parametrize("fast", [True, False])
def test_adpools_gradients_are_right_where_all_items_are_large(
    offset: float, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What tells the items apart is then far smaller than they are."""
    items, valid = batch(36)
    apart = items.argsort(1) / 8  # none equal another, whose gradients might go to either
    items = torch.where(valid.unsqueeze(2), apart + offset, 0.0)
    monkeypatch.setattr(
        adpool_levels, "can_sort_fast", lambda items: fast and cpu_sort.can_sort_fast(items)
    )
    for level in range(2):

        def one(x: Tensor, w: Tensor) -> Tensor:
            return both_levels(x, valid, w)[level] + 0 * w.sum()  # noqa: B023 (called at once)

        weight = torch.randn(24, 1) / 5
        for ours, expected in zip(
            results(one, items, weight), results(one, items.double(), weight.double()), strict=True
        ):
            torch.testing.assert_close(
                ours.double(), expected, rtol=1e-5, atol=1e-5 * float(expected.abs().max())
            )


def test_a_full_batch_needs_no_padding() -> None:
    items, valid = torch.randn(4, 7, 24), torch.ones(4, 7, dtype=torch.bool)
    in_both_precisions(lambda x: sort_descending(x, valid), items)
    in_both_precisions(lambda x, w: torch.cat(both_levels(x, valid, w)), items, torch.randn(24, 1))
    in_both_precisions(lambda x, t: sorted_sum(x, valid, t), items, torch.rand(4, 7))


def test_same_input_same_bits_on_any_number_of_threads() -> None:
    items, valid = batch()
    weight = torch.randn(24, 1)
    had = torch.get_num_threads()
    seen = []
    for threads in (1, 2, 2):
        torch.set_num_threads(threads)
        seen.append(results(lambda x, w: torch.cat(both_levels(x, valid, w)), items, weight))
    torch.set_num_threads(had)
    for other in seen[1:]:
        assert all(torch.equal(a, b) for a, b in zip(seen[0], other, strict=True))


def test_two_that_pool_at_once_leave_torchs_threads_as_they_were() -> None:
    before = torch.get_num_threads()
    entered, left, found = threading.Barrier(2), threading.Event(), []

    def pool(last: bool) -> None:
        with shared_out() as threads:
            found.append(threads)
            entered.wait()
            if last:
                left.wait()
        found.append(torch.get_num_threads())
        left.set()

    both = [threading.Thread(target=pool, args=(last,)) for last in (False, True)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert found == [before] * 4
    assert torch.get_num_threads() == before
