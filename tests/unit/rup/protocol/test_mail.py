"""The header of a mail with a report."""

from __future__ import annotations

from email import message_from_bytes
from email.message import Message

from crawler.rup.protocol.mail import Mail, write_mail
from crawler.rup.protocol.report import Report


def head_of(unsubscribe_url: str) -> Message:
    report = Report(1, "https://a.example/")
    mail = Mail("rup@a.example", "r@b.example", "<1@a.example>", 884_000_000.0, "Changes", report, unsubscribe_url)
    return message_from_bytes(write_mail(mail))


def test_one_click_unsubscribe_needs_an_https_link() -> None:
    head = head_of("https://a.example/rup?Action=Leave&Token=x")
    assert head["List-Unsubscribe"] == "<https://a.example/rup?Action=Leave&Token=x>"
    assert head["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert head_of("http://a.example/rup?Action=Leave&Token=x")["List-Unsubscribe-Post"] is None
