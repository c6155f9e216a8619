"""detectron2 for these tests alone: `make setup` puts its Python part where nothing else looks."""

from __future__ import annotations

import sys
from pathlib import Path

# Last: an installed detectron2 goes first
sys.path.append(str(Path(sys.prefix) / "detectron2-tests"))
