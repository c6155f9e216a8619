"""The colours of things, skies and walls (sRGB, 0 to 1), and the light that falls on them."""

from dataclasses import dataclass

from pipeline.sample.canvas import Colour


@dataclass(frozen=True)
class Light:
    """The light of a mood."""

    tint: Colour  # its colour
    ambient: float  # the share that comes from all directions, 0 to 1
    shadow: float  # how dark shadows are, 0 to 1


DAYLIGHT = Light((1.0, 1.0, 1.0), 0.46, 1.0)
LIGHTS = {  # by mood; daylight where it is not named
    "overcast": Light((0.96, 0.97, 1.0), 0.62, 0.6),
    "sunset": Light((1.04, 0.93, 0.82), 0.46, 1.0),
    "night": Light((0.90, 0.93, 1.04), 0.44, 1.0),
}
THINGS: dict[str, Colour] = {
    "red": (0.86, 0.10, 0.10),
    "orange": (0.98, 0.52, 0.06),
    "yellow": (1.00, 0.86, 0.10),
    "green": (0.13, 0.62, 0.20),
    "blue": (0.12, 0.30, 0.88),
    "purple": (0.50, 0.16, 0.68),
    "pink": (1.00, 0.50, 0.72),
    "white": (0.96, 0.96, 0.95),
    "black": (0.09, 0.09, 0.11),
    "brown": (0.47, 0.27, 0.12),
    "turquoise": (0.10, 0.78, 0.76),
}
SKIES: dict[str, list[Colour]] = {  # from the top to the horizon
    "clear": [(0.22, 0.50, 0.92), (0.50, 0.74, 0.97), (0.84, 0.93, 0.99)],
    "overcast": [(0.55, 0.58, 0.63), (0.70, 0.73, 0.76), (0.82, 0.83, 0.84)],
    "sunset": [(0.30, 0.22, 0.50), (0.86, 0.36, 0.40), (0.99, 0.62, 0.28), (1.0, 0.84, 0.48)],
    "night": [(0.02, 0.03, 0.10), (0.05, 0.07, 0.20), (0.12, 0.16, 0.36)],
}
WATER: dict[str, list[Colour]] = {  # from the horizon to the shore
    "clear": [(0.10, 0.40, 0.70), (0.16, 0.56, 0.78), (0.40, 0.76, 0.82)],
    "overcast": [(0.36, 0.44, 0.50), (0.46, 0.55, 0.60), (0.56, 0.64, 0.67)],
    "sunset": [(0.62, 0.36, 0.42), (0.50, 0.32, 0.48), (0.38, 0.30, 0.50)],
}
TOWERS: dict[str, Colour] = {
    "clear": (0.62, 0.70, 0.82),
    "overcast": (0.60, 0.62, 0.66),
    "sunset": (0.55, 0.34, 0.44),
}
FORESTS: dict[str, list[Colour]] = {  # leaves, the light between them, then the soil from far to near
    "summer": [
        (0.22, 0.42, 0.16),
        (0.62, 0.76, 0.48),
        (0.28, 0.40, 0.18),
        (0.24, 0.36, 0.14),
        (0.18, 0.28, 0.10),
    ],
    "autumn": [
        (0.80, 0.45, 0.12),
        (0.95, 0.80, 0.46),
        (0.62, 0.38, 0.16),
        (0.66, 0.40, 0.15),
        (0.50, 0.28, 0.10),
    ],
}
WALLS: dict[str, Colour] = {
    "white": (0.93, 0.93, 0.91),
    "blue": (0.55, 0.72, 0.90),
    "green": (0.62, 0.82, 0.62),
    "pink": (0.95, 0.74, 0.78),
    "yellow": (0.96, 0.88, 0.58),
}
CURTAINS: dict[str, Colour] = {
    "red": (0.66, 0.05, 0.09),
    "blue": (0.08, 0.16, 0.58),
    "purple": (0.38, 0.10, 0.50),
    "green": (0.05, 0.34, 0.18),
}
