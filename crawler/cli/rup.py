"""The group ``rup``: a site that tells robots what changed, and the robot's side of it."""

from __future__ import annotations

from importlib import import_module

import click

from crawler.cli.base import cli

#: The modules of the commands, each loaded when one of its own is asked for.
_MODULES = {"serve": "rup_serve"} | dict.fromkeys(
    ("info", "register", "unregister", "modify", "status", "sync"), "rup_robot"
)


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _MODULES:
            import_module(f"crawler.cli.{_MODULES[cmd_name]}")
        return super().get_command(ctx, cmd_name)


@cli.group(cls=_Commands)
def rup() -> None:
    """Updates by the Remote Update Protocol of 1998: sites tell robots what changed."""
