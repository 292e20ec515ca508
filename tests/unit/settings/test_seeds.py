"""Seed lists: good lines are read, and each bad line is named with its number."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import SeedError
from crawler.settings.seeds import _LINE_BYTES, BadSeed, read_any, read_seeds, require_good, seed_lines
from crawler.url import canonicalise


def read(content: bytes | str) -> tuple[list[str], list[BadSeed]]:
    return read_seeds(seed_lines(io.BytesIO(content.encode() if isinstance(content, str) else content)))


def reason_for(line: bytes | str) -> str:
    """The reason why a line between two good ones is refused."""
    content = line.encode() if isinstance(line, str) else line
    seeds, bad = read(b"http://first.test/\n" + content + b"\nhttp://last.test/\n")
    assert seeds == ["http://first.test/", "http://last.test/"]
    assert [seed.line for seed in bad] == [2]
    return bad[0].reason


def test_comments_blank_lines_and_duplicates() -> None:
    content = (
        "# towns\n\nhttp://a.test/\n  http://b.test/x  # the second\nHTTP://A.test:80/#top\n\t#http://c.test/\n   \n"
    )
    assert read(content) == (["http://a.test/", "http://b.test/x"], [])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_a_byte_order_mark_and_no_end_of_the_last_line(end: str) -> None:
    content = b"\xef\xbb\xbf" + f"http://a.test/{end}http://b.test/".encode()
    assert read(content) == (["http://a.test/", "http://b.test/"], [])


def test_names_in_other_scripts_and_a_fragment() -> None:
    assert read("http://bücher.example/straße#oben\n") == (["http://xn--bcher-kva.example/stra%C3%9Fe"], [])


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_an_empty_list(text: str) -> None:
    assert read(text) == ([], [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("mailto:clerk@a.test", "not an http or https URL"),
        ("ftp://a.test/", "not an http or https URL"),
        ("javascript:alert(1)", "not an http or https URL"),
        ("a.test", "did you mean https://a.test ?"),
        ("htp://a.test/", "did you mean http://a.test/ ?"),
        ("htpps://a.test/", "did you mean https://a.test/ ?"),
        ("a.test/x?y=z", "did you mean https://a.test/x?y=z ?"),
        ("a.test:8080/x", "did you mean https://a.test:8080/x ?"),
        ("localhost:8080", "did you mean https://localhost:8080 ?"),
        ("clerk@a.test", "not a URL"),
        ("/path/only.html", "not a URL"),
        ("hello world", "not a URL"),
        ("http://", "not a URL"),
        ("http://a b.test/", "not a URL"),
        ("http://a.test:99999/", "column 15: no port is higher than 65535"),
        ("http://.test/", "the host can be no name"),
        ("http://a..test/", "the host can be no name"),
        ("http://me:secret@a.test/", "user name or password"),
        ("http://a.test/x http://b.test/", "one URL a line"),
        ("http://a.test/x\thttp://b.test/", "one URL a line"),
        ("http://a.test/\u200bx", "white space within"),
        ("http://a.test/" + "x" * 9000, "longer than 8000"),
        ("http://a.test/\x00", "NUL"),
        (b"http://a.test/\xff", "not text in UTF-8"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "NUL"),
        (b"\x89PNG\r\x1a", "not text in UTF-8"),
    ],
)
def test_a_bad_line_is_named_and_the_others_are_read(line: bytes | str, reason: str) -> None:
    told = reason_for(line)
    assert reason in told
    assert len(told) < 500
    assert told.isprintable()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_another_encoding_is_named_with_its_remedy(encoding: str) -> None:
    seeds, bad = read("http://a.test/\nhttp://b.test/\n".encode(encoding))
    assert seeds == []
    assert all("save the list as UTF-8" in seed.reason for seed in bad)
    assert bad[0].line == 1


def test_a_line_of_many_megabytes_is_one_line_and_costs_no_memory() -> None:
    class Endless(io.RawIOBase):
        """100 MB without a line end, then a good line; notes the largest piece asked for."""

        left, largest = 100_000_000, 0

        def readline(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert size > 0, "an unbounded read"
            self.largest = max(self.largest, size)
            self.left -= size
            if self.left > 0:
                return b"x" * size
            return b"x\n" if self.left > -size else b"http://a.test/\n" if self.left > -2 * size else b""

    file = Endless()
    seeds, bad = read_seeds(seed_lines(file))
    assert seeds == ["http://a.test/"]
    assert [seed.line for seed in bad] == [1]
    assert file.largest < 1_000_000


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_lines_at_the_length_limit_are_counted_correctly(extra: int) -> None:
    content = b"x" * (_LINE_BYTES + extra) + b"\nhttp://a.test/\nbad\n"
    seeds, bad = read(content)
    assert seeds == ["http://a.test/"]
    assert [seed.line for seed in bad] == [1, 3]


def test_many_bad_lines_are_counted_and_the_first_are_shown() -> None:
    _, bad = read("bad\n" * 1500 + "".join(f"bad{n}\n" for n in range(25)))
    with pytest.raises(SeedError) as caught:
        require_good(bad, "seeds.txt", "nothing was fetched")
    text = str(caught.value)
    assert text.startswith("seeds.txt: 1,525 bad lines, nothing was fetched\n  lines 1, 2, 3 and 1,497 more: not a URL")
    assert "  line 1519: " in text
    assert "line 1520" not in text
    assert text.endswith("… and 6 more kinds")


def test_require_good_accepts_good_lines() -> None:
    require_good([], "seeds.txt")


@given(st.binary(max_size=300))
def test_any_bytes_give_canonical_seeds_or_named_lines(content: bytes) -> None:
    seeds, bad = read(content)
    assert [canonicalise(seed) for seed in seeds] == seeds
    assert len(set(seeds)) == len(seeds)
    assert all(1 <= seed.line <= content.count(b"\n") + 1 for seed in bad)


@pytest.mark.parametrize(
    ("line", "reason", "meant"),
    [
        (
            "http://a.test/,http://b.test/",
            "column 16: a second URL begins; give one URL a line",
            ("http://a.test/", "http://b.test/"),
        ),
        (
            "http://a.test/; https://b.test",
            "column 17: a second URL begins; give one URL a line",
            ("http://a.test/", "https://b.test/"),
        ),
        ("https:/one.test/", "column 7: not // but '/'; did you mean https://one.test/ ?", ("https://one.test/",)),
        ("https:one.test", "column 7: not // but ''; did you mean https://one.test ?", ("https://one.test/",)),
        ("http:\\\\a.test", r"column 6: not // but '\\'; did you mean http://a.test ?", ("http://a.test/",)),
        ("http:///a.test/", "column 6: not // but '///'; did you mean http://a.test/ ?", ("http://a.test/",)),
    ],
)
def test_a_mistake_within_a_line_is_named_by_its_column(line: str, reason: str, meant: tuple[str, ...]) -> None:
    assert read_seeds([line.encode()]) == ([], [BadSeed(1, reason, text=line, meant=meant)])


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (b"a.test", ("https://a.test/",)),
        (b"a.test/x?y", ("https://a.test/x?y",)),
        (b"htp://a.test/x", ("http://a.test/x",)),
        (b"htps://a.test", ("https://a.test/",)),
        (b"http://a.test/,http:///", ()),
        (b"htps://a test/", ()),
        (b"ftp://a.test/", ()),
        (b"http://a.test/ of ours", ("http://a.test/",)),
        (b"http://a.test/x of ours", ()),
        (b"http://a test/", ()),
        (b"htp://me:secret@a.test/", ("http://a.test/",)),
        (b"http://me:secret@a.test/", ("http://a.test/",)),
        (b"me:secret@a.test", ("https://a.test/",)),
        (b"http://a.test/,http://me:secret@b.test/", ()),
        (b"<http://me:secret@a.test/>", ("http://a.test/",)),
        (b'"http://a.test/9",x', ("http://a.test/9",)),
        (b"http//a.test/5", ("http://a.test/5",)),
        (b"http;//a.test/5", ("http://a.test/5",)),
        (b"https://http://a.test/5", ("http://a.test/5",)),
        (b"https://https//a.test/5", ("https://a.test/5",)),
        (b"http://a,test/5", ("http://a.test/5",)),
        ("\u201chttp://a.test/\u201d".encode(), ("http://a.test/",)),
        (b"http://a.test/?q http://b.test/", ("http://a.test/?q", "http://b.test/")),
        (b"http://[::1", ()),
        (b"http://", ()),
        (b"http://a.test:99999/", ()),
        (b"\xff\xfe", ()),
        (b"h\0t", ()),
    ],
)
def test_the_urls_that_a_line_perhaps_meant(line: bytes, meant: tuple[str, ...]) -> None:
    _, (bad,) = read_seeds([line])
    assert (bad.meant, "did you mean" in bad.reason) == (meant, len(meant) == 1)
    assert "\0" not in bad.text
    assert "secret" not in bad.text + bad.reason


def test_a_query_may_hold_urls() -> None:
    assert read_seeds([b"http://a.test/?of=1,http://b.test/"]) == (["http://a.test/?of=1,http://b.test/"], [])


def test_a_list_of_bare_domains_says_how_domains_are_read() -> None:
    _, bad = read_seeds([b"a.test", b"b.test"])
    with pytest.raises(SeedError, match="a list of domains is read if its first line is rank,domain"):
        require_good(bad, "seeds.txt", "nothing was fetched")
    with pytest.raises(SeedError) as one:
        require_good(bad[:1], "seeds.txt", "nothing was fetched")
    assert "a list of domains" not in str(one.value)


@pytest.mark.parametrize("head", ["url,strata", "id, URL ,group"])
def test_a_misspelt_column_of_strata_is_told(head: str) -> None:
    seeds, bad = read_any(iter([f"{head}\n".encode(), b"http://a.test/,x\n"]))
    assert seeds.urls == []
    assert [(seed.line, "no column stratum" in seed.reason) for seed in bad] == [(1, True)]
