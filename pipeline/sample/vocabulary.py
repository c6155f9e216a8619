"""The words for everything in a scene, of which `wording.py` makes sentences."""

SHAPES = {  # shape: its names, singular and plural
    "ball": (("ball", "balls"), ("sphere", "spheres")),
    "cube": (("cube", "cubes"), ("box", "boxes"), ("block", "blocks")),
    "cone": (("cone", "cones"),),
    "cylinder": (("cylinder", "cylinders"), ("drum", "drums")),
    "pyramid": (("pyramid", "pyramids"),),
    "ring": (("ring", "rings"), ("hoop", "hoops")),
    "star": (("star", "stars"),),
    "heart": (("heart", "hearts"),),
    "mushroom": (("mushroom", "mushrooms"), ("toadstool", "toadstools")),
    "mug": (("mug", "mugs"), ("cup", "cups")),
    "balloon": (("balloon", "balloons"),),
    "umbrella": (("umbrella", "umbrellas"), ("parasol", "parasols")),
}
COLOURS = {  # colour: its names, the plain one first; other names are rarer
    "red": ("red", "bright red"),
    "orange": ("orange",),
    "yellow": ("yellow", "bright yellow"),
    "green": ("green",),
    "blue": ("blue", "deep blue"),
    "purple": ("purple", "violet"),
    "pink": ("pink",),
    "white": ("white",),
    "black": ("black", "jet black"),
    "brown": ("brown",),
    "turquoise": ("turquoise", "teal"),
}
SIZES = {
    "small": ("small", "little", "tiny"),
    "medium": ("", "", "", "medium sized"),
    "large": ("large", "big", "huge"),
}
TEXTURES = {  # texture: before the noun ({c} colour, {a} accent), and after it
    "plain": (("{c}", "{c}", "plain {c}"), ()),
    "striped": (
        ("{c} and {a} striped", "striped {c}", "{c} striped"),
        ("with {a} stripes", "striped with {a}"),
    ),
    "spotted": (
        ("spotted {c}", "{c} and {a} spotted", "{c} polka dot"),
        ("with {a} spots", "covered in {a} dots", "with {a} polka dots"),
    ),
    "checked": (
        ("{c} and {a} checked", "checkered {c}", "{c} checked"),
        ("with {a} checks", "with a {a} check pattern"),
    ),
}
NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}
ROWS = ("{n}", "a row of {n}", "a line of {n}", "a group of {n}")

