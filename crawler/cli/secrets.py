"""Secrets that the user gives. They come from the environment: other users can read the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from crawler.errors import UsageError

#: The environment variables with the login at a mail server.
SMTP_USER, SMTP_PASSWORD = "CRAWLER_SMTP_USER", "CRAWLER_SMTP_PASSWORD"


def secret(variable: str, environment: Mapping[str, str] = os.environ) -> str:
    """The secret in the environment variable ``variable``, or in the file that ``variable_FILE`` names; else "".

    Raises :class:`UsageError` if the file cannot be read.
    """
    given = environment.get(variable, "")
    if given or not (path := environment.get(f"{variable}_FILE")):
        return given
    try:
        return Path(path).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text in UTF-8"
        raise UsageError(f"{variable}_FILE: {path} cannot be read: {why}") from None


def smtp_login() -> tuple[str, str] | None:
    """The user name and the password for mail servers, or ``None``. Raises :class:`UsageError` for half of them."""
    user, password = os.environ.get(SMTP_USER), secret(SMTP_PASSWORD) or None
    if (user is None) is not (password is None):
        raise UsageError(f"set both {SMTP_USER} and {SMTP_PASSWORD}, or neither")
    return None if user is None or password is None else (user, password)
