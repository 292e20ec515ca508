"""The directives, texts and links of a page: docs/protocols.md, section 3."""

import pytest

from crawler.model import Headers, Link, PageFacts, Reading
from crawler.page.headers import header_facts
from crawler.page.html import read_page
from crawler.page.links import MAX_LINKS

URL = "http://a.test/dir/page.html"


def page(html: str, *, headers: Headers = (), url: str = URL, reading: Reading = Reading.STRICT) -> PageFacts:
    return read_page(
        html.encode(), url=url, headers=headers, charset="utf-8", token="FigTree", reading=reading, now=0.0
    )


def urls(facts: PageFacts) -> list[str]:
    return [link.url for link in facts.links]


class TestDirectives:
    def test_nothing_said(self) -> None:
        facts = page("<p>x")
        assert (facts.index, facts.follow, facts.directives) == (True, True, ())

    def test_names_are_case_insensitive_and_evidence_is_kept(self) -> None:
        facts = page('<META NAME=" Robots " CONTENT="NoIndex">')
        assert (facts.index, facts.follow) == (False, True)
        assert facts.directives == ("META robots: NoIndex",)

    def test_a_tag_named_after_our_token_counts(self) -> None:
        assert not page("<meta name=figtree content=noindex>").index
        assert page("<meta name=otherbot content=noindex>").index

    def test_empty_elements_of_xhtml_contain_nothing(self) -> None:
        rest = '<meta name="robots" content="noindex"/><a href="/b">b</a>'
        for empty in ("<title/>", '<script src="a>b.js" />', "<template id='/>'/>", "<iframe src='/b'/>"):
            html = f'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml">{empty}{rest}'
            facts = page(html, headers=(("Content-Type", "Application/XHTML+XML; charset=utf-8"),))
            assert (facts.index, [link.url for link in facts.links]) == (False, ["http://a.test/b"]), empty
        assert page(f"<title/>{rest}").index, "HTML has no empty elements of this form"

    def test_header_and_tags_add_up(self) -> None:
        facts = page("<meta name=robots content=nofollow>", headers=(("x-robots-tag", "noindex"),))
        assert (facts.index, facts.follow) == (False, False)

    def test_header_and_tags_contradict_each_other(self) -> None:
        headers = (("X-Robots-Tag", "noindex"),)
        html = "<meta name=robots content=all>"
        assert not page(html, headers=headers).index
        assert page(html, headers=headers, reading=Reading.DRAFT1996).index

    @pytest.mark.parametrize(
        "html",
        [
            "<!-- {} -->",
            "<script>{}</script>",
            "<style>{}</style>",
            "<template>{}</template>",
            "<textarea>{}</textarea>",
            "<title>{}</title>",
            "<p title='{}'>",
        ],
    )
    def test_tags_that_are_no_tags_do_not_count(self, html: str) -> None:
        facts = page(html.format('<meta name="robots" content="none"><a href="x">y</a>'))
        assert (facts.index, facts.follow, facts.links) == (True, True, ())

    @pytest.mark.parametrize("html", ["<noscript><img src=x></noscript>{}", "<body><p>{}", "<noscript>{}</noscript>"])
    def test_tags_count_in_head_and_body(self, html: str) -> None:
        assert not page(html.format("<meta name=robots content=noindex>")).index

    def test_noindex_keeps_links_but_nothing_that_was_written(self) -> None:
        facts = page(
            "<title>t</title><meta name=robots content=noindex><meta name=description content=d>"
            "<meta name=keywords content=k><a href=x>y</a>"
        )
        assert (facts.title, facts.description, facts.keywords) == (None, None, None)
        assert urls(facts) == ["http://a.test/dir/x"]

    def test_nofollow_keeps_directives_but_no_links(self) -> None:
        facts = page("<title>t</title><meta name=robots content=nofollow><a href=x>y</a><a href=mailto:x>y</a>")
        assert (facts.title, facts.links, facts.other_schemes) == ("t", (), {})

    def test_headers_alone(self) -> None:
        headers = (("X-Robots-Tag", "none"), ("Link", '</c>; rel="canonical"'))
        facts = header_facts(headers, url=URL, token="figtree", reading=Reading.STRICT, now=0.0)
        assert (facts.index, facts.follow, facts.canonical_url) == (False, False, "http://a.test/c")


