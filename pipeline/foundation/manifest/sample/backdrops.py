"""Backgrounds of the settings: sky or wall, ground, and what is between them, drawn as scenes.yaml
lists them.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from pipeline.foundation.manifest.sample.canvas import Array, Canvas, Colour
from pipeline.foundation.manifest.sample.elementary import cos, decay, hypot, sin
from pipeline.foundation.manifest.sample.scenes import DETAILS, SETTINGS, Rng, Scene

WHITE: Colour = (1.0, 1.0, 1.0)
Gradient = list[Colour]
# Where something may stand, horizontally.
Places = list[float]


class Backdrop(Canvas):
    """A canvas for one scene, and what draws its background: a method for each step that
    scenes.yaml names.
    """

    def __init__(self, size: int, scene: Scene, rng: Rng) -> None:
        super().__init__(size)
        self.scene = scene
        self.rng = rng

    def paint(self) -> None:
        """Cover the whole canvas with the scene's background."""
        for name, *given in SETTINGS[self.scene.setting].backdrop:
            if name not in DETAILS or name == self.scene.detail:
                self.step(name, [self.in_mood(value) for value in given])

    def in_mood(self, value: Any) -> Any:
        """What scenes.yaml gives for the scene's mood, where it depends on that."""
        if isinstance(value, dict):
            return value[self.scene.mood]
        return value

    def step(self, name: str, given: list[Any]) -> None:
        """Draw a detail, or another part of the background, by its name."""
        drawing = DETAILS.get(name, {}).get("drawing")
        if not drawing:
            getattr(self, name)(*given)
            return
        places, y = given
        self.draw(drawing, self.free(places), y)

    def draw(self, strokes: list[Any], x: float = 0.0, y: float = 0.0) -> None:
        """Draw a list of strokes around a point."""
        for kind, points, *sizes in strokes:
            placed = [(x + dx, y + dy) for dx, dy in points]
            stroke = getattr(self, kind)
            if kind == "polygon":
                stroke(placed, *sizes)
            else:
                stroke(*chain(*placed), *sizes)

    def free(self, places: Sequence[float]) -> float:
        """The place in the background farthest from tall things; a random one of those with enough
        room.
        """
        tall: list[tuple[float, float]] = []
        for thing in self.scene.things:
            if thing.top < 0.6:
                tall += [(middle, thing.radius) for middle in thing.xs]

        def room(x: float) -> float:
            nearest = min((abs(x - middle) - radius for middle, radius in tall), default=1.0)
            return min(nearest, 0.25)

        shuffled = self.rng.permutation(places).tolist()
        return max(shuffled, key=room)

    # The sky.
    def sky(self, horizon: float, colours: Gradient) -> None:
        """A sky with clouds; the sun is high and white on a clear day, low and orange at sunset."""
        mood = self.scene.mood
        self.gradient(0, horizon, colours)
        where = self.band(0, horizon)
        clouds = self.noise(self.rng, 5, 5, where) + 0.5 * self.noise(self.rng, 12, 13, where)
        if mood == "overcast":
            self.shade(where, 0.11 * clouds)
            return
        if mood == "clear":
            cloud = WHITE
            y = 0.11
            core = (1.0, 0.97, 0.80)
        else:
            cloud = (1.0, 0.72, 0.62)
            y = horizon - 0.1
            core = (1.0, 0.90, 0.55)
        height = np.clip(1.3 - self.y[where[0]] / horizon, 0, 1)
        cover = np.clip(clouds * 0.9 - 0.35, 0, 1) * height
        self.blend(where, cloud, cover * 0.85)
        x = self.free((0.1, 0.20, 0.50, 0.80, 0.9))
        self.glow(x, y, 0.09, 0.09, core, 0.75)
        self.ellipse(x, y, 0.042, 0.042, core)

    def starry_sky(self, horizon: float, colours: Gradient) -> None:
        """Small stars on a dark sky."""
        self.gradient(0, horizon, colours)
        stars = self.rng.uniform((0, 0, 0.0012), (1, horizon, 0.0035), (70, 3))
        for x, y, size in stars:
            self.glow(x, y, size, size, WHITE, 0.9)

    def crescent(self, places: Places) -> None:
        """A crescent moon."""
        x = self.free(places)
        y = 0.13
        r = 0.065
        self.glow(x, y, 0.11, 0.11, (0.65, 0.72, 0.90), 0.35)
        where = self.window(x - r, y - r, x + r, y + r)
        px = self.x[:, where[1]] - x
        py = self.y[where[0]] - y
        disc = r - hypot(px, py)
        bite = hypot(px - 0.6 * r, py + 0.2 * r) - 0.95 * r
        inside = np.minimum(disc, bite)
        self.blend(where, (0.97, 0.95, 0.85), np.clip(inside * self.side, 0, 1))

    def planet(self, places: Places) -> None:
        """A banded planet with a flat ring around it."""
        x = self.free(places)
        y = 0.14
        r = 0.085
        where = self.window(x - 2 * r, y - r, x + 2 * r, y + r)
        px = (self.x[:, where[1]] - x) / r
        py = (self.y[where[0]] - y) / r
        bands = 0.5 + 0.5 * sin(py * 11 + 0.5 * px)
        lit = np.clip(0.75 - 0.35 * px - 0.35 * py, 0.15, 1.1)
        levels = ((0.86, 0.08), (0.62, 0.14), (0.38, 0.18))
        colour = [(low + high * bands) * lit for low, high in levels]
        disc = np.clip((1 - hypot(px, py)) * r * self.side, 0, 1)
        self.blend(where, colour, disc)
        tilted = py + 0.25 * px
        band = 1 - np.abs(hypot(px / 1.65, tilted / 0.36) - 1) / 0.16
        front = (tilted > 0) | (hypot(px, py) > 1)
        self.blend(where, (0.88, 0.80, 0.68), np.clip(band * 3, 0, 0.85) * front)

    def rainbow(self) -> None:
        """A rainbow over the whole width."""
        where = self.band(0, 0.56)
        r = hypot(self.x - 0.5, self.y[where[0]] - 0.62)
        hues = (
            (0.55, 0.25, 0.75),
            (0.25, 0.40, 0.90),
            (0.25, 0.75, 0.35),
            (0.98, 0.90, 0.25),
            (0.97, 0.55, 0.15),
            (0.90, 0.18, 0.18),
        )
        for k, hue in enumerate(hues):
            offset = (r - 0.46 - 0.016 * k) / 0.009
            self.blend(where, hue, 0.62 * decay(-(offset**2)))

    def snowfall(self) -> None:
        """Flakes of different size over the whole background."""
        flakes = self.rng.uniform((0, 0, 0.006), (1, 1, 0.011), (130, 3))
        for x, y, r in flakes.tolist():
            self.ellipse(x, y, r, r, WHITE)

    # The land.
    def ground(self, top: float, colours: Gradient, grain: float, blades: int) -> None:
        """A plain that runs to the horizon: broad patches, and grain that grows towards the
        viewer.
        """
        self.gradient(top, 1, colours)
        where = self.band(top, 1)
        near = (self.y[where[0]] - top) / (1 - top)
        broad = self.noise(self.rng, 6, 10, where) * 0.6
        fine = self.noise(self.rng, 128, blades, where) * (0.4 + near)
        self.shade(where, grain * (broad + fine))

    def beach(self, colours: Gradient) -> None:
        """Sand up to a wavy line of foam."""
        shore = 0.60 + 0.012 * sin(self.x * 9 + self.rng.uniform(0, 6))
        self.ground(0.62, colours, 0.05, 54)
        where = self.band(0.58, 0.62)
        y = self.y[where[0]]
        self.blend(where, (0.82, 0.72, 0.50), np.clip((y - shore) * 150, 0, 1))
        self.blend(where, WHITE, 0.85 * decay(-(((y - shore) / 0.006) ** 2)))

    def ripples(self, top: float) -> None:
        """Waves of sand, wider towards the viewer."""
        where = self.band(top, 1)
        y = self.y[where[0]]
        bend = 1.6 * sin(self.x * 7 + self.rng.uniform(0, 6))
        ripples = sin(np.sqrt(y - 0.5) * 170 + bend)
        self.shade(where, 0.05 * np.clip((y - top) * 5, 0, 1) * ripples)

    def craters(self, top: float) -> None:
        """Round holes with a bright rim, wider towards the viewer."""
        for _ in range(9):
            x = self.rng.uniform(0, 1)
            y = self.rng.uniform(top + 0.02, 0.99)
            r = self.rng.uniform(0.02, 0.05) * (0.5 + 1.2 * (y - top) / (1 - top))
            self.ellipse(x, y + 0.08 * r, r * 1.06, r * 0.36, (0.72, 0.72, 0.74))
            self.ellipse(x, y, r, r * 0.3, (0.36, 0.36, 0.39))
            self.ellipse(x + 0.1 * r, y + 0.07 * r, r * 0.8, r * 0.2, (0.47, 0.47, 0.5))

    def hill(self, top: float, height: float, colour: Colour) -> None:
        """A rolling silhouette over the whole width, down to the ground."""
        waves = self.rng.uniform(4, 8)
        wide = 0.6 * sin(self.x * waves + self.rng.uniform(0, 6))
        narrow = 0.4 * sin(self.x * waves * 2.1 + self.rng.uniform(0, 6))
        edge = top + height * (wide + narrow)
        where = self.band(top - height, 0.66)
        below = np.clip((self.y[where[0]] - edge) * self.side, 0, 1)
        self.blend(where, colour, below)

    def mountains(self, ground: float) -> None:
        """Grey peaks, their sunny side lighter, with snow on top."""
        snow = ((0, 0), (0.3, 0.3), (0.1, 0.24), (-0.05, 0.36), (-0.16, 0.25), (-0.3, 0.3))
        for left in (-0.12, 0.20, 0.48, 0.72):
            x = left + self.rng.uniform(0.14, 0.2)
            height = self.rng.uniform(0.16, 0.30)
            top = ground - height
            half = self.rng.uniform(0.2, 0.28)
            self.polygon([(x, top), (x + half, ground), (x - half, ground)], (0.47, 0.52, 0.62))
            self.polygon([(x, top), (x + half, ground), (x + 0.05, ground)], (0.36, 0.40, 0.51))
            cap = [(x + dx * half, top + dy * height) for dx, dy in snow]
            self.polygon(cap, (0.95, 0.96, 0.98))

    def water(self, top: float, bottom: float, colours: Gradient) -> None:
        """Choppy water up to the horizon."""
        self.gradient(top, bottom, colours)
        where = self.band(top, bottom)
        waves = self.noise(self.rng, 14, 26, where)
        self.shade(where, 0.16 * waves + 0.5 * np.clip(waves - 0.55, 0, 1))

    def skyline(self, ground: float, tone: Colour, glass: Colour) -> None:
        """Two rows of towers, the nearer one with windows."""
        rng = self.rng
        for left in np.arange(-0.02, 1, 0.09):
            self.box(left, ground - rng.uniform(0.22, 0.46), left + 0.085, ground, tone)
        for left in np.arange(-0.03, 1, 0.135):
            top = ground - rng.uniform(0.12, 0.34)
            right = left + rng.uniform(0.095, 0.125)
            darker = [rng.uniform(0.62, 0.78) * value for value in tone]
            self.box(left, top, right, ground, darker)
            for x in np.arange(left + 0.014, right - 0.02, 0.026):
                for y in np.arange(top + 0.016, ground - 0.03, 0.034):
                    if rng.random() < 0.7:
                        self.box(x, y, x + 0.013, y + 0.017, glass)

    # Plants.
    def trees(self, ground: float) -> None:
        """Leafy trees, their crowns of a few round tufts."""
        positions = self.rng.permutation(np.linspace(0.05, 0.95, 7))[:5]
        # How far a tuft is from the trunk's foot, and how bright it is.
        tufts = ((0.3, -1.3, 0.8), (-0.5, -1.2, 0.9), (0.0, -1.9, 1.0), (-0.15, -1.45, 1.1))
        for x in positions + self.rng.uniform(-0.03, 0.03, 5):
            size = self.rng.uniform(0.05, 0.075)
            self.trapezoid(x, ground - size, 0.005, ground + 0.01, 0.008, (0.30, 0.20, 0.12))
            for dx, dy, shade in tufts:
                green = (0.16 * shade, 0.42 * shade, 0.14 * shade)
                self.ellipse(x + dx * size, ground + dy * size, 0.62 * size, 0.58 * size, green)

    def pines(self, ground: float) -> None:
        """Fir trees of four tiers, each with snow on top."""
        positions = self.rng.permutation(np.linspace(0.04, 0.96, 9))[:6]
        for x in positions + self.rng.uniform(-0.02, 0.02, 6):
            size = self.rng.uniform(0.16, 0.25)
            for k in range(4):
                top = ground - size * (1 - 0.2 * k)
                half = size * (0.12 + 0.06 * k)
                self.trapezoid(x, top, 0.0, top + size * 0.36, half, (0.10, 0.28 + 0.02 * k, 0.20))
                self.trapezoid(x, top, 0.0, top + size * 0.13, 0.4 * half, (0.92, 0.95, 0.98))

    def leaves(self, bottom: float, leaves: Colour, gleam: Colour) -> None:
        """Foliage over tall trunks, the far ones pale and thin, the near ones dark and thick."""
        rng = self.rng
        self.gradient(0, bottom, [leaves, gleam])
        where = self.band(0, bottom)
        broad = 0.25 * self.noise(rng, 14, 13, where)
        fine = 0.2 * self.noise(rng, 40, 36, where)
        self.shade(where, broad + fine)
        for depth in np.linspace(0, 1, 13).tolist():
            x = rng.uniform(-0.02, 1.02)
            half = 0.008 + 0.02 * depth * rng.uniform(0.7, 1.2)
            where = self.window(x - half, 0, x + half, bottom - 0.03 + 0.05 * depth)
            across = (self.x[:, where[1]] - x) / half
            around = np.sqrt(np.clip(1 - (across + 0.4) ** 2 / 2, 0.1, 1))
            bark = (0.46 - 0.16 * depth, 0.42 - 0.22 * depth, 0.32 - 0.20 * depth)
            self.blend(where, _lit(bark, around), 1.0)
        where = self.band(0, 0.36)
        crown = np.clip(1.5 - self.y[where[0]] * 7 + self.noise(rng, 20, 11, where), 0, 1)
        self.blend(where, [0.8 * value for value in leaves], crown)

    def palm(self, places: Places, ground: float) -> None:
        """A palm that leans towards the middle of the picture."""
        x = self.free(places)
        top = ground - 0.36
        lean = (0.5 - x) * 0.12
        for k in range(12):
            shade = 0.85 + 0.3 * (k % 2)
            y = ground - 0.03 * k
            trunk = (0.45 * shade, 0.32 * shade, 0.20 * shade)
            self.trapezoid(x + lean * (k * k / 144), y - 0.03, 0.011, y, 0.014, trunk)
        x += lean
        for angle in np.linspace(-0.5, np.pi + 0.5, 8).tolist():
            dx = float(cos(angle))
            dy = -float(sin(angle))
            bend = (x + 0.09 * dx, top + 0.07 * dy - 0.02)
            tip = (x + 0.17 * dx, top + 0.09 * dy + 0.05)
            under = (bend[0] - 0.008, bend[1] + 0.035)
            green = 0.40
            if dx < 0:
                # Towards the light.
                green = 0.48
            self.polygon([(x, top), bend, tip, under], (0.12, green, 0.14))

    def flowers(self, top: float) -> None:
        """Dots of blossom all over the ground, larger towards the viewer."""
        hues = ((0.98, 0.95, 0.96), (0.99, 0.85, 0.25), (0.95, 0.45, 0.65))
        blossoms = self.rng.uniform((0, top), (1, 1), (90, 2))
        for x, y in blossoms.tolist():
            r = 0.003 + 0.007 * (y - top) / (1 - top)
            hue = hues[int(self.rng.integers(3))]
            self.ellipse(x, y, r * 1.2, r, hue)

    # Indoors.
    def planks(self, top: float, colour: Colour, count: int) -> None:
        """A wooden floor whose boards run towards the viewer."""
        where = self.band(top, 1)
        depth = self.y[where[0]] - top
        across = (self.x - 0.5) / (depth + 0.22) * (count * 0.6)
        board = np.floor(across)
        tones = self.rng.uniform(-0.12, 0.12, 4 * count).astype(np.float32)
        tone = tones[board.astype(np.int32) % (4 * count)]
        offset = across - board
        from_edge = np.minimum(offset, 1 - offset)
        gap = np.clip(from_edge * (depth + 0.22) * (220 / count), 0.35, 1)
        grain = 1 + tone + 0.07 * self.noise(self.rng, 128, 4, where)
        shade = grain * gap * (0.82 + 0.7 * depth)
        self.blend(where, _lit(colour, shade), 1.0)

    def wall(self, bottom: float, colour: Colour) -> None:
        """Plaster, lit from the left."""
        self.gradient(0, bottom, [colour, colour])
        where = self.band(0, bottom)
        roughness = 0.025 * self.noise(self.rng, 60, 38, where)
        self.shade(where, 0.06 - 0.16 * self.x + roughness)

    def tiles(self, bottom: float) -> None:
        """White joints and a gleam, which make square glazed tiles of a wall."""
        where = self.band(0, bottom)
        pitch = 0.104
        jx = (self.x / pitch) % 1
        jy = (self.y[where[0]] / pitch) % 1
        from_middle = np.maximum(np.abs(jx - 0.5), np.abs(jy - 0.5))
        joint = np.clip(from_middle * 60 - 28.2, 0, 1)
        self.blend(where, (0.80, 0.79, 0.77), joint)
        gleam = decay(-((jx - 0.25) ** 2 + (jy - 0.25) ** 2) * 40)
        self.blend(where, WHITE, 0.22 * gleam)

    def curtain(self, bottom: float, colour: Colour) -> None:
        """Heavy folds, with a golden hem."""
        where = self.band(0, bottom)
        sway = 1.2 * sin(self.x * 17 + self.rng.uniform(0, 6))
        folds = sin(self.x * 62 + sway)
        shade = 0.72 + 0.42 * folds + 0.12 * np.clip(folds, 0.7, 1)
        downwards = 1.12 - 0.4 * self.y[where[0]] / bottom
        self.blend(where, _lit(colour, shade * downwards), 1.0)
        hem = self.band(bottom - 0.03, bottom)
        self.blend(hem, _lit((0.85, 0.66, 0.22), shade * 0.9), 1.0)

    def shelf(self, places: Places) -> None:
        """A wall shelf with jars."""
        x = self.free(places)
        self.box(x - 0.2, 0.245, x + 0.2, 0.285, (0.0, 0.0, 0.0), 0.15)
        glass = ((0.80, 0.45, 0.30), (0.92, 0.86, 0.66), (0.55, 0.40, 0.28), (0.75, 0.78, 0.55))
        middles = (x - 0.15, x - 0.06, x + 0.04, x + 0.13)
        for middle, colour in zip(middles, glass, strict=True):
            top = 0.23 - self.rng.uniform(0.08, 0.13)
            self.box(middle - 0.032, top, middle + 0.032, 0.23, colour)
            self.box(middle - 0.024, top + 0.01, middle - 0.014, 0.23, WHITE, 0.45)
            self.box(middle - 0.035, top - 0.018, middle + 0.035, top, (0.35, 0.30, 0.27))
        self.box(x - 0.2, 0.23, x + 0.2, 0.252, (0.52, 0.36, 0.22))

    def spotlight(self, places: Places) -> None:
        """A cone of light from above and its pool on the floor."""
        x = self.free(places)
        where = self.band(0, 0.86)
        y = self.y[where[0]]
        from_edge = 0.03 + 0.36 * y - np.abs(self.x - x)
        beam = np.clip(from_edge * (9 - 6 * y), 0, 1)
        self.blend(where, (1.0, 0.97, 0.82), beam * (0.40 - 0.44 * y))
        self.glow(x, 0.85, 0.24, 0.06, (1.0, 0.96, 0.80), 0.55)


def _lit(colour: Colour, shade: Array) -> list[Array]:
    return [value * shade for value in colour]
