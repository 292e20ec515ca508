"""The preferences about use in the headers and tags of a page."""

from __future__ import annotations

from crawler.model import Headers, PageFacts, Preference, Reading
from crawler.page.directives import SITE_TAG
from crawler.page.headers import header_facts, unread_page
from crawler.page.html import read_page
from crawler.preferences.purposes import MAX_PREFERENCES

URL = "http://a.example/b/c"


def read(html: str = "", *headers: tuple[str, str]) -> PageFacts:
    return read_page(
        html.encode(), url=URL, headers=headers, charset=None, token="figtree", reading=Reading.STRICT, now=0.0
    )


def said(facts: PageFacts) -> list[tuple[str, str, str, str]]:
    return [(one.scheme, one.category, one.value, one.source) for one in facts.preferences]


def test_aipref_attach_1_2_the_header_of_the_example() -> None:
    facts = read("<p>This is some content.", ("Content-Usage", "train-ai=n"))
    assert facts.preferences == (
        Preference("content-usage", "train-ai", "n", "header", None, "Content-Usage: train-ai=n"),
    )


def test_aipref_attach_2_several_lines_are_one_dictionary() -> None:
    lines = ("content-usage", "train-ai=n, search=y"), ("Content-Usage", "train-ai=y")
    assert said(read("", *lines)) == [
        ("content-usage", "train-ai", "y", "header"),
        ("content-usage", "search", "y", "header"),
    ]
    assert said(read("", ("Content-Usage", "train-ai=n"), ("Content-Usage", "SEARCH=n"))) == []


def test_content_signal_as_a_header() -> None:
    assert said(read("", ("Content-Signal", "ai-train=no"))) == [("content-signal", "train-ai", "n", "header")]


def test_tdmrep_in_headers_and_tags() -> None:
    html = '<meta name=TDM-Reservation content=1><meta name="tdm-policy" content="/p.json">'
    assert said(read(html, ("TDM-Reservation", "0"))) == [
        ("tdmrep", "tdm", "y", "header"),
        ("tdmrep", "tdm", "n", "META"),
        ("tdmrep", "tdm-policy", "http://a.example/p.json", "META"),
    ]


def test_noai_in_headers_and_tags_that_address_the_crawler() -> None:
    html = "<meta name=robots content='noai'><meta name=figtree content=noimageai><meta name=other content=noai>"
    headers = ("X-Robots-Tag", "other: noai"), ("X-Robots-Tag", "figtree: noimageai")
    assert said(read(html, *headers)) == [
        ("noai", "train-ai-images", "n", "header"),
        ("noai", "train-ai", "n", "META"),
        ("noai", "ai-input", "n", "META"),
        ("noai", "train-ai-images", "n", "META"),
    ]


def test_noimageai_of_an_image() -> None:
    headers: Headers = (("Content-Type", "image/png"), ("X-Robots-Tag", "noimageai"))
    facts = header_facts(headers, url=URL, token="figtree", reading=Reading.STRICT, now=0.0)
    assert [one.category for one in facts.preferences] == ["train-ai", "ai-input"]


def test_a_page_that_could_not_be_parsed_keeps_the_preferences_of_its_headers() -> None:
    facts = unread_page(
        "too large", url=URL, headers=(("Content-Usage", "search=n"),), token="x", reading=Reading.STRICT, now=0.0
    )
    assert said(facts) == [("content-usage", "search", "n", "header")]


def test_a_page_without_preferences() -> None:
    assert read("<title>x</title>", ("Content-Type", "text/html"), ("X-Robots-Tag", "noarchive")).preferences == ()


def test_noai_in_the_robots_tag_of_the_sites_robots_txt() -> None:
    facts = read("", (SITE_TAG, "noai"))
    assert {(one.category, one.source, one.text) for one in facts.preferences} == {
        ("train-ai", "robots.txt", "Robots-Tag: noai"),
        ("ai-input", "robots.txt", "Robots-Tag: noai"),
    }


def test_a_page_with_many_preferences_loses_no_refusal() -> None:
    many = "".join(f"<meta name=tdm-policy content=/{n}>" for n in range(60))
    found = said(read(f"{many}<meta name=tdm-reservation content=1><meta name=robots content=noai>"))
    assert len(found) == MAX_PREFERENCES
    assert [category for _, category, value, _ in found if value == "n"] == ["tdm", "train-ai", "ai-input"]
