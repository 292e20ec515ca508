"""The command group ``rup``: the robot's commands and the server's command."""

from __future__ import annotations

from crawler.cli.shared import LazyGroup, cli


class _Commands(LazyGroup):
    modules = {"serve": "rup.server.commands", "status": "rup.robot.status"} | dict.fromkeys(
        ("info", "register", "unregister", "modify", "sync", "listen"), "rup.robot.commands"
    )


@cli.group(cls=_Commands)
def rup() -> None:
    """Updates by the Remote Update Protocol of 1998: sites tell robots what changed."""
