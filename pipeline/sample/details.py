"""What stands, lies or flies in the background: one function each, drawn on a canvas with a generator for its whims."""

from __future__ import annotations

import numpy as np

from pipeline.sample.canvas import Array, Canvas, Colour

Rng = np.random.Generator
WHITE: Colour = (1.0, 1.0, 1.0)


def sun(canvas: Canvas, x: float, mood: str, horizon: float) -> None:
    """High and white on a clear day, low and orange at sunset."""
    y, core = (0.11, (1.0, 0.97, 0.80)) if mood == "clear" else (horizon - 0.1, (1.0, 0.90, 0.55))
    canvas.glow(x, y, 0.09, 0.09, core, 0.75)
    canvas.ellipse(x, y, 0.042, 0.042, core)


def moon(canvas: Canvas, x: float, crescent: bool) -> None:
    y, r = 0.13, 0.065
    canvas.glow(x, y, 0.11, 0.11, (0.65, 0.72, 0.90), 0.35)
    if crescent:
        where = canvas.window(x - r, y - r, x + r, y + r)
        px, py = canvas.x[:, where[1]] - x, canvas.y[where[0]] - y
        inside = np.minimum(r - np.hypot(px, py), np.hypot(px - 0.6 * r, py + 0.2 * r) - 0.95 * r)
        canvas.blend(where, (0.97, 0.95, 0.85), np.clip(inside * canvas.side, 0, 1))
        return
    canvas.ellipse(x, y, r, r, (0.95, 0.94, 0.88))
    for dx, dy, size in ((-0.3, -0.2, 0.25), (0.3, 0.1, 0.18), (-0.1, 0.4, 0.2)):
        canvas.ellipse(x + dx * r, y + dy * r, size * r, size * r, (0.82, 0.82, 0.78))


def stars(canvas: Canvas, rng: Rng, horizon: float) -> None:
    for x, y, size in rng.uniform((0, 0, 0.0012), (1, horizon, 0.0035), (70, 3)):
        canvas.glow(x, y, size, size, WHITE, 0.9)


def planet(canvas: Canvas, x: float) -> None:
    """A banded planet with a flat ring around it."""
    y, r = 0.14, 0.085
    where = canvas.window(x - 2 * r, y - r, x + 2 * r, y + r)
    px, py = (canvas.x[:, where[1]] - x) / r, (canvas.y[where[0]] - y) / r
    bands = 0.5 + 0.5 * np.sin(py * 11 + 0.5 * px)
    lit = np.clip(0.75 - 0.35 * px - 0.35 * py, 0.15, 1.1)
    colour = [(low + high * bands) * lit for low, high in ((0.86, 0.08), (0.62, 0.14), (0.38, 0.18))]
    canvas.blend(where, colour, np.clip((1 - np.hypot(px, py)) * r * canvas.side, 0, 1))
    tilted = py + 0.25 * px
    band = 1 - np.abs(np.hypot(px / 1.65, tilted / 0.36) - 1) / 0.16
    front = (tilted > 0) | (np.hypot(px, py) > 1)
    canvas.blend(where, (0.88, 0.80, 0.68), np.clip(band * 3, 0, 0.85) * front)


def rocket(canvas: Canvas, x: float, ground: float) -> None:
    top = ground - 0.34
    canvas.polygon([(x - 0.07, ground), (x - 0.035, ground - 0.12), (x - 0.03, ground)], (0.75, 0.15, 0.15))
    canvas.polygon([(x + 0.07, ground), (x + 0.035, ground - 0.12), (x + 0.03, ground)], (0.62, 0.10, 0.10))
    body = [(x - 0.035, ground), (x - 0.04, top + 0.1), (x, top), (x + 0.04, top + 0.1), (x + 0.035, ground)]
    canvas.polygon(body, (0.90, 0.91, 0.93))
    canvas.polygon(
        [(x, top), (x + 0.04, top + 0.1), (x + 0.035, ground), (x + 0.008, ground)], (0.72, 0.74, 0.78)
    )
    canvas.polygon([(x, top), (x + 0.04, top + 0.1), (x - 0.04, top + 0.1)], (0.78, 0.16, 0.16))
    canvas.ellipse(x, top + 0.16, 0.018, 0.018, (0.30, 0.50, 0.70))


