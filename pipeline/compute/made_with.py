"""The machine and libraries that made a result, recorded beside it as `made_with` and never compared."""

from pipeline.compute import machine


def record() -> dict[str, str | int]:
    """Describe the machine as this process uses it now.

    Returns:
        torch: its version. processor: the CPU's model name. threads: how many torch uses. products: how float32
        matrices are multiplied (`products.Kind`).
    """
    import torch  # takes seconds, which commands that compute nothing need not wait for

    from pipeline.compute import products

    return {"torch": torch.__version__, "processor": machine.processor(), "threads": torch.get_num_threads(),
            "products": products.current()}
