"""Published networks as scorers: the library's own forward pass on each pair, from narrow random
checkpoints.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file
from tiny_scorers import CLASSES, checkpoint

from pipeline.foundation.files import images
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems import reranking
from pipeline.judge.systems.reranking.base import PairSource


@pytest.fixture(scope="module")
def source(scenes: Manifest, tmp_path_factory: pytest.TempPathFactory) -> PairSource:
    paths = Paths(tmp_path_factory.mktemp("project"))
    scenes.save(paths.manifest("sample"))
    return PairSource(paths, "sample", "sample", "sample", batch_size=5)


def one_by_one(
    kind: str, folder: Path, scenes: Manifest, pairs: tuple[np.ndarray, np.ndarray]
) -> list[float]:
    """Scores by the library's processor and forward pass, a pair at a time."""
    model = getattr(transformers, CLASSES[kind]).from_pretrained(folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    found = []
    for image, caption in zip(*pairs, strict=True):
        file = scenes.images.loc[scenes.images["image_id"] == image, "file"].item()
        text = scenes.table.loc[scenes.table["caption_id"] == caption, "caption"].item()
        inputs = processor(
            images=images.decode(scenes.images_folder / file), text=text, return_tensors="pt"
        )
        with torch.inference_mode():
            if kind == "blip2":
                row = model(**inputs, use_image_text_matching_head=True).logits_per_image[0]
            else:
                output = model(**inputs)
                row = (output.itm_score if kind == "blip" else output.logits)[0]
        found.append(float(row[1] - row[0]) if len(row) == 2 else float(row[0]))
    return found


@pytest.mark.specification
@pytest.mark.parametrize("kind", CLASSES)
def test_scores_are_those_of_the_librarys_forward_pass(
    kind: str, source: PairSource, scenes: Manifest, tmp_path: Path, rng: np.random.Generator
) -> None:
    folder = checkpoint(kind, tmp_path / "published")
    assert reranking.resolve(f"{kind}:{folder}", source) == (kind, str(folder))
    scorer = reranking.build(kind, str(folder), source)
    pairs = (
        rng.choice(scenes.images["image_id"].to_numpy()[:4], 12),
        rng.choice(scenes.table["caption_id"], 12),
    )
    found = scorer.score(*pairs)
    assert found.std() > 1e-3
    np.testing.assert_allclose(found, one_by_one(kind, folder, scenes, pairs), atol=1e-5)
    said = scorer.made_from
    assert said["name"] == "published"
    assert str(tmp_path) not in str(said)
    with pytest.raises(InputError, match="has no image -5"):
        scorer.score(np.array([-5]), pairs[1][:1])


def test_a_scorer_is_the_same_wherever_its_files_are_and_another_for_other_photographs(
    source: PairSource, scenes: Manifest, tmp_path: Path
) -> None:
    folder = checkpoint("vilt", tmp_path / "vilt")
    shutil.copytree(scenes.images_folder, tmp_path / "images")
    replace(scenes, dataset="own", images_folder=tmp_path / "images").save(
        source.paths.manifest("own")
    )
    own = replace(source, images="own")
    shutil.copytree(folder, tmp_path / "other" / "vilt")
    found = [
        reranking.build("vilt", str(each), own).made_from
        for each in (folder, tmp_path / "other" / "vilt")
    ]
    assert found[0] == found[1]
    settings = tmp_path / "other" / "vilt" / "processor_config.json"
    changed = json.loads(settings.read_text())
    changed["image_processor"]["image_mean"] = [0.1, 0.2, 0.3]
    settings.write_text(json.dumps(changed))
    assert reranking.build("vilt", str(settings.parent), own).made_from != found[0]
    table = scenes.table.copy()
    table.loc[0, "caption"] += "!"
    Manifest(table, "said", scenes.images_folder).save(source.paths.manifest("said"))
    assert reranking.build("vilt", str(folder), replace(own, captions="said")).made_from != found[0]
    one, other = (tmp_path / "images" / file for file in scenes.images["file"][:2])
    shutil.copyfile(one, other)
    assert reranking.build("vilt", str(folder), own).made_from != found[0]


def test_an_image_that_a_processor_rounds_to_nothing_is_named(
    source: PairSource, scenes: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = reranking.build("vilt", str(checkpoint("vilt", tmp_path / "vilt")), source)
    monkeypatch.setattr(images, "decode", lambda path: Image.new("RGB", (20_000, 1)))
    with pytest.raises(
        InputError, match=r"20000 x 1 pixels; vilt does not prepare it or another of 1 images: "
    ):
        scorer.score(
            scenes.images["image_id"].to_numpy()[:1], scenes.table["caption_id"].to_numpy()[:1]
        )


def test_other_folders_are_refused_and_no_code_is_run(source: PairSource, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no BlipForImageTextRetrieval that can be read"):
        reranking.build("blip", str(tmp_path), source)
    folder = checkpoint("blip", tmp_path / "blip")
    (folder / "own.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\nfrom transformers import BlipConfig as C\n"
    )
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(
            {
                **config,
                "auto_map": {"AutoConfig": "own.C"},
                "_attn_implementation": "somebody/kernels",
            }
        )
    )
    reranking.build("blip", str(folder), source)
    assert not (tmp_path / "ran").exists()
    state = load_file(folder / "model.safetensors")
    state.pop("itm_head.weight")
    (folder / "model.safetensors").unlink()
    save_file(state, folder / "model.safetensors")
    with pytest.raises(InputError, match=r"its weights lack 1 of .* such as itm_head\.weight"):
        reranking.build("blip", str(folder), source)
    with pytest.raises(InputError, match="is a blip; expected vilt"):
        reranking.build("vilt", str(folder), source)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"holds no model\.safetensors"):
        reranking.build("blip", str(folder), source)
