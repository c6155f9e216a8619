"""Tasks run in this process, in processes of this machine, or on a dask cluster, with the same bytes as result.

    executor.py   where tasks run: the interface, and this process
    cluster.py    dask workers: processes of this machine, or a running cluster
    kept.py       results of tasks in files, so that a run that was cut goes on
"""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.compute.workers import cluster
    from pipeline.compute.workers.executor import Executor, InProcess, Wanted
    from pipeline.compute.workers.kept import KeptPieces

lazy.offer(__name__)
