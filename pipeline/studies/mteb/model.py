"""What mteb is told of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.parts.errors import InputError

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta


def meta(name: str, revision: str, kind: str, **known: Any) -> ModelMeta:
    """Describe a model to mteb."""
    try:
        from mteb.models.model_meta import ModelMeta
    except ModuleNotFoundError:
        raise InputError("mteb is not installed: pip install 'vse-pipeline[mteb]'") from None
    return ModelMeta.create_empty({"name": f"vse-pipeline/{name}", "revision": revision[:40], "model_type": [kind],
                                   "modalities": ["image", "text"], "framework": ["PyTorch"], **known})
