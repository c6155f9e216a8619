"""A missing file or a wrong name is refused before torch, which takes seconds, is imported: by
every command.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import invented_heads
import pytest

from pipeline.foundation.manifest import Manifest
from pipeline.make.features.store import FeatureStore
from stages import cli

pytestmark = pytest.mark.slow

# What is typed, and a part of the answer. The project has the sample's manifest, and neither
# features nor heads.
CASES = {
    "init x --images none --captions none.csv": "none: no such folder of images",
    "settings recipes.vse2da": "did you mean vse2ad?",
    "settings --params /dev/null": "/dev/null: is no regular file",
    "settings --params sparse.yaml": "has more than 800,000 bytes",
    "trace /dev/null": "/dev/null: is no regular file",
    "search --queries /dev/null": "expected a file of text in UTF-8",
    "extract --feature region --only /dev/null": "is no regular file",
    "completion cshell": "there are: bash, zsh, fish",
    "manifest flickr8k --images none --annotations none.json": "none: no such folder of images",
    "audit smaple": "did you mean sample?",
    "extract --feature region --dataset smaple": "did you mean sample?",
    "extract --feature region --engine gird": "did you mean grid?",
    "extract --feature region --only none.txt": "none.txt",
    "store verify none.zarr --repair": "none.zarr: no feature store there",
    "store rewrite none.zarr --dtype float16": "none.zarr: no feature store there",
    "store import scan none --feature region": "none: no such file or folder",
    "store export none.zarr --split val --out o": "none.zarr: no feature store there",
    "store copy none.zarr s3://bucket/x.zarr": "none.zarr: no feature store there",
    "train --feature region": "features/sample/region.zarr: no feature store there",
    "train --feature grid --text bert -S training.sample.bert=nobody/none": "BERT checkpoint 'nobody/none' is not a",
    "train --feature region --recipe vse2da": "did you mean vse2ad?",
    "convert none.pth": "none.pth: no such file",
    "embed sample --system none": "heads/sample/none: no head there",
    "embed sample --system clip:./none": "model ./none: there is no such folder",
    "embed sample --system clip:blip": "model blip: there is no such folder or file; did you mean clip?",
    "embed sample --system clip:nobody/none": "cannot be downloaded from the Hugging Face hub",
    "embed sample --system clip:siglip": "siglip: is a siglip; expected clip, or write siglip:siglip",
    "embed sample --system clip:epoch_3.pt": "epoch_3.pt: is a file; name the folder",
    "embed sample --system clip:epoch_4.pt": "did you mean epoch_3.pt?",
    "embed sample --system clip:logs/*/epoch_3.pt": "behind a colon the shell replaces no *",
    "embed sample --system clpi:x": "unknown kind of dual encoder 'clpi'; did you mean clip?",
    "finetune sample --system clip:./none": "model ./none: there is no such folder",
    "finetune sample --system clip:x --recipe lroa": "did you mean lora?",
    "finetune sample --system ./clip": "./clip: is the folder of a model; write its kind before it, such as clip:./c",
    "embed sample --system ./clip": "./clip: is the folder of a model",
    "embed sample --system tuned:clip": "clip: is no folder of `pipeline finetune`; of another model write the kind",
    "extract --feature grid -S features.light.grid.weights=../m/none": "no other weights are downloaded: get them from",
    "extract --feature grid -S features.light.grid.weights=./clip/confg.json": "did you mean clip/config.json?",
    "export none --to onnx --out o": "heads/sample/none: no head there",
    "export ./clip --to onnx": "./clip: is the folder of a model",
    "export made --to transformers": "a head is written --to onnx or sentence-transformers; transformers is for tuned:",
    "score --system clip": "heads/sample/clip: no head there",
    "score --system none": "heads/sample/none: no head there",
    "add ours --scores none.npy": "none.npy: no such file",
    "ensemble both --member clip:clip --member clip:none": "model none: there is no such folder",
    "ensemble RG": "no similarity store there",
    "rescore none --by csls": "no similarity store there",
    "rerank --retriever none --with other": "no similarity store there",
    "evaluate clip:clip clip:none --images clip --captions epoch_3.pt": "model none: there is no such folder",
    "evaluate clip": "clip: is the folder of a model; write its kind before it, such as clip:clip",
    "evaluate clpi:clip": "or a model, KIND:FOLDER; did you mean clip?",
    "evaluate none.npy": "none.npy: no such file",
    "compare none.npy other.npy": "none.npy: no such file",
    "board task=none.npy": "none.npy: no such file",
    "noise none.npy other.npy": "none.npy: no such file",
    "explain none.npy --published R@1=5": "none.npy: no such file",
    "trace results/none.json": "results/none.json: no result there",
    "lab hard-negatives --system ./clip": "./clip: is the folder of a model",
    "score --system other": "heads/sample/other: no head there; there is heads/mine/other",
    "evaluate heads/sample/made": "heads/sample/made: is a head; `pipeline score --system heads/sample/made` makes",
    "evaluate ./clip": "./clip: is the folder of a model",
    "score --system ./clip": "./clip: is the folder of a model",
    "search dog --system ./clip": "./clip: is the folder of a model",
    "search dog --system none": "heads/sample/none: no head there",
    "search dog --system clip:clip": "`pipeline embed sample --system clip:clip` makes its vectors",
    "search --image none.jpg": "none.jpg: no such file",
    "search dog --index exat": "did you mean exact?",
    "tables": "results/metrics.json: missing",
    "figures -S figures=[negative]": "did you mean negatives?",
    "report --params none.yaml": "none.yaml: no such settings file",
    "lab hard-negatives none.csv --system none": "unknown benchmark or file 'none.csv'",
    "lab study": "features/sample/region.zarr: no feature store there",
    "lab synthetic --pattern B": "there are: A",
    "lab throughput --retriever none --with other": "heads/sample/none: no head there",
    "lab machine --root none": "unknown option '--root'",
    "lab plan -S tables=[vse2ad_tabel1]": "did you mean vse2ad_table1?",
    "lab sample -S sample.imags=3": "did you mean images?",
}
RUN = """
import json, sys
from stages import cli
for line in json.loads(sys.argv[1]):
    sys.argv = ["pipeline", *line.split()]
    try:
        cli.main()
    except SystemExit as ended:
        print(ended.code, "torch" in sys.modules, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def answers(
    scenes: Manifest, store: FeatureStore, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """The lines that each command prints, and at last its exit code and whether it imported
    torch.
    """
    folder = tmp_path_factory.mktemp("project")
    (folder / "params.yaml").write_bytes((Path(__file__).parents[2] / "params.yaml").read_bytes())
    scenes.save(folder / "data" / "sample.parquet")
    shutil.copytree(store.path, folder / "features" / "sample" / "grid.zarr")
    invented_heads.head(folder / "heads" / "sample", "made", [100.0])
    invented_heads.head(folder / "heads" / "mine", "other", [100.0])
    for kind in ("clip", "siglip"):
        (folder / kind).mkdir()
        (folder / kind / "config.json").write_text(
            json.dumps({"model_type": kind}), encoding="utf-8"
        )
    (folder / "sparse.yaml").touch()
    os.truncate(folder / "sparse.yaml", 1 << 42)
    (folder / "epoch_3.pt").write_bytes(b"weights")
    ran = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(list(CASES))],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    lines: list[list[str]] = [[]]
    for line in ran.stderr.splitlines():
        lines[-1].append(line)
        if line.endswith(("True", "False")):
            lines.append([])
    return dict(zip(CASES, lines, strict=False))


def test_every_command_is_tried() -> None:
    assert [
        name
        for name in cli.commands()
        if not any(f"{line} ".startswith(f"{name} ") for line in CASES)
    ] == []


@pytest.mark.parametrize("line", CASES)
def test_it_is_refused_in_one_line_before_torch_is_imported(
    line: str, answers: dict[str, list[str]]
) -> None:
    *said, ended = answers[line]
    assert ended == "2 False", said
    assert len(said) == 1
    assert CASES[line] in said[0]
