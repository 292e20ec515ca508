"""The log of a crawl stands on standard error, and leaves standard output to the result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawler.demo.pages import Page, plain
from tests.command import HASTY, LOOPBACK, crawler, here
from tests.web import LoopbackWeb


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_operator_reads_why_a_run_ends_and_which_site_is_deferred(
    workers: str, loopback: LoopbackWeb, tmp_path: Path
) -> None:
    loopback.sites["a.test"] = {"/": Page("<title>A</title>")}
    loopback.sites["b.test"] = {"/robots.txt": Page("", status=503), "/": Page("<title>B</title>")}
    config = tmp_path / "c.toml"
    config.write_text(HASTY.replace("[robots]", "[robots]\ngive_up_after = 0.1"))
    ended = crawler(
        "run", loopback.url("a.test"), loopback.url("b.test"), *LOOPBACK, "--config", config,
        "--db", tmp_path / "c.db", "--workers", workers, "--json",
        "--log-level", "info", "--log-format", "json",
    )  # fmt: skip
    assert json.loads(ended.out)["pages"] == 1
    records = [json.loads(line) for line in ended.err.splitlines()]  # nothing else
    messages = {record["logger"]: record["message"] for record in records}
    assert messages["crawler.run"].startswith("the run ends: ")
    assert any(record.get("settings", {}).get("robots.give_up_after") == 0.1 for record in records)
    deferred = [record for record in records if record["logger"] == "crawler.robots"]
    assert {record["site"] for record in deferred} == {loopback.url("b.test").rstrip("/")}
    assert ["deferred" in deferred[0]["message"], "given up" in deferred[-1]["message"]] == [True, True]


def test_a_site_that_closes_is_told_of(loopback: LoopbackWeb, tmp_path: Path) -> None:
    command = ("run", *LOOPBACK, "--db", tmp_path / "c.db", "--log-level", "info", "--log-format", "json")
    told: list[list[str]] = []
    for robots in ("", "User-agent: *\nDisallow: /"):
        loopback.sites["a.test"] = {"/robots.txt": plain(robots), "/": Page("<title>A</title>")}
        ended = crawler(*command, "--refresh" if told else loopback.url("a.test"), "--delay", "0.02")
        records = [json.loads(line) for line in ended.err.splitlines()]
        told.append([each["message"] for each in records if each["logger"] == "crawler.robots"])
    site = loopback.url("a.test").rstrip("/")
    assert told == [[], [f"{site} is closed: robots.txt forbids all of it (200)"]]


def test_by_default_a_run_logs_nothing(loopback: LoopbackWeb, tmp_path: Path) -> None:
    loopback.sites["b.test"] = {"/robots.txt": Page("", status=503), "/": Page("<title>B</title>")}
    config = tmp_path / "c.toml"
    config.write_text(HASTY.replace("[robots]", "[robots]\ngive_up_after = 0.1"))
    ended = crawler("run", loopback.url("b.test"), *LOOPBACK, "--db", tmp_path / "c.db", "--config", config)
    assert "crawler.robots" not in ended.err


def test_the_options_on_logs_stand_before_any_command(loopback: LoopbackWeb, tmp_path: Path) -> None:
    described = here("--help").out
    assert ["--log-level" in described, "--log-format" in described] == [True, True]
    loopback.sites["a.test"] = {"/": Page("<title>A</title>")}
    (tmp_path / "c.toml").write_text('[output]\nlog_format = "text"\n')
    options = (*LOOPBACK, "--config", tmp_path / "c.toml", "--db", tmp_path / "c.db")
    ended = here("--log-level", "info", "--log-format", "json", "run", loopback.url("a.test"), *options)
    records = [json.loads(line) for line in ended.err.splitlines() if line.startswith("{")]
    assert "crawler.run" in {record["logger"] for record in records}


def test_a_request_of_the_rup_robot_is_logged(loopback: LoopbackWeb, tmp_path: Path) -> None:
    loopback.sites["a.test"] = {"/": Page("<title>A</title>")}
    db = tmp_path / "c.db"
    crawler("run", loopback.url("a.test"), *LOOPBACK, "--db", db)
    ended = crawler("--log-level", "debug", "rup", "info", loopback.url("a.test"), "--db", db)
    assert "DEBUG crawler.fetch: " in ended.err
