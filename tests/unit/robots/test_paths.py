"""One path against one pattern: 1996 draft, 3.2.2; RFC 9309, 2.2.2 and 2.2.3."""

import pytest

from crawler.robots.paths import draft_form, draft_pattern, rfc_form, rfc_pattern, rfc_query_form


def draft_matches(pattern: str, path: str) -> bool:
    return draft_pattern(pattern).matches(draft_form(path))


def rfc_matches(pattern: str, path: str) -> bool:
    compiled = rfc_pattern(pattern)
    other = rfc_query_form(path)
    return compiled.matches(rfc_form(path)) or (other is not None and compiled.matches(other))


# The table of the 1996 draft, 3.2.2, every row.
DRAFT_TABLE = [
    ("/tmp", "/tmp", True),
    ("/tmp", "/tmp.html", True),
    ("/tmp", "/tmp/a.html", True),
    ("/tmp/", "/tmp", False),
    ("/tmp/", "/tmp/", True),
    ("/tmp/", "/tmp/a.html", True),
    ("/a%3cd.html", "/a%3cd.html", True),
    ("/a%3Cd.html", "/a%3cd.html", True),
    ("/a%3cd.html", "/a%3Cd.html", True),
    ("/a%3Cd.html", "/a%3Cd.html", True),
    ("/a%2fb.html", "/a%2fb.html", True),
    ("/a%2fb.html", "/a%2Fb.html", True),
    ("/a%2fb.html", "/a/b.html", False),
    ("/%7ejoe/index.html", "/~joe/index.html", True),
    ("/~joe/index.html", "/%7Ejoe/index.html", True),
]


@pytest.mark.parametrize(("pattern", "path", "matches"), DRAFT_TABLE)
def test_draft_3_2_2_table(pattern: str, path: str, matches: bool) -> None:
    assert draft_matches(pattern, path) is matches


@pytest.mark.parametrize(("pattern", "path", "matches"), DRAFT_TABLE)
def test_the_draft_table_holds_in_rfc9309_too(pattern: str, path: str, matches: bool) -> None:
    assert rfc_matches(pattern, path) is matches


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/a*b", "/a*bc", True),
        ("/a*b", "/axb", False),
        ("/a$", "/a$b", True),
        ("/a$", "/a", False),
        ("/a%2A", "/a*", True),
        ("/a/b", "/a%2Fb", False),
        ("/a%252F", "/a%252Fb", True),
        ("/a%252F", "/a%2Fb", False),  # decoded once, not twice
        ("/a b", "/a%20b", True),
        ("/ü", "/%C3%BC", True),
        ("/\udcfc", "/%fc", True),  # a latin-1 octet in the file
        ("/100%", "/100%", True),
        ("/100%", "/100%25", True),
        ("/a;b?c=d", "/a;b?c=de", True),
        ("/A", "/a", False),
    ],
)
def test_draft_3_2_2_every_octet_counts(pattern: str, path: str, matches: bool) -> None:
    assert draft_matches(pattern, path) is matches


# The table of RFC 9309, 2.2.2: the path in robots.txt, and the path that it matches.
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=http://foo.bar", "/foo/bar?baz=http%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=http%3A%2F%2Ffoo.bar", "/foo/bar?baz=http://foo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
    ],
)
def test_rfc9309_2_2_2_table(pattern: str, path: str) -> None:
    assert rfc_matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),  # the RFC's two examples
        ("/path/file-with-a-%2A.html", "/path/file-with-a-b.html", False),
        ("/path/foo-%24", "/path/foo-$", True),
        ("/path/foo-%24", "/path/foo-", False),
        ("/*.php", "/a/b.php?x", True),
        ("/*.php$", "/a/b.php?x", False),
        ("/*.php$", "/a.php/b.php", True),
        ("/a*", "/a", True),
        ("/a*$", "/abc", True),
        ("/a**b", "/a1b", True),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
        ("/a$b", "/a$bc", True),
        ("/a*a$", "/a", False),  # the two pieces may not share an octet
        ("/a*a$", "/aa", True),
        ("/*ab*ba", "/aba", False),
        ("*.gif", "/x.gif", True),
        ("*", "/", True),
        ("$", "/", False),
        ("/*%2Fadmin", "/x?u=%2Fadmin", True),  # an escape needs no "?" before it to equal itself
        ("/*?u=/admin", "/x?u=%2Fadmin", True),
        ("/x%3Fy", "/x?y", False),
        ("/a b", "/a%20b", True),
        ("/a:b", "/a%3Ab", True),
        ("/\udcfc", "/%fc", True),
        ("tmp", "/tmp", False),
    ],
)
def test_rfc9309_2_2_3_special_characters(pattern: str, path: str, matches: bool) -> None:
    assert rfc_matches(pattern, path) is matches


def test_rfc9309_2_2_2_the_longest_match_counts_octets_once_encoded() -> None:
    assert rfc_pattern("/ab*c$").octets == 6
    assert rfc_pattern("/ツ").octets == len("/%E3%83%84")
    assert rfc_pattern("/%61").octets == 2


def test_a_plain_prefix_needs_no_tail() -> None:
    assert rfc_pattern("/plain").tail is None
    assert rfc_pattern("/plain**").tail is None
