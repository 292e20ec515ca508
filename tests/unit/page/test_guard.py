"""Which pages may be parsed where nothing can stop the parser."""

import pytest

from crawler.page.guard import is_light


def many(template: str, count: int) -> bytes:
    return "".join(template.replace("#", str(number)) for number in range(count)).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<p>text</p>" * 500,
        b"<div>" * 500 + b"</div>" * 500,
        many("<tr><td><a href='/page/#.html' title='x > y'>page #</a></td></tr>", 100),
        many("<p>Some <b>words</b> in <code class=c#>code</code>.</p>", 300),
        b"<p>" + b"words and words " * 1000,
    ],
)
def test_ordinary_pages_are_light(body: bytes) -> None:
    assert is_light(body)


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 100_000,
        b"<div>" * 100_000 + b"</div>" * 100_000,
        b"<div><!--</div>-->" * 100_000,
        b"<a " + many("a#=1 ", 100_000) + b">",
        b"<a " + many("a# ", 100_000) + b">",
        b"<a href=x>" * 100_000,
        b"<b>" * 100_000,
        many("<font size=#>", 100_000),
        many("<p><font size=#>x", 2_500),
        b"<form><div></form>" * 100_000,
        b"<table><tr><td>" * 100_000,
    ],
)
def test_pages_that_tie_the_parser_up_are_not(body: bytes) -> None:
    assert not is_light(body)
