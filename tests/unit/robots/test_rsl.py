"""Licences of RSL 1.0. The documents are examples of the specification and of its guide, and variations of them."""

from __future__ import annotations

import pytest

from crawler.model import Failed, Fetched, FetchResult, Redirected
from crawler.preferences.purposes import UsePurpose, first_refusal
from crawler.reasons import ErrorKind
from crawler.robots.response import RobotsSettings
from crawler.robots.rsl import NotALicence, licence_file, licence_of, read_licence, unavailable

SITE, URL = "https://example.com", "https://example.com/license.xml"
SEARCH, TRAIN, INPUT, ARCHIVE, RESEARCH = (
    UsePurpose.SEARCH,
    UsePurpose.TRAIN_AI,
    UsePurpose.AI_INPUT,
    UsePurpose.ARCHIVE,
    UsePurpose.RESEARCH,
)


def rsl(*contents: str) -> bytes:
    return f'<rsl xmlns="https://rslstandard.org/rsl">{"".join(contents)}</rsl>'.encode()


def content(*licences: str, url: str = "/", more: str = "") -> str:
    return f'<content url="{url}"{more}>{"".join(f"<license>{one}</license>" for one in licences)}</content>'


def permits(words: str, kind: str = "usage") -> str:
    return f'<permits type="{kind}">{words}</permits>'


def prohibits(words: str) -> str:
    return f'<prohibits type="usage">{words}</prohibits>'


def refused(document: bytes, path: str = "/a") -> set[UsePurpose]:
    said = read_licence(document).of(SITE, path, URL)
    return {purpose for purpose in UsePurpose if first_refusal(said, [purpose]) is not None}


REPORTING = '<reporting type="audit" profile="https://profiles.example/audit"/>'
LEGAL = '<legal type="warranty">ownership</legal>'
PAID = '<payment type="training"><amount currency="USD">1</amount></payment>'


@pytest.mark.parametrize(
    ("licences", "wanted"),
    [
        ([prohibits("ai-all")], {TRAIN, INPUT}),
        ([prohibits("all")], set(UsePurpose)),
        ([prohibits("<b>ai-train</b> <i>search</i>")], {TRAIN, SEARCH}),
        ([permits("all")], set()),
        ([permits("search")], {TRAIN, INPUT, ARCHIVE, RESEARCH}),
        ([permits("search ai-input") + prohibits("ai-train")], {TRAIN, ARCHIVE, RESEARCH}),
        ([permits("search ai-input"), prohibits("ai-train")], {TRAIN}),
        ([permits("all") + prohibits("ai-train")], {TRAIN}),
        ([permits("ai-train search") + prohibits("ai-train")], {TRAIN, INPUT, ARCHIVE, RESEARCH}),
        ([permits("ai-input") + prohibits("all")], set(UsePurpose) - {INPUT}),
        ([permits("ai-input") + prohibits("ai-all")], set(UsePurpose) - {INPUT}),
        ([permits("search,ai-input")], {TRAIN, ARCHIVE, RESEARCH}),
        ([permits("search"), permits("ai-train") + PAID], {TRAIN, INPUT, ARCHIVE, RESEARCH}),
        ([permits("all") + '<payment type="attribution"/>'], set()),
        ([PAID], set(UsePurpose)),
        ([permits("non-commercial", "user")], set()),
        ([permits("newword")], set(UsePurpose)),
        ([permits("DE EU", "geo")], set()),
        ([permits("all") + REPORTING], set(UsePurpose)),
        ([permits("all") + "<bond/>", permits("search") + LEGAL], {TRAIN, INPUT, ARCHIVE, RESEARCH}),
        (['<x:permits xmlns:x="x" type="usage">search</x:permits><x:bond xmlns:x="x"/>'], set()),
        ([""], set()),
        ([], set()),
    ],
)
def test_the_terms_of_usage_decide(licences: list[str], wanted: set[UsePurpose]) -> None:
    assert refused(rsl(content(*licences))) == wanted


def test_the_most_special_content_that_covers_the_page_counts() -> None:
    document = rsl(
        content(permits("all")),
        content(prohibits("all"), url="/archive/*.html$"),
        content(prohibits("ai-all"), url="https://example.com/news/"),
        content(prohibits("search"), url="/news/old/"),
        content(permits("ai-train"), url="/news/old/"),
        content(prohibits("all"), url="https://other.example/"),
        content(permits("all"), url="/served/", more=' server="https://api.rslcollective.org"'),
    )
    assert refused(document) == set()
    assert refused(document, "/archive/1.html") == set(UsePurpose)
    assert refused(document, "/archive/1.html?x") == set()
    assert refused(document, "/news/1") == {TRAIN, INPUT}
    assert refused(document, "/news/old/1") == set(UsePurpose) - {TRAIN}, "what a content does not say, a wider one may"
    assert refused(document, "/served/1") == set(UsePurpose), "a token of the server would be needed"


