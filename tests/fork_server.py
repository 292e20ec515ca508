"""Start commands by forking a process that has loaded them, which saves half a second of processor time a start.

:class:`ForkServer` is the side of the tests. The server has one thread and no event loop. For each request it forks a
child, which goes on as ``python -m MODULE`` would, with one of the modules of the server. When the process of the tests
ends, whatever ends it, the server kills its children and ends.

:attr:`ForkServer.python` is a program that forks the modules of a server and otherwise is the interpreter. It is the
``sys.executable`` of forked commands (:mod:`tests.forked_python`). So the processes that they start are forked too.
"""

from __future__ import annotations

import atexit
import gc
import marshal
import os
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import IO, Any

ROOT = Path(__file__).parents[1]
#: The interpreter and the libraries read these variables when they are loaded.
_READ_AT_START = ("COVERAGE_", "LANG", "LC_", "LD_", "MALLOC_", "OPENSSL_", "PYTHON", "SSL_", "TZ")
#: The length of a request, and a process number or an exit code.
LENGTH = struct.Struct("=I")
NUMBER = struct.Struct("=i")


# --- the side of the tests ------------------------------------------------------------------------


class Forked:
    """A started command, with the methods of :class:`subprocess.Popen` that tests use. Its input is empty.

    The server kills a command that nobody refers to any more.
    """

    def __init__(self, server: socket.socket, stdout: int, stderr: int) -> None:
        self.returncode: int | None = None
        self.stdout: IO[str] = open(stdout, encoding="utf-8", newline="\n")  # noqa: SIM115, communicate() closes it
        self.stderr: IO[str] = open(stderr, encoding="utf-8", newline="\n")  # noqa: SIM115, communicate() closes it
        self._readers: list[threading.Thread] = []
        self._read: dict[IO[str], str] = {}
        self._server = server
        self.pid = self._receive()

    def poll(self) -> int | None:
        """The exit code, negative for a signal; ``None`` while the command runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Returns the exit code."""
        if self.returncode is None:
            if not select.select([self._server], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("crawler", timeout or 0)
            self.returncode = self._receive()
            self._server.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end. Returns what was still to be read of both outputs."""
        deadline = None if timeout is None else monotonic() + timeout
        if not self._readers:
            streams = (self.stdout, self.stderr)
            self._readers = [threading.Thread(target=self._read_all, args=[each], daemon=True) for each in streams]
            for reader in self._readers:
                reader.start()
        for reader in self._readers:
            reader.join(None if deadline is None else max(0.0, deadline - monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired("crawler", timeout or 0)
        self.wait(None if deadline is None else max(0.0, deadline - monotonic()))
        return self._read[self.stdout], self._read[self.stderr]

    def _read_all(self, stream: IO[str]) -> None:
        with stream:
            self._read[stream] = stream.read()

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _receive(self) -> int:
        received = self._server.recv(NUMBER.size)
        if not received:
            raise RuntimeError("the fork server has ended")
        return int(NUMBER.unpack(received)[0])


class ForkServer:
    """Forks processes that run a module of ``served``. At the first request, the server loads ``loaded`` too.

    These processes start the modules of this server, and those of ``beside``, by forks.
    """

    def __init__(
        self,
        served: Sequence[str],
        environment: Mapping[str, str],
        loaded: Sequence[str] = (),
        beside: ForkServer | None = None,
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="crawler-fork-"))
        self._address = str(self._folder / "socket")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self._address)
            listening.listen(100)
            listens = listening.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fork_server", str(listens), self._folder, *loaded, *served],
                stdin=subprocess.PIPE,  # its end tells that the tests have ended
                env=environment,
                cwd=ROOT,
                pass_fds=[listens],
            )
        self._served = served
        self._forks = {name.removesuffix(".__main__"): (self._address, name) for name in served}
        self._forks |= {} if beside is None else beside._forks
        self.python = self._folder / "python"
        # It needs no library, and an interpreter outside a virtual environment starts in less time.
        program = [sys._base_executable, "-IS", ROOT / "tests" / "forked_python.py"]
        stand_in = [*program, sys.executable, self.python, repr(self._forks)]
        self.python.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, stand_in))} "$@"\n')
        self.python.chmod(0o755)

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        group: int | None = None,
        module: str | None = None,
    ) -> Forked:
        """Start ``module``, else the first one, in ``folder``, in a process group of its own if ``group`` is 0."""
        request = marshal.dumps(
            (module or self._served[0], list(arguments), dict(environment), str(folder), group, str(self.python))
        )
        ours = socket.socket(socket.AF_UNIX)
        ours.connect(self._address)
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        with open(os.devnull) as nothing:
            socket.send_fds(ours, [LENGTH.pack(len(request))], [nothing.fileno(), out_end, err_end])
        ours.sendall(request)
        os.close(out_end)
        os.close(err_end)
        return Forked(ours, out, err)

    def close(self) -> None:
        """End the server, and wait for it: its processor time then counts for this process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


# --- the server -----------------------------------------------------------------------------------


def _serve(listening: socket.socket) -> tuple[Any, ...] | None:
    """Fork a child for each request. Returns its request in the child, and ``None`` when the tests have ended."""
    children: dict[int, socket.socket] = {}  # with the connection on which the child was asked for
    woken, wakes = socket.socketpair()
    wakes.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes.fileno())
    while True:
        ready = select.select([0, listening, woken, *children.values()], [], [])[0]
        if woken in ready:
            woken.recv(1 << 12)
            _report_ended(children)
        for pid, asker in children.items():
            if asker in ready:  # it is closed: nobody waits for the child any more
                os.kill(pid, signal.SIGKILL)
        if 0 in ready:
            for pid in children:
                os.kill(pid, signal.SIGKILL)
            return None
        if listening not in ready:
            continue
        asker, _ = listening.accept()
        if (received := _receive(asker)) is None:
            asker.close()
            continue
        request, streams = received
        group = request[4]
        pid = os.fork()
        if group is not None:  # set by both, so that it is set before the child goes on, and before the asker knows it
            with suppress(PermissionError, ProcessLookupError):
                os.setpgid(pid, group)
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for each in (listening, woken, wakes, asker, *children.values()):
                each.close()
            for number, stream in enumerate(streams[:3]):
                os.dup2(stream, number)
                os.close(stream)
            return request  # the other files stay open: a worker inherits the lock of its store
        for stream in streams:
            os.close(stream)
        children[pid] = asker
        _send(asker, pid)


