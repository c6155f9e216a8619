"""Write the video sample: scenes as moving shots of two seconds in H.264, a CSV of their captions,
and role graphs.
"""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import av
import numpy as np
from PIL import Image

from pipeline.foundation.files.atomic import replacing, write_text
from pipeline.foundation.manifest.sample.corpus import SPLITS, in_order, replacing_sample, require
from pipeline.foundation.manifest.sample.paint import paint
from pipeline.foundation.manifest.sample.role_graphs import graph
from pipeline.foundation.manifest.sample.scenes import COLOURS, WORLD, Scene, Thing, compose, pick
from pipeline.foundation.manifest.sample.wording import sentence, write_captions

SECONDS = 2
RATE = 15
# A fixed quantiser: with x264's rate control bytes vary between runs.
ENCODING = {"preset": "veryfast", "qp": "22"}
# How many captions tell of the scene alone, and how many of the movement too, where the order of
# frames matters.
OF_SCENE = 3
OF_MOVEMENT = 2
SIDEWAYS = {"right": 1, "left": -1}


@dataclass(frozen=True)
class Movement:
    """A movement of the camera from one window to another."""

    # A window is the left, top, right and bottom of what is seen, in fractions of the scene's side.

    opposite: str  # the movement backwards, a key of `MOVEMENTS`
    first: list[float]  # the window that is seen first
    last: list[float]  # the window that is seen last
    phrases: list[str]  # what captions say of it

    def at(self, time: float) -> tuple[float, float, float, float]:
        """Find what is seen at a time from 0 to 1."""
        edges = zip(self.first, self.last, strict=True)
        window = [(1 - time) * before + time * after for before, after in edges]
        left, top, right, bottom = window
        return left, top, right, bottom


MOVEMENTS = {name: Movement(**movement) for name, movement in WORLD["movements"].items()}


def render(
    out: Path,
    clips: int = 600,
    size: int = 160,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    processes: int = 1,
) -> Path:
    """Write `out/videos/shot_*.mp4`, role graphs of their captions as HGR's file, then
    `out/captions.csv`.

    As `corpus.render`, but for a number of clips, of an even size. The CSV has the columns video,
    caption and split. The bytes of a clip also depend on the version of the encoder. seed,
    progress, processes: as there.

    Returns:
        The CSV.

    Raises:
        InputError: If an argument is out of range or `out` cannot be written.
    """
    require("clips", clips, size, seed, even=True)
    folder = out / "videos"
    listing = out / "captions.csv"
    with replacing_sample(folder, listing, "shot_{:06d}.mp4", clips):
        rows: list[tuple[str, str, str]] = []
        make = partial(_make, folder, size, seed)
        for rows_of_clip in in_order(make, clips, processes, progress):
            rows += rows_of_clip
        graphs = {caption: graph(caption) for _, caption, _ in rows}
        graphs_file = out / "sent2rolegraph.augment.json"
        write_text(graphs_file, json.dumps(graphs), durable=False)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("video", "caption", "split"))
        writer.writerows(rows)
        write_text(listing, text.getvalue(), durable=False)
    return listing


def _make(folder: Path, size: int, seed: int, index: int) -> list[tuple[str, str, str]]:
    """Write one clip; returns its lines of the CSV."""
    scene = compose(seed, index)
    name = f"shot_{index:06d}.mp4"
    movement = choose(seed, index)
    of_picture = np.random.default_rng([seed, index, 2])
    whole = paint(scene, 2 * size, of_picture)
    with replacing(folder / name, durable=False) as partial_file:
        encode(partial_file, shot(whole, movement, size))
    rng = np.random.default_rng([seed, index, 4])
    of_scene = write_captions(scene, OF_SCENE, rng)
    of_movement = tell(scene, movement, OF_MOVEMENT, rng)
    split = SPLITS[index % len(SPLITS)]
    return [(name, caption, split) for caption in of_scene + of_movement]


def choose(seed: int, index: int) -> str:
    """Draw a shot's movement."""
    rng = np.random.default_rng([seed, index, 3])
    return pick(rng, tuple(MOVEMENTS))


def tell(scene: Scene, name: str, count: int, rng: np.random.Generator) -> list[str]:
    """Write several captions of a shot's movement."""
    openings = WORLD["moving"]
    chosen = rng.permutation(len(openings))[:count]
    return [_caption(scene, name, openings[k], rng) for k in chosen]


def _caption(scene: Scene, name: str, opening: str, rng: np.random.Generator) -> str:
    moves = opening.format(pick(rng, MOVEMENTS[name].phrases))
    if name not in SIDEWAYS:
        return sentence(f"{moves} in a shot of {_named(scene.things[0])}.")
    direction = SIDEWAYS[name]
    in_view = sorted(scene.things, key=lambda thing: direction * thing.slot.x)
    first = _named(in_view[0])
    last = _named(in_view[-1])
    return sentence(f"{moves}, {first} first and {last} last.")


def _named(thing: Thing) -> str:
    singular, plural = WORLD["shapes"][thing.shape][0]
    colour = COLOURS[thing.colour]["names"][0]
    if thing.slot.count > 1:
        return f"the {colour} {plural}"
    return f"a {colour} {singular}"


def shot(whole: Image.Image, movement: str, size: int) -> list[Image.Image]:
    """Cut a shot's frames from the picture of its scene."""
    last = SECONDS * RATE - 1
    camera = MOVEMENTS[movement]
    frames = []
    for number in range(last + 1):
        window = camera.at(number / last)
        left, top, right, bottom = (edge * whole.width for edge in window)
        box = (left, top, right, bottom)
        frames.append(whole.resize((size, size), Image.Resampling.BILINEAR, box=box))
    return frames


def encode(path: Path, frames: list[Image.Image]) -> None:
    """Write frames as H.264 in an MP4, 15 a second."""
    with av.open(str(path), "w", format="mp4") as film:
        stream = film.add_stream("libx264", rate=RATE, options=ENCODING)
        stream.width, stream.height = frames[0].size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.thread_count = 1  # several clips are encoded at once
        for number, shown in enumerate(frames):
            frame = av.VideoFrame.from_image(shown)
            frame.pts = number
            frame.time_base = Fraction(1, RATE)
            film.mux(stream.encode(frame))
        film.mux(stream.encode())