def craters(canvas: Canvas, rng: Rng, top: float) -> None:
    for _ in range(9):
        y = rng.uniform(top + 0.02, 0.99)
        near = (y - top) / (1 - top)
        rx = rng.uniform(0.02, 0.05) * (0.5 + 1.2 * near)
        x = rng.uniform(0, 1)
        canvas.ellipse(x, y + 0.08 * rx, rx * 1.06, rx * 0.36, (0.72, 0.72, 0.74))
        canvas.ellipse(x, y, rx, rx * 0.3, (0.36, 0.36, 0.39))
        canvas.ellipse(x + 0.1 * rx, y + 0.07 * rx, rx * 0.8, rx * 0.2, (0.47, 0.47, 0.5))


def rainbow(canvas: Canvas) -> None:
    where = canvas.band(0, 0.56)
    r = np.hypot(canvas.x - 0.5, canvas.y[where[0]] - 0.62)
    hues: list[Colour] = [(0.55, 0.25, 0.75), (0.25, 0.40, 0.90), (0.25, 0.75, 0.35)]
    hues += [(0.98, 0.90, 0.25), (0.97, 0.55, 0.15), (0.90, 0.18, 0.18)]
    for k, hue in enumerate(hues):
        canvas.blend(where, hue, 0.62 * np.exp(-(((r - 0.46 - 0.016 * k) / 0.009) ** 2)))


def birds(canvas: Canvas, x: float) -> None:
    x, y = x - 0.07, 0.11
    for dx, dy in ((0, 0), (0.08, 0.035), (0.15, -0.01), (0.05, -0.04)):
        for side in (-1, 1):
            tip, bend = (x + dx + side * 0.03, y + dy - 0.014), (x + dx + side * 0.014, y + dy - 0.02)
            canvas.polygon([(x + dx, y + dy), bend, tip, (bend[0], bend[1] + 0.009)], (0.12, 0.12, 0.16))


def hill(canvas: Canvas, rng: Rng, top: float, height: float, colour: Colour) -> None:
    """A rolling silhouette over the whole width, down to the ground."""
    waves, one, two = rng.uniform(4, 8), rng.uniform(0, 6), rng.uniform(0, 6)
    edge = top + height * (0.6 * np.sin(canvas.x * waves + one) + 0.4 * np.sin(canvas.x * waves * 2.1 + two))
    where = canvas.band(top - height, 0.66)
    canvas.blend(where, colour, np.clip((canvas.y[where[0]] - edge) * canvas.side, 0, 1))


def mountains(canvas: Canvas, rng: Rng, ground: float) -> None:
    """Grey peaks, their sunny side lighter, with snow on top."""
    for left in (-0.12, 0.2, 0.48, 0.72):
        x, top, half = left + rng.uniform(0.14, 0.2), ground - rng.uniform(0.16, 0.30), rng.uniform(0.2, 0.28)
        height = ground - top
        canvas.polygon([(x, top), (x + half, ground), (x - half, ground)], (0.47, 0.52, 0.62))
        canvas.polygon([(x, top), (x + half, ground), (x + 0.05, ground)], (0.36, 0.40, 0.51))
        cap = [(x, top), (x + 0.3 * half, top + 0.3 * height), (x + 0.1 * half, top + 0.24 * height)]
        cap += [(x - 0.05 * half, top + 0.36 * height), (x - 0.16 * half, top + 0.25 * height)]
        canvas.polygon([*cap, (x - 0.3 * half, top + 0.3 * height)], (0.95, 0.96, 0.98))


def trees(canvas: Canvas, rng: Rng, ground: float) -> None:
    for x in rng.permutation(np.linspace(0.05, 0.95, 7))[:5] + rng.uniform(-0.03, 0.03, 5):
        size = rng.uniform(0.05, 0.075)
        canvas.polygon(
            [
                (x - 0.008, ground + 0.01),
                (x - 0.005, ground - size),
                (x + 0.005, ground - size),
                (x + 0.008, ground + 0.01),
            ],
            (0.30, 0.20, 0.12),
        )
        for dx, dy, shade in ((0.3, -1.3, 0.8), (-0.5, -1.2, 0.9), (0.0, -1.9, 1.0), (-0.15, -1.45, 1.1)):
            colour = (0.16 * shade, 0.42 * shade, 0.14 * shade)
            canvas.ellipse(x + dx * size, ground + dy * size, 0.62 * size, 0.58 * size, colour)


