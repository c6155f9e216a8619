"""A dual encoder that was trained on, as a class of dual encoders: `tuned:FOLDER`."""

from dataclasses import replace
from pathlib import Path

from pipeline.foundation.artefacts import Artefact
from pipeline.foundation.compute import made_with
from pipeline.foundation.files import atomic, parsing
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.make import dual_encoders
from pipeline.make.dual_encoders.base import DualEncoder, Usage, placed
from pipeline.make.dual_encoders.tuning.job import TuneRequest, identity
from pipeline.make.dual_encoders.tuning.network import TunedNetwork
from pipeline.make.training import checkpoint
from pipeline.make.training.artefact import BEST

# A folder in the tuned encoder's own, or a link, which is taken for the base's place.
BASE = "base"


class Tuned:
    """The base, with the weights of the best epoch."""

    @classmethod
    def load(cls, place: str, usage: Usage) -> DualEncoder:
        """Load the base, and the weights that were trained, see `DualEncoder.load`.

        The base is the folder `base` in the encoder's own if there is one, else the recorded place.
        The prompt is that of the training, unless the usage gives another.

        Raises:
            InputError: If there is no finished one, if it was edited, or if its base is missing or
                another one.
        """
        folder = Path(place)
        artefact = Artefact.open(folder, BEST)
        record = artefact.record
        if record.kind != TuneRequest.kind or not record.finished:
            raise InputError(
                f"{folder}: is {record.kind}, no finished {TuneRequest.kind}; `pipeline finetune` makes "
                "one, and resumes an interrupted one"
            )
        with refusing(
            (ValueError, KeyError, TypeError),
            f"{folder}: not a tuned encoder of this version; train it again",
        ):
            request = TuneRequest.model_validate(record.request)
            recorded_base = parsing.text(record.facts["base"]).partition(":")[2]
            base_identity = record.made_from["base"].identity
            trained_on = parsing.text(record.facts["trained_on"])
        if usage.prompt == "own":
            usage = replace(usage, prompt=request.prompt)
        base = str(folder / BASE) if (folder / BASE).exists() else recorded_base
        with refusing(
            InputError,
            lambda error: (
                f"{error}; {folder} needs the model that it was trained from, as the "
                f"folder or link {folder / BASE}"
            ),
        ):
            encoder = dual_encoders.DUAL_ENCODERS.find(request.encoder).load(base, usage)
        if identity(request.encoder, encoder) != base_identity:
            raise InputError(
                f"{base}: is not the model that {folder} was trained from; put that one at "
                f"{folder / BASE}"
            )
        network = TunedNetwork(encoder, request.tuning)
        file = folder / BEST
        checkpoint.fill(network, file, f"{file}: does not fit its record; train it again")
        network.weights.finish(encoder.network)
        placed(encoder.network, usage)
        encoder.files = {
            **{f"{BASE}/{name}": sha for name, sha in encoder.files.items()},
            BEST: record.contents[BEST],
        }
        encoder.weights_file = record.contents[BEST]
        encoder.trained_on = trained_on
        return encoder


def export(folder: Path, to: str, out: Path) -> str:
    """Write a tuned encoder as a whole model of its base's library, with adapters in the weights.

    Args:
        folder: The tuned encoder's folder.
        to: The library, which must be the base's: `DualEncoder.library`.
        out: The folder to write; an earlier export there is replaced.

    Returns:
        The prompt that it was trained with, which the library does not add to captions.

    Raises:
        InputError: If it cannot be opened, is of another library, or its format cannot hold it.
    """
    encoder = Tuned.load(str(folder), Usage())
    if to != encoder.library:
        raise InputError(f"{folder}: is a model of {encoder.library}; write --to {encoder.library}")
    with atomic.creating(out) as making:
        encoder.save(making)
        atomic.write_json(
            making / "export.json",
            {
                "library": to,
                "prompt": encoder.usage.text,
                **made_with.record(),
                "record": Artefact.open(folder).record.identity,
            },
        )
    return encoder.usage.text
