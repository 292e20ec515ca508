"""The webhook that gets the summary of a run: its answers and its failures, each told in one sentence."""

import aiohttp
import pytest
from aioresponses import aioresponses

from crawler.run.notify import notify
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
