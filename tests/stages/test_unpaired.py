"""Captions that belong to no image and images that have no caption, from a reader to the
numbers.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.foundation import manifest
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import protocol
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import Manifest, sources
from pipeline.foundation.manifest.dataset import Dataset
from pipeline.foundation.manifest.statistics import statistics_of
from pipeline.foundation.parts import plugins
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Evaluate
from pipeline.foundation.settings.recipe import Pairs
from pipeline.foundation.settings.run import Rerank
from pipeline.judge.systems.scores.system import System
from pipeline.make.features.store import FeatureStore
from pipeline.run.provenance.results import EvaluateRequest

pytestmark = pytest.mark.slow

HEAD = "vse2ad-region-bigru-s0"
TINY = ("dimension=16", "word_dimension=8", "batch_size=16", "epochs=1", "decay_epoch=1")
ALTERED = '''"""Karpathy's annotations, and for captions of train and test altered ones that belong to no image."""

from dataclasses import replace

import pandas as pd

from pipeline.foundation.manifest.json_captions import KARPATHY


def read(source):
    table = KARPATHY.read(source)
    altered = table[table["split"].isin(["train", "test"])].assign(file="")
    altered["caption"] = altered["caption"].str.replace("red", "blue") + " upside down"
    altered["caption_id"] += 1_000_000
    return pd.concat([table, altered], ignore_index=True)


READER = replace(KARPATHY, title="altered captions", recognises=lambda path: False, read=read)
'''


PROTOCOL = '''"""Each image's first caption is ranked among the altered captions of all images."""

from dataclasses import dataclass

from pipeline.foundation.evaluation.retrieval import Protocol
from pipeline.foundation.parts.errors import InputError


@dataclass(frozen=True)
class WithAltered(Protocol):
    def parts(self, caption_image, images):
        if (caption_image >= 0).all():
            raise InputError(f"protocol {self.name}: there are no altered captions")
        return super().parts(caption_image, images)


