"""The words of a page."""

from __future__ import annotations

import pytest

from crawler.search.page_text import MAX_TEXT_CHARS, PageText, clean, page_text
from crawler.search.tokenizer import join_separated, separate_unspaced


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one<p>two<ul><li>three<li>four</ul>", "one two three four"),
        ("<p>a <b>w</b>ord, <i>an</i>other", "a word, another"),
        ("<table><tr><td>1<td>2<tr><td>3</table>line<br>break", "1 2 3 line break"),
        ("<title>T</title><script>x()</script><style>y</style><p>seen<!-- not --><template>no</template>", "seen"),
        ("<header>Top</header><nav>Menu</nav><p>Text</p><aside>Ad</aside><footer>Foot</footer>", "Text"),
        ("<div role=banner>Top</div><div role=navigation>Menu</div><p>Text", "Text"),
        ("<p>around</p><main><header>Head</header>Text<nav>Menu</nav></main>", "Head Text"),
        ("<p>around</p><div role=main>Text</div>", "Text"),
        ("<main id=app></main><p>Text", "Text"),  # filled by a script, elsewhere
        ("<nav>a<form>b<nav>c</nav></form></nav><p>Text", "Text"),
        ("<p>a\x1b[31mb\x02c\u202ed\u200be\ufeff f", "a [31mb cde f"),
        ("", ""),
    ],
)
def test_main_text(html: str, text: str) -> None:
    assert page_text(html.encode(), "utf-8").text == text


def test_headings_are_read_in_their_order() -> None:
    html = b"<header><h1>Site</h1></header><h1>Page <em>one</em></h1><p>x<h3>Deep</h3><h2>Later</h2>"
    assert page_text(html, None) == PageText("Page one Deep Later", "Page one x Deep Later")


def test_other_encodings_and_types() -> None:
    assert page_text("<p>Größe".encode("latin-1"), "windows-1252").text == "Größe"
    assert page_text(b"<p>a\r\nb", None, "text/plain").text == "<p>a b"


@pytest.mark.parametrize("nest", [b"<nav>", b"<svg>", b"<button>", b"<h1><b>", b"<h2><object>", b"<main>"])
def test_a_deep_nest_ends(nest: bytes) -> None:
    """Each takes a fraction of a second; were it quadratic in what is left out, minutes."""
    assert page_text(nest * 7_000 + b"x", None).text in ("", "x")


@pytest.mark.slow
def test_a_long_text_is_cut() -> None:
    assert len(page_text(b"<p>a" * MAX_TEXT_CHARS, None).text) <= MAX_TEXT_CHARS


@pytest.mark.parametrize("text", ["plain", "Apacheの仮想ホスト", "数据库", "ภาษา", "데이터베이스"])
def test_parted_words_are_joined_again(text: str) -> None:
    assert join_separated(separate_unspaced(text)) == clean(text) == text
