"""Text in other encodings than UTF-8: one short line says what it is and how it is converted."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pipeline.foundation.evaluation.judgements.columns import QRELS
from pipeline.foundation.evaluation.judgements.rows import Rows
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import open_system

ROWS = "".join(f"é{query},ü{query},{query % 2}\n" for query in range(40))
TEXTS = {
    "matrix.csv": "id,é,ü\nß,1.5,2\nö,3.5,4\n",
    "run.csv": "query,candidate,score\n" + ROWS,
    "late.csv": "a,b\n" + "1,2\n" * 2000 + "é,2\n",
    "run.json": json.dumps({"é": {"ü": 1.0}}, ensure_ascii=False),
}
# An encoding of Python -> iconv's word for it.
OTHERS = {
    "cp1252": "WINDOWS-1252",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16LE",
    "utf-16-be": "UTF-16BE",
}


@pytest.mark.parametrize("encoding", OTHERS)
def test_text_that_is_not_utf_8_is_converted_first(encoding: str, tmp_path: Path) -> None:
    for name, text in TEXTS.items():
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        with pytest.raises(InputError) as refused:
            open_system(str(path))
        _is_right(str(refused.value), path, OTHERS[encoding], text)
    path = tmp_path / "qrels.csv"
    text = "query,candidate,relevance\n" + ROWS
    path.write_bytes(text.encode(encoding))
    with pytest.raises(InputError) as refused:
        next(Rows(path, QRELS).tables())
    _is_right(str(refused.value), path, OTHERS[encoding], text)


def _is_right(message: str, path: Path, encoding: str, text: str) -> None:
    """Whether a message is short, and the command that it names gives the text back."""
    command = f"iconv -f {encoding} -t UTF-8 {path}"
    assert f"`{command} > utf8{path.suffix}`" in message
    assert "codec" not in message
    assert len(message) < 150 + 2 * len(str(path))
    made = subprocess.run(command.split(), check=True, capture_output=True).stdout
    assert made.decode("utf-8-sig") == text
