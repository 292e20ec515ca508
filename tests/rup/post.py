"""A real mail server on loopback that delivers into a Maildir, and can hold mail back."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller

from tests.rup.old_server import deliver


@dataclass
class Post:
    """``held`` collects mail while ``holding``, in the order of arrival."""

    box: Path
    port: int = 0
    holding: bool = False
    held: list[bytes] = field(default_factory=list)
    count: int = 0
    octets: int = 0

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - the name that aiosmtpd calls
        self.count += 1
        self.octets += len(envelope.content)
        if self.holding:
            self.held.append(envelope.content)
        else:
            deliver(self.box, envelope.content)
        return "250 OK"


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextmanager
def post_office(box: Path) -> Iterator[Post]:
    """Accept mail until the context ends."""
    post = Post(box, free_port())
    controller = Controller(post, hostname="127.0.0.1", port=post.port)
    controller.start()
    try:
        yield post
    finally:
        controller.stop()