def pines(canvas: Canvas, rng: Rng, ground: float) -> None:
    for x in rng.permutation(np.linspace(0.04, 0.96, 9))[:6] + rng.uniform(-0.02, 0.02, 6):
        size = rng.uniform(0.16, 0.25)
        for k in range(4):
            top, half = ground - size * (1 - 0.2 * k), size * (0.12 + 0.06 * k)
            canvas.polygon(
                [(x, top), (x + half, top + size * 0.36), (x - half, top + size * 0.36)],
                (0.10, 0.28 + 0.02 * k, 0.20),
            )
            canvas.polygon(
                [(x, top), (x + 0.4 * half, top + size * 0.13), (x - 0.4 * half, top + size * 0.13)],
                (0.92, 0.95, 0.98),
            )


def palm(canvas: Canvas, x: float, ground: float) -> None:
    lean, top = (0.5 - x) * 0.12, ground - 0.36
    for k in range(12):
        y0, y1 = ground - 0.36 * k / 12, ground - 0.36 * (k + 1) / 12
        dx = x + lean * (k / 12) ** 2
        shade = 0.85 + 0.3 * (k % 2)
        canvas.polygon(
            [(dx - 0.014, y0), (dx - 0.011, y1), (dx + 0.011, y1), (dx + 0.014, y0)],
            (0.45 * shade, 0.32 * shade, 0.20 * shade),
        )
    x += lean
    for angle in np.linspace(-0.5, np.pi + 0.5, 8):
        dx, dy = np.cos(angle), -np.sin(angle)
        middle = (x + 0.09 * dx, top + 0.07 * dy - 0.02)
        tip = (x + 0.17 * dx, top + 0.09 * dy + 0.05)
        under = (middle[0] - 0.008, middle[1] + 0.035)
        canvas.polygon([(x, top), middle, tip, under], (0.12, 0.40 + 0.08 * (dx < 0), 0.14))


def cactus(canvas: Canvas, rng: Rng, ground: float) -> None:
    green, dark = (0.20, 0.50, 0.24), (0.13, 0.36, 0.17)
    for x, size in ((rng.uniform(0.05, 0.12), 1.0), (rng.uniform(0.86, 0.94), 0.8)):
        arms = ((0.0, 0.30, 0.0, 0.024), (-0.055, 0.20, 0.11, 0.016), (0.055, 0.24, 0.14, 0.016))
        for dx, top, foot, half in arms:
            cx, y0, y1, r = x + dx * size, ground - top * size, ground - foot * size, half * size
            canvas.polygon([(cx - r, y0), (cx + r, y0), (cx + r, y1), (cx - r, y1)], green)
            canvas.ellipse(cx, y0, r, r, green)
            canvas.polygon(
                [(cx + 0.3 * r, y0 - 0.9 * r), (cx + r, y0), (cx + r, y1), (cx + 0.3 * r, y1)], dark
            )
            if dx:
                lower = ground - (foot - 0.03) * size
                canvas.polygon([(x, y1), (cx, y1), (cx, lower), (x, lower)], green)


def flowers(canvas: Canvas, rng: Rng, top: float) -> None:
    """Dots of blossom all over the ground, larger towards the viewer."""
    hues = ((0.98, 0.95, 0.96), (0.99, 0.85, 0.25), (0.95, 0.45, 0.65))
    for x, y in rng.uniform((0, top), (1, 1), (90, 2)):
        r = 0.003 + 0.007 * (y - top) / (1 - top)
        canvas.ellipse(x, y, r * 1.2, r, hues[int(rng.integers(3))])


def snowfall(canvas: Canvas, rng: Rng) -> None:
    for x, y, r in rng.uniform((0, 0, 0.003), (1, 1, 0.007), (130, 3)):
        canvas.ellipse(x, y, r, r, WHITE, 0.9)


def water(canvas: Canvas, rng: Rng, top: float, bottom: float, mood: str) -> None:
    colours: dict[str, list[Colour]] = {
        "clear": [(0.10, 0.40, 0.70), (0.16, 0.56, 0.78), (0.40, 0.76, 0.82)],
        "overcast": [(0.36, 0.44, 0.50), (0.46, 0.55, 0.60), (0.56, 0.64, 0.67)],
        "sunset": [(0.62, 0.36, 0.42), (0.50, 0.32, 0.48), (0.38, 0.30, 0.50)],
    }
    canvas.gradient(top, bottom, colours[mood])
    where = canvas.band(top, bottom)
    waves = canvas.noise(rng, 14, 26, where)
    canvas.shade(where, 0.16 * waves + 0.5 * np.clip(waves - 0.55, 0, 1))