def _receive(asker: socket.socket) -> tuple[tuple[Any, ...], list[int]] | None:
    """A request with its standard streams and other open files; ``None`` if its process has ended meanwhile."""
    head, streams, _, _ = socket.recv_fds(asker, LENGTH.size, 16)
    missing = LENGTH.unpack(head)[0] if head else 1
    body = bytearray()
    while len(body) < missing and (received := asker.recv(missing - len(body))):
        body += received
    if len(body) < missing:
        for stream in streams:
            os.close(stream)
        return None
    return marshal.loads(body), streams


def _report_ended(children: dict[int, socket.socket]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with children.pop(ended[0]) as asker:
                _send(asker, os.waitstatus_to_exitcode(ended[1]))


def _send(asker: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):
        asker.send(NUMBER.pack(number))


def _become(module: str, arguments: list[str], environment: dict[str, str], folder: str, python: str) -> None:
    """Make of this child of the server what a new interpreter would be, and run the module."""
    os.chdir(folder)
    is_like_server = _read_at_start(environment) == _read_at_start(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background begins with it ignored
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if not is_like_server:
        os.execv(sys.executable, [sys.executable, "-m", module.removesuffix(".__main__"), *arguments])
    sys.stdin, sys.stdout, sys.stderr = (
        open(stream.fileno(), mode, buffering, stream.encoding, stream.errors, closefd=False)  # noqa: SIM115, for good
        for stream, mode, buffering in ((sys.stdin, "r", -1), (sys.stdout, "w", -1), (sys.stderr, "w", 1))
    )
    sys.executable = python
    sys.path[0] = folder
    entry = import_module(module)
    sys.argv = [str(entry.__file__), *arguments]
    sys.exit(entry.main())


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


def _exit_code(error: BaseException) -> int:
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        return error.code or 0
    sys.excepthook(type(error), error, error.__traceback__)
    return 1


def _main(listens: str, folder: str, *modules: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a terminal sends it to the server too
    listening = socket.socket(fileno=int(listens))
    if listening in select.select([0, listening], [], [])[0]:
        for each in modules:
            import_module(each)
        if (threads := Path("/proc/self/task")).exists():
            assert len(list(threads.iterdir())) == 1, "a fork would lose the threads that a module starts"
        gc.freeze()  # children share this memory as long as nobody looks through it
    request = _serve(listening)
    if request is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    module, arguments, environment, its_folder, _, python = request
    code = 0
    try:
        _become(module, arguments, environment, its_folder, python)
    except BaseException as error:
        code = _exit_code(error)
    # As multiprocessing ends a fork. To destroy each module, as an interpreter does, would copy the server's memory.
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _main(*sys.argv[1:])
