"""The papers' names of recipes, features, encoders and data sets."""

from collections.abc import Mapping
from importlib import resources
from typing import Any

from pipeline.files.parsing import from_yaml
from pipeline.heads import pooling
from pipeline.settings.features import FEATURES, of_ensemble, visual
from pipeline.systems.scores import ENCODER

FINETUNED = "_finetuned"
"""Ending of recipes that also train the networks of grid and patch features, as the papers do."""

NAMES: dict[str, dict[str, str]] = from_yaml(
    (resources.files("manifests") / "published" / "names.yaml").read_text(encoding="utf-8"))
METHODS, VARIANTS, POOLINGS = NAMES["methods"], NAMES["variants"], NAMES["poolings"]
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
    return NAMES["encoders"].get(text, text)


def dataset(name: str) -> str:
    """The name of a data set: "MS-COCO" for coco."""
    return NAMES["datasets"].get(name, name)


def features(visual: str) -> str:
    """The names of visual features: "Region+Grid" for RG."""
    return "+".join(TITLES[letter] for letter in visual)


def is_variant(recipe: str) -> bool:
    """Whether a recipe varies one part of a paper's method; such recipes have tables of their own."""
    return any(recipe.startswith(f"{paper}-") for paper in METHODS)
