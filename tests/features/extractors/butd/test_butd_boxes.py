"""Anchors, corrections, proposals and the two selection rules, against values worked out by
hand.
"""

from __future__ import annotations

import math

import pytest
import torch

from pipeline.make.features.extractors.butd import geometry
from pipeline.make.features.extractors.butd.geometry import Proposals

pytestmark = pytest.mark.slow


@pytest.mark.specification
def test_anchors_are_those_of_faster_rcnn() -> None:
    # Ratio 0.5: sqrt(256 / 0.5) = 22.6 rounds to 23, 11.5 to the even 12; ratio 2: 11.3 to 11,
    # height 22.
    known = torch.tensor(
        [
            [-84.0, -40, 99, 55],
            [-56, -56, 71, 71],
            [-36, -80, 51, 95],  # scale 8
            [-176, -88, 191, 103],
            [-120, -120, 135, 135],
            [-80, -168, 95, 183],
        ]
    )  # scale 16
    cell = geometry.cell_anchors()
    assert cell.shape == (12, 4)
    torch.testing.assert_close(cell[3:9], known)
    torch.testing.assert_close(
        cell[1], torch.tensor([-24.0, -24, 39, 39])
    )  # 64 pixels around pixel 7.5


def test_anchors_step_by_16_pixels_row_by_row() -> None:
    every = geometry.anchors(rows=2, columns=3).view(2, 3, 12, 4)
    torch.testing.assert_close(
        every[1, 2] - every[0, 0], torch.tensor([32.0, 16, 32, 16]).expand(12, 4)
    )


@pytest.mark.specification
def test_a_correction_moves_the_centre_and_scales_the_sides() -> None:
    # 10 x 20 pixels around (5, 10); a tenth of the width to the right, twice as wide.
    moved = geometry.move(torch.tensor([0.0, 0, 9, 19]), torch.tensor([0.1, 0, math.log(2), 0]))
    torch.testing.assert_close(moved, torch.tensor([-4.0, 0, 16, 20]))
    huge = geometry.move(torch.tensor([0.0, 0, 15, 15]), torch.tensor([0.0, 0, 100, 0]))
    torch.testing.assert_close(huge[2] - huge[0], torch.tensor(1000.0))


def test_boxes_are_clipped_to_pixels_of_the_image() -> None:
    clipped = geometry.clip(torch.tensor([[-4.0, 3, 700, 600]]), width=640, height=480)
    torch.testing.assert_close(clipped, torch.tensor([[0.0, 3, 639, 479]]))


def test_overlaps_count_both_end_pixels() -> None:
    # 10 x 10 each, 5 x 10 shared: 50 / 150. Without the end pixels it would be 36 / 126.
    boxes = torch.tensor([[0.0, 0, 9, 9], [5, 0, 14, 9], [10, 0, 19, 9]])
    expected = torch.tensor([[1, 1 / 3, 0], [1 / 3, 1, 1 / 3], [0, 1 / 3, 1]])
    torch.testing.assert_close(geometry.overlaps(boxes), expected)
    scores = torch.tensor([0.3, 0.2, 0.9])
    assert geometry.suppress(boxes, scores, 0.3).tolist() == [2, 0]
    assert geometry.suppress(boxes, scores, 0.34).tolist() == [2, 0, 1]


