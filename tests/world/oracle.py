"""The end of every URL of a web that is constant and undisturbed, found without the engine."""

from __future__ import annotations

from collections.abc import Collection

from crawler.model import Reading
from crawler.url import host_of, split
from tests.world.rules import Rules, rules_of
from tests.world.web import READABLE, Host, Kind, Page, RobotsKind, Web

#: A state and the code of its reason.
Ends = frozenset[tuple[str, str]]

_ENDS = {
    Kind.HTML: ("fetched", "fetched"),
    Kind.SLOW: ("fetched", "fetched"),
    Kind.FLAKY: ("fetched", "fetched"),
    Kind.NOINDEX: ("fetched", "noindex"),
    Kind.TO_ITSELF: ("failed", "bad_redirect"),
    Kind.MISSING: ("failed", "not_found"),
    Kind.GONE: ("failed", "gone"),
    Kind.DENIED: ("failed", "client_error"),
    Kind.BROKEN: ("failed", "server_error"),
    Kind.BUSY: ("failed", "client_error"),
    Kind.TARPIT: ("failed", "timeout"),
    Kind.CUT: ("failed", "truncated"),
    Kind.JUNK: ("failed", "protocol"),
    Kind.OTHER_TYPE: ("excluded", "type"),
    Kind.HUGE: ("failed", "too_large"),
    Kind.EMPTY: ("failed", "no_document"),
}
_CLOSED: Ends = frozenset({("excluded", "robots")})
_GIVEN_UP: Ends = frozenset({("failed", "robots_given_up")})
_REFUSED: Ends = frozenset({("excluded", "address")})


def page_end(kind: Kind) -> tuple[str, str] | None:
    """The end of a page that is fetched; ``None`` for a redirect."""
    return _ENDS.get(kind)


def robots_of(web: Web, host: Host) -> Rules | Ends:
    """The rules of a host, or the end of all its URLs."""
    seen = [host.number]
    while True:
        robots = web.host(seen[-1]).robots[0]
        match robots.kind:
            case RobotsKind.FILE | RobotsKind.LATE:
                return rules_of(robots.text)
            case RobotsKind.DENIED if web.plan.robots.reading is not Reading.RFC9309:
                return _CLOSED
            case RobotsKind.NONE | RobotsKind.DENIED:
                return Rules()
            case RobotsKind.REFUSED:
                return _REFUSED if len(seen) == 1 else _REFUSED | _GIVEN_UP
            case RobotsKind.REDIRECT if robots.target not in seen:
                seen.append(robots.target)
            case _:
                return _GIVEN_UP


def expected(web: Web, refuted: Collection[str] = ()) -> dict[str, Ends]:
    """Every URL that the crawl must know in the end, with the ends that are right.

    ``refuted`` are the mirrors whose main sites turned out to be none.
    """
    ends: dict[str, Ends] = {}
    redirects: dict[str, str] = {}
    nofollow: dict[str, None] = {}
    rules: dict[str, Rules | Ends] = {}
    todo = list(web.seeds())
    while todo:
        url = todo.pop()
        if url in ends:
            continue
        name = host_of(url)
        number = web.number_of(name)
        assert number is not None
        if name not in rules:
            rules[name] = robots_of(web, web.host(number))
        known, page = rules[name], web.page_at(url)
        if not isinstance(known, Rules):
            ends[url] = known
        elif (
            known.main_host not in (None, name)
            and name not in refuted
            and web.plan.robots.reading is not Reading.RFC9309
        ):
            ends[url] = frozenset({("excluded", "mirror")})
            todo.append(f"http://{known.main_host}{split(url).path}")
        elif not known.allow(split(url).path, web.plan.robots.reading):
            ends[url] = _CLOSED
        elif page.target:
            redirects[url] = page.target
            ends[url] = frozenset({("redirected", "redirect")})
            todo.append(page.target)
        else:
            ends[url] = frozenset({_ENDS[page.kind]})
            todo += _followed(page, nofollow)
    for url in redirects:
        if _is_circle(url, redirects):
            ends[url] = frozenset({("failed", "redirect_circle")})
    return {**dict.fromkeys(nofollow, frozenset({("excluded", "nofollow")})), **ends}


def _followed(page: Page, nofollow: dict[str, None]) -> list[str]:
    if page.kind not in READABLE:
        return []
    nofollow.update((url, None) for url, follow in page.links if not follow)
    return [url for url, follow in page.links if follow]


def _is_circle(url: str, redirects: dict[str, str]) -> bool:
    seen = set()
    while url in redirects and url not in seen:
        seen.add(url)
        url = redirects[url]
    return url in redirects
