"""The papers' names of recipes, features, encoders and data sets."""

from collections.abc import Mapping
from typing import Any

from pipeline.heads import pooling
from pipeline.settings.features import FEATURES, of_ensemble, visual
from pipeline.systems.scores import ENCODER

FINETUNED = "_finetuned"
"""Ending of recipes that also train the networks of grid and patch features, as the papers do."""

METHODS = {"vse2ad": "VSE+2AD", "vse_infty": "VSE∞", "vse_pp": "VSE++", "hgr": "HGR", "hgr_infty": "HGR∞"}
ENCODERS = {"bigru": "BiGRU", "bert": "BERT"}
DATASETS = {
    "coco": "MS-COCO",
    "flickr30k": "Flickr30K",
    "flickr8k": "Flickr8K",
    "multi30k": "Multi30K",
    "sample": "the sample of rendered scenes",
    "msrvtt": "MSR-VTT",
    "msrvtt_1ka": "MSR-VTT 1k-A",
    "vatex": "VATEX",
    "sample_video": "the sample of moving shots",
}
VARIANTS = {
    "video": "for clips", "video_seq2seq": "for clips, Seq2Seq pooling of frames",
    "en": "trained on English",
    "notok": "without token-level AdPool", "noemb": "without embedding-level AdPool", "noadpool": "mean pooling",
    "noadopt": "hard triplet loss", "triplet_warm": "hard triplet loss after an epoch of all negatives",
    "infonce": "InfoNCE over all negatives", "nomargin": "AdOpt without margin",
    "released": "AdOpt's K as released",
    "nowarmup": "without warm-up", "manual": "pooling by hand",
    "w25": "AdPool weights 0.25, 0.75", "w50": "AdPool weights 0.5, 0.5", "w75": "AdPool weights 0.75, 0.25",
    "random": "random AdPool weights", "noaug": "no size augmentation", "visualaug": "size augmentation of images",
    "transformer": "GPO by a Transformer", "perdim": "GPO for each dimension", "datadep": "GPO that sees the features",
}
"""Ending of a recipe's name -> what it varies."""
POOLINGS = {
    "gpo": "GPO", "cls": "CLS", "lip": "LIP", "gcn": "GCN", "gem": "GeM",
    "seq2seq": "Seq2Seq", "selfattn": "SelfAttn", "adapool": "AdaPool", "softpool": "SoftPool", "fspool": "FSPool",
    "adpool": "AdPool",
}
"""Pooling -> its name in a sentence, of those whose key is not written so."""
TEST_SETS = {"coco_1k_5fold": "MS-COCO 5-fold 1K", "coco_5k": "MS-COCO 5K", "f30k_1k": "Flickr30K 1K"}
SEVERAL = {"recipe": "several recipes", "text": "several text encoders"}
"""What an ensemble says where its members differ."""
TITLES = {feature.letter: feature.title for feature in FEATURES.values()}


def method(recipe: str, visual: str = "") -> str:
    """The name of a method as measured rows print it: "VSE+2AD, fine-tuned", or the recipe's own.

    On R alone no network is fine-tuned, so the name does not say it.
    """
    base, _, ending = recipe.partition("-")
    if base not in METHODS or not ending:
        plain = published_method(recipe)
        return f"{plain}, fine-tuned" if recipe.endswith(FINETUNED) and plain != recipe and visual != "R" else plain
    poolings = [f"{part[4:]}-max" if part[:4] == "kmax" and part[4:].isdecimal()
                else POOLINGS.get(part, part) if part in pooling.POOLINGS else "" for part in ending.split("_")]
    if ending in VARIANTS or not all(poolings):
        return f"{METHODS[base]}, {VARIANTS.get(ending, ending)}"
    return f"{METHODS[base]}, {'–'.join(poolings)} pooling"  # of images and captions where it names two


def system(made_from: Mapping[str, Any]) -> str:
    """The name of a scored system: "VSE∞, max–max pooling, Region, BiGRU, seed 0"."""
    letters = visual(made_from)
    if not letters:
        named = made_from["recipe"] or made_from["ensemble"]
        return ", ".join((zero_shot(named, made_from["members"][0][ENCODER]), *steps(made_from)))
    return ", ".join((method(made_from["recipe"] or SEVERAL["recipe"], letters), features(letters),
                      encoder(made_from["text"] or SEVERAL["text"]),
                      *([] if made_from["seed"] is None else [f"seed {made_from['seed']}"]), *steps(made_from)))


def steps(made_from: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of what was done to the heads' scores, but for the papers' mean: ("csls (bank test)",)."""
    own, fusion = made_from.get("ensemble"), made_from.get("fusion") or {}
    found = [f"ensemble {own} ({fusion.get('method', 'mean')})"] if own and not of_ensemble(own) else []
    for step in made_from.get("steps", ()):
        settings = ", ".join(f"{key} {value}" for key, value in dict(step).items() if key != "name")
        found.append(f"{step['name']} ({settings})" if settings else str(step["name"]))
    return tuple(found)


def zero_shot(name: str, encoder: Mapping[str, Any]) -> str:
    """The name of a dual encoder as it comes: "CLIP ViT-B/32, zero-shot", and its prompt where it has one."""
    prompt = (encoder.get("usage") or {}).get("prompt", "{}")
    said = [encoder.get("title") or name, "zero-shot", *[f"prompt “{prompt}”"] * (prompt != "{}")]
    return ", ".join(map(str, said))


def published_method(recipe: str) -> str:
    """The name of a method as the papers print it, which do not say whether it is fine-tuned."""
    return METHODS.get(recipe.removesuffix(FINETUNED), recipe)


def encoder(text: str) -> str:
    """The name of a text encoder: "BiGRU" for bigru."""
    return ENCODERS.get(text, text)


def features(visual: str) -> str:
    """The names of visual features: "Region+Grid" for RG."""
    return "+".join(TITLES[letter] for letter in visual)


def is_variant(recipe: str) -> bool:
    """Whether a recipe varies one part of a paper's method; such recipes have tables of their own."""
    return any(recipe.startswith(f"{paper}-") for paper in METHODS)