def test_payment_users_and_server_are_recorded() -> None:
    offers = (permits("search"), permits("commercial education", "user") + permits("DE", "geo") + PAID)
    said = read_licence(rsl(content(*offers, more=' server="https://api.example/"'))).of(SITE, "/", URL)
    recorded = [(one.category, one.value) for one in said if one.value not in "yn"]
    assert recorded == [
        ("server", "https://api.example/"),
        ("payment", "training"),
        ("user", "permits commercial"),
        ("user", "permits education"),
        ("geo", "permits de"),
    ]
    assert {(one.scheme, one.source, one.text) for one in said} == {("rsl", "licence", f"License: {URL}")}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html></html>", "<html>"),
        (b"<rsl>", "broken XML"),
        (b"<rsl><x:content/></rsl>", "broken XML: unbound prefix"),
        (rsl(), "without content"),
        (b'<!DOCTYPE rsl [<!ENTITY a "b">]><rsl>&a;</rsl>', "DOCTYPE"),
        (b"<rsl>" + b"<a>" * 30_000, "broken XML"),
        (b"<?xml version='1.0' encoding='evil'?><rsl/>", "broken XML"),
        (rsl(content(url="http://[")), "no URL"),
        (b"", "broken XML"),
    ],
)
def test_another_document_is_no_licence(body: bytes, why: str) -> None:
    with pytest.raises(NotALicence, match=why):
        read_licence(body)


def failed(status: int | None, kind: ErrorKind = ErrorKind.HTTP, at: float = 1.0) -> Failed:
    return Failed(URL, 0.0, at, (), kind=kind, status=status)


def fetched(body: bytes, max_age_s: int = 1000) -> Fetched:
    return Fetched(
        URL, 0.0, 1.0, (("Cache-Control", f"max-age={max_age_s}"),), content_type="", charset=None, plain=body
    )


MOVED = Redirected(URL, 0.0, 1.0, (), status=301, location="http://b.example/l.xml")


@pytest.mark.parametrize(
    ("answer", "until", "fails", "note", "moved_to"),
    [
        (fetched(rsl(content(permits("all")))), 1001.0, False, "", ""),
        (fetched(rsl(content(permits("all"))), 31_536_000), 30 * 86_400.0 + 1, False, "", ""),
        (fetched(b'<rsl max-age="2">' + content("").encode() + b"</rsl>", 31_536_000), 172_801.0, False, "", ""),
        (
            fetched(b'<rsl max-age="0">' + content("").encode() + b"</rsl>", 31_536_000),
            30 * 86_400.0 + 1,
            False,
            "",
            "",
        ),
        (fetched(b"<html/>"), 1001.0, False, "the document is <html>", ""),
        (failed(404), 7 * 86_400.0 + 1, False, "404", ""),
        (failed(403), 7 * 86_400.0 + 1, False, "403", ""),
        (failed(503), 61.0, True, "503", ""),
        (failed(None, ErrorKind.TIMEOUT), 61.0, True, "timeout", ""),
        (failed(200, ErrorKind.TOO_LARGE), 86_401.0, False, "", ""),
        (MOVED, 301.0, False, "redirects to http://b.example/l.xml", "http://b.example/l.xml"),
    ],
)
def test_an_answer_holds_as_long_as_that_for_a_robots_txt(
    answer: FetchResult, until: float, fails: bool, note: str, moved_to: str
) -> None:
    file = licence_file(answer, URL, settings=RobotsSettings(), previous=None)
    assert (file.path, file.valid_until, file.failing_since is not None, file.moved_to) == (
        "/license.xml",
        until,
        fails,
        moved_to,
    )
    assert note in file.note
    assert bool(licence_of(file)[1].contents) == (not file.note)


def test_a_licence_that_fails_for_long_is_given_up() -> None:
    first = licence_file(failed(503), URL, settings=RobotsSettings(), previous=None)
    again = licence_file(failed(503, at=62.0), URL, settings=RobotsSettings(), previous=first)
    assert again.failures == 2
    assert again.valid_until == 62.0 + 120
    last = licence_file(failed(503, at=4e6), URL, settings=RobotsSettings(), previous=again)
    assert last.failing_since is None
    assert last.note
    assert {one.value for one in unavailable(URL, last.note)} == {"n"}
