"""Reading and writing bytes: images, clips, weights, untrusted pickles, digests, records,
results.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.files import (
        archives,
        expansion,
        image_names,
        npz,
        restricted_pickle,
        torch_save,
    )

lazy.imports(__name__)
