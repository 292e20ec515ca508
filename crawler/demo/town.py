"""The sites of Aldermere. Each shows one case that a polite crawler must handle, with texts of a file beside."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import NamedTuple

from crawler.demo.pages import Asked, Fault, Handler, Page, Site, first, plain, redirect, unavailable
from crawler.model import Headers


class Item(NamedTuple):
    """One page: its name in the URL, its title, a second line and a text."""

    name: str
    title: str
    note: str
    text: str


def _items() -> dict[str, tuple[Item, ...]]:
    _, *parts = (files("crawler.demo") / "texts.txt").read_text(encoding="utf-8").strip().split("\n\n")
    groups = (part.split("\n") for part in parts)
    return {name: tuple(Item(*line.strip().split(" | ")) for line in lines) for name, *lines in groups}


#: The pages of each kind: town, books, goods, news, exhibits, doctors, poems.
ITEMS = _items()


Url = Callable[[str, str], str]
"""Returns the URL of (host, path) with the server's port."""

WWW, LIBRARY, MIRROR, SHOP = "www.demo.test", "library.demo.test", "mirror.demo.test", "shop.demo.test"
COUNCIL, GAZETTE, MUSEUM, CLINIC = "council.demo.test", "gazette.demo.test", "museum.demo.test", "clinic.demo.test"
MILL, ARCHIVE, CALENDAR, OLD = "mill.demo.test", "archive.demo.test", "calendar.demo.test", "old.demo.test"

MUSEUM_CRAWL_DELAY_S = 0.8


@dataclass(frozen=True, slots=True)
class Promise:
    """Paths that a polite crawler never requests: those that ``forbidden`` matches from their start."""

    what: str
    forbidden: re.Pattern[str]

    def breaks(self, path: str) -> bool:
        """Whether a request for ``path`` breaks the promise."""
        return self.forbidden.match(path) is not None


@dataclass(frozen=True, slots=True)
class TownSite:
    """A site, the case that it shows, the paths that a complete crawl requests, and those that it must not.

    A crawl of an ``endless`` site ends only at a limit on depth or pages.
    """

    host: str
    about: str
    pages: Site
    expected: frozenset[str]
    promises: tuple[Promise, ...] = ()
    crawl_delay_s: float = 0.0
    endless: bool = False


@dataclass(slots=True)
class _SiteBuilder:
    """An unfinished site: its pages by path, and the paths closed to robots."""

    pages: dict[str, Page | Handler] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)

    def put(self, path: str, page: Page | Handler, *, closed: bool = False) -> None:
        self.pages[path] = page
        if closed:
            self.closed.add(path)

    def shelf(self, folder: str, items: Iterable[Item], host: str) -> None:
        """A page for every item, linked to the start page and to the next item."""
        row = list(items)
        for item, following in zip(row, [*row[1:], row[0]], strict=True):
            self.put(f"{folder}{item.name}.html", _item_page(item, host, f"{folder}{following.name}.html"))

    def expected(self, *broken: str) -> frozenset[str]:
        """The open paths, and the paths of broken links."""
        return frozenset(self.pages.keys() - self.closed | set(broken))


def build_town(url: Url) -> tuple[TownSite, ...]:
    """Every site of the town, with absolute links made by ``url``."""
    sites = (_www, _library, _mirror, _shop, _council, _gazette, _museum, _clinic, _mill, _archive, _calendar, _old)
    return tuple(make(url) for make in sites)


