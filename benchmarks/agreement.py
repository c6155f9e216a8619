"""Our metrics beside those of ir_measures, ranx, torchmetrics and eccv_caption, on random matrices:
a table.

    # 40 images x 200 captions, several right ones each, with grades
    python -m benchmarks.agreement
    python -m benchmarks.agreement --images 100 --seeds 5
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks import numbers
from pipeline.foundation.evaluation.metrics import parse
from pipeline.foundation.evaluation.metrics.base import Fold
from pipeline.foundation.evaluation.retrieval import Relevance, as_similarity, rank
from pipeline.foundation.evaluation.retrieval.placements import place

METRICS = (
    "R@1",
    "R@5",
    "R@10",
    "R@50",
    "Recall@1",
    "Recall@10",
    "Recall@100",
    "P@5",
    "MRR",
    "MRR@10",
    "nDCG",
    "nDCG@10",
    "AP",
    "AP@20",
    "AP(rel=2)",
    "Rprec",
    "mAP@R",
)


class Drawn(NamedTuple):
    """A random matrix [I, C] without ties, and the grade of each pair [I, C], 0 for a wrong one."""

    scores: npt.NDArray[np.float64]
    grades: npt.NDArray[np.int64]


def draw(images: int, captions: int, seed: int, graded: bool = True) -> Drawn:
    """Several right captions an image, whose similarities are somewhat higher; every caption has a
    right image.
    """
    generator = np.random.default_rng(seed)
    right = generator.random((images, captions)) < min(0.5, 4 / images)
    right[generator.integers(0, images, captions), np.arange(captions)] = True
    right[np.arange(images), generator.permutation(captions)[:images]] = True
    grades = np.where(right, generator.integers(1, 4 if graded else 2, right.shape), 0)
    wanted = generator.random(right.shape) + 0.3 * right
    # Whole numbers, no two of them equal: other code keeps scores in float32.
    return Drawn(
        np.argsort(np.argsort(wanted, axis=None)).reshape(right.shape).astype(np.float64), grades
    )


def ours(drawn: Drawn, names: Sequence[str]) -> dict[str, npt.NDArray[np.float64]]:
    """Metric -> the values of all queries, images first."""
    image, caption = np.nonzero(drawn.grades)
    source = as_similarity(drawn.scores)
    grade = drawn.grades[image, caption].astype(np.float64)
    relevance = Relevance.of_pairs(image, caption, drawn.scores.shape, grade)
    ranks = rank(source, relevance)
    fold = Fold.of(
        ranks, "expected", (place(source, relevance, "i2t"), place(source, relevance, "t2i"))
    )
    return {
        name: np.concatenate([parse(name).values(way, "expected") for way in (fold.i2t, fold.t2i)])
        for name in names
    }


def as_run(drawn: Drawn) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Judgements and run as ir_measures and ranx take them: query -> document -> grade, and ->
    score.
    """
    judged: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for way, scores, grades in (
        ("i", drawn.scores, drawn.grades),
        ("c", drawn.scores.T, drawn.grades.T),
    ):
        for query, (row, right) in enumerate(zip(scores.tolist(), grades.tolist(), strict=True)):
            run[f"{way}{query}"] = {f"d{place}": score for place, score in enumerate(row)}
            judged[f"{way}{query}"] = {
                f"d{place}": grade for place, grade in enumerate(right) if grade
            }
    return judged, run


def by_ir_measures(drawn: Drawn) -> dict[str, npt.NDArray[np.float64]]:
    """Our name -> the values of ir_measures, all queries, images first."""
    import ir_measures

    theirs = {
        name: ir_measures.parse_measure(_as_ir_measures(name))
        for name in METRICS
        if name != "mAP@R"
    }
    judged, run = as_run(drawn)
    found: dict[str, dict[str, float]] = {name: {} for name in theirs}
    for name, measure in theirs.items():
        for each in ir_measures.iter_calc([measure], judged, run):
            found[name][each.query_id] = each.value
    return {name: np.array([values[query] for query in judged]) for name, values in found.items()}


def _as_ir_measures(name: str) -> str:
    """R@K is the field's hit here and true recall there."""
    name = name.replace("MRR", "RR")
    return (
        name.replace("R@", "Success@") if name.startswith("R@") else name.replace("Recall@", "R@")
    )


