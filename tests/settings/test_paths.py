"""Paths below the root: no name, a user's or a record's, leads out of its folder."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths

OUTSIDE = ("..", ".", "../x", "a/../../x", "/x", "a\0b")


@pytest.mark.specification
def test_no_name_leads_out_of_its_folder(tmp_path: Path) -> None:
    paths, composed = Paths(tmp_path), 0
    for method, function in inspect.getmembers(Paths, inspect.isfunction):
        names = [name for name in inspect.signature(function).parameters if name != "self"]
        if method.startswith("_"):
            continue
        whole = getattr(paths, method)(*names)
        assert whole.relative_to(tmp_path)
        for place in range(len(names)):
            for outside in OUTSIDE:
                given = [*names[:place], outside, *names[place + 1 :]]
                composed += 1
                if method == "embeddings" and outside in ("..", "."):
                    continue  # a part of a longer name, which leads nowhere
                with pytest.raises(InputError, match="a name cannot be "):
                    getattr(paths, method)(*given)
    assert composed > 50
