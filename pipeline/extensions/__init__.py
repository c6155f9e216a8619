"""What the core does without, a folder each: parts and commands as another package could add them.

An extension's folder holds its code, its options and its commands; its `__init__.py` says what it
adds, as an `Extension`; its tests are in the folder of its name in `tests/extensions`. Its
`defaults.yaml` completes the settings that ship, its `examples.yaml` those of annotations. It may
import all of `pipeline` and `stages`; nothing outside it imports it. To remove one, delete both
folders, its line here, and what names its files in ARCHITECTURE.md and CONTRIBUTING.md.
"""

EXTENSIONS = (
    "audit",  # docs/evaluation.md
    "board",  # docs/board.md
    "catalogues",  # docs/paper.md
    "claims",  # docs/heads.md
    "detector",  # docs/detectors.md
    "exporters",  # docs/heads.md
    "hard_negatives",  # docs/hard-negatives.md
    "hgr",  # docs/video.md
    "importers",  # docs/features.md
    "leaderboards",  # docs/leaderboards.md
    "mteb",  # docs/mteb.md
    "naflex",  # docs/features.md
    "noise",  # docs/noise.md
    "open_clip",  # docs/clip.md
    "sentence_transformers",  # docs/clip.md
    "webdataset",  # docs/own-data.md
)