class TestWords:
    def test_title_is_the_first_and_on_one_line(self) -> None:
        assert page("<title>\n A \t &amp; B </title><title>C</title>").title == "A & B"

    def test_title_of_a_drawing_is_not_the_page_s(self) -> None:
        assert page("<body><svg><title>drawing</title></svg><title>page</title>").title == "page"
        assert page("<body><svg><g><title>drawing</title></g></svg>").title is None

    def test_words_are_bounded(self) -> None:
        facts = page(f"<title>{'x' * 99_999}</title><meta name=description content='{'y ' * 99_999}'>")
        assert len(facts.title or "") == 1_000
        assert len(facts.description or "") <= 4_000

    def test_keywords_and_description_are_the_first_that_say_anything(self) -> None:
        facts = page(
            "<meta name=Keywords content><meta name=keywords content=' a,  b '><meta name=keywords content=c>"
            "<META NAME=DESCRIPTION CONTENT='d &lt; e'>"
        )
        assert (facts.keywords, facts.description) == ("a, b", "d < e")

    @pytest.mark.parametrize(
        ("content", "state"), [("STATIC", "STATIC"), ("dynamic ", "DYNAMIC"), ("other", None), ("", None)]
    )
    def test_document_state(self, content: str, state: str | None) -> None:
        assert page(f"<meta name=document-state content='{content}'>").document_state == state


class TestCanonical:
    LINK = "<link rel='CANONICAL nofollow' href='/c#x'>"
    META = "<meta name=url content='HTTP://A.test:80/m'>"
    HEADERS = (("Link", '<h>; rel="canonical"'),)

    def test_order(self) -> None:
        facts = page(self.LINK + self.META, headers=self.HEADERS)
        assert (facts.canonical_url, facts.meta_url) == ("http://a.test/c", "http://a.test/m")
        assert page(self.META, headers=self.HEADERS).canonical_url == "http://a.test/dir/h"
        assert page(self.META).canonical_url == "http://a.test/m"

    def test_the_first_valid_one(self) -> None:
        html = "<link rel=canonical href='mailto:x'><link rel=canonical href=/1><link rel=canonical href=/2>"
        assert page(html).canonical_url == "http://a.test/1"

    def test_meta_url_must_be_absolute(self) -> None:
        assert page("<meta name=url content='/m'>").meta_url is None

    def test_the_tag_is_resolved_against_the_base_and_the_header_against_the_url(self) -> None:
        base = "<base href='/b/'>"
        assert page(base + "<link rel=canonical href=c>").canonical_url == "http://a.test/b/c"
        assert page(base, headers=self.HEADERS).canonical_url == "http://a.test/dir/h"

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("<c>; rel=canonical", "http://a.test/dir/c"),
            ('<a>; rel="next", <c> ; title="x, y; z" ; rel="shortlink canonical"', "http://a.test/dir/c"),
            ('<c>; rel="canonical"; anchor="/other"', None),
            ('<ftp://x/>; rel="canonical"', None),
            ("c; rel=canonical", None),
        ],
    )
    def test_link_header(self, value: str, expected: str | None) -> None:
        assert page("", headers=(("link", value),)).canonical_url == expected


