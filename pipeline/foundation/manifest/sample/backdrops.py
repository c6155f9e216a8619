"""Backgrounds of the settings: sky or wall, ground, and what is between them, drawn as scenes.yaml
lists them.
"""

from collections.abc import Sequence
from itertools import chain, product
from typing import Any

import numpy as np

from pipeline.foundation.manifest.sample.canvas import Array, Canvas, Colour, saturate
from pipeline.foundation.manifest.sample.elementary import cos, decay, hypot, sin
from pipeline.foundation.manifest.sample.scenes import DETAILS, SETTINGS, Rng, Scene, pick

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
            distances = [abs(x - middle) - radius for middle, radius in tall]
            return min([*distances, 0.25])

        shuffled = self.rng.permutation(places).tolist()
        return max(shuffled, key=room)

    def phase(self) -> float:
        """Where a wave begins."""
        return self.rng.uniform(0, 6)

    # The sky.
    def sky(self, horizon: float, colours: Gradient) -> None:
        """A sky with clouds; the sun is high and white on a clear day, low and orange at sunset."""
        mood = self.scene.mood
        self.gradient(0, horizon, colours)
        where = self.band(0, horizon)
        large = self.noise(self.rng, 5, 5, where)
        small = self.noise(self.rng, 12, 13, where)
        clouds = large + 0.5 * small
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
        height = saturate(1.3 - self.heights(where) / horizon)
        cover = saturate(clouds * 0.9 - 0.35) * height
        self.blend(where, cloud, cover * 0.85)
        x = self.free((0.1, 0.20, 0.50, 0.80, 0.9))
        self.glow(x, y, 0.09, 0.09, core, 0.75)
        self.ellipse(x, y, 0.042, 0.042, core)

    def starry_sky(self, horizon: float, colours: Gradient) -> None:
        """Small stars on a dark sky."""
        self.gradient(0, horizon, colours)
        least = (0, 0, 0.0012)
        most = (1, horizon, 0.0035)
        for x, y, size in self.rng.uniform(least, most, (70, 3)):
            self.glow(x, y, size, size, WHITE, 0.9)

    def crescent(self, places: Places) -> None:
        """A crescent moon."""
        x = self.free(places)
        y = 0.13
        r = 0.065
        halo = (0.65, 0.72, 0.90)
        self.glow(x, y, 0.11, 0.11, halo, 0.35)
        where = self.around(x, y, r, r)
        px = self.columns(where) - x
        py = self.heights(where) - y
        disc = r - hypot(px, py)
        bite_x = px - 0.6 * r
        bite_y = py + 0.2 * r
        from_bite = hypot(bite_x, bite_y)
        bite = from_bite - 0.95 * r
        inside = np.minimum(disc, bite)
        pale = (0.97, 0.95, 0.85)
        self.blend(where, pale, saturate(inside * self.side))

    def planet(self, places: Places) -> None:
        """A banded planet with a flat ring around it."""
        x = self.free(places)
        y = 0.14
        r = 0.085
        where = self.around(x, y, 2 * r, r)
        px = (self.columns(where) - x) / r
        py = (self.heights(where) - y) / r
        wave = sin(py * 11 + 0.5 * px)
        bands = 0.5 + 0.5 * wave
        light = 0.75 - 0.35 * px - 0.35 * py
        lit = np.clip(light, 0.15, 1.1)
        levels = ((0.86, 0.08), (0.62, 0.14), (0.38, 0.18))
        colour = [(low + high * bands) * lit for low, high in levels]
        from_middle = hypot(px, py)
        disc = saturate((1 - from_middle) * r * self.side)
        self.blend(where, colour, disc)
        tilted = py + 0.25 * px
        from_ring = hypot(px / 1.65, tilted / 0.36) - 1
        band = 1 - np.abs(from_ring) / 0.16
        front = (tilted > 0) | (from_middle > 1)
        sand = (0.88, 0.80, 0.68)
        cover = np.clip(band * 3, 0, 0.85)
        self.blend(where, sand, cover * front)

    def rainbow(self) -> None:
        """A rainbow over the whole width."""
        where = self.band(0, 0.56)
        below = self.heights(where) - 0.62
        r = hypot(self.x - 0.5, below)
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
            bow = decay(-(offset**2))
            self.blend(where, hue, 0.62 * bow)

    def snowfall(self) -> None:
        """Flakes of different size over the whole background."""
        least = (0, 0, 0.006)
        most = (1, 1, 0.011)
        flakes = self.rng.uniform(least, most, (130, 3))
        for x, y, r in flakes.tolist():
            self.ellipse(x, y, r, r, WHITE)

    # The land.
    def ground(self, top: float, colours: Gradient, grain: float, blades: int) -> None:
        """A plain that runs to the horizon: broad patches, and grain that grows towards the
        viewer.
        """
        self.gradient(top, 1, colours)
        where = self.band(top, 1)
        near = (self.heights(where) - top) / (1 - top)
        broad = self.noise(self.rng, 6, 10, where) * 0.6
        grass = self.noise(self.rng, 128, blades, where)
        fine = grass * (0.4 + near)
        self.shade(where, grain * (broad + fine))

    def beach(self, colours: Gradient) -> None:
        """Sand up to a wavy line of foam."""
        phase = self.phase()
        wave = sin(self.x * 9 + phase)
        shore = 0.60 + 0.012 * wave
        self.ground(0.62, colours, 0.05, 54)
        where = self.band(0.58, 0.62)
        inland = self.heights(where) - shore
        sand = (0.82, 0.72, 0.50)
        self.blend(where, sand, saturate(inland * 150))
        foam = decay(-((inland / 0.006) ** 2))
        self.blend(where, WHITE, 0.85 * foam)

    def ripples(self, top: float) -> None:
        """Waves of sand, wider towards the viewer."""
        where = self.band(top, 1)
        y = self.heights(where)
        phase = self.phase()
        bend = 1.6 * sin(self.x * 7 + phase)
        straight = np.sqrt(y - 0.5) * 170
        ripples = sin(straight + bend)
        near = saturate((y - top) * 5)
        self.shade(where, 0.05 * near * ripples)

    def craters(self, top: float) -> None:
        """Round holes with a bright rim, wider towards the viewer."""
        bright = (0.72, 0.72, 0.74)
        dark = (0.36, 0.36, 0.39)
        grey = (0.47, 0.47, 0.5)
        for _ in range(9):
            x = self.rng.uniform(0, 1)
            y = self.rng.uniform(top + 0.02, 0.99)
            near = 0.5 + 1.2 * (y - top) / (1 - top)
            r = self.rng.uniform(0.02, 0.05) * near
            rim_y = y + 0.08 * r
            floor_x = x + 0.1 * r
            floor_y = y + 0.07 * r
            self.ellipse(x, rim_y, r * 1.06, r * 0.36, bright)
            self.ellipse(x, y, r, r * 0.3, dark)
            self.ellipse(floor_x, floor_y, r * 0.8, r * 0.2, grey)

    def hill(self, top: float, height: float, colour: Colour) -> None:
        """A rolling silhouette over the whole width, down to the ground."""
        waves = self.rng.uniform(4, 8)
        phase = self.phase()
        wide = 0.6 * sin(self.x * waves + phase)
        phase = self.phase()
        narrow_waves = self.x * waves * 2.1
        narrow = 0.4 * sin(narrow_waves + phase)
        edge = top + height * (wide + narrow)
        where = self.band(top - height, 0.66)
        below = self.heights(where) - edge
        self.blend(where, colour, saturate(below * self.side))

    def mountains(self, ground: float) -> None:
        """Grey peaks, their sunny side lighter, with snow on top."""
        sunny = (0.47, 0.52, 0.62)
        shady = (0.36, 0.40, 0.51)
        snow = (0.95, 0.96, 0.98)
        outline = ((0, 0), (0.3, 0.3), (0.1, 0.24), (-0.05, 0.36), (-0.16, 0.25), (-0.3, 0.3))
        for left in (-0.12, 0.20, 0.48, 0.72):
            x = left + self.rng.uniform(0.14, 0.2)
            height = self.rng.uniform(0.16, 0.30)
            top = ground - height
            half = self.rng.uniform(0.2, 0.28)
            peak = (x, top)
            right_foot = (x + half, ground)
            left_foot = (x - half, ground)
            ridge_foot = (x + 0.05, ground)
            self.polygon([peak, right_foot, left_foot], sunny)
            self.polygon([peak, right_foot, ridge_foot], shady)
            cap = [(x + dx * half, top + dy * height) for dx, dy in outline]
            self.polygon(cap, snow)

    def water(self, top: float, bottom: float, colours: Gradient) -> None:
        """Choppy water up to the horizon."""
        self.gradient(top, bottom, colours)
        where = self.band(top, bottom)
        waves = self.noise(self.rng, 14, 26, where)
        crests = saturate(waves - 0.55)
        self.shade(where, 0.16 * waves + 0.5 * crests)

    def skyline(self, ground: float, tone: Colour, glass: Colour) -> None:
        """Two rows of towers, the nearer one with windows."""
        rng = self.rng
        for left in np.arange(-0.02, 1, 0.09):
            top = ground - rng.uniform(0.22, 0.46)
            self.box(left, top, left + 0.085, ground, tone)
        for left in np.arange(-0.03, 1, 0.135):
            top = ground - rng.uniform(0.12, 0.34)
            right = left + rng.uniform(0.095, 0.125)
            darker = [rng.uniform(0.62, 0.78) * value for value in tone]
            self.box(left, top, right, ground, darker)
            columns = np.arange(left + 0.014, right - 0.02, 0.026)
            floors = np.arange(top + 0.016, ground - 0.03, 0.034)
            for x, y in product(columns, floors):
                if rng.random() < 0.7:
                    self.box(x, y, x + 0.013, y + 0.017, glass)

    # Plants.
    def trees(self, ground: float) -> None:
        """Leafy trees, their crowns of a few round tufts."""
        evenly = np.linspace(0.05, 0.95, 7)
        positions = self.rng.permutation(evenly)[:5]
        brown = (0.30, 0.20, 0.12)
        # How far a tuft is from the trunk's foot, and how bright it is.
        tufts = ((0.3, -1.3, 0.8), (-0.5, -1.2, 0.9), (0.0, -1.9, 1.0), (-0.15, -1.45, 1.1))
        for x in positions + self.rng.uniform(-0.03, 0.03, 5):
            size = self.rng.uniform(0.05, 0.075)
            self.trapezoid(x, ground - size, 0.005, ground + 0.01, 0.008, brown)
            for dx, dy, shade in tufts:
                green = (0.16 * shade, 0.42 * shade, 0.14 * shade)
                tuft_x = x + dx * size
                tuft_y = ground + dy * size
                self.ellipse(tuft_x, tuft_y, 0.62 * size, 0.58 * size, green)

    def pines(self, ground: float) -> None:
        """Fir trees of four tiers, each with snow on top."""
        evenly = np.linspace(0.04, 0.96, 9)
        positions = self.rng.permutation(evenly)[:6]
        snow = (0.92, 0.95, 0.98)
        for x in positions + self.rng.uniform(-0.02, 0.02, 6):
            size = self.rng.uniform(0.16, 0.25)
            for k in range(4):
                top = ground - size * (1 - 0.2 * k)
                half = size * (0.12 + 0.06 * k)
                green = (0.10, 0.28 + 0.02 * k, 0.20)
                tier_foot = top + size * 0.36
                snow_foot = top + size * 0.13
                self.trapezoid(x, top, 0.0, tier_foot, half, green)
                self.trapezoid(x, top, 0.0, snow_foot, 0.4 * half, snow)

    def leaves(self, bottom: float, leaves: Colour, gleam: Colour) -> None:
        """Foliage over tall trunks, the far ones pale and thin, the near ones dark and thick."""
        self.gradient(0, bottom, [leaves, gleam])
        where = self.band(0, bottom)
        broad = 0.25 * self.noise(self.rng, 14, 13, where)
        fine = 0.2 * self.noise(self.rng, 40, 36, where)
        self.shade(where, broad + fine)
        for depth in np.linspace(0, 1, 13).tolist():
            self._trunk(bottom, depth)
        where = self.band(0, 0.36)
        ragged = self.noise(self.rng, 20, 11, where)
        below = self.heights(where) * 7
        crown = saturate(1.5 - below + ragged)
        shaded = [0.8 * value for value in leaves]
        self.blend(where, shaded, crown)

    def _trunk(self, bottom: float, depth: float) -> None:
        """A trunk from the upper edge down to the ground; `depth` is 0 for the farthest, 1 for the
        nearest.
        """
        x = self.rng.uniform(-0.02, 1.02)
        thickness = self.rng.uniform(0.7, 1.2)
        half = 0.008 + 0.02 * depth * thickness
        foot = bottom - 0.03 + 0.05 * depth
        where = self.window(x - half, 0, x + half, foot)
        across = (self.columns(where) - x) / half
        from_light = across + 0.4
        facing = 1 - from_light**2 / 2
        squared = np.clip(facing, 0.1, 1)
        red = 0.46 - 0.16 * depth
        green = 0.42 - 0.22 * depth
        blue = 0.32 - 0.20 * depth
        bark = (red, green, blue)
        self.blend(where, _lit(bark, np.sqrt(squared)), 1.0)

    def palm(self, places: Places, ground: float) -> None:
        """A palm that leans towards the middle of the picture."""
        x = self.free(places)
        top = ground - 0.36
        lean = (0.5 - x) * 0.12
        for k in range(12):
            shade = 0.85 + 0.3 * (k % 2)
            y = ground - 0.03 * k
            trunk_x = x + lean * (k * k / 144)
            trunk = (0.45 * shade, 0.32 * shade, 0.20 * shade)
            self.trapezoid(trunk_x, y - 0.03, 0.011, y, 0.014, trunk)
        x += lean
        for angle in np.linspace(-0.5, np.pi + 0.5, 8).tolist():
            dx = float(cos(angle))
            dy = -float(sin(angle))
            bend_x = x + 0.09 * dx
            bend_y = top + 0.07 * dy - 0.02
            bend = (bend_x, bend_y)
            tip_x = x + 0.17 * dx
            tip_y = top + 0.09 * dy + 0.05
            tip = (tip_x, tip_y)
            under = (bend_x - 0.008, bend_y + 0.035)
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
            hue = pick(self.rng, hues)
            self.ellipse(x, y, r * 1.2, r, hue)

    # Indoors.
    def planks(self, top: float, colour: Colour, count: int) -> None:
        """A wooden floor whose boards run towards the viewer."""
        where = self.band(top, 1)
        depth = self.heights(where) - top
        nearness = depth + 0.22
        across = (self.x - 0.5) / nearness * (count * 0.6)
        board = np.floor(across)
        tones = self.rng.uniform(-0.12, 0.12, 4 * count)
        number = board.astype(np.int32) % (4 * count)
        tone = tones.astype(np.float32)[number]
        offset = across - board
        from_edge = np.minimum(offset, 1 - offset)
        width = from_edge * nearness * (220 / count)
        gap = np.clip(width, 0.35, 1)
        streaks = 0.07 * self.noise(self.rng, 128, 4, where)
        grain = 1 + tone + streaks
        shade = grain * gap * (0.82 + 0.7 * depth)
        self.blend(where, _lit(colour, shade), 1.0)

    def wall(self, bottom: float, colour: Colour) -> None:
        """Plaster, lit from the left."""
        self.gradient(0, bottom, [colour, colour])
        where = self.band(0, bottom)
        roughness = 0.025 * self.noise(self.rng, 60, 38, where)
        light = 0.06 - 0.16 * self.x
        self.shade(where, light + roughness)

    def tiles(self, bottom: float) -> None:
        """White joints and a gleam, which make square glazed tiles of a wall."""
        where = self.band(0, bottom)
        pitch = 0.104
        jx = (self.x / pitch) % 1
        jy = (self.heights(where) / pitch) % 1
        across = np.abs(jx - 0.5)
        down = np.abs(jy - 0.5)
        from_middle = np.maximum(across, down)
        joint = saturate(from_middle * 60 - 28.2)
        mortar = (0.80, 0.79, 0.77)
        self.blend(where, mortar, joint)
        squared = (jx - 0.25) ** 2 + (jy - 0.25) ** 2
        gleam = decay(-squared * 40)
        self.blend(where, WHITE, 0.22 * gleam)

    def curtain(self, bottom: float, colour: Colour) -> None:
        """Heavy folds, with a golden hem."""
        where = self.band(0, bottom)
        phase = self.phase()
        sway = 1.2 * sin(self.x * 17 + phase)
        folds = sin(self.x * 62 + sway)
        ridges = np.clip(folds, 0.7, 1)
        shade = 0.72 + 0.42 * folds + 0.12 * ridges
        downwards = 1.12 - 0.4 * self.heights(where) / bottom
        self.blend(where, _lit(colour, shade * downwards), 1.0)
        gold = (0.85, 0.66, 0.22)
        hem = self.band(bottom - 0.03, bottom)
        self.blend(hem, _lit(gold, shade * 0.9), 1.0)

    def shelf(self, places: Places) -> None:
        """A wall shelf with jars."""
        x = self.free(places)
        left = x - 0.2
        right = x + 0.2
        shadow = (0.0, 0.0, 0.0)
        lid = (0.35, 0.30, 0.27)
        wood = (0.52, 0.36, 0.22)
        self.box(left, 0.245, right, 0.285, shadow, 0.15)
        glass = ((0.80, 0.45, 0.30), (0.92, 0.86, 0.66), (0.55, 0.40, 0.28), (0.75, 0.78, 0.55))
        middles = (x - 0.15, x - 0.06, x + 0.04, x + 0.13)
        for middle, colour in zip(middles, glass, strict=True):
            top = 0.23 - self.rng.uniform(0.08, 0.13)
            self.box(middle - 0.032, top, middle + 0.032, 0.23, colour)
            self.box(middle - 0.024, top + 0.01, middle - 0.014, 0.23, WHITE, 0.45)
            self.box(middle - 0.035, top - 0.018, middle + 0.035, top, lid)
        self.box(left, 0.23, right, 0.252, wood)

    def spotlight(self, places: Places) -> None:
        """A cone of light from above and its pool on the floor."""
        x = self.free(places)
        where = self.band(0, 0.86)
        y = self.heights(where)
        from_axis = np.abs(self.x - x)
        from_edge = 0.03 + 0.36 * y - from_axis
        beam = saturate(from_edge * (9 - 6 * y))
        fading = 0.40 - 0.44 * y
        self.blend(where, (1.0, 0.97, 0.82), beam * fading)
        self.glow(x, 0.85, 0.24, 0.06, (1.0, 0.96, 0.80), 0.55)


def _lit(colour: Colour, shade: Array) -> list[Array]:
    return [value * shade for value in colour]
