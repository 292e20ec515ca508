"""The parts of the report about sites: what each asked, how they hang together, which of their pages stand out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from crawler.audit.evidence import many
from crawler.inspect.why import REMEDY
from crawler.model import State
from crawler.report.blocks import (
    Cell,
    badge,
    barred,
    card,
    cards,
    counted,
    left_out_note,
    number,
    plain,
    table,
    three,
    url,
    without_empty,
)
from crawler.report.charts import percent
from crawler.report.facts import DoubtfulSite, Facts, Mirror, PageRow, SiteRow
from crawler.report.graph import picture
from crawler.report.markup import Node, el, short
from crawler.report.words import ROBOTS, STATES, span, volume

_TOP_SITES = 12
_DOUBTS_SHOWN = 3


def robots(facts: Facts) -> list[Node]:
    """What the sites' robots.txt asked, and who asked for most."""
    meant = [(ROBOTS.get(action, (action, ""))[0], n) for action, n in facts.robots]
    closed = sorted((site for site in facts.sites if site.disallowed), key=lambda site: -site.disallowed)[:_TOP_SITES]
    made = [
        counted("What the robots.txt in force means", "meaning", meant, "c1") if meant else None,
        counted("URLs closed by robots.txt", "site", [(site.site, site.disallowed) for site in closed], "c6")
        if closed
        else None,
        _asked("Longest Crawl-delay", "between requests", facts.history.crawl_delays),
        _asked("Longest Retry-After", "at most", [row[:2] for row in facts.history.retry_afters]),
    ]
    if all(part is None for part in made):
        return [card(el("p", "No robots.txt was asked for."))]
    return [cards(*made, _doubtful(facts))]


def _doubtful(facts: Facts) -> Node | None:
    """Sites whose owners may have meant to close more than they did."""
    if not facts.doubtful:
        return None
    shown = len(facts.doubtful)
    which = "" if shown == facts.all_doubtful else f" The {shown} with most pages are shown."
    said = (
        f"The robots.txt of {many(facts.all_doubtful, 'site')} has lines that no reading takes as they may have been "
        f"meant: their owners may have wanted more closed.{which} {REMEDY}; or write to the owner. "
        "`crawler why URL` tells more."
    )
    rows = [[_lines(site), number(site.doubts.count), number(site.fetched)] for site in facts.doubtful]
    return card(
        el("h3", "Lines in doubt"), el("p", said, class_="note"), table(("site", "lines", "pages"), rows), whole=True
    )


def _lines(site: DoubtfulSite) -> Cell:
    lines = [el("div", str(doubt)) for doubt in site.doubts.first[:_DOUBTS_SHOWN]]
    if site.doubts.count > len(lines):
        lines.append(el("div", f"… and {site.doubts.count - len(lines):,} more", class_="soft"))
    return Cell(el("div", el("span", short(site.site), class_="url"), *lines), site.site, "wide")


def _asked(title: str, head: str, rows: Iterable[tuple[str, float]]) -> Node | None:
    made = [[url(site), number(asked_s, span)] for site, asked_s in rows]
    return card(el("h3", title), table(("site", head), made)) if made else None


def mirrors(facts: Facts) -> list[Node]:
    if not facts.mirrors:
        return [card(el("p", "No mirror was met."), whole=True)]
    rows = [[url(m.site), url(m.main_site), plain(_evidence(m))] for m in facts.mirrors]
    note = left_out_note(facts.all_mirrors, len(rows), "mirror")
    return [card(note, table(("mirror", "of", "evidence"), rows, long=True), whole=True)]


def _evidence(mirror: Mirror) -> str:
    if mirror.evidence == "content":
        alike = "" if mirror.confidence is None else f", {percent(mirror.confidence)} alike at least"
        return f"same content at {many(mirror.sample or 0, 'path')}{alike}"
    if mirror.leads_to is None:
        return "Host line; the names go round"
    return "Host line" if mirror.leads_to == mirror.main_site else f"Host line; leads on to {mirror.leads_to}"


def sites(facts: Facts) -> list[Node]:
    """Every site that counts, to be sorted."""
    heads = (
        *("site", "", *STATES, "requests", "received", "mean answer"),
        *("robots.txt", "closed", "Crawl-delay", "pause", "links in"),
    )
    most = max((site.states[State.FETCHED] for site in facts.sites), default=0) or 1
    rows = [_site_row(site, most) for site in facts.sites]
    note = left_out_note(facts.counts.sites, len(rows), "site")
    return [card(note, table(*without_empty(heads, rows), long=True), whole=True)]


def _site_row(site: SiteRow, most: int) -> list[Cell]:
    ended = site.states
    if site.robots_action is None:
        robots_cell = badge("not asked", "", value="")
    else:
        robots_cell = badge(short(site.robots_status or "?", 24), ROBOTS.get(site.robots_action, ("", ""))[1])
    return [
        url(site.site),
        barred(ended[State.FETCHED] / most, "c2"),
        *(number(ended[state]) for state in STATES),
        number(site.requests),
        number(site.bytes, volume),
        number(site.mean_s, span),
        robots_cell,
        number(site.disallowed),
        number(site.crawl_delay_s, span),
        number(site.pause_s if site.requests else None, span),
        number(site.links_in),
    ]  # fmt: skip


def site_graph(facts: Facts) -> list[Node]:
    """The web that was met, as a picture."""
    graph = facts.graph
    if not graph.sites:
        return [card(el("p", "No site was fetched from."), whole=True)]
    names = _hosts([site for site, _ in graph.sites])
    fetched = sum(1 for _, n in graph.sites if n)
    said = (
        f"The {many(fetched, 'site')} with most pages"
        if fetched < graph.fetched_sites
        else many(fetched, "site") + " with pages"
    )
    if len(names) > fetched:
        said += f", and the {len(names) - fetched} other sites that most links lead to (grey)"
    note = f"{said}. Larger: more pages. Thicker: more links between two sites. Point at a site to see its own."
    return [card(el("p", note, class_="note"), picture(graph, names), whole=True)]


def _hosts(sites: Sequence[str]) -> list[str]:
    """Sites without their scheme, where that leaves them distinct."""
    hosts = [site.partition("://")[2] or site for site in sites]
    return [host if hosts.count(host) == 1 else site for host, site in zip(hosts, sites, strict=True)]


def standing_out(facts: Facts) -> list[Node]:
    """The pages at the ends of the scales."""
    return [
        three(
            _pages("Most linked to", "links", facts.most_linked, lambda n: f"{n:,.0f}"),
            _pages("Largest", "size", facts.largest, volume),
            _pages("Slowest answers", "took", facts.slowest, span),
        )
    ]


def _pages(title: str, head: str, rows: Sequence[PageRow], show: Callable[[float], str]) -> Node | None:
    if not rows:
        return None
    made = []
    for row in rows:
        named = el(
            "div",
            el("div", short(row.title, 120)) if row.title else None,
            el("span", short(row.url), class_="url soft"),
        )
        made.append([Cell(named, row.title or row.url, "wide"), number(row.figure, show)])
    return card(el("h3", title), table(("page", head), made))
