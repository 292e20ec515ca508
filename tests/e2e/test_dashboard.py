"""``crawler dashboard`` and ``crawler control`` beside a running crawl: over HTTP, and in a real browser."""

from __future__ import annotations

import http.client
import json
import signal
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

from crawler.demo.pages import Page, plain
from crawler.frontier.operator import BLOCKED
from tests.browser import browser_page, doctor, expect, hostile, in_chromium
from tests.command import HASTY, LOOPBACK, Started, finish, here, start, until
from tests.postgres import Cluster
from tests.web import LoopbackWeb

if TYPE_CHECKING:
    from playwright.sync_api import Page as BrowserPage

Crawling = Started

#: A crawl of two sites lasts for a minute.
CONFIG = HASTY.replace("delay = 0.05", "delay = 0.2")
LEAVES = 300


def long_site() -> dict[str, Page]:
    links = "".join(f"<a href='/{n}'>{n}</a>" for n in range(LEAVES))
    leaves = {f"/{n}": Page(f"<title>leaf {n}</title>") for n in range(LEAVES)}
    return {"/robots.txt": plain("User-agent: *\nDisallow: /7"), "/": Page(links), **leaves}


@pytest.fixture
def web(loopback: LoopbackWeb) -> LoopbackWeb:
    loopback.sites.update({"a.test": long_site(), "b.test": long_site()})
    return loopback


@pytest.fixture
def db(tmp_path: Path) -> Path:
    (tmp_path / "c.toml").write_text(CONFIG)
    return tmp_path / "c.db"


def crawl(web: LoopbackWeb, db: Path) -> Crawling:
    seeds = [web.url("a.test"), web.url("b.test")]
    running = start("run", *seeds, "--config", db.parent / "c.toml", *LOOPBACK, "--db", db)
    until(lambda: len(web.hits("a.test")) > 3, "the crawl to begin")
    return running


@pytest.fixture
def crawling(web: LoopbackWeb, db: Path) -> Iterator[Crawling]:
    running = crawl(web, db)
    yield running
    if running.poll() is None:
        running.kill()
    running.communicate()


