"""The contract of ``crawler page check --jsonl``."""

import json
from pathlib import Path
from typing import Any

import pytest

from crawler.page import check
from crawler.page.html import read_page
from crawler.robots.rsl import licensed_page
from crawler.robots.tdmrep import with_filed
from tests.command import here


def check_case(case: dict[str, Any], now: float = 0.0) -> dict[str, Any]:
    return check.check_case(case, read=read_page, with_filed=with_filed, licensed=licensed_page, now=now)


CASE = {
    "url": "http://a.test/",
    "html": "<title>T</title><base href=/b/><a href=x rel=nofollow>X</a><meta name=figtree content=noindex>",
    "agent": "FigTree/0.1 Robot/1.0",
}


def test_an_answer_has_every_field() -> None:
    assert check_case(CASE) == {
        "index": False,
        "follow": True,
        "title": None,
        "description": None,
        "keywords": None,
        "document_state": "STATIC",
        "canonical_url": None,
        "base_url": "http://a.test/b/",
        "links": [{"url": "http://a.test/b/x", "anchor": "X", "rel": "nofollow", "follow": False}],
    }


def test_headers_reading_and_now_are_heeded() -> None:
    case = {**CASE, "html": "<meta name=robots content=all>", "headers": [["X-Robots-Tag", "noindex"]]}
    assert not check_case(case)["index"]
    assert check_case({**case, "reading": "draft1996"})["index"]
    timed = {**CASE, "html": "<meta name=robots content='unavailable_after: 1970-01-02'>"}
    assert check_case(timed)["index"]
    assert not check_case(timed, now=86_400)["index"]
    assert check_case({**timed, "now": 86_399}, now=1e9)["index"]


def test_html_is_text_with_any_declared_type() -> None:
    assert check_case({**CASE, "agent": "x", "html": "<meta charset=latin1><title>ü\ud800</title>"})["title"] == "ü?"


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"url": None}, "url"),
        ({"url": "ftp://a/"}, "url"),
        ({"html": 5}, "html"),
        ({"agent": 5}, "agent"),
        ({"reading": "loose"}, "reading"),
        ({"headers": "x"}, "headers"),
        ({"headers": [["a"]]}, "headers"),
        ({"headers": [["a", 5]]}, "headers"),
        ({"now": "later"}, "now"),
        ({"now": True}, "now"),
        ({"now": float("nan")}, "now"),
    ],
)
def test_an_error_names_the_key(wrong: dict[str, Any], key: str) -> None:
    with pytest.raises(ValueError, match=f"^{key}: "):
        check_case({**CASE, **wrong})


def test_the_tdmrep_file_of_the_site_counts_unless_the_page_states_it_itself() -> None:
    filed = '[{"location": "/*", "tdm-reservation": 1}]'
    (said,) = check_case({**CASE, "tdmrep": filed})["preferences"]
    assert (said["category"], said["source"]) == ("tdm", "tdmrep.json")
    own = {**CASE, "html": "<meta name=tdm-reservation content=0>", "tdmrep": filed}
    assert [one["source"] for one in check_case(own)["preferences"]] != ["tdmrep.json"]
    with pytest.raises(ValueError, match='"tdmrep" is malformed'):
        check_case({**CASE, "tdmrep": "{}"})


def test_the_licences_of_a_page_are_shown_with_what_they_say() -> None:
    licence = '<rsl><content url="/"><license><prohibits type="usage">search</prohibits></license></content></rsl>'
    link = '<link rel="license" type="Application/RSL+XML" href="/l.xml"><link rel="license" href="/terms.html">'
    inline = f'<script type="Application/RSL+XML">{licence.replace("search", "ai-train")}</script>'
    headers = [["Link", '</h.xml>; rel="license"; type="application/rsl+xml", </other>; rel=license']]
    case = {"url": "http://a.example/x/", "html": f"<title>t</title>{link}{inline}", "headers": headers}
    stated = check_case({**case, "license": licence})["preferences"]
    assert [(one["source"], one["category"], one["value"]) for one in stated] == [
        ("header", "license", "http://a.example/h.xml"),
        ("link", "license", "http://a.example/l.xml"),
        ("licence", "train-ai", "n"),
        ("licence", "search", "n"),
        ("licence", "search", "n"),
    ]
    broken = check_case({**case, "html": inline.replace("</rsl>", ""), "headers": []})["preferences"]
    assert {(one["value"], "broken XML" in one["text"]) for one in broken} == {("n", True)}


ROBOTS = """User-agent: *
Disallow: /private/
Content-Usage: train-ai=n
Content-Signal: ai-input=no, use=reference
License: https://terms.example/l.xml

User-agent: Google-Extended
Disallow: /essays/
"""
PAGE = b"HTTP/2 200\r\nX-Robots-Tag: nofollow\r\n\r\n<meta name=tdm-reservation content=1><p>text"
LICENCE = "<rsl><content url='/'><license><prohibits type='usage'>search</prohibits></license></content></rsl>"


def test_an_owner_learns_from_one_command_what_a_page_its_headers_and_site_files_say(tmp_path: Path) -> None:
    files = {"robots.txt": ROBOTS.encode(), "l.xml": LICENCE.encode(), "page": PAGE, "tdmrep.json": b"[]"}
    for name, octets in files.items():
        (tmp_path / name).write_bytes(octets)

    def asked(path: str, *others: str) -> dict[str, Any]:
        told = here(
            "page", "check", "--url", f"https://a.example{path}", *(tmp_path / name for name in ("page", *others))
        )
        assert told.code == 0, told.err
        answer: dict[str, Any] = json.loads(told.out)
        return answer

    answer = asked("/essays/1", "robots.txt", "tdmrep.json", "l.xml")
    assert answer["uses"] == {
        "search": "refused: licence License: https://terms.example/l.xml",
        "train-ai": "refused: line 3 of robots.txt, Content-Usage: train-ai=n",
        "ai-input": "refused: line 4 of robots.txt, Content-Signal: ai-input=no, use=reference",
        "archive": "allowed",
        "research": "refused: META tdm-reservation: 1",
    }
    assert (answer["index"], answer["follow"], answer["archive"], answer["wall"]) == (True, False, False, None)
    assert set(asked("/private/1", "robots.txt")["uses"].values()) == {"not requested: line 2, Disallow: /private/"}
    assert asked("/a")["uses"]["search"] == "allowed"
    (tmp_path / "page").write_bytes(b"<meta name=robots content=noindex><meta name=tdm-reservation content=1>")
    not_kept, tdm = "not kept: the page says noindex", "refused: META tdm-reservation: 1"
    assert [*asked("/a")["uses"].values()] == [not_kept, tdm, tdm, not_kept, tdm], "search and archive have no copy"
    (tmp_path / "page").write_bytes(b"HTTP/1.1 403 Forbidden\ncf-mitigated: challenge\n\n")
    assert asked("/a")["wall"] == "Cloudflare (cf-mitigated: challenge)"
    assert "licence (.xml)" in here("page", "check", "--url", "https://a.example/", *[tmp_path / "page"] * 2).err