PLACES = {  # setting: where the things are, and the setting by itself
    "meadow": (
        ("in a green meadow", "on the grass", "in a grassy field", "on a green lawn", "out in the meadow"),
        ("a green meadow", "a grassy field", "open grassland"),
    ),
    "beach": (
        ("on a sandy beach", "on the beach", "by the sea", "at the seaside", "on the sand near the water"),
        ("a sandy beach", "the seashore", "a beach by the sea"),
    ),
    "desert": (
        ("in the desert", "among sand dunes", "on desert sand", "in a dry desert"),
        ("a sandy desert", "a desert with dunes", "a dry landscape of dunes"),
    ),
    "snow": (
        ("in the snow", "on a snowy field", "on fresh white snow", "in a winter landscape"),
        ("a snowy field", "a winter landscape", "a snow covered plain"),
    ),
    "dock": (
        ("on a wooden pier", "on a dock by the water", "on a wooden jetty", "on planks beside the lake"),
        ("a wooden pier", "a dock on the water", "a jetty by a lake"),
    ),
    "city": (
        (
            "on a city street",
            "in the city",
            "on the road in front of tall buildings",
            "downtown on the asphalt",
        ),
        ("a city street", "a road through the city", "an urban street with tall buildings"),
    ),
    "forest": (
        ("in the forest", "in the woods", "among tall trees", "on the forest floor"),
        ("a forest", "the woods", "a forest of tall trunks"),
    ),
    "night": (
        (
            "on a dark plain at night",
            "outdoors at night",
            "in the dark of night",
            "in the middle of the night",
        ),
        ("a starry night", "a dark landscape at night", "a night scene with dim hills"),
    ),
    "space": (
        (
            "on the surface of the moon",
            "in outer space",
            "on a grey cratered plain in space",
            "among moon craters",
        ),
        ("the surface of the moon", "a lunar landscape", "a grey plain with craters under a black sky"),
    ),
    "room": (
        ("in a room", "indoors on a wooden floor", "on the floor of a room", "in a living room"),
        ("a room with a wooden floor", "the inside of a room", "a living room"),
    ),
    "kitchen": (
        ("in a kitchen", "on a kitchen counter", "on a grey worktop in the kitchen"),
        ("a kitchen", "a kitchen counter", "a kitchen worktop"),
    ),
    "stage": (
        ("on a stage", "on a theatre stage", "on the boards of a theatre"),
        ("a theatre stage", "a wooden stage", "the stage of a theatre"),
    ),
}
_SKIES: dict[str, tuple[str, ...]] = {
    "clear": ("under a blue sky", "on a sunny day", "in bright sunshine", "under a clear blue sky"),
    "overcast": ("under a grey sky", "on a cloudy day", "under heavy clouds", "on an overcast day"),
    "sunset": ("at sunset", "under an orange evening sky", "in the evening light", "as the sun goes down"),
}
_WALLS = ("in front of a {m} wall", "against a {m} wall", "between {m} walls")
_TILES = ("in front of {m} tiles", "against {m} wall tiles", "before a wall of {m} tiles")
_CURTAINS = ("in front of a {m} curtain", "before {m} curtains", "against a {m} curtain")
MOODS: dict[
    str, dict[str, tuple[str, ...]]
] = {  # setting: mood: the sky, the season or the wall ({m}: the mood's name)
    **dict.fromkeys(("meadow", "beach", "desert", "snow", "dock", "city"), _SKIES),
    "forest": {
        "summer": ("in green summer light", "under green leaves"),
        "autumn": ("in autumn", "under orange autumn leaves", "among fallen leaves"),
    },
    "night": {"night": ("under a starry sky", "under a starlit sky", "by starlight")},
    "space": {"night": ("under a black starry sky", "under a dark starry sky")},
    "room": dict.fromkeys(("blue", "green", "pink", "yellow"), _WALLS),
    "kitchen": dict.fromkeys(("white", "blue", "green"), _TILES),
    "stage": dict.fromkeys(("red", "blue", "purple", "green"), _CURTAINS),
}
DETAILS = {  # detail: what comes after "with"
    "trees": ("trees in the background", "leafy trees behind", "a few trees on the horizon"),
    "rainbow": ("a rainbow in the sky", "a rainbow overhead", "a colourful rainbow arching above"),
    "flowers": ("flowers all around", "flowers on the ground", "little flowers scattered about"),
    "birds": ("birds in the sky", "a few birds flying above", "dark birds overhead"),
    "sailboat": ("a sailboat on the water", "a sailboat in the distance", "a boat sailing by"),
    "palm": ("a palm tree at the side", "a palm tree behind", "a tall palm in the background"),
    "cactus": ("cactuses in the background", "tall cactuses on both sides", "cactus plants behind"),
    "pines": ("pine trees behind", "snowy fir trees in the background", "evergreens on the horizon"),
    "mountains": ("mountains in the background", "snowy mountains behind", "peaks on the horizon"),
    "snowfall": ("snow falling", "snowflakes in the air", "snowflakes drifting down"),
    "mist": ("mist between the trees", "fog behind", "a light mist in the background"),
    "moon": ("a full moon above", "the full moon in the sky", "a round bright moon"),
    "crescent": ("a crescent moon above", "a thin moon in the sky", "a sickle moon shining"),
    "campfire": ("a campfire at the side", "a small fire burning", "flames of a campfire nearby"),
    "planet": ("a ringed planet in the sky", "Saturn above", "a banded planet overhead"),
    "rocket": ("a rocket at the side", "a rocket ship behind", "a spaceship standing by"),
    "window": ("a window in the wall", "a window behind", "a window in the background"),
    "painting": ("a painting on the wall", "a framed picture behind", "a picture hanging on the wall"),
    "shelf": ("jars on a shelf", "a shelf of jars on the wall", "a row of jars behind"),
    "street lamp": ("a street lamp at the side", "a glowing lamp post", "a street light behind"),
    "floor lamp": ("a floor lamp at the side", "a standing lamp in the corner", "a lit lamp"),
    "spotlight": ("a spotlight from above", "a beam of light", "a bright spotlight"),
}
STAND = ("stand", "stands")
VERBS = {"ball": ("lie", "lies")}  # what a shape does where it does not stand
# kind: clauses of {a}, the subject, and {b}, the object, with their verbs; then phrases without a verb.
RELATIONS = {
    "left": (
        (
            "{a} {stand_a} to the left of {b}",
            "{a} {is_a} on the left of {b}",
            "{b} {stand_b} to the right of {a}",
            "{b} {is_b} right of {a}",
            "{a} and {b} are side by side",
            "{a} {is_a} on the left and {b} on the right",
        ),
        ("{a} left of {b}", "{a} next to {b}", "{b} on the right of {a}", "{b} beside {a}"),
    ),
    "on": (
        (
            "{a} {is_a} on top of {b}",
            "{a} {stand_a} on {b}",
            "{a} {is_a} balanced on {b}",
            "{b} {carry_b} {a}",
            "{a} {is_a} placed on top of {b}",
        ),
        ("{a} on top of {b}", "{a} on {b}", "{b} with {a} on top", "{b} underneath {a}"),
    ),
    "above": (
        (
            "{a} {float_a} above {b}",
            "{a} {hover_a} over {b}",
            "{b} {stand_b} beneath {a}",
            "{a} {is_a} in the air above {b}",
            "{a} {is_a} floating over {b}",
        ),
        ("{a} above {b}", "{a} floating over {b}", "{b} under {a}", "{b} with {a} hovering above"),
    ),
    "front": (
        (
            "{a} {stand_a} in front of {b}",
            "{a} {is_a} in front of {b}",
            "{b} {stand_b} behind {a}",
            "{b} {is_b} behind {a}",
        ),
        ("{a} in front of {b}", "{b} behind {a}", "{a} before {b}", "{b} with {a} in front"),
    ),
}
