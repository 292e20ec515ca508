"""A store remembers the settings of its crawl: what the next run takes from it, and what it says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from crawler.demo.pages import Page
from crawler.engine.crawl_settings import LimitSettings
from crawler.run.execution import _setting_text
from crawler.settings.keys import KEYS
from crawler.settings.settings import Settings
from crawler.settings.stored import settings_stored_at, stored_settings
from crawler.store.sqlite.store import SqliteStore
from tests.command import HASTY, LOOPBACK, Ended, here
from tests.web import LoopbackWeb


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "c.toml").write_text(HASTY)
    return tmp_path / "c.toml"


@pytest.fixture
def begun(loopback: LoopbackWeb, config: Path, db_path: Path) -> LoopbackWeb:
    """A crawl of the seed alone, which was given all that it needs on the command line."""
    loopback.sites["a.test"] = {
        "/": Page("<a href=/1>1</a> <a href=/left-out>2</a>"),
        "/1": Page("<a href=/2>2</a>"),
        "/2": Page("x"),
    }
    options = ("--max-depth", "0", "--exclude", "left-out", "--max-time", "600")
    ended = here("run", loopback.url("a.test"), "--config", config, *LOOPBACK, *options, "--db", db_path)
    assert (ended.code, ended.err) == (0, "")
    return loopback


def paths(web: LoopbackWeb) -> set[str]:
    return {hit.path for hit in web.log} - {"/robots.txt"}


def value(ended: Ended, name: str) -> object:
    return json.loads(ended.out)[name]["value"]


def test_a_run_without_options_goes_on_as_the_crawl_was_begun(begun: LoopbackWeb, db_path: Path) -> None:
    sent = len(begun.log)
    ended = here("run", "--no-progress", "--db", db_path)
    assert (ended.code, len(begun.log)) == (0, sent)
    assert ended.err.startswith("crawler: goes on with ")
    assert all(part in ended.err for part in ("--exclude left-out", "--max-depth 0", "--allow-private", "--delay"))
    assert "--max-time" not in ended.err, "it is about one run"
    assert f"`crawler settings --db {db_path}` lists all settings" in ended.err


@pytest.mark.parametrize(("count", "said"), [(3, ""), (4, " … (4 in all)")])
def test_of_a_long_list_the_first_values_are_shown(count: int, said: str) -> None:
    assert _setting_text(KEYS["scope.exclude"], tuple(f"a*{n}" for n in range(count)), short=True) == (
        f"--exclude 'a*0' --exclude 'a*1' --exclude 'a*2'{said}"
    )


def test_an_option_changes_the_crawl_and_is_remembered_in_its_turn(begun: LoopbackWeb, db_path: Path) -> None:
    ended = here("run", "--max-depth", "1", "--no-progress", "--db", db_path)
    assert "crawler: changes the crawl: --max-depth 1 (was 0)\n" in ended.err
    assert "crawler: queued again under the new options or seeds: 1 URL\n" in ended.err
    assert paths(begun) == {"/", "/1"}, "--exclude still holds"
    show = here("settings", "--json", "--db", db_path)
    assert (value(show, "limits.max_depth"), value(show, "scope.exclude")) == (1, ["left-out"])


def test_a_run_that_is_refused_changes_nothing_and_says_so_of_nothing(begun: LoopbackWeb, db_path: Path) -> None:
    ended = here("run", "--max-depth", "1", "--sample", "5", "--max-pages", "9", "--no-progress", "--db", db_path)
    assert ended.code == 2
    assert "changes the crawl" not in ended.err
    assert value(here("settings", "--json", "--db", db_path), "limits.max_depth") == 0


def test_a_secret_is_not_kept(begun: LoopbackWeb, db_path: Path) -> None:
    hook = begun.url("a.test", "/hook-of-a-secret")
    ended = here("run", "--notify", hook, "--no-progress", "--log-level", "info", "--db", db_path)
    assert ended.code == 0
    assert "of-a-secret" not in ended.err
    assert b"of-a-secret" not in db_path.read_bytes()


def test_nothing_is_said_of_options_that_are_repeated(begun: LoopbackWeb, config: Path, db_path: Path) -> None:
    again = ("run", "--config", config, *LOOPBACK, "--max-depth", "0", "--exclude", "left-out", "--db", db_path)
    assert here(*again).err == ""


def test_a_run_with_seeds_adds_them_and_keeps_the_settings(begun: LoopbackWeb, db_path: Path) -> None:
    begun.sites["b.test"] = {"/": Page("<a href=/b1>1</a>"), "/b1": Page("x")}
    ended = here("run", begun.url("b.test"), "--no-progress", "--db", db_path)
    assert ended.code == 0
    assert "changes the crawl" not in ended.err
    assert "--max-depth 0" in ended.err
    assert [hit.path for hit in begun.hits("b.test")] == ["/robots.txt", "/"]
    ended = here("run", begun.url("b.test"), "--max-depth", "1", "--no-progress", "--db", db_path)
    assert "changes the crawl: --max-depth 1 (was 0)\n" in ended.err
    assert paths(begun) == {"/", "/1", "/b1"}


def test_a_hint_that_is_ignored_says_why(begun: LoopbackWeb, db_path: Path) -> None:
    new = begun.url("b.test", "/new")
    ended = here("hint", new, "--db", db_path)
    assert "0 URLs new, 1 ignored" in ended.out
    why = "scope: b.test is not the domain of a seed (--scope domain)"
    assert (
        ended.err == f"crawler: {new} is ignored: {why}; `crawler control queue {new} --db {db_path}` makes it a seed\n"
    )
    assert new in json.loads(here("hint", new, "--json", "--db", db_path).out)["refused"]


def test_a_flag_is_switched_off_by_its_opposite(begun: LoopbackWeb, db_path: Path) -> None:
    assert "--revisit (was off)" in here("run", "--revisit", "--no-progress", "--db", db_path).err
    assert "--revisit," in here("run", "--no-progress", "--db", db_path).err
    assert "--revisit off (was on)" in here("run", "--no-revisit", "--no-progress", "--db", db_path).err


def test_show_prints_a_file_that_changes_nothing(begun: LoopbackWeb, tmp_path: Path, db_path: Path) -> None:
    shown = here("settings", "--db", db_path).out
    (tmp_path / "shown.toml").write_text(shown)
    assert here("settings", tmp_path / "shown.toml", "--db", db_path).out == ""
    assert str(db_path) not in shown


def test_a_comment_has_what_differs(begun: LoopbackWeb, tmp_path: Path, db_path: Path) -> None:
    shown = here("settings", "--db", db_path).out
    assert "\nmax_depth = 0  # default: -1\n" in shown
    assert "\nconcurrency = 64\n" in shown
    (tmp_path / "new.toml").write_text("[limits]\nmax_depth = 3\n[fetch]\nallow_private = true\n")
    against = ("settings", tmp_path / "new.toml", "--db", db_path)
    assert here(*against).out == "[limits]\nmax_depth = 3  # now: 0\n"
    assert json.loads(here(*against, "--json").out) == {"limits.max_depth": {"value": 3, "now": 0}}


def test_a_store_without_a_crawl_remembers_nothing(tmp_path: Path) -> None:
    ended = here("settings", "--db", tmp_path / "none.db")
    assert ended.code == 2
    assert asyncio.run(settings_stored_at(Settings())) is None


def test_a_crash_while_options_change_forgets_no_settings(begun: LoopbackWeb, db_path: Path) -> None:
    """Until the next run has applied its options, the store conforms to none; it still remembers the last ones."""

    async def main() -> Settings | None:
        store = await SqliteStore.open(db_path)
        try:
            await store.begin_change(0.0)
            return await stored_settings(store)
        finally:
            await store.close()

    kept = asyncio.run(main())
    assert kept is not None
    assert (kept.limits.max_depth, kept.scope.exclude, kept.limits.max_time_s) == (0, ("left-out",), None)


def test_each_key_is_remembered_unless_it_is_about_one_run() -> None:
    assert {name for name, key in KEYS.items() if not key.is_remembered} == {
        *("store.db", "store.bodies", "seeds.file", "seeds.skip_bad", "limits.max_time", "workers.count"),
        *("workers.parsers", "output.progress", "output.quiet", "output.json", "output.log_level", "output.log_format"),
        *("output.notify", "hooks.follow", "hooks.keep"),
    }
    assert LimitSettings().max_time_s is None


def test_a_log_level_of_one_run_does_not_reach_other_commands(begun: LoopbackWeb, db_path: Path) -> None:
    assert here("run", "--log-level", "debug", "--no-progress", "--db", db_path).code == 0
    ended = here("rup", "info", begun.url("a.test"), "--db", db_path)
    assert (ended.code, ended.err.count("\n")) == (1, 1), ended.err
