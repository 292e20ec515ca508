"""An index of many patterns, with bounded work: 1996 draft, section 5; docs/protocols.md, section 1, "The file"."""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from unittest import mock

import pytest

from crawler.model import Reading
from crawler.robots.matching import MAX_WORK, TooCostly, index_of
from crawler.robots.paths import Tail, rfc_pattern
from crawler.robots.readings import SiteRules, read
from crawler.robots.text import MAX_BYTES, parse

LONG = "/" + "a" * 10_000
LIMIT_S = 0.15  # of processor time; measured are 0.01 to 0.04 s, and 0.6 s before there was an index


def cpu_s(work: Callable[[], object]) -> float:
    """The processor time of ``work``: the least of three, because a busy machine only adds to it."""
    times = []
    for _ in range(3):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def first(patterns: list[str], path: str) -> int:
    return index_of(map(rfc_pattern, patterns)).first(path, len(patterns))


def rules(lines: Iterable[str], reading: Reading = Reading.STRICT) -> SiteRules:
    """Rules of a file as long as may be."""
    kept, size = ["User-agent: *"], 13
    for line in lines:
        size += len(line) + 1
        if size > MAX_BYTES:
            break
        kept.append(line)
    return read(parse("\n".join(kept).encode() + b"\n"), token="figtree", reading=reading, site="http://a.ru")


def test_the_first_match_in_order_is_found_whatever_its_start() -> None:
    patterns = ["/a/b", "/*c", "/a", "/", "/a/*d", "*e"]
    paths = ("/a/b", "/ac", "/a", "/x", "/a/d", "x", "xe", "")
    assert [first(patterns, path) for path in paths] == [0, 1, 2, 3, 2, 6, 5, 6]


def test_patterns_found_before_are_not_compared_again() -> None:
    assert index_of(map(rfc_pattern, ["/a", "/ab"])).first("/ab", 0) == 0
    assert index_of(map(rfc_pattern, ["/b", "/ab"])).first("/ab", 1) == 1


def test_the_index_finds_what_a_linear_search_finds() -> None:
    """Enough patterns on a path long enough that their pieces are looked up in it first."""
    chance = random.Random(1)
    path = "/" + "".join(chance.choice("abc") for _ in range(2400))
    written = ["".join(chance.choice("abc*") for _ in range(chance.randint(12, 70))) for _ in range(600)]
    patterns = [rfc_pattern(f"/*{pattern}{chance.choice(('', '$'))}") for pattern in written]
    one_by_one = [number for number, pattern in enumerate(patterns) if pattern.matches(path)]
    found = []
    while (number := index_of(patterns).first(path, len(patterns))) < len(patterns):
        found.append(number)
        patterns[number] = rfc_pattern("/*d")
    assert found == one_by_one
    assert len(found) > 10


def absent() -> Iterator[str]:
    return (f"Disallow: /*aaa{n:06}x" for n in range(30_000))


def out_of_order() -> Iterator[str]:
    return (f"Disallow: /*{'b' * (n % 7 + 1)}c*{'a' * (n // 7 % 9 + 1)}" for n in range(50_000))


def with_both_ends(octets: int) -> Callable[[], Iterator[str]]:
    """Pieces whose ends are in the path, but not they: nothing short of looking shows it."""
    return lambda: ("Disallow: /*" + "a" * (octets - 3) + "baa" + "*c" * (n % 2) for n in range(60_000))


def many_pieces() -> Iterator[str]:
    yield "Disallow: /" + "*a" * 262_000


def prefixes() -> Iterator[str]:
    return (f"Disallow: /{n:07}" for n in range(30_000))


@pytest.mark.parametrize("lines", [absent, out_of_order, *map(with_both_ends, (9, 99, 1000)), many_pieces, prefixes])
def test_no_file_makes_a_verdict_expensive(lines: Callable[[], Iterator[str]]) -> None:
    found = rules(lines())
    for octets in (500, 2400, 10_000):
        path = ("/" + "a" * (octets - 100) + "bca" + "a" * 50 + "baa?%2faa")[:octets]
        assert cpu_s(partial(found.verdict, path)) < LIMIT_S


def test_no_file_makes_the_server_for_mobile_agents_expensive() -> None:
    found = rules((f"Mobile-agent-server: /*{'a' * (n % 9)}ba{n % 9} atp://h" for n in range(20_000)), Reading.RFC9309)
    assert found.agent_server(LONG).url is None
    assert cpu_s(partial(found.agent_server, LONG)) < LIMIT_S


def test_pieces_that_a_path_lacks_do_not_count_towards_the_bound() -> None:
    assert rules(absent()).verdict(LONG).allowed
    assert not rules([*islice(absent(), 20_000), "Disallow: /*aa$"]).verdict(LONG).allowed


def test_wildcards_in_the_draft_reading_cost_nothing() -> None:
    found = rules(["Disallow: /*a*a*a*a*a*a*b"], Reading.DRAFT1996)
    with mock.patch.object(Tail, "matches") as matches:
        assert found.verdict(LONG).allowed
    matches.assert_not_called()


def test_beyond_the_bound_the_url_is_closed_with_the_line_reached() -> None:
    path = "/" + "a" * 5000 + "c" + "b" * 5000
    found = rules(["Allow: /*b*a", *["Disallow: /*b*c"] * 2000])
    verdict = found.verdict(path)
    reached = 1 + MAX_WORK // len(path) + 1
    assert (verdict.allowed, verdict.line, verdict.reading) == (False, reached, Reading.RFC9309)
    assert verdict.text == "Disallow: /*b*c (too many rules from here on for a URL of this length: closed)"
    assert found.verdict(path[:2000]).allowed


def test_beyond_the_bound_no_server_for_mobile_agents_is_named() -> None:
    found = rules(["Mobile-agent-server: / atp://h", *["Mobile-agent-server: /*b*a atp://g"] * 2000], Reading.RFC9309)
    path = "/" + "a" * 5000 + "b" * 5000
    assert found.agent_server(path).url is None
    assert found.agent_server("/a").url == "atp://h"


def test_too_costly_names_the_pattern_reached() -> None:
    index = index_of([rfc_pattern("/*b*a")] * 2000)
    with pytest.raises(TooCostly) as stopped:
        index.first("/" + "a" * 8191 + "b" * 8192, 2000)
    assert stopped.value.index == MAX_WORK // 16_384
