"""Settings for a user's own photographs: what to train, and for how long, by the number of
images.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation import manifest
from pipeline.foundation.files import parsing, weights
from pipeline.foundation.files.gallery_file import Kind
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import SPLITS, Manifest, drawn_splits
from pipeline.foundation.manifest.columns import LANGUAGE
from pipeline.foundation.manifest.dataset import NOT_STATED
from pipeline.foundation.manifest.drawn_splits import FEWEST
from pipeline.foundation.manifest.sample import corpus
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Settings, load
from pipeline.foundation.settings.features import FEATURES, of_ensemble
from pipeline.foundation.settings.paths import heads
from pipeline.foundation.settings.schema import DEFAULT_PRESET
from pipeline.foundation.settings.written import template
from pipeline.make.features.extraction import needs

# Measured for `scaled` values on the CPUs of docs/measured.md, in CPU seconds: a head sees one
# caption with its image, at d = 256; all stages beside extraction and training.
SECONDS_OF_CAPTION = 0.0023
SECONDS_OF_STAGES = 200
# Training steps in all, about as many as Flickr8k has in three epochs of batches of 128.
STEPS = 700


@dataclass(frozen=True)
class OwnData:
    """A data set and what is chosen for it."""

    table: Manifest  # its images and captions, with a split for each
    drawn: bool  # whether the splits were drawn here
    features: list[str]  # what is extracted
    left_out: dict[str, str]  # feature -> why it is not extracted
    training: dict[str, Any]  # the keys of the settings' section `training` for it

    @property
    def images(self) -> dict[str, int]:
        """Split -> number of images."""
        counts = self.table.images["split"].value_counts()
        return {split: int(counts.get(split, 0)) for split in SPLITS}


def cpu_seconds(data: OwnData) -> float:
    """About how many CPU seconds `dvc repro` takes, by measurements of other machines."""
    train = data.table.rows(["split"], lambda rows: rows[rows["split"] == "train"])
    training = len(data.features) * seconds_of_training(len(train), data.training)
    extraction = _seconds_of_extraction(data.features, len(data.table.images))
    return SECONDS_OF_STAGES + extraction + training


def cpu_seconds_of_sample() -> float:
    """The same for the built-in sample, with the settings that a new project starts with."""
    shipped = load(template("params.yaml"))
    images = shipped.sample.images
    of_train = corpus.SPLITS.count("train") / len(corpus.SPLITS)
    captions = round(images * of_train) * corpus.CAPTIONS
    how = shipped.training_of("sample").model_dump()
    training = len(heads(shipped.run)) * seconds_of_training(captions, how)
    return SECONDS_OF_STAGES + _seconds_of_extraction(shipped.run.features, images) + training


def _seconds_of_extraction(features: Iterable[str], images: int) -> float:
    """About how many CPU seconds it takes with the networks of the preset of a user's own data;
    those of the smallest, which were not timed, are left out.
    """
    preset = load(template("params.yaml")).features[DEFAULT_PRESET]
    seconds = 0.0
    for feature in features:
        chosen = preset[feature]
        cost = needs.cost_of(chosen.engine, chosen.options)
        if cost is not None:
            of_image = cost.openvino if find_spec("openvino") else cost.torch
            seconds += of_image * images
    return seconds


def seconds_of_training(captions: int, training: Mapping[str, Any]) -> float:
    """About how many CPU seconds a head of these settings is trained on so many captions."""
    seen = captions * training["epochs"]
    return SECONDS_OF_CAPTION * seen * training["dimension"] / 256


def choose(
    name: str,
    images: Path,
    captions: Path,
    form: str | None = None,
    kind: Kind = "image",
    unusable: LeftOut | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> OwnData:
    """Look at a user's images or clips and captions, and choose settings; see `manifest.build` for
    the last two.
    """
    shipped = load(template("params.yaml"))
    if name in shipped.training:
        raise InputError(
            f"the settings have a section training.{name} already; choose another --name"
        )
    drawn: dict[str, str] = {}

    def draw(files: list[str]) -> dict[str, str]:
        drawn.update(drawn_splits.draw(files))
        return drawn

    reading = manifest.Reading(form, draw, kind)
    table = manifest.build(name, images, captions, reading, left_out=unusable, say=say)
    counts = table.images["split"].value_counts()
    for split, fewest in FEWEST.items():
        count = counts.get(split, 0)
        if count < fewest:
            needed = [f"{least} {table.noun}s in {part}" for part, least in FEWEST.items()]
            listed = ", ".join(needed)
            raise InputError(f"{captions}: training needs at least {listed}; {split} has {count}")
    features, left_out = _features(shipped, name, kind)
    train = table.rows(["split"], lambda rows: rows[rows["split"] == "train"])
    training: dict[str, Any] = {**scaled(int(counts["train"]), len(train))}
    training["device"] = shipped.training_of(name).device
    return OwnData(table, bool(drawn), features, left_out, training)


def scaled(images: int, captions: int) -> dict[str, int]:
    """Choose how large a head is and how long it trains."""
    a_quarter = max(2, images // 4)
    batch = 2 ** min(7, int(np.log2(a_quarter)))
    steps_of_epoch = max(1, captions // batch)
    epochs = min(30, max(3, round(STEPS / steps_of_epoch)))
    dimension = 512
    if images < 1000:
        dimension = 128
    elif images < 20000:
        dimension = 256
    return {
        "dimension": dimension,
        "batch_size": batch,
        "epochs": epochs,
        "decay_epoch": epochs - round(epochs / 3),
        "minimum_count": 2 if captions < 10000 else 4,
    }


def files(
    data: OwnData, images: Path, captions: Path, form: str | None
) -> tuple[dict[str, str], dict[str, Path]]:
    """The texts and the links (photographs and captions stay where they are) of a project, by path
    below it.
    """
    name = data.table.dataset
    own_images = f"data/{name}/images"
    suffix = ".csv" if data.drawn else captions.suffix
    own_captions = f"data/{name}/captions{suffix}"
    description = "Your own photographs."
    if data.table.kind != "image":
        description = f"Your own {data.table.noun}s."
    card: dict[str, Any] = {
        "title": name,
        "description": description,
        "licence": NOT_STATED,
        "source": f"images {images.absolute()}, captions {captions.absolute()}",
        "images": own_images,
        "annotations": own_captions,
        "protocols": ["all"],
    }
    if data.table.kind != "image":
        card["kind"] = data.table.kind
    if form and not data.drawn:
        card["format"] = form
    texts = {
        "params.yaml": settings_file(data),
        "dvc.yaml": stages_file(),
        f"manifests/{name}.yaml": parsing.to_yaml(card),
    }
    links = {own_images: images}
    if data.drawn:
        texts[own_captions] = captions_file(data)
    else:
        links[own_captions] = captions
    return texts, links


def settings_file(data: OwnData) -> str:
    """Compose the shipped settings with what was chosen; the comments are kept."""
    text = template("params.yaml").read_text(encoding="utf-8")
    shipped = load(template("params.yaml")).run.ensembles
    ensembles = [name for name in shipped if set(of_ensemble(name)) <= set(data.features)]
    dataset = _name(data.table.dataset)
    chosen = {
        "dataset": dataset,
        "features": f"[{', '.join(data.features)}]",
        "ensembles": f"[{', '.join(ensembles)}]",
        "ablations": "[]",
    }
    for key, written in chosen.items():
        setting = rf"(?m)^(  {key}:) +(\[[^\]]*\]|[^\s#]+)"
        text, count = re.subn(setting, rf"\1 {written}", text, count=1)
        if not count:
            raise AssertionError(f"params.yaml has no run.{key}")
    section = f"  {dataset}:  # chosen by `pipeline init`\n"
    for key, value in data.training.items():
        section += f"    {key}: {value}\n"
    shipped_section = r"(?m)^(training:.*\n)(?:  .*\n)+"
    return re.sub(shipped_section, lambda match: match[1] + section, text, count=1)


def _name(name: str) -> str:
    """A name as YAML has it: in quotes if YAML would not read it as text, such as 2024, 1e3 and
    yes.
    """
    if name[0].isalpha() and isinstance(parsing.from_yaml(name), str):
        return name
    return f"'{name}'"


def stages_file() -> str:
    """Compose the shipped stages without the sample's, which a user's own project does not
    render.
    """
    text = template("dvc.yaml").read_text(encoding="utf-8")
    return re.sub(r"(?m)^  sample:\n(    .*\n)+\n?|^      - data/sample/.*\n", "", text)


def captions_file(data: OwnData) -> str:
    """Compose a CSV of captions with the splits that were drawn, and languages and parts of files
    if there are any.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    table = data.table.table
    expected = ("file", "caption", "split", LANGUAGE, "start", "end")
    columns = [column for column in expected if column in table.columns]
    writer.writerow([data.table.kind, *columns[1:]])
    for row in table[columns].itertuples(index=False):
        # NaN: no start or end.
        writer.writerow(["" if value != value else value for value in row])
    return out.getvalue()


def _features(settings: Settings, name: str, kind: Kind) -> tuple[list[str], dict[str, str]]:
    """The features of images or clips whose trained network is here, and why others that have one
    are left out.
    """
    chosen = []
    left_out = {}
    preset = settings.features[settings.preset_of(name)]
    for feature, chosen_engine in preset.items():
        engine = chosen_engine.engine
        options = chosen_engine.options
        if FEATURES[feature].kind != kind or needs.unnamed(engine, options):
            continue
        if options.get("weights") == weights.UNTRAINED:
            left_out[feature] = "its network is untrained in the preset `light`"
            continue
        lacking = needs.lacks(engine, options)
        if lacking:
            left_out[feature] = "; ".join(lacking)
        else:
            chosen.append(feature)
    if not chosen:
        reasons = "; ".join(dict.fromkeys(left_out.values()))
        raise InputError(
            f"no feature can be extracted here: {reasons}. A CLIP needs no features: `pipeline manifest "
            "--draw-splits`, and docs/clip.md"
        )
    return chosen, left_out
