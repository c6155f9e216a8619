"""What a file is that is not readable as weights, and what to do with it."""

import zipfile
from contextlib import suppress
from pathlib import Path

from pipeline.foundation.files import archives, regular, unfetched
from pipeline.foundation.files.not_images import MARKUP

# First bytes -> what the file is, and what to do.
KINDS = {
    b"\x1f\x8b": "a gzip archive; unpack it",
    b"\x89HDF": "an HDF5 file, as Keras writes weights; save the model as safetensors",
    b"GGUF": "a GGUF file, whose numbers are quantised; take the model as safetensors",
    b"7z\xbc\xaf": "a 7z archive; unpack it",
    b"Rar!": "a RAR archive; unpack it",
}
# OpenAI's archives of CLIP by their file names -> the same weights as a model that is read.
OPENAI = {
    "ViT-B-32": "clip:openai/clip-vit-base-patch32",
    "ViT-B-16": "clip:openai/clip-vit-base-patch16",
    "ViT-L-14": "clip:openai/clip-vit-large-patch14",
    "ViT-L-14-336px": "clip:openai/clip-vit-large-patch14-336",
    "RN50": "timm/resnet50_clip.openai on the hub, in the format of OpenCLIP",
    "RN101": "timm/resnet101_clip.openai on the hub, in the format of OpenCLIP",
    "RN50x4": "timm/resnet50x4_clip.openai on the hub, in the format of OpenCLIP",
    "RN50x16": "timm/resnet50x16_clip.openai on the hub, in the format of OpenCLIP",
    "RN50x64": "timm/resnet50x64_clip.openai on the hub, in the format of OpenCLIP",
}


def named(path: Path) -> str:
    """Say what a file is that no reader of weights takes, and what to do; "" if that is unknown."""
    what = unfetched.named(path)
    if what:
        return what
    with regular.opened(path) as file:
        start = file.read(512)
    if not start.strip(b"\0"):
        return "empty, as an interrupted copy leaves it; copy the file again"
    if MARKUP.match(start):
        return "an HTML or XML page, such as a site's error message; fetch the file again"
    what = archives.named(path)
    if what:
        return what
    if start.startswith(b"PK\x03\x04"):
        return archive(path)
    if path.suffix != ".safetensors" and start[8:10] == b'{"':
        return "a file of safetensors; give it a name that ends with .safetensors"
    return next((what for first, what in KINDS.items() if start.startswith(first)), "")


def archive(path: Path) -> str:
    """Say what a zip archive is that torch did not write as weights; "" for one that it did."""
    with suppress(zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        with zipfile.ZipFile(path) as archive:
            held = {name.partition("/")[2] or name for name in archive.namelist()}
        if "constants.pkl" in held:
            same = OPENAI.get(path.stem)
            if same:
                return f"OpenAI's TorchScript archive, whose code is not run; the same weights are {same}"
            return (
                "a TorchScript archive, whose code is not run; of OpenAI's CLIP take "
                f"{OPENAI['ViT-B-32']}, of a network of your own save its state_dict()"
            )
        if "data.pkl" not in held:
            return "a zip archive; unpack it"
        if path.suffix == ".safetensors":
            return "a file of torch; give it a name that ends with .bin or .pt"
    return ""
