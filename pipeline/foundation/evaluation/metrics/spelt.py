"""Names of metrics as papers and tools write them, with the direction that they are of."""

import re
from typing import NamedTuple

# How directions are named: by what is asked and found, or by what is found (TR, text retrieval, and
# LAVIS' txt_r1: captions).
DIRECTIONS = {
    "i2t": "i2t",
    "t2i": "t2i",
    "v2t": "i2t",
    "t2v": "t2i",
    "tr": "i2t",
    "ir": "t2i",
    "txt": "i2t",
    "img": "t2i",
    "text_retrieval": "i2t",
    "image_retrieval": "t2i",
    "image_to_text": "i2t",
    "text_to_image": "t2i",
    "video_to_text": "i2t",
    "text_to_video": "t2i",
}
NAME = re.compile(
    rf"(?:(?:val|test)[_/])?(?:(?P<way>{'|'.join(DIRECTIONS)})[ _./:-]*)?(?P<metric>[@a-z].*)",
    re.IGNORECASE,
)
# A recall as other tools write it: r1, R1, recall@5, Recall_10, mteb's hit_rate_at_5, which was
# cv_recall_at_5, MMEB's hit@5. It is a hit of any right candidate, as in all papers; mteb's
# recall_at_5 is none.
RECALL = re.compile(
    r"(?:(?:r|recall)[@_ ]?|@|(?:hit|hit_rate|cv_recall|accuracy)(?:@|_at_))(\d{1,9})",
    re.IGNORECASE,
)


# Other metrics as mteb and MMEB write them: ndcg_at_10, recall_at_5 (the share that is found),
# ndcg_linear@5 -> ours.
OF_TOOLS = {
    "ndcg": "nDCG",
    "ndcg_linear": "nDCG",
    "ndcg_exponential": "nDCG_exp",
    "map": "AP",
    "mrr": "MRR",
    "recall": "Recall",
    "precision": "P",
}
OF_TOOL = re.compile(
    r"(?:(?P<mteb>ndcg|map|mrr|recall|precision)_at_"
    r"|(?P<other>ndcg|ndcg_linear|ndcg_exponential|map|mrr|precision)@)(?P<k>\d{1,9})",
    re.IGNORECASE,
)


class Spelt(NamedTuple):
    """A metric's name as it was written."""

    metric: str  # R@5 for every recall, ours for what a tool names; else as it was written
    direction: str  # "i2t" or "t2i"; "" where the name does not say it
    written: str  # the direction as it was written
    is_known: bool  # whether it is a recall or what a tool names


def spelt(name: str) -> Spelt | None:
    """Read a name; None for what can be none."""
    match = NAME.fullmatch(name)
    if match is None:
        return None
    written = match["way"] or ""
    direction = DIRECTIONS.get(written.lower(), "")
    of_tool = OF_TOOL.fullmatch(match["metric"])
    if of_tool is not None:
        called = of_tool["mteb"] or of_tool["other"]
        metric = f"{OF_TOOLS[called.lower()]}@{of_tool['k']}"
        return Spelt(metric, direction, written, is_known=True)
    recall = RECALL.fullmatch(match["metric"])
    if recall is None:
        return Spelt(match["metric"], direction, written, is_known=False)
    return Spelt(f"R@{recall[1]}", direction, written, is_known=True)
