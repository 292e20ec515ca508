"""PostgreSQL clusters for tests, in temporary folders, from the installed binaries.

``python -m tests.postgres PROCESS`` runs a server until the process of that number has ended: that of a session of
tests, whose other processes share the server.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from urllib.parse import quote

_ROOT = Path(__file__).parents[1]
#: Whom a server that root may not run is run as; Debian's package makes this user.
_USER = "postgres"
#: Free memory for the files of a server of a whole session: 9 MB for each of its databases.
_ROOM_BYTES = 2 << 30
#: How many databases that no test needs any more are dropped at once: a statement each, but one process for all.
_DROPPED_AT_ONCE = 10
#: The database that :meth:`Cluster.make_store` copies.
_STORE = "store"


@cache
def binaries() -> Path | None:
    """The folder of initdb and pg_ctl; None if PostgreSQL is not installed."""
    known = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: -int(folder.parent.name))
    for folder in [*known, *(Path(found).parent for found in [shutil.which("initdb")] if found)]:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    return None


class Cluster:
    """A server on a socket in its folder. Other processes may use it by its folder too."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        found = binaries()
        assert found is not None, "PostgreSQL is not installed"
        self._binaries = found
        self.folder = folder
        self._port = port
        self._made: list[str] = []
        self._needless: list[str] = []

    def make(self, *settings: str) -> None:
        """Make the files of the server, and start it. It listens on TCP only if it has a port."""
        if os.getuid() == 0:
            shutil.chown(self.folder, _USER)
        self.run("initdb", "-D", str(self.folder / "data"), "-U", _USER, "-A", "trust", "-E", "UTF8", "-N")
        own = (
            f"listen_addresses = '{'' if self._port is None else '127.0.0.1'}'",
            f"port = {self._port or 5432}",
            f"unix_socket_directories = '{self.folder}'",
            "log_line_prefix = '%m [%p] %q%a '",
        )
        with open(self.folder / "data" / "postgresql.conf", "a") as file:
            file.write("\n".join(["", *own, *settings, ""]))
        self.start()
        self.psql("CREATE ROLE crawler LOGIN CREATEDB CREATEROLE")

    def start(self) -> None:
        self.run("pg_ctl", "start", "-w", "-D", str(self.folder / "data"), "-l", str(self.folder / "log"))

    def stop(self, how: str = "fast") -> None:
        """``how`` is "smart", "fast" or "immediate", which is a crash."""
        self.run("pg_ctl", "stop", "-w", "-D", str(self.folder / "data"), "-m", how)

    def kill(self) -> None:
        """Kill all processes of the server with -9, and wait until they are gone."""
        postmaster = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        processes = [postmaster, *map(int, children)]
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        while any(map(_is_running, processes)):
            time.sleep(0.01)
        # A killed process that its parent has not awaited keeps its number, and would count as a running server.
        (self.folder / "data" / "postmaster.pid").unlink()
        Path(f"{self.socket}.lock").unlink()

    def cpu_s(self) -> float:
        """The CPU time in seconds of the server, and of those of its processes that have ended."""
        postmaster = (self.folder / "data" / "postmaster.pid").read_text().split()[0]
        fields = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def make_database(self, template: str = "template1") -> str:
        """The URL of a new database, empty as the template is."""
        name = f"crawl_{uuid.uuid4().hex[:12]}"
        # Copying files takes half of what logging all pages takes. Before version 15 there is nothing else.
        logs_pages = int((self.folder / "data" / "PG_VERSION").read_text()) >= 15
        self.psql(f"CREATE DATABASE {name} OWNER crawler TEMPLATE {template}" + " STRATEGY file_copy" * logs_pages)
        self._made.append(name)
        return self.url(name)

    @contextmanager
    def databases_of_a_test(self) -> Iterator[None]:
        """Drop the databases that are made in the context, after it, some contexts at once."""
        before = len(self._made)
        yield
        self._needless += self._made[before:]
        del self._made[before:]
        if len(self._needless) >= _DROPPED_AT_ONCE:
            self.psql(*(f"DROP DATABASE {name} WITH (FORCE)" for name in self._needless))
            self._needless.clear()

    def make_store(self) -> str:
        """The URL of a new database with the tables of an empty store. A server of :func:`shared` can make it."""
        return self.make_database(_STORE)

    def url(self, database: str) -> str:
        return f"postgresql://crawler@/{database}?host={quote(str(self.folder))}"

    @property
    def socket(self) -> Path:
        """The address on which the server listens."""
        return self.folder / f".s.PGSQL.{self._port or 5432}"

    def name_in(self, url: str) -> str:
        """The name of the database in a URL of this cluster."""
        return url.partition("@/")[2].partition("?")[0]

    def psql(self, *statements: str, database: str = "postgres") -> str:
        """The output of statements, each in a transaction of its own."""
        return self.run(
            "psql", "-X", "-q", "-A", "-t", "-h", str(self.folder), "-p", str(self._port or 5432), "-U", _USER,
            *(word for sql in statements for word in ("-c", sql)), database,
        )  # fmt: skip

    def run(self, program: str, *arguments: str) -> str:
        """The output of a program of PostgreSQL, run on this server as its owner."""
        command = [str(self._binaries / program), *arguments]
        if os.getuid() == 0:
            command = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--init-groups", *command]
        done = subprocess.run(
            command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/", timeout=300
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


def _is_running(process: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _folder_in_memory() -> str | None:
    """Making a database copies 300 files, and removing a server with all of its databases can take a disk a minute."""
    folder = "/dev/shm"
    return folder if os.path.isdir(folder) and shutil.disk_usage(folder).free >= _ROOM_BYTES else None


@contextmanager
def cluster(port: int | None = None, *, durable: bool = False) -> Iterator[Cluster]:
    """A private server that runs inside the context.

    A crash of the server loses nothing. One of the machine would, unless it is ``durable``: then it flushes, its files
    are on a disk, and it has the memory of a server in use.
    """
    settings = (
        ("shared_buffers = 2GB", "max_wal_size = 4GB")
        if durable
        else ("max_wal_size = 256MB", "fsync = off", "autovacuum = off")
    )
    with _made(None if durable else _folder_in_memory(), port, settings) as server:
        yield server


@contextmanager
def _made(where: str | None, port: int | None, settings: Sequence[str]) -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="crawler-pg-", dir=where, ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = Cluster(Path(folder), port)
        server.make(*settings)
        try:
            yield server
        finally:
            server.stop("immediate")


#: What this process has started, and does not wait for.
_started: list[subprocess.Popen[str]] = []


def shared(session: int) -> Cluster:
    """The server of the processes of tests below the process ``session``; it runs until that has ended."""
    with open(Path(tempfile.gettempdir(), f"crawler-pg-{session}"), "a+") as place:
        fcntl.flock(place, fcntl.LOCK_EX)
        place.seek(0)
        folder = place.read()
        if not folder or not Path(folder, "data").exists():  # or another session had the same number
            command = [sys.executable, "-m", "tests.postgres", str(session)]
            server = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=_ROOT, start_new_session=True
            )
            _started.append(server)
            assert server.stdout is not None
            folder = server.stdout.readline().strip()
            assert folder, "the PostgreSQL server of the tests did not start"
            place.truncate(0)
            place.write(folder)
    return Cluster(Path(folder))


def _run_until_the_end_of(session: int) -> None:
    """Run a server for tests of which none ends it, so that it may lose what it has just committed."""
    fast = ("fsync = off", "synchronous_commit = off", "full_page_writes = off", "autovacuum = off", "jit = off")
    with _made(_folder_in_memory(), None, (*fast, "max_connections = 300", "max_wal_size = 256MB")) as server:
        from crawler.store.postgres.store import PostgresStore

        async def make_tables() -> None:
            await (await PostgresStore.open(server.url(_STORE))).close()

        server.psql(f"CREATE DATABASE {_STORE} OWNER crawler")
        asyncio.run(make_tables())
        print(server.folder, flush=True)
        while _is_running(session):
            time.sleep(0.5)
    Path(tempfile.gettempdir(), f"crawler-pg-{session}").unlink()


if __name__ == "__main__":
    _run_until_the_end_of(int(sys.argv[1]))
