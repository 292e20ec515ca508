"""For any URL, the rules for traps answer quickly, in printable text."""

from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawler.frontier import traps
from crawler.frontier.traps import refusal
from crawler.url import canonicalise
from tests.reasons import said

LENGTH = 30_000
NOW = 1_795_000_000.0
PARTS = ["/", "a", "b", "1", "2031-05", "19900101", "calendar", "event", "?", "&", ";", "=", "sid", "jsessionid", "(s("]
URLS = st.one_of(
    st.text(max_size=60), st.lists(st.sampled_from([*PARTS, "))/", "year", "ü", "\x00"]), max_size=40).map("".join)
)


@given(URLS)
@example("?////////")
def test_any_text_gets_an_answer_fit_to_print(text: str) -> None:
    reason = refusal(f"https://a.example/{text}", NOW)
    refusal(text, NOW)
    assert reason is None or (reason.sentence.isprintable() and len(reason.sentence) < 120)


@given(st.lists(st.sampled_from(["a", "b", "c1"]), min_size=1, max_size=4), st.integers(3, 4))
def test_a_run_three_times_in_a_row_is_always_found(run: list[str], times: int) -> None:
    url = canonicalise(f"https://a.example/x/{'/'.join(run * times)}/y.html")
    assert "path-repetition" in (said(refusal(url, NOW)) or "")


@pytest.mark.parametrize(
    "unit",
    [
        "/",
        "/a",
        "/a/b",
        "/1",
        "a",
        "?",
        "&",
        "&a",
        "&s=",
        "?sid=0a",
        ";jsessionid=",
        "/(",
        "/(s(",
        "(",
        "=",
        "-",
        "_",
        "/2031-",
        "/calendar",
        "event/2031-0",
        "year=",
        "&month",
        "&y-year=",
        "%3d",
        "0a",
        "/(a(0123456789abcdef)",
    ],
)
@pytest.mark.parametrize("head", ["/calendar/", "/?year=", "/?sid=", "/x;s=1", "/(s("])
def test_long_urls_take_time_in_proportion(head: str, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linear work takes some milliseconds here; quadratic work would take some seconds."""
    monkeypatch.setattr(traps, "_MAX_URL_CHARS", LENGTH)
    url = ("https://a.example" + head + unit * LENGTH)[:LENGTH]
    started = process_time()
    refusal(url, NOW)
    assert process_time() - started < 1