class TestLinks:
    @pytest.mark.parametrize("rel", ["nofollow,noopener", "tag, NoFollow", "tag;nofollow", "nofollow,", "ugc nofollow"])
    def test_nofollow_among_other_words_of_a_rel(self, rel: str) -> None:
        """Blanks separate them; a comma in their place must not open what was closed."""
        (anchor, following) = page(f"<a href=x rel='{rel}'>no</a><link rel='next {rel}' href=y>").links
        assert (anchor.follow, following.follow) == (False, False)
        feed = "<link rel='alternate {}' type=application/rss+xml href=f>"
        assert (page(feed.format(rel)).feeds, page(feed.format("home")).feeds) == ((), ("http://a.test/dir/f",))
        (other,) = page("<a href=x rel=nofollowed,no-follow>yes</a>").links
        assert other.follow

    def test_targets_once_each_in_order_without_fragments(self) -> None:
        facts = page("<a href=b>1</a><a href=a>2</a><a href=b#x>3</a><a href='../dir/b'>4</a><a href=page.html#y>5</a>")
        assert urls(facts) == ["http://a.test/dir/b", "http://a.test/dir/a", URL]

    def test_places_in_the_page_are_no_links(self) -> None:
        assert page("<a href='#x'>1</a><a href=' #'>2</a><base href='/b/'><a href='#y'>3</a>").links == ()

    def test_every_kind(self) -> None:
        facts = page(
            "<link rel=next href=n><link rel=stylesheet href=s><a href=a>A</a><map><area href=m alt=M></map>"
            "<iframe src=i></iframe><meta http-equiv=Refresh content='5; URL=r'>"
        )
        assert [(link.url.rpartition("/")[2], link.anchor, link.rel) for link in facts.links] == [
            ("n", "", "next"),
            ("a", "A", ""),
            ("m", "M", ""),
            ("i", "", "iframe"),
            ("r", "", "refresh"),
        ]
        assert page("<frameset><frame src=f></frameset>").links[0].rel == "frame"

    def test_links_in_drawings_are_written_with_xlink_too(self) -> None:
        facts = page(
            "<svg><a xlink:href=x><text>X</text></a><a xlink:href='#no' href=y></a><a href='' xlink:href=no></a></svg>"
            "<math><mrow xlink:href=no></mrow></math><a xlink:href=no>no attribute of HTML</a>"
        )
        assert [(link.url, link.anchor) for link in facts.links] == [
            ("http://a.test/dir/x", "X"),
            ("http://a.test/dir/y", ""),
            (URL, ""),
        ]

    def test_other_svg_elements_with_a_target_are_ignored(self) -> None:
        tags = "<base xlink:href=/b/></base><link rel='next canonical' xlink:href=c></link><frame xlink:src=f></frame>"
        facts = page(f"<svg>{tags}<meta xlink:content=x></meta></svg><a href=y>1</a>")
        assert (facts.base_url, facts.canonical_url, urls(facts)) == (URL, None, ["http://a.test/dir/y"])

    def test_elements_that_name_a_target_but_are_no_links(self) -> None:
        facts = page(
            "<meta href=m><title href=t>T</title><svg><use href=u></use><image href=v></image></svg>"
            "<iframe href=w></iframe><img src=x><script src=y></script><p href=z>"
        )
        assert (facts.title, facts.links) == ("T", ())

    def test_the_first_base_with_an_href_holds_for_all_links(self) -> None:
        facts = page("<a href=x>1</a><base target=t><base href='../b/c#f'><base href=/no/>")
        assert (facts.base_url, urls(facts)) == ("http://a.test/b/c", ["http://a.test/b/x"])

    def test_a_base_that_is_no_url_for_us_is_passed_over(self) -> None:
        assert page("<base href='javascript:x'><a href=y>1</a>").base_url == URL

    def test_nofollow_on_a_link_is_recorded_and_not_followed(self) -> None:
        facts = page("<a href=x rel='NoFollow  ugc'>1</a><a href=y rel='ugc sponsored'>2</a>")
        assert [(link.rel, link.follow) for link in facts.links] == [("nofollow ugc", False), ("ugc sponsored", True)]

    def test_a_target_is_followed_if_any_of_its_links_is_followed(self) -> None:
        (link,) = page("<a href=x rel=nofollow>no</a><a href=x rel=tag>yes</a><a href=x>later</a>").links
        assert (link.anchor, link.rel, link.follow) == ("yes", "tag", True)

    @pytest.mark.parametrize(
        ("inside", "anchor"),
        [
            (" a\n<b> b</b>c ", "a bc"),
            ("<img alt='an image'>", "an image"),
            ("<img alt='an image'>text", "text"),
            ("<style>p{}</style><script>x</script>y", "y"),
            ("<!-- c -->", ""),
            ("x" * 999, "x" * 200),
        ],
    )
    def test_anchor_text(self, inside: str, anchor: str) -> None:
        assert page(f"<p><a href=x>{inside}</a> and more").links[0].anchor == anchor

    def test_anchor_text_is_the_first_that_is_not_empty(self) -> None:
        assert page("<a href=x></a><a href=x> </a><a href=x#y>here</a>").links[0].anchor == "here"

    def test_of_many_uses_the_first_that_can_be_followed_counts_with_its_text_or_else_the_first(self) -> None:
        unnamed, named, followed = (
            "<a href=x rel=nofollow></a>",
            "<a href=x rel=nofollow>a</a>",
            "<a href=x rel=me>{}</a>",
        )
        uses = unnamed * 3 + named + unnamed + followed + named
        assert page(uses.format("")).links == (Link("http://a.test/dir/x", "a", "me", True),)
        assert page(uses.format("b")).links == (Link("http://a.test/dir/x", "b", "me", True),)
        # And the same over two ways of writing one target.
        assert page("<a href=./x rel=nofollow></a>" * 5 + uses.format("")).links == (
            Link("http://a.test/dir/x", "a", "me", True),
        )

    def test_other_schemes_are_counted(self) -> None:
        facts = page(
            "<a href='mailto:x'>1</a><a href='MAILTO:x'>2</a><a href='mailto:x'>3</a>" + "<a href='tel:1'>4</a>" * 9
        )
        assert (facts.links, facts.other_schemes) == ((), {"mailto": 3, "tel": 9})

    def test_invalid_urls_are_dropped(self) -> None:
        facts = page("<a href='http://['>1</a><a href='http://u:p@a.test/'>2</a>")
        assert (facts.links, facts.other_schemes) == ((), {})

    def test_schemes_and_links_are_bounded(self) -> None:
        facts = page("".join(f"<a href=x{i}:y>1</a>" for i in range(100)))
        assert len(facts.other_schemes) == 32
        facts = page("".join(f"<a href={i}>1</a>" for i in range(MAX_LINKS + 10)))
        assert len(facts.links) == MAX_LINKS
        assert "left out" in facts.note

    def test_a_long_base_does_not_multiply(self) -> None:
        links = "".join(f"<a href={i}>1</a>" for i in range(10_000))
        facts = page(f"<base href='/{'b' * 7_900}/'>{links}")
        assert 0 < len(facts.links) < 3_000
        assert "left out" in facts.note

    @pytest.mark.parametrize(
        ("content", "target"),
        [
            ("0; url='a b'", "http://a.test/dir/a%20b"),
            ("3.5,x", "http://a.test/dir/x"),
            ("0 URL = x", "http://a.test/dir/x"),
            ("0;url=x?url=y", "http://a.test/dir/x?url=y"),
            ("5", None),
            ("url=x", None),
            ("", None),
        ],
    )
    def test_refresh(self, content: str, target: str | None) -> None:
        assert urls(page(f'<meta http-equiv=refresh content="{content}">')) == ([target] if target else [])


