"""Numbers in the forms that catalogues of evaluations read, such as the head of a model card.

A form is a subclass of `Catalogue`, in a file of an extension, and a line in its `EXTENSION`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipeline.foundation.parts.errors import InputError, unknown
from pipeline.foundation.parts.lazy import LookupTable

if TYPE_CHECKING:
    from pipeline.judge.tables.evaluated import Results


class Catalogue(ABC):
    """A form of numbers.

    What it asks for and scores do not say, such as the name of a model, are its options, see
    `LookupTable.options`: texts, each with a description where it is needed.
    """

    @abstractmethod
    def text(self, results: Results) -> str:
        """Write numbers in this form.

        Args:
            results: Systems and their numbers by each protocol.

        Returns:
            The text of the file that the catalogue reads.

        Raises:
            InputError: For numbers that it cannot hold, such as those of several models.
        """


CATALOGUES: LookupTable[type[Catalogue]] = LookupTable(
    {},
    "catalogues",
    base="pipeline.judge.tables.catalogues:Catalogue",
)


def of_form(form: str, about: Mapping[str, str]) -> Catalogue:
    """A form by its name, with what the user says of the numbers; a key that it does not know or
    that is missing is refused.
    """
    asked = CATALOGUES.declared(form).model_fields
    for key in about:
        if key not in asked:
            raise unknown(f"key in --about of --export {form},", key, asked)
    missing = []
    for key, field in asked.items():
        if field.is_required() and key not in about:
            missing.append(f"--about {key}=… ({field.description})")
    if missing:
        raise InputError(f"--export {form} needs what scores do not say; give {', '.join(missing)}")
    return CATALOGUES.build(form, **about)
