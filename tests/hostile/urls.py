"""Links that mislead: other schemes, other machines, other people's forbidden pages, and text that is hardly a URL."""

from __future__ import annotations

from crawler.demo.pages import Page
from tests.hostile.behaviour import FETCHED, FORBIDDEN, HEALTHY, PORT, Behaviour, End, excluded, failed
from tests.hostile.html import EVIL

_SCOPE = excluded("scope")
_TRAP = excluded("trap")
_LONG = "x" * 3000

#: The name, what the host links to, the link, and the URL that the store must know for it, with its end. ``None``: no
#: URL may come of it.
_LINKS: tuple[tuple[str, str, str, tuple[str, End] | None], ...] = (
    ("forbidden", "a healthy site's forbidden page", HEALTHY + FORBIDDEN, (HEALTHY + FORBIDDEN, excluded("robots"))),
    ("forbidden-escaped", "the same with escapes", f"{HEALTHY}/%70rivate/%64elete?id=1",
     (f"{HEALTHY}/%70rivate/%64elete?id=1", excluded("robots"))),
    ("forbidden-dots", "the same with dot segments", f"{HEALTHY}/x/%2e%2e/./private/delete?id=1",
     (HEALTHY + FORBIDDEN, excluded("robots"))),
    ("metadata", "the address of a cloud's metadata", "http://169.254.169.254/latest/meta-data/",
     ("http://169.254.169.254/latest/meta-data/", _SCOPE)),
    ("octal", "loopback in octal", "http://0177.0.0.1:81/", ("http://127.0.0.1:81/", _SCOPE)),
    ("integer", "loopback as one number", "http://2130706433:81/", ("http://127.0.0.1:81/", _SCOPE)),
    ("ipv6", "loopback in IPv6", "http://[::1]:81/", ("http://[::1]:81/", _SCOPE)),
    ("mapped", "loopback mapped into IPv6", "http://[::ffff:127.0.0.1]:81/", ("http://[::ffff:7f00:1]:81/", _SCOPE)),
    ("zone", "an address with a zone", "http://[fe80::1%25eth0]/", None),
    ("userinfo", "a URL with a password", "http://user:secret@healthy00.test/", None),
    ("userinfo-host", "a host in the place of a user", f"http://healthy00.test@off.invalid:{PORT}/", None),
    ("file", "a file", "file:///etc/passwd", None),
    ("javascript", "a script", "javascript:alert(1)", None),
    ("data", "a data URL", "data:text/html,<title>evil</title>", None),
    ("gopher", "a gopher", "gopher://127.0.0.1:25/_HELO", None),
    ("port-0", "port 0", "http://urls-port-0.test:0/", ("http://urls-port-0.test:0/", excluded("port"))),
    ("port-high", "port 99999", "http://urls-port-high.test:99999/", None),
    ("homograph", "a name in Cyrillic", "http://хealthy00.test/", ("http://xn--ealthy00-fdh.test/", _SCOPE)),
    ("punycode", "a name that is no punycode", "http://xn--a.xn--/", None),
    ("label", "a label of 64 characters", f"http://{'a' * 64}.urls-label.test/", None),
    ("bidi", "a name with marks of direction", "http://\u202etset.evil/", None),
    ("trailing-dot", "its own name with a dot", f"http://urls-trailing-dot.test.:{PORT}/dot", None),
    ("upper", "its own name in capitals", f"HTTP://URLS-UPPER.TEST:{PORT}/x/../y",
     (f"http://urls-upper.test:{PORT}/y", failed("not_found"))),
    ("backslashes", "a path with backslashes", "\\\\off.invalid\\x", ("http://off.invalid/x", _SCOPE)),
    ("slashes", "a URL with too many slashes", "http:////off.invalid///x", ("http://off.invalid///x", _SCOPE)),
    ("newlines", "a URL with line feeds and tabs", "/a\n\tb\r\nc", ("/abc", failed("not_found"))),
    ("crlf", "an escaped line feed", "/%0d%0aHost:%20evil", ("/%0d%0aHost:%20evil", failed("not_found"))),
    ("nul", "NUL in its path", "/a\0b%00c", ("/a%EF%BF%BDb%00c", failed("not_found"))),
    ("escape", "escapes of a terminal in its path", f"/a{EVIL[:1]}b", ("/a%1Bb", failed("not_found"))),
    ("bad-escape", "broken escapes", "/%zz%e0%a4%a", ("/%zz%e0%a4%a", failed("not_found"))),
    ("dots", "steps above the root", "/../../../etc/passwd", ("/etc/passwd", failed("not_found"))),
    ("fragment", "a fragment of 1 MB", "/f#" + "x" * 1_000_000, ("/f", failed("not_found"))),
    ("long", "a path of 3,000 characters", f"/{_LONG}", (f"/{_LONG}", _TRAP)),
    ("longer", "a path of 1 MB", f"/{'x' * 1_000_000}", None),
    ("query", "a query of 2,000 characters", f"/?q={_LONG[:2000]}", (f"/?q={_LONG[:2000]}", _TRAP)),
    ("parameters", "a query of 40 parameters", "/?" + "&".join(f"a{n}=1" for n in range(40)),
     ("/?" + "&".join(f"a{n}=1" for n in range(40)), _TRAP)),
)  # fmt: skip

_QUICK = {"forbidden", "forbidden-escaped", "metadata", "octal", "userinfo", "crlf", "long", "nul"}


def _links_to(name: str, what: str, link: str, url: tuple[str, End] | None) -> Behaviour:
    page = f'<meta charset=utf-8><a href="{link.replace("&", "&amp;")}">link</a>'
    return Behaviour(
        f"urls-{name}", f"links to {what}", {"/": FETCHED, **({} if url is None else dict((url,)))},
        {"/": Page(page, content_type="text/html")}, most_requests=6, quick=name in _QUICK,
    )  # fmt: skip


BEHAVIOURS = tuple(_links_to(*one) for one in _LINKS)
