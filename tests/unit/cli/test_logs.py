"""Log records reach standard error in the form that was asked for, and nothing else changes."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from crawler.cli.logs import Forwarding, set_up_logging, show_by, show_forwarded
from crawler.settings.settings import LogFormat, LogLevel

LOG = logging.getLogger("crawler.robots")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Restore what a command sets up for its process."""
    logger = logging.getLogger("crawler")
    handlers, level = logger.handlers, logger.level
    yield
    logger.handlers = handlers
    logger.setLevel(level)


def test_a_record_is_one_line_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogLevel.INFO, LogFormat.TEXT)
    LOG.info("%s is\ndeferred", "http://a.test")
    LOG.debug("not shown")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith("Z INFO crawler.robots: http://a.test is deferred\n")


def test_a_record_is_one_json_object_with_its_facts(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogLevel.WARNING, LogFormat.JSON)
    LOG.warning("deferred", extra={"site": "http://a.test"})
    LOG.info("not shown")
    record = json.loads(capsys.readouterr().err)
    assert record["time"].endswith("Z")
    assert {name: record[name] for name in ("level", "logger", "message", "site")} == {
        "level": "warning",
        "logger": "crawler.robots",
        "message": "deferred",
        "site": "http://a.test",
    }


def test_by_default_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(LogLevel.OFF, LogFormat.TEXT)
    LOG.critical("not shown")
    assert capsys.readouterr() == ("", "")


def test_the_records_of_a_worker_are_shown_by_the_process_above_it(capsys: pytest.CaptureFixture[str]) -> None:
    sent: list[dict[str, object]] = []
    show_by(Forwarding(sent.append), LogLevel.INFO, LogFormat.TEXT)
    LOG.warning("%d slow", 3, extra={"site": "http://a.test"})
    assert capsys.readouterr() == ("", "")
    (record,) = [json.loads(json.dumps(each)) for each in sent]
    set_up_logging(LogLevel.INFO, LogFormat.JSON)
    show_forwarded(record)
    shown = json.loads(capsys.readouterr().err)
    assert (shown["message"], shown["site"], shown["logger"]) == ("3 slow", "http://a.test", "crawler.robots")


def test_a_live_display_may_stand_in_for_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def __init__(self) -> None:
            self.text = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> None:
            self.text += text

        def flush(self) -> None: ...

    before, display = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stderr", before)
    set_up_logging(LogLevel.INFO, LogFormat.TEXT)
    monkeypatch.setattr(sys, "stderr", display)
    LOG.info("above the display")
    assert (before.text, "above the display" in display.text) == ("", True)
