"""The engine `text-tower`: the token vectors of captions by a frozen text network, computed once.

A head with the text encoder `features` then trains on the store as it would on the text encoder
`tokens` with frozen weights, without running the network in every epoch.
"""

import torch

from pipeline.make.features.extractors.base import Computed, Engine, computed
from pipeline.make.features.extractors.options import CaptionTokensOptions
from pipeline.make.features.extractors.runtime import Runtime
from pipeline.make.features.extractors.tower import TextTower, TokenVectors


class CaptionTokens(Engine):
    """A text network and its tokenizer; an item is a token, including those that the tokenizer
    adds.
    """

    def __init__(self, runtime: Runtime, options: CaptionTokensOptions) -> None:
        super().__init__(runtime, options)
        self.tower = TextTower.of(options.weights, "set the option weights to the folder")
        network = TokenVectors(self.tower.network(), self.tower.padded)
        self.network = network.to(runtime.device).eval()
        self.items = min(options.tokens, self.tower.longest)
        self.dimension = int(self.tower.config.hidden_size)
        self.weights = self.tower.digest

    def prepare(self, text: str) -> list[int]:
        """Convert a caption to token ids; a long one is cut."""
        captions = self.tower.read([text])
        numbers: list[int] = self.tower.tokenizer(captions)["input_ids"][0]
        if len(numbers) <= self.items:
            return numbers
        after = self.tower.after
        return [*numbers[: self.items - len(after)], *after]

    @torch.inference_mode()
    def extract(self, batch: list[list[int]], sizes: list[tuple[int, int]]) -> list[Computed]:
        """Compute the vectors of each caption's tokens, in order."""
        captions = [torch.tensor(numbers) for numbers in batch]
        tokens = torch.nn.utils.rnn.pad_sequence(captions, batch_first=True)
        counts = [len(numbers) for numbers in batch]
        lengths = self.runtime.send(torch.tensor(counts))
        with self.runtime.autocast():
            vectors = self.network(self.runtime.send(tokens), lengths).float()
        return [computed(row[:count]) for row, count in zip(vectors, counts, strict=True)]
