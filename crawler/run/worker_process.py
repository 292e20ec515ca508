"""The processes of workers: forks of a command that has no thread yet, or programs of their own.

A fork shares the modules that the command has loaded, which saves most of the start of a worker. It is safe only while
the process has one thread, and no event loop, connection or open database. So a command forks its workers before its
event loop begins. They wait for their assignments, and end if there is none. A worker that takes the place of a dead
one is a program of its own, and so is each worker of a crawl whose number of workers the store remembers.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, NoReturn

import msgspec

from crawler.store.location import is_url

_WORKER = "crawler.run.worker"
#: The modules that only a worker at work loads, and those of a store on PostgreSQL.
_LOADED_AT_WORK = ("uvloop", "aiodns", "crawler.store.sql.commit")
_ON_POSTGRES = ("crawler.store.postgres.store",)
_INTERRUPTS = {signal.SIGINT, signal.SIGTERM}
_TASKS = Path("/proc/self/task")


class WorkerProcess(msgspec.Struct, eq=False):
    """A child process that is a worker, in a process group of its own.

    Its standard input is the other end of ``above``, and its standard output that of ``reports``.
    """

    pid: int
    above: socket.socket
    reports: IO[bytes]
    code: int | None = None  # the exit code, negative for a signal, once somebody has waited for it

    def wait(self) -> int:
        """Wait for the end, in a thread. Returns the exit code."""
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def close(self) -> None:
        """Close this end of its input and output. A worker without an assignment ends then."""
        self.above.close()
        self.reports.close()


def spawn() -> WorkerProcess:
    """Start a worker as a program of its own. Raises :class:`OSError` if the system cannot."""
    above, stdin = socket.socketpair()
    reports, stdout = os.pipe()
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", _WORKER],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, stdin.fileno(), 0), (os.POSIX_SPAWN_DUP2, stdout, 1)],
            setpgroup=0,
        )
    except OSError:
        above.close()
        os.close(reports)
        raise
    finally:
        stdin.close()
        os.close(stdout)
    return WorkerProcess(pid, above, open(reports, "rb", buffering=0))


@contextmanager
def forked(count: int, db: str) -> Iterator[list[WorkerProcess]]:
    """So many forks of this process for a crawl into ``db``.

    None if this process has several threads, or if the system is not Linux.

    Whoever takes a worker out of the list ends it. Those left over end on exit.
    """
    workers: list[WorkerProcess] = []
    try:
        if count and _has_one_thread():
            for name in _LOADED_AT_WORK + (_ON_POSTGRES if is_url(db) else ()):
                with suppress(ImportError):
                    import_module(name)
            import_module(_WORKER)
            gc.freeze()  # the workers share this memory as long as nobody looks through it
            with suppress(OSError):  # no process for another one: it is tried again when the crawl begins
                for _ in range(count):
                    workers.append(_fork(workers))
        yield workers
    finally:
        for worker in workers:
            worker.close()
        for worker in workers:
            worker.wait()


def _has_one_thread() -> bool:
    return _TASKS.exists() and len(list(_TASKS.iterdir())) == 1


def _fork(others: list[WorkerProcess]) -> WorkerProcess:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # else the fork would write it too
    above, stdin = socket.socketpair()
    reports, stdout = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)  # else the fork could go on as the command
    try:
        pid = os.fork()
        if pid == 0:
            for other in others:  # they end when the command alone closes their input
                other.close()
            above.close()
            os.close(reports)
            _become_worker(stdin.detach(), stdout, before)
        with suppress(PermissionError, ProcessLookupError):  # also here: before a signal comes to this group
            os.setpgid(pid, pid)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    stdin.close()
    os.close(stdout)
    return WorkerProcess(pid, above, open(reports, "rb", buffering=0))


def _become_worker(stdin: int, stdout: int, mask: set[int]) -> NoReturn:
    """Be in this fork what ``python -m crawler.run.worker`` is, and end without the end of the command."""
    code: object = 1
    try:
        os.setpgid(0, 0)
        for stream, number in ((stdin, 0), (stdout, 1)):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115  for good
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        import_module(_WORKER).main()
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        with suppress(OSError, AttributeError):
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)
