"""`pipeline`, `dvc` and multiprocessing's forkserver for tests, each forked from one process that
has imported all.

A command has its own process, arguments, folder, environment and streams, but not the seconds of
its imports, unless PYTHONPATH names other code. Python in the variable BEFORE runs before the
command, in its process: to kill it at a certain moment, for instance.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import NoReturn
from unittest import mock

FORKSERVER = "forkserver"
CLIENT = """#!{python} -SE
import json, os, socket, sys, time
last = time.monotonic() + {longest}
while not os.path.exists({address!r}):
    os.kill({server}, 0)  # fails when the process that imports all has died
    if time.monotonic() > last:
        sys.exit("waited {longest:.0f} s for the process that commands are forked from")
    time.sleep(0.01)
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
streams = [0, 1, 2, *map(int, {more})]
asked = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(asked).to_bytes(8, "big")], streams)
server.sendall(asked)
code = int(server.makefile().read() or 1)
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


class Commands:
    """Runs `pipeline` and `dvc`.

    folder: For PATH, where both are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, *words: object, cwd: Path | None = None, code: int | None = 0, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one in a folder, with these variables besides; it must end with the code, None for
        any.
        """
        path = os.pathsep.join(
            (str(self.folder), str(Path(sys.executable).parent), os.environ["PATH"])
        )
        name, *arguments = map(str, words)
        ran = subprocess.run(
            [self.folder / name, *arguments],
            cwd=cwd,
            text=True,
            capture_output=True,
            timeout=600,
            env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **environment},
        )
        assert code in (ran.returncode, None), (
            f"{ran.returncode}: {ran.stdout[-3000:]}{ran.stderr[-3000:]}"
        )
        return ran

    def run_forkserver(self) -> None:
        """Have this process's forkserver be one of them; its descriptors are the client's
        arguments.
        """

        def run(executable: object, arguments: object, descriptors: list[int]) -> int:
            client = subprocess.Popen(
                [self.folder / FORKSERVER, *map(str, descriptors)], pass_fds=descriptors
            )
            client.returncode = 0  # multiprocessing waits for it
            return client.pid

        resource_tracker.ensure_running()
        with mock.patch("multiprocessing.util.spawnv_passfds", run):
            forkserver.ensure_running()


def commands(folder: Path, session: int) -> Commands:
    """Have a process that they are forked from: one for all workers of a session, ended with the
    session. Commands wait until it has imported all; who starts it early waits less.
    """
    address, binaries = folder / "socket", folder / "bin"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binaries.exists():
            start(address, binaries, session)
    return Commands(binaries)


def start(address: Path, binaries: Path, session: int) -> None:
    from waiting import LONGEST  # the process that is started here does not find it

    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, "-P", __file__, str(address), str(session)],
        env=environment,
        start_new_session=True,
    )
    binaries.mkdir()
    for name in ("pipeline", "dvc", FORKSERVER):
        client, more = binaries / name, "sys.argv[1:]" if name == FORKSERVER else "()"
        client.write_text(
            CLIENT.format(
                python=sys.executable,
                address=str(address),
                server=server.pid,
                longest=LONGEST,
                more=more,
            ),
            encoding="utf-8",
        )
        client.chmod(0o755)
    # Else one that failed would seem to be there still, and commands would wait for it.
    threading.Thread(target=server.wait, daemon=True).start()


def no_fsync(descriptor: int) -> None:
    """Takes the place of `os.fsync` in tests."""


def serve(address: str, session: int) -> None:
    import distributed
    import dvc.cli.parser
    import dvc.commands.repro
    import dvc.repo.graph
    import dvc.repo.index
    import dvc.repo.plots
    import dvc.repo.reproduce
    import dvc.repo.status
    import dvc.scm
    import fontTools.subset
    import lightning_fabric
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_pdf
    import matplotlib.backends.backend_svg
    import pandas
    import pyarrow.parquet
    import timm
    import torch
    import zarr

    drawing = (fontTools, matplotlib)
    modules = (distributed, dvc, lightning_fabric, pandas, pyarrow, timm, torch, zarr)
    assert all((*drawing, *modules))
    import_ours()
    read_shipped()
    end_nothing()
    mock.patch.object(os, "fsync", no_fsync).start()  # as in surroundings.py
    gc.freeze()  # else every child copies these modules' memory as its collector walks through them
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{address}.bound")
    listening.listen()
    os.rename(f"{address}.bound", address)
    listening.settimeout(1)
    while runs(session):
        try:
            asking, _ = listening.accept()
        except TimeoutError:
            continue
        if os.fork() == 0:
            listening.close()
            answer(asking)
        asking.close()


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def import_ours() -> None:
    """Import the modules of this tree, but for those that need a package that is not installed."""
    import pipeline
    import stages

    for package in (pipeline, stages):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            with suppress(ModuleNotFoundError):
                importlib.import_module(module.name)


def read_shipped() -> None:
    """Read the settings and recipes that ship, which commands need not read again."""
    from pipeline.foundation.settings import load, written

    load(written.template("params.yaml"))


def end_nothing() -> None:
    """Have commands not end what is imported here, which takes longer than many a command."""
    from torch._dynamo.utils import dump_compile_times

    atexit.unregister(dump_compile_times)
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False


def forget_ours() -> None:
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("pipeline", "stages"):
            del sys.modules[name]


def answer(asking: socket.socket) -> None:
    """Run one command in a process of its own, and send its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, streams, _, _ = socket.recv_fds(asking, 8, 5)
    with asking.makefile("rb") as stream:
        arguments, folder, environment = json.loads(stream.read(int.from_bytes(length, "big")))
    command = os.fork()
    if command:
        _, status = os.waitpid(command, 0)
        asking.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    for number, stream_of_command in enumerate(streams[:3]):
        os.dup2(stream_of_command, number)
    os.chdir(folder)
    before = environment.pop("BEFORE", "")
    if environment.get("PYTHONPATH") != os.environ.get("PYTHONPATH"):
        forget_ours()
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    exec(before, {})
    name = Path(arguments[0]).name
    if name == FORKSERVER:
        end(partial(forkserver.main, *streams[3:], []))
    elif name == "dvc":
        from dvc.cli import main
    else:
        from stages.cli import main
    end(main)


def end(main: Callable[[], object]) -> NoReturn:
    """Run it and end as Python does, but for taking all modules apart, which would copy their
    memory first.
    """
    try:
        sys.exit(main())
    except SystemExit as ended:
        code = ended.code if ended.code is not None else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
