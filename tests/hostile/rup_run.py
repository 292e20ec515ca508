"""Run the RUP server against hostile clients, and the RUP robot against hostile servers."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.command import here
from tests.hostile.catalogue import HEALTHY
from tests.hostile.crawl import CONFIG, configured
from tests.hostile.rup import BEHAVIOURS, CLIENTS, REGISTERING
from tests.hostile.server import Servers
from tests.hostile.verdict import ended_well, unprintable
from tests.ports import reserved_port
from tests.rup.old_server import maildir
from tests.rup.post import post_office
from tests.rup.site import TreeSite

#: Seconds for an answer to an honest client, while the hostile one is connected.
MOST_HONEST_S = 2.0


def register(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Ask each hostile server for its offer, and register with it. Each with what was wrong."""
    port, config = reserved_port("0.0.0.0"), folder / "rup.toml"
    config.write_text(configured(CONFIG, (*BEHAVIOURS, HEALTHY[0]), allow_private=True))
    options = ("--db", folder / "robot.db", "--config", config)
    with Servers((*BEHAVIOURS, HEALTHY[0]), port, folder) as servers:
        for one in BEHAVIOURS:
            url = one.url("/", port)
            told = here("rup", "info", url, *options)
            asked = here("rup", "register", url, "--email", "robot@crawler.test", *options)
            wrong = ended_well(("rup", "info", one.name), told, codes=(0, 1))
            code = 0 if one.name in REGISTERING else 1
            yield one.name, [*wrong, *ended_well(("rup", "register", one.name), asked, codes=(code,))]
    away = [hit.path for hit in servers.log if hit.host == HEALTHY[0].host and hit.path != "/robots.txt"]
    yield "rup-healthy", [f"{path} was requested at a healthy site" for path in away]


def attack(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Attack ``crawler rup serve`` with each client in turn. Each with what was wrong, and the times of honest clients.

    Clients that are still connected stay so until the end.
    """
    root = folder / "tree"
    root.mkdir()
    (root / "index.html").write_text("<title>start</title>")
    with ExitStack() as stack:
        post = stack.enter_context(post_office(maildir(folder / "post")))
        site = TreeSite(root, folder / "rup.db", post)
        site.open_rup()
        stack.callback(site.close_rup)
        for number, client in enumerate(CLIENTS):
            connection = stack.enter_context(_connected(site.rup_port, f"127.4.{number}.1"))
            with suppress(OSError):
                connection.sendall(client.octets)
            wrong = []
            honest_s, honest_status = _honest(site.rup_port)
            if honest_status != 200:
                wrong.append(f"an honest client got {honest_status}")
            status = _status(connection)
            if status not in client.statuses:
                wrong.append(f"answered {status}, expected {'|'.join(map(str, sorted(client.statuses)))}")
            if honest_s > MOST_HONEST_S:
                wrong.append(f"an honest client waited {honest_s:.1f} s")
            yield client.name, wrong
        assert site.process is not None
        site.process.send_signal(signal.SIGTERM)
        out, err = site.process.communicate(timeout=60)
        site.process = None
        yield (
            "client-server",
            [f"a traceback: {err[-500:]}"] * ("Traceback" in err) + list(unprintable("rup serve", out + err)),
        )


def _connected(port: int, source: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=3, source_address=(source, 0))


def _status(connection: socket.socket) -> int:
    """The status that the server answers within 3 s; 0 if it closes, or waits."""
    try:
        line = connection.recv(4096).partition(b"\r\n")[0].split(b" ")
    except OSError:
        return 0
    return int(line[1]) if len(line) > 1 and line[1].isdigit() else 0


def _honest(port: int) -> tuple[float, int]:
    """The time for an answer to an honest client, and its status."""
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=60, source_address=("127.5.0.1", 0)) as connection:
        connection.settimeout(60)
        connection.sendall(b"GET /rupinfo.txt HTTP/1.1\r\nHost: rup.test\r\nConnection: close\r\n\r\n")
        status = _status(connection)
    return time.monotonic() - started, status
