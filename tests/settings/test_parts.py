"""Names and options of parts in the settings are checked when these are read, before anything is
imported for them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.parts.section import NoOptions, Section
from pipeline.foundation.settings.kinds import TABLES

ROOT = Path(__file__).parents[2]
PARAMS = ROOT / "params.yaml"
PARTS = [(kind, name) for kind in TABLES for name in TABLES[kind]]


GPO = "generator, positions, per_dimension, data_dependent, width, temperature"
WRONG = {
    "recipes.vse2ad.image_pooling={name: gpo, wdth: 3}": "vse2ad.image_pooling: unknown option of the pooling gpo, 'wdth'; did you mean width? its options: "
    + GPO,
    "recipes.vse2ad.text_pooling={name: mean, k: 3}": "text_pooling: unknown option of the pooling mean, 'k'; its options: none",
    "recipes.vse2ad.objective={name: adopt, margin: -1}": "objective adopt: margin: Input should be greater than or equal to 0, got -1",
    "recipes.vse2ad.objective={name: adopt, margin: 0.2, denominator: printed}": "objective adopt: a margin does nothing",
    "recipes.vse2ad.objective={name: adop}": "unknown objective 'adop'; did you mean adopt?",
    "recipes.vse2ad.architecture={name: late, form: min}": "architecture late: form: Input should be 'max' or 'attention'",
    "features.light.grid.grid=0": "features.light.grid: engine grid: grid: Input should be greater than or equal to 1",
    "features.light.grid.gird=4": "unknown option of the engine grid, 'gird'; did you mean grid?",
    "run.rescorers=[{name: csls, neighbour: 3}]": "unknown option of the rescorer csls, 'neighbour'; did you mean neighbours?",
    "run.texts=[bigru, brt]": "run.texts.1: unknown text encoder 'brt'; did you mean bert?",
    "training.sample.minimum_count=0": "training.sample.minimum_count: Input should be greater than or equal to 1",
    "training.sample.tokenizer=word": "training.sample.tokenizer: unknown tokenizer 'word'; did you mean words?",
    "run.encoders=[{name: clip, model: 'clp:folder'}]": "run.encoders.0.model: unknown kind of dual encoder 'clp'",
    "run.rerank=[{name: r, retriever: region, with: 'blp:folder'}]": "unknown scorer 'blp'; did you mean blip?",
    "evaluate.metrics=[nDCG(rle=2)@10]": "evaluate.metrics: unknown metric 'nDCG(rle=2)@10'",
    "evaluate.metrics=[R@0]": "evaluate.metrics: R@0: R needs a cutoff from 1 up",
}


@pytest.mark.parametrize(("change", "said"), WRONG.items())
def test_a_wrong_option_is_refused_when_settings_are_read(change: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        settings.load(PARAMS, (change,))
    assert "\n" not in str(caught.value)


def test_every_table_of_parts_is_listed() -> None:
    files = "\n".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "pipeline").rglob("*.py")
    )
    kinds = set(
        re.findall(
            r'(?:^    \{?\},\n    |LookupTable\(\{\}, )"([\w ]+)"(?:,\n    "[a-z ]+")?(?:,\n    base="[\w.:]+")?(?:,\n)?\)',
            files,
            re.MULTILINE,
        )
    )
    assert kinds == {*TABLES, TABLES.kind}
    assert all(TABLES[kind].kind == kind for kind in TABLES)


def test_every_part_declares_its_options() -> None:
    for kind, name in PARTS:
        declared = TABLES[kind].declared(name)
        assert issubclass(declared, Section), (kind, name)
        assert declared is NoOptions or declared.__doc__, (kind, name)
        with pytest.raises(InputError, match=f"unknown option of the .*{re.escape(name)}"):
            TABLES[kind].options(name, {"not_an_option": 1})


def test_every_section_of_options_is_of_a_part() -> None:
    """A name that fits no part would leave the part without options."""
    declared: set[Any] = {TABLES[kind].declared(name) for kind, name in PARTS}
    modules = {sys.modules[each.__module__] for each in declared - {NoOptions}}
    sections = {
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Section)
        and each.__module__ == module.__name__
    }
    bases = {base for each in declared for base in each.__mro__}
    assert sections - bases == set()


@pytest.mark.slow
def test_options_are_read_without_torch() -> None:
    code = (
        "import sys; from pipeline.foundation.settings.kinds import TABLES\n"
        "for table in TABLES.values():\n    for name in table: table.declared(name)\n"
        "assert not {'torch', 'scipy', 'pandas', 'matplotlib'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
