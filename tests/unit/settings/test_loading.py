"""Settings are read from TOML, and each wrong key or value is named with its remedy."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from crawler.errors import ConfigError
from crawler.frontier.scope import ScopeMode
from crawler.preferences.purposes import UsePurpose
from crawler.settings.keys import KEYS, terminal_name
from crawler.settings.loading import apply, load_file, settings_from
from crawler.settings.settings import Settings
from crawler.settings.stored import recorded, to_record

CONFIG = Path(__file__).parents[3] / "config"


def from_toml(tmp_path: Path, text: str | bytes) -> Settings:
    path = tmp_path / "c.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_file(Settings(), path)


def refusal(tmp_path: Path, text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        from_toml(tmp_path, text)
    heading, *mistakes = str(caught.value).split("\n")
    assert len(mistakes) != 1  # a single mistake stands in the first line
    assert bool(mistakes) == heading.endswith(":")
    return str(caught.value)


@pytest.mark.parametrize("name", ["research-sample", "search-index"])
def test_the_profiles_load_and_change_only_what_they_name(name: str) -> None:
    path = CONFIG / f"{name}.toml"
    settings = load_file(Settings(), path)
    tables = tomllib.loads(path.read_text())
    for section, table in tables.items():
        for key in table:
            name = f"{section}.{key}"
            if name != "scope.mode":
                assert KEYS[name].value(settings) != KEYS[name].default, name
    assert settings.scope.mode in (ScopeMode.HOST, ScopeMode.DOMAIN)
    assert settings.identity.contact == "", "a profile must not crawl in somebody's name"


def test_all_wrong_keys_are_named_at_once_with_the_nearest_right_ones(tmp_path: Path) -> None:
    text = refusal(tmp_path, "[politeness]\ndealy = 3\ndelay = -1\n[limits]\nmax_page = 5\n[fetch]\ndelay = 2\n")
    assert "unknown key 'politeness.dealy', did you mean 'politeness.delay'?" in text
    assert "politeness.delay = -1: must be a number of seconds" in text
    assert "unknown key 'limits.max_page', did you mean 'limits.max_pages'?" in text
    assert "unknown key 'fetch.delay', did you mean 'politeness.delay'?" in text


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("politeness = 5", "politeness is a section: write [politeness] and below it its keys (delay, "),
        (
            "[politeness.delay]\nseconds = 5",
            "politeness.delay is a key, not a section: write delay = … in [politeness]",
        ),
        ("[politenes]\ndelay = 5", "unknown section [politenes], did you mean [politeness]?"),
        ("[politenes]", "unknown section [politenes], did you mean [politeness]?"),
        ("[zzz]\nx = 1", "unknown section [zzz], the sections are identity, store, "),
        ("zzz = 1", "unknown key 'zzz', the sections are identity, store, "),
        ("[identity]\nzzz = 1", "unknown key 'identity.zzz', the keys of [identity] are agent, contact, "),
        ("delay = 5", "unknown key 'delay', did you mean 'politeness.delay'?"),
        ("[[politeness]]\ndelay = 5", "politeness is a section"),
    ],
)
def test_a_key_in_the_wrong_place(tmp_path: Path, toml: str, message: str) -> None:
    assert message in refusal(tmp_path, toml)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("politeness.delay", '"fast"', 'a number of seconds, 0 or more, or a text such as "500 ms"'),
        ("politeness.delay", '"1.2.3 s"', "a number of seconds"),
        ("politeness.delay", '"5 ss"', "a number of seconds"),
        ("politeness.delay", "nan", "a number of seconds"),
        ("politeness.delay", "inf", "a number of seconds"),
        ("politeness.delay", "1e300", "a number of seconds"),
        ("politeness.delay", "9" * 400, "a number of seconds"),
        ("politeness.delay", "true", "a number of seconds"),
        ("politeness.delay", "[2]", "a number of seconds"),
        ("politeness.delay", "2026-11-21", "a number of seconds"),
        ("politeness.slow_factor", '"5 days"', "a number from 0 to 1000"),
        ("politeness.group", '"address"', "must be one of host, domain"),
        ("limits.max_pages", "-1", "a whole number, 0 or more"),
        ("limits.max_pages", "2.5", "a whole number, 0 or more"),
        ("limits.max_pages", "9" * 30, "a whole number, 0 or more"),
        ("limits.max_pages", "false", "a whole number, 0 or more"),
        ("limits.max_depth", "-2", "a whole number, 0 or more"),
        ("limits.concurrency", "0", "a whole number, 1 or more"),
        ("fetch.total_timeout", "0", "more than 0 seconds"),
        ("robots.retry_first", "0", "more than 0 seconds"),
        ("fetch.types", '"text/html"', "a list of content types"),
        ("fetch.types", "[]", "a list of content types"),
        ("fetch.types", '["html,doc"]', "'doc' is no content type; it must be a list of content types"),
        ("fetch.types", '["text/html\\nX: y"]', "a list of content types"),
        ("fetch.resolve", '["a.test"]', "'a.test': write PATTERN=ADDRESS"),
        ("fetch.resolve", '["a.test=b.test"]', "'b.test' is not an IP address"),
        ("fetch.proxy", '"proxy:3128"', "must be the URL of an HTTP proxy"),
        ("fetch.proxy", '"socks5://127.0.0.1:1080"', "must be the URL of an HTTP proxy: not an http or https URL"),
        ("fetch.proxy", '"https://proxy.test:3128"', "must be the URL of an HTTP proxy: http://HOST:PORT"),
        ("fetch.proxy", '"http://proxy.test:3128/x"', "must be the URL of an HTTP proxy: http://HOST:PORT"),
        ("fetch.proxy", '"http://me:secret@proxy.test/"', "carries a user name or password: http://***@proxy.test/"),
        ("fetch.allow_private", "1", "must be true or false"),
        ("scope.include", '"/a"', "must be a list of texts"),
        ("scope.include", '["("]', "'(' is no regular expression"),
        ("scope.mode", '"site"', "must be one of host, domain, prefix, any"),
        ("identity.agent", '"My Bot/1"', "a product token: letters"),
        ("identity.contact", '"me"', "an http(s) URL or an e-mail address"),
        ("identity.contact", '"https://x.example/\\u0000"', "a text on one line"),
        ("store.db", '""', "must not be empty"),
        ("store.db", '"a\\u0000b"', "a text on one line"),
        ("store.db", "5", "a text on one line, in quotes"),
    ],
)
def test_a_wrong_value_is_named_with_its_remedy(tmp_path: Path, key: str, value: str, message: str) -> None:
    section, _, name = key.partition(".")
    text = refusal(tmp_path, f"[{section}]\n{name} = {value}\n")
    assert key in text
    assert message in text
    assert len(text) < 400


def test_a_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    text = refusal(tmp_path, "# mine\n[politeness]\ndelay = 5\n\n  group = 'x'\n[zzz]\na = 1\n[limits]\nmax_page = 1\n")
    assert [line.strip().partition(": ")[0] for line in text.splitlines()[1:]] == ["line 5", "line 6", "line 9"]
    of_site = '[site."shop.example"]\ndelay = 3\n'
    assert "line 3: [site." in refusal(tmp_path, f"{of_site}dely = 3\n")
    assert "line 3: [site." in refusal(tmp_path, f"{of_site}depth = -3\n")
    assert "line 2: unknown key 'politeness.delays'" in refusal(tmp_path, "\npoliteness.delays = 5\n")


def test_each_duration_form(tmp_path: Path) -> None:
    forms = {
        '"90 s"': 90,
        '"2 hours"': 7200,
        '"1.5 minutes"': 90,
        '"7days"': 604800,
        "3": 3,
        "0.5": 0.5,
        '"1 week"': 604800,
    }
    for form, seconds in forms.items():
        assert from_toml(tmp_path, f"[politeness]\ndelay = {form}").politeness.delay_s == seconds


def test_0_is_no_limit_and_minus_1_is_no_limit_of_the_depth(tmp_path: Path) -> None:
    settings = from_toml(tmp_path, "[limits]\nmax_pages = 0\nmax_depth = -1\nmax_time = 0\nmax_pages_per_site = 0")
    assert settings == Settings()
    assert from_toml(tmp_path, "[limits]\nmax_depth = 0").limits.max_depth == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[politeness\n", "not TOML"),
        (b"[a]\nx = 1\nx = 2\n", "not TOML"),
        ("[politeness]\ndelay = 5\n".encode("utf-16"), "save it as UTF-8"),
        (b"x = " + b"[" * 100_000, "not TOML"),
    ],
)
def test_a_file_that_is_not_toml(tmp_path: Path, content: bytes, message: str) -> None:
    text = refusal(tmp_path, content)
    assert message in text
    assert "c.toml" in text


def test_a_byte_order_mark_and_crlf_are_accepted(tmp_path: Path) -> None:
    assert from_toml(tmp_path, b"\xef\xbb\xbf[politeness]\r\ndelay = 5\r\n").politeness.delay_s == 5


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: No such file"):
        load_file(Settings(), tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="Is a directory"):
        load_file(Settings(), tmp_path)


def test_later_values_replace_earlier_ones() -> None:
    file = settings_from({"politeness.delay": 5, "limits.max_pages": 7}, source="file")
    both = apply(file, {"politeness.delay": 1}, source="command line")
    assert (both.politeness.delay_s, both.limits.max_pages) == (1, 7)


def test_dotted_keys_and_tables_are_equivalent() -> None:
    dotted = settings_from({"politeness.delay": 5, "scope.mode": "host"}, source="config")
    assert dotted == settings_from({"politeness": {"delay": 5}, "scope": {"mode": "host"}}, source="config")


def test_each_front_end_prints_its_own_name_of_a_setting() -> None:
    with pytest.raises(ConfigError) as caught:
        apply(Settings(), {"politeness.delay": -1.0}, source="here")
    wanted = 'must be a number of seconds, 0 or more, or a text such as "500 ms", "3 min", "30 days"'
    assert str(caught.value) == f"here: politeness.delay = -1.0: {wanted}"
    assert caught.value.message(terminal_name) == f"here: --delay -1.0: {wanted}"
    assert caught.value.key == "politeness.delay"


def test_an_error_in_a_file_has_the_names_of_the_file_on_the_command_line_too(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[politeness]\ndelay = -1\n")
    with pytest.raises(ConfigError) as caught:
        load_file(Settings(), path)
    assert "c.toml: line 2: politeness.delay = -1: must be" in caught.value.message(terminal_name)


def test_the_settings_of_a_run_are_read_back_from_the_store() -> None:
    values = {
        "identity.contact": "me@example.org",
        "scope.mode": "any",
        "scope.include": ["a", "b"],
        "robots.reading": "rfc9309",
        "fetch.resolve": ["*.test=127.0.0.1"],
        "limits.max_depth": 3,
        "updates.rup": True,
    }
    settings = settings_from(values, source="here")
    assert recorded(json.loads(json.dumps(asdict(settings)))) == settings
    assert recorded({}) == Settings()


def test_a_list_is_read_back_with_the_type_of_its_items() -> None:
    settings = settings_from({"identity.purpose": ["search", "archive"]}, source="here")
    (first, second) = recorded(json.loads(json.dumps(to_record(settings)))).identity.purpose
    assert (type(first), first.name, second) == (UsePurpose, "SEARCH", UsePurpose.ARCHIVE)


def test_a_record_has_no_secrets() -> None:
    secrets = {"store.db": "postgresql://me:hidden@db.test/crawl", "output.notify": "https://hook.test/hidden"}
    record = to_record(settings_from(secrets, source="test"))
    assert "hidden" not in json.dumps(record)
    assert "db.test" in record["store"]["db"]
    assert to_record(Settings()) == asdict(Settings())
