"""The caption side of a head as a model of sentence-transformers, of modules that its own package
has.

The network's tokens, one linear layer to the joint space, their mean, maximum or first one, and
unit length.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn
from transformers import MODEL_MAPPING

from pipeline.foundation.files import atomic
from pipeline.foundation.parts.errors import InputError
from pipeline.make.text.tower import TowerEncoder
from pipeline.make.training.exporters.base import tower_of
from pipeline.make.training.head import Head

POOLINGS = {"mean": "mean", "max": "max", "cls": "cls"}
README = """# {head}

The caption side of a head: `SentenceTransformer(FOLDER).encode(captions)` gives unit vectors. Those of images come from
`pipeline embed`; the dot product of two is their similarity. Record of the head: `{record}`.
"""


def write(head: Head, folder: Path) -> dict[str, Any]:
    """Write the library's folder and README.md."""
    tower = tower_of(head)
    pooling = head.recipe.text_pooling.name
    why = ""
    if tower is None:
        why = f"has no module for the text encoder {head.artefact.request.text}"
    elif tower.padded is not None or not _is_known(tower.config):
        why = f"does not load the text part of a {tower.config.model_type} alone, or pads its captions otherwise"
    elif pooling not in POOLINGS:
        why = f"has no module for the pooling {pooling}; it has {', '.join(POOLINGS)}"
    if why or tower is None:
        raise InputError(
            f"{head.artefact.folder}: sentence-transformers {why}; --to onnx takes every two-tower head"
        )
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import (
        Dense,
        Normalize,
        Pooling,
        Transformer,
    )

    encoder: Any = head.model.text
    network: Any
    if isinstance(encoder, TowerEncoder):
        network = encoder.pretrained
        linear = encoder.linear
    else:
        network = tower.network()
        linear = encoder
    with TemporaryDirectory() as checkpoint:
        network.save_pretrained(checkpoint)
        tower.tokenizer.save_pretrained(checkpoint)
        tokens = Transformer(checkpoint, max_seq_length=tower.longest)
    width = tower.config.hidden_size
    dimension = head.model.dimension
    dense = Dense(
        width, dimension, activation_function=nn.Identity(), module_input_name="token_embeddings"
    )
    with torch.no_grad():
        dense.linear.load_state_dict(linear.linear.state_dict())
    model = SentenceTransformer(
        modules=[tokens, dense, Pooling(dimension, POOLINGS[pooling]), Normalize()],
        device="cpu",
        similarity_fn_name="dot",
    )
    model.save(str(folder), create_model_card=False)
    readme = README.format(head=head.artefact.name, record=head.artefact.reference.identity)
    atomic.write_text(folder / "README.md", readme)
    vectors = ["float32", ["captions", dimension]]
    return {"captions": {"text": "strings", "outputs": {"vectors": vectors}}}


def _is_known(config: Any) -> bool:
    """Whether the library loads the network of a configuration alone."""
    return type(config) in MODEL_MAPPING and not config.is_encoder_decoder
