"""How often the right caption is more similar to the image than every wrong one, with intervals
over images.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.extensions.hard_negatives.questions import Question
from pipeline.foundation.evaluation.retrieval.ranks import Floats
from pipeline.foundation.evaluation.statistics.wilson import of_mean_share

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
    pairs: list[tuple[int, int, bool]] = []
    for number_of_question, question in enumerate(questions):
        pairs += [(number_of_question, column[caption], True) for caption in question.positives]
        pairs += [(number_of_question, column[caption], False) for caption in question.negatives]
    number, text, is_right = map(np.array, zip(*pairs, strict=True))
    asked_images = images[image_of[number]].astype(np.float64)
    products = asked_images * captions[text]
    similarity = products.sum(1).astype(np.float32)
    of_wrong = number[~is_right]
    wrong_similarity = similarity[~is_right]
    wrong = np.full(len(questions), -np.inf, np.float32)
    np.maximum.at(wrong, of_wrong, wrong_similarity)
    is_most_similar = wrong_similarity == wrong[of_wrong]
    tied = np.bincount(of_wrong, is_most_similar).astype(np.int64)
    of_right = number[is_right]
    return Compared(of_right, similarity[is_right], wrong[of_right], tied[of_right])


def with_control(measured: Sequence[Accuracy], other: Sequence[Accuracy]) -> list[Accuracy]:
    """Add `other_image` to accuracies, from those of the same questions about other images."""
    both = zip(measured, other, strict=True)
    return [replace(accuracy, other_image=control.value) for accuracy, control in both]


def accuracies(questions: Sequence[Question], compared: Compared) -> list[Accuracy]:
    """Measure each category, in the order of its first question, and "all" last if there are
    several.
    """
    asked = [questions[number] for number in compared.question]
    category = np.array([question.category for question in asked])
    image = np.array([question.image for question in asked])
    choices = np.array([1 + len(question.negatives) for question in asked])
    chance = 1 / choices
    points = compared.points
    names = list(dict.fromkeys(category.tolist()))
    parts = [(name, category == name) for name in names]
    if len(names) > 1:
        everything = np.ones(len(category), bool)
        parts.append(("all", everything))
    return [_accuracy(name, points[part], image[part], chance[part]) for name, part in parts]


def grouped(questions: Sequence[Question], compared: Compared) -> list[Accuracy]:
    """Measure groups of two questions as Winoground does.

    A group's text score needs both captions right, its image score needs both images right for a
    caption given, its group score both. Ties count by the mean over all orders of equal
    similarities; Winoground's code counts them as wrong. [] without groups of two questions with
    one right and one wrong caption each, where the wrong caption of one is the right one of the
    other.
    """
    pairs = _pairs_of_questions(questions, compared)
    if not len(pairs):
        return []
    right = compared.right[pairs]
    wrong = compared.wrong[pairs]
    text = _points(right, wrong, 2).prod(1)
    image = _points(right, wrong[:, ::-1], 2).prod(1)
    # Both captions and both images: both right pairs before both wrong ones.
    least = right.min(1)
    most = wrong.max(1)
    is_least = right == least[:, None]
    is_most = wrong == most[:, None]
    tied = is_least.sum(1) + is_most.sum(1)
    # Of 2, 3 and 4 pairs, with the right ones first.
    orders = np.array([2, 3, 6])[tied - 2]
    group = _points(least, most, orders)
    scores = (
        ("text score", text, 1 / 4),
        ("image score", image, 1 / 4),
        ("group score", group, 1 / 6),
    )
    owner = np.arange(len(pairs))
    measured = []
    for name, points, chance in scores:
        chances = np.full(len(points), chance)
        measured.append(_accuracy(name, points, owner, chances))
    return measured


def _pairs_of_questions(questions: Sequence[Question], compared: Compared) -> np.ndarray:
    """The rows of `compared` of each group of two questions: int64 [G, 2], or empty."""
    rows_of_group: dict[str, list[int]] = {}
    for row, number in enumerate(compared.question.tolist()):
        name = questions[number].group
        if name:
            rows_of_group.setdefault(name, []).append(row)
    pairs = []
    for rows in rows_of_group.values():
        group = [questions[number] for number in compared.question[rows]]
        if _are_each_others(group):
            pairs.append(rows)
    return np.array(pairs)


def _points(right: np.ndarray, wrong: np.ndarray, orders: np.ndarray | int) -> Floats:
    """Float64: 1 where the right one is more similar, 1 / orders where both are equally similar,
    else 0.
    """
    return np.where(right == wrong, 1 / orders, right > wrong)


def _are_each_others(group: Sequence[Question]) -> bool:
    """Whether the wrong caption of each of two questions is the right one of the other."""
    if len(group) != 2:
        return False
    one, other = group
    if len(one.positives) != 1 or len(one.negatives) != 1:
        return False
    return one.positives == other.negatives and one.negatives == other.positives


def _accuracy(name: str, points: Floats, image: np.ndarray, chance: Floats) -> Accuracy:
    """The accuracy with Wilson's interval over images, each with all its questions
    (`statistics.intervals`).
    """
    _, owner = np.unique(image, return_inverse=True)
    count = np.bincount(owner).astype(np.float64)
    share = points.mean()
    points_of_images = np.bincount(owner, weights=points)
    of_images = (points_of_images - share * count) / count.mean()
    low, high = of_mean_share(share, of_images, CONFIDENCE)
    is_tied = (points > 0) & (points < 1)
    return Accuracy(
        name,
        questions=len(points),
        images=len(count),
        value=100 * float(share),
        low=100 * low,
        high=100 * high,
        ties=int(is_tied.sum()),
        chance=100 * float(chance.mean()),
    )
