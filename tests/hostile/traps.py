"""Sites without an end: calendars, sessions, facets, wildcard names, and pages that name ever new pages."""

from __future__ import annotations

from tests.hostile.behaviour import FETCHED, PORT, Behaviour, End, Exchange, Handler, Site, answer, excluded

#: The limit of the crawl on pages of a site, and room for robots.txt, a sitemap and failures.
_MOST = 60 + 6


def _pages(link: str) -> Handler:
    """A page at each path, whose links are ``link`` with {path}, {next}, {host} and {port} filled in."""

    async def handler(exchange: Exchange) -> None:
        path = exchange.path if exchange.path != "/" else ""
        digits = path.rpartition("/")[2].rpartition("=")[2]
        following = int(digits) + 1 if digits.isdigit() else 1
        known = {"path": path, "next": following, "host": exchange.host, "port": exchange.port}
        exchange.status = 200
        await exchange.send(answer(f"<title>{following}</title>{link.format(**known)}".encode()))

    return handler


async def _wildcard(exchange: Exchange) -> None:
    """Each name links to a name below it."""
    depth = exchange.host.count(".")
    name = exchange.host if depth < 4 else exchange.host.partition(".")[2]
    links = "".join(f"<a href=http://{n}-{exchange.before}.{name}:{exchange.port}/>x</a>" for n in range(5))
    exchange.status = 200
    await exchange.send(answer(links.encode()))


def _trap(
    name: str, what: str, link: str, ends: dict[str, End] | None = None, *, most: int = _MOST, quick: bool = False
) -> Behaviour:
    site: Site = {"/robots.txt": answer(b"", kind=b"text/plain"), "*": _pages(link)}
    return Behaviour(f"trap-{name}", what, {"/": FETCHED, **(ends or {})}, site, most_requests=most, quick=quick)


BEHAVIOURS: tuple[Behaviour, ...] = (
    _trap("numbers", "has a page for each number", "<a href=/{next}>next</a>", {"/1": FETCHED}),
    _trap("calendar", "has a calendar without end", "<a href=/calendar/2199-01-{next}>later</a>",
          {"/calendar/2199-01-1": excluded("trap")}, most=6, quick=True),
    _trap("session", "has a session id in each link", "<a href=/?PHPSESSID=0123456789abcdef0123456789abcde{next}>x</a>",
          {"/?PHPSESSID=0123456789abcdef0123456789abcde1": excluded("trap")}, most=6, quick=True),
    _trap("deeper", "links to itself one folder deeper", "<a href={path}/x>x</a>", {"/x/x/x": excluded("trap")}, most=8,
          quick=True),
    _trap("pairs", "links to itself two folders deeper", "<a href={path}/a/b>x</a>", {"/a/b/a/b/a/b": excluded("trap")},
          most=8),
    _trap("folders", "has ever new folders", "<a href={path}/{next}>x</a>"),
    _trap("query", "has an ever longer query", "<a href='{path}?q={next}&a=1'>x</a>"),
    _trap("facets", "has 100 facets that combine", "".join(f"<a href='{{path}}/f{n}'>f</a>" for n in range(100))),
    _trap("fan-out", "links to 2,000 pages from each", "".join(f"<a href=/{{next}}{n}>f</a>" for n in range(2000))),
    _trap("frames", "frames itself", "<iframe src=/{next}></iframe>"),
    _trap("refresh", "refreshes to the next page", "<meta http-equiv=refresh content='0;url=/{next}'>",
          {"/": End("fetched", frozenset({"refresh"}))}),
    _trap("canonical", "names the next page as canonical", "<link rel=canonical href=/{next}>",
          {"/11": excluded("redirects")}, most=16, quick=True),
    _trap("nofollow", "links by nofollow", "<a rel=nofollow href=/{next}>x</a>", {"/1": excluded("nofollow")}, most=4),
    _trap("names-away", "links to 1,000 hosts", "".join(f"<a href=//h{n}.off.invalid/>x</a>" for n in range(1000)),
          {"http://h1.off.invalid/": excluded("scope")}, most=4),
    _trap("ports", "links to itself on ports where nothing listens",
          "".join(f"<a href=http://{{host}}:{n}/>x</a>" for n in range(1, 5)), most=4),
    Behaviour("trap-wildcard", "has any name below its own", {"/": FETCHED},
              {"/robots.txt": answer(b"", kind=b"text/plain"), "*": _wildcard}, most_requests=100_000),
    Behaviour("trap-soft-404", "answers any path with the same page", {"/": FETCHED},
              {"/robots.txt": answer(b"", kind=b"text/plain"),
               "*": answer(b"".join(b"<a href=x%d/>x</a>" % n for n in range(50)))}, most_requests=_MOST),
    Behaviour("trap-own-port", "links to itself by its whole URL", {"/": FETCHED, "/a": FETCHED},
              {"*": answer(f"<a href=http://trap-own-port.test:{PORT}/a>x</a>".encode()),
               "/robots.txt": answer(b"", kind=b"text/plain")}, most_requests=4),
)  # fmt: skip
