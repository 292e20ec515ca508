"""The help of ``crawler run`` is short: the common options first, on two screens; the rare ones work and are hidden."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from crawler.cli.options import configured, given_settings
from crawler.errors import UsageError
from crawler.run.commands import run
from crawler.settings.loading import settings_from
from crawler.settings.settings import Settings

#: The options that users and scripts rely on, the folder of WARC files, and the size of a sample.
COMMON = {
    "--db", "--seeds", "--config", "--contact", "--agent", "--delay", "--max-pages", "--max-pages-per-site",
    "--max-depth", "--max-time", "--scope", "--include", "--exclude", "--concurrency", "--workers", "--reading",
    "--resolve", "--allow-private", "--no-progress", "--json", "--skip-bad-seeds", "--warc", "--sample",
    "--refresh", "--help",
}  # fmt: skip
RARE = {
    "--bodies", "--follow", "--keep", "--log-format", "--log-level", "--max-disk", "--method", "--min-free", "--notify",
    "--per", "--proxy", "--purpose", "--quiet", "--revisit", "--sample-share", "--sample-sites",
    "--sample-sites-by", "--seed", "--types",
}  # fmt: skip


def options(*, hidden: bool) -> set[str]:
    context = click.Context(run, info_name="run", help_option_names=["-h", "--help"])
    parameters = [each for each in run.get_params(context) if isinstance(each, click.Option)]
    return {each.opts[-1] for each in parameters if each.hidden is hidden}


def test_the_help_lists_25_options_on_two_screens() -> None:
    assert options(hidden=False) == COMMON
    assert len(COMMON) == 25
    text = run.get_help(click.Context(run, info_name="crawler run", terminal_width=80))
    assert len(text.splitlines()) <= 2 * 24 - 2


def test_rare_options_work() -> None:
    assert options(hidden=True) == RARE


@pytest.mark.parametrize(
    ("arguments", "seconds"), [(["--max-time", "1h"], 3600), (["--delay", "5 min"], 300), (["--delay", "0.5"], 0.5)]
)
def test_an_option_takes_what_the_program_prints(arguments: list[str], seconds: float) -> None:
    given = given_settings(run.make_context("run", arguments).params)
    settings = settings_from(given, source="command line")
    assert seconds in (settings.limits.max_time_s, settings.politeness.delay_s)


def test_an_option_takes_sizes_in_powers_of_1024() -> None:
    given = given_settings(run.make_context("run", ["--max-disk", "2 GiB"]).params)
    assert settings_from(given, source="command line").limits.max_disk_bytes == 2**31


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[politeness]\ndely = 3\n")
    with pytest.raises(UsageError) as caught:
        configured(Settings(), tmp_path / "c.toml", {"limits_max_time": "soon"})
    assert "line 2: unknown key 'politeness.dely'" in str(caught.value)
    assert "limits.max_time = 'soon'" in str(caught.value)
