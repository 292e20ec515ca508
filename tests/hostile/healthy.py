"""The healthy sites beside the hostile ones: small pages, fast answers, one path that is forbidden."""

from __future__ import annotations

from crawler.demo.pages import Page, plain
from tests.hostile.behaviour import FETCHED, Behaviour

SITES = 20
PAGES = 50
#: The pages of a small site: in the short form, all but the first are small, because their pages cost CI most.
FEW_PAGES = 12


def healthy(number: int, pages: int = PAGES) -> Behaviour:
    """The healthy site of this number, with so many pages. Its start page links to all."""
    name = f"healthy{number:02}" if pages == PAGES else f"healthy{number:02}-{pages}"
    links = "".join(f"<a href=/p{n}>page {n}</a>" for n in range(1, pages))
    site = {f"/p{n}": Page(f"<title>Page {n}</title><p>Some words of a healthy site.") for n in range(1, pages)}
    site |= {"/": Page(f"<title>Start</title>{links}"), "/robots.txt": plain("User-agent: *\nDisallow: /private/\n")}
    ends = {path: FETCHED for path in site if path != "/robots.txt"}
    return Behaviour(name, "a healthy site", ends, site, never=("/private/",), most_requests=pages + 2)
