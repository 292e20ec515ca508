"""Run the ``crawler`` command in tests: in a separate process, or in this one if only its output matters."""

from __future__ import annotations

import atexit
import gc
import io
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest import mock

from crawler.cli import main, output
from crawler.engine import parser_pool
from crawler.engine.sandbox import environment
from tests.fork_server import Forked, ForkServer
from tests.orphans import BOUND
from tests.reading import ParserInProcess

ROOT = Path(__file__).parents[1]

#: Options for the test webs, whose names exist nowhere.
LOOPBACK = ("--resolve", "*.test=127.0.0.1", "--allow-private", "--no-progress")

#: A configuration that hurries, for servers that are ours.
HASTY = """
[politeness]
delay = 0.05
slow_factor = 0
backoff_first = 0.2
[robots]
retry_first = 0.2
[fetch]
retry_pause = 0.2
retries = 2
"""


#: A command that a test started.
Started = Forked | subprocess.Popen[str]


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


def little_room(most_bytes: int) -> Callable[[], None]:
    """For ``before``: limit files to ``most_bytes``, like a full disk."""
    import resource  # missing on Windows

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    return limit


def crawler(
    *arguments: str | Path,
    stdin: bytes | None = None,
    timeout_s: float = 300,
    cwd: Path | None = None,
    before: Callable[[], object] | None = None,
    under: Sequence[str] = (),
    fresh: bool = False,
) -> Ended:
    """Run ``crawler`` to its end, ``under`` another command. Asserts that it prints no traceback.

    A ``fresh`` one is started as ``python -m crawler``; so is one with ``stdin``, ``before`` or ``under``.
    """
    if not (fresh or stdin is not None or before is not None or under):
        return finish(_start(arguments, cwd or Path.cwd()), timeout_s)
    done = subprocess.run(
        [*BOUND, *under, *_command(arguments)],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=timeout_s,
        cwd=cwd,
        env=_environment(),
        preexec_fn=before,
        check=False,
    )
    ended = Ended(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in ended.err, ended.err
    return ended


def start(*arguments: str | Path, group: int | None = None, fresh: bool = False) -> Started:
    """Start ``crawler``, ``fresh`` or forked; the caller ends it. It has a process group of its own if that is 0."""
    if not fresh:
        return _start(arguments, Path.cwd(), group)
    return subprocess.Popen(
        [*BOUND, *_command(arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(),
        process_group=group,
    )


def call(function: Callable[[], object]) -> Forked:
    """Call a function in a process that has loaded the crawler. The function must be one that pickle knows by name."""
    pickled = pickle.dumps(function).hex()
    return _commands().start([pickled], _environment(), Path.cwd(), module="tests.forked_call")


def finish(process: Started, timeout_s: float = 300) -> Ended:
    """Wait for a started command."""
    out, err = process.communicate(timeout=timeout_s)
    assert "Traceback" not in err, err
    return Ended(process.wait(), out, err)


def here(*arguments: str | Path, stdin: bytes = b"", run: Callable[[], object] = main) -> Ended:
    """Run the command in this process, which is ten times as fast. The process reads pages, too."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["crawler", *map(str, arguments)]
    source = io.TextIOWrapper(io.BytesIO(stdin))
    patches = (
        mock.patch.object(sys, "argv", argv),
        mock.patch.object(sys, "stdin", source),
        mock.patch.object(sys, "executable", str(forking_python())),
        mock.patch.dict(os.environ, _environment()),
        mock.patch.object(parser_pool, "_Parser", ParserInProcess),
        # A command freezes what loading has made. Here, this would keep the garbage of all tests before.
        mock.patch.object(gc, "freeze"),
        # Each command is a process of its own: none has been told by an earlier one to print records only.
        mock.patch.object(output, "_writers", [output._print]),
        redirect_stdout(out),
        redirect_stderr(err),
    )
    with ExitStack() as around:
        for patch in patches:
            around.enter_context(patch)
        try:
            run()
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Ended(code, out.getvalue(), err.getvalue())


def until(condition: Callable[[], bool], what: str, timeout_s: float = 300) -> None:
    """Wait for a condition that another process brings about."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for: {what}"
        time.sleep(0.01)


def _start(arguments: Sequence[str | Path], folder: Path, group: int | None = None) -> Forked:
    return _commands().start(list(map(str, arguments)), _environment(), folder, group)


def forking_python() -> Path:
    """An interpreter for the commands of a shell: it forks ``-m crawler``, and does everything else itself."""
    return _commands().python


@cache
def _commands() -> ForkServer:
    """Forks commands. It has loaded the crawler, and numpy without the threads that it would start."""
    paths = (path.relative_to(ROOT).with_suffix("") for path in (ROOT / "crawler").rglob("*.py"))
    names = sorted({".".join(path.parts).removesuffix(".__init__") for path in paths})
    environment = _environment() | {"OPENBLAS_NUM_THREADS": "1"}
    served = ["crawler.__main__", "crawler.run.worker", "crawler.rounds.worker"]
    server = ForkServer(served, environment, ["uvloop", *names], _parsers())
    atexit.register(server.close)
    return server


@cache
def _parsers() -> ForkServer:
    """Forks the parser processes of commands."""
    # Each process would load ctypes when it confines itself, and the others for its first robots.txt or text.
    loaded = ["ctypes", "crawler.engine.robots_reading", "crawler.page.main_text", "crawler.page.content"]
    server = ForkServer(["crawler.engine.parser_process"], environment(_environment()), loaded)
    atexit.register(server.close)
    return server


def _command(arguments: Sequence[str | Path]) -> list[str]:
    return [sys.executable, "-m", "crawler", *map(str, arguments)]


def _environment() -> dict[str, str]:
    """This process's environment without variables that change the output, importing this checkout from any folder.

    The certificates of the system are left out. No test needs them, and loading them takes a tenth of a start.
    """
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    return {"SSL_CERT_FILE": os.devnull, **kept, "PYTHONPATH": str(ROOT)}
