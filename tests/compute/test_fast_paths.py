"""With fast paths and without them: the same numbers, by torch's own operations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pipeline.foundation.compute import fast_paths, threads
from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads import pooling
from pipeline.make.heads.pooling import cpu_sort


def gpo_and_its_gradient() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    pool, items = pooling.build("gpo", 16), torch.randn(7, 9, 16, requires_grad=True)
    pooled = pool(items, torch.tensor([9, 8, 7, 3, 2, 1, 9]))
    pooled.square().sum().backward()
    assert items.grad is not None
    return pooled.detach(), items.grad


def sums() -> tuple[torch.Tensor, ...]:
    values = torch.randn(40, 30, generator=torch.Generator().manual_seed(1))
    return (
        *threads.each(lambda part: part.sum(0), values.split(8)),
        *threads.side_by_side(torch.sum, *values[:2]),
    )


@pytest.mark.specification
@pytest.mark.parametrize("compute", [gpo_and_its_gradient, sums])
def test_both_ways_give_the_same_numbers(
    compute: Callable[[], tuple[torch.Tensor, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = compute()
    monkeypatch.setenv(fast_paths.VARIABLE, "off")
    for left, right in zip(fast, compute(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-6)


def test_off_leaves_all_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    items = torch.ones(2, 3, 4)
    assert cpu_sort.can_sort_fast(items)
    monkeypatch.setenv(fast_paths.VARIABLE, "off")
    assert not cpu_sort.can_sort_fast(items)
    monkeypatch.setattr(threads, "ThreadPoolExecutor", None)
    assert threads.each(abs, [-1, 2]) == [1, 2]


def test_another_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fast_paths.VARIABLE, "no")
    with pytest.raises(InputError, match="VSE_PIPELINE_FAST_PATHS='no': expected on or off"):
        fast_paths.are_on()
