"""A PostgreSQL cluster for tests, in a temporary folder, from the installed binaries."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from urllib.parse import quote

#: Whom a server that root may not run is run as; Debian's package makes this user.
_USER = "postgres"
#: Free memory for the files of the servers of several test processes, which take about 1 GB each.
_ROOM_BYTES = 10 << 30


@cache
def binaries() -> Path | None:
    """The folder of initdb and pg_ctl; None if PostgreSQL is not installed."""
    known = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: -int(folder.parent.name))
    for folder in [*known, *(Path(found).parent for found in [shutil.which("initdb")] if found)]:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    return None


class Cluster:
    """A private server on a private socket; it listens on TCP only if it gets a port.

    It does not flush unless it is ``durable``: a crash of the server loses nothing, only one of the machine would. A
    durable one also has the memory of a server in use.
    """

    def __init__(self, folder: Path, port: int | None = None, *, durable: bool = False) -> None:
        found = binaries()
        assert found is not None, "PostgreSQL is not installed"
        self._binaries = found
        self.folder = folder
        self._port = port
        if os.getuid() == 0:
            shutil.chown(folder, _USER)
        self._run("initdb", "-D", str(folder / "data"), "-U", "crawler", "-A", "trust", "-E", "UTF8", "-N")
        with open(folder / "data" / "postgresql.conf", "a") as settings:
            settings.write(f"""
listen_addresses = '{"" if port is None else "127.0.0.1"}'
port = {port or 5432}
unix_socket_directories = '{folder}'
shared_buffers = {"2GB" if durable else "128MB"}
max_connections = 100
max_wal_size = {"4GB" if durable else "256MB"}
fsync = {"on" if durable else "off"}
log_line_prefix = '%m [%p] %q%a '
""")
        self.start()

    def start(self) -> None:
        self._run("pg_ctl", "start", "-w", "-D", str(self.folder / "data"), "-l", str(self.folder / "log"))

    def stop(self, how: str = "fast") -> None:
        """``how`` is "smart", "fast" or "immediate", which is a crash."""
        self._run("pg_ctl", "stop", "-w", "-D", str(self.folder / "data"), "-m", how)

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

    def make_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"crawl_{uuid.uuid4().hex[:12]}"
        self.psql(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, database: str) -> str:
        return f"postgresql://crawler@/{database}?host={quote(str(self.folder))}"

    @property
    def socket(self) -> Path:
        """The address on which the server listens."""
        return self.folder / f".s.PGSQL.{self._port or 5432}"

    def name_in(self, url: str) -> str:
        """The name of the database in a URL of this cluster."""
        return url.partition("@/")[2].partition("?")[0]

    def psql(self, sql: str, database: str = "postgres") -> str:
        return self._run(
            "psql", "-X", "-q", "-A", "-t", "-h", str(self.folder), "-p", str(self._port or 5432), "-U", "crawler",
            "-c", sql, database,
        )  # fmt: skip

    def _run(self, program: str, *arguments: str) -> str:
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
    """A server that runs inside the context. Its files are in memory if there is room and it is not ``durable``."""
    where = None if durable else _folder_in_memory()
    with tempfile.TemporaryDirectory(prefix="crawler-pg-", dir=where, ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = Cluster(Path(folder), port, durable=durable)
        try:
            yield server
        finally:
            server.stop("immediate")
