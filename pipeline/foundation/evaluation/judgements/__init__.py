"""Sources of relevance beyond one image per caption: qrels, captions of one text, ECCV Caption,
CxC.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.judgements import (
        appearance,
        coco_pairs,
        columns,
        names,
        qrels,
        rows,
    )

lazy.imports(__name__)
