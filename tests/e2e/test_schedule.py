"""Runs at set times: the units and the cron line, the lock, the summary by mail or webhook, the limit on the disk."""

from __future__ import annotations

import asyncio
import configparser
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from crawler.demo.pages import Page, plain
from crawler.fetch.open_files import MOST_FILES
from crawler.run.notify import notify
from tests.command import LOOPBACK, ROOT, crawler, start, until
from tests.web import LoopbackWeb

CONFIG = ROOT / "config"
SUMMARY = {"db": "crawl.db", "ended_by": "nothing\nis left", "run": {"pages": 2, "requests": 3}}


def unit(name: str) -> configparser.ConfigParser:
    read = configparser.ConfigParser(interpolation=None, strict=False)
    read.optionxform = str  # type: ignore[assignment, method-assign]
    read.read_string((CONFIG / "systemd" / name).read_text())
    return read


def installed_in(folder: Path, command: str, web: LoopbackWeb) -> str:
    """``command`` with the paths of an installation in ``folder``."""
    (folder / "seeds.txt").write_text(web.url("a.test"))
    (folder / "crawler.toml").write_text(
        f'[store]\ndb = "{folder}/crawl.db"\n[seeds]\nfile = "{folder}/seeds.txt"\n[revisit]\nenabled = true\n'
        '[fetch]\nresolve = ["*.test=127.0.0.1"]\nallow_private = true\n[politeness]\ndelay = 0.05\n'
    )
    command = command.replace("/opt/crawler/bin/crawler", f"{sys.executable} -m crawler")
    return command.replace("/etc/crawler.toml", f"{folder}/crawler.toml").replace("/var/lib/crawler", str(folder))


def lines() -> dict[str, str]:
    (cron,) = (line for line in (CONFIG / "crontab").read_text().splitlines() if line[0].isdigit() or line[0] == "*")
    minute, hour, *rest, command = cron.split(maxsplit=5)
    assert (minute, hour, rest) == ("7", "*/6", ["*", "*", "*"])
    return {"systemd": unit("crawler.service")["Service"]["ExecStart"], "cron": command}


def test_each_scheduled_command_crawls_and_the_next_one_goes_on(loopback: LoopbackWeb, tmp_path: Path) -> None:
    loopback.sites["a.test"] = {"/robots.txt": plain(""), "/": Page("<title>A</title>")}
    commands = [installed_in(tmp_path, line, loopback) for line in lines().values()]
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    for command in commands:
        assert subprocess.run(["sh", "-c", command], cwd=tmp_path, env=env, check=False).returncode == 0, command


def test_a_quiet_run_prints_only_what_went_wrong(loopback: LoopbackWeb, tmp_path: Path) -> None:
    loopback.sites["a.test"] = {"/robots.txt": plain(""), "/": Page("<title>A</title>")}
    loopback.sites["b.test"] = {"/robots.txt": plain("User-agent: *\nDisallow: /\n")}
    run = ("run", *LOOPBACK, "--delay", "0.05", "--quiet", "--db")
    good = crawler(*run, tmp_path / "good.db", loopback.url("a.test"))
    assert (good.code, good.out, good.err) == (0, "", "")
    bad = crawler(*run, tmp_path / "bad.db", loopback.url("b.test"))
    assert (bad.code, "Ended" in bad.out) == (5, True)
    assert "every seed was left out: robots" in bad.err


def test_systemd_counts_a_stopped_run_as_success_and_one_that_crawled_nothing_as_failure() -> None:
    service = unit("crawler.service")["Service"]
    assert service["SuccessExitStatus"].split() == ["3"]  # beside 0
    assert "Restart" not in service, "the timer starts it again"


def test_an_installed_run_ends_before_the_next_is_due_and_may_open_many_files() -> None:
    for command in lines().values():
        assert " --max-time 5h" in command  # both start every six hours
    assert int(unit("crawler.service")["Service"]["LimitNOFILE"]) == MOST_FILES


def test_the_units_are_those_of_systemd(tmp_path: Path) -> None:
    assert unit("crawler.service")["Service"]["Type"] == "oneshot"
    assert unit("crawler.timer")["Timer"]["Persistent"] == "true"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for name in ("crawler.service", "crawler.timer", "crawler-dashboard.service"):
        text = (CONFIG / "systemd" / name).read_text()
        (tmp_path / name).write_text(text.replace("/opt/crawler/bin/crawler", shlex.quote(sys.executable)))
    units = [str(path) for path in tmp_path.glob("crawler*.*") if path.suffix in (".service", ".timer")]
    checked = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert "crawler" not in checked.stderr, checked.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell who holds a lock")
def test_a_second_run_is_told_who_holds_the_store(loopback: LoopbackWeb, tmp_path: Path) -> None:
    loopback.sites["a.test"] = {"/robots.txt": plain(""), "/": Page("A", delay_s=30)}
    command = ("run", loopback.url("a.test"), *LOOPBACK, "--db", tmp_path / "crawl.db", "--delay", "0.05")
    first = start(*command, fresh=True)
    until(lambda: len(loopback.log) > 0, "the first run to send a request")
    second = crawler(*command)
    first.kill()
    first.communicate()
    assert second.code == 2
    assert f"(crawler run, process {first.pid})" in second.err


