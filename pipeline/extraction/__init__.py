"""Extract a feature for every image of a manifest: a task is a shard, and a shard has one owner.

    request.py   what is asked for, told without loading a network: is it done?
    job.py       what is to be extracted, and the tasks it is cut into
    worker.py    how a process does tasks
    cluster.py   dask workers: processes of this machine, or a running cluster
    extract.py   the store prepared, the tasks handed out, the failures written
    estimate.py  what an extraction would take

In this process, in local worker processes, or on a running dask cluster: the tasks are the same, so are the bytes.
"""

from typing import TYPE_CHECKING

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.extraction import cluster
    from pipeline.extraction.estimate import Estimate, estimate
    from pipeline.extraction.extract import Here, Outcome, Place, extract
    from pipeline.extraction.job import Engine, Job, OnImages, Task
    from pipeline.extraction.request import Request

__all__ = ["Engine", "Estimate", "Here", "Job", "OnImages", "Outcome", "Place", "Request", "Task", "cluster",
           "estimate", "extract"]

lazy.offer(__name__)