def by_ranx(drawn: Drawn) -> dict[str, npt.NDArray[np.float64]]:
    """Our name -> the values of ranx."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ranx import Qrels, Run, evaluate

        names = {
            "R@1": "hit_rate@1",
            "R@5": "hit_rate@5",
            "R@10": "hit_rate@10",
            "Recall@1": "recall@1",
            "Recall@10": "recall@10",
            "Recall@100": "recall@100",
            "P@5": "precision@5",
            "MRR": "mrr",
            "MRR@10": "mrr@10",
            "nDCG": "ndcg",
            "nDCG@10": "ndcg@10",
            "AP": "map",
            "AP@20": "map@20",
            "AP(rel=2)": "map-l2",
            "Rprec": "r-precision",
        }
        judged, run = as_run(drawn)
        qrels, found = Qrels(judged), Run(run)
        values = evaluate(qrels, found, list(names.values()), return_mean=False)
    order = np.argsort(np.argsort(list(judged)))  # ranx sorts queries by name
    return {ours: np.asarray(values[theirs])[order] for ours, theirs in names.items()}


def by_torchmetrics(drawn: Drawn) -> dict[str, npt.NDArray[np.float64]]:
    """Our name -> the values of torchmetrics, which computes in float32 and takes 0 and 1 alone but
    for nDCG.
    """
    import torch
    from torchmetrics.functional import retrieval as theirs

    names: dict[str, Callable[..., Any]] = {
        "R@10": lambda scores, right: theirs.retrieval_hit_rate(scores, right > 0, 10),
        "Recall@10": lambda scores, right: theirs.retrieval_recall(scores, right > 0, 10),
        "P@5": lambda scores, right: theirs.retrieval_precision(scores, right > 0, 5),
        "MRR": lambda scores, right: theirs.retrieval_reciprocal_rank(scores, right > 0),
        "nDCG": theirs.retrieval_normalized_dcg,
        "nDCG@10": lambda scores, right: theirs.retrieval_normalized_dcg(scores, right, 10),
        "AP": lambda scores, right: theirs.retrieval_average_precision(scores, right > 0),
        "Rprec": lambda scores, right: theirs.retrieval_r_precision(scores, right > 0),
    }
    queries = [
        (
            torch.from_numpy(1 + np.argsort(np.argsort(row)).astype(np.float32)),
            torch.from_numpy(right.copy()),
        )
        for scores, grades in ((drawn.scores, drawn.grades), (drawn.scores.T, drawn.grades.T))
        for row, right in zip(scores, grades, strict=True)
    ]
    return {
        name: np.array([float(measure(*query)) for query in queries])
        for name, measure in names.items()
    }


def by_eccv_caption(drawn: Drawn) -> dict[str, npt.NDArray[np.float64]]:
    """Our name -> the values of ECCV Caption's package: mAP@R, R-Precision, and its R@K."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells that it reads JSON by the standard library
        from eccv_caption import _metrics as theirs

    found: dict[str, list[float]] = {name: [] for name in ("mAP@R", "Rprec", "R@1", "R@5", "R@10")}
    for scores, grades in ((drawn.scores, drawn.grades), (drawn.scores.T, drawn.grades.T)):
        for row, right in zip(scores, grades, strict=True):
            ranked, judged = {0: np.argsort(-row).tolist()}, {0: np.flatnonzero(right).tolist()}
            all_of_it = _quiet(theirs.compute_eccv_metrics, ranked, judged)
            found["mAP@R"].append(all_of_it["eccv_map_at_r"])
            found["Rprec"].append(all_of_it["eccv_rprecision"])
            for k in (1, 5, 10):
                found[f"R@{k}"].append(theirs.compute_r_at_k(ranked, judged, k))
    return {name: np.array(values) for name, values in found.items()}


def _quiet(measure: Callable[..., Any], *given: Any) -> Any:
    """Without the progress bar that the package draws for every call."""
    import contextlib
    import io

    with contextlib.redirect_stderr(io.StringIO()):
        return measure(*given)


LIBRARIES: Mapping[str, Callable[[Drawn], dict[str, npt.NDArray[np.float64]]]] = {
    "ir_measures": by_ir_measures,
    "ranx": by_ranx,
    "torchmetrics": by_torchmetrics,
    "eccv_caption": by_eccv_caption,
}


def differences(drawn: Drawn, libraries: Sequence[str]) -> dict[str, dict[str, float]]:
    """Metric -> library -> the largest difference of any query's value."""
    mine = ours(drawn, METRICS)
    found: dict[str, dict[str, float]] = {name: {} for name in METRICS}
    for library in libraries:
        for name, values in LIBRARIES[library](drawn).items():
            found[name][library] = float(np.abs(mine[name] - values).max())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=40, help="five captions each")
    parser.add_argument("--seeds", type=int, default=3, help="matrices drawn")
    given = parser.parse_args()
    every = [
        differences(draw(given.images, 5 * given.images, seed), list(LIBRARIES))
        for seed in range(given.seeds)
    ]
    print(
        f"Largest difference of any query's value, {given.seeds} random matrices of {given.images} images x "
        f"{5 * given.images} captions, several right ones each, grades 1 to 3\n"
    )
    columns = [("largest difference", ""), *((library, ".2g") for library in LIBRARIES)]
    rows = [
        [
            name,
            *(
                max(one[name][library] for one in every) if library in every[0][name] else None
                for library in LIBRARIES
            ),
        ]
        for name in METRICS
    ]
    print(numbers.table([library for library, _ in columns], numbers.shown(columns, rows)))
    numbers.keep("agreement", columns, rows)


if __name__ == "__main__":
    main()
