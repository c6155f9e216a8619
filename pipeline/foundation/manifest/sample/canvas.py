"""A square of RGB pixels and the strokes that painters need.

Coordinates run from 0 to 1, x to the right and y downwards. Colours are planes ([3, h, w]): NumPy
is several times faster along long rows than along three channels.
"""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from pipeline.foundation.manifest.sample.elementary import decay, hypot

Array = np.ndarray
Colour = tuple[float, float, float]
Paint = Array | Sequence[float] | Sequence[Array]  # three numbers, or three planes [h, w]
Window = tuple[slice, slice]  # rows, columns

SUPERSAMPLE = 2  # pixels drawn for each pixel kept, per side


class Canvas:
    """A square picture in the making, drawn at `SUPERSAMPLE` times its finished size in pixels."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.side = size * SUPERSAMPLE  # pixels a side while drawing
        self.pixels = np.zeros((3, self.side, self.side), np.float32)  # sRGB from 0 to 1
        middles = (np.arange(self.side) + 0.5) / self.side
        centres = middles.astype(np.float32)
        self.x = centres[None, :]  # [1, side]
        self.y = centres[:, None]  # [side, 1]

    def window(self, left: float, top: float, right: float, bottom: float) -> Window:
        """Find the rows and columns that cover a box, cut at the canvas' edges."""
        rows = slice(self._pixel(top), self._pixel(bottom))
        columns = slice(self._pixel(left), self._pixel(right))
        return rows, columns

    def _pixel(self, coordinate: float) -> int:
        """The pixel that a coordinate falls on, of those on the canvas."""
        return min(max(round(coordinate * self.side), 0), self.side)

    def band(self, top: float, bottom: float) -> Window:
        """Find the rows between two heights, over the full width."""
        return self.window(0, top, 1, bottom)

    def around(self, x: float, y: float, rx: float, ry: float) -> Window:
        """Find the box around a point that reaches so far to each side."""
        top = y - ry
        bottom = y + ry
        return self.window(x - rx, top, x + rx, bottom)

    def columns(self, where: Window) -> Array:
        """Give the x coordinates of a window's columns, [1, w]."""
        return self.x[:, where[1]]

    def heights(self, where: Window) -> Array:
        """Give the y coordinates of a window's rows, [h, 1]."""
        return self.y[where[0]]

    def blend(self, where: Window, colour: Paint, alpha: Array | float) -> None:
        """Lay a colour over a window."""
        rows, columns = where
        weight = np.asarray(alpha, np.float32)
        planes = self.pixels[:, rows, columns]
        for plane, value in zip(planes, colour, strict=True):
            plane += (np.float32(value) - plane) * weight

    def gradient(self, top: float, bottom: float, colours: Sequence[Colour]) -> None:
        """Fill the full width with a gradient."""
        rows, _ = self.band(top, bottom)
        last = len(colours) - 1
        below_top = self.y[rows, 0] - top
        share = below_top / (bottom - top)
        place = np.clip(share * last, 0, last)
        before = np.minimum(place.astype(np.int64), last - 1)
        levels = np.asarray(colours, np.float32)
        lower = levels[before]
        rise = levels[before + 1] - lower
        beyond = (place - before)[:, None]
        blended = lower + rise * beyond
        self.pixels[:, rows] = blended.T[..., None]

    def polygon(
        self, points: Sequence[tuple[float, float]], colour: Paint, alpha: float = 1.0
    ) -> None:
        """Fill a polygon."""
        xs, ys = zip(*points, strict=True)
        where = self.window(min(xs), min(ys), max(xs), max(ys))
        rows, columns = where
        height = rows.stop - rows.start
        width = columns.stop - columns.start
        if not height or not width:
            return
        mask = Image.new("L", (width, height))
        across = [x * self.side - columns.start for x in xs]
        down = [y * self.side - rows.start for y in ys]
        outline = list(zip(across, down, strict=True))
        ImageDraw.Draw(mask).polygon(outline, fill=255)
        weight = np.asarray(mask, np.float32) * (alpha / 255)
        self.blend(where, colour, weight)

    def box(
        self,
        left: float,
        top: float,
        right: float,
        bottom: float,
        colour: Paint,
        alpha: float = 1.0,
    ) -> None:
        """Fill a rectangle whose edges are on whole pixels."""
        where = self.window(left, top, right, bottom)
        self.blend(where, colour, alpha)

    def trapezoid(
        self,
        x: float,
        top: float,
        top_half: float,
        bottom: float,
        bottom_half: float,
        colour: Paint,
    ) -> None:
        """Fill an upright, symmetric trapezoid or triangle."""
        upper = [(x - top_half, top), (x + top_half, top)]
        lower = [(x + bottom_half, bottom), (x - bottom_half, bottom)]
        self.polygon(upper + lower, colour)

    def ellipse(
        self, x: float, y: float, rx: float, ry: float, colour: Paint, alpha: float = 1.0
    ) -> None:
        """Fill an ellipse."""
        where = self.around(x, y, rx, ry)
        across = (self.columns(where) - x) / rx
        down = (self.heights(where) - y) / ry
        inside = 1 - hypot(across, down)
        weight = saturate(inside * min(rx, ry) * self.side)
        self.blend(where, colour, weight * alpha)

    def glow(self, x: float, y: float, rx: float, ry: float, colour: Colour, alpha: float) -> None:
        """Add a Gaussian spot."""
        where = self.around(x, y, 3 * rx, 3 * ry)
        dx = (self.columns(where) - x) / rx
        dy = (self.heights(where) - y) / ry
        across = decay(-0.5 * dx**2)
        down = decay(-0.5 * dy**2)
        self.blend(where, colour, alpha * across * down)

    def noise(self, rng: np.random.Generator, columns: int, rows: int, where: Window) -> Array:
        """Draw smooth noise on a coarse grid and stretch it, about −1 to 1: one pattern at every
        resolution.
        """
        height, width = (s.stop - s.start for s in where)
        values = rng.uniform(-1, 1, (rows, columns))
        grid = Image.fromarray(values.astype(np.float32))
        stretched = grid.resize((width, height), Image.Resampling.BICUBIC)
        return np.asarray(stretched)

    def shade(self, where: Window, amount: Array) -> None:
        """Multiply a window by 1 + `amount`."""
        rows, columns = where
        brightness = 1 + np.asarray(amount, np.float32)
        self.pixels[:, rows, columns] *= brightness

    def image(self) -> Image.Image:
        """Finish the picture: RGB [size, size]; each pixel is the mean of those drawn for it."""
        levels = np.clip(self.pixels, 0, 1)
        levels *= 255
        levels += 0.5  # so that the cast rounds
        drawn = levels.astype(np.uint8)
        planes = [Image.fromarray(plane).reduce(SUPERSAMPLE) for plane in drawn]
        return Image.merge("RGB", planes)


def saturate(x: Array) -> Array:
    """Cut values to 0..1, under the name that shaders have for it."""
    return np.clip(x, 0, 1)
