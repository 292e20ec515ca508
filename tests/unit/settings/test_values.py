"""Each kind of value is read from TOML, and written back as TOML has it."""

from __future__ import annotations

import re
import tomllib

import pytest

from crawler.fields.kinds import SECONDS
from crawler.frontier.request_values import address_override
from crawler.settings.keys import KEYS


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("*.test=127.0.0.1", ("*.test", "127.0.0.1")),
        (" A.Example. = [::1] ", ("a.example", "::1")),
        ("*=10.0.0.1", ("*", "10.0.0.1")),
        ("under_score.test=2001:db8::1", ("under_score.test", "2001:db8::1")),
    ],
)
def test_an_override_is_a_pattern_and_an_address(text: str, pair: tuple[str, str]) -> None:
    assert address_override(text) == pair


@pytest.mark.parametrize(
    "text",
    ["", "a.test", "=127.0.0.1", "a.test=", "a.test=b.test", "a*.test=127.0.0.1", "a.test:80=127.0.0.1", "a b=::1"],
)
def test_an_override_that_cannot_be_used_is_quoted(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        address_override(text)


@pytest.mark.parametrize("path", ["crawl.search", "~/crawl.search", "/srv/"])
def test_the_file_of_the_index_is_the_same_from_any_folder(path: str) -> None:
    with pytest.raises(ValueError, match="begin with /"):
        KEYS["search.file"].kind.read(path)


def test_the_default_of_each_setting_is_read_back_from_its_toml() -> None:
    for name, key in KEYS.items():
        written = tomllib.loads(f"value = {key.kind.toml(key.default)}")["value"]
        assert key.kind.read(written) == key.default, name


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0.0, 0),
        (None, 0),
        (2.0, 2),
        (0.5, 0.5),
        (60.0, "1 minute"),
        (90.0, 90),
        (3600.0, "1 hour"),
        (604800.0, "7 days"),
    ],
)
def test_a_duration_is_written_in_its_largest_unit(seconds: float | None, written: float | str) -> None:
    assert SECONDS.written(seconds) == written
