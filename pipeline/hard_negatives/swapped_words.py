"""The words that swaps exchange. Each list holds words of one kind, so that a swapped caption is still a sentence."""

from __future__ import annotations

COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white", "black", "brown", "gray")
SAME_COLOUR = {"grey": "gray", "violet": "purple", "turquoise": "blue", "teal": "blue", "tan": "brown"}
"""Words that stand for a colour of the list."""

NUMBERS = ("two", "three", "four", "five", "six")
"""Not one, which is a pronoun too, and whose noun would have to change."""

NOUNS = {
    "man": "men", "woman": "women", "boy": "boys", "girl": "girls", "child": "children", "kid": "kids",
    "baby": "babies",
    "person": "people", "player": "players", "dog": "dogs", "puppy": "puppies", "cat": "cats", "horse": "horses",
    "bird": "birds", "cow": "cows", "ball": "balls", "frisbee": "frisbees", "bike": "bikes", "bicycle": "bicycles",
    "motorcycle": "motorcycles", "car": "cars", "truck": "trucks", "boat": "boats", "skateboard": "skateboards",
    "surfboard": "surfboards", "hat": "hats", "shirt": "shirts", "jacket": "jackets", "coat": "coats",
    "helmet": "helmets", "bench": "benches", "chair": "chairs", "table": "tables", "fence": "fences", "wall": "walls",
    "tree": "trees", "rock": "rocks", "hill": "hills", "mountain": "mountains", "street": "streets", "road": "roads",
    "field": "fields", "beach": "beaches", "pool": "pools", "building": "buildings", "house": "houses",
    "stick": "sticks", "toy": "toys", "rope": "ropes", "swing": "swings", "slide": "slides",
    # of the built-in sample
    "sphere": "spheres", "cube": "cubes", "box": "boxes", "block": "blocks", "cone": "cones", "cylinder": "cylinders",
    "drum": "drums", "pyramid": "pyramids", "ring": "rings", "hoop": "hoops", "star": "stars", "heart": "hearts",
    "mushroom": "mushrooms", "toadstool": "toadstools", "mug": "mugs", "cup": "cups", "balloon": "balloons",
    "umbrella": "umbrellas", "parasol": "parasols",
}
"""Singular and plural."""

BEFORE_A_NOUN = {"a", "an", "the", "his", "her", "its", "their", "some", "several", "one", *NUMBERS, *COLOURS,
                 *SAME_COLOUR, "big", "large", "small", "little", "tiny", "huge", "young", "old", "wooden", "plain"}
"""A noun behind another word may be the second half of a compound, as in "tennis ball"."""

JOINING = {"and", "or", "with", "a", "an", "the", "one", *NUMBERS}
"""Nouns that only these words join change places without a change of meaning."""

NOT_A_SIDE = {"before": {"has", "have", "had", "is", "are", "was", "were", "being", "all", "just"},
              "after": {"next", "behind", "in", "into", "at", "by", "before", "after", "above", "below", "over",
                        "under", "on", "through", "outside", "up", "out", "off", "away", "now", "there"}}
"""Words beside which left is a verb's form, or right an adverb ("right next to")."""