WITH_ALTERED = WithAltered("with_altered", captions_per_image=1)
'''


@pytest.fixture
def package(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A package with the reader `altered` and the protocol `with_altered`."""
    site = tmp_path_factory.mktemp("site")
    about = site / "vse_altered-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: vse-altered\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(
        "[vse_pipeline.readers]\naltered = vse_altered:READER\n"
        "[vse_pipeline.protocols]\nwith_altered = vse_protocol:WITH_ALTERED\nother_name = vse_protocol:WITH_ALTERED\n",
        encoding="utf-8",
    )
    (site / "vse_altered.py").write_text(ALTERED, encoding="utf-8")
    (site / "vse_protocol.py").write_text(PROTOCOL, encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    plugins.all_offers.cache_clear()
    yield
    for module in ("vse_altered", "vse_protocol"):
        sys.modules.pop(module, None)
    plugins.all_offers.cache_clear()


@pytest.mark.usefixtures("package")
def test_altered_captions_are_candidates_from_the_manifest_to_the_numbers(
    pipeline: Any, corpus: Path, store: FeatureStore, tmp_path: Path
) -> None:
    code, out, err = pipeline(
        "manifest",
        "sample",
        "--format",
        "altered",
        "--images",
        corpus / "images",
        "--annotations",
        corpus / "dataset_sample.json",
    )
    assert code == 0, err
    assert "100 captions without an image" in out + err
    shutil.copytree(store.path, tmp_path / "features" / "sample" / "region.zarr")
    changes = [word for change in TINY for word in ("-S", f"training.sample.{change}")]
    code, out, err = pipeline("train", "--feature", "region", *changes)
    assert code == 0, err
    assert "80 training captions without an image: left out of training" in err
    code, out, err = pipeline("score", "--feature", "region", *changes)
    assert code == 0, err
    scored = System.open(Path("similarities/sample", f"{HEAD}.zarr"))
    assert scored.shape == (4, 40)
    assert (scored.caption_image < 0).tolist() == [False] * 20 + [True] * 20
    code, out, err = pipeline("evaluate", "--system", scored.path, "--json")
    assert code == 0, err
    (numbers,) = json.loads(out)
    assert (numbers["captions"], numbers["captions_without_image"]) == (40, 20)
    matrix, owner = np.asarray(scored.similarity[:]), scored.caption_image
    best_is_right = owner[matrix.argmax(1)] == np.arange(4)
    assert numbers["i2t"]["R@1"] == pytest.approx(100 * best_is_right.mean())
    code, out, err = pipeline(
        "evaluate", "--system", scored.path, "--protocol", "with_altered", "--json"
    )
    assert code == 0, err
    (numbers,) = json.loads(out)
    assert (numbers["protocol"], numbers["captions"], numbers["queries"]["t2i"]) == (
        "with_altered",
        24,
        4,
    )
    ranked = [
        *(np.flatnonzero(owner == image)[0] for image in range(4)),
        *np.flatnonzero(owner < 0),
    ]
    first = matrix[:, ranked].argmax(1)
    assert numbers["i2t"]["R@1"] == pytest.approx(100 * (first == np.arange(4)).mean())
    code, out, err = pipeline(
        "rerank", "--retriever", HEAD, "--with", HEAD, "--protocol", "with_altred"
    )
    assert code == 2
    assert "'with_altred'; did you mean with_altered?" in err
    assert "with_altered" in err
    code, out, err = pipeline(
        "search", "a red house upside down", "--find", "captions", "--top", "40"
    )
    assert code == 0, err
    assert out.count("(no image)") == 20
    assert Path("results/search.html").read_text(encoding="utf-8").count("no image") == 20


@pytest.mark.usefixtures("package")
def test_a_protocol_of_a_package_is_known_to_settings_cards_and_records() -> None:
    assert protocol("with_altered").captions_per_image == 1
    with pytest.raises(InputError, match="no altered captions"):
        evaluate(np.eye(2, dtype=np.float32), np.arange(2), "with_altered")
    with pytest.raises(
        InputError, match="protocol 'other_name': expected a Protocol of this name, got WithAltered"
    ):
        protocol("other_name")
    card = dict.fromkeys(
        ("name", "title", "description", "licence", "source", "images", "annotations"), ""
    )
    assert Dataset.model_validate({**card, "protocols": ["with_altered"]}).protocols == [
        "with_altered"
    ]
    with pytest.raises(
        ValueError, match="unknown protocol 'with_altred'; did you mean with_altered"
    ):
        Dataset.model_validate({**card, "protocols": ["with_altred"]})
    step = {"name": "x", "retriever": "R", "with": "G"}
    assert Rerank.model_validate({**step, "protocol": "with_altered"}).protocol == "with_altered"
    settings = Evaluate(resamples=1, seed=0, block_megabytes=1)
    asked = EvaluateRequest(name="x", protocols=["all", "with_altered"], settings=settings)
    assert [*asked.versions()] == ["evaluation", "vse_protocol"]


def test_an_unknown_index_is_refused_when_settings_are_read() -> None:
    assert Pairs(index="exact").index == "exact"
    with pytest.raises(ValueError, match="unknown index 'exakt'; did you mean exact"):
        Pairs(index="exakt")


def test_images_without_captions_are_candidates_from_the_manifest_to_the_numbers(
    pipeline: Any, corpus: Path, store: FeatureStore, tmp_path: Path
) -> None:
    annotations = json.loads((corpus / "dataset_sample.json").read_text(encoding="utf-8"))
    of_split = {
        split: [image for image in annotations["images"] if image["split"] == split]
        for split in ("train", "test")
    }
    for image in (of_split["train"][0], of_split["test"][1]):
        image["sentences"] = []
    (tmp_path / "dataset.json").write_text(json.dumps(annotations), encoding="utf-8")
    code, out, err = pipeline(
        "manifest",
        "sample",
        "--images",
        corpus / "images",
        "--annotations",
        tmp_path / "dataset.json",
    )
    assert code == 0, err
    assert "note: 2 images without a caption, such as " in out + err
    assert "24 images (train 16, val 4, test 4), 110 captions" in out
    shutil.copytree(store.path, tmp_path / "features" / "sample" / "region.zarr")
    changes = [word for change in TINY for word in ("-S", f"training.sample.{change}")]
    code, out, err = pipeline("train", "--feature", "region", *changes)
    assert code == 0, err
    assert "1 training image without a caption: left out of training" in err
    code, out, err = pipeline("score", "--feature", "region", *changes)
    assert code == 0, err
    scored = System.open(Path("similarities/sample", f"{HEAD}.zarr"))
    assert scored.shape == (4, 15)
    assert sorted({*scored.caption_image.tolist()}) == [0, 2, 3]
    code, out, err = pipeline("evaluate", "--system", scored.path, "--json")
    assert code == 0, err
    (numbers,) = json.loads(out)
    assert (numbers["images"], numbers["images_without_caption"]) == (4, 1)
    matrix, owner = np.asarray(scored.similarity[:]), scored.caption_image
    assert numbers["t2i"]["R@1"] == pytest.approx(100 * (matrix.argmax(0) == owner).mean())
    assert numbers["i2t"]["R@1"] == pytest.approx(
        100 * (owner[matrix.argmax(1)] == np.arange(4))[[0, 2, 3]].mean()
    )
    code, out, err = pipeline("evaluate", "--system", scored.path)
    assert "images without caption: 1; they are candidates, never queries" in out + err
    code, out, err = pipeline("search", "a red house", "--top", "4")
    assert code == 0, err
    assert of_split["test"][1]["filename"] in out
    code, out, err = pipeline(
        "search", "--image", corpus / "images" / of_split["test"][1]["filename"], "--top", "1"
    )
    assert code == 0, err


def lines(*rows: str) -> str:
    return "\n".join(("image,caption,split", *rows)) + "\n"


def test_a_row_without_an_image_is_a_caption_of_no_image(corpus: Path, tmp_path: Path) -> None:
    files = sorted(path.name for path in (corpus / "images").iterdir())[:2]
    said: list[str] = []
    (tmp_path / "captions.csv").write_text(
        lines(
            f"{files[0]},a house,test",
            ",no house,test",
            f"{files[1]},a tree,test",
            f"{files[1]},,test",
            f"{files[0]},a car,test",
        ),
        encoding="utf-8",
    )
    left_out = LeftOut()
    made = manifest.build(
        "mine", corpus / "images", tmp_path / "captions.csv", left_out=left_out, say=said.append
    )
    made.save(tmp_path / "mine.parquet")
    split = Manifest.load(tmp_path / "mine.parquet").split("test")
    assert (split.captions.tolist(), split.caption_image.tolist()) == (
        ["a house", "a car", "a tree", "no house"],
        [0, 0, 1, -1],
    )
    assert len(made.images) == 2
    assert (statistics_of(made)["test"].images, statistics_of(made)["test"].captions) == (2, 4)
    assert left_out.counts["no caption"] == 1
    assert "note: 1 caption without an image, such as 'no house': candidates, never queries" in said
    assert split.with_images().captions.tolist() == ["a house", "a car", "a tree"]
    assert split.only(np.array([False, True])).caption_image.tolist() == [0, -1]
    pieces = list(split.pieces(1))
    assert [each.captions.tolist() for each in pieces] == [
        ["a house", "a car"],
        ["a tree", "no house"],
    ]
    assert pieces[1].caption_image.tolist() == [0, -1]


def test_an_image_whose_caption_is_empty_has_none(corpus: Path, tmp_path: Path) -> None:
    files = sorted(path.name for path in (corpus / "images").iterdir())[:3]
    said: list[str] = []
    (tmp_path / "captions.csv").write_text(
        lines(
            f"{files[0]},,test",
            f"{files[1]},a house,test",
            f"{files[1]},,test",
            f"{files[2]},,test",
            f"{files[2]},,test",
        ),
        encoding="utf-8",
    )
    left_out = LeftOut()
    made = manifest.build(
        "mine", corpus / "images", tmp_path / "captions.csv", left_out=left_out, say=said.append
    )
    made.save(tmp_path / "mine.parquet")
    split = Manifest.load(tmp_path / "mine.parquet").split("test")
    assert made.images["file"].tolist() == files[:2]
    assert (split.captions.tolist(), split.caption_ids.tolist()) == (["a house"], [0])
    assert split.caption_image.tolist() == [1]
    assert (statistics_of(made)["test"].images, statistics_of(made)["test"].captions) == (2, 1)
    assert (
        left_out.counts["no caption"] == 3
    )  # a blank beside a caption, and an image with two blanks
    assert f"note: 1 image without a caption, such as {files[0]}: candidates, never queries" in said
    assert split.of_pairs().image_ids.tolist() == [1]
    assert [len(piece.captions) for piece in split.pieces(1)] == [0, 1]
    captions = sources.Captions(made)
    assert (captions.ids.tolist(), captions.read([0])) == ([0], ["a house"])


def test_captions_of_images_that_have_one_have_the_digests_that_they_had(
    corpus: Path, tmp_path: Path
) -> None:
    files = sorted(path.name for path in (corpus / "images").iterdir())[:2]
    both, one = tmp_path / "both.csv", tmp_path / "one.csv"
    both.write_text(lines(f"{files[0]},a house,test", f"{files[1]},,test"), encoding="utf-8")
    one.write_text(lines(f"{files[0]},a house,test"), encoding="utf-8")
    with_image, without = (manifest.build("mine", corpus / "images", file) for file in (both, one))
    assert with_image.captions_digest == without.captions_digest
    assert with_image.images_digest != without.images_digest
    assert with_image.digest != without.digest


def test_a_split_of_captions_alone_is_refused(corpus: Path, tmp_path: Path) -> None:
    file = next((corpus / "images").iterdir()).name
    (tmp_path / "captions.csv").write_text(
        lines(f"{file},a house,test", ",no house,val"), encoding="utf-8"
    )
    with pytest.raises(
        InputError, match="'no house' belongs to no image, and its split has none; expected"
    ):
        manifest.build("mine", corpus / "images", tmp_path / "captions.csv")
