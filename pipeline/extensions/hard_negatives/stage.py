"""Measure whether a system tells an image's caption from one that is nearly the same and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.extensions import hard_negatives as room
from pipeline.extensions.hard_negatives import accuracy, questions as asking, swaps
from pipeline.extensions.hard_negatives.command import HardNegativesOptions
from pipeline.foundation.compute import made_with
from pipeline.foundation.files import atomic, digest
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.tables import text
from pipeline.judge.tables.table import MISSING, grid, number
from pipeline.make import dual_encoders, training
from stages import scored_systems
from stages.progress import say


def hard_negatives(paths: Paths, settings: Settings, options: HardNegativesOptions) -> None:
    """Measure how often an image's caption is more similar to it than captions that are nearly the
    same and wrong.
    """
    source = options.source
    if source is None and not options.save:
        raise InputError("give --system, or --save to write the questions alone")
    if source and source.is_encoder:
        dual_encoders.check(source.named)
    training_set = options.trained_on or settings.run.dataset
    shown = Manifest.load(paths.manifest(options.images_of or training_set))
    if options.questions:
        asked, notes = asking.read(
            options.questions, options.form, paths.root, settings.manifest.left_out
        )
        say(*notes)
    else:
        asked = _swaps(shown, settings.score.split)
    if options.save:
        asking.save(options.save, asked)
        say(f"{options.save}: {counted(len(asked), 'question')}", err=False)
    if source is None:
        return
    device = options.device or settings.training_of(training_set).device
    batch_size = settings.score.batch_size
    system: room.systems.System
    if source.is_encoder:
        shown.require_photographs("a dual encoder")
        called = source.called
        training_set = shown.dataset
        usage = dual_encoders.Usage(**options.usage, device=device)
        encoder = dual_encoders.load(source.named, usage)
        system = room.systems.OfEncoder(source.named, called, encoder, shown, batch_size)
    else:
        folder = source.head
        if folder is None:
            scored_systems.refuse_without_vectors(
                paths, settings, training_set, source.named, "ask"
            )
            folder = paths.head(training_set, source.named)
        called = folder.name
        training_set = training.HeadArtefact.open(folder).dataset
        use = training.HeadUse(paths, folder, shown.dataset, None, device)
        opened = training.OpenHead.open(use)
        opened.head.require_embeddings()
        system = room.systems.OfHead(opened, batch_size)
    # A head that was copied here need not have the images of its training beside it.
    learned = paths.manifest(training_set)
    trained_on = Manifest.load(learned) if learned.exists() else None
    result = _measure(system, asked, Path(options.questions or shown.dataset), trained_on)
    split = "" if settings.score.split == "test" else f"-{settings.score.split}"
    name = Path(options.questions).stem if options.questions else f"{shown.dataset}{split}-swaps"
    folder_of_results = paths.root / "results" / "hard-negatives" / training_set
    path = options.out or folder_of_results / f"{name}-{called}.json"
    atomic.write_json(path, result)
    say(f"{path}: {counted(result['questions']['count'], 'question')}", err=False)


def _swaps(shown: Manifest, split: str) -> list[asking.Question]:
    """Questions of a split's own captions, in which words are swapped."""
    rows = shown.rows(["file", "split", "caption"], lambda rows: rows[rows["split"] == split])
    asked = swaps.of_captions(
        (str(file), captions["caption"].tolist())
        for file, captions in rows.groupby("file", sort=False)
    )
    if not asked:
        raise InputError(f"no caption of {split} of {shown.dataset} has a word that can be swapped")
    return asked


def _measure(
    system: room.systems.System,
    asked: Sequence[asking.Question],
    place: Path,
    trained_on: Manifest | None,
) -> dict[str, Any]:
    files = list(dict.fromkeys(question.image for question in asked))
    has_vectors = system.find(files, place)
    with_vectors = [file for file, has in zip(files, has_vectors, strict=True) if has]
    row = {file: at for at, file in enumerate(with_vectors)}
    questions = [question for question in asked if question.image in row]
    distinct: set[str] = set()
    for question in questions:
        distinct.update(question.positives, question.negatives)
    captions = sorted(distinct)
    images = system.images()
    vectors = system.captions(captions)
    read = dict(zip(captions, system.reads(captions), strict=True))
    # One vector for captions that are read alike: places of a batch are rounded differently, which
    # would decide.
    first: dict[tuple[Any, ...], int] = {}
    column = {
        caption: first.setdefault(tuple(read[caption]), at) for at, caption in enumerate(captions)
    }

    def measured(image_of: np.ndarray) -> list[accuracy.Accuracy]:
        """The accuracies where each question is asked of the image of this row."""
        answers = accuracy.compare(questions, images, image_of, vectors, column)
        return [*accuracy.accuracies(questions, answers), *accuracy.grouped(questions, answers)]

    own_image = np.array([row[question.image] for question in questions])
    accuracies = measured(own_image)
    control = measured((own_image + len(row) // 2) % len(row))
    if len(row) > 1:
        accuracies = accuracy.with_control(accuracies, control)
    alike = 0
    for question in questions:
        wrong = [read[caption] for caption in question.negatives]
        alike += sum(read[caption] in wrong for caption in question.positives)
    cut, longest = system.cut(captions)
    known = None if trained_on is None else system.trained_on(trained_on)
    result = {
        "accuracies": [vars(each) for each in accuracies],
        "ties": "expected",
        "questions": {
            "count": len(questions),
            "without_image": len(asked) - len(questions),
            "read_alike": alike,
            "digest": digest.digest([list(vars(question).values()) for question in questions]),
        },
        "captions": {"count": len(captions), "cut": cut, "longest": longest},
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
