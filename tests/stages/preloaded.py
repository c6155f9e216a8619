"""`pipeline` for tests that run it dozens of times: every command is forked from one process that has imported torch.

A command has its own process, arguments, folder, environment and streams, but not the seconds of its imports.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLIENT = """#!{python} -SE
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(asked).to_bytes(8, "big")], [0, 1, 2])
server.sendall(asked)
sys.exit(int(server.makefile().read() or 1))
"""


@contextmanager
def commands(folder: Path) -> Iterator[Path]:
    """Yields a folder for PATH with a `pipeline` in it."""
    address = folder / "socket"
    client = folder / "bin" / "pipeline"
    client.parent.mkdir()
    client.write_text(CLIENT.format(python=sys.executable, address=str(address)), encoding="utf-8")
    client.chmod(0o755)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    with subprocess.Popen([sys.executable, __file__, str(address)], env=environment) as server:
        while not address.exists():
            assert server.poll() is None
            time.sleep(0.05)
        yield client.parent
        server.terminate()


def serve(address: str) -> None:
    import matplotlib.figure
    import pandas
    import pyarrow.parquet
    import timm
    import torch
    import zarr

    assert all((matplotlib, pandas, pyarrow, timm, torch, zarr))
    parent = os.getppid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    listening.settimeout(5)
    while os.getppid() == parent:
        try:
            asking, _ = listening.accept()
        except TimeoutError:
            continue
        if os.fork() == 0:
            listening.close()
            answer(asking)
        asking.close()


def answer(asking: socket.socket) -> None:
    """Run one command in a process of its own, and send its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, streams, _, _ = socket.recv_fds(asking, 8, 3)
    with asking.makefile("rb") as stream:
        arguments, folder, environment = json.loads(stream.read(int.from_bytes(length, "big")))
    command = os.fork()
    if command:
        _, status = os.waitpid(command, 0)
        asking.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    for number, stream_of_command in enumerate(streams):
        os.dup2(stream_of_command, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["pipeline", *arguments]
    from stages import cli

    cli.main()


if __name__ == "__main__":
    serve(sys.argv[1])
