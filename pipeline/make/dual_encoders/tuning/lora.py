"""Low-rank adapters (LoRA, Hu et al., ICLR 2022), by the library peft."""

from torch import nn

from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError
from pipeline.make.dual_encoders.tuning.options import LoRAOptions
from pipeline.make.dual_encoders.tuning.weights import BLOCK, Weights

PACKAGE = "finetuning"


class LoRA(Weights):
    """Adapters in both towers' blocks.

    They are in every linear layer, convolution of 1 x 1 pixel, and torch's attention as a whole:
    that calls its `out_proj` by its weight, so that an adapter of this layer alone would never
    learn. Outside of blocks there are none: the last attention of SigLIP's image tower has one
    query, whose weights would learn nothing either.
    """

    def __init__(self, options: LoRAOptions) -> None:
        self.options = options

    def choose(self, network: nn.Module) -> list[str]:
        """Put adapters into a network, and name their weights, see `Weights.choose`."""
        extras.require(PACKAGE, "LoRA")
        from peft import LoraConfig
        from peft.tuners.lora import LoraModel

        attentions = tuple(
            f"{name}."
            for name, module in network.named_modules()
            if isinstance(module, nn.MultiheadAttention)
        )
        targets = []
        for name, module in network.named_modules():
            is_of_block = BLOCK.match(f"{name}.") and not name.startswith(attentions)
            if is_of_block and _is_adapted(module):
                targets.append(f"network.{name}")
        if not targets:
            raise InputError(
                "LoRA: the network has no blocks with linear layers that are known; train other weights"
            )
        options = self.options
        # peft takes whatever has a `config` for a network of transformers, also one of
        # sentence-transformers.
        whole = nn.ModuleDict({"network": network})
        self.adapted = LoraModel(
            whole,
            LoraConfig(
                r=options.rank,
                lora_alpha=options.alpha,
                target_modules=targets,
                lora_dropout=options.dropout,
            ),
            "default",
        )
        return super().choose(network)

    def finish(self, network: nn.Module) -> None:
        """Add what the adapters have learned to the weights that they adapt, and remove them."""
        self.adapted.merge_and_unload()

    def _has(self, name: str) -> bool:
        return ".lora_" in name


def _is_adapted(module: nn.Module) -> bool:
    if isinstance(module, nn.Conv2d):
        return module.kernel_size == (1, 1) and module.groups == 1
    return isinstance(module, nn.Linear | nn.MultiheadAttention)
