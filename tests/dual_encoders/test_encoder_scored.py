"""A dual encoder is measured and compared like a file of scores, without a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny_dual_encoders
from PIL import Image

from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.parts.errors import InputError, InputWarning
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns
from pipeline.make import dual_encoders
from pipeline.make.dual_encoders.base import Usage
from pipeline.make.dual_encoders.embedding import embed_part

pytestmark = pytest.mark.slow


def test_its_scores_are_products_of_what_it_embeds(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    tiny_dual_encoders.clip(tmp_path / "clip")
    (tmp_path / "images").mkdir()
    for name in ("a", "b"):
        Image.fromarray(rng.integers(0, 255, (40, 40, 3), np.uint8)).save(
            tmp_path / "images" / f"{name}.png"
        )
    rows = ["a.png,a red circle", "b.png,the blue square", "a.png,a small photo"]
    (tmp_path / "captions.csv").write_text(
        "\n".join(["image,caption", *rows, "none.png,x"]) + "\n", encoding="utf-8"
    )
    columns = Columns(images=tmp_path / "images", captions=tmp_path / "captions.csv")
    with pytest.warns(InputWarning) as warned:
        system = open_system("clip:clip", columns, root=tmp_path)
    missing, every, cut = [str(each.message) for each in warned]
    assert "left out 1 of 4 captions (image missing: 1)" in missing
    assert "all its 2 images are measured, as the split test" in every
    assert "2 of 3 captions (66.7 %) are longer than 12 tokens" in cut
    assert (system.shape, system.has_ids, system.name) == ((2, 3), True, "clip")
    files = [GalleryFile(str(tmp_path / "images" / f"{name}.png")) for name in ("a", "b")]
    texts = [row.split(",")[1] for row in rows]
    vectors = embed_part(dual_encoders.load(f"clip:{tmp_path / 'clip'}", Usage()), files, texts, 2)
    expected = vectors.images @ vectors.captions.T
    owned = np.argsort(
        [0, 1, 0], kind="stable"
    )  # a manifest has an image's captions one after another
    assert np.allclose(system.scores.block(slice(0, 2), slice(0, 3)), expected[:, owned], atol=1e-5)
    assert system.caption_image.tolist() == [0, 0, 1]
    with pytest.raises(
        InputError, match="name what it is to embed: --images FOLDER --captions FILE"
    ):
        open_system("clip:clip", root=tmp_path)
