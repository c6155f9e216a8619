"""The machine and libraries that made a result, recorded beside it as `made_with` and never compared."""

from datetime import date
from importlib.metadata import version

from pipeline.compute import machine


def record() -> dict[str, str | int]:
    """Describe this process: torch, the processor, torch's threads, how products are computed (`products.Kind`)."""
    import torch  # takes seconds, which commands that compute nothing need not wait for

    from pipeline.compute import products

    return {"torch": torch.__version__, "processor": machine.processor(), "threads": torch.get_num_threads(),
            "products": products.current()}


def today() -> dict[str, str | int]:
    """Describe the day, this version and the machine, of results for which torch computes nothing."""
    return {"date": date.today().isoformat(), "pipeline": version("vse-pipeline"), "numpy": version("numpy"),
            "processor": machine.processor()}
