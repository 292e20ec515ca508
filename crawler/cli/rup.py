"""The group ``rup``: a site that tells robots what changed, and the robot's side of it."""

from __future__ import annotations

from crawler.cli.base import LazyGroup, cli


class _Commands(LazyGroup):
    modules = {"serve": "rup_serve"} | dict.fromkeys(
        ("info", "register", "unregister", "modify", "status", "sync"), "rup_robot"
    )


@cli.group(cls=_Commands)
def rup() -> None:
    """Updates by the Remote Update Protocol of 1998: sites tell robots what changed."""