def _www(url: Url) -> TownSite:
    site = _SiteBuilder()
    neighbours = [
        (LIBRARY, "The library"), (MIRROR, "The library's second address"), (SHOP, "The general store"),
        (COUNCIL, "The town council"), (GAZETTE, "The Gazette"), (MUSEUM, "The museum"), (CLINIC, "The doctor"),
        (MILL, "The mill"), (ARCHIVE, "The archive"), (CALENDAR, "What's on"), (OLD, "Our old site"),
    ]  # fmt: skip
    own = [(f"/{item.name}.html", item.title) for item in ITEMS["town"]]
    odd = [
        ("/welcome", "Welcome"), ("/tourism.html", "For tourists"), ("/carousel", "The carousel"),
        ("/town-map-1987.html", "A map of 1987"), ("mailto:clerk@demo.test", "Write to the clerk"),
    ]  # fmt: skip
    start = _list("On this site", own + odd) + _list("In town", [(url(host, "/"), text) for host, text in neighbours])
    head = "<meta name=description content='A town by a river.'><meta name=keywords content='town,fog'>"
    site.put("/", _page("Aldermere", start, head=head))
    site.put("/robots.txt", plain("# Everybody is welcome.\nUser-agent: *\nDisallow:\n"))
    site.shelf("/", ITEMS["town"], WWW)
    site.put("/welcome", redirect("/home", 301))
    site.put("/home", redirect(url(WWW, "/")))
    site.put("/carousel", redirect("/fairground"))
    site.put("/fairground", redirect("/carousel"))
    refresh = "<meta http-equiv=refresh content='3; url=/visit.html'>"
    site.put("/tourism.html", _page("For tourists", "<p>This page has moved.</p>", head=refresh))
    about = "the town: redirects, a redirect loop, a broken link"
    return TownSite(WWW, about, site.pages, site.expected("/town-map-1987.html"))


def _library_pages() -> _SiteBuilder:
    site = _SiteBuilder()
    (poem,) = ITEMS["poems"]
    books = [(f"/books/{item.name}.html", item.title) for item in ITEMS["books"]]
    site.put("/", _page("Aldermere Library", _list("Catalogue", [*books, (f"/{poem.name}.html", "Un poème")])))
    site.shelf("/books/", ITEMS["books"], LIBRARY)
    site.put(f"/{poem.name}.html", _latin1(_item_page(poem, LIBRARY, "/", lang="fr")))
    return site


def _library(url: Url) -> TownSite:
    site = _library_pages()
    site.put("/robots.txt", _main_site(url))
    return TownSite(LIBRARY, "the main site of a mirror; a page in latin-1", site.pages, site.expected())


def _mirror(url: Url) -> TownSite:
    site = _library_pages()
    site.closed.update(site.pages)
    site.put("/robots.txt", _main_site(url))
    promise = Promise("a mirror: its pages are asked of the library instead", re.compile(r"/(?!robots\.txt$)"))
    return TownSite(MIRROR, "a mirror, by its Host line", site.pages, site.expected(), (promise,))


def _shop(url: Url) -> TownSite:
    site = _SiteBuilder()
    goods = [(f"/goods/{item.name}.html", item.title) for item in ITEMS["goods"]]
    sorts = [("/goods?sort=price", "by price"), ("/goods?sort=name", "by name"), ("/prices.pdf", "price list")]
    basket = "<p><a rel=nofollow href='/basket'>Your basket</a></p>"
    site.put("/", _page("The general store", _list("Goods", goods) + _list("Sorted", sorts) + basket))
    site.shelf("/goods/", ITEMS["goods"], SHOP)
    site.put("/goods", _page("Sorted goods", _list("Goods", goods)), closed=True)
    site.put("/prices.pdf", Page(b"%PDF-1.4\n", content_type="application/pdf"), closed=True)
    site.put("/basket", _page("Your basket", "<p>Empty.</p>"), closed=True)
    site.put("/robots.txt", plain("User-agent: *\nDisallow: /*?sort=\nDisallow: /*.pdf$\n"))
    promises = (
        Promise("Disallow: /*?sort= (a wildcard, RFC 9309)", re.compile(r".*\?sort=")),
        Promise("Disallow: /*.pdf$ (wildcard and end anchor, RFC 9309)", re.compile(r".*\.pdf$")),
        Promise("rel=nofollow on the only link to the basket", re.compile(r"/basket")),
    )
    return TownSite(SHOP, "rules that only RFC 9309 understands", site.pages, site.expected(), promises)


