"""For any URL, the rules for traps answer quickly, in printable text."""

from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawler.frontier.traps import TrapSettings, refusal
from crawler.url import NotCrawlable, canonicalise
from tests.reasons import said

NOW = 1_795_000_000.0
LAX = TrapSettings(
    max_url_chars=8000,
    max_path_segments=8000,
    max_query_chars=8000,
    max_parameters=8000,
    max_same_name=8000,
    max_same_parameter=8000,
    max_repetitions=4000,
)
PARTS = ["/", "a", "b", "1", "2031-05", "19900101", "calendar", "event", "?", "&", ";", "=", "sid", "jsessionid", "(s("]
URLS = st.one_of(
    st.text(max_size=60), st.lists(st.sampled_from([*PARTS, "))/", "year", "ü", "\x00"]), max_size=40).map("".join)
)
SETTINGS = st.builds(
    TrapSettings,
    max_path_segments=st.integers(0, 9),
    max_repetitions=st.integers(1, 4),
    max_parameters=st.integers(0, 9),
    max_same_name=st.integers(0, 4),
    max_same_parameter=st.integers(0, 4),
)


@given(URLS, SETTINGS)
@example("?////////", TrapSettings())
def test_any_text_gets_an_answer_fit_to_print(text: str, settings: TrapSettings) -> None:
    reason = refusal(f"https://a.example/{text}", settings, NOW)
    refusal(text, settings, NOW)
    assert reason is None or (reason.sentence.isprintable() and len(reason.sentence) < 120)


@given(st.lists(st.sampled_from(["a", "b", "c1"]), min_size=1, max_size=4), st.integers(3, 4))
def test_a_run_three_times_in_a_row_is_always_found(run: list[str], times: int) -> None:
    url = canonicalise(f"https://a.example/x/{'/'.join(run * times)}/y.html")
    assert "path-repetition" in (said(refusal(url, TrapSettings(), NOW)) or "")


@given(URLS)
def test_stricter_settings_refuse_no_less(text: str) -> None:
    try:
        url = canonicalise(f"https://a.example/{text}")
    except NotCrawlable:
        return
    if refusal(url, LAX, NOW):
        assert refusal(url, TrapSettings(), NOW)


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
def test_the_longest_urls_take_a_moment(head: str, unit: str) -> None:
    url = ("https://a.example" + head + unit * 8000)[:8000]
    started = process_time()
    refusal(url, LAX, NOW)
    assert process_time() - started < 0.1
