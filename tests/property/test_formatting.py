"""What is written as a duration or a size is read back, in settings and options."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.fields.kinds import SECONDS, SIZE_OR_AUTO
from crawler.formatting import duration, read_duration, read_size, seconds, size, written_duration, written_size

CENTURY_S = 100 * 365 * 86_400


@given(st.floats(0, CENTURY_S))
def test_a_shown_duration_is_read_as_shown(span_s: float) -> None:
    """To the precision that is shown; what was read once is shown and read without loss."""
    read = read_duration(duration(span_s))
    assert read is not None
    assert read == pytest.approx(span_s, rel=0.05, abs=0.0006)
    assert read_duration(duration(read)) == read
    assert read_duration(seconds(span_s)) == pytest.approx(span_s, abs=0.0006)


@given(st.integers(0, 10**15))
def test_a_shown_size_is_read_as_shown(octets: int) -> None:
    read = read_size(size(octets))
    assert read is not None
    assert read == pytest.approx(octets, rel=0.051)
    assert read_size(size(read)) == read


@given(st.integers(0, CENTURY_S) | st.floats(0, CENTURY_S), st.integers(0, 10**15))
def test_what_a_file_has_is_read_without_loss(span_s: float, octets: int) -> None:
    assert SECONDS.read(SECONDS.written(span_s)) == span_s
    assert SECONDS.read(str(written_duration(int(span_s)))) == int(span_s)
    assert SIZE_OR_AUTO.read(SIZE_OR_AUTO.written(octets)) == octets
    assert SIZE_OR_AUTO.read(str(written_size(octets))) == octets
