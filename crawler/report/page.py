"""The whole page: what belongs to it lies within it, and nothing else may load or run."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from crawler.audit.evidence import many
from crawler.report import broken_section, sample_section, sections, site_sections
from crawler.report.facts import Facts
from crawler.report.markup import Node, el, raw, written
from crawler.report.words import moment
from crawler.version import VERSION

_HERE = files("crawler.report")
SCRIPT = (_HERE / "script.js").read_text(encoding="utf-8")
_STYLE = (_HERE / "style.css").read_text(encoding="utf-8")

_SECTIONS = (
    ("Who, when, how", sections.runs),
    ("Politeness", sections.politeness),
    ("Over time", sections.over_time),
    ("Pages", sections.pages),
    ("Sample", sample_section.sample),
    ("Left out", sections.left_out),
    ("Broken links", broken_section.broken),
    ("robots.txt", site_sections.robots),
    ("Mirrors", site_sections.mirrors),
    ("Site graph", site_sections.site_graph),
    ("Sites", site_sections.sites),
    ("Pages that stand out", site_sections.standing_out),
)


def document(facts: Facts, script: str = SCRIPT) -> bytes:
    """The report as one HTML document, in UTF-8.

    Its Content-Security-Policy (CSP Level 3) lets nothing load, and nothing run or style but the one script and the
    one style sheet within, known by their hashes: what was crawled could do nothing even if it got in as markup.
    """
    made = [(title, make(facts)) for title, make in _SECTIONS]
    told = [(title, nodes) for title, nodes in made if nodes]
    parts = [el("section", el("h2", title, id=_anchor(title)), *nodes) for title, nodes in told]
    links = [el("a", title, href=f"#{_anchor(title)}") for title, _ in told]
    body = el(
        "div", _header(facts), el("nav", *links, aria_label="Sections"), *sections.overview(facts),
        *parts, _footer(facts), class_="page",
    )  # fmt: skip
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", f"Crawl report: {facts.store}"),
        raw("style", _STYLE),
    )
    return written(el("html", head, el("body", body, raw("script", script)), lang="en"))


def _policy(script: str) -> str:
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(_STYLE)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-").replace(",", "").replace(".", "-")


def _header(facts: Facts) -> Node:
    history = facts.history
    if history.first_at is None or history.last_at is None:
        said = "Nothing was asked for yet."
    else:
        said = (
            f"{many(facts.counts.pages, 'page')} of {many(facts.graph.fetched_sites, 'site')}, "
            f"{moment(history.first_at)} to {moment(history.last_at)} UTC"
        )
    return el("header", el("h1", "Crawl report"), el("p", said, class_="soft"), sections.verdict(facts.audit))


def _footer(facts: Facts) -> Node:
    return el(
        "footer",
        f"Made {moment(facts.at)} UTC from {facts.store} by polite-crawler {VERSION}. All times are UTC. "
        "Addresses and titles are shown as they were met, as text. This page loads nothing from anywhere.",
    )