def sailboat(canvas: Canvas, x: float, line: float) -> None:
    canvas.polygon(
        [(x + 0.004, line - 0.012), (x + 0.004, line - 0.125), (x + 0.062, line - 0.02)], (0.97, 0.97, 0.95)
    )
    canvas.polygon(
        [(x - 0.006, line - 0.012), (x - 0.006, line - 0.10), (x - 0.042, line - 0.02)], (0.86, 0.87, 0.88)
    )
    canvas.polygon(
        [
            (x - 0.055, line - 0.01),
            (x + 0.065, line - 0.01),
            (x + 0.042, line + 0.016),
            (x - 0.04, line + 0.016),
        ],
        (0.40, 0.22, 0.14),
    )


def skyline(canvas: Canvas, rng: Rng, ground: float, mood: str) -> None:
    """Two rows of towers, the nearer one with windows."""
    tone = {"clear": (0.62, 0.70, 0.82), "overcast": (0.60, 0.62, 0.66), "sunset": (0.55, 0.34, 0.44)}[mood]
    for left in np.arange(-0.02, 1, 0.09):
        top = ground - rng.uniform(0.22, 0.46)
        canvas.polygon([(left, ground), (left, top), (left + 0.085, top), (left + 0.085, ground)], tone)
    glass = (1.0, 0.85, 0.45) if mood == "sunset" else (0.78, 0.88, 0.95)
    for left in np.arange(-0.03, 1, 0.135):
        top, width = ground - rng.uniform(0.12, 0.34), rng.uniform(0.095, 0.125)
        near = tuple(float(rng.uniform(0.62, 0.78) * c) for c in tone)
        canvas.polygon([(left, ground), (left, top), (left + width, top), (left + width, ground)], near)
        for wx in np.arange(left + 0.014, left + width - 0.02, 0.026):
            for wy in np.arange(top + 0.016, ground - 0.03, 0.034):
                if rng.random() < 0.7:
                    canvas.polygon(
                        [(wx, wy), (wx + 0.013, wy), (wx + 0.013, wy + 0.017), (wx, wy + 0.017)], glass
                    )


def street_lamp(canvas: Canvas, x: float, ground: float) -> None:
    iron = (0.13, 0.14, 0.15)
    canvas.polygon(
        [(x - 0.008, ground), (x - 0.006, ground - 0.40), (x + 0.006, ground - 0.40), (x + 0.008, ground)],
        iron,
    )
    canvas.polygon(
        [
            (x - 0.03, ground - 0.47),
            (x + 0.03, ground - 0.47),
            (x + 0.018, ground - 0.40),
            (x - 0.018, ground - 0.40),
        ],
        (1.0, 0.92, 0.62),
    )
    canvas.polygon([(x - 0.036, ground - 0.47), (x, ground - 0.50), (x + 0.036, ground - 0.47)], iron)
    canvas.glow(x, ground - 0.435, 0.05, 0.05, (1.0, 0.93, 0.65), 0.55)


def trunks(canvas: Canvas, rng: Rng, ground: float) -> None:
    """Tall trunks, the far ones pale and thin, the near ones dark and thick."""
    for depth in np.linspace(0, 1, 13).tolist():
        x, half = rng.uniform(-0.02, 1.02), 0.008 + 0.02 * depth * rng.uniform(0.7, 1.2)
        where = canvas.window(x - half, 0, x + half, ground - 0.03 + 0.05 * depth)
        around = np.sqrt(np.clip(1 - ((canvas.x[:, where[1]] - x) / half + 0.4) ** 2 / 2, 0.1, 1))
        far, near = (0.46, 0.42, 0.32), (0.30, 0.20, 0.12)
        colour = [around * (a + (b - a) * depth) for a, b in zip(far, near, strict=True)]
        canvas.blend(where, colour, 1.0)


