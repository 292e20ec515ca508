"""The main content of pages: what is kept and left out, and Markdown that is rendered to the same text."""

from __future__ import annotations

import html as markup
import time

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

from crawler.page.content import content_of_html, content_of_text, converted

MENU = "<ul><li><a href=/a>Chapter one of the manual</a><li><a href=/b>Chapter two of the manual</a></ul>"
SAID = "<p>The command does what this paragraph says, in enough words to be the text of a page of a manual.</p>"
RENDER = MarkdownIt("commonmark").enable("table").render


def markdown(inner: str) -> str:
    return content_of_html(f"<body><nav>{MENU}</nav><div id=content>{SAID}{inner}{SAID}</div></body>").markdown


def between(inner: str) -> str:
    """The Markdown between that of the two paragraphs."""
    said = markdown(inner)
    first = said.index("manual.") + len("manual.")
    return said[first : said.rindex("The command")].strip()


def test_a_manual_page_keeps_its_name_before_the_content() -> None:
    name = "<div id=header><h1>git-rebase(1) Manual Page</h1><h2>NAME</h2><p>git-rebase - Reapply commits</p></div>"
    said = content_of_html(f"<body>{name}<div id=content><h2>SYNOPSIS</h2>{SAID * 5}</div></body>").markdown
    assert said.startswith("# git-rebase(1) Manual Page\n\n## NAME\n\ngit-rebase - Reapply commits")


def test_lines_about_a_page_before_the_content_are_left_out_and_its_title_is_kept() -> None:
    head = "<div id=head><h1>A headline</h1><p>Written on a Monday by an author of this site</p></div>"
    said = content_of_html(f"<body>{head}<div id=content>{SAID * 5}</div></body>").markdown
    assert said.startswith("# A headline\n\nThe command")


def test_a_list_of_links_under_a_heading_is_left_out() -> None:
    related = f"<div class=related><h2>Related</h2>{MENU}</div>"
    said = content_of_html(f"<body><div id=content><div>{SAID * 5}</div>{related}<div>{SAID * 5}</div></div></body>")
    assert "Related" not in said.plain


def test_what_belongs_to_the_text_around_it_is_kept() -> None:
    assert between(f"<p>These pages say what the command does:</p>{MENU}").count("[Chapter") == 2
    title = "<div><h1>Function <a href=/a>core</a>::<a href=/b>a_name</a></h1></div>"
    said = content_of_html(f"<body><div>{title}{SAID * 3}</div></body>").plain
    assert "core::a_name" in said
    row = f"<table><tr><td>size_t</td><td><a href=/f>f</a></td><td>{SAID}<ul><li>x</ul></td></tr></table>"
    assert {"size_t", "f"} <= set(content_of_html(f"<body>{SAID * 3}{row}</body>").plain.split())
    term = "<dl><dt>name(a, b=2)</dt><dd>" + SAID * 9 + "</dd></dl>"
    assert content_of_html(f"<body><h1>name</h1>{term}</body>").plain.split("\n\n")[:2] == ["name", "name(a, b=2)"]


def test_a_title_comes_once_and_the_first_sentence_behind_it() -> None:
    parts = f"<h1>Title</h1><p>What this is, in a sentence of some words.</p><div><h1>Title</h1>{SAID * 9}</div>"
    said = content_of_html(f"<body>{parts}</body>").plain
    assert said.count("Title") == 1
    assert said.startswith("What this is")


def test_a_page_of_links_is_its_links() -> None:
    assert content_of_html(f"<body><h1>Index</h1>{MENU}</body>").markdown.count("](page-link:") == 2


def test_content_in_an_inline_element_is_kept_and_what_nobody_sees_is_not() -> None:
    hidden = "<div style='display: none'><p>Said again for machines</p></div>"
    figure = "<figure><img src=x><figcaption>Photo: an agency</figcaption></figure>"
    code = "<figure><pre>x = 1</pre><figcaption>Listing 1</figcaption></figure>"
    said = content_of_html(f"<body><div><span>{SAID * 3}{hidden}{figure}{code}{SAID * 3}</span></div></body>").plain
    assert said.count("The command") == 6
    assert "Listing 1" in said
    assert "machines" not in said
    assert "Photo" not in said


def test_an_appendix_beside_nearly_all_of_a_long_page_is_kept() -> None:
    chapters = "".join(f"<section><h2>{n}</h2>{SAID * 20}</section>" for n in range(10))
    page = f"<body><h1>Manual</h1><div>{chapters}</div><div><h2>Appendix</h2>{SAID * 20}<pre>code</pre></div></body>"
    assert content_of_html(page).plain.endswith("code")


def test_the_content_is_no_part_of_code_and_leaves_no_code_out() -> None:
    listing = "<pre>import re<div>" + "\n".join(f"line {n} of the code" for n in range(90)) + "</div></pre>"
    assert content_of_html(f"<body>{listing}</body>").markdown.startswith("```\nimport re")
    short = f"<div>{SAID}<pre>an example</pre></div>"
    said = content_of_html(f"<body><div><div>{SAID * 20}</div>{short}</div></body>").markdown
    assert "an example" in said


def test_a_short_paragraph_with_a_line_break_is_kept() -> None:
    body = f"<h1>Tides</h1>{SAID * 3}<p>line one<br>line two</p>{SAID * 3}"
    assert "line one" in content_of_html(f"<body>{body}</body>").plain


