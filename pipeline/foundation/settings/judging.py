"""The sections of the settings that the judge reads, and how they are read without the others."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator

from pipeline.foundation.files.left_out import SHARE
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.parts.section import Section
from pipeline.foundation.settings import written
from pipeline.foundation.settings.section import Count, Name, Share


class Manifest(Section):
    """What a reader of annotations may leave out. See `pipeline.foundation.files.left_out`."""

    left_out: Share = SHARE
    on_error: Literal["fail", "skip"] = "skip"


class Score(Section):
    """The split that is scored."""

    split: Literal["val", "test"]
    batch_size: Count


def _known_metrics(names: list[str]) -> list[str]:
    from pipeline.foundation.evaluation.metrics import parse_all

    with refusing(InputError, str, ValueError):
        return [str(metric) for metric in parse_all(names)]


class Evaluate(Section):
    """Metrics, relevance judgements and intervals. Also how much memory ranking may use."""

    metrics: Annotated[list[str], AfterValidator(_known_metrics)] = Field(default_factory=list)
    qrels: str | None = None
    same_text: Literal["positive"] | None = None
    cxc: str | None = None
    resamples: Count
    seed: Annotated[int, Field(ge=0)]
    block_megabytes: Annotated[float, Field(gt=0)]
    ALWAYS_RECORDED = frozenset({"metrics", "qrels", "same_text", "cxc"})

    @model_validator(mode="after")
    def _one_truth(self) -> Self:
        if self.qrels and self.same_text:
            raise ValueError("qrels and same_text both say which candidates are positives; set one")
        return self


class Typesetting(Section):
    """The page that tables and figures go into. In cm: one column, both with the gap between them,
    and the height.
    """

    column_width: Annotated[float, Field(ge=4, le=30)] = 7.7
    text_width: Annotated[float, Field(ge=4, le=60)] = 16.0
    text_height: Annotated[float, Field(ge=4, le=80)] = 22.5
    table_style: Literal["booktabs", "plain"] = "booktabs"
    table_rows: Literal["all", "published", "measured"] = "all"
    table_metrics: list[str] = Field(default_factory=list)
    figure_font: Literal["sans", "serif"] = "sans"
    ALWAYS_RECORDED = frozenset(
        {
            "column_width",
            "text_width",
            "text_height",
            "table_style",
            "table_rows",
            "table_metrics",
            "figure_font",
        }
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.column_width > self.text_width:
            raise ValueError(
                f"column_width {self.column_width} is wider than text_width {self.text_width}"
            )
        return self


class RunOfData(Section):
    """What the judge reads of the section `run`."""

    model_config = ConfigDict(extra="ignore")
    dataset: Name


class JudgeSettings(Section):
    """The settings that measure files of scores."""

    run: RunOfData
    manifest: Manifest
    score: Score
    evaluate: Evaluate
    typesetting: Typesetting


def load_for_judging(path: Path) -> JudgeSettings | None:
    """Read the judge's sections of a settings file.

    Args:
        path: The file.

    Returns:
        They alone. None where one of them has a fault, or the file a section of an unknown name:
        `load` checks all sections, and says what is wrong.
    """
    shipped = written.shipped()
    given_sections = written.sections_of(path)
    if not given_sections.keys() <= shipped.keys() | written.BESIDE:
        return None
    sections = {}
    for section_name in JudgeSettings.model_fields:
        section = given_sections.get(section_name)
        if section is None:
            section = {}
        if not isinstance(section, Mapping):
            return None
        sections[section_name] = {**shipped.get(section_name, {}), **section}
    try:
        return JudgeSettings.model_validate(from_json(json.dumps(sections)))
    except (ValidationError, InputError):
        return None