class Receiver(asyncio.Protocol):
    """Takes one HTTP POST, or one mail."""

    taken: bytes = b""
    is_mail = False

    def connection_made(self, transport: Any) -> None:
        self.transport, self.in_data = transport, False
        if self.is_mail:
            transport.write(b"220 here\r\n")

    def data_received(self, data: bytes) -> None:
        type(self).taken += data
        if not self.is_mail:
            head, _, body = self.taken.partition(b"\r\n\r\n")
            (length,) = (line.split(b":")[1] for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
            if len(body) >= int(length):
                self.transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        elif self.in_data:
            if data.endswith(b"\r\n.\r\n"):
                self.in_data = False
                self.transport.write(b"250 taken\r\n")
        elif data.upper().startswith(b"DATA"):
            self.in_data = True
            self.transport.write(b"354 go on\r\n")
        else:
            self.transport.write(b"221 bye\r\n" if data.upper().startswith(b"QUIT") else b"250 ok\r\n")


@contextmanager
def receiving(*, mail: bool) -> Iterator[tuple[int, type[Receiver]]]:
    """A receiver on a port of its own thread."""
    taker = type("Taker", (Receiver,), {"taken": b"", "is_mail": mail})
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        server = asyncio.run_coroutine_threadsafe(loop.create_server(taker, "127.0.0.1", 0), loop).result()
        yield server.sockets[0].getsockname()[1], taker
        loop.call_soon_threadsafe(server.close)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_the_summary_goes_to_a_webhook(loopback: LoopbackWeb, tmp_path: Path) -> None:
    loopback.sites["a.test"] = {"/robots.txt": plain(""), "/": Page("<title>A</title>")}
    with receiving(mail=False) as (port, taker):
        hook = f"http://127.0.0.1:{port}/hook?key=1"
        ended = crawler("run", loopback.url("a.test"), *LOOPBACK, "--delay", "0.05", "--notify", hook, cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    head, _, body = taker.taken.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hook?key=1 ")
    told = json.loads(body)
    assert (told["ended_code"], told["run"]["pages"]) == ("done", 1)
    assert told["text"] == "crawl crawl.db: nothing is left in the frontier, 1 page in 2 requests"


def test_a_failed_run_is_told_too(tmp_path: Path) -> None:
    with receiving(mail=False) as (port, taker):
        ended = crawler("run", *LOOPBACK, "--notify", f"http://127.0.0.1:{port}/", cwd=tmp_path)
    assert ended.code == 2
    assert b"no seeds, and no store to go on with" in taker.taken


async def test_the_summary_goes_by_mail() -> None:
    told: list[str] = []
    with receiving(mail=True) as (port, taker):
        await notify(f"smtp://127.0.0.1:{port}/me@example.org", SUMMARY, "bot@example.org", told.append)
    text = taker.taken[taker.taken.index(b"From:") :]
    mail = message_from_bytes(text)
    assert (mail["From"], mail["To"]) == ("bot@example.org", "me@example.org")
    assert mail["Date"]
    assert mail["Message-ID"]
    assert mail["Subject"] == "crawl crawl.db: nothing is left, 2 pages in 3 requests"
    assert b"RCPT TO:<me@example.org>" in taker.taken
    assert told == []


@pytest.mark.parametrize("target", ["http://127.0.0.1:9/", "smtp://127.0.0.1:9/me@example.org"])
async def test_a_receiver_that_is_away_is_named_and_harms_nothing(target: str) -> None:
    told: list[str] = []
    await notify(target, SUMMARY, "", told.append)
    assert len(told) == 1
    assert "127.0.0.1 did not accept the summary" in told[0]


@pytest.mark.parametrize(
    "target", ["mailto:a@b.org", "smtp://host/", "https://", "ftp://x/", "http://x:99999/", "smtp://x/a%0Ab@c"]
)
def test_an_address_that_cannot_be_told_is_refused(target: str, tmp_path: Path) -> None:
    ended = crawler("run", "http://127.0.0.1:9/", "--notify", target, cwd=tmp_path)
    assert (ended.code, "--notify" in ended.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_run_ends_when_its_files_take_too_much(loopback: LoopbackWeb, tmp_path: Path) -> None:
    loopback.sites["a.test"] = {"/robots.txt": plain(""), "/": Page("<title>A</title>")}
    command = ("run", loopback.url("a.test"), *LOOPBACK, "--delay", "0.05", "--json", "--max-disk")
    ended = crawler(*command, "1kB", cwd=tmp_path)
    assert (ended.code, json.loads(ended.out)["ended_code"]) == (5, "max_disk")
    assert "--max-disk is reached" in ended.err + ended.out
    assert json.loads(crawler(*command, "0", cwd=tmp_path).out)["ended_code"] == "done"
