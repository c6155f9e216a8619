"""What stands for a file that was not fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 9000\n"
LFS = "is a pointer of Git LFS; fetch the file itself with git lfs pull"
ANNEX = "is a link of git-annex to a file that is not here; fetch it with git annex get"


def pointed(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.write_text(POINTER)


def linked(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.symlink_to(f"../.git/annex/objects/x/{file.name}")


STAND_INS = [pytest.param(pointed, LFS, id="lfs"), pytest.param(linked, ANNEX, id="annex")]
