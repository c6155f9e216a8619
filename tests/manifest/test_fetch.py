"""Photographs by address: fetched only where asked, only from public places, and named where they
cannot be had.
"""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import build, fetch
from pipeline.foundation.parts.errors import InputError


def jpeg() -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (8, 8)).save(stream, "JPEG")
    return stream.getvalue()


class Site(BaseHTTPRequestHandler):
    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.seen.append(self.path)
        if self.path == "/moved.jpg":
            self.send_response(302)
            self.send_header("Location", "/a.jpg")
        elif self.path == "/away.jpg":
            self.send_response(302)
            self.send_header("Location", "file:///etc/passwd")
        else:
            self.send_response(404 if self.path == "/lost.jpg" else 200)
        if self.path == "/short.jpg":
            self.send_header("Content-Length", str(2 * len(jpeg())))
        self.end_headers()
        if self.path == "/slow.jpg":
            for byte in jpeg():
                self.wfile.write(bytes([byte]))
                time.sleep(0.01)
        elif self.path in ("/a.jpg", "/large.jpg", "/short.jpg"):
            self.wfile.write(jpeg() * (100 if self.path == "/large.jpg" else 1))

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Site)
    Site.seen.clear()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def annotations(folder: Path, *addresses: str) -> Path:
    path = folder / "urls.parquet"
    parquet.write_table(
        pa.table(
            {"url": list(addresses), "caption": [f"caption {i}" for i in range(len(addresses))]}
        ),
        path,
    )
    return path


@pytest.mark.slow
def test_nothing_is_fetched_unasked(site: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"given by address only.*download them with --fetch"):
        build("web", tmp_path, annotations(tmp_path, f"{site}/a.jpg"))
    assert Site.seen == []


@pytest.mark.slow
def test_nothing_is_fetched_from_this_machine_or_network(site: str, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"could fetch none of 1 image.*127\.0\.0\.1 is not a public address"
    ):
        build("web", tmp_path, annotations(tmp_path, f"{site}/a.jpg"), fetching=fetch.Fetching())
    assert Site.seen == []


@pytest.mark.specification
@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("::ffff:127.0.0.1", False),
        ("192.168.0.1", False),
        ("2606:2800:220:1::1", True),
        ("64:ff9b::169.254.169.254", False),
        ("64:ff9b::93.184.216.34", True),
        ("2002:7f00:1::", False),
        ("::127.0.0.1", False),
        ("224.0.0.1", False),
    ],
)
def test_public_addresses(address: str, public: bool) -> None:
    assert fetch.is_public(address) == public


@pytest.mark.slow
def test_photographs_become_files_and_lost_ones_are_named(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "is_public", lambda address: True)
    monkeypatch.setattr(fetch, "LARGEST", 10 * len(jpeg()))
    images = tmp_path / "images"
    images.mkdir()
    file = annotations(
        tmp_path, *(f"{site}/{name}.jpg" for name in ("a", "moved", "lost", "away", "large"))
    )
    left_out = LeftOut()
    made = build("web", images, file, fetching=fetch.Fetching(), left_out=left_out)
    assert made.left_out == {"not fetched": 3}
    left_out.save(tmp_path / "left_out.csv")
    assert re.search(
        r"not fetched,\S+/lost\.jpg \(HTTPError", (tmp_path / "left_out.csv").read_text()
    )
    assert made.table["caption"].tolist() == ["caption 0", "caption 1"]
    assert [(images / name).read_bytes() for name in made.images["file"]] == [jpeg()] * 2
    assert made.images["bytes"].tolist() == [len(jpeg())] * 2
    Site.seen.clear()
    assert build("web", images, file, fetching=fetch.Fetching()).digest == made.digest
    assert "/a.jpg" not in Site.seen  # what is there is not fetched again


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("{site}/short.jpg", r"ends \d+ bytes early"),
        ("{site}/slow.jpg", "takes longer than 0 s"),
        ("http://[bad/x.jpg", "Invalid IPv6 URL"),
        ("http://user:secret@/x.jpg", "InvalidURL|no host given|port"),
    ],
)
def test_no_part_of_a_photograph_is_taken_for_it(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, said: str
) -> None:
    monkeypatch.setattr(fetch, "is_public", lambda there: True)
    monkeypatch.setattr(fetch, "WHOLE", 0.2 if "slow" in address else fetch.WHOLE)
    with pytest.raises(InputError, match=f"could fetch none of 1 image.*({said})"):
        build(
            "web",
            tmp_path,
            annotations(tmp_path, address.format(site=site)),
            fetching=fetch.Fetching(),
        )
    assert [file.name for file in tmp_path.iterdir()] == ["urls.parquet"]


def test_names_of_files_are_paths_below_the_folder(tmp_path: Path) -> None:
    (tmp_path / "b.jpg").write_bytes(jpeg())
    assert build("web", tmp_path, annotations(tmp_path, "b.jpg")).images["file"].tolist() == [
        "b.jpg"
    ]
    for other in ("../b.jpg", "/etc/passwd", "file:///etc/passwd"):
        with pytest.raises(
            InputError, match=r"leaves the image folder|write the path|no such image"
        ):
            build("web", tmp_path, annotations(tmp_path, other))
