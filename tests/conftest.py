"""Fixtures for all tests, and the profiles of hypothesis (``HYPOTHESIS_PROFILE``, else "ci")."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from compileall import compile_file
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.postgres import Cluster
    from tests.web import LoopbackWeb

# "ci" has few examples, the same at each run. The others draw new ones, and print the line that repeats a failure.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("new", deadline=None, max_examples=500, print_blob=True)
settings.register_profile("long", settings.get_profile("new"), max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Commands print whole lines in tests, like into a file; the width of a terminal has no effect.
os.environ.pop("COLUMNS", None)

# Each client would load the certificates of the system, which takes 30 ms. No test needs them.
os.environ.setdefault("SSL_CERT_FILE", os.devnull)

# The search index of a PostgreSQL database is in the folder for the state of the user: here in a temporary one, and
# for the commands that tests start.
_STATE = tempfile.TemporaryDirectory(prefix="crawler-tests-")
os.environ["XDG_STATE_HOME"] = _STATE.name

# Without compiled modules, each process of pytest and each command that a test starts would compile everything anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# As in the commands. The heap of a test process grows to hundreds of megabytes, and tests leave few cycles behind.
gc.set_threshold(100_000, 50, 50)

#: How much memory a process of pytest needs, with the commands that its tests start, in bytes.
_PROCESS_BYTES = 700 << 20
#: The files with the longest tests, and the folders of long ones. They come first, so that no process begins a long
#: test when the others end.
_LONG_FIRST = (
    *("e2e/test_workers.py", "e2e/test_sample.py", "e2e/test_cli.py", "e2e/test_rounds.py", "e2e/test_examples.py"),
    *("world", "simulation/test_shares.py", "simulation/test_weeks.py"),
    *("e2e", "simulation", "differential", "property", "contract", "unit/sampling", "unit/engine"),
)


@pytest.hookimpl(optionalhook=True)  # pytest also runs without pytest-xdist
def pytest_xdist_auto_num_workers() -> int | None:
    """The processes of ``-n auto``: two for each processor, because many tests wait, as far as memory is free.

    Each process collects all tests, so with three for each processor the tests took longer.
    """
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # pytest-xdist reads it
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(2 * processors, _free_bytes() // _PROCESS_BYTES))


def _free_bytes() -> int:
    """The memory that programs can get without swapping. Systems without /proc do not tell; there it has no bound."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return sys.maxsize
    (free_kb,) = (int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return free_kb << 10


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile this process's share of all modules before the others are needed.

    In a fresh clone, all processes would compile every module, at the same time and in the same order.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    number, processes = int(os.environ["PYTEST_XDIST_WORKER"][2:]), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    root = Path(__file__).parents[1]
    files = [path for folder in ("crawler", "tests") for path in sorted((root / folder).rglob("*.py"))]
    for path in files[number::processes]:
        if not path.name.startswith("test_"):
            compile_file(path, quiet=2)
    for path in files[number::processes]:
        if path.name.startswith("test_"):  # pytest compiles it when it is loaded
            with suppress(Exception, pytest.skip.Exception):  # told when it is collected
                import_module(".".join(path.relative_to(root).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the files by the time that they or those of their folder take; the tests of a file follow one another."""
    places = {Path(__file__).parent / path: place for place, path in enumerate(_LONG_FIRST)}
    last = len(places)

    @cache
    def place_of(file: Path) -> int:
        return min(places.get(path, last) for path in (file, *file.parents))

    items.sort(key=lambda item: place_of(item.path))


def pytest_collection_finish() -> None:
    """Leave what collecting has made out of each later search for cycles."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def same_hash_key() -> Iterator[None]:
    """Give the stores of all tests the same key: URLs of a site that are equally near to a seed follow their hashes."""
    with mock.patch("crawler.store.sql.offers.new_key", return_value=0):
        yield


@pytest.fixture
def loopback() -> Iterator[LoopbackWeb]:
    """An empty web on loopback: put sites into ``loopback.sites``."""
    from tests.web import LoopbackWeb

    with LoopbackWeb() as web:
        yield web


@pytest.fixture
def reads_here() -> Iterator[None]:
    """Crawls of this process read their pages in it, as those of ``tests.command.here`` do."""
    from tests.reading import ParserInProcess

    with mock.patch("crawler.engine.parser_pool._Parser", ParserInProcess):
        yield


@pytest.fixture
def postgres(shared_postgres: Cluster) -> Iterator[Cluster]:
    """The PostgreSQL server of the session; the databases that a test makes are dropped after it."""
    with shared_postgres.databases_of_a_test():
        yield shared_postgres


@pytest.fixture(scope="session")
def shared_postgres() -> Cluster:
    """The PostgreSQL server of all processes of the session; a test that ends a server has its own."""
    from tests.postgres import binaries, shared

    if binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    return shared(os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid())


@pytest.fixture
def db_path(tmp_path: Path) -> Path:
    """The path of a test's store."""
    return tmp_path / "crawl.db"
