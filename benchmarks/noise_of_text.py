"""The noise of a text encoder: the first caption of each image is a candidate, its other captions
are queries, and runs differ in batch size, dtype and attention kernel alone.

    python -m benchmarks.noise_of_text ENCODER CAPTIONS.json --out noise  # five minutes of a core
    pipeline noise noise/*.npz

ENCODER is a folder of a sentence encoder of BERT's kind for transformers, such as MiniLM, whose
vector is the mean of its tokens'; CAPTIONS.json is in Karpathy's form.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from pipeline.extensions.noise import variations
from pipeline.extensions.noise.variations import Variation
from pipeline.foundation.compute import device
from pipeline.foundation.evaluation.retrieval import Embeddings, Similarity
from pipeline.foundation.manifest import Split
from stages.progress import Progress


def captions_of(path: Path, split: str) -> list[list[str]]:
    """The captions of each image of a split."""
    images = json.loads(path.read_text())["images"]
    chosen = [image for image in images if image["split"] == split]
    return [[sentence["raw"] for sentence in image["sentences"]] for image in chosen]


class Encoder:
    """Embeds texts as the mean of their tokens' vectors, of length 1."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.network = AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval()

    @torch.inference_mode()
    def embed(self, texts: Sequence[str], variation: Variation) -> np.ndarray:
        """Vectors of texts [N, D], float32."""
        batches = []
        size = variation.batch_size
        for first in range(0, len(texts), size):
            tokens = self.tokenizer(
                list(texts[first : first + size]),
                padding=True,
                truncation=True,
                return_tensors="pt",
            )
            with device.autocast("cpu", variation.precision):
                states = self.network(**tokens).last_hidden_state.float()
            is_token = tokens["attention_mask"][..., None]
            means = (states * is_token).sum(1) / is_token.sum(1)
            batches.append(torch.nn.functional.normalize(means).numpy())
        return np.concatenate(batches)


def main() -> None:
    """Write the vectors of each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("encoder", type=Path)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--out", type=Path, default=Path("noise"))
    given = parser.parse_args()
    captions = captions_of(given.captions, given.split)
    candidates = [of_image[0] for of_image in captions]
    queries = [text for of_image in captions for text in of_image[1:]]
    image_of_query = np.repeat(np.arange(len(captions)), [len(each) - 1 for each in captions])
    encoder = Encoder(given.encoder)
    rows = np.arange(len(candidates))
    texts = np.array(queries, np.dtypes.StringDType())
    split = Split(given.split, rows, rows, np.arange(len(queries)), image_of_query, texts)

    def compute(variation: Variation) -> tuple[Split, Similarity]:
        found = encoder.embed(candidates, variation), encoder.embed(queries, variation)
        return split, Embeddings(*found)

    given.out.mkdir(parents=True, exist_ok=True)
    with Progress("noise", "run", len(variations.VARIATIONS)) as bar:
        variations.make(compute, variations.VARIATIONS, given.out, bar.reach)


if __name__ == "__main__":
    main()
