"""Whole crawls of webs on loopback, judged by what the servers saw and what the store holds."""

from __future__ import annotations

import gzip
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from crawler.demo.pages import Asked, Fault, Page, first, plain, redirect, unavailable
from crawler.store.bodies import decompress
from crawler.version import VERSION
from tests import judge
from tests.command import HASTY, LOOPBACK, here
from tests.web import LoopbackWeb, random_web

DELAY_S = 0.05
Row = tuple[object, ...]


class Crawled:
    """A store that a crawl has left."""

    def __init__(self, web: LoopbackWeb, db: Path) -> None:
        self._web, self._db = web, db

    def rows(self, sql: str) -> list[Row]:
        """The answer of the store, without ports."""
        connection = sqlite3.connect(self._db)
        try:
            found = connection.execute(sql).fetchall()
        finally:
            connection.close()
        port = f":{self._web.port}"
        return [tuple(v.replace(port, "") if isinstance(v, str) else v for v in row) for row in found]

    def ends(self) -> dict[str, tuple[str, str]]:
        """State and reason of every URL."""
        return {
            str(url): (str(state), str(reason))
            for url, state, reason in self.rows("SELECT url, state, reason FROM urls")
        }

    def title(self, path: str) -> object:
        (row,) = self.rows(f"SELECT title FROM pages WHERE url LIKE '%.test:%{path}'")
        return row[0]


Crawl = Callable[..., Crawled]


@pytest.fixture
def crawl(loopback: LoopbackWeb, tmp_path: Path) -> Crawl:
    """Crawl from the start pages of hosts, with small pauses, to the end; the servers' logs must be without blame."""

    def run(
        *hosts: str,
        options: tuple[str, ...] = (),
        toml: str = "",
        manners: judge.Manners | None = None,
        code: int = 0,
    ) -> Crawled:
        (tmp_path / "c.toml").write_text(HASTY + toml)
        seeds = [loopback.url(host) for host in hosts]
        ended = here("run", *seeds, "--config", tmp_path / "c.toml", *LOOPBACK, "--db", tmp_path / "c.db", *options)
        assert ended.code == code, ended
        judged = manners or judge.Manners(DELAY_S, agent=f"PoliteCrawler/{VERSION}")
        assert [str(found) for found in judge.violations(loopback.log, judged)] == []
        return Crawled(loopback, tmp_path / "c.db")

    return run


def asked(web: LoopbackWeb, host: str) -> list[str]:
    return [hit.path for hit in web.hits(host)]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_random_web_is_crawled_whole_and_politely(seed: int, loopback: LoopbackWeb, crawl: Crawl) -> None:
    made = random_web(seed, hosts=5, pages_per_host=12, port=loopback.port)
    loopback.sites.update(made.sites)
    manners = judge.Manners(DELAY_S, forbidden=lambda host, path: path.startswith("/closed/"), agent="PoliteCrawler/")
    crawled = crawl(*(f"h{n}.web.test" for n in range(5)), manners=manners)
    assert judge.most_at_once(loopback.log) == dict.fromkeys(made.sites, 1)
    port = f":{loopback.port}"
    assert dict(crawled.rows("SELECT url, depth FROM pages")) == {
        u.replace(port, ""): n for u, n in made.depths.items()
    }
    excluded = {url for url, (state, reason) in crawled.ends().items() if state == "excluded" and "line 2" in reason}
    assert excluded == {url.replace(port, "") for url in made.forbidden}
    assert len(loopback.log) == len(made.depths) + len(made.sites), "each page once, each robots.txt once"


