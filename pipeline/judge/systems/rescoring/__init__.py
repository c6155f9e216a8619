"""Rescorers compute new similarities from a system's. A new one is a file here and a line in
`RESCORERS`.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.settings import Run
    from pipeline.judge.systems.rescoring.bank import Rescorer

lazy.imports(__name__)

RESCORERS: "lazy.LookupTable[type[Rescorer]]" = lazy.LookupTable(
    {
        "csls": "pipeline.judge.systems.rescoring.corrections:CSLS",
        "inverted-softmax": "pipeline.judge.systems.rescoring.corrections:InvertedSoftmax",
        "qb-norm": "pipeline.judge.systems.rescoring.corrections:QBNorm",
        "dual-softmax": "pipeline.judge.systems.rescoring.corrections:DualSoftmax",
        "nnn": "pipeline.judge.systems.rescoring.corrections:NNN",
        "db-norm": "pipeline.judge.systems.rescoring.corrections:DBNorm",
    },
    "rescorers",
)
build = RESCORERS.build


def embedded_heads(run: "Run") -> list[str]:
    """The names of the heads whose vectors of the split train a run's rescorers read: those of its
    bank, no ablations.

    Raises:
        InputError: As `build` does.
    """
    from pipeline.foundation.settings.paths import heads

    banks = [build(step.name, **step.options).bank for step in run.rescorers]
    if "train" not in banks:
        return []
    return [name for name, (recipe, *_) in heads(run).items() if recipe in run.recipes]