def campfire(canvas: Canvas, x: float, ground: float) -> None:
    canvas.glow(x, ground - 0.03, 0.11, 0.08, (1.0, 0.55, 0.15), 0.65)
    for turn in (-1, 1):
        canvas.polygon(
            [
                (x - 0.05, ground + turn * 0.012),
                (x + 0.05, ground - turn * 0.012),
                (x + 0.05, ground - turn * 0.012 + 0.014),
                (x - 0.05, ground + turn * 0.012 + 0.014),
            ],
            (0.30, 0.17, 0.09),
        )
    for size, colour in ((1.0, (0.95, 0.35, 0.08)), (0.7, (1.0, 0.62, 0.12)), (0.4, (1.0, 0.92, 0.50))):
        flame = [
            (x - 0.035, -0.01),
            (x - 0.028, -0.05),
            (x - 0.010, -0.04),
            (x, -0.11),
            (x + 0.014, -0.05),
            (x + 0.03, -0.065),
            (x + 0.035, -0.01),
        ]
        canvas.polygon([(x + (px - x) * size, ground + 0.01 + py * size) for px, py in flame], colour)


def planks(canvas: Canvas, rng: Rng, top: float, colour: Colour, count: int) -> None:
    """A wooden floor whose boards run towards the viewer."""
    where = canvas.band(top, 1)
    depth = canvas.y[where[0]] - top
    across = (canvas.x - 0.5) / (depth + 0.22) * (count * 0.6)
    board = np.floor(across)
    tone = rng.uniform(-0.12, 0.12, 4 * count).astype(np.float32)[board.astype(np.int32) % (4 * count)]
    offset = across - board
    gap = np.clip(np.minimum(offset, 1 - offset) * (depth + 0.22) * (220 / count), 0.35, 1)
    grain = 1 + tone + 0.07 * canvas.noise(rng, 128, 4, where)
    canvas.blend(where, _tinted(colour, grain * gap * (0.82 + 0.7 * depth)), 1.0)


def wall(canvas: Canvas, rng: Rng, bottom: float, colour: Colour) -> None:
    """Plaster, lit from the left."""
    canvas.gradient(0, bottom, [colour, colour])
    where = canvas.band(0, bottom)
    canvas.shade(where, 0.06 - 0.16 * canvas.x + 0.025 * canvas.noise(rng, 60, 38, where))


def tiles(canvas: Canvas, rng: Rng, bottom: float, colour: Colour) -> None:
    """Square glazed tiles with white joints."""
    wall(canvas, rng, bottom, colour)
    where = canvas.band(0, bottom)
    pitch = 0.104
    jx, jy = (canvas.x / pitch) % 1, (canvas.y[where[0]] / pitch) % 1
    joint = np.clip(np.maximum(np.abs(jx - 0.5), np.abs(jy - 0.5)) * 60 - 28.2, 0, 1)
    canvas.blend(where, (0.80, 0.79, 0.77), joint)
    canvas.blend(where, WHITE, 0.22 * np.exp(-((jx - 0.25) ** 2 + (jy - 0.25) ** 2) * 40))


def window(canvas: Canvas, x: float) -> None:
    """A window with a white frame and daylight behind it."""
    canvas.polygon(
        [(x - 0.15, 0.06), (x + 0.15, 0.06), (x + 0.15, 0.42), (x - 0.15, 0.42)], (0.97, 0.97, 0.96)
    )
    for left in (x - 0.135, x + 0.008):
        for top in (0.075, 0.248):
            pane = [(left, top), (left + 0.127, top), (left + 0.127, top + 0.157), (left, top + 0.157)]
            canvas.polygon(pane, (0.62, 0.82, 0.96))
            canvas.polygon(
                [
                    (left + 0.02, top + 0.157),
                    (left + 0.09, top),
                    (left + 0.12, top),
                    (left + 0.05, top + 0.157),
                ],
                WHITE,
                0.35,
            )
    canvas.polygon(
        [(x - 0.17, 0.42), (x + 0.17, 0.42), (x + 0.17, 0.44), (x - 0.17, 0.44)], (0.88, 0.87, 0.85)
    )


