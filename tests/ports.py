"""Ports for servers that are told their port before they start, or that start again on the same one."""

from __future__ import annotations

import socket

_reserved: list[socket.socket] = []


def reserved_port(address: str = "127.0.0.1") -> int:
    """A free port of ``address`` that the system gives to nobody else until this process ends.

    A socket stays bound to it and never listens. A server may listen on the port and stop again, here or in another
    process: SO_REUSEADDR, which servers set, allows it. While none listens, connections are refused.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((address, 0))
    _reserved.append(held)
    return int(held.getsockname()[1])
