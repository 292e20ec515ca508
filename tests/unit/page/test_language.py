"""The language that a page declares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawler.page.language import language_of


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("<html lang=en-GB>", "en"),
        ("<!doctype html><!-- c --><HTML LANG=' De '>", "de"),
        ('<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml" xml:lang="fr" dir="ltr">', "fr"),
        ("<meta http-equiv=Content-Language content='pt, en'>", "pt"),
        ("<html lang=nl><meta http-equiv=content-language content=fr>", "nl"),
        ("<html lang=''><meta http-equiv=content-language content=fr>", "fr"),
        ("<html lang=english>", None),
        ("<html lang='x-klingon'>", None),
        ("<html lang='de_AT'>", "de"),
        ("<html lang><p lang=en>", None),
        ("", None),
    ],
)
def test_the_page_says(page: str, said: str | None) -> None:
    assert language_of(LexborHTMLParser(page)) == said


@given(st.binary())
def test_nothing_upsets_it(body: bytes) -> None:
    said = language_of(LexborHTMLParser(b"<html lang=" + body))
    assert said is None or (said.isascii() and said.isalpha())
