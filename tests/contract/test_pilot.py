"""A pilot is read from both databases alike."""

from __future__ import annotations

from array import array

import pytest

from crawler.sampling.pilot import PilotSite, read_pilot
from crawler.sampling.variables import variable_of
from crawler.store.rows import SampleRow
from tests.contract.test_samples import DRAW, A, with_leaves
from tests.contract.visits import NOW, Harness, fetched, request


async def test_a_pilot_has_the_requests_and_the_frame_of_each_site(harness: Harness) -> None:
    await with_leaves(harness)
    numbers = [await harness.store.find(url) for url in (A, f"{A}x", f"{A}y", f"{A}z")]
    frame = array("q", [number for number in numbers if number is not None])
    await harness.store.samples.replace(DRAW, [SampleRow(frame[2], "", None, 1 / 4)], None, frame)
    (claim,) = await harness.claim()
    (queued,) = claim.urls
    asked = [request(queued.site_id, "/"), request(queued.site_id, "/y")]
    await harness.commit(fetched(queued, []), requests=asked, released=[claim.group_id])
    pilot = await read_pilot(harness.store, dict([variable_of("one=1")]), NOW)
    assert pilot.seeds == [A]
    assert pilot.sites == {A[:-1]: PilotSite(requests=1, frame=4, held=3)}
    assert (pilot.requests_per_drawn, pilot.requests, pilot.drawn.sites) == (1.0, 2, [A[:-1]])
    assert pilot.answer_s == pytest.approx(0.5)
    assert [measure.values for measure in pilot.drawn.measures if measure.what == "one"] == [[1.0]]
    assert pilot.drawn.sample.weight[0] == pytest.approx(4)
