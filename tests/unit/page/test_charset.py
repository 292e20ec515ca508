"""The encoding of a page: HTML Standard, 13.2.3.2; Encoding Standard, 4.2."""

import pytest

from crawler.page.charset import encoding_of, to_utf8

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


def test_the_meta_is_looked_for_in_the_first_1024_bytes_only() -> None:
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
