"""A real mail server on loopback that delivers into a Maildir, and can hold mail back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller

from tests.ports import reserved_port
from tests.rup.old_server import deliver


@dataclass
class Post:
    """``held`` collects mail while ``holding``, ``delivered`` that of the Maildir, both in the order of arrival."""

    box: Path | None = None
    port: int = field(default_factory=reserved_port)
    holding: bool = False
    held: list[bytes] = field(default_factory=list)
    delivered: list[bytes] = field(default_factory=list)
    _controller: Controller | None = None

    def open(self) -> None:
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self._controller.start()

    def close(self) -> None:
        if self._controller is not None:
            self._controller.stop()
            self._controller = None

    @property
    def count(self) -> int:
        return len(self.held) + len(self.delivered)

    @property
    def octets(self) -> int:
        return sum(map(len, (*self.held, *self.delivered)))

    @property
    def mails(self) -> list[Message]:
        return [message_from_bytes(mail) for mail in self.delivered]

    def texts(self) -> list[str]:
        """The reports in all delivered mails."""
        payloads = (mail.get_payload(decode=True) for mail in self.mails)
        return [payload.decode("ascii").replace("\r\n", "\n") for payload in payloads if isinstance(payload, bytes)]

    def reported(self, since: int = 0) -> set[str]:
        """The paths in all delivered reports but the first ``since``. A start page has the path of its folder."""
        lists = (
            line
            for text in self.texts()[since:]
            for line in re.findall(r"^(?:New|Change|Delete)\[.*?\]: (.*)$", text, re.M)
        )
        return {path.removesuffix("index.html") for line in lists for path in line.split(", ")}

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - the name that aiosmtpd calls
        if self.holding:
            self.held.append(envelope.content)
            return "250 OK"
        if self.box is not None:
            deliver(self.box, envelope.content)
        self.delivered.append(envelope.content)  # counted when it can be read
        return "250 OK"


@contextmanager
def post_office(box: Path | None = None) -> Iterator[Post]:
    """Accept mail until the context ends."""
    post = Post(box)
    post.open()
    try:
        yield post
    finally:
        post.close()
