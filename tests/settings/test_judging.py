"""What measures files of scores reads its own sections of the settings, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from stages.cli import cli

RUN = {"dataset": "mine", "features": ["region"], "ensembles": [], "texts": ["bigru"]}
RUN |= {"recipes": ["vse2ad"], "seeds": [0], "ablations": []}


def written(folder: Path, **sections: Any) -> Path:
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump({"run": RUN} | sections), encoding="utf-8")
    return path


def test_the_judge_s_sections_are_those_of_all_settings(tmp_path: Path) -> None:
    for sections in (
        {},
        {"evaluate": {"metrics": ["nDCG@10"]}, "score": None},
        {"manifest": {"left_out": 0.2}, "typesetting": {"table_style": "plain"}},
    ):
        path = written(tmp_path, **sections)
        of_judge = settings.load_for_judging(path)
        of_all = settings.load(path)
        assert of_judge is not None, sections
        assert of_judge.run.dataset == of_all.run.dataset == "mine"
        for name in ("manifest", "score", "evaluate", "typesetting"):
            assert getattr(of_judge, name) == getattr(of_all, name), (sections, name)


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"evalaute": {}}, "evalaute: unknown key; did you mean evaluate"),
        ({"evaluate": {"metric": []}}, "evaluate.metric: unknown key"),
        ({"evaluate": []}, "evaluate: expected a section"),
        ({"evaluate": {"metrics": ["nDGC@10"]}}, "unknown metric"),
        ({"typesetting": {"table_style": "fine"}}, "typesetting.table_style"),
        ({"run": {"features": ["region"]}}, "run.dataset: missing"),
    ],
)
def test_a_fault_that_concerns_files_is_said_as_for_all(
    tmp_path: Path, sections: dict[str, Any], said: str
) -> None:
    path = written(tmp_path, **sections)
    assert settings.load_for_judging(path) is None
    with pytest.raises(InputError, match=said):
        settings.load(path)
    np.save(tmp_path / "a.npy", np.eye(4, 20))
    with pytest.raises(InputError, match=said):
        cli.main(["evaluate", "a.npy", "--root", str(tmp_path)], standalone_mode=False)


def test_a_fault_in_training_hinders_the_run_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, training={"light": {"epochs": "many"}})
    np.save(tmp_path / "a.npy", np.eye(4, 20))
    where = ["--root", str(tmp_path)]
    cli.main(["evaluate", "a.npy", *where], standalone_mode=False)
    assert "RSUM" in capsys.readouterr().out
    for command in (
        ["evaluate"],
        ["evaluate", "a.npy", "-S", "evaluate.resamples=9"],
        ["compare", "a.npy", "a.npy"],
        ["tables"],
    ):
        with pytest.raises(InputError, match=r"training\.light\.epochs"):
            cli.main([*command, *where], standalone_mode=False)
