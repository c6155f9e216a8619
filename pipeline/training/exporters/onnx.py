"""Both sides of a head as ONNX graphs, for any number of images or captions and of items or tokens of each."""

import warnings
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from torch.export import Dim

from pipeline.files import atomic
from pipeline.heads.pooling.gpo import GPO
from pipeline.heads.sides import Side
from pipeline.heads.two_tower import TwoTower
from pipeline.parts.errors import first_line, refusing
from pipeline.text.bigru import BiGRUText
from pipeline.text.features import FeatureText
from pipeline.text.tokenizers import WORDS
from pipeline.text.vocabulary import UNKNOWN
from pipeline.training.exporters.base import Exported

README = """# {head}

Vectors of images and captions in one space; the dot product of two is their similarity. `export.json` says what the
graphs read and write, and how the images' items were made. Record of the head: `{record}`.

```python
import numpy as np, onnxruntime
images, captions = (onnxruntime.InferenceSession(f"{{side}}.onnx") for side in ("images", "captions"))
items, counts = np.zeros((2, 5, {width}), "float32"), np.array([5, 3])      # the second image has 3 items
{reading}
similarity = images.run(None, {{"items": items, "counts": counts}})[0] @ captions.run(
    None, {{"{name}": values, "counts": lengths}})[0].T
```
"""
TOKENS = """from tokenizers import Tokenizer
encoded = Tokenizer.from_file("tokenizer.json").encode_batch({caption})
lengths = np.array([len(caption.ids) for caption in encoded])
values = np.array([caption.ids + [0] * (lengths.max() - len(caption.ids)) for caption in encoded])"""
OTHER = """values, lengths = …, …      # see "captions" in export.json"""


class ImageSide(nn.Module):
    """The image side of a head, as a graph reads it."""

    def __init__(self, model: TwoTower) -> None:
        super().__init__()
        self.model = model

    def forward(self, items: Tensor, counts: Tensor) -> Tensor:
        """Embed images of items, float32 [B, N, D], and counts, int64 [B]: [B, d]."""
        return self.model.embed_images(Side(items, counts)).float()


class CaptionSide(nn.Module):
    """The caption side of a head, as a graph reads it.

    tower: the network that makes items of token ids. dtype: to which a store of its items rounds them.
    """

    def __init__(self, model: TwoTower, tower: nn.Module | None = None, dtype: str = "float32") -> None:
        super().__init__()
        self.model, self.tower, self.dtype = model, tower, getattr(torch, dtype)

    def forward(self, values: Tensor, counts: Tensor) -> Tensor:
        """Embed captions of token ids, int64 [B, T], or items, float32 [B, T, D], and counts, int64 [B]: [B, d]."""
        if self.tower is not None:
            values = self.tower(values, counts).to(self.dtype).float()
        return self.model.embed_captions(Side(values, counts)).float()


def _longest(exported: Exported) -> tuple[int, int]:
    """The most items of an image, and the most tokens or items of a caption, that the graphs take."""
    text, items = exported.head.text, exported.head.artefact.facts.items
    assert items is not None  # of stored features
    return items.items, text.made.items if isinstance(text, FeatureText) else text.longest  # type: ignore[attr-defined]


def _fix(side: nn.Module, longest: int) -> nn.Module:
    """Replace what GPO computes of sizes alone, by a GRU, by its results for sizes up to the longest."""
    for part in side.modules():
        if isinstance(part, GPO):
            part.fix(longest)
    return side


def write(exported: Exported, folder: Path) -> dict[str, Any]:
    """Write images.onnx, captions.onnx, tokenizer.json and README.md."""
    head, text = exported.head, exported.head.text
    width = head.artefact.facts.width
    made = text.made if isinstance(text, FeatureText) else None
    if made is not None and exported.made_by_tower is None:
        side, example = CaptionSide(exported.model), torch.zeros(2, 5, made.dimension)
    else:
        side = CaptionSide(exported.model, exported.made_by_tower and exported.made_by_tower[1],
                           made.dtype if made else "float32")
        example = torch.zeros(2, 5, dtype=torch.int64)
    of_images, of_captions = _longest(exported)
    of_items = _fix(ImageSide(exported.model), of_images)
    images = _graph(folder / "images.onnx", of_items, "items", torch.zeros(2, 5, width))
    name = "items" if example.is_floating_point() else "tokens"
    captions = _graph(folder / "captions.onnx", _fix(side, of_captions), name, example)
    tokenizer = None if name == "items" else _tokenizer(exported)
    if tokenizer is not None:
        tokenizer.save(str(folder / "tokenizer.json"))
    asked = TOKENS.format(caption='["a dog runs"]') if tokenizer else OTHER
    atomic.write_text(folder / "README.md", README.format(
        head=head.artefact.name, record=head.artefact.reference.identity, width=width, name=name, reading=asked))
    images["longest"], captions["longest"] = of_images, of_captions
    return {"images": images, "captions": captions | {"text": head.artefact.request.text, "tokenizer": (
        "tokenizer.json" if tokenizer else None), "made": made and made.compared}}


def _graph(file: Path, side: nn.Module, name: str, example: Tensor) -> dict[str, Any]:
    batch = file.stem
    shapes = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC}, {0: Dim.DYNAMIC})
    with warnings.catch_warnings(), refusing(Exception, lambda error: f"{file.stem}: cannot be written as a graph: "
                                             f"{first_line(error)}"):
        warnings.simplefilter("ignore")  # of torch about its own exporter
        torch.onnx.export(side.eval(), (example, torch.tensor([5, 3])), str(file), input_names=[name, "counts"],
                          output_names=["vectors"], dynamic_shapes=shapes, external_data=False, verbose=False)
    shape = [batch, name, *example.shape[2:]]
    return {"graph": file.name, "inputs": {name: [str(example.dtype).removeprefix("torch."), shape],
                                           "counts": ["int64", [batch]]}, "outputs": {"vectors": ["float32", [batch]]}}


def _tokenizer(exported: Exported) -> Tokenizer | None:
    """A tokenizer that gives the ids that the head reads, cut where the head cuts; None where `tokenizers` has none."""
    text = exported.head.text
    if exported.tower is not None:
        tower = exported.tower
        if not tower.tokenizer.is_fast:
            return None
        tokenizer = Tokenizer.from_str(tower.tokenizer.backend_tokenizer.to_str())
        if tower.lowers:
            tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), tokenizer.normalizer])
        tokenizer.enable_truncation(_longest(exported)[1])
        return tokenizer
    if not isinstance(text, BiGRUText) or text.vocabulary.tokenizer != "words":
        return None
    words = text.vocabulary.words
    tokenizer = Tokenizer(models.WordLevel(text.vocabulary.numbers, UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), "removed", invert=True)
    start, end = (words[numbers[0]] for numbers in (text.before, text.after))
    tokenizer.post_processor = processors.TemplateProcessing(f"{start} $A {end}", None, [
        (start, text.before[0]), (end, text.after[0])])
    tokenizer.enable_truncation(text.longest)
    return tokenizer
