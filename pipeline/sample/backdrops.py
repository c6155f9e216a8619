"""Backgrounds of the settings: sky or wall, ground, and what stands between them.

A new setting is one function here, one line in `BACKDROPS`, an entry in `scenes.SETTINGS` and its phrases in
`vocabulary.PLACES` and `vocabulary.MOODS`.
"""

from collections.abc import Callable

import numpy as np

from pipeline.sample import interior, landscape, plants, sky
from pipeline.sample.canvas import Canvas, Colour
from pipeline.sample.elementary import decay, sin
from pipeline.sample.palette import CURTAINS, FORESTS, SKIES, WALLS
from pipeline.sample.scenes import Scene

Rng = np.random.Generator
_EDGES = (0.08, 0.92)
_THIRDS = (0.20, 0.50, 0.80)


def paint(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    """Cover the whole canvas with a scene's background."""
    BACKDROPS[scene.setting](canvas, scene, rng)


def _sky(canvas: Canvas, scene: Scene, rng: Rng, horizon: float) -> None:
    canvas.gradient(0, horizon, SKIES[scene.mood])
    if scene.mood == "night":
        sky.stars(canvas, rng, horizon)
        return
    where = canvas.band(0, horizon)
    clouds = canvas.noise(rng, 5, 5, where) + 0.5 * canvas.noise(rng, 12, 13, where)
    if scene.mood == "overcast":
        canvas.shade(where, 0.11 * clouds)
    else:
        cover = np.clip(clouds * 0.9 - 0.35, 0, 1) * np.clip(1.3 - canvas.y[where[0]] / horizon, 0, 1)
        canvas.blend(where, (1.0, 1.0, 1.0) if scene.mood == "clear" else (1.0, 0.72, 0.62), cover * 0.85)
        sky.sun(canvas, _free(scene, rng, (0.1, *_THIRDS, 0.9)), scene.mood, horizon)
    if scene.detail == "birds":
        sky.birds(canvas, _free(scene, rng, _THIRDS))


def _ground(
    canvas: Canvas, rng: Rng, top: float, colours: list[Colour], grain: float = 0.10, blades: int = 18
) -> None:
    """A plain that runs to the horizon: broad patches, and grain that grows towards the viewer."""
    canvas.gradient(top, 1, colours)
    where = canvas.band(top, 1)
    near = (canvas.y[where[0]] - top) / (1 - top)
    texture = canvas.noise(rng, 6, 10, where) * 0.6 + canvas.noise(rng, 128, blades, where) * (0.4 + near)
    canvas.shade(where, grain * texture)


def _free(scene: Scene, rng: Rng, places: tuple[float, ...]) -> float:
    """The place in the background where the fewest things stand in the way, chosen at random among equals."""

    def room(x: float) -> float:
        tall = [thing for thing in scene.things if thing.top < 0.6]
        return min((abs(x - middle) - thing.radius for thing in tall for middle in thing.xs), default=1.0)

    return max(rng.permutation(places).tolist(), key=lambda x: min(room(x), 0.25))


def _meadow(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    _sky(canvas, scene, rng, 0.56)
    if scene.detail == "rainbow":
        sky.rainbow(canvas)
    landscape.hill(canvas, rng, 0.50, 0.05, (0.36, 0.58, 0.36))
    if scene.detail == "trees":
        plants.trees(canvas, rng, 0.55)
    _ground(canvas, rng, 0.55, [(0.48, 0.70, 0.26), (0.30, 0.58, 0.16), (0.20, 0.45, 0.11)], 0.16, 20)
    if scene.detail == "flowers":
        plants.flowers(canvas, rng, 0.60)


def _beach(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    _sky(canvas, scene, rng, 0.42)
    landscape.water(canvas, rng, 0.42, 0.63, scene.mood)
    if scene.detail == "sailboat":
        landscape.sailboat(canvas, _free(scene, rng, _THIRDS), 0.45)
    shore = 0.60 + 0.012 * sin(canvas.x * 9 + rng.uniform(0, 6))
    _ground(canvas, rng, 0.62, [(0.80, 0.70, 0.48), (0.93, 0.83, 0.60), (0.88, 0.76, 0.52)], 0.05, 54)
    where = canvas.band(0.58, 0.62)
    y = canvas.y[where[0]]
    canvas.blend(where, (0.82, 0.72, 0.50), np.clip((y - shore) * 150, 0, 1))
    canvas.blend(where, (1.0, 1.0, 1.0), 0.85 * decay(-(((y - shore) / 0.006) ** 2)))
    if scene.detail == "palm":
        plants.palm(canvas, _free(scene, rng, _EDGES), 0.66)


def _desert(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    _sky(canvas, scene, rng, 0.61)
    landscape.hill(canvas, rng, 0.46, 0.06, (0.80, 0.52, 0.26))
    landscape.hill(canvas, rng, 0.53, 0.04, (0.88, 0.62, 0.32))
    if scene.detail == "cactus":
        for x in (0.1, 0.9):
            plants.cactus(canvas, x, 0.62)
    if scene.detail == "palm":
        plants.palm(canvas, _free(scene, rng, _EDGES), 0.62)
    _ground(canvas, rng, 0.60, [(0.90, 0.64, 0.34), (0.93, 0.70, 0.40), (0.84, 0.56, 0.27)], 0.05, 40)
    where = canvas.band(0.60, 1)
    y = canvas.y[where[0]]
    ripples = sin(np.sqrt(y - 0.5) * 170 + 1.6 * sin(canvas.x * 7 + rng.uniform(0, 6)))
    canvas.shade(where, 0.05 * np.clip((y - 0.6) * 5, 0, 1) * ripples)


def _snow(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    _sky(canvas, scene, rng, 0.58)
    if scene.detail == "mountains":
        landscape.mountains(canvas, rng, 0.56)
    landscape.hill(canvas, rng, 0.53, 0.03, (0.82, 0.87, 0.94))
    if scene.detail == "pines":
        plants.pines(canvas, rng, 0.58)
    _ground(canvas, rng, 0.57, [(0.86, 0.90, 0.96), (0.95, 0.97, 1.0), (0.84, 0.89, 0.97)], 0.03, 28)
    if scene.detail == "snowfall":
        sky.snowfall(canvas, rng)


def _dock(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    _sky(canvas, scene, rng, 0.42)
    if scene.detail == "mountains":
        landscape.mountains(canvas, rng, 0.42)
    landscape.water(canvas, rng, 0.42, 0.66, scene.mood)
    if scene.detail == "sailboat":
        landscape.sailboat(canvas, _free(scene, rng, _THIRDS), 0.46)
    interior.planks(canvas, rng, 0.64, (0.58, 0.44, 0.31), 7)
    canvas.box(0, 0.635, 1, 0.65, (0.34, 0.25, 0.17))


def _city(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    _sky(canvas, scene, rng, 0.62)
    landscape.skyline(canvas, rng, 0.62, scene.mood)
    _ground(canvas, rng, 0.60, [(0.40, 0.41, 0.43), (0.48, 0.48, 0.50), (0.42, 0.42, 0.44)], 0.05, 54)
    canvas.box(0, 0.60, 1, 0.635, (0.68, 0.67, 0.65))
    for x in np.arange(0.02, 1, 0.2):
        canvas.polygon([(x, 0.73), (x + 0.1, 0.73), (x + 0.09, 0.745), (x - 0.01, 0.745)], (0.92, 0.90, 0.82))
    if scene.detail == "street lamp":
        landscape.street_lamp(canvas, _free(scene, rng, _EDGES), 0.635)


def _forest(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    leaves, gleam, *soil = FORESTS[scene.mood]
    canvas.gradient(0, 0.6, [leaves, gleam])
    where = canvas.band(0, 0.6)
    canvas.shade(where, 0.25 * canvas.noise(rng, 14, 13, where) + 0.2 * canvas.noise(rng, 40, 36, where))
    plants.trunks(canvas, rng, 0.60)
    where = canvas.band(0, 0.36)
    crown = np.clip(1.5 - canvas.y[where[0]] * 7 + canvas.noise(rng, 20, 11, where), 0, 1)
    canvas.blend(where, [0.8 * value for value in leaves], crown)
    _ground(canvas, rng, 0.60, soil, 0.22, 26)
    if scene.detail == "mist":
        canvas.glow(0.5, 0.56, 0.6, 0.07, (0.95, 0.97, 0.96), 0.85)
    if scene.detail == "flowers":
        plants.flowers(canvas, rng, 0.64)


def _night(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    _sky(canvas, scene, rng, 0.60)
    if scene.detail in ("moon", "crescent"):
        sky.moon(canvas, _free(scene, rng, _THIRDS), crescent=scene.detail == "crescent")
    landscape.hill(canvas, rng, 0.50, 0.06, (0.05, 0.08, 0.16))
    landscape.hill(canvas, rng, 0.56, 0.03, (0.06, 0.11, 0.17))
    _ground(canvas, rng, 0.60, [(0.10, 0.18, 0.22), (0.13, 0.24, 0.26), (0.08, 0.15, 0.18)], 0.16, 20)
    if scene.detail == "campfire":
        landscape.campfire(canvas, _free(scene, rng, _EDGES), 0.66)


def _space(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    canvas.gradient(0, 0.62, [(0.0, 0.0, 0.02), (0.02, 0.02, 0.05)])
    sky.stars(canvas, rng, 0.62)
    if scene.detail == "planet":
        sky.planet(canvas, _free(scene, rng, _THIRDS))
    landscape.hill(canvas, rng, 0.57, 0.02, (0.40, 0.40, 0.43))
    if scene.detail == "rocket":
        landscape.rocket(canvas, _free(scene, rng, _EDGES), 0.62)
    _ground(canvas, rng, 0.60, [(0.46, 0.46, 0.49), (0.60, 0.60, 0.62), (0.52, 0.52, 0.54)], 0.08, 40)
    landscape.craters(canvas, rng, 0.62)


def _room(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    interior.wall(canvas, rng, 0.62, WALLS[scene.mood])
    if scene.detail == "window":
        interior.window(canvas, _free(scene, rng, _THIRDS))
    if scene.detail == "painting":
        interior.painting(canvas, _free(scene, rng, _THIRDS))
    interior.planks(canvas, rng, 0.62, (0.62, 0.42, 0.24), 9)
    canvas.box(0, 0.60, 1, 0.628, (0.95, 0.94, 0.91))
    if scene.detail == "floor lamp":
        interior.floor_lamp(canvas, _free(scene, rng, _EDGES), 0.66)


def _kitchen(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    interior.tiles(canvas, rng, 0.62, WALLS[scene.mood])
    if scene.detail == "window":
        interior.window(canvas, _free(scene, rng, _THIRDS))
    if scene.detail == "shelf":
        interior.shelf(canvas, rng, _free(scene, rng, _THIRDS))
    _ground(canvas, rng, 0.62, [(0.56, 0.53, 0.50), (0.74, 0.71, 0.68), (0.78, 0.75, 0.72)], 0.05, 8)
    canvas.box(0, 0.61, 1, 0.625, (0.45, 0.42, 0.40))


def _stage(canvas: Canvas, scene: Scene, rng: Rng) -> None:
    interior.curtain(canvas, rng, 0.64, CURTAINS[scene.mood])
    interior.planks(canvas, rng, 0.64, (0.46, 0.30, 0.18), 11)
    if scene.detail == "spotlight":
        interior.spotlight(canvas, _free(scene, rng, (0.35, 0.50, 0.65)))


BACKDROPS: dict[str, Callable[[Canvas, Scene, Rng], None]] = {
    "meadow": _meadow,
    "beach": _beach,
    "desert": _desert,
    "snow": _snow,
    "dock": _dock,
    "city": _city,
    "forest": _forest,
    "night": _night,
    "space": _space,
    "room": _room,
    "kitchen": _kitchen,
    "stage": _stage,
}