def test_every_answer_to_robots_txt(loopback: LoopbackWeb, crawl: Crawl) -> None:
    def site(robots: Page | Callable[[Asked], Page]) -> dict[str, Page | Callable[[Asked], Page]]:
        return {"/robots.txt": robots, "/": Page("<a href=/a>a</a><a href=/b>b</a>"), "/a": Page("a"), "/b": Page("b")}

    rules = plain("User-agent: *\nDisallow: /a\nCrawl-delay: 0.4\n")
    sites = {
        "rules.test": site(rules),
        "moved.test": site(redirect(loopback.url("rules.test", "/robots.txt"))),
        "none.test": site(Page(status=404)),
        "gone.test": site(Page("Disallow: /", status=410)),
        "closed.test": site(Page(status=403)),
        "login.test": site(Page(status=401)),
        "html.test": site(Page("<html><p>Disallow: /a</html>")),
        "late.test": site(first(2, unavailable(), plain("User-agent: *\nDisallow: /a\n"))),
        "torn.test": site(first(1, Page("x" * 50, fault=Fault.CUT), plain("User-agent: *\nDisallow: /a\n"))),
    }
    loopback.sites.update(sites)
    hosts = tuple(loopback.sites)
    manners = judge.Manners(DELAY_S, {"rules.test": 0.4}, agent="PoliteCrawler/")
    crawled = crawl(*hosts, manners=manners)
    for host in ("rules.test", "moved.test", "late.test", "torn.test"):
        assert [path for path in asked(loopback, host) if path != "/robots.txt"] == ["/", "/b"], host
        assert crawled.ends()[f"http://{host}/a"] == ("excluded", "robots: line 2, Disallow: /a (draft1996)")
    for host in ("none.test", "gone.test", "html.test"):
        assert sorted(asked(loopback, host)) == ["/", "/a", "/b", "/robots.txt"], host
    for host in ("closed.test", "login.test"):
        assert asked(loopback, host) == ["/robots.txt"], host
        assert "forbids the whole site" in crawled.ends()[f"http://{host}/"][1]
    assert len(loopback.robots_hits("late.test")) == 3
    assert len(loopback.robots_hits("torn.test")) == 2


def test_each_hop_of_a_redirect_is_recorded_and_asked_for_again(loopback: LoopbackWeb, crawl: Crawl) -> None:
    sites = {
        "a.test": {
            "/": Page(
                "".join(
                    f"<a href=/{n}>{n}</a>"
                    for n in ("one", "loop", "into", "dumb", "self", "nowhere", "mail", "other", "shut")
                )
            ),
            "/one": redirect("/two", 301),
            "/two": redirect("three", 307),
            "/three": Page("<title>three</title>"),
            "/loop": redirect("/loop2"),
            "/loop2": redirect("/loop"),
            "/into": redirect("/loop", 301),
            "/dumb": Page("", 302),
            "/self": redirect("/self"),
            "/nowhere": redirect("http://[bad/"),
            "/mail": redirect("mailto:clerk@a.test"),
            "/other": redirect("http://elsewhere.example/"),
            "/shut": redirect(loopback.url("b.a.test", "/private")),
        },
        "b.a.test": {"/robots.txt": plain("User-agent: *\nDisallow: /private\n"), "/private": Page("secret")},
    }
    loopback.sites.update(sites)
    crawled = crawl("a.test", options=("--scope", "domain"))
    ends = {url.removeprefix("http://"): end for url, end in crawled.ends().items()}
    assert ends["a.test/one"] == ("redirected", "301 to http://a.test/two")
    assert ends["a.test/two"] == ("redirected", "307 to http://a.test/three")
    assert ends["a.test/three"][0] == "fetched"
    assert ends["a.test/loop"] == ("failed", "redirects in a circle (302 to http://a.test/loop2)")
    assert ends["a.test/loop2"] == ("failed", "redirects in a circle (302 to http://a.test/loop)")
    assert ends["a.test/into"] == ("failed", "redirects in a circle (301 to http://a.test/loop)")
    assert ends["a.test/dumb"] == ("failed", "302 Found, without a Location")
    assert ends["a.test/self"] == ("failed", "302 to itself")
    assert ends["a.test/nowhere"][0] == ends["a.test/mail"][0] == "failed"
    assert ends["elsewhere.example/"][0] == "excluded"
    assert ends["b.a.test/private"] == ("excluded", "robots: line 2, Disallow: /private (draft1996)")
    assert asked(loopback, "b.a.test") == ["/robots.txt"]
    assert (
        dict(crawled.rows("SELECT url, target FROM urls WHERE target IS NOT NULL"))["http://a.test/two"]
        == "http://a.test/three"
    )


