"""Pages that are like the answer of their site to a path that cannot exist."""

from __future__ import annotations

import pytest

from crawler.model import Failed, Fetched, FetchResult, PageFacts, Purpose, Reading, Redirected
from crawler.page.html import read_page
from crawler.page.soft_404 import NO_EXAMPLE, NotFoundExample, example_of, example_path, unknown_example
from crawler.reasons import ErrorKind

SITE = "http://a.test"
URL = SITE + example_path(SITE)
WORDS = " ".join(f"word{n}" for n in range(200))


def read(title: str, text: str, head: str = "") -> PageFacts:
    body = f"<title>{title}</title>{head}<p>{text}</p><script>{title}</script>".encode()
    about = {"headers": (), "charset": None, "token": "bot", "reading": Reading.STRICT, "now": 0.0}
    return read_page(body, url=URL, shingles=True, **about)  # type: ignore[arg-type]


def example(facts: PageFacts) -> NotFoundExample:
    answer = Fetched(URL, 0.0, 1.0, (), content_type="text/html", charset=None, plain=b"")
    file, made = example_of(answer, facts, SITE)
    assert (file.path, file.purpose, file.status) == (example_path(SITE), Purpose.SOFT_404, "200")
    assert NotFoundExample.unpacked(file.body) == made
    assert b"word7" not in file.body
    return made


def test_a_page_is_compared_by_its_text_and_by_title_and_shingles() -> None:
    missing = example(read("Not found", f"Sorry, no such page as x. {WORDS}"))
    cases = {
        "the same": (read("Not found", f"Sorry, no such page as x. {WORDS}"), True),
        "another path in the text": (read("Not found", f"Sorry, no such page as products. {WORDS}"), True),
        "another title": (read("Products", f"Sorry, no such page as products. {WORDS}"), False),
        "another text": (read("Not found", " ".join(f"other{n}" for n in range(200))), False),
        "NOINDEX": (read("Not found", WORDS, '<meta name="robots" content="noindex">'), None),
    }
    assert {name: missing.is_like(f"{SITE}/x", facts) for name, (facts, _) in cases.items()} == {
        name: wanted for name, (_, wanted) in cases.items()
    }
    short = example(read("Not found", "no x"))
    assert short.is_like(f"{SITE}/x", read("Not found", "no x")) is True
    assert short.is_like(f"{SITE}/x", read("Not found", "no y")) is False, "short texts are alike by chance"
    assert example(read("", "x", '<meta name="robots" content="noindex">')).is_like(URL, read("", "x")) is False


def failed(status: int | None) -> Failed:
    return Failed(URL, 0.0, 1.0, (), kind=ErrorKind.HTTP if status else ErrorKind.CONNECT, status=status)


def redirected(location: str) -> Redirected:
    return Redirected(URL, 0.0, 1.0, (), status=302, location=location)


@pytest.mark.parametrize(
    ("answer", "of_page", "of_other"),
    [
        (failed(404), False, False),
        (failed(410), False, False),
        (failed(503), None, None),
        (failed(403), None, None),
        (failed(None), None, None),
        (redirected("/gone.html"), True, False),
        (redirected("http://b.test/"), False, False),
        (redirected("/"), False, False),
        (redirected("mailto:x"), None, None),
    ],
)
def test_an_answer_that_is_no_page(answer: FetchResult, of_page: bool | None, of_other: bool | None) -> None:
    _, made = unknown_example(answer, SITE)
    page = read("a", WORDS)
    assert (made.is_like(f"{SITE}/gone.html", page), made.is_like(f"{SITE}/", page)) == (of_page, of_other)


def test_a_wall_says_nothing() -> None:
    answer = Fetched(URL, 0.0, 1.0, (), content_type="text/html", charset=None, plain=b"")
    file, made = example_of(answer, PageFacts(wall="Cloudflare: x", text_sha256=b"x"), SITE)
    assert (made, file.note) == (NO_EXAMPLE, "Cloudflare: x")
