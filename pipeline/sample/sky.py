"""What is in the sky, from stars to birds."""

import numpy as np

from pipeline.sample.canvas import Canvas, Colour
from pipeline.sample.elementary import decay, hypot, sin

Rng = np.random.Generator
WHITE: Colour = (1.0, 1.0, 1.0)


def sun(canvas: Canvas, x: float, mood: str, horizon: float) -> None:
    """High and white on a clear day, low and orange at sunset."""
    y, core = (0.11, (1.0, 0.97, 0.80)) if mood == "clear" else (horizon - 0.1, (1.0, 0.90, 0.55))
    canvas.glow(x, y, 0.09, 0.09, core, 0.75)
    canvas.ellipse(x, y, 0.042, 0.042, core)


def moon(canvas: Canvas, x: float, crescent: bool) -> None:
    """A full moon, or a crescent."""
    y, r = 0.13, 0.065
    canvas.glow(x, y, 0.11, 0.11, (0.65, 0.72, 0.90), 0.35)
    if crescent:
        where = canvas.window(x - r, y - r, x + r, y + r)
        px, py = canvas.x[:, where[1]] - x, canvas.y[where[0]] - y
        inside = np.minimum(r - hypot(px, py), hypot(px - 0.6 * r, py + 0.2 * r) - 0.95 * r)
        canvas.blend(where, (0.97, 0.95, 0.85), np.clip(inside * canvas.side, 0, 1))
        return
    canvas.ellipse(x, y, r, r, (0.95, 0.94, 0.88))
    for dx, dy, size in ((-0.3, -0.2, 0.25), (0.3, 0.1, 0.18), (-0.1, 0.4, 0.2)):
        canvas.ellipse(x + dx * r, y + dy * r, size * r, size * r, (0.82, 0.82, 0.78))


def stars(canvas: Canvas, rng: Rng, horizon: float) -> None:
    """Small stars above the horizon."""
    for x, y, size in rng.uniform((0, 0, 0.0012), (1, horizon, 0.0035), (70, 3)):
        canvas.glow(x, y, size, size, WHITE, 0.9)


def planet(canvas: Canvas, x: float) -> None:
    """A banded planet with a flat ring around it."""
    y, r = 0.14, 0.085
    where = canvas.window(x - 2 * r, y - r, x + 2 * r, y + r)
    px, py = (canvas.x[:, where[1]] - x) / r, (canvas.y[where[0]] - y) / r
    bands = 0.5 + 0.5 * sin(py * 11 + 0.5 * px)
    lit = np.clip(0.75 - 0.35 * px - 0.35 * py, 0.15, 1.1)
    colour = [(low + high * bands) * lit for low, high in ((0.86, 0.08), (0.62, 0.14), (0.38, 0.18))]
    canvas.blend(where, colour, np.clip((1 - hypot(px, py)) * r * canvas.side, 0, 1))
    tilted = py + 0.25 * px
    band = 1 - np.abs(hypot(px / 1.65, tilted / 0.36) - 1) / 0.16
    front = (tilted > 0) | (hypot(px, py) > 1)
    canvas.blend(where, (0.88, 0.80, 0.68), np.clip(band * 3, 0, 0.85) * front)


def rainbow(canvas: Canvas) -> None:
    """A rainbow over the whole width."""
    where = canvas.band(0, 0.56)
    r = hypot(canvas.x - 0.5, canvas.y[where[0]] - 0.62)
    hues: list[Colour] = [(0.55, 0.25, 0.75), (0.25, 0.40, 0.90), (0.25, 0.75, 0.35)]
    hues += [(0.98, 0.90, 0.25), (0.97, 0.55, 0.15), (0.90, 0.18, 0.18)]
    for k, hue in enumerate(hues):
        canvas.blend(where, hue, 0.62 * decay(-(((r - 0.46 - 0.016 * k) / 0.009) ** 2)))


def birds(canvas: Canvas, x: float) -> None:
    """Four dark birds high in the sky."""
    x, y = x - 0.07, 0.11
    for dx, dy in ((0, 0), (0.08, 0.035), (0.15, -0.01), (0.05, -0.04)):
        for side in (-1, 1):
            tip, bend = (x + dx + side * 0.03, y + dy - 0.014), (x + dx + side * 0.014, y + dy - 0.02)
            canvas.polygon([(x + dx, y + dy), bend, tip, (bend[0], bend[1] + 0.009)], (0.12, 0.12, 0.16))


def snowfall(canvas: Canvas, rng: Rng) -> None:
    """Flakes of different size over the whole picture, things excepted."""
    for x, y, r in rng.uniform((0, 0, 0.006), (1, 1, 0.011), (130, 3)).tolist():
        canvas.ellipse(x, y, r, r, WHITE)
