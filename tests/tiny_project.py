"""A run as a user has it, on a sample that takes seconds."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml
from dulwich import porcelain
from preloaded import Commands

from pipeline.make.features.project import new

ROOT = Path(__file__).parents[1]
BINARIES = Path(sys.executable).parent
TINY = {"network": "test_efficientnet", "weights": "untrained", "image_size": 64}
ABLATIONS = ["vse2ad-noadopt", "vse_infty"]
FIGURES = ["training_curve", "retrieved_images"]


def make(copy: Path, commands: Commands) -> None:
    """Run `dvc repro` in an empty folder, with the settings of such a sample, and commit the
    run.
    """
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["sample"] = {"images": 24, "size": 64, "seed": 0}
    settings["features"] = {
        "light": {
            "region": {"engine": "pyramid", **TINY, "image_size": 128},
            "grid": {"engine": "grid", **TINY, "grid": 2},
            "patch": {
                "engine": "patch",
                "network": "test_vit",
                "weights": "untrained",
                "image_size": 160,
                "cls": True,
            },
        }
    }
    settings["throughput"] = {
        "batch_size": 4,
        "pools": [20, 200],
        "pairs": 1,
        "repeats": 1,
        "seconds": 0.0,
    }
    settings["extract"]["backend"] = "torch"  # OpenVINO compiles each network first
    settings["run"]["ablations"] = ABLATIONS
    settings["training"]["sample"].update(dimension=16, word_dimension=8, batch_size=16, epochs=2)
    settings["figures"] = FIGURES
    porcelain.init(copy)  # git itself is not needed
    new.write(copy, {"params.yaml": yaml.safe_dump(settings)})  # as `pipeline init` does
    commands("dvc", "repro", cwd=copy)
    porcelain.add(
        copy, [str(copy / name) for name in ("params.yaml", "dvc.yaml", "dvc.lock", ".gitignore")]
    )
    porcelain.commit(
        copy, message=b"A run", author=b"A <a@example.org>", committer=b"A <a@example.org>"
    )