def test_a_chain_of_redirects_is_followed_as_far_as_allowed(loopback: LoopbackWeb, crawl: Crawl) -> None:
    loopback.sites["a.test"] = {f"/{n or ''}": redirect(f"/{n + 1}") for n in range(20)}
    crawled = crawl("a.test", toml="max_redirects = 5\n", code=5)
    assert len(asked(loopback, "a.test")) == 1 + 6
    assert crawled.ends()["http://a.test/6"] == ("excluded", "redirects: 6 in a row, at most 5 are followed")


def test_what_brings_no_page_or_a_part_of_one_fails(loopback: LoopbackWeb, crawl: Crawl) -> None:
    loopback.sites["a.test"] = {
        "/": Page("<a href=/nothing>nothing</a><a href=/part>part</a><a href=/other>other</a>"),
        "/nothing": Page("", 204),
        "/part": Page("<title>The first ha", 206, (("Content-Range", "bytes 0-18/900"),)),
        "/other": Page("<title>From a proxy</title>", 203),
    }
    crawled = crawl("a.test")
    ends = crawled.ends()
    assert ends["http://a.test/nothing"] == ("failed", "204 No Content, so there is no page")
    assert ends["http://a.test/part"] == ("failed", "206 Partial Content, though no range was requested")
    assert ends["http://a.test/other"] == ("fetched", "203")
    assert crawled.rows("SELECT count(*) FROM pages") == [(2,)]


def test_other_types_are_refused_before_their_body_is_read(loopback: LoopbackWeb, crawl: Crawl) -> None:
    loopback.sites["a.test"] = {
        "/": Page("<a href=/big.pdf>pdf</a><a href=/plain>plain</a><a href=/none>none</a>"),
        "/big.pdf": Page(b"%" * 30_000_000, content_type="application/pdf"),
        "/plain": plain("text"),
        "/none": Page("HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n<title>no type</title>", fault=Fault.RAW),
    }
    crawled = crawl("a.test")
    assert crawled.ends()["http://a.test/big.pdf"] == ("excluded", "type: content type application/pdf is not wanted")
    assert crawled.ends()["http://a.test/plain"][0] == "excluded"
    assert crawled.ends()["http://a.test/none"][0] == "fetched"
    ((read,),) = crawled.rows("SELECT bytes FROM requests WHERE url LIKE '%big.pdf'")
    assert isinstance(read, int)
    assert read < 1_000_000


def test_charsets(loopback: LoopbackWeb, crawl: Crawl) -> None:
    html = "<title>Füße</title>"
    loopback.sites["a.test"] = {
        "/": Page(
            "<meta charset=utf-8>" + "".join(f"<a href=/{n}>x</a>" for n in ("header", "meta", "bom", "utf16", "none"))
        ),
        "/header": Page(html.encode("latin-1"), content_type="text/html; charset=ISO-8859-1"),
        "/meta": Page(("<meta charset=windows-1252>" + html).encode("cp1252"), content_type="text/html"),
        "/bom": Page(b"\xef\xbb\xbf" + html.encode(), content_type="text/html; charset=latin-1"),
        "/utf16": Page(b"\xff\xfe" + html.encode("utf-16-le"), content_type="text/html"),
        "/none": Page(html.encode("cp1252"), content_type="text/html"),
    }
    crawled = crawl("a.test")
    for path in ("/header", "/meta", "/bom", "/utf16", "/none"):
        assert crawled.title(path) == "Füße", path


def test_every_kind_of_link(loopback: LoopbackWeb, crawl: Crawl) -> None:
    loopback.sites["a.test"] = {
        "/": Page(
            """<base href=/deep/down/><link rel=next href=next><link rel=stylesheet href=style.css>
            <a href=a>plain</a><a href=../up>up</a><a href=/root#part>root</a><a href="?q=1">query</a>
            <map><area href=area></map><iframe src=inner></iframe><a href='mailto:x@a.test'>mail</a>
            <a href="javascript:void(0)">js</a>
            <!-- <a href=comment>no</a> --><script>"<a href=script>no</a>"</script>"""
        ),
        "*": Page("<title>leaf</title>"),
    }  # fmt: skip
    crawled = crawl("a.test")
    links = {
        str(url).removeprefix("http://a.test")
        for (url,) in crawled.rows("SELECT target FROM links WHERE source LIKE '%/'")
    }
    assert links >= {
        "/deep/down/a",
        "/deep/up",
        "/root",
        "/deep/down/?q=1",
        "/deep/down/area",
        "/deep/down/inner",
        "/deep/down/next",
    }
    assert not any("comment" in link or "script" in link or "mailto" in link for link in links)
    assert set(asked(loopback, "a.test")) >= links - {"/deep/down/style.css"}


