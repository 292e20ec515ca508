"""Measures the processor time and the memory of a process and its children. Linux only."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.orphans import BOUND

SAMPLE_S = 0.05
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Spent:
    """The exit code of a command and its use of resources."""

    code: int
    """The exit code, or minus the number of the signal that ended the command."""
    cpu_s: float
    """User and system time of the process and of the children it waited for."""
    own_cpu_s: float
    """User and system time of the process without its children, as last seen SAMPLE_S before its end."""
    wall_s: float
    peak_bytes: int
    """The highest sum of resident memory over the process and its descendants, sampled every SAMPLE_S."""


def spend(command: Sequence[str], folder: Path, output: Path, limit_s: float = 1800) -> Spent:
    """Run `command` in `folder`, with both output streams in `output`. Kill it after `limit_s`."""
    started = time.monotonic()
    peak, own_s = 0, 0.0
    with output.open("wb") as sink:
        child = subprocess.Popen(
            [*BOUND, *command], cwd=folder, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
        )
        try:
            # The peak memory in rusage is not usable: it starts with the memory of the parent process.
            while not (ended := os.wait4(child.pid, os.WNOHANG))[0]:
                peak = max(peak, resident_bytes(child.pid))
                own_s = max(own_s, own_cpu_s(child.pid))
                if time.monotonic() - started > limit_s:
                    child.kill()
                time.sleep(SAMPLE_S)
            _, status, usage = ended
            child.returncode = os.waitstatus_to_exitcode(status)
        finally:
            child.kill()  # on an interrupt; this has no effect on a process that has ended
    wall_s = time.monotonic() - started
    return Spent(child.returncode, usage.ru_utime + usage.ru_stime, own_s, wall_s, peak)


def own_cpu_s(pid: int) -> float:
    """User and system time of a process without its children; 0 if it has ended."""
    try:
        fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """The resident memory of a process and its descendants. A process that has just ended counts as 0."""
    total = 0
    for each in family(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * PAGE_BYTES
    return total


def family(pid: int) -> Iterator[int]:
    """A process and its descendants, each before its children are looked for."""
    todo = [pid]
    while todo:
        yield (each := todo.pop())
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in Path(f"/proc/{each}/task").iterdir():
                todo += map(int, (task / "children").read_text().split())
