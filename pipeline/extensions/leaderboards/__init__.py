"""What the tools behind leaderboards write: runs with scores of mteb, sentence-transformers and
MMEB, which `pipeline evaluate`, `compare` and `explain` read like any other scores.

    mteb_predictions.py        each query's best candidates, by subset and split
    mteb_cache.py              the vectors of a task, by the content of texts and images
    sentence_transformers.py   the predictions of its evaluators
    mmeb.py                    VLM2Vec's ranked lists, which have no scores, and their labels

How these tools measure is in `conventions`, a file each. A layout or a tool is a class in a file
here, and a line in `EXTENSION`.
"""

from pipeline.foundation.parts.extension import Extension

_RUNS = {
    "mteb": "pipeline.extensions.leaderboards.mteb_predictions:MtebPredictions",
    "mmeb": "pipeline.extensions.leaderboards.mmeb:RankedLists",
    "sentence-transformers": "pipeline.extensions.leaderboards.sentence_transformers:Predictions",
}
_JUDGEMENTS = {"mmeb": "pipeline.extensions.leaderboards.mmeb:Labels"}
_SETS = {
    "mmeb": "pipeline.extensions.leaderboards.mmeb_vectors:EncodedSet",
    "clip-retrieval": "pipeline.extensions.leaderboards.clip_retrieval:Folder",
    "mteb": "pipeline.extensions.leaderboards.mteb_cache:EmbeddingCache",
    "tokens": "pipeline.extensions.leaderboards.token_files:TokenFiles",
}
_CONVENTIONS = {
    "trec_eval": "pipeline.extensions.leaderboards.conventions.trec_eval:TrecEval",
    "mteb": "pipeline.extensions.leaderboards.conventions.mteb:Mteb",
    "mmeb": "pipeline.extensions.leaderboards.conventions.mmeb:Mmeb",
    "clip_benchmark": "pipeline.extensions.leaderboards.conventions.clip_benchmark:ClipBenchmark",
    "open_clip": "pipeline.extensions.leaderboards.conventions.open_clip:OpenClip",
    "ranx": "pipeline.extensions.leaderboards.conventions.ranx:Ranx",
    "sentence-transformers": "pipeline.extensions.leaderboards.conventions.sentence_transformers:SentenceTransformers",
    "vidore-benchmark": "pipeline.extensions.leaderboards.conventions.vidore_benchmark:ViDoReBenchmark",
}
EXTENSION = Extension(
    parts={
        "run_layouts": _RUNS,
        "judgement_layouts": _JUDGEMENTS,
        "file_sets": _SETS,
        "conventions": _CONVENTIONS,
    }
)
