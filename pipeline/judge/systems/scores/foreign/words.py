"""The words in the names of arrays, as tools spell them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pipeline.foundation.evaluation.retrieval import Direction, Side


def spelt(words: str) -> frozenset[str]:
    """Words with blanks between, as a set."""
    return frozenset(words.split())


# Words of names, each as a set of spellings.
SIDES: Mapping[Side, frozenset[str]] = {
    "image": spelt(
        "image images img imgs im ims visual vision picture pictures photo photos video videos vid "
        "vids"
    ),
    "caption": spelt(
        "caption captions cap caps text texts txt txts sentence sentences sent sents language"
    ),
}
SCORES = spelt(
    "sim sims similarity similarities score scores logit logits matrix mat dist dists distance "
    "distances d"
)
VECTORS = spelt(
    "emb embs embed embeds embedding embeddings feat feats feature features vec vecs vector vectors "
    "rep reps"
)
IDS = spelt(
    "id ids name names file files filename filenames fname fnames key keys path paths url urls uid "
    "uids uuid uuids"
)
LISTED = spelt(
    "topk top indices index idx neighbors neighbours candidates ranking rankings rank ranks i"
)
# What asks and what answers, whichever side it is.
QUERIES = spelt("query queries qid qids q question questions")
CANDIDATES = spelt(
    "candidate candidates doc docs document documents corpus gallery database passage passages"
)
DISTANCES = spelt("dist dists distance distances")
# What an index of FAISS gives rows as.
FAISS = spelt("i neighbors neighbours")
ROWS = spelt("row rows idx index indices pos position positions")
# Words beside those of both sides in the name of a table that says which belong together.
OF = spelt("of for per by in each")
TABLE = (
    OF
    | IDS
    | ROWS
    | spelt("to the map maps mapping lookup dict table list lists owner owners gt no num number")
)
PLURAL = frozenset(word for word in IDS if f"{word[:-1]}" in IDS)
# What the right answers are called.
TRUTH = spelt(
    "gt gts truth truths target targets label labels owner owners positive positives correct "
    "relevance relevant"
)
BESIDE_TRUTH = TABLE | spelt("ground pair pairs matrix mask right")
COUNTS = spelt("n num nums number count counts per")
# What the place of each image's first caption is called.
STARTS = spelt("start starts begin begins offset offsets first ptr indptr")
I2T = re.compile(
    r"(^|[^a-z])(i2t|i2c|im2txt|img2txt|image2text|i_to_t|image_to_text|image_to_caption|img_to_txt|"
    r"per_image)($|[^a-z])"
)
T2I = re.compile(
    r"(^|[^a-z])(t2i|c2i|txt2im|txt2img|text2image|t_to_i|text_to_image|caption_to_image|txt_to_img|"
    r"per_text|per_caption)($|[^a-z])"
)
# Words that are written as one: captionimage, imageofcaption, imgids.
_SIDE = "|".join(sorted(SIDES["image"] | SIDES["caption"], key=len, reverse=True))
JOINED = re.compile(rf"({_SIDE})(to|of|for|per)?({_SIDE})?(ids?|names?|idx|index|map)?")


@dataclass(frozen=True)
class Name:
    """An array's name in words. Of a dict within a dict the last name counts, and the others say
    the side where it does not.
    """

    last: str  # in lower case, with _ between words
    above: str  # the names of the dicts that it is in, likewise

    @classmethod
    def of(cls, name: str) -> "Name":
        """Split a name, whose parts have dots between."""
        return _parsed(name)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words in their order; numbers are words."""
        return _words(self.last)

    def has(self, words: frozenset[str]) -> bool:
        """Whether any of the words is in the name."""
        return not words.isdisjoint(self.words)

    @cached_property
    def side(self) -> Side | None:
        """Whose it is; the image's where both are named."""
        for words in (self.words, _words(self.above)):
            for side, of_side in SIDES.items():
                if not of_side.isdisjoint(words):
                    return side
        return None

    @cached_property
    def direction(self) -> Direction | None:
        """The direction that it is of."""
        if I2T.search(self.last):
            return "i2t"
        if T2I.search(self.last):
            return "t2i"
        return None

    @cached_property
    def maps(self) -> Side | None:
        """The side that has an entry each, in a table that says which images and captions belong
        together: "caption" where it holds each caption's image; None for other names.
        """
        plain = [word for word in self.words if not word.isdigit()]
        if self.direction and {*plain} <= TABLE | {"i", "t", "c"}:
            return "image" if self.direction == "i2t" else "caption"
        sides = [side for word in plain for side in SIDES if word in SIDES[side]]
        if not {*plain} <= BOTH | TABLE or sorted(sides) != sorted(SIDES):
            return None
        at = [number for number, word in enumerate(self.words) if word in BOTH]
        between = self.words[at[0] + 1 : at[1]]
        if OF.isdisjoint(between):
            return sides[0]
        return sides[1]

    @cached_property
    def says_to(self) -> bool:
        """Whether a word says that one is of the other: image_to_text, img2txt."""
        return not (OF | {"to", "2"}).isdisjoint(self.words)

    @cached_property
    def is_truth(self) -> bool:
        """Whether right answers are called so."""
        in_words = {word for word in self.words if not word.isdigit()}
        others = in_words - BOTH - BESIDE_TRUTH - TRUTH
        return self.has(TRUTH) and not others

    @cached_property
    def tells_owners(self) -> bool:
        """Whether a table of what belongs together is called so."""
        return self.maps is not None or self.is_truth

    @cached_property
    def is_of_ids(self) -> bool:
        """Whether the ids of all images or all captions are called so, and nothing else is."""
        others = {*self.words} - BOTH - IDS - OF - {"all"}
        return self.has(BOTH) and self.has(PLURAL) and not others

    @cached_property
    def counts(self) -> bool:
        """Whether the number of each image's captions is called so."""
        others = {*self.words} - BOTH - COUNTS - {"of"}
        return self.has(COUNTS) and self.has(SIDES["caption"]) and not others


BOTH = SIDES["image"] | SIDES["caption"]


@lru_cache(1 << 12)
def _parsed(name: str) -> Name:
    snake = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    above, _, last = snake.rpartition(".")
    return Name(last, above)


def _words(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for word in re.findall(r"[a-z]+|[0-9]+", text):
        joined = None if word in BOTH else JOINED.fullmatch(word)
        found += [word] if joined is None else [part for part in joined.groups() if part]
    return tuple(found)
