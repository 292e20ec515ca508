"""The encoding of a page: HTML Standard, 13.2.3.2; Encoding Standard, 4.2."""

import pytest

from crawler.model import Reading
from crawler.page.charset import encoding_of, in_encoding, prescanned, to_utf8
from crawler.page.html import read_page
from crawler.page.tags import read_tags

TEXT = "Grüße, мир"


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("utf8", "utf-8"),
        ("ISO-8859-1", "windows-1252"),
        (" latin1 ", "windows-1252"),
        ("us-ascii", "windows-1252"),
        ("iso-8859-9", "windows-1254"),
        ("GB2312", "gbk"),
        ("x-sjis", "shift_jis"),
        ("ks_c_5601-1987", "euc-kr"),
        ("base64", None),
        ("utf-7", None),
        ("", None),
    ],
)
def test_labels(label: str, name: str | None) -> None:
    assert encoding_of(label) == name


def test_a_byte_order_mark_wins_over_the_header() -> None:
    assert to_utf8(b"\xef\xbb\xbf" + TEXT.encode(), "windows-1251") == ("utf-8", TEXT.encode())
    assert to_utf8(b"\xff\xfe" + TEXT.encode("utf-16-le"), "utf-8") == ("utf-16le", TEXT.encode())
    assert to_utf8(b"\xfe\xff" + TEXT.encode("utf-16-be"), None) == ("utf-16be", TEXT.encode())


def test_the_header_wins_over_the_meta() -> None:
    body = b'<meta charset="utf-8">' + "мир".encode("cp1251")
    assert to_utf8(body, "windows-1251") == ("windows-1251", '<meta charset="utf-8">мир'.encode())


@pytest.mark.parametrize(
    "meta",
    [
        b"<meta charset=windows-1251>",
        b"<META CHARSET = 'cp1251' />",
        b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">',
        b"<!-- <meta charset=koi8-r> --><meta charset=windows-1251>",
        b"<meta charset=nonsense><meta charset=windows-1251>",
    ],
)
def test_the_meta_is_found(meta: bytes) -> None:
    name, text = to_utf8(meta + "мир".encode("cp1251"), "nonsense")
    assert name == "windows-1251"
    assert text.endswith("мир".encode())


def test_the_prescan_looks_at_the_first_1024_bytes_only() -> None:
    body = b" " * 1024 + b"<meta charset=windows-1251>" + "ü".encode("cp1252")
    assert to_utf8(body, None)[0] == "windows-1252"


def test_a_meta_that_was_read_as_ascii_is_not_utf_16() -> None:
    assert to_utf8(b"<meta charset=utf-16>x", None)[0] == "utf-8"


def test_nothing_declared() -> None:
    assert to_utf8(TEXT.encode(), None) == ("utf-8", TEXT.encode())
    assert to_utf8("Grüße".encode("cp1252"), None) == ("windows-1252", "Grüße".encode())


def test_a_page_that_was_cut_in_a_character_is_still_utf_8() -> None:
    assert to_utf8("Grü".encode()[:-1], None) == ("utf-8", "Gr\ufffd".encode())


def test_bytes_that_mean_nothing_become_replacement_characters() -> None:
    assert to_utf8(b"a\xffb", "utf-8") == ("utf-8", "a\ufffdb".encode())


