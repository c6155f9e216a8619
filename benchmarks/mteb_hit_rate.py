"""R@K beside the hit_rate_at_k that mteb measures for the same head on the same split: a table.

    python -m benchmarks.mteb_hit_rate --root flickr8k-run --dataset flickr8k \\
        --head vse2ad-region-bigru-s0

mteb gets the photographs, so their features are made again. `ours` is of these features' vectors:
OpenVINO and torch round otherwise, and may order near candidates differently.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mteb
import numpy as np

from pipeline.extensions.mteb.models import MtebEncoder, of_split
from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import RECALLS, evaluate
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.settings.paths import Paths


class Kept(MtebEncoder):
    """Keeps what it embedded, so that features of an image are made once and both numbers are of
    the same vectors.
    """

    def of_task(self, manifest: Manifest, split: str) -> tuple[np.ndarray, np.ndarray]:
        """Vectors of a split's images and captions, in its order."""
        task = of_split(manifest, split, "i2t")
        task.load_data()
        data = task.dataset["default"][split]
        images, captions = (
            np.concatenate(
                [super(Kept, self).encode([{kind: rows[kind]}]) for rows in data[side].iter(32)]
            )
            for side, kind in (("queries", "image"), ("corpus", "text"))
        )
        self.kept = {"image": images, "text": captions}
        return images, captions

    def encode(self, inputs, **asked):  # type: ignore[no-untyped-def]
        """The vectors of the whole split, which mteb asks for in its order."""
        kinds = {kind for batch in inputs for kind in batch if kind in self.kept}
        assert len(kinds) == 1, kinds
        return self.kept[kinds.pop()]


def main(root: Path, dataset: str, head: str, split: str) -> None:
    """Embed once, measure twice."""
    paths = Paths(root)
    manifest = Manifest.load(paths.manifest(dataset))
    model = Kept.of_head(paths, dataset, head)
    assert isinstance(model, Kept)
    images, captions = model.of_task(manifest, split)
    found = evaluate(retrieval.Embeddings(images, captions), manifest.split(split).caption_image)
    print("| | R@K, ours | 100 x hit_rate_at_k, mteb | nDCG@10, mteb |\n|:--|--:|--:|--:|")
    for direction in ("i2t", "t2i"):
        result = mteb.evaluate(
            model, of_split(manifest, split, direction), cache=None, show_progress_bar=False
        )
        scores = result.task_results[0].scores[split][0]
        for k in RECALLS:
            print(
                f"| {direction} R@{k} | {found[direction, f'R@{k}']:.3f} | {100 * scores[f'hit_rate_at_{k}']:.3f} | "
                f"{scores['ndcg_at_10']:.3f} |"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path())
    parser.add_argument("--dataset", default="flickr8k")
    parser.add_argument("--head", default="vse2ad-region-bigru-s0")
    parser.add_argument("--split", default="val")
    given = parser.parse_args()
    main(given.root, given.dataset, given.head, given.split)
