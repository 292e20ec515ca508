"""The webhook or mail server that gets the summary of a run: its failures are each told in one sentence."""

from unittest.mock import AsyncMock, Mock

import aiohttp
import pytest
from aioresponses import aioresponses

from crawler.run.notify import notify
from crawler.rup.mail.smtp import Later, Sent
from tests.aioresponses_fix import mocked_web

__all__ = ["mocked_web"]
HOOK = "https://hooks.test/secret-path"
SUMMARY = {"db": "crawl.db", "ended_by": "nothing is left in the frontier", "run": {"pages": 1, "requests": 2}}


@pytest.mark.parametrize(("code", "shown"), [(0, ""), (5, "exit code 5: ")])
async def test_the_hook_gets_the_summary_with_one_line_about_it(
    code: int, shown: str, mocked_web: aioresponses
) -> None:
    mocked_web.post(HOOK, status=204)
    said: list[str] = []
    summary = {**SUMMARY, "exit_code": code}
    await notify(HOOK, summary, "", said.append)
    ((sent,),) = mocked_web.requests.values()
    line = f"crawl crawl.db: {shown}nothing is left in the frontier, 1 page in 2 requests"
    assert sent.kwargs["json"] == {"text": line, **summary}
    assert said == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"status": 500}, "it answered 500"),
        ({"status": 302, "headers": {"Location": "https://elsewhere.test/"}}, "it answered 302"),
        ({"exception": aiohttp.ServerDisconnectedError()}, "Server disconnected"),
        ({"exception": TimeoutError()}, "TimeoutError"),
        ({"exception": aiohttp.InvalidURL(HOOK)}, "InvalidURL"),
    ],
)
async def test_a_failure_is_told_without_the_secret(
    mocked_web: aioresponses, answer: dict[str, object], why: str
) -> None:
    mocked_web.post(HOOK, **answer)
    said: list[str] = []
    await notify(HOOK, SUMMARY, "", said.append)
    (sentence,) = said
    assert sentence.startswith("--notify: hooks.test did not accept the summary: ")
    assert "secret" not in sentence
    assert why in sentence


@pytest.mark.parametrize(("scheme", "begins_with_tls"), [("smtp", False), ("smtps", True)])
async def test_a_mail_server_gets_the_login_over_tls_alone(
    scheme: str, begins_with_tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAWLER_SMTP_USER", "me")
    monkeypatch.setenv("CRAWLER_SMTP_PASSWORD", "secret")
    send, said = AsyncMock(side_effect=[Sent(), Later("it offers no TLS", reached=False)]), list[str]()
    mailer = Mock(return_value=AsyncMock(send=send))
    monkeypatch.setattr("crawler.rup.mail.smtp.SmtpMailer", mailer)
    for _ in range(2):
        await notify(f"{scheme}://mail.test/me@a.example", SUMMARY, "", said.append)
        mailer.assert_called_with("mail.test", None, login=("me", "secret"), begins_with_tls=begins_with_tls)
    assert said == ["--notify: mail.test did not accept the summary: it offers no TLS"]
