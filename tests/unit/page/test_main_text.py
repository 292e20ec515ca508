"""The words of a page."""

from __future__ import annotations

import pytest
from selectolax.lexbor import LexborNode

from crawler.page import main_text as page
from crawler.page.main_text import MAX_HEADINGS, clean, main_text
from crawler.search.tokenizer import as_shown, for_tokenizer


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
    assert main_text(html.encode(), "utf-8").text == text


def test_headings_are_read_in_their_order() -> None:
    html = b"<header><h1>Site</h1></header><h1>Page <em>one</em></h1><p>x<h3>Deep</h3><h2>Later</h2>"
    found = main_text(html, None)
    assert (found.headings, found.text) == ("Page one Deep Later", "Page one x Deep Later")


def test_other_encodings_and_types() -> None:
    assert main_text("<p>Größe".encode("latin-1"), "windows-1252").text == "Größe"
    assert main_text(b"<p>a\r\nb", None, "text/plain").text == "<p>a b"
    xhtml = b"<html><head><script src='a.js'/></head><body>Hello</body></html>"
    assert main_text(xhtml, None, "application/xhtml+xml").text == "Hello"
    assert main_text(xhtml, None, "text/html").text == ""


@pytest.mark.parametrize("nest", [b"<nav>", b"<svg>", b"<button>", b"<h1><b>", b"<h2><object>", b"<main>"])
def test_a_deep_nest_ends(nest: bytes) -> None:
    """Each takes a fraction of a second; were it quadratic in what is left out, minutes."""
    assert main_text(nest * 7_000 + b"x", None).text in ("", "x")


def test_the_sections_of_a_page_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """500,000 headings took 5 s. Steps are counted here: each heading costs a few, of any page."""
    looked = 0
    original = page._anchor

    def counted(heading: LexborNode) -> str:
        nonlocal looked
        looked += 1
        return original(heading)

    monkeypatch.setattr(page, "_anchor", counted)
    found = main_text(b"<h1>a" * (3 * MAX_HEADINGS), None)
    assert looked == len(found.sections) == MAX_HEADINGS
    assert found.text.count("a") == 3 * MAX_HEADINGS, "the rest is text"


def test_a_long_text_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.page.main_text.MAX_TEXT_CHARS", 10_000)
    assert 5_000 < len(main_text(b"<p>a" * 10_000, None).text) <= 10_000


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "C++ and C#, .NET",
        "git --no-ff -9 @media __init__ a-b - x@y -- -",
        "Apacheの仮想ホスト",
        "数据库",
        "ภาษา",
        "데이터베이스",
    ],
)
def test_parted_words_are_joined_again(text: str) -> None:
    assert as_shown(for_tokenizer(text)) == clean(text) == text


@pytest.mark.parametrize(
    ("html", "anchor"),
    [
        ('<h2 id="own">H</h2>', "own"),
        ('<section id="around"><h2>H</h2>text</section>', "around"),
        ('<div id="docbook"><div><div><div><h2>H</h2></div></div></div>text</div>', "docbook"),
        ('<h2><a name="inside"></a>H</h2>', "inside"),
        ('<a id="before"></a> <h2>H</h2>', "before"),
        ('<section id="around">text <h2>H</h2></section>', ""),  # it begins with a text
        ('<p id="text">text</p><h2>H</h2>', ""),
    ],
)
def test_a_section_is_named_by_the_element_at_its_heading(html: str, anchor: str) -> None:
    (section,) = main_text(html.encode(), None).sections
    assert (section.heading, section.anchor) == ("H", anchor)


def test_sections_begin_at_their_headings_in_the_text() -> None:
    html = b"<body><p>before</p><h1 id=a>One\x02 </h1><p>x</p><nav><h2>Menu</h2></nav><h3 id=c>Two \xc2\xb6</h3>end"
    found = main_text(html, "utf-8")
    assert [(s.level, s.heading, s.anchor) for s in found.sections] == [(1, "One", "a"), (3, "Two", "c")]
    assert [found.text[s.start : s.start + 3] for s in found.sections] == ["One", "Two"]
    assert main_text(b"<p>a&#x1e;b<h1>One</h1>", None).sections == ()  # the page contains the separator itself
