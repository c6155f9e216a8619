"""A setting that is added later, with a default, leaves the records of what was made before it, and
stores valid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Section
from pipeline.make.features import extraction
from pipeline.make.features.extractors import ENGINES
from pipeline.make.features.store import read_header

FIRST_RELEASE = {
    "pyramid": {"network", "weights", "image_size"},
    "butd-36": {
        "weights",
        "short_side",
        "long_side",
        "min_boxes",
        "max_boxes",
        "boxes",
        "proposals",
    },
    "butd-10-100": {
        "weights",
        "short_side",
        "long_side",
        "min_boxes",
        "max_boxes",
        "boxes",
        "proposals",
    },
    "butd-given": {"weights", "short_side", "long_side", "boxes"},
    "grid": {"network", "weights", "image_size", "grid"},
    "patch": {"network", "weights", "image_size", "cls"},
}


@pytest.mark.parametrize("engine", FIRST_RELEASE)
def test_stores_of_the_first_release_keep_their_fingerprint(engine: str) -> None:
    given = {"boxes": "boxes.csv"} if engine == "butd-given" else {}
    assert ENGINES.options(engine, given).recorded().keys() == FIRST_RELEASE[engine]


class Later(Section):
    """Settings with one that was added later."""

    size: int
    network: str = "resnet"
    invented: bool = False


def test_a_setting_at_its_default_is_not_recorded_but_a_network_is() -> None:
    assert Later(size=3).recorded() == {"size": 3, "network": "resnet"}
    assert Later(size=3, invented=True).recorded() == {
        "size": 3,
        "network": "resnet",
        "invented": True,
    }
    assert Later(size=3, invented=True).recorded(exclude={"invented"}) == {
        "size": 3,
        "network": "resnet",
    }


def test_an_option_of_an_engine_added_later_leaves_stores(
    job: extraction.ExtractionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    extraction.extract(job)
    made = read_header(job.store)[1]
    kind: Any = ENGINES.declared(job.engine.name)

    class Options(kind):  # type: ignore[misc]
        invented: bool = False

    monkeypatch.setattr(f"{kind.__module__}.{kind.__name__}", Options)
    assert extraction.extract(job).extracted == 0
    assert read_header(job.store)[1] == made
    changed = replace(job.engine, options={**job.engine.options, "invented": True})
    with pytest.raises(InputError, match=r"settings\.invented was nothing, is True"):
        extraction.extract(replace(job, engine=changed))
