"""Names whose DNS answers are hostile, and the few octets of DNS that this needs (RFC 1035)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from ipaddress import ip_address

from crawler.demo.pages import Page
from tests.hostile.behaviour import FETCHED, Behaviour, Crawl, End, excluded, failed

_A, _CNAME, _AAAA = 1, 5, 28


def name_of(query: bytes) -> str:
    """The name in the question, in lower case."""
    labels, at = [], 12
    while at < len(query) and (size := query[at]):
        labels.append(query[at + 1 : at + 1 + size].decode("latin-1").lower())
        at += size + 1
    return ".".join(labels)


def no_such_name(query: bytes) -> bytes:
    """NXDOMAIN."""
    return _reply(query, code=3)


def _reply(query: bytes, *answers: bytes, code: int = 0, flags: int = 0x8180) -> bytes:
    """An answer to ``query`` with these resource records."""
    end = query.index(b"\0", 12) + 5
    counts = (1).to_bytes(2) + len(answers).to_bytes(2) + bytes(4)
    return query[:2] + (flags | code).to_bytes(2) + counts + query[12:end] + b"".join(answers)


def _record(kind: int, data: bytes, name: bytes = b"\xc0\x0c", ttl: int = 0) -> bytes:
    return name + kind.to_bytes(2) + (1).to_bytes(2) + ttl.to_bytes(4) + len(data).to_bytes(2) + data


def _address(query: bytes, *texts: str) -> bytes:
    """The addresses of the asked kind, IPv4 or IPv6."""
    asked = int.from_bytes(query[query.index(b"\0", 12) + 1 :][:2])
    found = [ip_address(text).packed for text in texts]
    return _reply(query, *(_record(asked, packed) for packed in found if len(packed) == (4 if asked == _A else 16)))


def _labels(name: str) -> bytes:
    return b"".join(bytes((len(label),)) + label.encode() for label in name.split(".")) + b"\0"


def _private(texts: tuple[str, ...], query: bytes, _: str) -> bytes:
    return _address(query, *texts)


Answers = Callable[[bytes, str], bytes | None]
_GIVEN_UP = failed("robots_given_up", says="(dns")
_NO_ANSWER = failed("robots_given_up")
_REFUSED = excluded("address")

_NAMES: tuple[tuple[str, str, Answers, End], ...] = (
    ("good", "has an address", _address, FETCHED),
    ("nxdomain", "does not exist", lambda query, _: no_such_name(query), failed("no_name")),
    ("servfail", "has a server that fails", lambda query, _: _reply(query, code=2), _GIVEN_UP),
    ("refused", "has a server that refuses", lambda query, _: _reply(query, code=5), _GIVEN_UP),
    ("silent", "has a server that never answers", lambda query, _: None, _NO_ANSWER),
    ("empty", "has no address", lambda query, _: _reply(query), _GIVEN_UP),
    ("garbage", "has a server that answers garbage", lambda query, _: query[:2] + b"\xff" * 60, _NO_ANSWER),
    ("short", "has a server that answers three octets", lambda query, _: query[:3], _NO_ANSWER),
    ("pointer-loop", "has an answer whose name points at itself",
     lambda query, _: _reply(query, _record(_A, b"\x7f\0\0\1", b"\xc0\x1c" * 2)), _NO_ANSWER),
    ("cname-loop", "is an alias of itself",
     lambda query, _: _reply(query, _record(_CNAME, b"\xc0\x0c")), _GIVEN_UP),
    ("cname-away", "is an alias of a name that does not exist",
     lambda query, _: _reply(query, _record(_CNAME, _labels("off.invalid"))), _GIVEN_UP),
    ("truncated", "has an answer for TCP alone, where nobody listens",
     lambda query, _: _reply(query, flags=0x8380), _NO_ANSWER),
    ("unspecified", "has the address 0.0.0.0", lambda query, _: _address(query, "0.0.0.0"), _REFUSED),
    ("multicast", "has a multicast address", lambda query, _: _address(query, "224.0.0.1", "ff02::1"), _REFUSED),
    ("broadcast", "has the broadcast address", lambda query, _: _address(query, "255.255.255.255"), _REFUSED),
    ("mixed", "has a refused address before its own", lambda query, own: _address(query, "0.0.0.0", own), FETCHED),
    ("many", "has 100 addresses", lambda query, own: _address(query, own, *["0.0.0.0"] * 99), FETCHED),
    ("wrong-length", "has an address of three octets",
     lambda query, _: _reply(query, _record(_A, b"\x7f\0\0")), _NO_ANSWER),
    ("other-name", "has an answer about another name",
     lambda query, own: _reply(query, _record(_A, ip_address(own).packed, _labels("off.invalid"))),
     FETCHED),
)  # fmt: skip

_MALFORMED = {"garbage", "short", "pointer-loop", "wrong-length"}
_QUICK = {"good", "nxdomain", "unspecified", "cname-loop"}

#: Addresses at which only the crawler's own machine or network can answer.
_PRIVATE = {
    "loopback": ("127.0.0.1", "::1"),
    "ten": ("10.0.0.1",),
    "home": ("192.168.0.1",),
    "middle": ("172.16.0.1",),
    "metadata": ("169.254.169.254",),
    "carrier": ("100.64.0.1",),
    "benchmark": ("198.18.0.1",),
    "future": ("240.0.0.1",),
    "mapped": ("::ffff:10.0.0.1",),
    "nat64": ("64:ff9b::a00:1",),
    "6to4": ("2002:a00:1::1",),
    "link-local": ("fe80::1",),
    "unique-local": ("fc00::1",),
    "documentation": ("2001:db8::1",),
    "all": ("10.0.0.1", "127.0.0.1", "fc00::1"),
}
_SITE = {"/": Page("<title>Found</title>")}

BEHAVIOURS = (
    *(
        Behaviour(f"dns-{name}", what, {"/": end}, _SITE, dns=answers, quick=name in _QUICK,
                  crawl=Crawl.ENDLESS if name in _MALFORMED else Crawl.MAIN)
        for name, what, answers, end in _NAMES
    ),
    *(
        Behaviour(f"dns-at-{name}", f"has the address {texts[0]}", {"/": _REFUSED}, most_requests=0, quick=True,
                  dns=partial(_private, texts), crawl=Crawl.GUARDED)
        for name, texts in _PRIVATE.items()
    ),
)  # fmt: skip
