"""What makes up a landscape: hills, water, towers, and what stands among them."""

import numpy as np

from pipeline.sample.canvas import Canvas, Colour
from pipeline.sample.elementary import sin
from pipeline.sample.palette import TOWERS, WATER

Rng = np.random.Generator


def hill(canvas: Canvas, rng: Rng, top: float, height: float, colour: Colour) -> None:
    """A rolling silhouette over the whole width, down to the ground."""
    waves, one, two = rng.uniform(4, 8), rng.uniform(0, 6), rng.uniform(0, 6)
    edge = top + height * (0.6 * sin(canvas.x * waves + one) + 0.4 * sin(canvas.x * waves * 2.1 + two))
    where = canvas.band(top - height, 0.66)
    canvas.blend(where, colour, np.clip((canvas.y[where[0]] - edge) * canvas.side, 0, 1))


def mountains(canvas: Canvas, rng: Rng, ground: float) -> None:
    """Grey peaks, their sunny side lighter, with snow on top."""
    for left in (-0.12, 0.20, 0.48, 0.72):
        x, height, half = left + rng.uniform(0.14, 0.2), rng.uniform(0.16, 0.30), rng.uniform(0.2, 0.28)
        top = ground - height
        canvas.polygon([(x, top), (x + half, ground), (x - half, ground)], (0.47, 0.52, 0.62))
        canvas.polygon([(x, top), (x + half, ground), (x + 0.05, ground)], (0.36, 0.40, 0.51))
        edge = ((0, 0), (0.3, 0.3), (0.1, 0.24), (-0.05, 0.36), (-0.16, 0.25), (-0.3, 0.3))
        canvas.polygon([(x + dx * half, top + dy * height) for dx, dy in edge], (0.95, 0.96, 0.98))


def water(canvas: Canvas, rng: Rng, top: float, bottom: float, mood: str) -> None:
    """Choppy water up to the horizon."""
    canvas.gradient(top, bottom, WATER[mood])
    where = canvas.band(top, bottom)
    waves = canvas.noise(rng, 14, 26, where)
    canvas.shade(where, 0.16 * waves + 0.5 * np.clip(waves - 0.55, 0, 1))


def sailboat(canvas: Canvas, x: float, line: float) -> None:
    """Two white sails over a brown hull."""
    main = ((0.004, -0.012), (0.004, -0.125), (0.062, -0.02))
    jib = ((-0.006, -0.012), (-0.006, -0.10), (-0.042, -0.02))
    hull = ((-0.055, -0.01), (0.065, -0.01), (0.042, 0.016), (-0.04, 0.016))
    colours = ((0.97, 0.97, 0.95), (0.86, 0.87, 0.88), (0.40, 0.22, 0.14))
    for points, colour in zip((main, jib, hull), colours, strict=True):
        canvas.polygon([(x + dx, line + dy) for dx, dy in points], colour)


def skyline(canvas: Canvas, rng: Rng, ground: float, mood: str) -> None:
    """Two rows of towers, the nearer one with windows."""
    tone, glass = TOWERS[mood], (1.0, 0.85, 0.45) if mood == "sunset" else (0.78, 0.88, 0.95)
    for left in np.arange(-0.02, 1, 0.09):
        canvas.box(left, ground - rng.uniform(0.22, 0.46), left + 0.085, ground, tone)
    for left in np.arange(-0.03, 1, 0.135):
        top, right = ground - rng.uniform(0.12, 0.34), left + rng.uniform(0.095, 0.125)
        canvas.box(left, top, right, ground, [rng.uniform(0.62, 0.78) * value for value in tone])
        for x in np.arange(left + 0.014, right - 0.02, 0.026):
            for y in np.arange(top + 0.016, ground - 0.03, 0.034):
                if rng.random() < 0.7:
                    canvas.box(x, y, x + 0.013, y + 0.017, glass)


def street_lamp(canvas: Canvas, x: float, ground: float) -> None:
    """A lantern on an iron post."""
    iron = (0.13, 0.14, 0.15)
    canvas.trapezoid(x, ground - 0.40, 0.006, ground, 0.008, iron)
    canvas.trapezoid(x, ground - 0.47, 0.030, ground - 0.40, 0.018, (1.0, 0.92, 0.62))
    canvas.trapezoid(x, ground - 0.50, 0.0, ground - 0.47, 0.036, iron)
    canvas.glow(x, ground - 0.435, 0.05, 0.05, (1.0, 0.93, 0.65), 0.55)


def campfire(canvas: Canvas, x: float, ground: float) -> None:
    """Flames over two crossed logs."""
    canvas.glow(x, ground - 0.03, 0.11, 0.08, (1.0, 0.55, 0.15), 0.65)
    for turn in (-0.012, 0.012):
        log = ((-0.05, turn), (0.05, -turn), (0.05, 0.014 - turn), (-0.05, 0.014 + turn))
        canvas.polygon([(x + dx, ground + dy) for dx, dy in log], (0.30, 0.17, 0.09))
    flame = ((-35, -10), (-28, -50), (-10, -40), (0, -110), (14, -50), (30, -65), (35, -10))
    for size, colour in ((1.0, (0.95, 0.35, 0.08)), (0.7, (1.0, 0.62, 0.12)), (0.4, (1.0, 0.92, 0.50))):
        step = size / 1000
        canvas.polygon([(x + dx * step, ground + 0.01 + dy * step) for dx, dy in flame], colour)


def craters(canvas: Canvas, rng: Rng, top: float) -> None:
    """Round holes with a bright rim, wider towards the viewer."""
    for _ in range(9):
        x, y = rng.uniform(0, 1), rng.uniform(top + 0.02, 0.99)
        r = rng.uniform(0.02, 0.05) * (0.5 + 1.2 * (y - top) / (1 - top))
        canvas.ellipse(x, y + 0.08 * r, r * 1.06, r * 0.36, (0.72, 0.72, 0.74))
        canvas.ellipse(x, y, r, r * 0.3, (0.36, 0.36, 0.39))
        canvas.ellipse(x + 0.1 * r, y + 0.07 * r, r * 0.8, r * 0.2, (0.47, 0.47, 0.5))


def rocket(canvas: Canvas, x: float, ground: float) -> None:
    """A white rocket with red fins and tip, standing."""
    top = ground - 0.34
    canvas.trapezoid(x, ground - 0.13, 0.03, ground, 0.07, (0.70, 0.13, 0.13))
    canvas.trapezoid(x, top + 0.1, 0.04, ground, 0.035, (0.90, 0.91, 0.93))
    canvas.box(x + 0.012, top + 0.1, x + 0.036, ground, (0.72, 0.74, 0.78))
    canvas.trapezoid(x, top, 0.0, top + 0.1, 0.04, (0.78, 0.16, 0.16))
    canvas.ellipse(x, top + 0.16, 0.018, 0.018, (0.30, 0.50, 0.70))
