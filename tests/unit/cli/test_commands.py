"""The help of `crawler` names every command, and needs none of their modules."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from crawler.cli.shared import COMMANDS, cli


def test_each_command_of_the_help_exists() -> None:
    context = click.Context(cli)
    for entries in COMMANDS.values():
        for name, entry in entries.items():
            assert cli.get_command(context, name) is not None, name
            assert entry.about.endswith("."), name


def test_a_command_that_is_spelled_wrong_is_named() -> None:
    with pytest.raises(click.UsageError, match=r"No such command 'stauts'\. Did you mean status\?"):
        cli.main(["stauts"], standalone_mode=False)
    with pytest.raises(click.UsageError, match=r"No such command 'xyzzy'\.$"):
        cli.main(["xyzzy"], standalone_mode=False)


def test_a_parser_process_loads_no_event_loop() -> None:
    """Every crawl waits for the start of one."""
    script = "import crawler.engine.parser_process, sys; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=300, check=False).returncode == 0


def test_the_help_loads_no_settings_no_store_and_no_http_client() -> None:
    script = """
import sys
from crawler.cli import main
sys.argv[1:] = ["--help"]
try:
    main()
finally:
    print(sorted(sys.modules))
"""
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True, env=unmeasured
    )
    loaded = done.stdout.splitlines()[-1]
    assert "'crawler.cli.shared'" in loaded
    for module in ("crawler.settings.settings", "crawler.store", "crawler.engine", "aiohttp", "sqlite3"):
        assert f"'{module}'" not in loaded, module
