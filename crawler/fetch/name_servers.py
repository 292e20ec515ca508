"""Asks the system's name servers for the addresses of a name, over c-ares (``aiodns``).

c-ares reads /etc/hosts and /etc/resolv.conf as the system does. While a look-up waits, c-ares needs a timer only, but
``getaddrinfo`` would occupy a thread. c-ares keeps answers by their TTL, and the answer that there is no such name, or
no address, by the SOA record of the zone (RFC 2308, 5), each for an hour at most. It keeps any number of them, at
2.6 kB a name, so this module replaces the channel of c-ares after :data:`NAMES_PER_CHANNEL` names. The new channel
reads the files again, too.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import aiodns
import msgspec
from aiodns import error as ares

from crawler.reasons import ErrorKind

NAMES_PER_CHANNEL = 1_024
#: How often c-ares asks. It waits five times as long as its servers usually take, at least 0.25 s, and doubles that
#: each time: 7.75 s in all if they usually answer at once, and 62 s if they have not answered yet.
TRIES = 5

_NO_ADDRESS = "the name {} has no address"
_NO_NAME = "{} is not a name that DNS can hold"
_KINDS = {
    ares.ARES_ENOTFOUND: (ErrorKind.DNS_NO_NAME, "the name {} does not exist"),
    ares.ARES_ENODATA: (ErrorKind.DNS, _NO_ADDRESS),
    ares.ARES_EBADNAME: (ErrorKind.DNS, _NO_NAME),
    ares.ARES_EBADQUERY: (ErrorKind.DNS, _NO_NAME),
    ares.ARES_ETIMEOUT: (ErrorKind.DNS_TIMEOUT, "no name server answered for {}"),
    ares.ARES_ECONNREFUSED: (ErrorKind.DNS_FAILED, "no name server can be reached to look {} up"),
    ares.ARES_ESERVFAIL: (ErrorKind.DNS_FAILED, "the look-up of {} failed (SERVFAIL)"),
    ares.ARES_EREFUSED: (ErrorKind.DNS_FAILED, "the name server refused to look {} up (REFUSED)"),
}
_OTHER = (ErrorKind.DNS_FAILED, "the look-up of {} failed: the answer of the name server cannot be used")


class LookUpFailed(OSError):
    """A name has no address, or none could be found; ``kind`` says which, as one of ``crawler.reasons.DNS_KINDS``."""

    def __init__(self, kind: ErrorKind, sentence: str) -> None:
        super().__init__(None, sentence)
        self.kind = kind
        self.sentence = sentence


class HostAddresses(msgspec.Struct, frozen=True):
    """The addresses of a name in the order in which to try them (RFC 6724), valid for ``ttl_s`` seconds.

    A name of /etc/hosts has ``ttl_s`` 0.
    """

    texts: tuple[str, ...]
    ttl_s: float


class NameServers:
    """The name servers of the system. ``options`` go to c-ares (``pycares.Channel``); tests name servers by them."""

    def __init__(self, options: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._options = options
        self._channel: aiodns.DNSResolver | None = None
        self._asked = 0  # names, of the channel

    async def addresses(self, host: str, family: socket.AddressFamily = socket.AF_UNSPEC) -> HostAddresses:
        """The addresses of ``host``. Raises :class:`LookUpFailed`."""
        channel = self._next_channel()
        try:
            found = await channel.getaddrinfo(
                host, family=family, port=80, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
            )
        except ares.DNSError as error:
            kind, sentence = _KINDS.get(error.args[0], _OTHER)
            raise LookUpFailed(kind, sentence.format(host)) from error
        except UnicodeError as error:
            raise LookUpFailed(ErrorKind.DNS, _NO_NAME.format(host)) from error
        texts = tuple(dict.fromkeys(_texts(found)))
        if not texts:
            raise LookUpFailed(ErrorKind.DNS, _NO_ADDRESS.format(host))
        aliases_s = [alias.ttl for alias in found.cnames]
        return HostAddresses(texts, min([*aliases_s, *(node.ttl for node in found.nodes)]))

    def _next_channel(self) -> aiodns.DNSResolver:
        """The channel for the next look-up. A replaced channel ends when its last look-up has ended."""
        if self._channel is None or self._asked >= NAMES_PER_CHANNEL:
            self._channel, self._asked = aiodns.DNSResolver(**{"tries": TRIES, **self._options}), 0
        self._asked += 1
        return self._channel

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()


def _texts(found: Any) -> Iterator[str]:
    """The addresses of an ``AddrInfoResult``. A link-local address of IPv6 has its zone behind it (RFC 4007, 11)."""
    for node in found.nodes:
        text = node.addr[0].decode("ascii")
        yield f"{text}%{node.addr[3]}" if len(node.addr) > 3 and node.addr[3] else text
