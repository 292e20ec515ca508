"""The settings of one request: its bounds, and how it is repeated."""

from __future__ import annotations

from dataclasses import dataclass

from crawler.fields.declaration import setting
from crawler.fields.kinds import FLAG, MORE_THAN_0_SECONDS, SECONDS, TEXT, whole
from crawler.frontier.request_values import PROXY, RESOLVE, TYPES, VERIFY
from crawler.reasons import ReasonCode


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """Bounds on one request, and how failed requests are repeated.

    The pauses before the retries are ``retry_pause_s``, 3 × that, 9 × that and so on.
    """

    types: tuple[str, ...] = setting(
        "types",
        ("text/html", "application/xhtml+xml"),
        TYPES,
        "Content types to read; any other type is excluded.",
        "The crawler decides by the headers, before it reads the body. `html`, `pdf` and `text` are short names; "
        "several may stand in one text, as `html,pdf`. A page without a type counts as HTML, as does one of "
        "`application/octet-stream` if its path ends in `.html`, `.htm` or `.xhtml`. Links are followed from "
        "HTML only. Of a PDF file the title and the first 200 pages are read; that needs the extra "
        "`documents`.",
        option="--types",
        decides=(ReasonCode.TYPE,),
    )
    max_body_bytes: int = setting(
        "max_body_bytes",
        10 * 1024 * 1024,
        whole(1),
        "The largest body to accept, in bytes, as sent and as decoded; a larger one fails.",
        "Raise it for sites with very long pages.",
        decides=(ReasonCode.TOO_LARGE,),
    )
    max_redirects: int = setting(
        "max_redirects",
        10,
        whole(0),
        "Redirects to follow in a row.",
        "Each hop is a request of its own, and scope, robots.txt and pace hold for it.",
        decides=(ReasonCode.REDIRECTS,),
    )
    retries: int = setting(
        "retries",
        3,
        whole(0),
        "How often a request is retried after a temporary failure.",
        "Temporary are 5xx, 408, 425, 429, a timeout and a broken connection.",
    )
    retry_pause_s: float = setting(
        "retry_pause",
        10.0,
        SECONDS,
        "The pause of a URL before its first retry.",
        "Each further pause is three times as long.",
    )
    connect_timeout_s: float = setting(
        "connect_timeout",
        10.0,
        MORE_THAN_0_SECONDS,
        "The time to connect to one address, TLS included.",
    )
    read_timeout_s: float = setting(
        "read_timeout",
        30.0,
        MORE_THAN_0_SECONDS,
        "The longest silence before an answer and between its bytes.",
    )
    total_timeout_s: float = setting(
        "total_timeout",
        120.0,
        MORE_THAN_0_SECONDS,
        "The time for a whole request, from connecting to the last byte. A look-up of the name may take as long.",
    )
    resolve: tuple[tuple[str, str], ...] = setting(
        "resolve",
        (),
        RESOLVE,
        "Fix the address of a name, such as '*.test=127.0.0.1'; may be repeated.",
        'A pattern is a host name, "*.test" for all names below test, or "*". This is meant for test servers. A '
        "private address needs `fetch.allow_private`, too.",
        option="--resolve",
        option_help="Fix an address, as '*.test=127.0.0.1'.",
        decides=(ReasonCode.CONTACT, ReasonCode.ROBOTS_GIVEN_UP, ReasonCode.NO_NAME, ReasonCode.ADDRESS),
    )
    proxy: str = setting(
        "proxy",
        "",
        PROXY,
        "Send all requests through this HTTP proxy.",
        "The proxy looks names up and connects, so only the proxy can keep the crawler from private addresses. The "
        "crawler refuses only addresses and loopback names that stand in a URL. A user name and password are not "
        "supported. The variables HTTP_PROXY, HTTPS_PROXY and ALL_PROXY are ignored.",
        option="--proxy",
        decides=(ReasonCode.ROBOTS_GIVEN_UP, ReasonCode.NO_NAME, ReasonCode.ADDRESS),
    )
    ca_file: str = setting(
        "ca_file",
        "",
        TEXT,
        "A PEM file of certificate authorities that count beside those of the system.",
        "It is for sites whose certificates a private authority has issued.",
        decides=(ReasonCode.CERTIFICATE,),
    )
    verify_off: tuple[str, ...] = setting(
        "verify",
        (),
        VERIFY,
        "Hosts whose certificates are not verified, such as 'intranet.example=off'.",
        'A pattern is a host name, "*.test" for all names below test, or "*". Anyone on the way can then change '
        "what such a host sends, its robots.txt included. The audit and the report warn of it. Name the authority "
        "of the host with `fetch.ca_file` where you can.",
        decides=(ReasonCode.CERTIFICATE,),
    )
    allow_private: bool = setting(
        "allow_private",
        False,
        FLAG,
        "Permit loopback, private and other special addresses.",
        "A page might otherwise lure the crawler to them. Use it for a crawl of your own network.",
        option="--allow-private",
        option_help="Permit loopback and private addresses.",
        decides=(ReasonCode.ADDRESS,),
    )
