"""W3C NOTE-datetime in all its precisions, and RFC 822 in the forms of feeds."""

import pytest

from crawler.clock import exact_time
from crawler.dates import any_date, http_date

MIDNIGHT = 1031356800.0  # 2002-09-07T00:00:00Z


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2002", 1009843200.0),
        ("2002-09", 1030838400.0),
        ("2002-09-07", MIDNIGHT),
        ("2002-09-07T01:30Z", MIDNIGHT + 5400),
        ("2002-09-07T01:30:05+01:30", MIDNIGHT + 5),
        ("2002-09-06T19:00:05.25-05:00", MIDNIGHT + 5),
        ("2002-09-07 00:00:05", MIDNIGHT + 5),
        (" 2002-09-07t00:00:60z ", MIDNIGHT + 59),
        ("Sat, 07 Sep 2002 00:00:01 GMT", MIDNIGHT + 1),
        ("Sat, 7 September 2002 00:00:01 Z", MIDNIGHT + 1),
        ("07 Sep 02 00:00 +0100", MIDNIGHT - 3600),
        ("Fri, 06 Sep 2002 20:00:00 EDT", MIDNIGHT),
        ("Sat, 07 Sep 2002", MIDNIGHT),
        ("07 Sep 99", 936662400.0),
        ("0001-01-01T00:00:00+14:00", -62135596800.0),
        ("9999-12-31T23:59:59-01:00", 253402300799.0),
    ],
)
def test_dates(text: str, expected: float) -> None:
    assert any_date(text) == expected
    assert exact_time(expected)


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "20020907", "2002-13", "2002-02-30", "0000", "2002-09-07T25:00Z", "07 Foo 2002", "٢٠٠٢", "2002x"],
)
def test_no_dates(text: str) -> None:
    assert any_date(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Sat, 07 Sep 2002 00:00:00 GMT",
        "Saturday, 07-Sep-02 00:00:00 GMT",
        "Sat Sep  7 00:00:00 2002",
        "07-Sep-2002 00:00:00",
        "Sat, 07 Sep 2002 00:00:00.000 GMT",
        "Sö, 07 Sep 2002 00:00:00 GMT",
        "Sat, 07 Sep 2002 00:00:00 +99999999",
        "Sat, 07 Sep 2002 00:00:00 -9999999999",
        '"Sat, 07 Sep 2002 00:00:00 GMT"',
    ],
)
def test_a_time_to_wait_for_is_read_in_every_form_that_servers_write(text: str) -> None:
    assert http_date(text) == MIDNIGHT
