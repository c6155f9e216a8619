"""Plants in the background."""

import numpy as np

from pipeline.sample.canvas import Canvas, tinted
from pipeline.sample.elementary import cos, sin

Rng = np.random.Generator


def trees(canvas: Canvas, rng: Rng, ground: float) -> None:
    """Leafy trees, their crowns of a few round tufts."""
    for x in rng.permutation(np.linspace(0.05, 0.95, 7))[:5] + rng.uniform(-0.03, 0.03, 5):
        size = rng.uniform(0.05, 0.075)
        canvas.trapezoid(x, ground - size, 0.005, ground + 0.01, 0.008, (0.30, 0.20, 0.12))
        for dx, dy, shade in ((0.3, -1.3, 0.8), (-0.5, -1.2, 0.9), (0.0, -1.9, 1.0), (-0.15, -1.45, 1.1)):
            green = (0.16 * shade, 0.42 * shade, 0.14 * shade)
            canvas.ellipse(x + dx * size, ground + dy * size, 0.62 * size, 0.58 * size, green)


def pines(canvas: Canvas, rng: Rng, ground: float) -> None:
    """Fir trees of four tiers, each with snow on top."""
    for x in rng.permutation(np.linspace(0.04, 0.96, 9))[:6] + rng.uniform(-0.02, 0.02, 6):
        size = rng.uniform(0.16, 0.25)
        for k in range(4):
            top, half = ground - size * (1 - 0.2 * k), size * (0.12 + 0.06 * k)
            canvas.trapezoid(x, top, 0.0, top + size * 0.36, half, (0.10, 0.28 + 0.02 * k, 0.20))
            canvas.trapezoid(x, top, 0.0, top + size * 0.13, 0.4 * half, (0.92, 0.95, 0.98))


def trunks(canvas: Canvas, rng: Rng, ground: float) -> None:
    """Tall trunks, the far ones pale and thin, the near ones dark and thick."""
    for depth in np.linspace(0, 1, 13).tolist():
        x, half = rng.uniform(-0.02, 1.02), 0.008 + 0.02 * depth * rng.uniform(0.7, 1.2)
        where = canvas.window(x - half, 0, x + half, ground - 0.03 + 0.05 * depth)
        around = np.sqrt(np.clip(1 - ((canvas.x[:, where[1]] - x) / half + 0.4) ** 2 / 2, 0.1, 1))
        bark = (0.46 - 0.16 * depth, 0.42 - 0.22 * depth, 0.32 - 0.20 * depth)
        canvas.blend(where, tinted(bark, around), 1.0)


def palm(canvas: Canvas, x: float, ground: float) -> None:
    """A palm that leans towards the middle of the picture."""
    lean, top = (0.5 - x) * 0.12, ground - 0.36
    for k in range(12):
        shade = 0.85 + 0.3 * (k % 2)
        trunk = (0.45 * shade, 0.32 * shade, 0.20 * shade)
        y = ground - 0.03 * k
        canvas.trapezoid(x + lean * (k * k / 144), y - 0.03, 0.011, y, 0.014, trunk)
    x += lean
    for angle in np.linspace(-0.5, np.pi + 0.5, 8).tolist():
        dx, dy = float(cos(angle)), -float(sin(angle))
        bend, tip = (x + 0.09 * dx, top + 0.07 * dy - 0.02), (x + 0.17 * dx, top + 0.09 * dy + 0.05)
        under = (bend[0] - 0.008, bend[1] + 0.035)
        canvas.polygon([(x, top), bend, tip, under], (0.12, 0.48 if dx < 0 else 0.40, 0.14))


def cactus(canvas: Canvas, x: float, ground: float) -> None:
    """A stem with two arms."""
    green, dark = (0.20, 0.50, 0.24), (0.13, 0.36, 0.17)
    for dx, top, foot, r in (
        (0.0, 0.30, 0.0, 0.024),
        (-0.055, 0.20, 0.11, 0.016),
        (0.055, 0.24, 0.14, 0.016),
    ):
        middle, y0, y1 = x + dx, ground - top, ground - foot
        canvas.ellipse(middle, y0, r, r, green)
        canvas.box(middle - r, y0, middle + r, y1, green)
        canvas.box(middle + 0.3 * r, y0, middle + r, y1, dark)
        if dx:
            canvas.box(min(x, middle - r), y1, max(x, middle + r), y1 + 0.03, green)


def flowers(canvas: Canvas, rng: Rng, top: float) -> None:
    """Dots of blossom all over the ground, larger towards the viewer."""
    hues = ((0.98, 0.95, 0.96), (0.99, 0.85, 0.25), (0.95, 0.45, 0.65))
    for x, y in rng.uniform((0, top), (1, 1), (90, 2)).tolist():
        r = 0.003 + 0.007 * (y - top) / (1 - top)
        canvas.ellipse(x, y, r * 1.2, r, hues[int(rng.integers(3))])
