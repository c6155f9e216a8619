"""What catalogues of evaluations read: `pipeline evaluate --export FORM`.

    model_index.py      the head of a model card on Hugging Face
    eval_results.py     a file of a model's `.eval_results` there, for a benchmark's leaderboard
    every_eval_ever.py  a record of Every Eval Ever
    measured.py         their numbers, each with its interval and how that was computed
    options.py          what each asks for and scores do not say

A form is a class in a file here, its options, and a line in `EXTENSION`.
"""

from pipeline.foundation.parts.extension import Extension

_CATALOGUES = {
    "model-index": "pipeline.extensions.catalogues.model_index:ModelIndex",
    "every-eval-ever": "pipeline.extensions.catalogues.every_eval_ever:EveryEvalEver",
    "eval-results": "pipeline.extensions.catalogues.eval_results:EvalResults",
}
EXTENSION = Extension(parts={"catalogues": _CATALOGUES})
