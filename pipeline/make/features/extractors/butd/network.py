"""Faster R-CNN, ResNet-101 C4, 1,600 objects and 400 attributes, made of detectron2's parts.

Layers as in Caffe's `models/vg/ResNet-101/faster_rcnn_end2end_final/test.prototxt`, names as in the
port's weights. Importing this file needs detectron2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from detectron2.layers import ShapeSpec
from detectron2.modeling.backbone.resnet import BasicStem, BottleneckBlock, ResNet
from detectron2.modeling.box_regression import Box2BoxTransform
from detectron2.modeling.proposal_generator.rpn import StandardRPNHead
from detectron2.modeling.roi_heads.fast_rcnn import FastRCNNOutputLayers
from torch import nn
from torch.nn.functional import max_pool2d, relu
from torchvision.ops import roi_pool

from pipeline.make.features.extractors.backend import Forward
from pipeline.make.features.extractors.butd.geometry import RATIOS, SCALES, STRIDE

# Data/genome/1600-400-20; each has one more class, "none", the last.
OBJECTS = 1600
ATTRIBUTES = 400
DIMENSION = 2048
POOLED = 14  # cells a side of ROIPool
# Divisors of dx dy dw dh: detectron2's MODEL.ROI_BOX_HEAD.BBOX_REG_WEIGHTS, with which the port
# runs its weights.
DELTA_WEIGHTS = (10.0, 10.0, 5.0, 5.0)
BOXES_AT_ONCE = 64  # bounds the memory of res5
# An untrained block adds this share of its branch, so that 33 blocks do not explode (after Goyal et
# al. 2017, 5.1).
BRANCH_SHARE = 0.1


@dataclass(frozen=True)
class Regions:
    """The network's output for R boxes."""

    features: torch.Tensor  # [R, 2048]
    objects: torch.Tensor  # [R, 1600], probabilities; the background's is one minus their sum
    attributes: torch.Tensor  # [R, 400], probabilities in the same way
    deltas: torch.Tensor  # [R, 1600, 4], corrections of the box for each object class


class FasterRCNN(nn.Module):
    """The network. Its parts are called one by one: an image's map, the proposals' maps, the
    regions.
    """

    def __init__(self) -> None:
        super().__init__()
        stem = Stem(norm="FrozenBN")
        stages = [stage(3, 1, 64, 256), stage(4, 2, 256, 512), stage(23, 2, 512, 1024)]
        self.backbone = ResNet(stem, stages, out_features=["res4"])
        self.proposal_generator = ProposalGenerator()
        self.roi_heads = RegionHead()
        # Pixels range to about 128, which learned norms account for.
        stem.conv1.norm.weight.fill_(1 / 128)
        for block in self.modules():
            if isinstance(block, BottleneckBlock):
                block.conv3.norm.weight.fill_(BRANCH_SHARE)

    def feature_maps(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute the maps of res4 at 1/16, [B, 1024, h, w], of network inputs of one size [B, 3,
        H, W].
        """
        return self.backbone(pixels)["res4"]


class Stem(BasicStem):
    """The first layers with Caffe's pooling: no padding, and windows that reach beyond the map
    count.
    """

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute the first map: [B, 64, H / 4, W / 4], rounded up."""
        first = relu(self.conv1(pixels))
        return max_pool2d(first, kernel_size=3, stride=2, padding=0, ceil_mode=True)


def stage(
    blocks: int, stride: int, channels_in: int, channels_out: int, dilation: int = 1
) -> list[nn.Module]:
    """Build a stage of a Caffe ResNet: the stride is in the 1 x 1 convolution, statistics and
    scales are fixed.
    """
    return ResNet.make_stage(
        BottleneckBlock,
        blocks,
        stride_per_block=[stride] + [1] * (blocks - 1),
        in_channels=channels_in,
        out_channels=channels_out,
        bottleneck_channels=channels_out // 4,
        stride_in_1x1=True,
        norm="FrozenBN",
        dilation=dilation,
    )


class ProposalGenerator(nn.Module):
    """Two 1 x 1 convolutions, for objectness and corrections, over one of 3 x 3 with 512
    channels.
    """

    def __init__(self) -> None:
        super().__init__()
        anchors = len(SCALES) * len(RATIOS)
        self.rpn_head = StandardRPNHead(in_channels=1024, num_anchors=anchors, conv_dims=[512])

    def forward(self, feature_map: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Score and correct the anchors of a map: objectness [12, h, w] and corrections [48, h,
        w].
        """
        objectness, deltas = self.rpn_head([feature_map[None]])
        return objectness[0][0], deltas[0][0]


class RegionHead(nn.Module):
    """ROIPool over the map, res5 at stride 1 with dilation 2, the mean, and the classifiers."""

    def __init__(self) -> None:
        super().__init__()
        self.res5 = nn.Sequential(*stage(3, 1, 1024, DIMENSION, dilation=2))
        self.box_predictor = Predictor()

    def forward(
        self, feature_map: torch.Tensor, boxes: torch.Tensor, res5: Forward | None = None
    ) -> Regions:
        """Compute features, classes, attributes and corrections of boxes [R, 4] in pixels of the
        network's input.
        """
        # `res5` computes that stage, from [B, 1024, 14, 14] to [B, 2048, 14, 14]; the network's own
        # by default.
        run = res5 or self.res5
        features = []
        for some in boxes.split(BOXES_AT_ONCE):
            cells = roi_pool(feature_map[None], [some], POOLED, spatial_scale=1 / STRIDE)
            features.append(run(cells).float().mean(dim=(2, 3)))
        return self.box_predictor(torch.cat(features))


class Predictor(FastRCNNOutputLayers):
    """Classes, corrections, and attributes of a box given its feature and its most likely class."""

    def __init__(self) -> None:
        super().__init__(
            ShapeSpec(channels=DIMENSION),
            num_classes=OBJECTS,
            box2box_transform=Box2BoxTransform(weights=DELTA_WEIGHTS),
        )
        self.cls_embedding = nn.Embedding(OBJECTS + 1, 256)
        self.fc_attr = nn.Linear(DIMENSION + 256, 512)
        self.attr_score = nn.Linear(512, ATTRIBUTES + 1)

    def forward(self, features: torch.Tensor) -> Regions:
        """Classify pooled boxes [R, 2048]."""
        logits = self.cls_score(features)
        # May be "none", as in Caffe's ArgMax layer.
        likeliest = self.cls_embedding(logits.argmax(dim=1))
        hidden = relu(self.fc_attr(torch.cat([features, likeliest], dim=1)))
        objects = logits.float().softmax(dim=1)[:, :-1]
        attributes = self.attr_score(hidden).float().softmax(dim=1)[:, :-1]
        deltas = self.bbox_pred(features).view(-1, OBJECTS, 4) / features.new_tensor(DELTA_WEIGHTS)
        return Regions(features, objects, attributes, deltas.float())
