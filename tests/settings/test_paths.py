"""Paths below the root: no name, a user's or a record's, leads out of its folder."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths, systems

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


def test_a_run_has_its_systems_for_each_seed_in_one_order() -> None:
    run = settings.load(
        Path(__file__).parents[2] / "params.yaml",
        (
            "run.features=[region, grid]",
            "run.ensembles=[RG, RGP]",
            "run.texts=[bigru, bert]",
            "run.recipes=[vse2ad]",
            "run.seeds=[3, 0]",
            "run.ablations=[vse_infty]",
            "run.encoders=[]",
            "run.rescorers=[nnn, {name: nnn, bank: test}]",
            "run.rerank=[]",
        ),
    ).run
    first = []
    for text in ("bigru", "bert"):
        for seed in (3, 0):
            first += [f"vse2ad-{visual}-{text}-s{seed}" for visual in ("region", "grid", "RG")]
    again = [f"{name}+nnn{bank}" for name in first for bank in ("", "-test")]
    ablations = ["vse_infty-region-bigru-s3", "vse_infty-region-bigru-s0"]
    assert [*systems(run)] == [*first, *again, *ablations]
    assert run.left_out == {"RGP": ["patch"]}
