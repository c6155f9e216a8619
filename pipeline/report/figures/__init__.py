"""One file a figure. A new figure is a new file with a `draw`, and a line in `FIGURES`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pipeline.errors import InputError
from pipeline.report import markdown
from pipeline.report.figures import (
    kmax_grid,
    negatives,
    pooling_coefficients,
    retrieval_time,
    retrieved_captions,
    retrieved_images,
    training_curve,
)
from pipeline.report.figures.drawing import Drawing, Lacking, count_unshown, look, save
from pipeline.report.figures.evidence import Evidence

__all__ = ["FIGURES", "Drawing", "Evidence", "Lacking", "draw", "index", "save", "section"]

FIGURES: dict[str, Callable[[Evidence], Drawing]] = {
    "training_curve": training_curve.draw,
    "negatives": negatives.draw,
    "pooling_coefficients": pooling_coefficients.draw,
    "kmax_grid": kmax_grid.draw,
    "retrieval_time": retrieval_time.draw,
    "retrieved_images": retrieved_images.draw,
    "retrieved_captions": retrieved_captions.draw,
}


def draw(name: str, evidence: Evidence) -> Drawing:
    """The figure `name`.

    Raises InputError for an unknown name, Lacking where its inputs are not there.
    """
    if name not in FIGURES:
        raise InputError(f"there is no figure {name!r}; choose from {', '.join(FIGURES)}")
    with look():
        return count_unshown(FIGURES[name](evidence))


def section(name: str, drawing: Drawing) -> str:
    """A figure in Markdown: NAME.md, beside its files."""
    return (f"## {name}\n\n![{name}]({name}.png)\n\n{markdown.escape(drawing.caption)}\n\n"
            f"[PDF]({name}.pdf), [SVG]({name}.svg), [numbers]({name}.csv)\n")


def index(sections: Iterable[str], lacking: Mapping[str, str]) -> str:
    """A Markdown page of figures, and of what others lack."""
    left_out = [f"- {markdown.escape(name)}: needs {markdown.escape(lack)}" for name, lack in lacking.items()]
    return "\n".join(["# Figures\n", *sections, *(["## Left out\n", *left_out, ""] if left_out else [])])