def _council(url: Url) -> TownSite:
    site = _SiteBuilder()
    links = [
        ("/minutes.html", "Minutes"), ("/staff.html", "Staff"), ("/partners.html", "Partners"),
        ("/bylaws.txt", "By-laws"), ("/private/", "Members only"), ("/private/budget.html", "Draft budget"),
        ("/private/open-letter.html", "Open letter"),
    ]  # fmt: skip
    site.put("/", _page("Aldermere Town Council", _list("Documents", links)))
    site.put("/minutes.html", _page("Minutes", "<p>The meeting opened late and closed early.</p>"))
    site.put("/staff.html", _page("Staff", _list("Staff", [("/clerk.html", "The clerk")]), head=_robots("noindex")))
    site.put("/clerk.html", _page("The clerk", "<p>Tuesdays.</p>", headers=(("X-Robots-Tag", "noindex"),)))
    tender = _list("Open now", [("/tender.html", "Tender")])
    site.put("/partners.html", _page("Partners", tender, head=_robots("noindex, nofollow")))
    site.put("/tender.html", _page("Tender", "<p>For partners.</p>"), closed=True)
    site.put("/bylaws.txt", plain("1. No bell shall be rung for amusement.\n"))
    site.put("/private/", _page("Members only", "<p>Please log in.</p>"), closed=True)
    site.put("/private/budget.html", _page("Draft budget", "<p>Not yet.</p>"), closed=True)
    site.put("/private/open-letter.html", _page("An open letter", "<p>To whom it may concern.</p>"))
    site.put("/robots.txt", plain("User-agent: *\nAllow: /private/open-letter.html\nDisallow: /private/\n"))
    promises = (
        Promise("the council closed /private/ except one letter", re.compile(r"/private/(?!open-letter\.html)")),
        Promise("a page that says nofollow has the only link to it", re.compile(r"/tender\.html")),
    )
    return TownSite(COUNCIL, "a closed directory; noindex and nofollow", site.pages, site.expected(), promises)


def _gazette(url: Url) -> TownSite:
    site = _SiteBuilder()
    stories = [(f"/news/{item.name}.html", item.title) for item in ITEMS["news"]]
    links = [*stories, ("/1923.pdf", "The first issue"), ("/drafts/tomorrow.html", "Tomorrow's front page")]
    head = "<meta name=document-state content=dynamic>"
    site.put("/", _page("The Aldermere Gazette", _list("Today", links), head=head))
    site.shelf("/news/", ITEMS["news"], GAZETTE)
    site.put("/1923.pdf", Page(b"%PDF-1.4\n" + b"%" * 5000, content_type="application/pdf"))
    site.put("/drafts/tomorrow.html", _page("Tomorrow", "<p>Unwritten.</p>"), closed=True)
    site.put("/robots.txt", first(2, unavailable(1), plain("User-agent: *\nDisallow: /drafts/\n")))
    promise = Promise("Disallow: /drafts/, once robots.txt could be fetched", re.compile(r"/drafts/"))
    about = "robots.txt answers 503 twice, then recovers; a PDF"
    return TownSite(GAZETTE, about, site.pages, site.expected(), (promise,))


def _museum(url: Url) -> TownSite:
    site = _SiteBuilder()
    rooms = [(f"/exhibits/{item.name}.html", item.title) for item in ITEMS["exhibits"]]
    site.put("/", _page("Aldermere Museum", _list("Exhibits", rooms)))
    site.shelf("/exhibits/", ITEMS["exhibits"], MUSEUM)
    site.put("/robots.txt", plain(f"User-agent: *\nCrawl-delay: {MUSEUM_CRAWL_DELAY_S}\nDisallow:\n"))
    about = f"Crawl-delay: {MUSEUM_CRAWL_DELAY_S} s"
    return TownSite(MUSEUM, about, site.pages, site.expected(), crawl_delay_s=MUSEUM_CRAWL_DELAY_S)


def _clinic(url: Url) -> TownSite:
    site = _SiteBuilder()
    pages = [(f"/{item.name}.html", item.title) for item in ITEMS["doctors"]]
    site.put("/", _page("The doctor", _list("Please read", pages), delay_s=0.5))
    for item in ITEMS["doctors"]:
        site.put(f"/{item.name}.html", _item_page(item, CLINIC, "/", delay_s=0.5))
    return TownSite(CLINIC, "a slow site without robots.txt", site.pages, site.expected("/robots.txt"))


