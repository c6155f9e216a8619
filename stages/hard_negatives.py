"""Measure whether a system tells an image's caption from one that is nearly the same and wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import dual_encoders, training
from pipeline.compute import made_with
from pipeline.files import atomic, digest
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError, counted
from pipeline.report import text
from pipeline.report.table import MISSING, grid, number
from pipeline.settings import Settings
from pipeline.settings.paths import Paths
from pipeline.studies import hard_negatives as room
from pipeline.studies.hard_negatives import accuracy, questions as asking, swaps
from stages import scored_systems
from stages.arguments import Source
from stages.progress import say


def hard_negatives(
    paths: Paths,
    settings: Settings,
    questions: str | None = None,
    source: Source | None = None,
    trained_on: str | None = None,
    images_of: str | None = None,
    form: str | None = None,
    save: Path | None = None,
    usage: Mapping[str, Any] = {},
    out: Path | None = None,
    device: str | None = None,
) -> None:
    """Measure how often an image's caption is more similar to it than captions that are nearly the
    same and wrong.
    """
    if source is None and not save:
        raise InputError("give --system, or --save to write the questions alone")
    if source and source.is_encoder:
        dual_encoders.check(source.named)
    training_set = trained_on or settings.run.dataset
    shown = Manifest.load(paths.manifest(images_of or training_set))
    if questions:
        asked, notes = asking.read(questions, form, paths.root, settings.manifest.left_out)
        say(*notes)
    else:
        rows = shown.rows(
            ["file", "split", "caption"], lambda rows: rows[rows["split"] == settings.score.split]
        )
        asked = swaps.of_captions(
            (str(file), captions["caption"].tolist())
            for file, captions in rows.groupby("file", sort=False)
        )
        if not asked:
            raise InputError(
                f"no caption of {settings.score.split} of {shown.dataset} has a word that can be swapped"
            )
    if save:
        asking.save(save, asked)
        say(f"{save}: {counted(len(asked), 'question')}", err=False)
    if source is None:
        return
    split = "" if settings.score.split == "test" else f"-{settings.score.split}"
    name = Path(questions).stem if questions else f"{shown.dataset}{split}-swaps"
    device = device or settings.training_of(training_set).device
    system: room.systems.System
    if source.is_encoder:
        shown.require_photographs("a dual encoder")
        called = source.called
        training_set = shown.dataset
        encoder = dual_encoders.load(source.named, dual_encoders.Usage(**usage, device=device))
        system = room.systems.OfEncoder(
            source.named, called, encoder, shown, settings.score.batch_size
        )
    else:
        if (folder := source.head) is None:
            scored_systems.refuse_without_vectors(
                paths, settings, training_set, source.named, "ask"
            )
            folder = paths.head(training_set, source.named)
        called = folder.name
        training_set = training.HeadArtefact.open(folder).dataset
        opened = training.OpenHead.open(
            training.HeadUse(paths, folder, shown.dataset, None, device)
        )
        opened.head.require_embeddings()
        system = room.systems.OfHead(opened, settings.score.batch_size)
    # A head that was copied here need not have the images of its training beside it.
    learned = paths.manifest(training_set)
    result = _measure(
        system,
        asked,
        Path(questions or shown.dataset),
        Manifest.load(learned) if learned.exists() else None,
    )
    path = out or paths.root / "results" / "hard-negatives" / training_set / f"{name}-{called}.json"
    atomic.write_json(path, result)
    say(f"{path}: {counted(result['questions']['count'], 'question')}", err=False)


def _measure(
    system: room.systems.System,
    asked: Sequence[asking.Question],
    place: Path,
    trained_on: Manifest | None,
) -> dict[str, Any]:
    files = list(dict.fromkeys(question.image for question in asked))
    has_vectors = system.find(files, place)
    row = {
        file: at
        for at, file in enumerate(
            file for file, here in zip(files, has_vectors, strict=True) if here
        )
    }
    questions = [question for question in asked if question.image in row]
    captions = sorted(
        {
            caption
            for question in questions
            for caption in (*question.positives, *question.negatives)
        }
    )
    vectors, numbers = (
        (system.images(), system.captions(captions)),
        dict(zip(captions, system.reads(captions), strict=True)),
    )
    shown, first = (
        np.array([row[question.image] for question in questions]),
        dict[tuple[Any, ...], int](),
    )
    # One vector for captions that are read alike: places of a batch are rounded differently, which
    # would decide.
    column = {each: first.setdefault(tuple(numbers[each]), at) for at, each in enumerate(captions)}
    accuracies, control = (
        [*accuracy.accuracies(questions, each), *accuracy.grouped(questions, each)]
        for image_of in (shown, (shown + len(row) // 2) % len(row))
        for each in [accuracy.compare(questions, vectors[0], image_of, vectors[1], column)]
    )
    if len(row) > 1:
        accuracies = accuracy.with_control(accuracies, control)
    alike = sum(
        any(numbers[wrong] == numbers[right] for wrong in question.negatives)
        for question in questions
        for right in question.positives
    )
    (cut, room), known = (
        system.cut(captions),
        None if trained_on is None else system.trained_on(trained_on),
    )
    result = {
        "accuracies": [vars(each) for each in accuracies],
        "ties": "expected",
        "questions": {
            "count": len(questions),
            "without_image": len(asked) - len(questions),
            "read_alike": alike,
            "digest": digest.digest([list(vars(question).values()) for question in questions]),
        },
        "captions": {"count": len(captions), "cut": cut, "longest": room},
        "images": {"count": len(row), "trained_on": known},
        "made_from": system.made_from.recorded(),
        "made_with": made_with.record(),
    }
    _tell(accuracies, result)
    return result


def _tell(found: Sequence[accuracy.Accuracy], result: dict[str, Any]) -> None:
    accuracies = [
        (
            each.name,
            number(each.value, (each.low, each.high)),
            MISSING if each.other_image is None else number(each.other_image),
            number(each.chance),
        )
        for each in found
    ]
    counts = [(each.name, str(each.questions), str(each.images), str(each.ties)) for each in found]
    say(
        *text.to_text(grid(("", "accuracy [95 %]", "other image", "chance"), {"": accuracies})),
        *text.to_text(grid(("", "questions", "images", "ties"), {"": counts})),
        err=False,
    )
    say(
        "ties count by the mean over all their orders; intervals are over images; other image: the same "
        "captions with another image, which shows what they give away by themselves",
        err=False,
    )
    asked, captions, images = (result[what] for what in ("questions", "captions", "images"))
    if alike := asked["read_alike"]:
        say(
            f"{alike} right captions look like a wrong one to it: they differ in what it does not read, such as "
            "unknown words, case, or the end of a long caption",
            err=False,
        )
    say(
        f"{captions['cut']} of {captions['count']} captions have more than {captions['longest']} words or "
        "tokens and are cut",
        err=False,
    )
    if left_out := asked["without_image"]:
        say(f"warning: {counted(left_out, 'question')} left out: no features of the image")
    if known := images["trained_on"]:
        say(f"warning: the head was trained on {known} of these {images['count']} images")
