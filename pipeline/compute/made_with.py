"""The machine and libraries that made a result, recorded beside it as `made_with` and never compared."""

import sys
from datetime import date
from importlib.metadata import version

from pipeline.compute import machine


def record() -> dict[str, str | int]:
    """Describe this process: the processor; and if torch is loaded its version, threads and `products.Kind`."""
    made: dict[str, str | int] = {"processor": machine.processor()}
    if torch := sys.modules.get("torch"):
        from pipeline.compute import products

        made |= {"torch": torch.__version__, "threads": torch.get_num_threads(), "products": products.current()}
    return made


def today() -> dict[str, str | int]:
    """Describe the day, this version and the machine, of results for which torch computes nothing."""
    return {"date": date.today().isoformat(), "pipeline": version("vse-pipeline"), "numpy": version("numpy"),
            "processor": machine.processor()}