def _mill(url: Url) -> TownSite:
    site = _SiteBuilder()
    links = [("/orders.html", "Orders"), ("/turbine.html", "Turbine"), ("/weir.html", "Weir"), ("/flour.html", "Flour")]
    site.put("/", _page("The mill", _list("Works", links)))
    site.put("/orders.html", Page("<title>Error</title><p>The order book is wet.", status=500))
    site.put("/turbine.html", Page(fault=Fault.RESET))
    site.put("/weir.html", Page("<title>The weir</title><p>Water level:" + " high" * 40, fault=Fault.CUT))
    site.put("/flour.html", first(1, unavailable(2), _page("Flour", "<p>Fine, and finer.</p>")))
    site.put("/robots.txt", plain(""))
    about = "a failing site: 500, a reset, a cut body, a 503 with Retry-After"
    return TownSite(MILL, about, site.pages, site.expected())


def _archive(url: Url) -> TownSite:
    site = _SiteBuilder()
    site.put("/", _page("The archive", "<p>By appointment.</p>"), closed=True)
    site.put("/robots.txt", Page("<title>Forbidden</title>", status=403))
    promise = Promise("robots.txt answers 403: the whole archive is closed", re.compile(r"/(?!robots\.txt$)"))
    return TownSite(ARCHIVE, "robots.txt answers 403", site.pages, site.expected(), (promise,))


def _calendar(url: Url) -> TownSite:
    pages: dict[str, Page | Handler] = {
        "/": _page("What's on", _list("Look", [("/2026/11/", "This month"), ("/rooms/", "Rooms")])),
        "/robots.txt": plain(""),
        "*": _endless,
    }
    about = "a trap: an endless calendar, paths that grow"
    return TownSite(CALENDAR, about, pages, frozenset(("/", "/robots.txt")), endless=True)


def _endless(asked: Asked) -> Page:
    if month := re.fullmatch(r"/([0-9]{4,6})/([0-9]{2})/", asked.path):
        year, number = int(month[1]), int(month[2])
        after = f"/{year + number // 12}/{number % 12 + 1:02}/"
        return _page(f"{year}-{number:02}", "<p>Nothing yet.</p>" + _list("", [(after, "Next month")]))
    if re.fullmatch(r"(/[a-z]+)+/", asked.path):
        return _page("A room", _list("Doors", [("hall/", "The hall"), ("stairs/", "The stairs")]))
    return Page("<title>Not found</title>", status=404)


def _old(url: Url) -> TownSite:
    paths = ("/", "/robots.txt")
    pages = {path: redirect(url(WWW, path), 301) for path in paths}
    return TownSite(OLD, "a site that moved, robots.txt and all", pages, frozenset(paths))


def _page(
    title: str,
    body: str,
    *,
    head: str = "",
    lang: str = "en",
    headers: Headers = (),
    delay_s: float = 0.0,
) -> Page:
    name = escape(title, quote=False)
    text = (
        f"<!doctype html>\n<html lang={lang}>\n<head><meta charset=utf-8><title>{name}</title>{head}</head>\n"
        f"<body>\n<h1>{name}</h1>\n{body}\n</body>\n</html>\n"
    )
    return Page(text, headers=headers, delay_s=delay_s)


def _item_page(item: Item, host: str, following: str, *, lang: str = "en", delay_s: float = 0.0) -> Page:
    place = host.partition(".")[0]
    body = (
        f"<p><em>{escape(item.note, quote=False)}</em></p>\n<p>{escape(item.text, quote=False)}</p>\n"
        f"<p><a href='/'>The {place}</a> · <a href='{following}'>Next</a></p>"
    )
    return _page(item.title, body, lang=lang, delay_s=delay_s)


def _latin1(page: Page) -> Page:
    text = page.octets.decode().replace("charset=utf-8", "charset=iso-8859-1")
    return Page(text.encode("latin-1"), content_type="text/html")


def _list(heading: str, links: Iterable[tuple[str, str]]) -> str:
    rows = "\n".join(f"<li><a href='{escape(href)}'>{escape(text, quote=False)}</a></li>" for href, text in links)
    return f"<h2>{escape(heading, quote=False)}</h2>\n<ul>\n{rows}\n</ul>"


def _main_site(url: Url) -> Page:
    host = url(LIBRARY, "").partition("://")[2]
    return plain(f"User-agent: *\nDisallow: /cgi-bin/\nHost: {host}\n")


def _robots(content: str) -> str:
    return f"<meta name=robots content='{content}'>"
