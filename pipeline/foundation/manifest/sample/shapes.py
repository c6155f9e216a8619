"""Shapes of things: outline, direction of the surface, and how a pattern runs over it.

A shape is a function of coordinates in units of the thing's radius (x to the right, y downwards,
its foot at y = 1) and returns its parts from back to front. A new shape is one function here, its
name in `SHAPES`, and its places and names in scenes.yaml.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.foundation.manifest.sample.elementary import arcsin, arctan2, cbrt, cos, hypot, sin

Array = np.ndarray
Colour = tuple[float, float, float]

_FIVE = np.float32(5 / np.pi)  # turns half a turn into five stripes
_TWO = np.float32(2 / np.pi)  # turns half a turn into two


@dataclass(frozen=True)
class ShapePart:
    """A piece of surface over a grid [h, w]."""

    distance: Array  # [h, w], distance to the outline in radii, negative inside
    normal: Array  # [3, h, w] or [3], of unit length, z towards the viewer
    # Coordinates u and v, each [h, w], along which a pattern runs, one stripe or check a unit; None
    # where the part is plain.
    pattern: tuple[Array, Array] | None = None
    colour: Colour | None = None  # Replaces the thing's own colour; None keeps that


def _ball(x: Array, y: Array) -> list[ShapePart]:
    normal = _dome(x, y)
    outline = hypot(x, y) - 1
    return [ShapePart(outline, normal, _globe(normal))]


def _cube(x: Array, y: Array) -> list[ShapePart]:
    """Seen from the right and above: front, right side and top."""
    left = -0.95
    edge = 0.5
    right = 0.95
    near = -0.58
    far = -0.98
    front_left = (left, near)
    front_right = (edge, near)
    back_left = (left + right - edge, far)
    back_right = (right, far)
    foot = (edge, 1)
    front = _polygon(x, y, [front_left, front_right, foot, (left, 1)])
    side = _polygon(x, y, [front_right, back_right, (right, 0.62), foot])
    top = _polygon(x, y, [front_left, back_left, back_right, front_right])
    width = right - edge
    lean = (near - far) / width
    depth = (near - y) / (near - far)
    from_edge = x - edge
    side_pattern = (from_edge * 5, (y + from_edge * lean) * 2.4)
    top_pattern = ((x - depth * width) * 2.4, depth * 2)
    front_pattern = (x * 2.4, y * 2.4)
    side_part = ShapePart(side, _unit(0.95, -0.1, 0.3), side_pattern)
    top_part = ShapePart(top, _unit(-0.1, -0.95, 0.3), top_pattern)
    front_part = ShapePart(front, _unit(-0.15, -0.15, 1), front_pattern)
    return [side_part, top_part, front_part]


def _cone(x: Array, y: Array) -> list[ShapePart]:
    below_tip = (y + 1) / 1.8
    half = np.maximum(below_tip, 1e-3) * 0.85
    foot = _arch(x / 0.85) * 0.18 + 0.8
    above_foot = y - foot
    slope = (np.abs(x) - half) * 0.9
    outline = np.maximum(slope, above_foot)
    normal, across = _pillar(x, half, -0.35)
    pattern = (across * 2, above_foot * 2.4)
    return [ShapePart(outline, normal, pattern)]


def _cylinder(x: Array, y: Array) -> list[ShapePart]:
    half = 0.75
    bulge = _arch(x / half) * 0.2
    normal, across = _pillar(x, half, 0.0)
    below_foot = y - 0.8 - bulge
    ends = np.maximum(below_foot, -0.78 - y)
    body = np.maximum(np.abs(x) - half, ends)
    body_pattern = (across * 2, (y - bulge) * 2.4)
    from_lid = y + 0.78
    lid = _ellipse(x, from_lid, half, 0.2)
    lid_pattern = (x * 2.4, from_lid * 6)
    upwards = _unit(-0.1, -0.9, 0.4)
    return [ShapePart(body, normal, body_pattern), ShapePart(lid, upwards, lid_pattern)]


def _pyramid(x: Array, y: Array) -> list[ShapePart]:
    """Two of its faces, the right one narrower."""
    tip = (0, -1)
    foot = (0.25, 1)
    left = _polygon(x, y, [tip, foot, (-1, 0.72)])
    right = _polygon(x, y, [tip, (1, 0.7), foot])
    left_pattern = (x * 2.2, (y - x * 0.22) * 2.4)
    right_pattern = (x * 3, (y + x * 0.4) * 2.4)
    left_face = ShapePart(left, _unit(-0.3, -0.4, 0.9), left_pattern)
    right_face = ShapePart(right, _unit(0.8, -0.3, 0.4), right_pattern)
    return [left_face, right_face]


def _ring(x: Array, y: Array) -> list[ShapePart]:
    r = hypot(x, y) + 1e-6
    across = (r - 0.69) / 0.31
    tilt = np.clip(across, -1, 1)
    forward = np.sqrt(1 - tilt**2)
    outwards_x = x / r * tilt
    outwards_y = y / r * tilt
    normal = np.stack([outwards_x, outwards_y, forward])
    around = arctan2(y, x) * _FIVE
    outline = (np.abs(across) - 1) * 0.31
    pattern = (around, across + around)
    return [ShapePart(outline, normal, pattern)]


def _star(x: Array, y: Array) -> list[ShapePart]:
    """Five points, ten facets."""
    y = y - 0.09
    angle = arctan2(x, -y)
    fold = 2 * np.pi / 5
    turn = np.round(angle / fold) * fold
    r = hypot(x, y)
    local = angle - turn
    along = r * cos(local)
    across = np.abs(r * sin(local))
    tip = 1.09
    notch = 0.5
    # The edge runs from the tip (tip, 0) to the notch between two points.
    notch_x = notch * cos(fold / 2)
    notch_y = notch * sin(fold / 2)
    length = hypot(tip - notch_x, notch_y)
    # The facet leans outwards over its edge.
    slope_x = notch_y / length
    slope_y = (tip - notch_x) / length
    distance = (along - tip) * slope_x + across * slope_y
    slope_y = slope_y * np.sign(local)
    sin_turn = sin(turn)
    cos_turn = cos(turn)
    normal_x = 0.8 * (slope_x * sin_turn + slope_y * cos_turn)
    normal_y = 0.8 * (-slope_x * cos_turn + slope_y * sin_turn)
    normal = _normalise(normal_x, normal_y, np.ones_like(x))
    pattern = (x * 2.4, y * 2.4)
    return [ShapePart(distance, normal, pattern)]


def _heart(x: Array, y: Array) -> list[ShapePart]:
    """(x² + y² - 1)³ = x²y³, blown up like a cushion."""
    p = x * 1.17
    q = 0.22 - (y - 0.05) * 1.17
    pp = p * p
    qq = q * q
    body = pp + qq - 1
    level = body * body * body - pp * qq * q
    slope_x = 6 * p * body * body - 2 * p * qq * q
    slope_y = 3 * pp * qq - 6 * q * body * body
    steep = hypot(slope_x, slope_y) + 1e-6
    # The rim faces outwards along the slope; towards the middle the cushion rounds off like a ball.
    from_outline = cbrt(level) * 1.6
    rim = np.clip(1 + from_outline, 0, 1)
    rim *= rim
    inner = 1 - rim
    across = slope_x / steep * rim + p * 0.55 * inner
    down = slope_y / steep * rim - q * 0.55 * inner
    height = 1 - across**2 - down**2
    squared = np.clip(height, 1e-3, 1)
    normal = _normalise(across, down, np.sqrt(squared))
    outline = level / steep / 1.17
    pattern = (x * 2.4, y * 2.4)
    return [ShapePart(outline, normal, pattern)]


def _mushroom(x: Array, y: Array) -> list[ShapePart]:
    below_cap = np.clip(y, 0, 1)
    stem_half = 0.27 + 0.1 * below_cap**2
    stem_normal, across = _pillar(x, stem_half, 0.1)
    foot = y - 0.9 - 0.1 * _arch(across)
    ends = np.maximum(-0.2 - y, foot)
    stem = np.maximum(np.abs(x) - stem_half, ends)
    rim = 0.02 + 0.14 * _arch(x)
    dome = _ellipse(x, y, 1.0, 1.0)
    cap = np.maximum(dome, y - rim)
    normal = _dome(x, y * 0.95)
    cream = (0.94, 0.89, 0.78)
    return [
        ShapePart(stem, stem_normal, None, cream),
        ShapePart(cap, normal, _globe(normal)),
    ]


def _mug(x: Array, y: Array) -> list[ShapePart]:
    half = 0.68 - 0.06 * (y + 1) / 2
    bulge = _arch(x / half) * 0.16
    normal, across = _pillar(x, half, 0.0)
    below_foot = y - 0.84 - bulge
    ends = np.maximum(below_foot, -0.72 - y)
    body = np.maximum(np.abs(x) - half, ends)
    pattern = (across * 2, (y - bulge) * 2.4)
    from_handle = x - 0.66
    beyond = hypot(from_handle, y * 0.9) - 0.4
    handle = np.abs(beyond) - 0.1
    outwards = np.sign(beyond)
    handle_normal = _normalise(from_handle * outwards, y * outwards, 0.6)
    rim = _ellipse(x, y + 0.72, 0.69, 0.17)
    coffee = _ellipse(x, y + 0.71, 0.6, 0.125)
    brown = (0.24, 0.16, 0.12)
    handle_part = ShapePart(handle, handle_normal)
    body_part = ShapePart(body, normal, pattern)
    rim_part = ShapePart(rim, _unit(0, -0.8, 0.6))
    coffee_part = ShapePart(coffee, _unit(0, 0.3, 0.5), None, brown)
    return [handle_part, body_part, rim_part, coffee_part]


def _balloon(x: Array, y: Array) -> list[ShapePart]:
    down = np.clip(y, -1, 1)
    squeeze = 0.86 - 0.16 * down
    px = x / squeeze
    py = y + 0.08
    wave = 0.06 * sin(y * 7)
    curl = np.abs(x - wave) - 0.018
    ends = np.maximum(0.95 - y, y - 1.7)
    string = np.maximum(curl, ends)
    corners = [(0, 0.86), (0.12, 1.06), (-0.12, 1.06)]
    knot = _polygon(x, y, corners)
    skin = (hypot(px, py) - 1) * 0.8
    normal = _dome(px, py)
    pale = (0.93, 0.93, 0.9)
    string_part = ShapePart(string, _unit(0, 0, 1), None, pale)
    knot_part = ShapePart(knot, _unit(0.3, 0.5, 0.8))
    skin_part = ShapePart(skin, normal, _globe(normal))
    return [string_part, knot_part, skin_part]


def _umbrella(x: Array, y: Array) -> list[ShapePart]:
    """Open, standing on its hooked handle; every panel is a stripe."""
    ends = np.maximum(-0.9 - y, y - 0.88)
    pole = np.maximum(np.abs(x) - 0.035, ends)
    from_bend = hypot(x - 0.12, y - 0.88) - 0.12
    bow = np.abs(from_bend) - 0.035
    hook = np.maximum(bow, 0.88 - y)
    wood = (0.36, 0.22, 0.12)
    height = y - 0.05
    squared = np.clip(1.16 - height**2, 0.02, 2)
    half = np.sqrt(squared)
    across = np.clip(x / half, -1, 1)
    panel = arcsin(across) * (6 / np.pi)
    scallop = np.abs(sin(panel * np.pi))
    hem = 0.05 - 0.1 * scallop
    dome = _ellipse(x, height, 1.08, 1.0)
    canopy = np.maximum(dome, y - hem)
    normal = _dome(x / 1.08, height)
    _, parallels = _globe(normal)
    handle = np.minimum(pole, hook)
    handle_part = ShapePart(handle, _unit(-0.3, 0, 1), None, wood)
    canopy_part = ShapePart(canopy, normal, (panel, parallels))
    return [handle_part, canopy_part]


def reach(shape: str) -> tuple[float, float, float, float]:
    """Find a box that holds a shape."""
    bottom = 1.1
    if shape == "balloon":
        # Its string hangs down.
        bottom = 1.75
    return -1.1, -1.1, 1.2, bottom


def _polygon(x: Array, y: Array, points: Sequence[tuple[float, float]]) -> Array:
    """Distance to a convex polygon, exact inside and along its edges; its points may run in either
    direction.
    """
    following = [*points[1:], points[0]]
    edges = list(zip(points, following, strict=True))
    area = sum(ax * by - bx * ay for (ax, ay), (bx, by) in edges)
    direction = np.sign(area)
    shape = np.broadcast_shapes(x.shape, y.shape)
    farthest = np.full(shape, -np.inf, np.float32)
    for (ax, ay), (bx, by) in edges:
        edge_x = bx - ax
        edge_y = by - ay
        outwards = direction / hypot(edge_x, edge_y)
        from_corner_x = x - ax
        from_corner_y = y - ay
        beside = from_corner_x * edge_y - from_corner_y * edge_x
        np.maximum(farthest, beside * outwards, out=farthest)
    return farthest


def _arch(x: Array) -> Array:
    """The height of a half circle of radius 1; 0 beyond its ends."""
    squared = np.clip(1 - x**2, 0, 1)
    return np.sqrt(squared)


def _ellipse(x: Array, y: Array, rx: float, ry: float) -> Array:
    """Distance to an ellipse around the origin, exact at its axes."""
    beyond = hypot(x / rx, y / ry) - 1
    return beyond * min(rx, ry)


def _unit(x: float, y: float, z: float) -> Array:
    squared = x * x + y * y + z * z
    length = np.sqrt(squared)
    return np.array((x, y, z), np.float32) / np.float32(length)


def _normalise(x: Array, y: Array, z: Array | float) -> Array:
    squared = x * x + y * y + z * z
    length = np.maximum(np.sqrt(squared), 1e-6)
    return np.stack([x / length, y / length, z / length])


def _dome(x: Array, y: Array) -> Array:
    """The normals of a half ball of radius 1 that faces the viewer; beyond its rim they point
    sideways.
    """
    squared = np.clip(1 - x**2 - y**2, 1e-4, 1)
    return _normalise(x, y, np.sqrt(squared))


def _globe(normal: Array) -> tuple[Array, Array]:
    """Pattern coordinates along the meridians and parallels of a ball whose axis leans a little."""
    x, y, z = normal
    along = 0.94 * x + 0.34 * y
    leaning = 0.94 * y - 0.34 * x
    up = np.clip(leaning, -1, 1)
    return arctan2(along, z) * _FIVE, arcsin(up) * _FIVE


def _pillar(x: Array, half: Array | float, rise: float) -> tuple[Array, Array]:
    """Normals of a round pillar of half width `half`, and the angle around it from -1 to 1."""
    across = np.clip(x / half, -1, 1)
    squared = np.clip(1 - across**2, 1e-4, 1)
    upwards = np.full_like(across, rise)
    normal = _normalise(across, upwards, np.sqrt(squared))
    return normal, arcsin(across) * _TWO


SHAPES: dict[str, Callable[[Array, Array], list[ShapePart]]] = {
    "ball": _ball,
    "cube": _cube,
    "cone": _cone,
    "cylinder": _cylinder,
    "pyramid": _pyramid,
    "ring": _ring,
    "star": _star,
    "heart": _heart,
    "mushroom": _mushroom,
    "mug": _mug,
    "balloon": _balloon,
    "umbrella": _umbrella,
}