# --- HTML, 13.2.3.2 "prescan a byte stream to determine its encoding" ---


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"<!--><meta charset=koi8-r>", "koi8-r"),
        (b"<!-- <meta charset=koi8-r>", None),
        (b"<p title='<meta charset=koi8-r>'><meta charset=cp1251>", "windows-1251"),
        (b"</p a='><meta charset=koi8-r>'><meta charset=cp1251>", "windows-1251"),
        (b"<!x <meta charset=koi8-r><meta charset=cp1251>", "windows-1251"),
        (b"<?x <meta charset=koi8-r><meta charset=cp1251>", "windows-1251"),
        (b"<script><meta charset=koi8-r></script>", "koi8-r"),
        (b"<metacharset=koi8-r>", None),
        (b"<meta/charset=koi8-r>", "koi8-r"),
        (b"<meta a=charset=koi8-r>", None),
        (b"<meta charset=nonsense charset=koi8-r><meta charset=cp1251>", "windows-1251"),
        (b"<meta content='text/html; charset=koi8-r'>", None),
        (b"<meta name=x content='charset=koi8-r'>", None),
        (b"<meta content='charset=koi8-r' http-equiv=Content-Type>", "koi8-r"),
        (b"<meta content='charset=koi8-r' charset=cp1251>", "windows-1251"),
        (b"<meta http-equiv=content-type content='charset=\"koi8-r'>", None),
        (b"<meta http-equiv=content-type content='charset koi8-r; charset=koi8-r'>", "koi8-r"),
        (b"<meta charset=utf-16be>", "utf-8"),
        (b"<meta charset=x-user-defined>", "windows-1252"),
        (b"<meta charset=koi8-r", None),
        (b"<?xml version='1.0' encoding='koi8-r'?>", "koi8-r"),
        (b"<?xml encoding='utf-16'?>", "utf-8"),
        ("<?xml".encode("utf-16-le"), "utf-16le"),
        ("<?xml".encode("utf-16-be"), "utf-16be"),
    ],
)
def test_prescan(head: bytes, name: str | None) -> None:
    assert prescanned(head) == name


# --- HTML, 13.2.3.5 "changing the encoding while parsing" ---


def read(body: bytes, charset: str | None = None) -> tuple[str, str | None]:
    page = read_tags(body, charset)
    return page.encoding, page.title


LATE = b" " * 2000 + b"<meta charset=windows-1251><title>" + "мир".encode("cp1251") + b"</title>"


def test_a_meta_behind_the_first_1024_bytes_changes_the_encoding() -> None:
    assert read(LATE) == ("windows-1251", "мир")
    equivalent = LATE.replace(b"charset=windows-1251", b"http-equiv=Content-Type content='text/html;charset=cp1251'")
    assert read(equivalent) == ("windows-1251", "мир")


def test_a_header_or_a_byte_order_mark_is_certain() -> None:
    assert read(LATE, "koi8-r")[0] == "koi8-r"
    assert read(b"\xef\xbb\xbf" + LATE)[0] == "utf-8"


def test_the_first_meta_of_the_tree_corrects_the_prescan() -> None:
    """The prescan does not know scripts; the parser does."""
    body = b"<script>'<meta charset=koi8-r>'</script><meta charset=cp1251><title>" + "мир".encode("cp1251")
    assert read(body) == ("windows-1251", "мир")


# --- URL Standard, 4.4 "query state" ---


@pytest.mark.parametrize(
    ("href", "encoding", "expected"),
    [
        ("/a?q=Grüße", "windows-1252", "/a?q=Gr%FC%DFe"),
        ("/ü?q=ü", "windows-1252", "/ü?q=%FC"),
        ('/a?q=мир&x="', "windows-1251", "/a?q=%EC%E8%F0&x=%22"),
        ("/a?q=мир", "windows-1252", "/a?q=%26%231084%3B%26%231080%3B%26%231088%3B"),
        ("/a?q=表", "shift_jis", "/a?q=%95\\"),
        ("/a?q=日", "iso-2022-jp", "/a?q=%1B$BF|%1B(B"),
        ("/a?q=Grüße", "utf-8", "/a?q=Grüße"),
        ("/a?q=Grüße", "utf-16le", "/a?q=Grüße"),
        ("/ü", "windows-1252", "/ü"),
        (" /a?q=ü\n ", "windows-1252", "/a?q=%FC"),
    ],
)
def test_a_query_is_in_the_encoding_of_the_page(href: str, encoding: str, expected: str) -> None:
    assert in_encoding(href, encoding) == expected


def test_links_of_a_page_in_a_legacy_encoding() -> None:
    body = '<meta charset=windows-1251><a href="/ё?q=мир#ё">x</a><a href="/?ok">y</a>'.encode("cp1251")
    page = read_page(body, url="http://a.test/", headers=(), charset=None, token="fig", reading=Reading.STRICT, now=0.0)
    assert [link.url for link in page.links] == ["http://a.test/%D1%91?q=%EC%E8%F0", "http://a.test/?ok"]
