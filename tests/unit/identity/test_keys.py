"""The key file: who may read it, and which key signs when."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crawler.errors import UsageError
from crawler.identity.keys import DIRECTORY_MAX_AGE_S, create, published, read, rotated, signing, write

NOW = 1_800_000_000
DAY = 86400


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "identity.jwks"


def test_only_the_owner_can_read_a_new_file_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        keys = create(path, NOW)
        assert path.stat().st_mode & 0o777 == 0o600
        write(path, rotated(keys, NOW))
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_others_can_read_is_refused(path: Path) -> None:
    create(path, NOW)
    path.chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        read(path)


def test_a_second_new_keeps_the_first_key(path: Path) -> None:
    first = create(path, NOW)
    with pytest.raises(UsageError, match="rotate"):
        create(path, NOW)
    assert [key.keyid for key in read(path)] == [first[0].keyid]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"keys": []}', '{"keys": [{"d": "c2VjcmV0"}]}', '{"keys": "secret"}']
)
def test_an_error_about_a_file_shows_nothing_of_it(path: Path, text: str) -> None:
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        read(path)
    assert str(error.value) == f"{path}: no key file of `crawler identity new`"


def test_a_file_whose_halves_do_not_fit_is_refused(path: Path, tmp_path: Path) -> None:
    create(path, NOW)
    create(tmp_path / "other", NOW)
    other = read(tmp_path / "other")[0]
    path.write_text(path.read_text().replace(read(path)[0].x, other.x))
    with pytest.raises(UsageError, match="no key file"):
        read(path)


def test_no_text_of_a_key_shows_its_private_half(path: Path) -> None:
    key = create(path, NOW)[0]
    assert key.private.private_bytes_raw().hex() not in repr(key)
    assert "private" not in repr(key)
    assert "d" not in key.public_jwk()


def test_draft_key_rotation_publishes_the_old_and_the_new_key_together(path: Path) -> None:
    """The section "Key Rotation": the new key is published before it signs, the old one after it signed last."""
    old = create(path, NOW)
    write(path, rotated(old, NOW))
    keys = read(path)
    assert [key.keyid for key in published(keys, NOW)] == [old[0].keyid, keys[1].keyid]
    assert signing(keys, NOW + DIRECTORY_MAX_AGE_S - 1).keyid == old[0].keyid
    assert signing(keys, NOW + DIRECTORY_MAX_AGE_S).keyid == keys[1].keyid
    assert [key.keyid for key in published(keys, NOW + 2 * DAY - 1)] == [old[0].keyid, keys[1].keyid]
    assert [key.keyid for key in published(keys, NOW + 2 * DAY)] == [keys[1].keyid]
    later = rotated(keys, NOW + 3 * DAY)
    assert [key.keyid for key in later][:-1] == [keys[1].keyid]  # the old one is dropped


def test_draft_key_compromise_response_leaves_the_new_key_alone(path: Path) -> None:
    old = create(path, NOW)
    keys = rotated(old, NOW, compromised=True)
    assert len(keys) == 1
    assert keys[0].keyid != old[0].keyid
    assert signing(keys, NOW) is keys[0]


def test_a_clock_that_went_back_finds_a_key(path: Path) -> None:
    keys = create(path, NOW)
    assert signing(keys, NOW - DAY) is keys[0]