def test_navigation_is_left_out() -> None:
    texinfo = "<div class=x><p>Next: <a href=n>n</a>, Previous: <a href=p>p</a>, Up: <a href=u>u</a></p></div>"
    page = f"<body><nav>{MENU}</nav><div>{texinfo}<h1>T</h1>{SAID * 3}</div><footer>Imprint</footer></body>"
    said = content_of_html(page)
    assert said.markdown.startswith("# T\n\nThe command")
    assert not {"Chapter", "Imprint", "Next"} & set(said.plain.replace(":", " ").split())


def test_tables_code_and_definitions_are_kept() -> None:
    table = "<table><tr><th>a</th><th>b</th></tr><tr><td>1|2</td><td>3</td></tr></table>"
    assert between(table) == "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |"
    assert between("<pre>a\n\n  b <i>c</i><br>d</pre>") == "```\na\n\n  b c\nd\n```"
    assert between("<ul><li>x<pre>a\n  b</pre></ul>") == "- x\n\n  ```\n  a\n    b\n  ```"
    layout = "<table><tr><td><pre>1\n2</pre></td><td><pre>a\nb</pre></td></tr></table>"
    assert between(layout) == "```\n1\n2\n```\n\n```\na\nb\n```"
    cells = "<tr><th>a</th><th>b</th></tr><tr><td>x<ul><li>1</li><li>2</li></ul></td><td><pre>c|d</pre></td></tr>"
    assert between(f"<table>{cells}</table>") == "| a | b |\n| --- | --- |\n| x<br>1<br>2 | `c\\|d` |"
    assert between("<dl><dt>t</dt><dd>says it</dd></dl>") == "t\n\nsays it"


def test_links_are_kept_and_nothing_is_live() -> None:
    page = f"<body><h1>T</h1><p><a href='x y' title=t>one</a> <a href='javascript:x'>two</a>{SAID}{SAID}</body>"
    said = content_of_html(page)
    assert said.links == ("x y",)
    assert "[one](page-link:0) two" in said.markdown
    for code in ("<code><a href=x>a[0]</a></code>", "<a href=x><code>a[0]</code></a>"):
        assert between(f"<p>{code}</p>") == "[`a[0]`](page-link:0)"
    assert between("<p>&lt;script&gt;alert&lt;/script&gt; &lt;string&gt;") == r"\<script\>alert\</script\> \<string\>"


def test_text_keeps_its_meaning() -> None:
    for text in ("1. January", "* note", "[note]: url", "2*3*4", "# x", "a_b_c", "- x", "~~~", "==="):
        assert LexborHTMLParser(RENDER(between(f"<p>{text}</p>"))).body.text().strip() == text  # type: ignore[union-attr]


def test_many_paragraphs_of_marks_take_linear_time() -> None:
    began = time.process_time()
    assert markdown("<p>-</p>" * 6000).count("\\-") == 6000
    assert time.process_time() - began < 2


def test_other_documents() -> None:
    assert content_of_text("Größe *\nb\n\nzwei").markdown == "Größe \\* b\n\nzwei"
    assert content_of_html("").markdown == ""
    assert content_of_html("<p>body").markdown == "body"


TEXT = st.lists(
    st.sampled_from(["<script>", "&lt;", "1. x", "* x", "[x]: y", "2*3*4", "# x", "```", "`a`", "|", "\\", "![x](y)",
                     "~~~", "---", "word", "> q", "_x_", "**", "http://a.b/", "<b>", "$", "ü",
                     "a_b", "a-", "(1)", "1)", "C#", "a="]),
    min_size=1, max_size=4,
).map(lambda parts: markup.escape(" ".join(parts)))  # fmt: skip
INLINE = st.lists(
    st.one_of(TEXT, *(TEXT.map(f"<{tag}>{{}}</{tag}>".format) for tag in ("b", "em", "del", "sup", "span", "q"))),
    min_size=1, max_size=4,
).map(" ".join)  # fmt: skip
BLOCK = st.one_of(
    INLINE.map("<p>{} <a href=/x>z</a></p>".format), INLINE.map("<h2>{}</h2>".format),
    INLINE.map("<ul><li>{}</li><li>z</li></ul>".format), INLINE.map("<blockquote><p>{}</p></blockquote>".format),
    INLINE.map("<table><tr><th>a</th><th>b</th></tr><tr><td>{}</td><td>c</td></tr></table>".format),
    TEXT.map("<pre>{}\n  z</pre>".format), TEXT.map("<p>a <code>{}</code> b</p>".format),
    TEXT.map("<p><a href=/x><code>{}</code></a></p>".format), TEXT.map("<p><code>a</code><code>{}</code></p>".format),
)  # fmt: skip


@given(st.lists(BLOCK, min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_markdown_is_rendered_to_the_same_text(blocks: list[str]) -> None:
    inner = "".join(blocks)
    page = LexborHTMLParser(inner).body
    assert page is not None
    text = page.text()
    shown = LexborHTMLParser(RENDER(converted([page]).markdown)).body
    assert shown is not None
    assert "".join(shown.text().split()) == "".join(text.split())
    assert shown.css_first("script,b,del") is None
