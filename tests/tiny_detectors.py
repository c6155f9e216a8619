"""Detectors of `transformers` in folders, narrow and random: every entry of its two mappings that
gives boxes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

hf: Any = transformers  # its configurations take what their checkpoints hold
SIDE = 64  # pixels of the networks with one size
STAGES = ["stage2", "stage3", "stage4"]
NARROW: dict[str, Any] = {
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 24, 32],
    "depths": [1] * 4,
    "layer_type": "basic",
}
LAYERS = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "num_queries": 12,
}
HYBRID = {
    **LAYERS,
    "encoder_hidden_dim": 32,
    "encoder_in_channels": [16, 24, 32],
    "decoder_in_channels": [32] * 3,
    "num_denoising": 0,
    "hidden_expansion": 0.5,
}
WINDOWED = {
    "d_model": 32,
    "decoder_layers": 2,
    "decoder_ffn_dim": 32,
    "decoder_self_attention_heads": 2,
    "decoder_cross_attention_heads": 2,
    "num_queries": 12,
    "group_detr": 1,
}
VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
LABELS = {"id2label": dict(enumerate(["dog", "cat", "car", "sky", "tree"]))}
PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    ".",
    "a",
    "dog",
    "cat",
    "car",
    "detect",
    ",",
]


def resnet(stages: list[str]) -> Any:
    return hf.ResNetConfig(**NARROW, out_features=stages)


def hgnet(stages: list[str] = STAGES) -> Any:
    return hf.HGNetV2Config(
        depths=[1] * 4,
        embedding_size=8,
        hidden_sizes=[8, 16, 24, 32],
        stem_channels=[3, 8, 8],
        stage_in_channels=[8, 8, 16, 24],
        stage_mid_channels=[4, 4, 8, 8],
        stage_out_channels=[8, 16, 24, 32],
        stage_num_blocks=[1] * 4,
        stage_downsample=[False, True, True, True],
        stage_light_block=[False, False, True, True],
        stage_kernel_size=[3] * 4,
        stage_numb_of_layers=[1] * 4,
        out_features=stages,
    )


def swin() -> Any:
    return hf.SwinConfig(
        embed_dim=8,
        depths=[1] * 4,
        num_heads=[1, 1, 2, 2],
        window_size=4,
        image_size=SIDE,
        out_indices=[2, 3, 4],
    )


def bert() -> Any:
    return hf.BertConfig(
        **VIT | {"num_hidden_layers": 1},
        intermediate_size=32,
        vocab_size=1100,
        max_position_embeddings=64,
    )


def text(width: int, limit: int = 16) -> dict[str, Any]:
    return {
        "hidden_size": width,
        "num_attention_heads": 2,
        "num_hidden_layers": 1,
        "intermediate_size": 32,
        "vocab_size": 1100,
        "max_position_embeddings": limit,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }


def rt_resnet() -> Any:
    return hf.RTDetrResNetConfig(**NARROW, out_features=STAGES)


def lw_detr() -> Any:
    vit = hf.LwDetrViTConfig(
        **VIT,
        image_size=SIDE,
        pretrain_image_size=SIDE,
        patch_size=16,
        num_windows=4,
        window_block_indices=[0],
        out_indices=[1, 2],
    )
    return hf.LwDetrConfig(
        backbone_config=vit, projector_scale_factors=[2.0, 0.5], **WINDOWED, **LABELS
    )


def rf_detr() -> Any:
    vit = hf.RfDetrDinov2Config(
        **VIT, image_size=SIDE, patch_size=16, num_windows=2, out_features=["stage1", "stage2"]
    )
    return hf.RfDetrConfig(backbone_config=vit, **WINDOWED, **LABELS)


def omdet() -> Any:
    return hf.OmDetTurboConfig(
        backbone_config=swin(),
        apply_layernorm_after_vision_backbone=False,
        text_config=hf.CLIPTextConfig(**text(48, 77)),
        image_size=SIDE,
        text_projection_in_dim=48,
        text_projection_out_dim=48,
        class_embed_dim=48,
        task_encoder_hidden_dim=32,
        num_queries=12,
        encoder_hidden_dim=32,
        decoder_hidden_dim=32,
        vision_features_channels=[32] * 3,
        encoder_in_channels=[16, 32, 64],
        encoder_attention_heads=2,
        decoder_num_heads=2,
        encoder_dim_feedforward=32,
        decoder_dim_feedforward=32,
        encoder_layers=1,
        decoder_num_layers=2,
    )


def owl(kind: Any) -> Any:
    vision = {**VIT, "intermediate_size": 32, "image_size": SIDE, "patch_size": 16}
    return kind(text_config=text(32), vision_config=vision, projection_dim=32)


SQUARE = {"height": SIDE, "width": SIDE}
ASPECT = {"shortest_edge": 64, "longest_edge": 107}
# Model type -> what makes its configuration, its image processor and that one's size.
CLOSED: dict[str, tuple[Callable[[], Any], str, dict[str, int]]] = {
    "detr": (
        lambda: hf.DetrConfig(backbone_config=resnet(["stage4"]), **LAYERS, **LABELS),
        "DetrImageProcessor",
        ASPECT,
    ),
    "table-transformer": (
        lambda: hf.TableTransformerConfig(backbone_config=resnet(["stage4"]), **LAYERS, **LABELS),
        "DetrImageProcessor",
        ASPECT,
    ),
    "conditional_detr": (
        lambda: hf.ConditionalDetrConfig(backbone_config=resnet(["stage4"]), **LAYERS, **LABELS),
        "ConditionalDetrImageProcessor",
        ASPECT,
    ),
    "dab-detr": (
        lambda: hf.DabDetrConfig(
            backbone_config=resnet(["stage4"]),
            hidden_size=32,
            **LABELS,
            **{name: value for name, value in LAYERS.items() if name != "d_model"},
        ),
        "ConditionalDetrImageProcessor",
        ASPECT,
    ),
    "deformable_detr": (
        lambda: hf.DeformableDetrConfig(backbone_config=resnet(STAGES), **LAYERS, **LABELS),
        "DeformableDetrImageProcessor",
        ASPECT,
    ),
    "rt_detr": (
        lambda: hf.RTDetrConfig(backbone_config=rt_resnet(), **HYBRID, **LABELS),
        "RTDetrImageProcessor",
        SQUARE,
    ),
    "rt_detr_v2": (
        lambda: hf.RTDetrV2Config(backbone_config=rt_resnet(), **HYBRID, **LABELS),
        "RTDetrImageProcessor",
        SQUARE,
    ),
    "d_fine": (
        lambda: hf.DFineConfig(backbone_config=hgnet(), **HYBRID, **LABELS),
        "RTDetrImageProcessor",
        SQUARE,
    ),
    "deimv2": (
        lambda: hf.Deimv2Config(backbone_config=hgnet(), **HYBRID, **LABELS),
        "RTDetrImageProcessor",
        SQUARE,
    ),
    "lw_detr": (lw_detr, "DeformableDetrImageProcessor", SQUARE),
    "rf_detr": (rf_detr, "RfDetrImageProcessor", SQUARE),
    "yolos": (
        lambda: hf.YolosConfig(
            **VIT,
            intermediate_size=32,
            image_size=[64, 96],
            patch_size=16,
            num_detection_tokens=12,
            **LABELS,
        ),
        "YolosImageProcessor",
        ASPECT,
    ),
}
# They look for parts of pages; their own post-processing sorts these for reading.
PAGES: dict[str, tuple[Callable[[], Any], str, dict[str, int]]] = {
    "pp_doclayout_v2": (
        lambda: hf.PPDocLayoutV2Config(
            backbone_config=hgnet(),
            class_thresholds=[0.5] * 5,
            class_order=[*range(5)],
            **HYBRID,
            **LABELS,
        ),
        "PPDocLayoutV2ImageProcessor",
        SQUARE,
    ),
    "pp_doclayout_v3": (
        lambda: hf.PPDocLayoutV3Config(
            backbone_config=hgnet(["stage1", *STAGES]),
            x4_feat_dim=8,
            mask_feature_channels=[32, 32],
            **HYBRID,
            **LABELS,
        ),
        "PPDocLayoutV3ImageProcessor",
        SQUARE,
    ),
}
PROMPTED: dict[str, tuple[Callable[[], Any], str, dict[str, int]]] = {
    "grounding-dino": (
        lambda: hf.GroundingDinoConfig(
            backbone_config=swin(), text_config=bert(), max_text_len=16, **LAYERS
        ),
        "GroundingDinoImageProcessor",
        ASPECT,
    ),
    "mm-grounding-dino": (
        lambda: hf.MMGroundingDinoConfig(
            backbone_config=swin(), text_config=bert(), max_text_len=16, **LAYERS
        ),
        "GroundingDinoImageProcessor",
        ASPECT,
    ),
    "omdet-turbo": (omdet, "DetrImageProcessor", SQUARE),
    "owlvit": (lambda: owl(hf.OwlViTConfig), "OwlViTImageProcessor", SQUARE),
    "owlv2": (lambda: owl(hf.Owlv2Config), "Owlv2ImageProcessor", SQUARE),
}
PROCESSORS = {
    "grounding-dino": "GroundingDinoProcessor",
    "mm-grounding-dino": "GroundingDinoProcessor",
    "omdet-turbo": "OmDetTurboProcessor",
    "owlvit": "OwlViTProcessor",
    "owlv2": "Owlv2Processor",
}


def written(folder: Path, model_type: str) -> Path:
    """A detector with weights drawn wide, so that queries differ, its preprocessing and its
    tokenizer.
    """
    make, processor, size = (CLOSED | PAGES | PROMPTED)[model_type]
    config = make()
    torch.manual_seed(0)
    auto = (
        hf.AutoModelForZeroShotObjectDetection
        if model_type in PROMPTED
        else hf.AutoModelForObjectDetection
    )
    redraw(auto.from_config(config)).save_pretrained(folder)
    images = getattr(hf, processor)(size=size)
    if model_type in PROMPTED:
        getattr(hf, PROCESSORS[model_type])(images, tokenizer(model_type)).save_pretrained(folder)
    else:
        images.save_pretrained(folder)
    return folder


def redraw(network: Any) -> Any:
    with torch.no_grad():
        for values in network.parameters():
            if values.ndim > 1:
                values.normal_(std=1 / math.sqrt(values[0].numel()))
    return network.eval()


def tokenizer(model_type: str) -> Any:
    if "grounding" in model_type:
        return hf.BertTokenizer(vocab={piece: number for number, piece in enumerate(PIECES)})
    letters = [chr(number) for number in range(ord("a"), ord("z") + 1)]
    pieces = [
        "!",
        "<|startoftext|>",
        "<|endoftext|>",
        *letters,
        *(f"{letter}</w>" for letter in letters),
    ]
    return hf.CLIPTokenizer(
        vocab={piece: number for number, piece in enumerate(pieces)},
        merges=[],
        pad_token="!",
        model_max_length=16,
    )
