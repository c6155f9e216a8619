"""What catalogues ask for and scores do not say, see `pipeline.judge.tables.catalogues`."""

import re
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pipeline.foundation.parts.wrapping import printable
from pipeline.foundation.settings import Section


def _named(text: str) -> str:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", text):
        raise ValueError("expected OWNER/NAME, as on Hugging Face")
    return text


def _address(text: str) -> str:
    if not re.fullmatch(r"https?://\S+", text):
        raise ValueError("expected an address, https://…")
    return printable(text)


def _day(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            "expected a day or time as in 2026-11-29 or 2026-11-29T10:30:00Z"
        ) from None
    return printable(text)


Plain = Annotated[str, AfterValidator(printable)]
Named = Annotated[str, AfterValidator(_named)]
Address = Annotated[str, AfterValidator(_address)]
Day = Annotated[str, AfterValidator(_day)]


class ModelIndexOptions(Section):
    """The data set, by its name on Hugging Face; without it by that of the manifest."""

    dataset: Named = ""


class EvalResultsOptions(Section):
    """One number of a benchmark, and where its evaluation can be read."""

    dataset: Annotated[Named, Field(description="OWNER/NAME of the benchmark on Hugging Face")]
    task_id: Annotated[Plain, Field(description="a task of the benchmark's eval.yaml")]
    metric: Annotated[Plain, Field(description="the number that is its score, such as t2i_R@1")]
    revision: Plain = ""  # the commit of the benchmark's data
    date: Day = ""  # of the evaluation
    url: Address = ""
    source: Plain = ""  # how the address is shown
    user: Plain = ""  # on Hugging Face, of who evaluated
    organisation: Plain = ""  # the same

    @model_validator(mode="after")
    def _links_its_source(self) -> Self:
        if not self.url and (self.source or self.user or self.organisation):
            raise ValueError(
                "source, user and organisation are shown with an address; give --about url=https://… too"
            )
        return self


class EveryEvalEverOptions(Section):
    """The model, and who evaluated it."""

    model: Annotated[Named, Field(description="OWNER/NAME of the model")]
    organisation: Annotated[Plain, Field(description="who evaluated it")]
    relationship: Annotated[
        Literal["first_party", "third_party", "collaborative", "other"],
        Field(
            description="to the model's developer: first_party, third_party, collaborative or other"
        ),
    ]
    developer: Plain = ""  # of the model
    url: Address = ""  # of the organisation
    dataset: Named = ""  # on Hugging Face
    date: Day = ""  # of the evaluation
    deployment: Literal["self_deployed", "externally_managed", "unknown"] = "unknown"
    availability: Literal["open_weights", "closed_weights", "unknown"] = "unknown"