def test_frames(loopback: LoopbackWeb, crawl: Crawl) -> None:
    loopback.sites["a.test"] = {
        "/": Page("<frameset><frame src=/framed></frameset>"),
        "/framed": Page("<title>framed</title>"),
    }
    assert crawl("a.test").title("/framed") == "framed"


def test_what_pages_ask_is_obeyed(loopback: LoopbackWeb, crawl: Crawl) -> None:
    loopback.sites["a.test"] = {
        "/": Page("".join(f"<a href=/{n}>{n}</a>" for n in ("noindex", "nofollow", "none", "header", "agent", "rel"))),
        "/noindex": Page("<meta name=ROBOTS content=NOINDEX><title>t</title><a href=/via-noindex>x</a>"),
        "/nofollow": Page("<meta name=robots content=nofollow><title>t</title><a href=/via-nofollow>x</a>"),
        "/none": Page("<meta name=robots content=none><title>t</title><a href=/via-none>x</a>"),
        "/header": Page("<title>t</title><a href=/via-header>x</a>", headers=(("X-Robots-Tag", "noindex"),)),
        "/agent": Page("<title>t</title>", headers=(("X-Robots-Tag", "otherbot: noindex"),)),
        "/rel": Page("<title>t</title><a rel=nofollow href=/via-rel>x</a>"),
        "*": Page("<title>leaf</title>"),
    }
    crawled = crawl("a.test")
    pages = {
        str(url).removeprefix("http://a.test"): (noindex, nofollow, title, sha256 is not None)
        for url, noindex, nofollow, title, sha256 in crawled.rows(
            "SELECT url, noindex, nofollow, title, body_sha256 FROM pages"
        )
    }
    assert pages["/noindex"] == (1, 0, None, False)
    assert pages["/nofollow"] == (0, 1, "t", True)
    assert pages["/none"] == (1, 1, None, False)
    assert pages["/header"] == (1, 0, None, False)
    assert pages["/agent"] == (0, 0, "t", True)
    via = {path for path in asked(loopback, "a.test") if path.startswith("/via")}
    assert via == {"/via-noindex", "/via-header"}
    ends = crawled.ends()
    assert ends["http://a.test/via-rel"] == ("excluded", 'nofollow: linked only with rel="nofollow"')
    assert "http://a.test/via-nofollow" not in ends, "its links are not even recorded"
    assert crawled.rows("SELECT rel FROM links WHERE target LIKE '%via-rel'") == [("nofollow",)]


def test_failures_end_or_are_tried_again_with_growing_pauses(loopback: LoopbackWeb, crawl: Crawl) -> None:
    loopback.sites["a.test"] = {
        "/": Page("".join(f"<a href=/{n}>{n}</a>" for n in ("404", "410", "reset", "raw"))),
        "/404": Page(status=404),
        "/410": Page(status=410),
        "/reset": first(1, Page(fault=Fault.RESET), Page("<title>back</title>")),
        "/raw": Page("this is not HTTP\r\n\r\n", fault=Fault.RAW),
    }
    loopback.sites["b.test"] = {"/": Page(status=500)}
    loopback.sites["c.test"] = {"/": first(1, unavailable(1), Page("<title>back</title>"))}
    crawled = crawl("a.test", "b.test", "c.test")
    ends = crawled.ends()
    assert ends["http://a.test/404"] == ("failed", "404 Not Found")
    assert ends["http://a.test/410"] == ("failed", "410 Gone")
    assert ends["http://a.test/reset"][0] == ends["http://c.test/"][0] == "fetched"
    assert ends["http://a.test/raw"][0] == "failed"
    assert ends["http://b.test/"] == ("failed", "500 Internal Server Error (3 attempts)")
    _, one, two, three = loopback.hits("b.test")
    first_s, second_s = two.started_at - one.finished_at, three.started_at - two.finished_at
    assert first_s >= 0.2 - 0.01
    assert second_s >= 0.6 - 0.01, "three times as long"
    assert asked(loopback, "a.test").count("/404") == 1


