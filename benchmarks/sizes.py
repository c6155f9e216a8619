"""Hours and gigabytes for data sets of several sizes, on paper: from rates in docs/measured.md,
and from assumptions where nothing was measured. docs/clusters.md holds what it prints.

    python -m benchmarks.sizes
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import numbers
from benchmarks.numbers import table

SIZES = {
    "Flickr30K": (31_014, 29_000),
    "COCO": (123_287, 113_287),
    "1 M": (10**6, 10**6),
    "10 M": (10**7, 10**7),
    "100 M": (10**8, 10**8),
}
"""Photographs, and those of them that heads are trained on."""
CAPTIONS, EPOCHS, BATCH, SHARD, GPUS, WORKERS, CORES = 5, 25, 128, 128, 8, 64, 8
"""Captions an image; of a training as the papers' on COCO; images a shard; devices; one core each;
and for each GPU."""
REGIONS, PATCHES = 36 * 2048 * 2, 197 * 768 * 2  # bytes an image in float16


@dataclass(frozen=True)
class Rate:
    """A number that the tables rest on.

    source: The section of docs/measured.md that has the number, in the words of `quote`; without a
        quote, why the number is assumed.
    """

    what: str
    value: float
    unit: str
    source: str
    quote: str = ""


JPEG = Rate("a photograph of 640 × 480 px", 62, "kB", "measured.md#extraction", "62 kB")
((_DECODE, _RESIZE, _, _WRITE),) = (
    steps
    for feature, backend, *steps, _ in numbers.read(numbers.FILES / "extraction_parts.json")["rows"]
    if (feature, backend) == ("patch, ViT-Tiny at 224 px", "openvino")
)
DECODING = Rate(
    "patches beside the network: decode, resize, write, one core",
    (_DECODE + _RESIZE + _WRITE) / 1000,
    "s an image",
    "measured.md#extraction",
    "| patch, ViT-Tiny at 224 px | openvino |",
)
PATCHES_CORE = Rate(
    "all of an extraction of patches of ViT-B/16 by OpenVINO, one core",
    0.19,
    "s an image",
    "measured.md#extraction",
    "| ViT-B/16, 224 px | 190 ms |",
)
PATCHES_GPU = Rate(
    "patches of ViT-B/16, a GPU",
    1 / 1572,
    "s an image",
    "assumed: what timm reports for an RTX 3090 in half precision, the network alone "
    "(results/benchmark-infer-amp-nhwc-pt240-cu124-rtx3090.csv)",
)
REGIONS_CORE = Rate(
    "regions of BUTD, one core: to res4 by OpenVINO, res5 for 300 boxes by torch",
    10.7,
    "s an image",
    "measured.md#extraction",
    "takes torch some 10 s",
)
REGIONS_GPU = Rate(
    "regions of BUTD, a GPU",
    0.139,
    "s an image",
    "assumed: what detectron2's MODEL_ZOO.md reports for "
    "Faster R-CNN R101-C4 on a V100, one photograph at a time",
)
STEP_CORES = Rate(
    "a training step of 128 regions, two cores, float32",
    0.54,
    "s",
    "measured.md#speed",
    "| 2048 → 1024 | 540 |",
)
STEP_GPU = Rate(
    "a training step of 128 regions, a GPU",
    0.014,
    "s",
    "assumed: its 125 GFLOP at a quarter of the 35.6 "
    "TFLOP/s in float32 that NVIDIA states for an RTX 3090",
)
_SLOPES = numbers.read(numbers.FILES / "slopes.json")["rows"]
LIBRARIES = 450  # MB of a step's memory
_STEPS = [
    row
    for row in _SLOPES
    if row[0]
    in (
        "manifest: write",
        "manifest: read, digests",
        "plan of an extraction, and its tasks",
        "store: open, content of all images",
    )
]
*_, _SECONDS, _SLOPE, _MEGABYTES = zip(*_STEPS, strict=True)  # of a million images
BOOKS = Rate(
    "manifest, plan of an extraction and opening of a store, one core",
    round(sum(_SECONDS), 1),
    "s a million images",
    "measured.md#how-work-grows-with-the-number-of-images",
    "| store: open, content of all images |",
)
MEMORY = Rate(
    f"the most that one of these steps holds beside {LIBRARIES} MB of imported libraries",
    round((max(_MEGABYTES) - LIBRARIES) / 1000, 2),
    "kB an image",
    "measured.md#how-work-grows-with-the-number-of-images",
    "450 MB are imported",
)
RATES = (
    JPEG,
    DECODING,
    PATCHES_CORE,
    PATCHES_GPU,
    REGIONS_CORE,
    REGIONS_GPU,
    STEP_CORES,
    STEP_GPU,
    BOOKS,
    MEMORY,
)


def number(value: float) -> str:
    """Two digits at least."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}" if value >= 0.01 else "< 0.01"


