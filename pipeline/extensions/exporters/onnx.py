"""Both sides of a head as ONNX graphs, for any number of images or captions and of items or tokens
of each.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from torch.export import Dim

from pipeline.foundation.files import atomic
from pipeline.foundation.parts.errors import first_line, refusing
from pipeline.make.features.extractors.tower import TextTower
from pipeline.make.features.store import ItemFormat
from pipeline.make.heads.pooling.gpo import GPO
from pipeline.make.heads.sides import Side
from pipeline.make.heads.two_tower import TwoTower
from pipeline.make.text import Text
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.features import FeatureText
from pipeline.make.text.tokenizers import WORDS
from pipeline.make.text.vocabulary import UNKNOWN
from pipeline.make.training.exporters.base import tower_of
from pipeline.make.training.head import Head

README = """# {head}

Vectors of images and captions in one space; the dot product of two is their similarity. `export.json` says what the
graphs read and write, and how the images' items were made. Of a set without items, whose count is 0, the vector is
zeros, which is similar to nothing. Record of the head: `{record}`.

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


class _Side(nn.Module):
    """A function of items or token ids and their counts, and the networks whose weights it uses.

    A head refuses a count that it has no items for, which a graph cannot: it takes a larger one for
    all items that there are, and gives zeros where there is none.
    """

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], *networks: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.networks = nn.ModuleList(networks)

    def forward(self, values: Tensor, counts: Tensor) -> Tensor:
        slots = torch.full_like(counts, values.shape[1])
        vectors = self.function(values, counts.clamp(min=1).minimum(slots))
        return torch.where((counts > 0).unsqueeze(1), vectors, 0.0)


def write(head: Head, folder: Path) -> dict[str, Any]:
    """Write images.onnx, captions.onnx, tokenizer.json and README.md."""
    text = head.text
    tower = tower_of(head)
    model = head.model
    stored = head.artefact.facts.items
    width = head.artefact.facts.width
    assert isinstance(model, TwoTower)
    assert stored is not None
    made: ItemFormat | None = None
    engine: Any = None
    network: nn.Module = nn.Identity()
    dtype = torch.float32
    if isinstance(text, FeatureText):
        made = text.made
        dtype = getattr(torch, made.dtype)
        longest = made.items
        if tower:
            engine = text.engine.engine
            network = engine.network
    else:
        longest = text.longest  # type: ignore[attr-defined]

    def embed_images(items: Tensor, counts: Tensor) -> Tensor:
        return model.embed_images(Side(items, counts)).float()

    def embed_captions(values: Tensor, counts: Tensor) -> Tensor:
        if engine:  # whose items the store rounds
            values = network(values, counts).to(dtype).float()
        return model.embed_captions(Side(values, counts)).float()

    tokenizer = None
    if made and not tower:
        name = "items"
        example = torch.zeros(2, 5, made.dimension)
    else:
        name = "tokens"
        example = torch.zeros(2, 5, dtype=torch.int64)
        tokenizer = _tokenizer(text, tower, longest)
    image_side = _Side(embed_images, model)
    image_example = torch.zeros(2, 5, width)
    images = _graph(folder / "images.onnx", image_side, "items", image_example, stored.items)
    caption_side = _Side(embed_captions, model, network)
    captions = _graph(folder / "captions.onnx", caption_side, name, example, longest)
    captions |= {
        "text": head.artefact.request.text,
        "tokenizer": None,
        "made": made and made.compared,
    }
    reading = OTHER
    if tokenizer is not None:
        tokenizer.save(str(folder / "tokenizer.json"))
        captions["tokenizer"] = "tokenizer.json"
        reading = TOKENS.format(caption='["a dog runs"]')
    readme = README.format(
        head=head.artefact.name,
        record=head.artefact.reference.identity,
        width=width,
        name=name,
        reading=reading,
    )
    atomic.write_text(folder / "README.md", readme)
    return {"images": images, "captions": captions}


def _graph(file: Path, side: nn.Module, name: str, example: Tensor, longest: int) -> dict[str, Any]:
    """Write a side for at most so many items or tokens, and describe the graph."""
    for part in side.modules():
        if isinstance(part, GPO):
            part.fix(longest)  # what it computes of sizes alone, by a GRU
    batch = file.stem
    shapes = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC}, {0: Dim.DYNAMIC})
    with (
        warnings.catch_warnings(),
        refusing(
            Exception,
            lambda error: f"{file.stem}: cannot be written as a graph: {first_line(error)}",
        ),
    ):
        warnings.simplefilter("ignore")  # of torch about its own exporter
        torch.onnx.export(
            side.eval(),
            (example, torch.tensor([5, 3])),
            str(file),
            input_names=[name, "counts"],
            output_names=["vectors"],
            dynamic_shapes=shapes,
            external_data=False,
            verbose=False,
        )
    dtype = str(example.dtype).removeprefix("torch.")
    shape = [batch, name, *example.shape[2:]]
    inputs = {name: [dtype, shape], "counts": ["int64", [batch]]}
    return {
        "graph": file.name,
        "longest": longest,
        "outputs": {"vectors": ["float32", [batch]]},
        "inputs": inputs,
    }


def _tokenizer(text: Text, tower: TextTower | None, longest: int) -> Tokenizer | None:
    """A tokenizer that gives the ids that the head reads, cut where the head cuts; None where
    `tokenizers` has none.
    """
    if tower is not None:
        tokenizer = _of_tower(tower)
    elif isinstance(text, BiGRUText) and text.vocabulary.tokenizer == "words":
        tokenizer = _of_words(text)
    else:
        return None
    if tokenizer is not None:
        tokenizer.enable_truncation(longest)
    return tokenizer


def _of_tower(tower: TextTower) -> Tokenizer | None:
    if not tower.tokenizer.is_fast:
        return None
    tokenizer = Tokenizer.from_str(tower.tokenizer.backend_tokenizer.to_str())
    if tower.lowers:
        steps = [normalizers.Lowercase(), tokenizer.normalizer]
        tokenizer.normalizer = normalizers.Sequence(steps)
    return tokenizer


def _of_words(text: BiGRUText) -> Tokenizer:
    words = text.vocabulary.words
    tokenizer = Tokenizer(models.WordLevel(text.vocabulary.numbers, UNKNOWN))
    steps = [normalizers.NFC(), normalizers.Lowercase()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), "removed", invert=True)
    (before,) = text.before
    (after,) = text.after
    start = words[before]
    end = words[after]
    tokenizer.post_processor = processors.TemplateProcessing(
        f"{start} $A {end}", None, [(start, before), (end, after)]
    )
    return tokenizer