def test_bodies_that_are_too_large(loopback: LoopbackWeb, crawl: Crawl) -> None:
    zeros = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + b"x" * 400_000
    loopback.sites["a.test"] = {
        "/": Page(
            "<a href=/announced>1</a><a href=/endless>2</a><a href=/fits>3</a><a href=/garbled>4</a>"
            "<a href=/bomb>5</a><a href=/members>6</a>"
        ),
        "/announced": Page("x" * 400_000),
        "/endless": Page(zeros, fault=Fault.RAW),
        "/fits": Page("x" * 99_000),
        "/garbled": Page("no gzip at all", headers=(("Content-Encoding", "gzip"),)),
        "/bomb": Page(gzip.compress(bytes(400_000)), headers=(("Content-Encoding", "gzip"),)),
        "/members": Page(gzip.compress(b"one ") + gzip.compress(b"two"), headers=(("Content-Encoding", "gzip"),)),
    }
    crawled = crawl("a.test", toml="max_body_bytes = 100_000\n")
    ends = crawled.ends()
    assert ends["http://a.test/bomb"] == ends["http://a.test/endless"]
    assert ends["http://a.test/members"] == ("fetched", "200")
    bodies = crawled.rows("SELECT data FROM body")
    assert b"one two" in [decompress(data) for (data,) in bodies if isinstance(data, bytes)]
    assert ends["http://a.test/announced"] == (
        "failed",
        "too large: the body is announced with 400,000 bytes; the limit is 100,000 bytes, which "
        "fetch.max_body_bytes sets",
    )
    assert ends["http://a.test/endless"] == (
        "failed",
        "too large: the body is longer; the limit is 100,000 bytes, which fetch.max_body_bytes sets",
    )
    assert ends["http://a.test/fits"][0] == "fetched"
    ends = crawl(toml="max_body_bytes = 500_000\n").ends()
    assert ends["http://a.test/announced"] == ends["http://a.test/endless"] == ("fetched", "200")
    assert ends["http://a.test/garbled"] == ("failed", "the body is not valid gzip")
    assert asked(loopback, "a.test").count("/garbled") == 1, "it was not for its size"


def test_a_page_in_gzip_that_is_cut_off_slows_its_site(loopback: LoopbackWeb, crawl: Crawl) -> None:
    """The parser process finds it out, after the request was logged."""
    cut = gzip.compress(random.Random(1).randbytes(2_000))[:1_000]
    loopback.sites["a.test"] = {"/": Page(cut, headers=(("Content-Encoding", "gzip"),))}
    crawled = crawl("a.test", code=5)
    assert crawled.ends()["http://a.test/"][0] == "failed"
    assert len(asked(loopback, "a.test")) == 4, "/robots.txt, and the page with two retries"
    ((backoff_s,),) = crawled.rows("SELECT backoff_s FROM politeness_group")
    assert backoff_s == 0.2 * 2 * 2, "it doubles with each"


def test_a_mirror_is_left_for_its_main_site(loopback: LoopbackWeb, crawl: Crawl) -> None:
    host_line = plain(f"User-agent: *\nDisallow: /x\nHost: www.a.test:{loopback.port}\n")
    site = {"/robots.txt": host_line, "/": Page("<title>home</title><a href=/b>b</a>"), "/b": Page("b")}
    loopback.sites.update({"www.a.test": site, "old.a.test": site})
    crawled = crawl("old.a.test")
    assert asked(loopback, "old.a.test") == ["/robots.txt"]
    assert asked(loopback, "www.a.test") == ["/robots.txt", "/", "/b"]
    assert crawled.rows("SELECT site, main_site FROM mirrors") == [("http://old.a.test", "http://www.a.test")]
    assert crawled.ends()["http://old.a.test/"] == ("excluded", "mirror of http://www.a.test (Host, line 3)")