class Dashboard:
    """A running ``crawler dashboard`` and its address."""

    def __init__(self, db: Path, *options: str | Path) -> None:
        self.db = db
        self.process = start("dashboard", "--db", db, "--listen", "127.0.0.1:0", *options)
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        assert "http://" in self.line, self.process.communicate()
        self.url = self.line.split(": ", 1)[1].strip()
        self.host = f"127.0.0.1:{urlsplit(self.url).port}"
        self.token = urlsplit(self.url).query.removeprefix("token=")  # empty if it was given

    def ask(
        self, path: str, body: object = None, *, method: str = "", **headers: str
    ) -> tuple[int, str, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self.host, timeout=300)
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method or ("GET" if data is None else "POST"), path, data, sent)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer
        finally:
            connection.close()

    def order(self, command: str, site: str = "") -> None:
        status, text, _ = self.ask("/control", {"command": command, "site": site})
        assert status == 200, text

    def look(self) -> dict[str, Any]:
        """The next event of the live stream."""
        connection = http.client.HTTPConnection(self.host, timeout=300)
        try:
            connection.request("GET", "/live", headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            assert answer.getheader("Content-Type") == "text/event-stream"
            while not (line := answer.fp.readline()).startswith(b"data: "):
                assert line, "the stream ended"
            return dict(json.loads(line[6:]))
        finally:
            connection.close()

    def state(self) -> str:
        return str(self.look()["run"]["state"])

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        ended = finish(self.process)
        assert (ended.code, ended.err) == (0, "")


@pytest.fixture
def dashboard(db: Path, crawling: Crawling) -> Iterator[Dashboard]:
    running = Dashboard(db)
    yield running
    running.close()


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard of a small crawl that is over."""
    folder = tmp_path_factory.mktemp("idle")
    site = {"/robots.txt": plain("User-agent: *\nDisallow: /7"), "/": Page("<a href=/7>7</a>")}
    with LoopbackWeb({"a.test": site}) as web:
        assert here("run", web.url("a.test"), *LOOPBACK, "--delay", "0", "--db", folder / "c.db").code == 0
    running = Dashboard(folder / "c.db")
    yield running
    running.close()


def select(db: Path, sql: str, *parameters: object) -> list[Any]:
    connection = sqlite3.connect(db)
    try:
        return connection.execute(sql, parameters).fetchall()
    finally:
        connection.close()


# --- over HTTP ---------------------------------------------------------------------------------------


def test_a_running_crawl_is_paused_set_going_and_stopped(
    web: LoopbackWeb, db: Path, crawling: Crawling, dashboard: Dashboard
) -> None:
    assert dashboard.state() == "running"
    dashboard.order("pause")
    until(lambda: dashboard.state() == "paused", "the pause")
    until(lambda: select(db, "SELECT count(*) FROM request")[0][0] == len(web.log), "the log of what was in flight")
    sent = len(web.log)
    seen = [dashboard.look() for _ in range(2)]
    assert [look["requests"] for look in seen] == [sent, sent]
    assert "Paused" in here("status", "--db", db).out
    assert json.loads(here("status", "--db", db, "--json").out)["paused_since"] == seen[0]["paused_since"]
    assert len(web.log) == sent
    dashboard.order("resume")
    until(lambda: len(web.log) > sent + 10, "the crawl to go on")
    until(lambda: dashboard.state() == "running", "the dashboard to see it")
    dashboard.order("stop")
    ended = finish(crawling)
    assert ended.code == 3
    assert "stopped by the operator; the same command continues the crawl" in ended.out
    assert "paused by the operator" in ended.err
    until(lambda: dashboard.state() == "ended", "the dashboard to see it")
    judged = here("audit", "--db", db, "--json")
    of = {check["check"]: check["judged"] for check in json.loads(judged.out)["checks"]}
    assert (judged.code, of["operator"] > sent) == (0, True)
    status, text, _ = dashboard.ask("/control", {"command": "stop"})
    assert (status, "nothing to stop" in text) == (400, True)


def test_a_block_lasts_over_kill_9_and_is_lifted_without_loss(
    web: LoopbackWeb, db: Path, crawling: Crawling, dashboard: Dashboard
) -> None:
    dashboard.order("block", web.url("b.test"))
    name = web.url("b.test").rstrip("/")
    until(lambda: bool(select(db, "SELECT 1 FROM control WHERE done_at IS NOT NULL")), "the block")
    sent = len(web.hits("b.test"))
    states = dict(select(db, "SELECT state, count(*) FROM urls WHERE site = ? GROUP BY 1", name))
    assert "queued" not in states
    assert select(db, "SELECT count(*) FROM urls WHERE site = ? AND reason = ?", name, BLOCKED.sentence)[0][0] > 150
    url = select(db, "SELECT url FROM urls WHERE site = ? AND reason = ? LIMIT 1", name, BLOCKED.sentence)[0][0]
    status, text, _ = dashboard.ask(f"/why?url={quote(url)}")
    assert status == 200
    assert ["state", f"excluded: {BLOCKED}"] in json.loads(text)["rows"]
    assert BLOCKED.sentence in here("why", url, "--db", db).out
    crawling.kill()
    crawling.communicate()
    again = crawl(web, db)
    until(lambda: dashboard.state() == "running", "the next run")
    assert [blocked["name"] for blocked in dashboard.look()["blocked"]] == [name]
    assert len(web.hits("b.test")) == sent
    lifted = here("control", "unblock", name, "--db", db)
    assert (lifted.code, lifted.err) == (0, "")
    until(lambda: len(web.hits("b.test")) > sent, "the site's next request")
    left = "SELECT count(*) FROM urls WHERE reason = ?"
    until(lambda: select(db, left, BLOCKED.sentence) == [(0,)], "the rest of its URLs")
    again.send_signal(signal.SIGTERM)
    assert finish(again).code == 3
    audited = here("audit", "--db", db)
    assert audited.code == 0, audited.out


def test_metrics_are_what_the_store_holds(idle: Dashboard) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    status, text, answer = idle.ask("/metrics")
    assert (status, answer.getheader("Content-Type")) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = text_string_to_metric_families(text)
    read = {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}
    (received,) = select(idle.db, "SELECT sum(bytes) FROM request")
    assert (read["crawler_pages_total",], read["crawler_received_bytes_total",]) == (1, *received)
    for purpose, code, n in select(idle.db, "SELECT purpose, status, count(*) FROM request GROUP BY 1, 2"):
        assert read["crawler_requests_total", purpose, str(code)] == n
    assert (read["crawler_urls", "queued"], read["crawler_excluded_urls", "robots"], read["crawler_up",]) == (0, 1, 0)


@pytest.mark.parametrize(
    ("path", "headers", "status", "said"),
    [
        ("/", {"Host": "[::1"}, 200, "<!doctype html>"),
        ("/", {"Host": "localhost:1"}, 200, "<!doctype html>"),
        ("/nope", {}, 404, "404"),
        ("/../../etc/passwd", {}, 404, "404"),
        ("/control", {}, 405, "405"),
        ("/why?url=", {}, 400, "not a URL"),
        ("/why?url=javascript:alert(1)", {}, 400, ""),
        ("/search?words=", {}, 400, "error"),
        ("/search?words=x", {}, 400, "no such search index"),
    ],
)
def test_what_is_asked_wrongly_is_told(
    idle: Dashboard, path: str, headers: dict[str, str], status: int, said: str
) -> None:
    got, text, answer = idle.ask(path, **headers)
    assert (got, said in text, "Traceback" in text) == (status, True, False)
    assert "default-src 'none'" in (answer.getheader("Content-Security-Policy") or "")
    assert answer.getheader("X-Content-Type-Options") == "nosniff"


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ({"command": "pause"}, {"Origin": "http://evil.example"}, 403),
        ({"command": "pause"}, {"Origin": "null"}, 403),
        ({"command": "pause"}, {"Sec_Fetch_Site": "cross-site"}, 403),
        ({"command": "pause"}, {"Sec_Fetch_Site": "same-site"}, 403),
        ({"command": "pause"}, {"Content_Type": "text/plain"}, 403),
        ({"command": "pause"}, {"Content_Type": "application/x-www-form-urlencoded"}, 403),
        ({"command": "pause"}, {"Authorization": "Bearer 0123456789abcdef"}, 401),
        ({"command": "pause"}, {"Origin": "http://[::1"}, 403),
        ({"command": "explode"}, {}, 400),
        ({"command": ["pause"]}, {}, 400),
        ({"command": None}, {}, 400),
        ({"command": "block", "site": ["x"]}, {}, 400),
        ({"command": "block", "site": 7}, {}, 400),
        ({"command": "block", "site": "*.example.org"}, {}, 400),
        ({"command": "block", "site": "'x'"}, {}, 400),
        ({"command": "block", "site": "a b"}, {}, 400),
        ({"command": "block"}, {}, 400),
        ([], {}, 400),
        (b"{", {}, 400),
        (b"[" * 10_000, {}, 400),
        (b" " * 20_000, {}, 413),
    ],
)
def test_no_other_page_gives_orders_and_nonsense_gives_none(
    idle: Dashboard, body: object, headers: dict[str, str], status: int
) -> None:
    got, text, _ = idle.ask("/control", body, **headers)
    assert (got, "Traceback" in text) == (status, False)
    assert select(idle.db, "SELECT * FROM control") == []


@pytest.mark.parametrize("path", ["/", "/live", "/metrics", "/script.js", "/why?url=http://a.test/"])
def test_a_browser_reads_nothing_for_another_site(idle: Dashboard, path: str) -> None:
    assert idle.ask(path, Sec_Fetch_Site="cross-site")[0] == 403
    assert idle.ask(path, Sec_Fetch_Site="same-site")[0] == 403


def test_one_address_has_few_live_views(idle: Dashboard) -> None:
    views = []
    for _ in range(6):
        connection = http.client.HTTPConnection(idle.host, timeout=300)
        connection.request("GET", "/live", headers={"Authorization": f"Bearer {idle.token}"})
        assert connection.getresponse().status == 200
        views.append(connection)
    status, text, _ = idle.ask("/live")
    assert (status, text) == (429, "127.0.0.1 has 6 views open already\n")
    for view in views:
        view.close()

    def has_room() -> bool:
        try:
            return bool(idle.look())
        except AssertionError:
            return False

    until(has_room, "the closed views to be noticed")


def test_a_given_token_is_asked_for_and_not_printed(
    idle: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("0123456789abcdef\n")
    monkeypatch.setenv("CRAWLER_DASHBOARD_TOKEN_FILE", str(tmp_path / "token"))
    dashboard = Dashboard(idle.db)
    assert urlsplit(dashboard.url).query == ""
    for path in ("/", "/live", "/metrics", "/script.js", "/why?url=http://a.test/"):
        assert dashboard.ask(path)[0] == 401
        assert dashboard.ask(path, Authorization="Bearer 0123456789abcdeX")[0] == 401
    assert dashboard.ask("/control", {"command": "pause"})[0] == 401
    assert dashboard.ask("/?token=wrong")[0] == 401
    assert dashboard.ask("/metrics", Authorization="Bearer 0123456789abcdef")[0] == 200
    status, _, answer = dashboard.ask("/?token=0123456789abcdef")
    cookie = answer.getheader("Set-Cookie") or ""
    assert (status, answer.getheader("Location")) == (303, "/")
    for path in ("//evil.example/", "/%0d%0aX-Evil:%201", "/why", "/%2f%2fevil.example"):
        status, _, answer = dashboard.ask(f"{path}?token=0123456789abcdef")
        assert (status, answer.getheader("Location"), answer.getheader("X-Evil")) == (303, "/", None)
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert dashboard.ask("/", Cookie=cookie.partition(";")[0])[0] == 200
    assert dashboard.ask("/", Cookie=cookie.partition(";")[0], Host="any.example")[0] == 200
    assert select(idle.db, "SELECT * FROM control") == []
    dashboard.close()


def test_a_token_is_made_and_told_once(idle: Dashboard) -> None:
    dashboard = Dashboard(idle.db, "--listen", "0.0.0.0:0")
    assert len(dashboard.token) >= 32
    assert dashboard.ask("/", Authorization="")[0] == 401
    assert dashboard.ask(f"/?token={dashboard.token}", Authorization="")[0] == 303
    dashboard.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--listen", "8080"], "write HOST:PORT"),
        (["--listen", "::1:80"], "write HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "write HOST:PORT"),
        ([], "c.db: no such store"),
    ],
)
def test_what_cannot_be_served_is_told(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = here("dashboard", "--db", "c.db", *arguments)
    assert (ended.code, ended.out, said in ended.err) == (2, "", True), ended
    assert not (tmp_path / "c.db").exists()


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("CRAWLER_DASHBOARD_TOKEN_FILE", "none", "CRAWLER_DASHBOARD_TOKEN_FILE: none cannot be read: No such file"),
        ("CRAWLER_DASHBOARD_TOKEN", "secret", "at least 16 letters"),
    ],
)
def test_a_bad_token_is_told(
    variable: str, value: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, value)
    ended = here("dashboard", "--db", "c.db")
    assert (ended.code, ended.out, said in ended.err) == (2, "", True), ended


def test_a_port_in_use_is_told(idle: Dashboard) -> None:
    ended = here("dashboard", "--db", idle.db, "--listen", idle.host)
    assert (ended.code, "is in use; choose another port with --listen" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["block"], "name the SITE"),
        (["pause", "a.test"], "takes no SITE"),
        (["block", "a/b"], "is no host"),
        (["explode"], "explode"),
        (["pause"], "no such store"),
    ],
)
def test_what_control_cannot_do_is_told(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = here("control", *arguments)
    assert (ended.code, ended.out, said in ended.err) == (2, "", True), ended
    assert list(tmp_path.iterdir()) == []


# --- several workers on PostgreSQL -------------------------------------------------------------------


@dataclass(frozen=True)
class Team:
    """A crawl by two workers on a database."""

    web: LoopbackWeb
    db: str
    crawling: Crawling


@pytest.fixture(scope="module")
def team(shared_postgres: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """It lasts for minutes; the last test of it stops it."""
    folder = tmp_path_factory.mktemp("team")
    (folder / "c.toml").write_text(HASTY.replace("delay = 0.05", "delay = 0.5"))
    db = shared_postgres.make_store()
    sites = {"a.test": long_site(), "b.test": long_site()}
    with LoopbackWeb(sites) as web, pytest.MonkeyPatch.context() as patched:
        patched.setenv("PGPASSWORD", "hush")
        command = ("run", *map(web.url, sites), "--config", folder / "c.toml", *LOOPBACK, "--workers", "2")
        running = start(*command, "--db", db)
        until(lambda: len(web.hits("a.test")) > 3, "the crawl to begin")
        yield Team(web, db, running)
        if running.poll() is None:
            running.kill()
        running.communicate()


@in_chromium
def test_workers_are_shown_in_a_browser(team: Team) -> None:
    dashboard = Dashboard(team.db)
    with browser_page() as page:
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text))
        page.goto(dashboard.url)
        expect(page.locator("#workers tr")).to_have_count(2, timeout=120_000)
        expect(page.locator("#workers")).to_contain_text("more")
        assert wrong == []
    dashboard.close()


def test_a_crawl_of_several_workers_is_shown_and_steered(team: Team) -> None:
    web, db, crawling = team.web, team.db, team.crawling
    dashboard = Dashboard(db)
    assert "hush" not in dashboard.line
    until(lambda: len(dashboard.look()["workers"]) == 2, "both workers")
    until(lambda: sum(worker["groups_held"] for worker in dashboard.look()["workers"]) == 2, "both sites to be held")
    seen = dashboard.look()
    assert ("hush" in str(seen), seen["run"]["state"]) == (False, "running")
    assert {site["site"] for site in seen["sites"]} == {web.url(host).rstrip("/") for host in ("a.test", "b.test")}
    dashboard.order("pause")
    until(lambda: dashboard.state() == "paused", "the pause")
    assert here("control", "resume", "--db", db).code == 0
    until(lambda: dashboard.state() == "running", "the crawl to go on")
    assert here("control", "block", web.url("b.test"), "--db", db).code == 0
    until(lambda: len(dashboard.look()["sites"]) == 1, "the block")
    until(lambda: dashboard.look()["pages"] > 10, "pages that are committed")
    assert here("index", "--db", db).code == 0
    status, text, _ = dashboard.ask("/search?words=leaf")
    assert (status, json.loads(text)["total"] > 0) == (200, True)
    leaves = (f"/why?url={quote(web.url('b.test', f'/{number}'))}" for number in range(LEAVES))
    assert any(BLOCKED.sentence in dashboard.ask(leaf)[1] for leaf in leaves)
    status, text, _ = dashboard.ask("/metrics")
    assert (status, "crawler_up 1" in text, "hush" in text) == (200, True, False)
    dashboard.order("stop")
    assert finish(crawling).code == 3
    until(lambda: dashboard.state() == "ended", "the dashboard to see it")
    assert all(worker["ended_at"] is not None for worker in dashboard.look()["workers"])
    audited = here("audit", "--db", db)
    assert audited.code == 0, audited.out
    dashboard.close()


# --- in a browser ------------------------------------------------------------------------------------


def named(page: BrowserPage, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


@in_chromium
def test_the_crawl_is_steered_by_clicks(web: LoopbackWeb, db: Path, crawling: Crawling, dashboard: Dashboard) -> None:
    with browser_page() as page:
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text))
        page.goto(dashboard.url)
        state = page.locator("#state")
        expect(state).to_have_text("running", timeout=120_000)
        expect(page.locator("#sites tr")).to_have_count(2)
        named(page, "Pause").click()
        expect(state).to_have_text("paused", timeout=120_000)
        expect(page.locator("#notice")).to_contain_text("Paused by the operator since")
        named(page, "Resume").click()
        expect(state).to_have_text("running", timeout=120_000)
        page.locator("#sites tr", has_text="b.test").get_by_role("button", name="Block").click()
        expect(page.locator("#blocked")).to_contain_text("b.test has been blocked since", timeout=120_000)
        expect(page.locator("#sites tr")).to_have_count(1, timeout=120_000)
        named(page, "Unblock").click()
        expect(page.locator("#blocked")).to_be_hidden(timeout=120_000)
        expect(page.locator("#sites tr")).to_have_count(2, timeout=120_000)
        page.get_by_label("Why this URL?").fill(web.url("a.test", "/7"))
        named(page, "Explain").click()
        expect(page.locator("#answer")).to_contain_text("forbidden by line 2")
        named(page, "Stop").click()
        expect(state).to_have_text("ended", timeout=120_000)
        assert wrong == []
    assert finish(crawling).code == 3


@pytest.fixture(scope="module")
def stranger() -> Iterator[LoopbackWeb]:
    """A site whose texts would run in a browser that took them as markup."""
    with LoopbackWeb() as web:
        web.sites["one.test"] = hostile_site(web.port)
        yield web


def hostile_site(port: int) -> dict[str, Page]:
    text = hostile(port)
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    links = "".join(f"<a href=\"/?{n}='><script>document.title='OWNED'</script>\">{escaped}</a>" for n in range(9))
    return {"/": Page(f"<title>{escaped} needle</title>{links}<p>needle {escaped}"), "*": Page("x")}


@pytest.fixture(scope="module")
def hostile_dashboard(stranger: LoopbackWeb, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard of a crawl of that site; a browser changes nothing in it."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "c.toml").write_text(HASTY)
    db, text = folder / "c.db", hostile(stranger.port)
    seed = stranger.url("one.test")
    done = here("run", seed, "--config", folder / "c.toml", *LOOPBACK, "--max-pages", "3", "--db", db)
    assert done.code == 0, done
    assert here("index", "--db", db).code == 0
    doctor(db, text)
    connection = sqlite3.connect(db)
    connection.execute("INSERT INTO control (asked_at, command, name) VALUES (1, 'block', ?)", (text,))
    connection.commit()
    connection.close()
    running = Dashboard(db)
    yield running
    running.close()


def shown(page: BrowserPage, stranger: LoopbackWeb) -> None:
    """Have the dashboard show the crawl, why a URL, and what a search finds."""
    expect(page.locator("#state")).to_have_text("ended", timeout=120_000)
    expect(page.locator("#sites tr").first).to_be_visible()
    page.get_by_label("Search the pages").fill("needle")
    named(page, "Search").click()
    page.locator("#found li button").first.click()
    expect(page.locator("#answer .error")).to_contain_text("not a URL")  # no such name can exist
    page.get_by_label("Why this URL?").fill(stranger.url("one.test", f"/{hostile(stranger.port)}"))
    named(page, "Explain").click()
    expect(page.locator("#answer dt").first).to_be_visible()


@in_chromium
def test_nothing_that_was_crawled_runs_or_loads(stranger: LoopbackWeb, hostile_dashboard: Dashboard) -> None:
    asked = len(stranger.log)
    with browser_page(bypass_csp=True) as page:  # text is text even where no policy would stop it
        sent: list[str] = []
        page.on("request", lambda request: sent.append(request.url))
        page.goto(hostile_dashboard.url)
        shown(page, stranger)
        assert page.content().count("document.title='OWNED'") > 10  # it is there to be read
        assert page.title() == "ended: c.db"
        assert page.locator("img, script:not([src]), [onload], [onerror], a[href^='http']").count() == 0
        assert {urlsplit(url).netloc for url in sent if not url.startswith("data:")} == {hostile_dashboard.host}
    assert stranger.log[asked:] == []
