"""Hostile clients of the RUP server, and hostile servers that ``crawler rup`` asks."""

from __future__ import annotations

from dataclasses import dataclass

from crawler.demo.pages import Page, redirect
from tests.hostile.behaviour import HEALTHY, HTML, OK, PORT, Behaviour, Crawl, Reply, answer, drips, floods, sends
from tests.hostile.html import EVIL

_FORM = b"application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class HostileClient:
    """A request, or a part of one, and the statuses that the server may answer. 0: it closes, or waits for the rest."""

    name: str
    what: str
    octets: bytes
    statuses: frozenset[int]


def _post(body: bytes, kind: bytes = _FORM, *headers: bytes, length: int | None = None) -> bytes:
    fields = [b"POST /rup HTTP/1.1", b"Host: rup.test", b"Content-Type: " + kind, b"Connection: close", *headers]
    fields.append(b"Content-Length: %d" % (len(body) if length is None else length))
    return b"\r\n".join([*fields, b"", body])


def _get(target: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([b"GET " + target + b" HTTP/1.1", b"Host: rup.test", b"Connection: close", *headers, b"", b""])


def _parts(body: bytes) -> bytes:
    return _post(body, b"multipart/form-data; boundary=b")


_REGISTER = b"Action=Register&RobotEmail="
_REFUSED = frozenset({400, 413})
_CUT_OFF = frozenset({0, 400})
_SOME = frozenset({200, 400, 413, 501})

CLIENTS = (
    HostileClient("client-half-head", "sends half a request", b"GET /rup HTTP/1.1\r\nHost: a", _CUT_OFF),
    HostileClient("client-half-form", "sends half a form", _post(b"Action=", length=900), _CUT_OFF),
    HostileClient("client-noise", "sends noise", bytes(range(256)) * 100, _CUT_OFF),
    HostileClient("client-headers", "sends 1 MB of headers", _get(b"/rup", *[b"X-A: " + b"y" * 1000] * 1000),
                  frozenset({0, 400, 431})),
    HostileClient("client-target", "sends a target of 1 MB", _get(b"/rup?" + b"a" * 1_000_000),
                  frozenset({0, 400, 414})),
    HostileClient("client-length", "announces a negative length", _post(b"", length=-1), _CUT_OFF),
    HostileClient("client-smuggle", "sends a length beside chunks",
                  _post(b"0\r\n\r\nGET /x HTTP/1.1\r\n\r\n", _FORM, b"Transfer-Encoding: chunked"), _CUT_OFF),
    HostileClient("client-large", "sends a form of 10 MB", _post(b"a=" + b"b" * 10_000_000), frozenset({0, 400, 413})),
    HostileClient("client-fields", "sends a form of 5,000 fields", _post(b"&".join([b"a=b"] * 5000)), _REFUSED),
    HostileClient("client-multipart", "sends 64 kB that made the reader of parts quadratic",
                  _parts(b"--b\r\nContent-Disposition: form-data" + b'; name="a"' * 5500 + b"\r\n\r\nx\r\n--b--"),
                  _REFUSED),
    HostileClient("client-boundaries", "sends 12,000 boundaries", _parts(b"--b\r\n" * 12_000), _REFUSED),
    HostileClient("client-nested", "nests messages in a form",
                  _parts(b"--b\r\n" + b"Content-Type: message/rfc822\r\n\r\n" * 2000 + b"\r\n--b--"), _REFUSED),
    HostileClient(
        "client-boundary-none", "sends parts without a boundary", _post(b"--b", b"multipart/form-data"), _REFUSED,
    ),
    HostileClient("client-type", "sends JSON", _post(b"{}", b"application/json"), _REFUSED),
    HostileClient("client-no-action", "sends no action", _post(b"a=b"), frozenset({400, 501})),
    HostileClient("client-action", "asks for an unknown action", _post(b"Action=Evil"), frozenset({501})),
    HostileClient("client-action-evil", "writes on the terminal by its action", _post(b"Action=%1B%5D52%9B2J%0D%0A"),
                  frozenset({400, 501})),
    HostileClient("client-email-lines", "has line feeds in its address",
                  _post(_REGISTER + b"a@b.example%0D%0ABcc:x@y.example"), _REFUSED),
    HostileClient("client-email-many", "has two addresses", _post(_REGISTER + b"a@b.example,c@d.example"), _REFUSED),
    HostileClient(
        "client-email-long", "has an address of 10 kB", _post(_REGISTER + b"a" * 10_000 + b"@b.example"), _REFUSED,
    ),
    HostileClient("client-pattern", "excludes by a pattern that makes matchers run away",
                  _post(_REGISTER + b"a@b.example&Exclude=(a%2B)%2B%24"), _SOME),
    HostileClient("client-pattern-large", "excludes by a pattern that expands",
                  _post(_REGISTER + b"a@b.example&Exclude=" + b"(a{1000}){1000}" * 10), _REFUSED),
    HostileClient(
        "client-patterns", "excludes by 3,000 patterns", _post(_REGISTER + b"a@b.example&Exclude=" + b"a+" * 3000,
    ),
                  _SOME),
    HostileClient("client-key", "guesses a key",
                  _post(b"Action=Unregister&RegistrationKey=x&RegisteredRobotEmail=a@b.example"), _REFUSED),
    HostileClient(
        "client-span", "asks for the changes of 10^30 days", _get(b"/rup?Action=GetIndex&Span=1" + b"0" * 30 + b"-day",
    ),
                  _REFUSED),
    HostileClient("client-path", "asks for another file", _get(b"/../../etc/passwd"), frozenset({400, 404})),
)  # fmt: skip


def _offers(name: str, what: str, reply: Reply, cgi: Reply = b"") -> Behaviour:
    site: dict[str, Reply] = {"/rupinfo.txt": reply, "/cgi": cgi}
    return Behaviour(f"rup-{name}", what, {}, site, crawl=Crawl.RUP, most_requests=30)


def _info(text: str, name: str = "") -> Page:
    cgi = f"RUP-CGI: http://rup-{name}.test:{PORT}/cgi\n" if name else ""
    return Page(cgi + text, content_type="text/plain")


#: Servers with which the robot may register: the text of a key has no meaning.
REGISTERING = {"rup-cgi-key-evil"}

#: Servers that the robot asks: any other must end `crawler rup register` with exit code 1 and one clean sentence.
BEHAVIOURS = (
    _offers("silent", "never answers for rupinfo.txt", sends(hang=True)),
    _offers("flood", "sends a rupinfo.txt without end", floods(OK + b"Content-Type: text/plain\r\n\r\n", b"X: y\n")),
    _offers("page", "sends a page", Page("<title>x</title>")),
    _offers("evil", "writes on the terminal by each field", _info(
        f"RUP-CGI: {EVIL}\nAuthentifier: {EVIL}\nLatency: {EVIL}\nMaxQuerySpan: {EVIL}\nExclude: {EVIL}\n{EVIL}: x\n")),
    _offers("authentifier", "wants an authentication that writes on the terminal",
            _info(f"Authentifier: a{EVIL[:8]}b\n", "authentifier")),
    _offers("elsewhere", "names a healthy site as its server", _info(f"RUP-CGI: {HEALTHY}/cgi\n")),
    _offers("file", "names a file as its server", _info("RUP-CGI: file:///etc/passwd\n")),
    _offers("circle", "redirects in a circle", redirect("/rupinfo.txt")),
    _offers("cgi-silent", "never answers a registration", _info("", "cgi-silent"), sends(hang=True)),
    _offers("cgi-flood", "answers a registration without end", _info("", "cgi-flood"), floods(HTML + b"\r\n", b"<p>")),
    _offers("cgi-drips", "drips the answer to a registration", _info("", "cgi-drips"), drips(HTML + b"\r\n", b"x")),
    _offers("cgi-evil", "refuses in words that write on the terminal", _info("", "cgi-evil"),
            answer(f"<h1>{EVIL}</h1>".encode(), status=b"400 Bad")),
    _offers("cgi-no-key", "sends no key", _info("", "cgi-no-key"), answer(b"Welcome!")),
    _offers("cgi-key", "sends a key of 1 MB", _info("", "cgi-key"), answer(b"RegistrationKey: " + b"k" * 1_000_000)),
    _offers("cgi-key-evil", "sends a key that writes on the terminal", _info("", "cgi-key-evil"),
            answer(f"RegistrationKey: {EVIL}x<br>".encode())),
    _offers(
        "cgi-away", "redirects a registration to a healthy site", _info("", "cgi-away"), redirect(f"{HEALTHY}/cgi"),
    ),
    _offers("patterns", "excludes by patterns that make matchers run away", _info("Exclude: (a+)+$\n" * 500)),
)  # fmt: skip