@pytest.mark.parametrize("authority", ["127.0.0.1", "a.test", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "localhost"])
def test_without_leave_no_private_address_is_connected_to(
    authority: str, loopback: LoopbackWeb, tmp_path: Path
) -> None:
    url = f"http://{authority}:{loopback.port}/"
    db = tmp_path / "c.db"
    ended = here(
        "run", url, "--resolve", "*.test=127.0.0.1", "--contact", "me@example.org", "--no-progress", "--db", db
    )
    assert ended.code == 5, ended
    ((end,),) = Crawled(loopback, db).rows("SELECT state || ' ' || reason FROM urls")
    assert str(end).startswith("excluded address: ")
    assert "fetch.allow_private permits it" in str(end)
    assert loopback.log == []


def test_without_a_contact_links_that_leave_loopback_are_not_followed(loopback: LoopbackWeb, crawl: Crawl) -> None:
    loopback.sites["a.test"] = {"/": Page("<a href=http://192.0.2.1/>1</a><a href=http://example.org/>2</a>")}
    ends = crawl("a.test", options=("--scope", "any")).ends()
    for host in ("192.0.2.1", "example.org"):
        assert ends[f"http://{host}/"] == (
            "excluded",
            f"contact: {host} is not on loopback, and the crawl names no contact for the owner of the site "
            "(identity.contact)",
        )


def test_who_asks_is_told(loopback: LoopbackWeb, crawl: Crawl) -> None:
    heads: list[dict[str, str]] = []

    def note(request: Asked) -> Page:
        heads.append(dict(request.headers))
        return Page("<title>hello</title>")

    loopback.sites["a.test"] = {"*": note}
    manners = judge.Manners(DELAY_S, agent=f"FigTree/{VERSION} (+mailto:crawl@example.org)")
    crawl("a.test", options=("--contact", "crawl@example.org", "--agent", "FigTree"), manners=manners)
    assert len(heads) == 2
    assert all(head["from"] == "crawl@example.org" for head in heads)
    assert "cookie" not in heads[1]
    assert "referer" not in heads[1]


def test_the_token_chooses_the_record(loopback: LoopbackWeb, crawl: Crawl) -> None:
    rules = "User-agent: figtree\nDisallow: /figs\n\nUser-agent: *\nDisallow: /\n"
    loopback.sites["a.test"] = {
        "/robots.txt": plain(rules),
        "/": Page("<a href=/figs>f</a><a href=/dates>d</a>"),
        "/dates": Page("d"),
    }
    crawl("a.test", options=("--agent", "FigTree"), manners=judge.Manners(DELAY_S, agent="FigTree/"))
    assert asked(loopback, "a.test") == ["/robots.txt", "/", "/dates"]


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        (("--scope", "prefix"), {"/docs/", "/docs/a"}),
        (("--include", "/docs/"), {"/docs/", "/docs/a"}),
        (("--exclude", "/docs/a", "--exclude", "/b$"), {"/docs/", "/"}),
        (("--max-depth", "0"), {"/docs/"}),
        (("--max-depth", "1"), {"/docs/", "/docs/a", "/"}),
        ((), {"/docs/", "/docs/a", "/", "/b"}),
    ],
)
def test_what_the_user_limits(options: tuple[str, ...], paths: set[str], loopback: LoopbackWeb, tmp_path: Path) -> None:
    loopback.sites["a.test"] = {
        "/docs/": Page("<a href=a>a</a><a href=/>home</a><a href=http://b.test/>b</a>"),
        "/docs/a": Page("a"),
        "/": Page("<a href=/b>b</a>"),
        "/b": Page("b"),
    }
    seed = loopback.url("a.test", "/docs/")
    assert here("run", seed, "--delay", "0", *LOOPBACK, "--db", tmp_path / "c.db", *options).code == 0
    assert set(asked(loopback, "a.test")) == paths | {"/robots.txt"}
    assert loopback.hits("b.test") == []
