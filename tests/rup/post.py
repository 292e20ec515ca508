"""A real mail server on loopback that delivers into a Maildir, and can hold mail back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller

from tests.ports import reserved_port
from tests.rup.old_server import deliver


@dataclass
class Post:
    """``held`` collects mail while ``holding``, ``delivered`` that of the Maildir, both in the order of arrival."""

    box: Path
    port: int = 0
    holding: bool = False
    held: list[bytes] = field(default_factory=list)
    delivered: list[bytes] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.held) + len(self.delivered)

    @property
    def octets(self) -> int:
        return sum(map(len, (*self.held, *self.delivered)))

    def reported(self, since: int = 0) -> set[str]:
        """The paths in all delivered reports but the first ``since``. A start page has the path of its folder."""
        mails = (message_from_bytes(mail).get_payload(decode=True) for mail in self.delivered[since:])
        texts = (mail.decode("ascii") for mail in mails if isinstance(mail, bytes))
        lists = (line for text in texts for line in re.findall(r"^(?:New|Change|Delete)\[.*?\]: (.*?)\r?$", text, re.M))
        return {path.removesuffix("index.html") for line in lists for path in line.split(", ")}

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - the name that aiosmtpd calls
        if self.holding:
            self.held.append(envelope.content)
        else:
            deliver(self.box, envelope.content)
            self.delivered.append(envelope.content)  # counted when it can be read
        return "250 OK"


@contextmanager
def post_office(box: Path) -> Iterator[Post]:
    """Accept mail until the context ends."""
    post = Post(box, reserved_port())
    controller = Controller(post, hostname="127.0.0.1", port=post.port)
    controller.start()
    try:
        yield post
    finally:
        controller.stop()
