"""The description that a package registry shows: the README, without what only a clone can show."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LOCAL = r"\]\((?!https?:|#)[^)]*\)"


class Description(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_local_files(readme)}


def without_local_files(markdown: str) -> str:
    """Drop the paragraphs and tables of pictures that are files of the clone; leave of links to its
    files their text.

    A registry has no such files: the pictures would be broken and the links lead nowhere.
    """
    blocks = [
        block
        for block in re.split(r"\n\n(?=\S)", markdown)
        if not re.search(rf"!\[[^\]]*{LOCAL}", block)
    ]
    return re.sub(rf"(?<!!)\[([^\]]+){LOCAL}", r"\1", "\n\n".join(blocks))
