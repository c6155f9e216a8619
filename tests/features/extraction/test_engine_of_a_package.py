"""An engine of another package says its name, its packages and that its features depend on the
image's id.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.foundation import settings
from pipeline.foundation.manifest.columns import PHOTOGRAPH
from pipeline.foundation.manifest.sources import of as sources_of
from pipeline.foundation.parts import plugins
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extraction
from pipeline.make.features.extraction import needs
from pipeline.make.features.extractors import ENGINES
from pipeline.make.features.store import FeatureStore, StoreError

pytestmark = pytest.mark.slow

SMALL = {"network": "test_efficientnet", "weights": "untrained", "image_size": 64, "grid": 2}
PARAMS = Path(__file__).parents[3] / "params.yaml"
OPTIONS = '''from typing import ClassVar

from pipeline.make.features.extractors.options import EngineOptions
from pipeline.foundation.settings import Count


class NamesOptions(EngineOptions):
    """width: Numbers of an item."""

    width: Count = 4
    PACKAGES: ClassVar[dict[str, str]] = {"a_library_of_names": "pip install a-library-of-names"}

    @property
    def reported_as(self) -> str:
        return f"names-{self.width}"
'''
ENGINE = '''import numpy as np

from pipeline.make.features.extractors.base import Items


class Names:
    """An item of the numbers in the image's file name."""

    items, extras, trained, weights, backend, depends_on_id = 1, {}, True, "none", "torch", True

    def __init__(self, runtime, options):
        self.dimension, self.reported_as, self.settings = options.width, options.reported_as, options.recorded()

    def prepare(self, image):
        return int("".join(filter(str.isdecimal, image.info["file"].rpartition("/")[2])))

    def extract(self, batch, sizes):
        return [Items(np.full((1, self.dimension), number, np.float32)) for number in batch]
'''


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "site"
    for file, text in {
        "names-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: names\nVersion: 1.0\n",
        "names-1.0.dist-info/entry_points.txt": "[vse_pipeline.extractors]\nnames = names_engine.names:Names\n",
        "names_engine/__init__.py": "",
        "names_engine/options.py": OPTIONS,
        "names_engine/names.py": ENGINE,
    }.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    plugins.all_offers.cache_clear()
    yield
    for module in [name for name in sys.modules if name.partition(".")[0] == "names_engine"]:
        del sys.modules[module]
    plugins.all_offers.cache_clear()
    plugins._read.cache_clear()


def test_its_options_are_checked_with_the_settings() -> None:
    chosen = settings.load(PARAMS, ("features.light.grid={engine: names, width: 7}",))
    assert chosen.features["light"]["grid"].options == {"width": 7}
    with pytest.raises(
        InputError, match=r"grid: unknown option of the engine names, 'wdth'; did you mean width"
    ):
        settings.load(PARAMS, ("features.light.grid={engine: names, wdth: 7}",))


def test_it_says_what_it_lacks() -> None:
    assert needs.lacks("names", {}) == [
        "the package a_library_of_names; with torch installed, run: pip install a-library-of-names"
    ]


def test_options_that_name_no_features_are_refused_in_one_line(tmp_path: Path) -> None:
    options = tmp_path / "site" / "names_engine" / "options.py"
    options.write_text(OPTIONS.replace("reported_as", "called"), encoding="utf-8")
    with pytest.raises(
        InputError, match=r"'names', .* of names 1\.0, cannot be used: .* lacks the method reported"
    ):
        settings.load(PARAMS, ("features.light.grid={engine: names}",))


def test_its_features_are_of_its_manifests_images_alone(job: extraction.ExtractionJob) -> None:
    job = replace(job, engine=replace(job.engine, name="names", options={"width": 3}))
    extraction.extract(job)
    store = FeatureStore(job.store)
    assert (store.fingerprint["recipe"], store.fingerprint["depends_on_id"]) == ("names-3", True)
    assert ENGINES.is_built_in("names") is False
    table, images = job.manifest.table, job.manifest.images
    checksums = sources_of(job.manifest, "images").read_checksums(
        range(len(images)), job.images_folder
    )
    photographs = table["image_id"].map(dict(zip(images["image_id"], checksums, strict=True)))
    other = replace(
        job.manifest,
        dataset="other",
        source=table.assign(image_id=table["image_id"] + 1000, **{PHOTOGRAPH: photographs}),
    )
    with pytest.raises(StoreError, match="was made for another manifest's images"):
        store.require(other)
    of_pixels = replace(
        job,
        engine=replace(job.engine, name="grid", options=SMALL),
        store=job.store.with_name("grid"),
    )
    extraction.extract(of_pixels)
    same = FeatureStore(of_pixels.store)
    assert same.fingerprint["depends_on_id"] is False
    ours, theirs = (same.require(each).read(np.arange(3))[0] for each in (job.manifest, other))
    np.testing.assert_array_equal(ours, theirs)
