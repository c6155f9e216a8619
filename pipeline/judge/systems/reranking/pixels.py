"""Scorers of pairs that read the image files: published networks of `transformers`, with their own
image processors.

Each is named by its kind and a folder or a name on the Hugging Face hub,
`blip:Salesforce/blip-itm-base-coco`.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutputWithPooling

from pipeline.foundation import artefacts
from pipeline.foundation.compute import device
from pipeline.foundation.evaluation.retrieval import Ids, Progress, Singles
from pipeline.foundation.files import images, pretrained, weights
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest import Manifest, photographs
from pipeline.foundation.parts.errors import InputError, first_line, refusing
from pipeline.judge.systems.reranking.base import PairSource
from pipeline.judge.systems.scores.judged import manifest_rows


class PixelScorer(ABC):
    """The base class of scorers that read the manifest's image files. name: a folder, or a name on
    the hub.
    """

    kind: ClassVar[str]  # its key of `SCORERS`
    network: ClassVar[str]  # its class in `transformers`
    # further arguments of its forward pass, besides pixels and words
    options: ClassVar[dict[str, Any]] = {}
    gives_logits = True

    def __init__(self, name: str, source: PairSource) -> None:
        how = f"name it as {self.kind}:FOLDER"
        folder = weights.folder(name, f"{self.kind} checkpoint", how)
        kind = getattr(transformers, self.network)
        config = pretrained.configuration(folder, self.network)
        if not isinstance(config, kind.config_class):
            raise InputError(
                f"{name}: is a {config.model_type}; expected {kind.config_class.model_type}"
            )
        self.processor: Any = pretrained.processor(folder, self.network)
        attention = pretrained.own_attention(kind)
        network = pretrained.network(folder, kind, config, self.network, attention)
        self.model: Any = network.eval()
        # The processor names where its files are.
        self.processing = str(self.processor).replace(str(folder), "")
        self.model.to(device.require(source.device))
        self.weights = weights.digest(self.model)
        self.name = name
        if folder.as_posix() == name:
            self.name = folder.resolve().name
        self.source = source
        self.images = Manifest.load(source.paths.manifest(source.images))
        self.captions = Manifest.load(source.paths.manifest(source.captions))
        self.images.require_photographs(f"the scorer {self.kind}")
        self.photographs = photographs.reference(self.images).identity

    @property
    def made_from(self) -> dict[str, Any]:
        """The network by its tensors and its configuration, the manifests and the photographs."""
        settings = self.model.config.to_dict()
        config = {key: value for key, value in settings.items() if not key.startswith("_")}
        return {
            "kind": self.kind,
            "name": self.name,
            "weights": self.weights,
            "config": digest([str(config), self.processing]),
            "images": self.images.digest,
            "captions": self.captions.digest,
            "photographs": self.photographs,
        }

    @property
    def versions(self) -> artefacts.Versions:
        """The version of decoding images."""
        return artefacts.versions("images")

    @torch.inference_mode()
    def score(
        self, image_ids: Ids, caption_ids: Ids, progress: Progress = lambda pairs: None
    ) -> Singles:
        """Score pairs, see `PairScorer.score`."""
        rows = manifest_rows(self.images, "image", image_ids)
        captions = self.captions.rows(["caption"])["caption"].to_numpy()
        texts = captions[manifest_rows(self.captions, "caption", caption_ids)]
        # Pairs of an image go together, which is then decoded once.
        lengths = np.array([len(text) for text in texts])
        order = np.lexsort((lengths, rows))
        scores_of_pairs = np.empty(len(rows), np.float32)
        size = self.source.batch_size
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            unique, place = np.unique(rows[batch], return_inverse=True)
            inputs = self._prepared(unique, texts[batch].tolist())
            scores = self.scores(dict(inputs), torch.from_numpy(place))
            scores_of_pairs[batch] = scores.float().cpu().numpy()
            progress(start + len(batch))
        return scores_of_pairs

    def _path(self, row: int) -> Any:
        return self.images.images_folder / self.images.images["file"].iloc[row]

    def _prepared(self, rows: np.ndarray, texts: list[str]) -> Any:
        """The processor's inputs. Some round a narrow image to nothing, so the narrowest is
        named.
        """
        pictures = [self._decoded(row) for row in rows]
        ratios = [min(picture.size) / max(picture.size) for picture in pictures]
        narrowest = ratios.index(min(ratios))
        row = rows[narrowest]
        narrow = pictures[narrowest]
        with refusing(
            ValueError,
            lambda error: (
                f"{self._path(row)}: {narrow.width} x {narrow.height} pixels; "
                f"{self.name} does not prepare it or another of {len(rows)} images: {first_line(error)}"
            ),
        ):
            inputs = self.processor(
                images=pictures, text=texts, padding=True, truncation=True, return_tensors="pt"
            )
            return inputs.to(self.source.device)

    def _decoded(self, row: int) -> Any:
        path = self._path(row)
        with refusing(images.ImageError, lambda error: f"{path}: {error}"):
            return images.decode(path)

    @abstractmethod
    def scores(self, inputs: dict[str, Tensor], image: Tensor) -> Tensor:
        """The scores, float [P], of pairs; inputs: their words, and pixels of M images; image: each
        one's, [P].
        """


def _difference(logits: Tensor) -> Tensor:
    """Compute the scores [P] of pairs from their logits [P, 2], of a negative and of a positive."""
    return logits[:, 1] - logits[:, 0]


class Shared(nn.Module):
    """A vision network that runs once for each image; all pairs of the image share its states."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.image = torch.empty(0, dtype=torch.int64)

    def forward(self, pixel_values: Tensor, **options: Any) -> BaseModelOutputWithPooling:
        """Compute the states of the images of pairs."""
        states = self.network(pixel_values=pixel_values, **options).last_hidden_state
        image = self.image.to(states.device)
        return BaseModelOutputWithPooling(last_hidden_state=states[image])


class Blip(PixelScorer):
    """BLIP's image-text matching (Li et al. 2022): the difference of its two logits."""

    kind = "blip"
    network = "BlipForImageTextRetrieval"
    logits = "itm_score"  # the field of the network's output that has both

    def __init__(self, name: str, source: PairSource) -> None:
        super().__init__(name, source)
        self.model.vision_model = Shared(self.model.vision_model)

    def scores(self, inputs: dict[str, Tensor], image: Tensor) -> Tensor:
        self.model.vision_model.image = image
        output = self.model(**inputs, **self.options)
        return _difference(getattr(output, self.logits))


class Blip2(Blip):
    """BLIP-2's image-text matching (Li et al. 2023), the mean over its queries."""

    kind = "blip2"
    network = "Blip2ForImageTextRetrieval"
    options: ClassVar[dict[str, Any]] = {"use_image_text_matching_head": True}
    logits = "logits_per_image"


class Vilt(PixelScorer):
    """ViLT's ranking score (Kim et al. 2021), one logit."""

    kind = "vilt"
    network = "ViltForImageAndTextRetrieval"

    def scores(self, inputs: dict[str, Tensor], image: Tensor) -> Tensor:
        of_pairs = dict(inputs)
        for name, value in inputs.items():
            if name.startswith("pixel_"):
                of_pairs[name] = value[image.to(value.device)]
        logits: Tensor = self.model(**of_pairs).logits
        if logits.shape[1] == 2:
            return _difference(logits)
        return logits[:, 0]


class BridgeTower(Vilt):
    """BridgeTower's image-text matching (Xu et al. 2023): the difference of its two logits."""

    kind = "bridgetower"
    network = "BridgeTowerForImageAndTextRetrieval"
