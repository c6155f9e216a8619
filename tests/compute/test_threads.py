"""Python threads that share torch's threads among them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator

import pytest
import torch

from pipeline.foundation.compute.threads import each, shared_out, side_by_side


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def test_each_half_runs_in_a_thread_of_its_own_on_half_of_torchs_threads() -> None:
    both = threading.Barrier(2, timeout=30)

    def work(name: str) -> tuple[str, int, bool]:
        both.wait()  # would time out if one ran after the other
        return name, torch.get_num_threads(), torch.is_grad_enabled()

    assert side_by_side(work, "images", "captions") == (("images", 2, True), ("captions", 2, True))
    with torch.no_grad():
        assert side_by_side(work, "images", "captions") == (
            ("images", 2, False),
            ("captions", 2, False),
        )
    assert torch.get_num_threads() == 4


def test_a_half_is_halved_again_and_then_no_more() -> None:
    def threads(depth: int) -> int | tuple[object, object]:
        return side_by_side(threads, depth - 1, depth - 1) if depth else torch.get_num_threads()

    assert side_by_side(threads, 1, 1) == ((1, 1), (1, 1))
    assert side_by_side(threads, 2, 2) == (((1, 1), (1, 1)), ((1, 1), (1, 1)))
    assert torch.get_num_threads() == 4


def test_inside_a_half_only_its_own_threads_are_shared_out() -> None:
    def shared(_: int) -> int:
        with shared_out() as threads:
            return threads

    assert side_by_side(shared, 0, 1) == (2, 2)
    with shared_out() as threads:
        assert threads == 4


def test_both_halves_are_in_inference_mode_if_the_caller_is() -> None:
    with torch.inference_mode():
        assert side_by_side(lambda _: torch.is_inference_mode_enabled(), 0, 1) == (True, True)
    assert side_by_side(lambda _: torch.is_inference_mode_enabled(), 0, 1) == (False, False)


def test_on_one_thread_both_run_in_the_callers() -> None:
    torch.set_num_threads(1)
    assert side_by_side(lambda _: threading.get_ident(), 0, 1) == (
        threading.get_ident(),
        threading.get_ident(),
    )


def test_after_an_error_the_threads_are_as_before() -> None:
    def fail(_: int) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        side_by_side(fail, 0, 1)
    assert torch.get_num_threads() == 4
    with shared_out() as threads:
        assert threads == 4


def test_each_gives_results_in_order_from_all_threads() -> None:
    four = threading.Barrier(4, timeout=30)

    def work(number: int) -> tuple[int, int]:
        four.wait()
        return number, torch.get_num_threads()

    assert each(work, range(4)) == [(number, 1) for number in range(4)]
    assert torch.get_num_threads() == 4
    with pytest.raises(ZeroDivisionError):
        each(lambda number: 1 // number, (1, 0, 2))
    assert torch.get_num_threads() == 4


@pytest.mark.parametrize("slow", [0, 1])
def test_the_half_that_is_ready_first_helps_the_other(slow: int) -> None:
    torch.set_num_threads(2)
    both = threading.Barrier(2, timeout=30)
    ready = threading.Event()

    def half(number: int) -> list[bool]:
        if number != slow:
            ready.set()
            return []
        ready.wait(30)
        with torch.no_grad():
            return each(
                lambda _: (both.wait() >= 0, torch.is_grad_enabled(), torch.get_num_threads()),
                range(2),
            )

    assert side_by_side(half, 0, 1)[slow] == [(True, False, 1)] * 2
    assert torch.get_num_threads() == 2


def test_work_that_is_done_keeps_no_memory() -> None:
    torch.set_num_threads(2)
    checked = threading.Event()

    def half(number: int) -> bool | None:
        if number:
            checked.wait(30)  # nobody helps
            return None
        tensor = torch.zeros(3)
        each(tensor.add, range(2))
        left = weakref.ref(tensor)
        del tensor
        checked.set()
        return left() is None

    assert side_by_side(half, 0, 1) == (True, None)
