"""Examples of annotations, read and compared with what they say."""

from __future__ import annotations

from pathlib import Path

from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import Manifest, build
from pipeline.foundation.manifest.examples import Example


def read(
    example: Example, folder: Path, left_out: LeftOut | None = None
) -> tuple[Manifest, list[str]]:
    """The manifest of an example, and what is said while it is read."""
    example.write(folder)
    said: list[str] = []
    made = build(
        "mine",
        folder / example.images,
        folder / example.annotations,
        left_out=left_out,
        say=said.append,
    )
    return made, said


def rows(made: Manifest) -> list[tuple[str, str, str]]:
    return [*made.table[["file", "split", "caption"]].itertuples(index=False, name=None)]


def check(example: Example, folder: Path) -> Manifest:
    made, said = read(example, folder)
    assert rows(made) == example.rows
    assert made.left_out == example.left_out
    assert "read as " in said[0]
    assert example.said in "\n".join(said)
    assert all("\n" not in line for line in said)
    assert (made.images["bytes"] > 0).all()
    return made
