"""A forked process is like one of a new interpreter, and ends with the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.store.sql.workers import is_alive
from tests.command import ROOT, crawler, until
from tests.fork_server import ForkServer

MODULE = """
import os, signal, sys, time

def main():
    print(os.getcwd(), sys.argv[1:], os.environ["WORD"], os.getpgid(0) == os.getpid(), flush=True)
    match sys.argv[1:]:
        case ["fail"]: raise ValueError("no")
        case ["wait"]: time.sleep(600)
        case []: os.kill(os.getpid(), signal.SIGPROF)
    sys.exit(int(sys.argv[1]))

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "made.py").write_text(MODULE)
    return os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "WORD": "word"}


@pytest.fixture
def server(environment: dict[str, str]) -> Iterator[ForkServer]:
    server = ForkServer(["made"], environment)
    yield server
    server.close()


def test_a_forked_command_ends_like_a_new_one() -> None:
    for arguments in (["--version"], ["no-such"], ["status", "--db", "none.db"]):
        assert crawler(*arguments) == crawler(*arguments, fresh=True)


def test_a_child_has_what_was_asked_for(server: ForkServer, environment: dict[str, str], tmp_path: Path) -> None:
    for own, group in ({}, None), ({"WORD": "ü"}, 0), ({"PYTHONUTF8": "0", "LC_ALL": "C"}, 0):  # the last is executed
        done = server.start(["3"], environment | own, tmp_path, group)
        shown = f"{tmp_path} ['3'] {(environment | own)['WORD']} {group == 0}\n"
        assert (done.communicate(), done.returncode) == ((shown, ""), 3)
    done = server.start(["fail"], environment, tmp_path)
    assert "ValueError: no" in done.communicate()[1]
    assert done.wait() == 1


def test_a_signal_ends_a_child(server: ForkServer, environment: dict[str, str], tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
        waits = server.start(["wait"], environment, tmp_path)
        waits.stdout.readline()
        assert waits.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            waits.communicate(0.01)
        waits.send_signal(number)
        assert waits.wait(60) == (1 if number == signal.SIGINT else -number)


def test_the_stand_in_for_the_interpreter_forks_one_module(
    server: ForkServer, environment: dict[str, str], tmp_path: Path
) -> None:
    for arguments, code, shown in (
        (["-m", "made"], -signal.SIGPROF, f"{tmp_path} [] word True\n"),
        (["-c", "print(1); raise SystemExit(4)"], 4, "1\n"),
    ):
        done = subprocess.run(
            [server.python, *arguments], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (code, shown)


def test_children_end_with_the_process_of_the_tests(environment: dict[str, str], tmp_path: Path) -> None:
    script = f"""
import os, pathlib, sys
from tests.fork_server import ForkServer
server = ForkServer(["made"], os.environ)
waits = server.start(["wait"], os.environ, pathlib.Path({str(tmp_path)!r}))
print(waits.pid, server._process.pid, server._folder, flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as tests:
        assert tests.stdout is not None
        child, server, folder = tests.stdout.readline().split()
        tests.kill()
    until(lambda: not any(is_alive(int(pid)) for pid in (child, server)), "the end of both")
    assert not Path(folder).exists()
