"""The names that data sets give their splits."""

import re

from pipeline.foundation.manifest.split import SPLITS

# Other names of splits, in lower case. "restval" holds the images of COCO's val2014 that Karpathy's
# split gives back to training (Karpathy & Fei-Fei 2015).
ALIASES = {
    "train": ("training", "trn", "restval"),
    "val": ("valid", "validation", "validate", "dev", "development", "minival"),
    "test": ("testing", "tst"),
}
SPLIT_OF: dict[str, str] = {}
for _split in SPLITS:
    SPLIT_OF[_split] = _split
    SPLIT_OF |= dict.fromkeys(ALIASES[_split], _split)
IN_NAME = re.compile(rf"(?:^|[^a-z])({'|'.join(SPLIT_OF)})(?:20\d\d)?(?![a-z])", re.IGNORECASE)


def split_of(name: str) -> str | None:
    """Which split a name means, such as "val" for "validation" and "val2014"; None for an unknown
    one.
    """
    without_year = re.sub(r"20\d\d$", "", name.strip().lower())
    return SPLIT_OF.get(without_year)


def split_in(stem: str) -> str | None:
    """Which split a file's name says, such as "val" for "coco_karpathy_val"; None if it says none,
    or two.
    """
    splits = {SPLIT_OF[name.lower()] for name in IN_NAME.findall(stem)}
    if len(splits) != 1:
        return None
    return splits.pop()
