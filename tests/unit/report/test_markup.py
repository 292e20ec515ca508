"""Texts of strangers never become markup, and the tree is written as HTML that reads back the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawler.report.markup import el, raw, short, written

HOSTILE = "</title></style></script>\"'><script>alert(1)</script><img src=x onerror=alert(1)>&lt;&amp;"


def parsed(text: str) -> LexborHTMLParser:
    return LexborHTMLParser(written(el("html", el("body", el("p", text, id="p", title=text)))).decode())


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf"]), max_size=60) | st.just(HOSTILE))
def test_a_text_reads_back_as_it_was(text: str) -> None:
    page = parsed(text)
    (paragraph,) = page.css("#p")
    assert paragraph.text() == text
    assert paragraph.attributes["title"] == text
    assert page.css("script, img") == []


@pytest.mark.parametrize("unfit", ["\x00", "\x1b", "\x7f", "\x85", "\u202e", "\u2066", "\ud800", "\uffff"])
def test_what_cannot_be_shown_or_turns_the_text_around_is_replaced(unfit: str) -> None:
    (paragraph,) = parsed(f"a{unfit}b").css("#p")
    assert paragraph.text() == "a\ufffdb"


def test_joiners_that_scripts_need_are_kept() -> None:
    (paragraph,) = parsed("می\u200cخواهم 👩\u200d🚀").css("#p")
    assert paragraph.text() == "می\u200cخواهم 👩\u200d🚀"


def test_texts_and_elements_keep_their_order() -> None:
    node = el("p", "a", el("b", "<"), "c", None, el("i"), "d", class_="x", data_v=3)
    assert written(node) == b'<!doctype html>\n<p class="x" data-v="3">a<b>&lt;</b>c<i></i>d</p>\n'


def test_a_script_of_ours_is_written_as_it_is() -> None:
    assert b"<script>a < b && c</script>" in written(raw("script", "a < b && c"))


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    text = "http://a.test/" + "x" * 1000 + "/end"
    cut = short(text, 60)
    assert len(cut) <= 63
    assert (cut[:14], cut[-4:]) == (text[:14], "/end")
    assert short("as it is") == "as it is"
