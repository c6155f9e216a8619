"""How often the right caption is more similar to the image than every wrong one, with intervals
over images.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.evaluation.retrieval.ranks import Floats
from pipeline.evaluation.statistics.wilson import of_mean_share
from pipeline.studies.hard_negatives.questions import Question

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Accuracy:
    """The accuracy on some questions."""

    name: str  # Their category; or "all"
    questions: int  # The number of right captions
    images: int
    # Percent of the right captions above every wrong one; ties count by the mean over all their
    # orders.
    value: float
    low: float  # The lower end of the interval over images, in percent
    high: float  # Its upper end
    ties: int  # How many right captions depend on the order of equal similarities
    chance: float  # Percent that a random order gives
    # Percent with another image instead of each: a control for what the captions alone tell. None
    # if there is one image only.
    other_image: float | None = None


@dataclass(frozen=True)
class Compared:
    """The similarities of P right captions, each with that of the most similar wrong caption of its
    question.
    """

    question: np.ndarray  # int64 [P], the question's number
    right: np.ndarray  # float32 [P]
    wrong: np.ndarray  # float32 [P]
    tied: np.ndarray  # int64 [P], how many wrong captions of the question have that similarity

    @property
    def points(self) -> Floats:
        """Float64 [P]: the share of all orders of equally similar captions in which the right one
        comes first.
        """
        return _points(self.right, self.wrong, 1 + self.tied)


def compare(
    questions: Sequence[Question],
    images: np.ndarray,
    image_of: np.ndarray,
    captions: np.ndarray,
    column: dict[str, int],
) -> Compared:
    """Compare each image with its right and wrong captions, by unit vectors float32 [I, d] and [C,
    d].
    """
    pairs = [
        (number, column[caption], side)
        for number, question in enumerate(questions)
        for side, every in ((True, question.positives), (False, question.negatives))
        for caption in every
    ]
    number, text, right = (np.array(each) for each in zip(*pairs, strict=True))
    products = images[image_of[number]].astype(np.float64) * captions[text]
    similarity = products.sum(1).astype(np.float32)
    wrong = np.full(len(questions), -np.inf, np.float32)
    np.maximum.at(wrong, number[~right], similarity[~right])
    tied = np.bincount(number[~right], similarity[~right] == wrong[number[~right]]).astype(np.int64)
    return Compared(number[right], similarity[right], wrong[number[right]], tied[number[right]])


def with_control(found: Sequence[Accuracy], other: Sequence[Accuracy]) -> list[Accuracy]:
    """Add `other_image` to accuracies, from those of the same questions about other images."""
    return [
        replace(mine, other_image=control.value) for mine, control in zip(found, other, strict=True)
    ]


def accuracies(questions: Sequence[Question], compared: Compared) -> list[Accuracy]:
    """Measure each category, in the order of its first question, and "all" last if there are
    several.
    """
    category = np.array([question.category for question in questions])[compared.question]
    image = np.array([question.image for question in questions])[compared.question]
    chance = np.array([1 / (1 + len(question.negatives)) for question in questions])[
        compared.question
    ]
    names = list(dict.fromkeys(category.tolist()))
    parts = [(name, category == name) for name in names]
    if len(names) > 1:
        parts.append(("all", np.ones(len(category), bool)))
    return [
        _accuracy(name, compared.points[part], image[part], chance[part]) for name, part in parts
    ]


def grouped(questions: Sequence[Question], compared: Compared) -> list[Accuracy]:
    """Measure groups of two questions as Winoground does.

    A group's text score needs both captions right, its image score needs both images right for a
    caption given, its group score both. Ties count by the mean over all orders of equal
    similarities; Winoground's code counts them as wrong. [] without groups of two questions with
    one right and one wrong caption each, where the wrong caption of one is the right one of the
    other.
    """
    members: dict[str, list[int]] = {}
    for place, number in enumerate(compared.question.tolist()):
        if questions[number].group:
            members.setdefault(questions[number].group, []).append(place)
    pairs = np.array(
        [
            each
            for each in members.values()
            if _are_each_others([questions[compared.question[place]] for place in each])
        ]
    )
    if not len(pairs):
        return []
    right, wrong = compared.right[pairs], compared.wrong[pairs]
    text, image = (_points(right, other, 2).prod(1) for other in (wrong, wrong[:, ::-1]))
    least, most = (
        right.min(1),
        wrong.max(1),
    )  # both captions and both images: both right pairs before both wrong ones
    tied = (right == least[:, None]).sum(1) + (wrong == most[:, None]).sum(1)
    group = _points(
        least, most, np.array([2, 3, 6])[tied - 2]
    )  # orders of 2, 3 and 4 pairs, the right ones first
    owner = np.arange(len(pairs))
    scores = {
        "text score": (text, 1 / 4),
        "image score": (image, 1 / 4),
        "group score": (group, 1 / 6),
    }
    return [
        _accuracy(name, points, owner, np.full(len(points), chance))
        for name, (points, chance) in scores.items()
    ]


def _points(right: np.ndarray, wrong: np.ndarray, orders: np.ndarray | int) -> Floats:
    """Float64: 1 where the right one is more similar, 1 / orders where both are equally similar,
    else 0.
    """
    return np.where(right == wrong, 1 / orders, right > wrong)


def _are_each_others(group: Sequence[Question]) -> bool:
    return (
        len(group) == 2
        and len(group[0].positives) == len(group[0].negatives) == 1
        and (group[0].positives == group[1].negatives and group[0].negatives == group[1].positives)
    )


def _accuracy(name: str, points: Floats, image: np.ndarray, chance: Floats) -> Accuracy:
    """The accuracy with Wilson's interval over images, each with all its questions
    (`statistics.intervals`).
    """
    owner = np.unique(image, return_inverse=True)[1]
    count = np.bincount(owner).astype(np.float64)
    share = points.mean()
    each = (np.bincount(owner, weights=points) - share * count) / count.mean()
    low, high = of_mean_share(share, each, CONFIDENCE)
    return Accuracy(
        name,
        len(points),
        len(count),
        100 * float(share),
        100 * low,
        100 * high,
        int(((points > 0) & (points < 1)).sum()),
        100 * float(chance.mean()),
    )
