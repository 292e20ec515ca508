"""A run counts its troubles by HTTP status or by kind of error, never by host."""

from __future__ import annotations

import pytest

from crawler.engine.progress import Progress, trouble
from crawler.model import Purpose
from crawler.reasons import ErrorKind, RequestError
from crawler.store.rows import RequestRow


def sent(status: int | None, error: RequestError | None, purpose: Purpose = Purpose.PAGE) -> Progress:
    progress = Progress(0.0)
    progress.sent(RequestRow(1, "/", purpose, 0.0, 1.0, status, error, 0, None, None, None))
    return progress


@pytest.mark.parametrize("kind", [kind for kind in ErrorKind if kind not in (ErrorKind.FAULT, ErrorKind.UNWANTED_TYPE)])
def test_an_error_without_a_status_counts_by_its_kind(kind: ErrorKind) -> None:
    counted = {key for host in ("a.test", "b.test") for key in sent(None, RequestError(kind, host)).troubles}
    assert counted == {kind.value}
    assert [trouble(key) for key in counted] == [kind.meaning]


def test_an_error_with_a_status_counts_by_the_status() -> None:
    counted = sent(503, RequestError(ErrorKind.HTTP, "503 Service Unavailable")).troubles
    assert counted == {"503": 1}
    assert trouble("503") == "503"


def test_a_page_of_another_type_and_a_missing_robots_txt_are_no_trouble() -> None:
    assert not sent(200, RequestError(ErrorKind.UNWANTED_TYPE, "image/png")).troubles
    assert not sent(404, RequestError(ErrorKind.HTTP, "404 Not Found"), Purpose.ROBOTS).troubles


def test_a_fault_of_the_crawler_counts_once() -> None:
    progress = sent(None, RequestError(ErrorKind.FAULT, "ZeroDivisionError"))
    assert progress.count_fault(ZeroDivisionError("a bug")) == "ZeroDivisionError: a bug"
    assert progress.faults == 1


@pytest.mark.parametrize(
    ("kind", "requests"), [(ErrorKind.ADDRESS, 0), (ErrorKind.DNS_NO_NAME, 0), (ErrorKind.CONNECT, 1)]
)
def test_a_request_without_an_address_to_connect_to_is_not_sent(kind: ErrorKind, requests: int) -> None:
    assert sent(None, RequestError(kind, "x")).sent_requests == requests