def extraction() -> str:
    """Disk, and hours of an extraction of regions and of patches."""
    patches = max(PATCHES_GPU.value, DECODING.value / CORES)
    head = (
        "photographs",
        "JPEG, GB",
        "regions, GB",
        "a GPU, h",
        f"{GPUS} GPUs",
        f"{WORKERS} workers",
        "patches, GB",
        "a GPU, h",
        f"{GPUS} GPUs",
        f"{WORKERS} workers",
    )
    ways = [
        (REGIONS, REGIONS_GPU.value, REGIONS_CORE.value),
        (PATCHES, patches, PATCHES_CORE.value),
    ]
    return table(
        head,
        (
            [
                name,
                number(images * JPEG.value / 1e6),
                *(
                    number(value)
                    for stored, gpu, core in ways
                    for value in (
                        images * stored / 1e9,
                        *(images * each / 3600 for each in (gpu, gpu / GPUS, core / WORKERS)),
                    )
                ),
            ]
            for name, (images, _) in SIZES.items()
        ),
    )


def training() -> str:
    """Hours of a head, what a lost process costs at most, and the bookkeeping before it."""
    head = (
        "photographs",
        "steps",
        "two cores, h",
        "a GPU, h",
        f"{GPUS} GPUs, at best",
        "an epoch on a GPU, h",
        "manifest, plan, open, CPU-min",
        "their memory, GB",
        "files of a store",
    )
    rows = []
    for name, (images, trained) in SIZES.items():
        steps = trained * CAPTIONS * EPOCHS / BATCH
        hours = [
            steps * each / 3600
            for each in (
                STEP_CORES.value,
                STEP_GPU.value,
                STEP_GPU.value / GPUS,
                STEP_GPU.value / EPOCHS,
            )
        ]
        rows.append(
            [
                name,
                f"{steps:,.0f}",
                *map(number, hours),
                number(images * BOOKS.value / 60e6),
                number(images * MEMORY.value / 1e6),
                f"{images / SHARD * 6:,.0f}",
            ]
        )
    return table(head, rows)


def flows() -> str:
    """What disks must write and read, and what a lost worker costs of an extraction."""
    ways = (
        ("regions", REGIONS, REGIONS_GPU.value, REGIONS_CORE.value),
        ("patches", PATCHES, PATCHES_GPU.value, PATCHES_CORE.value),
    )
    head = (
        "",
        f"{GPUS} GPUs write, MB/s",
        "training on a GPU reads at most, MB/s",
        "a shard takes a GPU, s",
        "a core, s",
    )
    return table(
        head,
        (
            [
                name,
                *map(
                    number,
                    (
                        GPUS * stored / gpu / 1e6,
                        BATCH * stored / STEP_GPU.value / 1e6,
                        SHARD * gpu,
                        SHARD * core,
                    ),
                ),
            ]
            for name, stored, gpu, core in ways
        ),
    )


def memory() -> str:
    """Steps that hold more than 50 GB at 100 M photographs."""
    gigabytes = {step: (megabytes - LIBRARIES) / 10 for step, *_, megabytes in _SLOPES}
    return table(
        ("step at 100 M photographs", "memory, GB"),
        ([step, number(each)] for step, each in gigabytes.items() if each > 50),
    )


def rates() -> str:
    """What the tables rest on."""
    origin = {
        rate: f"[measured]({rate.source})" if rate.quote else f"**{rate.source}**" for rate in RATES
    }
    return table(
        ("rate", "", "from"),
        ([rate.what, f"{rate.value:.3g} {rate.unit}", origin[rate]] for rate in RATES),
        text=3,
    )


def page() -> str:
    """All tables, as docs/clusters.md has them."""
    return "\n\n".join((extraction(), training(), flows(), rates(), memory()))


if __name__ == "__main__":
    print(page())
