"""A JSON file of annotations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.manifest.reader import text_of


def json_of(path: Path) -> Any:
    """Read a JSON file.

    Args:
        path: The file.

    Returns:
        Its content.

    Raises:
        InputError: If it is missing, not JSON, or holds text that is not UTF-8.
    """
    text = text_of(path)
    try:
        tree = json.loads(text)
        json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # JSON can spell half of a surrogate pair
        raise InputError(f"{path}: holds text that is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {error}") from None
    return tree
