"""Several processes on one crawl, on a SQLite file and on a PostgreSQL database, judged by the server's log."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawler.clock import boot_s
from crawler.demo.pages import Page, plain, redirect
from crawler.store.postgres.store import PostgresStore
from crawler.store.sql.workers import is_alive
from tests import judge, kill
from tests.command import HASTY, LOOPBACK, Started, crawler, finish, here, start, until
from tests.postgres import Cluster, cluster
from tests.web import LoopbackWeb

WORKERS_SETTINGS = HASTY + "total_timeout = 20\n[workers]\npatience = 60\n"


@pytest.fixture(scope="module")
def web() -> Iterator[LoopbackWeb]:
    """One server for all tests: a crawl of the same web has the same URLs then."""
    with LoopbackWeb() as served:
        yield served


@pytest.fixture(scope="module")
def whole(web: LoopbackWeb, tmp_path_factory: pytest.TempPathFactory) -> list[set[tuple[Any, ...]]]:
    """The result of one process, on the web of ``options``."""
    folder = tmp_path_factory.mktemp("whole")
    command = options_of(web, folder)
    assert here(*command, "--seeds", folder / "seeds.txt", "--db", folder / "whole.db").code == 0
    return contents(str(folder / "whole.db"))


@pytest.fixture
def loopback(web: LoopbackWeb) -> LoopbackWeb:
    """The server with an empty log."""
    web.web.log.clear()
    return web


@pytest.fixture
def options(loopback: LoopbackWeb, tmp_path: Path) -> list[str]:
    """Of a crawl of a random web, seeds left out; these are in a file."""
    return options_of(loopback, tmp_path)


def options_of(web: LoopbackWeb, folder: Path) -> list[str]:
    seeds = kill.serve(web, 5, hosts=4, pages_per_host=12)
    (folder / "seeds.txt").write_text("\n".join(seeds))
    (folder / "c.toml").write_text(WORKERS_SETTINGS)
    return ["run", "--config", str(folder / "c.toml"), *LOOPBACK]


@pytest.fixture
def seeds(tmp_path: Path) -> list[str]:
    return ["--seeds", str(tmp_path / "seeds.txt")]


@pytest.fixture(params=["sqlite", "postgres"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "c.db")
    cluster: Cluster = request.getfixturevalue("postgres")
    return cluster.make_store()


def look(db: str, sql: str) -> list[tuple[Any, ...]]:
    """Read a store with SQL."""

    async def read() -> list[tuple[Any, ...]]:
        store = await PostgresStore.open(db, read_only=True)
        try:
            return [tuple(row.values()) for row in await store.query(sql)]
        finally:
            await store.close()

    return asyncio.run(read()) if "://" in db else [tuple(row) for row in sqlite3.connect(db).execute(sql)]


def children(process: Started) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def kill_all(process: Started, db: str) -> None:
    """Workers and who is above them, none of whom can do anything about it."""
    numbers = [pid for (pid,) in look(db, "SELECT pid FROM workers")]
    process.send_signal(signal.SIGSTOP)
    workers = children(process)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    process.kill()
    process.communicate()
    gone = [*workers, *numbers]  # SIGKILL takes its time on a busy machine
    until(lambda: not any(map(is_alive, gone)), "the end of all workers")


def contents(db: str) -> list[set[tuple[Any, ...]]]:
    found = [look(db, sql) for sql in kill.CONTENT]
    assert [len(set(rows)) for rows in found] == [len(rows) for rows in found], "a row twice"
    return [set(rows) for rows in found]


def rude(loopback: LoopbackWeb) -> list[str]:
    manners = judge.Manners(kill.DELAY_S, forbidden=lambda _, path: path.startswith("/closed/"), agent="PoliteCrawler/")
    return list(map(str, judge.violations(loopback.log, manners)))


def test_three_processes_find_what_one_does(
    db: str, options: list[str], seeds: list[str], whole: list[set[tuple[Any, ...]]], loopback: LoopbackWeb
) -> None:
    is_file = "://" not in db  # workers inherit the lock of a file, so they are truly started there
    ended = crawler(*options, *seeds, "--db", db, "--workers", "3", "--json", fresh=is_file)
    assert (ended.code, ended.err) == (0, "")
    told = json.loads(ended.out)
    assert told["ended_by"] == "nothing is left in the frontier"
    assert told["pages"] == told["run"]["pages"] == len(whole[1])
    assert told["run"]["requests"] == len(loopback.log)
    assert contents(db) == whole
    assert rude(loopback) == []
    assert [row[0] for row in look(db, "SELECT sum(pages) FROM workers")] == [len(whole[1])]
    assert here("audit", "--db", db).code == 0
    status = json.loads(here("status", "--db", db, "--json").out)
    assert len(status["workers"]) == 3
    assert all(worker["ended_by"] for worker in status["workers"])
    told = here("status", "--db", db).out.splitlines()
    (head,) = [number for number, line in enumerate(told) if line.startswith("Worker")]
    assert all(line.endswith("ended") for line in told[head + 1 : head + 4])
    assert re.fullmatch(r"3 workers ended \(\d+, \d+, \d+\): nothing is left in the frontier", told[head + 4])


@pytest.mark.parametrize("db", ["postgres"], indirect=True)
def test_one_request_serves_the_sites_of_all_workers_whose_robots_txt_redirects_there(
    db: str, loopback: LoopbackWeb, tmp_path: Path
) -> None:
    there = redirect(loopback.url("rules.test", "/rules"))
    hosts = [f"s{n}.test" for n in range(8)]
    loopback.sites.update({host: {"/robots.txt": there, "/": Page("x")} for host in hosts})
    loopback.sites["rules.test"] = {"/robots.txt": plain(""), "/rules": replace(plain(""), delay_s=0.5)}
    (tmp_path / "c.toml").write_text(WORKERS_SETTINGS)
    command = ["run", *map(loopback.url, hosts), "--config", tmp_path / "c.toml", *LOOPBACK, "--db", db]
    ended = crawler(*command, "--workers", "2")
    assert (ended.code, ended.err) == (0, "")
    assert look(db, "SELECT count(*) FROM urls WHERE state = 'fetched'") == [(8,)]
    assert [hit.path for hit in loopback.hits("rules.test")] == ["/robots.txt", "/rules"]
    ended = here("audit", "--db", db)
    assert ended.code == 0, ended.out


# ``tests.faults`` kills workers on PostgreSQL.
@pytest.mark.parametrize("db", ["sqlite"], indirect=True)
def test_a_worker_that_is_killed_is_reported_and_replaced(
    db: str, options: list[str], seeds: list[str], whole: list[set[tuple[Any, ...]]], loopback: LoopbackWeb
) -> None:
    process = start(*options, *seeds, "--db", db, "--workers", "2")
    until(lambda: len(loopback.log) >= 10, "requests")
    (pid, *_) = look(db, "SELECT pid FROM workers WHERE ended_at IS NULL ORDER BY worker")[0]
    os.kill(pid, signal.SIGKILL)
    ended = finish(process)
    assert ended.code == 0
    assert ended.err.count("was killed by SIGKILL; another one takes its place") == 1
    assert contents(db) == whole
    assert rude(loopback) == []


def test_after_all_were_killed_anyone_goes_on_at_once_and_under_other_settings_too(
    db: str, options: list[str], seeds: list[str], loopback: LoopbackWeb, tmp_path: Path
) -> None:
    (tmp_path / "c.toml").write_text(HASTY + "total_timeout = 86400\n")  # leases of a day
    process = start(*options, *seeds, "--db", db, "--workers", "2")
    until(lambda: len(loopback.log) >= 20, "requests")
    kill_all(process, db)
    status = json.loads(here("status", "--db", db, "--json").out)
    assert {worker["alive"] for worker in status["workers"]} == {False}
    assert "it was killed, or its disk was full; the same command continues" in here("status", "--db", db).out
    ended = crawler(*options, "--db", db, "--max-depth", "30", "--revisit")
    changed = "crawler: changes the crawl: --max-depth 30 (was -1), --revisit (was off)\n"
    assert (ended.code, ended.err) == (0, changed)
    assert look(db, "SELECT count(*) FROM urls WHERE state = 'queued'") == [(0,)]
    assert rude(loopback) == []


@pytest.mark.parametrize(("db", "number"), [("sqlite", signal.SIGINT), ("postgres", signal.SIGTERM)], indirect=["db"])
def test_a_signal_ends_all_in_order_and_one_process_goes_on(
    db: str,
    number: signal.Signals,
    options: list[str],
    seeds: list[str],
    whole: list[set[tuple[Any, ...]]],
    loopback: LoopbackWeb,
) -> None:
    process = start(*options, *seeds, "--db", db, "--workers", "2")
    until(lambda: len(loopback.log) >= 20, "requests")
    process.send_signal(number)
    ended = finish(process)
    assert (ended.code, ended.err) == (3, "")
    assert f"stopped by {number.name}" in ended.out
    assert look(db, "SELECT count(*) FROM workers WHERE ended_at IS NULL") == [(0,)]
    assert here(*options, *seeds, "--db", db).code == 0
    assert contents(db) == whole
    assert rude(loopback) == []


# Workers inherit the lock of a SQLite file. A PostgreSQL database has no lock.
@pytest.mark.parametrize("db", ["sqlite"], indirect=True)
def test_workers_end_when_who_is_above_them_is_killed(
    db: str, options: list[str], seeds: list[str], whole: list[set[tuple[Any, ...]]], loopback: LoopbackWeb
) -> None:
    command = (*options, *seeds, "--db", db, "--workers", "2")
    process = start(*command)
    until(lambda: len(loopback.log) >= 20, "requests")
    process.kill()
    process.communicate()
    until(lambda: look(db, "SELECT count(*) FROM workers WHERE ended_at IS NULL") == [(0,)], "workers that end")
    until(lambda: crawler(*command).code == 0, "a store that is free again")
    assert contents(db) == whole
    assert rude(loopback) == []


# The commits of several workers overlap on PostgreSQL. A SQLite file has one writer at a time.
@pytest.mark.parametrize("db", ["postgres"], indirect=True)
def test_a_limit_on_pages_is_kept_to_the_page(
    db: str, options: list[str], seeds: list[str], loopback: LoopbackWeb
) -> None:
    for limit, run, workers in ((20, crawler, "3"), (27, here, "1")):
        ended = run(*options, *seeds, "--db", db, "--workers", workers, "--max-pages", str(limit), "--json")
        told = json.loads(ended.out)
        assert (ended.code, told["pages"], told["ended_by"]) == (0, limit, f"--max-pages reached ({limit})")


def test_others_join_without_seeds_and_under_the_same_settings_only(
    postgres: Cluster,
    options: list[str],
    seeds: list[str],
    loopback: LoopbackWeb,
    tmp_path: Path,
) -> None:
    kill.serve(loopback, 5, hosts=4, pages_per_host=160)
    db = postgres.make_database()
    assert "no seeds" in here(*options, "--db", db).err
    assert (
        postgres.psql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", database=postgres.name_in(db))
        == "0\n"
    )
    first = start(*options, *seeds, "--db", db)
    until(lambda: len(loopback.log) >= 5, "requests")
    second = start(*options, "--db", db)
    refused = crawler(*options, "--db", db, "--max-depth", "3", "--delay", "1")
    assert refused.code == 2
    assert "under other settings (--max-depth, --delay)" in refused.err
    alone = crawler(*options, "--db", db, "--warc", tmp_path / "w")
    assert alone.code == 2
    assert "--warc: this needs a single worker; others are at work on" in alone.err
    assert [finish(process).code for process in (first, second)] == [0, 0]
    assert all(pages > 0 for (pages,) in look(db, "SELECT pages FROM workers"))
    assert len(look(db, "SELECT DISTINCT pid FROM workers")) == 2
    assert look(db, "SELECT count(*) FROM urls WHERE state = 'queued'") == [(0,)]
    assert rude(loopback) == []


def test_teams_that_begin_at_once_are_one_run(
    postgres: Cluster, options: list[str], seeds: list[str], loopback: LoopbackWeb
) -> None:
    kill.serve(loopback, 5, hosts=4, pages_per_host=40)
    db = postgres.make_database()
    command = (*options, *seeds, "--db", db, "--workers", "2", "--max-pages", "80")
    assert [finish(process).code for process in (start(*command), start(*command))] == [0, 0]
    assert look(db, "SELECT count(*), min(ended_by) FROM run") == [(1, "limits.max_pages reached (80)")]
    assert look(db, "SELECT count(*) FROM pages") == [(80,)]
    assert rude(loopback) == []


def test_a_worker_that_was_stopped_ends_where_another_crawl_was_begun_meanwhile(
    postgres: Cluster, options: list[str], seeds: list[str], loopback: LoopbackWeb, tmp_path: Path
) -> None:
    kill.serve(loopback, 5, hosts=4, pages_per_host=80)
    (tmp_path / "c.toml").write_text(WORKERS_SETTINGS.replace("total_timeout = 20", "total_timeout = 2"))
    db = postgres.make_store()
    first = start(*options, *seeds, "--db", db)
    until(lambda: len(loopback.log) >= 10, "requests")
    first.send_signal(signal.SIGSTOP)
    end_of_lease = "SELECT pg_sleep(lease_until - extract(epoch FROM clock_timestamp())) FROM worker"
    postgres.psql(end_of_lease, database=postgres.name_in(db))
    newer = crawler(*options, "--db", db, "--max-depth", "30", "--max-pages", "60")
    assert newer.code == 0, newer.err
    first.send_signal(signal.SIGCONT)
    ended = finish(first)
    # The signal may have come during a statement, which then timed out: the worker tells of the lost connection.
    assert (ended.code, "Traceback" in ended.err) == (3, False), ended
    assert "another crawl began meanwhile" in ended.out
    began = "SELECT started_at FROM run ORDER BY id DESC LIMIT 1"
    assert look(db, f"SELECT count(*) FROM requests WHERE run_id = 1 AND started_at > ({began})") == [(0,)]
    assert rude(loopback) == []


def test_an_auxiliary_run_beside_a_crawl_keeps_its_lease_and_is_not_taken_for_the_crawl(
    postgres: Cluster, options: list[str], seeds: list[str], loopback: LoopbackWeb, tmp_path: Path
) -> None:
    kill.serve(loopback, 5, hosts=4, pages_per_host=200)
    offer = Page("RUP-CGI: /cgi\nAuthentifier: none\n", content_type="text/plain")
    loopback.sites["rup.web.test"] = {"/robots.txt": plain("User-agent: *\n"), "/rupinfo.txt": offer}
    (tmp_path / "slow.toml").write_text(WORKERS_SETTINGS.replace("delay = 0.05", "delay = 600"))
    db, site = postgres.make_store(), loopback.url("rup.web.test")
    crawl = start(*options, *seeds, "--db", db)
    until(lambda: len(loopback.log) >= 10, "requests")
    auxiliary = start("rup", "info", site, "--config", str(tmp_path / "slow.toml"), "--db", db)
    until(lambda: look(db, "SELECT count(*) FROM requests WHERE run_id = 2") == [(1,)], "the auxiliary run's request")
    lease = "SELECT commits, lease_until FROM worker WHERE run_id = 2"
    ((commits, until_then),) = look(db, lease)
    until(lambda: look(db, lease)[0][1] > until_then, "a renewal in the pause behind the request")
    assert look(db, lease)[0][0] == commits
    status = json.loads(here("status", "--db", db, "--json").out)
    assert (status["last_run"]["id"], [worker["pid"] for worker in status["workers"]]) == (1, [crawl.pid])
    auxiliary.send_signal(signal.SIGINT)
    assert finish(auxiliary).code == 3
    assert len(loopback.hits("rup.web.test")) == len(look(db, "SELECT url FROM requests WHERE run_id = 2")) == 1
    assert here("control", "stop", "--db", db).code == 0
    assert finish(crawl).code == 3
    assert "stopped by the operator" in here("status", "--db", db).out
    (tmp_path / "other.toml").write_text('[identity]\nagent = "Another"\n')
    other = here("rup", "info", site, "--config", tmp_path / "other.toml", "--db", db)
    assert (other.code, "the crawl in this store has PoliteCrawler" in other.err) == (2, True)


def test_every_command_that_reads_does_so_on_postgresql(
    postgres: Cluster, options: list[str], seeds: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "hush")
    plain = db = postgres.make_store()
    said = [here(*options, *seeds, "--db", db)]
    url = look(plain, "SELECT url FROM pages ORDER BY url LIMIT 1")[0][0]
    for command in (
        ["status"], ["status", "--json"], ["why", url], ["audit"], ["rank"], ["report", str(tmp_path / "r.html")],
        ["export", "csv", str(tmp_path / "p.csv")], ["export", "graphml", str(tmp_path / "g.graphml")],
        ["export", "edges", str(tmp_path / "e"), "--table", "links_glued"],
        ["export", "jsonl", str(tmp_path / "b.jsonl"), "--add", "body", "--where", "depth > 0"],
        ["export", "sitemap", str(tmp_path / "s.xml")], ["export", "warc", str(tmp_path / "w.warc")],
        ["export", "wacz", str(tmp_path / "w.wacz")], ["index"], ["search", "page"], ["hint", url],
    ):  # fmt: skip
        said.append(here(*command, "--db", db))
        assert said[-1].code == 0, (command, said[-1].err)
    for table in ("urls", "links", "sites", "robots_versions", "robots_answers", "mirrors", "workers", "ranks"):
        assert here("export", "jsonl", tmp_path / table, "--table", table, "--db", db).code == 0
    wrong = here("export", "csv", tmp_path / "x", "--where", "nonsense = 1", "--db", db)
    assert (wrong.code, "nonsense" in wrong.err) == (2, True)
    demo = here("demo", "--db", db)
    assert (demo.code, "give a path" in demo.err) == (2, True)
    assert not any("hush" in each.out + each.err for each in [*said, wrong, demo])
    assert "hush" not in (tmp_path / "r.html").read_text()
    assert "hush" not in str(look(plain, "SELECT settings FROM run"))


@pytest.fixture(scope="module")
def mortal() -> Iterator[Cluster]:
    """A server of PostgreSQL that tests stop; they start it again."""
    with cluster() as server:
        yield server


def test_a_database_that_is_lost_for_good_ends_the_crawl_with_a_clear_word(
    mortal: Cluster, options: list[str], seeds: list[str], loopback: LoopbackWeb, tmp_path: Path
) -> None:
    (tmp_path / "c.toml").write_text(WORKERS_SETTINGS.replace("patience = 60", "patience = 0.2"))
    db = mortal.make_database()
    processes = [start(*options, *seeds, "--db", db, "--workers", workers) for workers in ("1", "2")]
    until(lambda: len(loopback.log) >= 20, "requests")
    mortal.stop("immediate")
    for process in processes:
        ended = finish(process)
        assert ended.code == 4
        assert ended.err.count("cannot be reached") == 1
        assert "what was committed is kept" in ended.err
    mortal.start()
    assert crawler(*options, "--db", db).code == 0
    assert look(db, "SELECT count(*) FROM urls WHERE state = 'queued'") == [(0,)]
    assert look(db, "SELECT count(*) FROM url u JOIN frontier f ON f.url_id = u.id") == [(0,)]
    assert rude(loopback) == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_database_that_is_away_is_told_of_once_and_a_second_signal_does_not_wait_for_it(
    workers: str, mortal: Cluster, options: list[str], seeds: list[str], loopback: LoopbackWeb, tmp_path: Path
) -> None:
    kill.serve(loopback, 5, hosts=4, pages_per_host=50)

    def asked(more: int) -> None:
        least = len(loopback.log) + more
        until(lambda: len(loopback.log) >= least, "requests")

    command = (*options, *seeds, "--db", mortal.make_database())
    process = start(*command, "--workers", workers)
    assert process.stderr is not None
    asked(20)
    mortal.stop("immediate")
    told = (
        "crawler: the database does not answer, or its disk is full; the crawl waits 1 min at most (workers.patience)\n"
    )
    assert process.stderr.readline() == told
    mortal.start()
    assert process.stderr.readline().startswith("crawler: the database answers again, after ")
    asked(20)
    mortal.stop("immediate")
    process.send_signal(signal.SIGINT)
    sent_s = boot_s()
    stopping = process.stderr.readline()
    assert stopping.startswith("crawler: SIGINT: stopping when the database answers, "), stopping
    until(lambda: boot_s() - sent_s > 1.0, "the time after which a signal is a second one")
    process.send_signal(signal.SIGINT)
    (last,) = process.stderr.read().splitlines()
    assert "what was committed is kept" in last  # told of the end of the wait, or of a connection that failed just then
    assert process.wait(60) == 4
    mortal.start()
    until(lambda: crawler(*command).code == 0, "a crawl that goes on")
    assert look(command[-1], "SELECT count(*) FROM urls WHERE state = 'queued'") == [(0,)]
    assert rude(loopback) == []
