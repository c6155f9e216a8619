"""The papers' figures. A new figure is a function that draws one, in a file here, and a line in
`FIGURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy
from pipeline.judge.tables import markdown

if TYPE_CHECKING:
    from pipeline.judge.figures.drawing import Drawing, Font, save
    from pipeline.run.report.figures.inputs import FigureInputs, MissingInputs

lazy.imports(__name__)

FIGURES: lazy.LookupTable[Callable[[FigureInputs], Drawing]] = lazy.LookupTable(
    {
        "training_curve": "pipeline.run.report.figures.vse2ad:draw_training_curve",
        "negatives": "pipeline.run.report.figures.vse2ad:draw_negatives",
        "pooling_coefficients": "pipeline.run.report.figures.vse_infty:draw_pooling_coefficients",
        "kmax_grid": "pipeline.run.report.figures.vse_infty:draw_kmax_grid",
        "retrieval_time": "pipeline.run.report.figures.vse_infty:draw_retrieval_time",
        "training_images": "pipeline.run.report.figures.rerank:draw_training_images",
        "half_size": "pipeline.run.report.figures.rerank:draw_half_size",
        "retrieved_images": "pipeline.run.report.figures.retrieved:draw_images",
        "retrieved_captions": "pipeline.run.report.figures.retrieved:draw_captions",
    },
    "figures",
)


def draw(name: str, inputs: FigureInputs, font: Font = "sans") -> Drawing:
    """Draw a figure from heads, scores and timings, as far as its inputs have them.

    name: A key of `FIGURES`. font: with or without serifs.

    Raises:
        InputError: If there is no such figure.
        MissingInputs: If its inputs are missing.
    """
    drawn = FIGURES.find(name)
    from pipeline.judge.figures.drawing import finished, paper_style  # and with it matplotlib
    from pipeline.run.report.figures.inputs import naming_stand_ins

    with paper_style(font):
        return finished(naming_stand_ins(drawn(inputs)))


def section(name: str, drawing: Drawing) -> str:
    """The Markdown of the drawing of this name, for a file beside its files: heading, picture,
    caption and links.
    """
    caption = markdown.escape(drawing.caption)
    files = f"[PDF]({name}.pdf), [SVG]({name}.svg), [numbers]({name}.csv)"
    return f"## {name}\n\n![{name}]({name}.png)\n\n{caption}\n\n{files}\n"


def index(sections: Iterable[str], missing: Mapping[str, str]) -> str:
    """The Markdown page of all figures' sections; missing: figure that was left out -> what it
    needs.
    """
    figure_sections = ["# Figures\n", *sections]
    if missing:
        figure_sections.append("## Left out\n")
        for figure, needed_inputs in missing.items():
            figure_sections.append(
                f"- {markdown.escape(figure)}: needs {markdown.escape(needed_inputs)}"
            )
        figure_sections.append("")
    return "\n".join(figure_sections)
