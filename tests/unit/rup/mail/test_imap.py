"""The mailbox's URL and the source of its password."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.errors import UsageError
from crawler.rup.mail.imap import ImapFolder, read_folder, read_password


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("imaps://me@mail.example.org", ImapFolder("mail.example.org", 993, True, "me", "INBOX")),
        ("imaps://me%40b.org@h:1993/Lists/rup", ImapFolder("h", 1993, True, "me@b.org", "Lists/rup")),
        ("imap://me@127.0.0.1/a%20b", ImapFolder("127.0.0.1", 143, False, "me", "a b")),
        ("imap://me@mail.localhost", ImapFolder("mail.localhost", 143, False, "me", "INBOX")),
        ("imap://me@[::1]:1143", ImapFolder("::1", 1143, False, "me", "INBOX")),
    ],
)
def test_a_place_is_read_from_its_url(url: str, folder: ImapFolder) -> None:
    assert read_folder(url) == folder


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("imap://me@mail.example.org", "unencrypted"),
        ("imap://me@127.0.0.1.evil.test", "unencrypted"),
        ("imaps://me:pw@h", "must not contain a password"),
        ("imaps://h/INBOX", "imaps://user@host/folder"),
        ("https://me@h", "imaps://user@host/folder"),
        ("imaps://me@h:port", "not a URL"),
        ("imaps://a%0d%0ab@h", "without blanks"),
        ("imaps://me@h/x%0d%0aDELETE", "ASCII"),
    ],
)
def test_a_place_that_is_none_or_not_safe_is_refused(url: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_folder(url)


def test_the_password_comes_from_the_environment_or_from_a_file(tmp_path: Path) -> None:
    assert read_password({"CRAWLER_IMAP_PASSWORD": "s e"}) == "s e"
    (tmp_path / "secret").write_text("from file\n")
    assert read_password({"CRAWLER_IMAP_PASSWORD_FILE": str(tmp_path / "secret")}) == "from file"
    missing = {"CRAWLER_IMAP_PASSWORD_FILE": str(tmp_path / "none")}
    for environment in ({}, {"CRAWLER_IMAP_PASSWORD": "a\r\nb"}, missing):
        with pytest.raises(UsageError, match="PASSWORD"):
            read_password(environment)
