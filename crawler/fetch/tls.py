"""TLS: one context for all hosts, sessions that are resumed, and hosts whose certificates are not verified.

Reasons and figures: ``docs/decisions/0043-resume-tls-sessions.md``.
"""

from __future__ import annotations

import asyncio
import ctypes
import ssl
import sys
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from crawler.errors import Setting, UsageError
from crawler.model import TlsFacts
from crawler.url import host_matches

#: Sessions that are kept. Each takes some 8 kB of memory.
MOST_SESSIONS = 1000
#: A session gives way to that of another host after this many seconds: servers accept it for five minutes by default
#: (nginx, Apache).
SESSION_S = 300.0
#: The buffer of a TLS connection in uvloop, in bytes. The event loops also ask to read so many octets at once.
BUFFER_BYTES = 256 << 10
#: The most octets that a record of TLS holds (RFC 8446, 5.1). A read of OpenSSL returns those of one record.
_RECORD_BYTES = 16 << 10
_M_MMAP_THRESHOLD = -3  # of malloc.h


class _Connection(ssl.SSLObject):
    """A connection whose reads take memory for one record, and not for the whole buffer of the event loop.

    Python allocates as many octets as a read asks for, and the system would map and unmap a block for each read.
    """

    def read(self, len: int = _RECORD_BYTES, buffer: Any = None) -> Any:  # as in the base
        return super().read(min(len, _RECORD_BYTES), buffer)


class ResumingContext(ssl.SSLContext):
    """A client's context that resumes the last session of a host, if there is one.

    The event loops make each connection by :meth:`wrap_bio` and have no parameter for a session. A resumed handshake
    takes half of the processor time of a full one, but a session costs a fifth of it to keep, so sessions are kept only
    when a connection is closed that another is likely to follow (:func:`keep_session`).
    """

    def __init__(self, _protocol: int) -> None:
        # By host, the one kept first is first. With the loop time from which on it gives way.
        self._sessions: dict[str, tuple[ssl.SSLSession, float]] = {}

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """As in the base class, with the session of ``server_hostname``."""
        if session is None and isinstance(server_hostname, str) and (kept := self._sessions.get(server_hostname)):
            session = kept[0]
        return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)

    def has_room(self, host: str) -> bool:
        """Whether a session of ``host`` is worth reading.

        If more hosts take turns than sessions are kept, each session would be replaced before it is used. So a session
        stays for :data:`SESSION_S`, and those of further hosts are not kept meanwhile.
        """
        if len(self._sessions) < MOST_SESSIONS or host in self._sessions:
            return True
        _, gives_way_at = next(iter(self._sessions.values()))
        return asyncio.get_running_loop().time() >= gives_way_at

    def keep(self, host: str, session: ssl.SSLSession) -> None:
        """Resume ``session`` at the next connection to ``host``."""
        self._sessions.pop(host, None)
        if len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[host] = session, asyncio.get_running_loop().time() + SESSION_S


def keep_session(connection: ssl.SSLObject) -> None:
    """Keep the session of a connection whose answer has arrived. A resumed session is kept already.

    With TLS 1.3 a server sends the ticket of a session after the handshake (RFC 8446, 4.6.1).
    """
    context, host = connection.context, connection.server_hostname
    if not isinstance(context, ResumingContext) or not isinstance(host, str) or connection.session_reused:
        return
    if not context.has_room(host):
        return
    session = connection.session
    if session is not None and (session.has_ticket or session.id):
        context.keep(host, session)


def facts_of(connection: asyncio.BaseTransport) -> TlsFacts | None:
    """The facts about a connection for the request log, as the event loop has read them; ``None`` without TLS.

    A certificate that was not verified is not read.
    """
    if (tls := connection.get_extra_info("ssl_object")) is None:
        return None
    cipher, ends = connection.get_extra_info("cipher"), (connection.get_extra_info("peercert") or {}).get("notAfter")
    return TlsFacts(tls.version() or "", cipher[0] if cipher else "", None if ends is None else _seconds(ends))


#: It takes some 70 microseconds, and hosts have few certificates.
_seconds = lru_cache(maxsize=1000)(ssl.cert_time_to_seconds)


class Tls:
    """The contexts of a client: one that verifies certificates, and one for the hosts of ``unverified`` patterns.

    The authorities are those of the system and of the PEM file ``ca_file``, if it is named. Raises
    :class:`crawler.errors.UsageError` if that file cannot be read.
    """

    def __init__(self, ca_file: str = "", unverified: tuple[str, ...] = ()) -> None:
        self._unverified = unverified
        self._verifying = _context()
        self._is_loaded = False
        if ca_file:
            _load(self._verifying, ca_file)
        self._trusting: ResumingContext | None = None
        if unverified:
            self._trusting = _context()
            self._trusting.check_hostname = False
            self._trusting.verify_mode = ssl.CERT_NONE

    def context(self, host: str) -> ssl.SSLContext:
        """The context for a connection to ``host``."""
        map_buffers()
        if self._trusting is not None and any(host_matches(pattern, host) for pattern in self._unverified):
            return self._trusting
        if not self._is_loaded:
            self._is_loaded = True
            self._verifying.load_default_certs()  # takes some 70 ms: not before a host speaks TLS
        return self._verifying


@cache
def map_buffers() -> None:
    """Have glibc map the buffer of each TLS connection by itself, and unmap it when the connection is closed.

    Only the pages that were used take memory. On the heap, to which glibc changes after the first buffer was freed, a
    buffer lies on pages that other objects have used, and small objects that outlive it keep its pages.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):  # musl has none
        libc.mallopt(_M_MMAP_THRESHOLD, BUFFER_BYTES)


def _context() -> ResumingContext:
    """A context that verifies certificates and names, from TLS 1.2 on."""
    made = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    made.sslobject_class = _Connection
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    return made


def _load(context: ssl.SSLContext, ca_file: str) -> None:
    try:
        context.load_verify_locations(Path(ca_file))
    except ssl.SSLError:
        problem: Any = "holds no certificate in PEM form"
    except OSError as error:
        problem = f"cannot be read: {(error.strerror or str(error)).lower()}"
    else:
        return
    raise UsageError(Setting("fetch.ca_file"), f": {ca_file} {problem}")
