"""The command group ``rup``: the robot's commands and the server's command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawler.cli.shared import LazyGroup, cli
from crawler.errors import UsageError

if TYPE_CHECKING:
    from crawler.rup.protocol.units import Span


class _Commands(LazyGroup):
    modules = {"serve": "rup.server.commands", "status": "rup.robot.status"} | dict.fromkeys(
        ("info", "register", "unregister", "modify", "sync", "listen"), "rup.robot.commands"
    )


@cli.group(cls=_Commands)
def rup() -> None:
    """Updates by the Remote Update Protocol of 1998: sites tell robots what changed."""


def span_in(option: str, text: str) -> Span:
    """The span of time that the user gave with an option. Raises :class:`UsageError` for another text."""
    from crawler.rup.protocol.units import read_span

    span = read_span(text)
    if span is None:
        raise UsageError(f"{option} {text}: give a number, a hyphen and a unit, such as 7-day or 12-hour")
    return span


def address_in(option: str, text: str) -> str:
    """The e-mail address that the user gave with an option. Raises :class:`UsageError` for another text."""
    from crawler.rup.protocol.forms import is_address

    if not is_address(text):
        raise UsageError(f"{option} {text}: not an e-mail address")
    return text
