"""The question to a parser process about one robots.txt, and the limit on one file."""

from __future__ import annotations

import msgspec

#: Processor time that one file may take, in seconds. The slowest of 4,231 files of real sites takes 0.6.
MAX_CPU_S = 2.0


class RobotsQuestion(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A robots.txt to be read, and the facts that its reading needs.

    A ``Host`` line may name a host without a dot if it matches one of ``known_hosts`` (patterns); it is ignored if it
    names ``refuted``. ``max_bytes`` of the body are read. The system ends a process that takes more than ``max_cpu_s``
    of processor time for the file.
    """

    max_cpu_s: float
    url: str
    site: str
    token: str
    reading: str
    known_hosts: tuple[str, ...]
    refuted: str | None
    max_bytes: int
    body: bytes
    policy_tokens: tuple[tuple[str, str], ...] = ()
