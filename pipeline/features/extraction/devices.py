"""The devices that an extraction runs on: one, or several of this machine with a worker each."""

from pipeline.parts.errors import InputError


def listed(asked: str) -> list[str]:
    """Read torch devices with commas between them, such as "cuda:0,cuda:1"; "cuda:*" for all of a kind."""
    found: list[str] = []
    for name in asked.split(","):
        kind, star, rest = name.strip().partition(":*")
        if not kind or rest:
            raise InputError(f"device {asked!r}: expected devices such as cpu, cuda:0,cuda:1 or cuda:*")
        found += _all(kind) if star else [kind]
    twice = [name for name in found if name != "cpu" and found.count(name) > 1]
    if twice:
        raise InputError(f"device {asked!r}: {twice[0]} stands there twice; a GPU has one worker")
    return found


def _all(kind: str) -> list[str]:
    import torch

    if kind == "cpu":
        raise InputError("device 'cpu:*': there is one CPU; --workers N starts several processes on it")
    try:
        count = torch.get_device_module(kind).device_count()
    except (RuntimeError, AttributeError):
        count = 0
    if not count:
        raise InputError(f"device '{kind}:*': none is available here; there is cpu")
    return [f"{kind}:{number}" for number in range(count)]
