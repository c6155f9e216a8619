"""What a file is that no decoder reads as an image, by its first bytes, and what to do with it."""

import re
from collections.abc import Container

from pipeline.foundation.files.unfetched import POINTERS
from pipeline.foundation.parts import extras

DAMAGED = "damaged, or of a rare kind: convert it to PNG if a viewer shows it"
# The first bytes of formats that are always read.
READ = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*", b"\0\0\0\x0cjP")

# Brands of ISO media files, behind "ftyp". A phone's HEIC has one of the first.
HEIC = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
AVIF = frozenset({b"avif", b"avis"})
RAW = "a camera's raw photograph; develop it to JPEG or PNG"
# First bytes -> what the file is, and what to do.
KINDS = {
    b"%PDF-": "a PDF document; export its pages as PNG",
    b"%!PS": "a PostScript drawing; export it as PNG",
    b"\xc5\xd0\xd3\xc6": "a PostScript drawing; export it as PNG",
    b"8BPS": "a Photoshop document; export it as PNG",
    b"\xff\x0a": "JPEG XL, which is not read; convert it to PNG with djxl",
    b"\0\0\0\x0cJXL ": "JPEG XL, which is not read; convert it to PNG with djxl",
    b"qoif": "QOI, which is not read; convert it to PNG",
    b"DDS ": "a texture (DDS); convert it to PNG",
    b"II\xbc": "JPEG XR, which is not read; convert it to PNG",
    b"FUJIFILMCCD-RAW": RAW,
    b"\xd7\xcd\xc6\x9a": "a Windows metafile; export it as PNG",
    b"PK\x03\x04": "a zip archive; unpack it",
    b"\x1f\x8b": "a gzip archive; unpack it",
    b"Rar!": "a RAR archive; unpack it",
    **POINTERS,
}
MARKUP = re.compile(rb"\s*(<\?xml|<!--|<!doctype|<html|<head|<svg)", re.IGNORECASE)


def named(content: bytes, decoders: Container[str]) -> str:
    """Say in one line what a file is that is not read as an image; decoders: which of "AVIF" and
    "HEIF" exist.
    """
    if content.startswith(READ):
        return DAMAGED
    for start, kind in KINDS.items():
        if content.startswith(start):
            return f"not an image but {kind}" if kind.startswith("a ") else kind
    if content[4:8] == b"ftyp":
        return _media(content[8:12], decoders)
    if MARKUP.match(content):
        if b"<svg" in content[:4096].lower():
            return "an SVG drawing, which has no pixels; export it as PNG"
        return "not an image but an HTML or XML page, such as a site's error message; fetch the image again"
    if not content.strip(b"\0"):
        return "not an image but zeros alone, as an interrupted copy leaves; copy the file again"
    return "not an image or of an unknown format"


def _media(brand: bytes, decoders: Container[str]) -> str:
    if (brand in HEIC and "HEIF" in decoders) or (brand in AVIF and "AVIF" in decoders):
        return DAMAGED
    if brand in HEIC:
        return f"HEIC, which needs a decoder: {extras.line('heic')}, or convert it to JPEG"
    if brand in AVIF:
        return "AVIF, which this Pillow does not decode: pip install 'pillow>=11.3'"
    if brand == b"crx ":
        return f"not an image but {RAW}"
    return "not an image but a video"
