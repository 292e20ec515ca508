"""Log records on standard error, for ``crawler --log-level`` and ``--log-format``.

The crawler logs through the standard library, to loggers below ``crawler``. By default a command shows no record. A
program that uses the Python API sets up handlers itself.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from typing import TextIO

from crawler.cli import output
from crawler.formatting import instant
from crawler.settings.log_records import LogFormat, LogLevel
from crawler.terminal_text import printable

_LOGGER = logging.getLogger("crawler")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


def set_up_logging(level: LogLevel, form: LogFormat) -> None:
    """Show records of ``level`` and above on standard error from now on, in place of what was set up before.

    In the form of JSON, standard error has nothing but records: what a command tells its user is one, whatever its
    level.
    """
    handler = _StandardError()
    show_by(handler, level, form)
    output.tell_by((lambda *told: handler.handle(_record(*told))) if form is LogFormat.JSON else None)


def _record(message: str, level: int) -> logging.LogRecord:
    named = {"levelno": level, "levelname": logging.getLevelName(level)}
    return logging.makeLogRecord({"name": "crawler.cli", **named, "msg": message.replace("%", "%%")})


def show_by(handler: logging.Handler, level: LogLevel, form: LogFormat) -> None:
    """Pass records of ``level`` and above to ``handler``, and to no handler that was set up here before."""
    handler.setFormatter(_Json() if form is LogFormat.JSON else _Text())
    _LOGGER.handlers = [logging.NullHandler() if level is LogLevel.OFF else handler]
    _LOGGER.setLevel(logging.NOTSET if level is LogLevel.OFF else level.upper())


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to standard error.

    While the live display is shown, ``sys.stderr`` is a proxy that prints above the display. The handler therefore
    looks up a terminal for each record. A file or a pipe is looked up once: records belong there.
    """

    def __init__(self) -> None:
        self._fixed = None if sys.stderr.isatty() else sys.stderr
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; logging calls this."""
        self.stream = self._fixed or sys.stderr
        super().emit(record)


def _facts(record: logging.LogRecord) -> dict[str, object]:
    """The values that the call gave with ``extra``."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """``2026-11-21T10:42:00.125Z WARNING crawler.engine.gate: …`` on one line."""
        text = printable(" ".join(record.getMessage().split()))
        return f"{instant(record.created)} {record.levelname} {record.name}: {text}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """One JSON object: time, level, logger, process, message, and the values that the call gave."""
        document = {
            "time": instant(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
            **_facts(record),
        }
        return json.dumps(document, default=str)


class Forwarding(logging.Handler):
    """Passes records to another process as plain data, which :func:`show_forwarded` takes there."""

    def __init__(self, send: Callable[[dict[str, object]], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on one record; logging calls this."""
        known = {"name": record.name, "levelno": record.levelno, "levelname": record.levelname}
        self._send(
            {
                **known,
                **_facts(record),
                "msg": record.getMessage(),
                "created": record.created,
                "process": record.process,
            }
        )


def show_forwarded(record: dict[str, object]) -> None:
    """Handle a record that :class:`Forwarding` passed on in another process."""
    made = logging.makeLogRecord(record)
    logging.getLogger(made.name).handle(made)
