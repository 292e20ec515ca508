"""Header fields for single hosts, whose values stand in the environment or in private files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawler.errors import UsageError
from crawler.session.crawl_session import fetch_settings
from crawler.settings.loading import settings_from
from crawler.settings.stored import to_record

SETTINGS = settings_from({"site": {"shop.example": {"headers": {"X-Key": "SHOP_KEY"}}}}, source="test")


def test_the_value_comes_from_the_environment_or_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHOP_KEY", "s3cret")
    made = fetch_settings(SETTINGS)
    assert made.site_headers == {"shop.example": {"X-Key": "s3cret"}}
    assert "s3cret" not in repr(made) + json.dumps(to_record(SETTINGS))
    monkeypatch.delenv("SHOP_KEY")
    (tmp_path / "key").write_text("from a file\n")
    monkeypatch.setenv("SHOP_KEY_FILE", str(tmp_path / "key"))
    assert fetch_settings(SETTINGS).site_headers == {"shop.example": {"X-Key": "from a file"}}


@pytest.mark.parametrize("value", ["", "two\nlines", "\u00fc"])
def test_without_a_value_for_the_header_the_run_does_not_start(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", value)
    with pytest.raises(UsageError, match="SHOP_KEY") as refused:
        fetch_settings(SETTINGS)
    assert value not in str(refused.value) or not value
