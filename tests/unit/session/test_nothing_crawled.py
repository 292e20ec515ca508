"""The sentence about a run that crawled nothing."""

from __future__ import annotations

from crawler.model import State
from crawler.reasons import ReasonCode
from crawler.session.nothing_crawled import causes_of

GIVEN_UP = [
    (State.FAILED, ReasonCode.ROBOTS_GIVEN_UP, ReasonCode.ROBOTS_GIVEN_UP.render(status), seeds)
    for status, seeds in (("503", 2), ("connect", 1))
]


def test_causes_are_counted_and_reasons_that_name_hosts_are_one() -> None:
    unknown = [(State.FAILED, ReasonCode.NO_NAME, ReasonCode.NO_NAME.render(f"h{n}.test"), 1) for n in range(9)]
    assert list(map(str, causes_of([*GIVEN_UP, *unknown], has_one_seed=False))) == [
        "9 seeds failed: a host name that does not exist",
        "2 seeds failed: robots: given up, no usable answer for /robots.txt (503)",
        "1 seed failed: robots: given up, no usable answer for /robots.txt (connect)",
    ]


def test_a_reason_names_settings_as_the_command_line_does() -> None:
    address = ReasonCode.ADDRESS
    reason = address.render("127.0.0.1 is a loopback address; fetch.allow_private permits it")
    (cause,) = causes_of([(State.EXCLUDED, address, reason, 1)], has_one_seed=True)
    assert str(cause) == "the seed was excluded: address: 127.0.0.1 is a loopback address; --allow-private permits it"
