"""What a library raises for bad input becomes an error of one line, and nothing else does."""

from __future__ import annotations

import pytest

from pipeline.foundation.compute import device
from pipeline.foundation.parts.errors import ANYTHING, InputError, refusing


class OfAKindError(InputError):
    """A kind of bad input."""


def test_a_named_error_is_bad_input_without_the_librarys_traceback() -> None:
    with (
        pytest.raises(InputError, match="no number; give one") as found,
        refusing(ValueError, "no number; give one"),
    ):
        int("x")
    assert found.value.__suppress_context__
    with (
        pytest.raises(OfAKindError, match=r"of '1\.5': invalid literal"),
        refusing((KeyError, ValueError), lambda error: f"of '1.5': {error}", OfAKindError),
    ):
        int("1.5")


def test_other_errors_and_results_pass() -> None:
    with pytest.raises(KeyError), refusing(ValueError, "no number"):
        {}["x"]
    with refusing(ValueError, "no number"):
        found = int("1")
    assert found == 1


def test_where_bytes_may_raise_anything_refusals_pass_as_they_are() -> None:
    with (
        pytest.raises(InputError, match=r"^give another$"),
        refusing(ANYTHING, "damaged", OfAKindError),
    ):
        raise InputError("give another")
    with pytest.raises(OfAKindError, match="damaged"), refusing(ANYTHING, "damaged", OfAKindError):
        raise MemoryError
    with (
        pytest.raises(InputError, match=r"^named: x$"),
        refusing(InputError, lambda error: f"named: {error}"),
    ):
        raise InputError("x")


def test_too_little_memory_is_no_bad_input() -> None:
    """A damaged file may ask for too much memory: where that is named, it is refused."""
    lacking = RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes")
    for error in (MemoryError(), lacking, RuntimeError("can't allocate memory: 9 bytes")):
        for kinds in (Exception, (Exception, KeyError)):
            with pytest.raises(type(error)) as raised, refusing(kinds, "damaged"):
                raise error
            assert raised.value is error
        with pytest.raises(InputError, match="damaged"), refusing(ANYTHING, "damaged"):
            raise error


@pytest.mark.parametrize("name", ["meta", "nowhere", "cuda:99"])
def test_a_device_that_does_not_compute_here_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"device '{name}' is not available; use cpu"):
        device.require(name)
    assert device.require("cpu").type == "cpu"
