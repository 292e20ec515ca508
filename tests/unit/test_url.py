"""Canonical URLs and their parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from publicsuffixlist import PSLFILE, PublicSuffixList

from crawler.url import (
    MAX_URL_CHARS,
    NotCrawlable,
    address_for,
    canonicalise,
    host_of,
    is_loopback,
    literal_address,
    registered_domain,
    scheme_of,
    split,
    without_userinfo,
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("HTTP://Example.ORG:80", "http://example.org/"),
        ("https://example.org:443/a", "https://example.org/a"),
        ("https://example.org:80/a", "https://example.org:80/a"),
        ("http://example.org/a/./b/../c?x=1#frag", "http://example.org/a/c?x=1"),
        ("http://example.org?q", "http://example.org/?q"),
        ("http://example.org/?", "http://example.org/?"),
        ("  http://example.org/\n", "http://example.org/"),
        ("http://bücher.example/ü?ü", "http://xn--bcher-kva.example/%C3%BC?%C3%BC"),
        ("http:\\\\example.org\\x", "http://example.org/x"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://[0:0::1]/", "http://[::1]/"),
        ("http://example.org/%7Ea/%2f", "http://example.org/%7Ea/%2f"),
        ("http://example.org/a@b", "http://example.org/a@b"),
        ("http://example.org/#a@b/", "http://example.org/"),
        ("http://example.org./", "http://example.org./"),
    ],
)
def test_canonical_form(text: str, canonical: str) -> None:
    assert canonicalise(text) == canonical


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("c", "http://a.test/b/c"),
        ("/c", "http://a.test/c"),
        ("//b.test", "http://b.test/"),
        ("?q", "http://a.test/b/x?q"),
        ("", "http://a.test/b/x?y"),
        ("#f", "http://a.test/b/x?y"),
        ("../../..", "http://a.test/"),
        ("https:c", "https://c/"),
    ],
)
def test_relative_to_a_base(text: str, canonical: str) -> None:
    assert canonicalise(text, "http://a.test/b/x?y") == canonical


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a URL"),
        ("example.org", "not a URL"),
        ("http://", "not a URL"),
        ("http://a b/", "not a URL"),
        ("http://a.test:99999/", "not a URL"),
        ("http://1.2.3.4.5/", "not a URL"),
        ("http://a\ud800/", "not a URL"),
        ("mailto:a@b.test", "not an http or https URL"),
        ("javascript:alert(1)", "not an http or https URL"),
        ("ftp://a.test/", "not an http or https URL"),
        ("http://me@a.test/", "user name or password"),
        ("http://me:pass@a.test/", "user name or password"),
        ("http://a.test/" + "x" * MAX_URL_CHARS, "longer than"),
        (f"http://a.{'b' * 64}.test:81/", "empty or too long"),
        (f"http://{'a.' * 126}test/", "empty or too long"),
    ],
)
def test_a_refused_url_has_a_reason(text: str, why: str) -> None:
    with pytest.raises(NotCrawlable, match=why) as caught:
        canonicalise(text)
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "http://me:secret@a.test/",
        "http://secret@a.test/",
        "HTTPS:\\\\me:secret@a.test",
        "https:me:secret@a.test/x",
        "  ht\ttp:/\n/me:sec\nret@a.test/@x",
        "//me:se@cret:secret@a.test?q",
        "http:////me:secret@a.test#f",
        "ftp://me:secret@a.test/",
        "other+scheme://me:secret@a.test/",
        "http://me:secret@a b/",
        "http://me:secret@a.test/" + "x" * MAX_URL_CHARS,
    ],
)
def test_no_reason_keeps_a_password(text: str) -> None:
    with pytest.raises(NotCrawlable) as caught:
        canonicalise(text, "http://base.test/")
    assert "secret" not in str(caught.value)
    assert "***@a" in str(caught.value)
    assert "secret" not in without_userinfo(text).replace("\n", "")
    with pytest.raises(NotCrawlable):
        canonicalise(without_userinfo(text), "http://base.test/")


@pytest.mark.parametrize("text", ["http://a.test/@x", "/me:pass@x", "mailto:me@a.test", "?a@b", "http://a.test?a@b"])
def test_an_at_sign_elsewhere_stays(text: str) -> None:
    assert without_userinfo(text) == text


def test_the_longest_url() -> None:
    longest = "http://a.test/".ljust(MAX_URL_CHARS, "x")
    assert canonicalise(longest) == longest


@pytest.mark.parametrize(
    ("url", "site", "path", "host"),
    [
        ("http://a.test/", "http://a.test", "/", "a.test"),
        ("https://a.test/x?y/z", "https://a.test", "/x?y/z", "a.test"),
        ("http://a.test:8080/x:1", "http://a.test:8080", "/x:1", "a.test"),
        ("http://[::1]/", "http://[::1]", "/", "::1"),
        ("https://[2001:db8::1]:444/", "https://[2001:db8::1]:444", "/", "2001:db8::1"),
    ],
)
def test_parts(url: str, site: str, path: str, host: str) -> None:
    assert split(url) == (site, path)
    assert host_of(url) == host_of(site) == host


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.org", "example.org"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("example.org", "example.org"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("someone.github.io", "someone.github.io"),
    ],
)
def test_registered_domain(host: str, domain: str) -> None:
    assert registered_domain(host) == domain


def test_the_public_suffix_list_is_read_as_its_library_reads_it() -> None:
    library = PublicSuffixList()
    rules = [
        line.strip() for line in Path(PSLFILE).read_text("utf-8").splitlines() if line and not line.startswith("//")
    ]
    international = [rule for rule in rules if not rule.isascii()]
    assert len(international) > 100
    for rule in [*international, *rules[::20]]:
        host = f"a.b.{rule.lstrip('!*.')}"
        for written in (host, host.encode("idna").decode()):
            assert registered_domain(written) == (library.privatesuffix(written) or written)


def test_schemes_and_addresses() -> None:
    assert [scheme_of(text) for text in ("MailTo:x", " http:x", "x", "/x:y", "1x:y", "a+b-c.d:")] == [
        "mailto", "http", None, None, None, "a+b-c.d",
    ]  # fmt: skip
    assert str(literal_address("::ffff:127.0.0.1")) == "::ffff:7f00:1"
    assert literal_address("a.test") is None


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.1.2.3", "::1"])
def test_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "notlocalhost", "localhost.test", "127.0.0.1.evil.test", "10.0.0.1", "::2", "0.0.0.0"]
)
def test_other_machines(host: str) -> None:
    assert not is_loopback(host)


def test_the_first_matching_override_counts() -> None:
    overrides = (("a.test", "127.0.0.1"), ("*.test", "127.0.0.2"))
    assert address_for("a.test", overrides) == "127.0.0.1"
    assert address_for("B.A.test.", overrides) == "127.0.0.2"
    assert address_for("test", overrides) is None
    assert address_for("atest", overrides) is None
    assert address_for("anything.at.all", (("*", "::1"),)) == "::1"
