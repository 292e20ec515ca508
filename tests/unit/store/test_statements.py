"""Statements in the SQL files of packages."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from crawler.store.statements import read_sql


def test_a_package_whose_statements_are_read_is_loaded_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "outer_room" / "inner_room"
    folder.mkdir(parents=True)
    for package in (folder.parent, folder):
        (package / "__init__.py").touch()
    (folder / "queries.sql").write_text("SELECT 1;")
    monkeypatch.syspath_prepend(tmp_path)
    assert read_sql("outer_room.inner_room", "queries.sql") == "SELECT 1;"
    assert hasattr(importlib.import_module("outer_room"), "inner_room")
