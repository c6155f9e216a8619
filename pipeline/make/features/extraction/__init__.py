"""Extract a feature for every image of a manifest. A task is a shard, and a shard has one owner.

    request.py         the request, on which images and devices, compared with a finished store
                       without a network
    extraction_job.py  what is extracted, and the tasks it is split into
    worker.py          how a process runs tasks
    extract.py         prepares the store, hands out the tasks, writes the failures; or estimates
                       what that would take
    needs.py           what an extraction needs and this machine lacks, and what the presets cost

`pipeline.foundation.compute.tasks` says where tasks run; the resulting bytes are the same
everywhere.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.make.features.extraction import worker
    from pipeline.make.features.extraction.extract import Estimate, estimate, extract
    from pipeline.make.features.extraction.extraction_job import EngineSpec, ExtractionJob, Threads
    from pipeline.make.features.extraction.request import (
        CONTENT,
        ExtractRequest,
        Target,
        chosen_images,
        devices,
    )

lazy.imports(__name__)
