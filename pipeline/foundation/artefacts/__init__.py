"""Artefacts: what a command made, with the record of its request, its inputs, the code and the
bytes.

A manifest, a feature store, a head, a system and a file of results are artefacts. Each has one
`Record`, and one rule is for all: `Artefact.outdated` compares it with a request without reading
its data, `Artefact.verify` compares its bytes with their digests, and `making` writes it.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.artefacts import record
    from pipeline.foundation.artefacts.artefact import Artefact, Outdated
    from pipeline.foundation.artefacts.code import Versions, named, version, versions
    from pipeline.foundation.artefacts.making import (
        Draft,
        drafting,
        is_kept,
        is_up_to_date,
        made_today,
        making,
        record_files,
        refusal,
        refuse_foreign,
    )
    from pipeline.foundation.artefacts.record import Record, Reference
    from pipeline.foundation.artefacts.request import Request

lazy.imports(__name__)