def maps(best: dict[tuple[int, int, int], float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Objectness -10 but for (anchor, row, column) -> value, no corrections, on a map of 25 x 25
    (400 pixels).
    """
    objectness, deltas = torch.full((12, 25, 25), -10.0), torch.zeros(48, 25, 25)
    for place, value in best.items():
        objectness[place] = value
    return objectness, deltas


def test_proposals_are_the_best_that_overlap_little() -> None:
    objectness, deltas = maps({(1, 10, 10): 3.0, (1, 10, 11): 2.0, (1, 12, 10): 1.0})
    # Anchor 1 is 64 x 64, a proposal of it 65 x 65. One cell on, 16 px, the overlap of 49 * 65 / (2
    # * 65 * 65 - 49 * 65) = 0.605 stays; moved back by an eighth of the anchor, 8 px, that of 57 *
    # 65 / 4745 = 0.78 does not.
    both = geometry.propose(objectness, deltas, 400, 400, 2.0, most=2)
    torch.testing.assert_close(both, torch.tensor([[136.0, 136, 200, 200], [152, 136, 216, 200]]))
    deltas[4, 10, 11] = -1 / 8
    other = geometry.propose(objectness, deltas, 400, 400, 2.0, most=2)
    torch.testing.assert_close(other, torch.tensor([[136.0, 136, 200, 200], [136, 168, 200, 232]]))


def test_proposals_are_clipped_and_small_ones_left_out() -> None:
    objectness, deltas = maps({(1, 10, 10): 3.0, (1, 0, 0): 2.0})
    # At scale 2 a box needs 32 pixels a side: 64 / 2 + 1 has them, 64 * 0.45 + 1 has not.
    deltas[6, 10, 10] = math.log(1 / 2)
    kept = geometry.propose(objectness, deltas, 400, 400, 2.0, most=2)
    torch.testing.assert_close(kept[0], torch.tensor([152.0, 136, 184, 200]))
    deltas[6, 10, 10] = math.log(0.45)
    kept = geometry.propose(objectness, deltas, 400, 400, 2.0, most=1)
    torch.testing.assert_close(kept, torch.tensor([[0.0, 0, 40, 40]]))


def test_an_image_without_a_large_enough_box_is_its_own_proposal() -> None:
    objectness, deltas = torch.zeros(12, 2, 2), torch.zeros(48, 2, 2)
    alone = geometry.propose(objectness, deltas, 32, 24, 8.0)
    torch.testing.assert_close(alone, torch.tensor([[0.0, 0, 31, 23]]))


def test_at_most_300_proposals_best_first() -> None:
    generator = torch.Generator().manual_seed(0)
    objectness = torch.rand(12, 25, 25, generator=generator)
    found = geometry.propose(objectness, torch.zeros(48, 25, 25), 400, 400, 1.0)
    assert found.shape == (300, 4)
    assert geometry.overlaps(found).fill_diagonal_(0).max() <= 0.7


# The first two overlap by 100 / 120
NEAR = torch.tensor([[0.0, 0, 9, 9], [0, 0, 9, 11], [20, 20, 29, 29]])


@pytest.mark.specification
def test_suppression_is_class_by_class() -> None:
    scores = torch.tensor([[0.9, 0.05], [0.6, 0.5], [0.1, 0.3]])
    expected = torch.tensor([[True, False], [False, True], [True, True]])
    torch.testing.assert_close(geometry.survivors(NEAR, scores, 0.3), expected)
    assert geometry.survivors(NEAR, scores, 0.84).all()


def test_a_suppressed_box_suppresses_nothing() -> None:
    chain = torch.tensor(
        [[0.0, 0, 9, 9], [5, 0, 14, 9], [10, 0, 19, 9]]
    )  # each overlaps the next by a third
    kept = geometry.survivors(chain, torch.tensor([[0.9], [0.8], [0.7]]), 0.3)
    assert kept.flatten().tolist() == [True, False, True]
    kept = geometry.survivors(chain, torch.tensor([[0.8], [0.9], [0.7]]), 0.3)
    assert kept.flatten().tolist() == [False, True, False]


def test_survivors_agree_with_one_class_after_another() -> None:
    generator = torch.Generator().manual_seed(1)
    near = torch.rand(40, 2, generator=generator) * 60
    boxes = torch.cat([near, near + 20 + torch.rand(40, 2, generator=generator) * 40], dim=1)
    scores = torch.rand(40, 30, generator=generator)
    together = geometry.survivors(boxes, scores, 0.3)
    for label in range(30):
        alone = geometry.suppress(boxes, scores[:, label], 0.3)
        assert together[:, label].nonzero().flatten().tolist() == sorted(alone.tolist())
    assert 0 < together.sum() < together.numel()


@pytest.mark.specification
@pytest.mark.parametrize(
    ("fewest", "most", "rows"),
    [
        (1, 4, [1, 2, 3]),  # 0.9, 0.5 and exactly 0.2
        (4, 4, [1, 2, 3, 0]),  # too few: the best of the rest too
        (1, 2, [1, 2]),  # too many: the best
        (2, 9, [1, 2, 3]),
        (9, 9, [1, 2, 3, 0]),  # no more than there are
    ],
)
def test_the_count_rule(fewest: int, most: int, rows: list[int]) -> None:
    assert geometry.keep(torch.tensor([0.1, 0.9, 0.5, 0.2]), fewest, most).tolist() == rows


def test_original_rule_keeps_proposals_by_their_best_surviving_class() -> None:
    # Box 1 is the likelier one in class 1 only, where it survives with 0.5; its 0.6 in class 0 is
    # box 0's.
    scores = torch.tensor([[0.9, 0.05], [0.6, 0.5], [0.1, 0.15]])
    deltas = torch.ones(3, 2, 4)  # which this rule does not look at
    rows, boxes = geometry.by_proposals(Proposals(NEAR, scores, deltas, (100, 100), 1.0), 1, 3)
    assert rows.tolist() == [0, 1]
    torch.testing.assert_close(boxes, NEAR[:2])
    rows, _ = geometry.by_proposals(Proposals(NEAR, scores, deltas, (100, 100), 1.0), 3, 3)
    assert rows.tolist() == [0, 1, 2]


def test_port_rule_moves_boxes_by_their_best_class_and_relaxes_until_enough() -> None:
    scores = torch.tensor([[0.3, 0.4], [0.9, 0.1], [0.1, 0.25]])
    deltas = torch.zeros(3, 2, 4)
    deltas[0, 1, 0] = 0.2  # the best class of box 0 moves it two pixels to the right
    deltas[0, 0, 0] = 5.0
    moved = torch.tensor([[2.0, 0, 12, 10], [0, 0, 10, 12], [20, 20, 30, 30]])
    # 9 x 11 shared of 11 x 11 + 11 x 13 - 99 = 165: 0.6. So 0.3, 0.4 and 0.5 leave two boxes and
    # 0.6 leaves three.
    rows, boxes = geometry.by_regressed(Proposals(NEAR, scores, deltas, (100, 100), 1.0), 2, 3)
    assert rows.tolist() == [1, 2]
    torch.testing.assert_close(boxes, moved[[1, 2]])
    rows, boxes = geometry.by_regressed(Proposals(NEAR, scores, deltas, (100, 100), 1.0), 3, 3)
    assert rows.tolist() == [1, 0, 2]
    torch.testing.assert_close(boxes, moved[[1, 0, 2]])


def test_port_rule_clips_what_it_moves() -> None:
    deltas = torch.zeros(3, 1, 4)
    deltas[2, 0, :2] = 1.0
    scores = torch.tensor([[0.5], [0.4], [0.9]])
    _, boxes = geometry.by_regressed(Proposals(NEAR, scores, deltas, (32, 31), 1.0), 1, 1)
    torch.testing.assert_close(boxes, torch.tensor([[30.0, 30, 31, 30]]))


def test_proposals_overlap_as_in_the_image() -> None:
    """Two boxes of 10 x 10 network pixels, 6 apart: in the image, at half the size, the ends'
    pixels weigh more.
    """
    boxes = torch.tensor([[0.0, 0, 9, 9], [5.5, 0, 14.5, 9]])
    scores, deltas = torch.tensor([[0.9], [0.8]]), torch.zeros(2, 1, 4)
    # Network: 4.5 of 10 columns, 45 / 155 = 0.290. Image: 0 to 4.5 and 2.75 to 7.25, 2.75 of 5.5
    # columns, 0.333.
    rows, _ = geometry.by_proposals(Proposals(boxes, scores, deltas, (100, 100), 1.0), 1, 2)
    assert rows.tolist() == [0, 1]
    rows, _ = geometry.by_proposals(Proposals(boxes, scores, deltas, (100, 100), 2.0), 1, 2)
    assert rows.tolist() == [0]
