"""Random bytes, dates, answers and cases: no exception, bounded time, consistent results.

``python -m tests.fuzz`` runs each for long.
"""

from typing import Any

import pytest
from hypothesis import given

from crawler.model import Headers, Reading
from tests.fuzz import TARGETS, Came, check_any_bytes, check_dates, check_jsonl, check_response, corpus, examples


@examples(200)
@given(TARGETS["bytes"][0])
def test_any_robots_txt_can_be_read_and_asked(case: tuple[bytes, str, Reading]) -> None:
    check_any_bytes(case)


@pytest.mark.parametrize("reading", list(Reading))
def test_files_written_by_people_can_be_read_and_asked(reading: Reading) -> None:
    assert len(corpus()) > 60
    for body in corpus():
        check_any_bytes((body, "/foo/bar?qux=taz", reading))


@examples(200)
@given(TARGETS["dates"][0])
def test_any_header_gives_a_bounded_time(case: tuple[str, Headers, Reading]) -> None:
    check_dates(case)


@examples(100)
@given(TARGETS["response"][0])
def test_any_sequence_of_answers_leaves_a_consistent_copy(case: tuple[Reading, bool, list[Came]]) -> None:
    check_response(case)


@examples(100)
@given(TARGETS["jsonl"][0])
def test_any_case_is_answered_or_refused_by_the_name_of_its_key(case: dict[str, Any]) -> None:
    check_jsonl(case)
