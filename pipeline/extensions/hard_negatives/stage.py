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
from pipeline.judge.tables.table import MISSING, Cell, grid, number
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
    place = Path(options.questions or shown.dataset)
    result = _measure(system, asked, place, trained_on)
    if options.questions:
        name = Path(options.questions).stem
    else:
        split = "" if settings.score.split == "test" else f"-{settings.score.split}"
        name = f"{shown.dataset}{split}-swaps"
    folder_of_results = paths.root / "results" / "hard-negatives" / training_set
    path = options.out or folder_of_results / f"{name}-{called}.json"
    atomic.write_json(path, result)
    count = result["questions"]["count"]
    say(f"{path}: {counted(count, 'question')}", err=False)


def _swaps(shown: Manifest, split: str) -> list[asking.Question]:
    """Questions of a split's own captions, in which words are swapped."""
    rows = shown.rows(["file", "split", "caption"], lambda rows: rows[rows["split"] == split])
    captions_of = []
    for file, of_file in rows.groupby("file", sort=False):
        captions_of.append((str(file), of_file["caption"].tolist()))
    asked = swaps.of_captions(captions_of)
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
    readings = [tuple(reading) for reading in system.reads(captions)]
    read = dict(zip(captions, readings, strict=True))
    # One vector for captions that are read alike: places of a batch are rounded differently, which
    # would decide.
    first: dict[tuple[Any, ...], int] = {}
    column: dict[str, int] = {}
    for at, caption in enumerate(captions):
        column[caption] = first.setdefault(read[caption], at)

    def measured(image_of: np.ndarray) -> list[accuracy.Accuracy]:
        """The accuracies where each question is asked of the image of this row."""
        answers = accuracy.compare(questions, images, image_of, vectors, column)
        by_category = accuracy.accuracies(questions, answers)
        return by_category + accuracy.grouped(questions, answers)

    own_image = np.array([row[question.image] for question in questions])
    accuracies = measured(own_image)
    if len(row) > 1:
        other_image = (own_image + len(row) // 2) % len(row)
        accuracies = accuracy.with_control(accuracies, measured(other_image))
    alike = 0
    for question in questions:
        wrong = [read[caption] for caption in question.negatives]
        alike += sum(read[caption] in wrong for caption in question.positives)
    cut, longest = system.cut(captions)
    known = None if trained_on is None else system.trained_on(trained_on)
    contents = [list(vars(question).values()) for question in questions]
    about_questions = {
        "count": len(questions),
        "without_image": len(asked) - len(questions),
        "read_alike": alike,
        "digest": digest.digest(contents),
    }
    result = {
        "accuracies": [vars(measurement) for measurement in accuracies],
        "ties": "expected",
        "questions": about_questions,
        "captions": {"count": len(captions), "cut": cut, "longest": longest},
        "images": {"count": len(row), "trained_on": known},
        "made_from": system.made_from.recorded(),
        "made_with": made_with.record(),
    }
    _tell(accuracies, result)
    return result


def _tell(accuracies: Sequence[accuracy.Accuracy], result: dict[str, Any]) -> None:
    shares = []
    counts = []
    for measured in accuracies:
        value = number(measured.value, (measured.low, measured.high))
        control: str | Cell = MISSING
        if measured.other_image is not None:
            control = number(measured.other_image)
        shares.append((measured.name, value, control, number(measured.chance)))
        of_category = (measured.questions, measured.images, measured.ties)
        counts.append((measured.name, *map(str, of_category)))
    table_of_shares = grid(("", "accuracy [95 %]", "other image", "chance"), {"": shares})
    table_of_counts = grid(("", "questions", "images", "ties"), {"": counts})
    say(*text.to_text(table_of_shares), *text.to_text(table_of_counts), err=False)
    say(
        "ties count by the mean over all their orders; intervals are over images; other image: the same "
        "captions with another image, which shows what they give away by themselves",
        err=False,
    )
    asked = result["questions"]
    captions = result["captions"]
    images = result["images"]
    alike = asked["read_alike"]
    if alike:
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
    left_out = asked["without_image"]
    if left_out:
        say(f"warning: {counted(left_out, 'question')} left out: no features of the image")
    known = images["trained_on"]
    if known:
        say(f"warning: the head was trained on {known} of these {images['count']} images")
