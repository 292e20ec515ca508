"""The ``rfc9309`` reading against Protego, another project's parser.

Both agree on all generated files. Each known difference is a case below with its reason, and the generator leaves these
cases out. RFC 9309 is ambiguous about escapes and the lengths of rules.
"""

import pytest
from hypothesis import given
from protego import Protego

from crawler.model import Reading
from crawler.robots.readings import read
from crawler.robots.text import parse
from tests.fuzz import TARGETS, check_protego, examples


@examples(200)
@given(TARGETS["protego"][0])
def test_allow_and_disallow_lines_mean_the_same(case: tuple[str, str]) -> None:
    check_protego(case)


@examples(200)
@given(TARGETS["protego-disallow"][0])
def test_disallow_lines_mean_the_same_with_reserved_characters_too(case: tuple[str, str]) -> None:
    check_protego(case)


# name: rules for "*", path, whether we allow it, and why; Protego says the contrary.
OF_RULES = {
    # RFC 9309, 2.2.3: "$" at the end of a pattern is the end of the URL. Protego takes it for the character as well.
    "the-end-is-no-dollar": ("Disallow: /a$", "/a$b", True),
    # RFC 9309 knows no index pages; that "Allow: /index.html" opens "/" is an addition.
    "index-pages-are-pages": ("Allow: /index.html\nDisallow: /", "/", False),
    # RFC 9309, 2.2.2, the table: "?baz=http://foo.bar" and "?baz=http%3A%2F%2Ffoo.bar" match, either way round.
    "an-escaped-slash-in-a-query": ("Disallow: /a?b=/", "/a?b=%2F", False),
    # Matching is by octets: the first octet of an encoded character is a prefix of it.
    "half-a-character": ("Disallow: /%C3", "/%C3%BC", False),
    # To the letter RFC 9309 leaves "%20" encoded, so that "20" is found in it, as ":" would be found by "3A". Here an
    # escape is the one octet that it stands for; only a half escape is taken as text.
    "the-digits-of-an-escape": ("Disallow: /*20", "/a%20b", True),
    # Longest by octets: to the letter counted after encoding, "%21", as Protego has it. We count the octet that is
    # meant, as Google's parser counts the one that is written: a tie, and Allow wins.
    "length-of-reserved-characters": ("Allow: /*\nDisallow: /!", "/!", True),
    # RFC 9309, 2.2: a line is a field, a colon, a value. Misspellings and missing colons are not rules.
    "misspelt": ("Dissallow: /", "/a", True),
    "without-a-colon": ("Disallow /", "/a", True),
    # A value that is a URL is no path: the RFC's paths start with a slash.
    "a-url-for-a-path": ("Disallow: http://x.ru", "/http://x.ru", True),
    # RFC 9309, 2.2: lines end in CR or LF, and in nothing else.
    "other-line-ends": ("Disallow: /a\x0cDisallow: /b", "/b", True),
}


@pytest.mark.parametrize("name", OF_RULES)
def test_rules_on_which_protego_differs(name: str) -> None:
    lines, path, ours = OF_RULES[name]
    assert both(f"User-agent: *\n{lines}\n", path, "figtree") == (ours, not ours)


# name: a file, the token, and whether it may fetch /a.
OF_GROUPS = {
    # RFC 9309, 2.2.1: a group names us where the tokens are equal, not where one begins with the other.
    "the-beginning-of-a-name": ("User-agent: fig\nDisallow: /", "figtree", True),
    # So says the RFC's matching of tokens too: what follows the token of a value is not looked at.
    "a-name-with-a-version": ("User-agent: figtree/2.0\nDisallow: /", "figtree", False),
    # RFC 9309, 2.2.1: Crawl-delay is no rule, so the agents before and after it are one group.
    "crawl-delay-between-agents": ("User-agent: figtree\nCrawl-delay: 1\nUser-agent: x\nDisallow: /", "figtree", False),
    "unknown-field-between-agents": ("User-agent: figtree\nX: y\nUser-agent: x\nDisallow: /", "figtree", False),
    # The token of a value is letters, "_" and "-" in RFC 9309; digits are read where robots have such names.
    "a-name-with-digits": ("User-agent: AB42bot\nDisallow: /", "ab", False),
    # Field names: RFC 9309 has one spelling.
    "useragent": ("Useragent: figtree\nDisallow: /", "figtree", True),
}


@pytest.mark.parametrize("name", OF_GROUPS)
def test_groups_on_which_protego_differs(name: str) -> None:
    text, token, ours = OF_GROUPS[name]
    assert both(text, "/a", token) == (ours, not ours)


def test_a_half_escape_is_the_text_of_an_escape_for_both() -> None:
    """``/*%`` closes URLs with escapes in them, although literally no octet of ``/a%20b`` is a ``%``."""
    for pattern in ("/*%", "/a%2", "/*%2*b$"):
        assert both(f"User-agent: *\nDisallow: {pattern}", "/a%20b", "figtree") == (False, False)
        assert both(f"User-agent: *\nDisallow: {pattern}", "/ab", "figtree") == (True, True)


def both(text: str, path: str, token: str) -> tuple[bool, bool]:
    rules = read(parse(text.encode()), token=token, reading=Reading.RFC9309, site="http://a.ru")
    return rules.verdict(path).allowed, Protego.parse(text).can_fetch(f"http://a.ru{path}", token)
