"""A folder of bodies that cannot be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from crawler.errors import StoreError, SystemFull
from crawler.store import body_store
from crawler.store.body_store import open_body_store


@pytest.mark.parametrize(("breaks", "why"), [("open", errno.EMFILE), ("fsync", errno.ENOSPC)])
async def test_the_error_names_what_failed_first_and_nothing_is_left(
    breaks: str, why: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise OSError(why, os.strerror(why))

    place = tmp_path / "bodies"
    monkeypatch.setattr(*{"open": (body_store, "private"), "fsync": (os, "fsync")}[breaks], broken)
    with pytest.raises(StoreError, match=f"{place}: the folder of the bodies cannot be used: {os.strerror(why)}; "):
        await open_body_store(str(place)).put({"ab/cd": b"body"})
    assert [path for path in place.rglob("*") if path.is_file()] == []


async def test_a_system_without_files_may_have_some_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))

    store = open_body_store(str(tmp_path / "bodies"))
    with monkeypatch.context() as patch:
        patch.setattr(body_store, "private", refused)
        with pytest.raises(SystemFull):
            await store.put({"ab/cd": b"body"})
    await store.put({"ab/cd": b"body"})
    assert await store.get("ab/cd") == b"body"
