"""Which log records a command shows, and how. Loading this module is fast: each command has options for it."""

from __future__ import annotations

from enum import StrEnum


class LogLevel(StrEnum):
    """The least severe records that a command writes to standard error."""

    OFF = "off"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    DEBUG = "debug"


class LogFormat(StrEnum):
    """How a command writes log records."""

    TEXT = "text"
    JSON = "json"
