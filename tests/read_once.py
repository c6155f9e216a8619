"""Tiny models are read once where tests are about what is done with them: their library takes
longer to open one than commands to use it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from pipeline.foundation.files import digest


@pytest.fixture(scope="module")
def encoders_read_once() -> Iterator[None]:
    """Each opening of a model of `transformers` is a copy of the first of the same files."""
    from pipeline.make.dual_encoders.hugging_face import TransformersEncoder  # and with it torch
    from pipeline.make.dual_encoders.places import transformers

    opened: dict[Any, TransformersEncoder] = {}
    said: dict[Any, list[warnings.WarningMessage]] = {}

    def load(kind: type[TransformersEncoder], place: str, usage: Any) -> TransformersEncoder:
        folder = transformers(place, kind.model_types)
        key = (kind, place, usage, digest.of_folder(folder))
        if key not in opened:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                opened[key] = kind(folder, usage)
            said[key] = warned
        for each in said[key]:
            warnings.warn(each.message, stacklevel=2)
        return deepcopy(opened[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransformersEncoder, "load", classmethod(load))
        yield