@pytest.mark.parametrize(
    ("html", "target"),
    [
        ("<meta http-equiv=refresh content='0; url=b'>", "http://a.test/dir/b"),
        ("<meta http-equiv=refresh content='00.9;b'><meta http-equiv=refresh content='0;c'>", "http://a.test/dir/b"),
        ("<base href=/x/><meta http-equiv=refresh content='0;b'>", "http://a.test/x/b"),
        ("<meta http-equiv=refresh content='1;b'>", None),
        ("<meta http-equiv=refresh content='10;b'>", None),
        ("<meta http-equiv=refresh content='0'>", None),
        (f"<meta http-equiv=refresh content='0;{URL}'>", None),
        ("<meta http-equiv=refresh content='0;mailto:x'>", None),
        ("<noscript><meta http-equiv=refresh content='0;b'></noscript>", None),
        ("<meta name=robots content=nofollow><meta http-equiv=refresh content='0;b'>", None),
    ],
)
def test_an_instant_refresh(html: str, target: str | None) -> None:
    assert page(html).refresh_url == target


def test_the_charset_is_decided_and_told() -> None:
    body = "<meta charset=windows-1251><title>мир</title>".encode("cp1251")
    facts = read_page(body, url=URL, headers=(), charset=None, token="f", reading=Reading.STRICT, now=0.0)
    assert (facts.charset, facts.title) == ("windows-1251", "мир")
