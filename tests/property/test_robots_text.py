"""For any robots.txt, parsing never fails, is repeatable and stays bounded."""

from hypothesis import example, given
from hypothesis import strategies as st

from crawler.robots.fields import KNOWN_FIELDS
from crawler.robots.text import RobotsFile, parse, whole_lines

FIELDS = [b"User-agent", b"disallow", b"Host", b"Crawl-delay", b"Request-rate", b"Sitemap", b"Mobile-agent-server"]
VALUES = [b"*", b"/", b"$", b"%2f", b"a.ru", b"9", b"1/5", b"none", b"atp://h:1"]
OCTETS = [b":", b": ", b"#", b"\n", b"\r", b"\r\n", b" ", b"\t", b"\x00", b"\xff"]
CHARACTERS = [text.encode() for text in ("\ufeff", "ツ", "\x85", "\u2028")]
FRAGMENTS = st.sampled_from([*FIELDS, *VALUES, *OCTETS, *CHARACTERS])
BODIES = st.one_of(st.binary(max_size=300), st.lists(FRAGMENTS, max_size=60).map(b"".join))


def written(file: RobotsFile) -> bytes:
    """The file again, every line at its number, with a comment where the parse found nothing to keep."""
    lines = {line.number: line.text for line in file.lines}
    text = "\n".join(lines.get(number, "#") for number in range(1, max(lines, default=0) + 1))
    return text.encode("utf-8", "surrogateescape")


@given(BODIES)
@example(b"\xef\xbb\xbf\xef\xbb\xbfa:b")
@example(b"a:\x0b\x0c:\x1c\n\x0b\n:")
def test_parsing_what_was_parsed_changes_nothing(body: bytes) -> None:
    file = parse(body)
    # A file that begins with a second BOM keeps it as text; written first, it would be taken for the first.
    assert parse(b"\xef\xbb\xbf" + written(file)).lines == file.lines


@given(BODIES, st.integers(0, 100))
def test_the_limits_hold_for_any_bytes(body: bytes, max_bytes: int) -> None:
    file = parse(body, max_bytes=max_bytes)
    kept = sum(len(line.text.encode("utf-8", "surrogateescape")) for line in file.lines)
    assert kept <= max_bytes
    assert file.truncated or [line for line in parse(body).lines if line.field in KNOWN_FIELDS] == [
        line for line in file.lines if line.field in KNOWN_FIELDS
    ]


@given(
    st.sampled_from(["utf-16-le", "utf-16-be"]),
    st.text(st.sampled_from("a/:\n\r\u0a0a\u0d00\ud800\U0001f40e"), max_size=30),
    st.integers(2, 70),
)
@example("utf-16-le", "Disallow: /secret\n", 39)
@example("utf-16-be", "\u0a0a\u0a0a", 6)
def test_a_file_in_utf_16_is_cut_between_lines(coding: str, text: str, max_bytes: int) -> None:
    body = ("\ufeff" + text).encode(coding, "surrogatepass")
    kept = whole_lines(body, max_bytes)
    assert body.startswith(kept)
    if kept != body:
        said = kept.decode(coding, "surrogatepass")
        assert not said or said[-1] in "\r\n"
        rest = body[len(kept) : max_bytes & ~1].decode(coding, "surrogatepass")
        assert "\n" not in rest
        assert "\r" not in rest
