"""The language that a page declares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.page.language import language


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
    assert language(page.encode(), None) == said
    assert language(page.encode("utf-16"), "utf-16") == said


def test_a_long_page_is_read_at_its_beginning() -> None:
    assert language(b"<html lang=en>" + b"<div>" * 1_000_000, None) == "en"


@given(st.binary())
def test_nothing_upsets_it(body: bytes) -> None:
    said = language(b"<html lang=" + body, None)
    assert said is None or (said.isascii() and said.isalpha())