def painting(canvas: Canvas, x: float) -> None:
    """A framed landscape on the wall."""
    left, right = x - 0.13, x + 0.13
    canvas.polygon(
        [(left + 0.01, 0.105), (right + 0.015, 0.105), (right + 0.015, 0.335), (left + 0.01, 0.335)],
        (0, 0, 0),
        0.25,
    )
    canvas.polygon([(left, 0.09), (right, 0.09), (right, 0.32), (left, 0.32)], (0.42, 0.27, 0.12))
    canvas.polygon(
        [(left + 0.02, 0.11), (right - 0.02, 0.11), (right - 0.02, 0.30), (left + 0.02, 0.30)],
        (0.70, 0.84, 0.95),
    )
    canvas.polygon(
        [
            (left + 0.02, 0.30),
            (left + 0.02, 0.24),
            (x - 0.03, 0.17),
            (x + 0.05, 0.25),
            (right - 0.02, 0.21),
            (right - 0.02, 0.30),
        ],
        (0.36, 0.55, 0.34),
    )
    canvas.ellipse(x + 0.06, 0.15, 0.02, 0.02, (0.98, 0.82, 0.35))


def floor_lamp(canvas: Canvas, x: float, ground: float) -> None:
    canvas.glow(x, 0.22, 0.16, 0.16, (1.0, 0.95, 0.70), 0.45)
    canvas.polygon(
        [(x - 0.006, 0.26), (x + 0.006, 0.26), (x + 0.006, ground), (x - 0.006, ground)], (0.25, 0.22, 0.20)
    )
    canvas.ellipse(x, ground, 0.05, 0.014, (0.25, 0.22, 0.20))
    canvas.polygon(
        [(x - 0.04, 0.15), (x + 0.04, 0.15), (x + 0.07, 0.27), (x - 0.07, 0.27)], (1.0, 0.93, 0.74)
    )


def shelf(canvas: Canvas, rng: Rng, x: float) -> None:
    """A wall shelf with jars."""
    canvas.polygon([(x - 0.2, 0.245), (x + 0.2, 0.245), (x + 0.2, 0.285), (x - 0.2, 0.285)], (0, 0, 0), 0.15)
    for k, dx in enumerate((-0.15, -0.06, 0.04, 0.13)):
        height = rng.uniform(0.08, 0.13)
        glass = ((0.80, 0.45, 0.30), (0.92, 0.86, 0.66), (0.55, 0.40, 0.28), (0.75, 0.78, 0.55))[k]
        left, right = x + dx - 0.032, x + dx + 0.032
        canvas.polygon([(left, 0.23), (left, 0.23 - height), (right, 0.23 - height), (right, 0.23)], glass)
        canvas.polygon(
            [
                (left + 0.008, 0.23),
                (left + 0.008, 0.24 - height),
                (left + 0.018, 0.24 - height),
                (left + 0.018, 0.23),
            ],
            WHITE,
            0.45,
        )
        canvas.polygon(
            [
                (left - 0.003, 0.23 - height),
                (left - 0.003, 0.212 - height),
                (right + 0.003, 0.212 - height),
                (right + 0.003, 0.23 - height),
            ],
            (0.35, 0.30, 0.27),
        )
    canvas.polygon([(x - 0.2, 0.23), (x + 0.2, 0.23), (x + 0.2, 0.252), (x - 0.2, 0.252)], (0.52, 0.36, 0.22))


def curtain(canvas: Canvas, rng: Rng, bottom: float, colour: Colour) -> None:
    """Heavy folds, with a golden hem."""
    where = canvas.band(0, bottom)
    folds = np.sin(canvas.x * 62 + 1.2 * np.sin(canvas.x * 17 + rng.uniform(0, 6)))
    shade = 0.72 + 0.42 * folds + 0.12 * np.clip(folds, 0.7, 1)
    height = 1.12 - 0.4 * canvas.y[where[0]] / bottom
    canvas.blend(where, _tinted(colour, shade * height), 1.0)
    canvas.blend(canvas.band(bottom - 0.03, bottom), _tinted((0.85, 0.66, 0.22), shade * 0.9), 1.0)


def spotlight(canvas: Canvas, x: float) -> None:
    """A cone of light from above and its pool on the floor."""
    where = canvas.band(0, 0.86)
    y = canvas.y[where[0]]
    beam = np.clip((0.03 + 0.36 * y - np.abs(canvas.x - x)) * (9 - 6 * y), 0, 1)
    canvas.blend(where, (1.0, 0.97, 0.82), beam * (0.40 - 0.44 * y))
    canvas.glow(x, 0.85, 0.24, 0.06, (1.0, 0.96, 0.80), 0.55)


def _tinted(colour: Colour, shade: Array) -> list[Array]:
    return [value * shade for value in colour]
