"""Which backend made a store: recorded where it is not torch, kept by `auto`, refused where another
is asked for.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from folders import tree

from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extraction
from pipeline.make.features.extraction import worker
from pipeline.make.features.extractors import backend
from pipeline.make.features.store import FeatureStore, ledger, read_header

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU on which `auto` is OpenVINO."""
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "AVX2")


def by(job: extraction.ExtractionJob, name: str, **changes: object) -> extraction.ExtractionJob:
    return replace(
        job,
        engine=replace(job.engine, runtime=replace(job.engine.runtime, backend=name)),
        **changes,
    )


def test_the_fingerprint_names_the_backend(job: extraction.ExtractionJob) -> None:
    assert extraction.extract(by(job, "torch")).extracted == 24
    assert set(read_header(job.store)[1]) == {
        "dataset",
        "ids",
        "engine",
        "version",
        "name",
        "recipe",
        "settings",
        "weights",
        "trained",
        "precision",
        "depends_on_id",
        "backend",
    }
    other = by(job, "openvino", store=job.store.with_name("other.zarr"))
    extraction.extract(other)
    here = backend.chosen("auto", "cpu", "fp32")
    assert read_header(other.store)[1] == {**read_header(job.store)[1], "backend": here}
    assert FeatureStore(other.store).identity != FeatureStore(job.store).identity


@pytest.mark.parametrize(("made_by", "other"), [("torch", "openvino"), ("openvino", "torch")])
def test_auto_takes_a_finished_store_whatever_is_installed_now(
    job: extraction.ExtractionJob, made_by: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    extraction.extract(by(job, made_by))
    before = tree(job.store)
    for installed in (None, "openvino 2030.1", backend.chosen("auto", "cpu", "fp32")):
        monkeypatch.setattr(backend, "_installed", lambda now=installed: now)
        worker._loaded.clear()
        assert extraction.extract(by(job, "auto", if_changed="redo")).extracted == 0
    assert tree(job.store) == before
    with pytest.raises(InputError, match=rf"backend was {made_by}.*, is {other}"):
        extraction.extract(by(job, other))
    assert extraction.extract(by(job, other, if_changed="redo")).extracted == 24


@pytest.mark.parametrize("made_by", ["torch", "openvino"])
def test_auto_goes_on_as_the_store_was_begun(job: extraction.ExtractionJob, made_by: str) -> None:
    extraction.extract(by(job, made_by))
    before = tree(job.store)
    for shard in (1, 3):
        ledger.erase(job.store, shard)
    assert extraction.extract(by(job, "auto")).extracted == 10
    assert tree(job.store) == before


def test_another_version_does_not_go_on_but_makes_a_changed_store_anew(
    job: extraction.ExtractionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    extraction.extract(by(job, "openvino"))
    made = read_header(job.store)[1]
    monkeypatch.setattr(backend, "_installed", lambda: "openvino 2030.1")
    worker._loaded.clear()
    ledger.erase(job.store, 2)
    with pytest.raises(
        InputError, match=rf"begun with {made['backend']}, here is openvino 2030\.1"
    ):
        extraction.extract(by(job, "auto"))
    options = {**dict(job.engine.options), "image_size": 128}
    changed = by(
        replace(job, engine=extraction.EngineSpec("grid", options, job.engine.runtime)), "auto"
    )
    assert extraction.extract(replace(changed, if_changed="redo")).extracted == 24
    assert read_header(job.store)[1]["backend"] == "openvino 2030.1"


def test_one_network_serves_what_was_asked_for_and_what_it_got(
    job: extraction.ExtractionJob,
) -> None:
    asked = by(job, "auto").engine
    first = worker.load_engine(asked)
    got = replace(asked, runtime=replace(asked.runtime, backend=first.backend))
    assert worker.load_engine(got) is first
    assert worker.load_engine(by(job, "torch").engine) is not first


def test_two_batches_at_once_give_the_same_bytes(
    job: extraction.ExtractionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    extraction.extract(job)
    two = replace(job, store=job.store.with_name("two.zarr"))
    monkeypatch.setattr(worker, "_threads", lambda task: (3, 2, 1))
    extraction.extract(two)
    assert tree(two.store) == tree(job.store)
