"""The workbench: slots by registered domain, addresses, turns, bookings. Without an event loop: it takes ``now``."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest

from crawler.engine.workbench import (
    FREE_LOOP_S,
    Address,
    GiveBack,
    Go,
    Hold,
    LookUp,
    Reply,
    Shares,
    Ticket,
    Wait,
    Workbench,
    network_of,
)
from crawler.frontier.politeness import Pace, PauseFacts, PolitenessSettings
from crawler.reasons import ErrorKind, WaitCode, WaitReason

NOW = 1_000_000.0
SHARED, OTHER = "203.0.113.1", "203.0.113.2"


def ticket(domain: str, address: Address | None = None) -> Ticket:
    return Ticket(domain, domain, domain, address)


class Bench(Workbench):
    """A workbench whose groups are entered when a request of theirs is opened."""

    def asked(self, host: str, address: str | None = "", now: float = NOW) -> tuple[Ticket, Reply]:
        if host not in self._groups:
            self.enter(host, Pace())
        opened = self.open(host, host)
        return opened, self.ask(opened, now, address)


def answered(bench: Workbench, asked: Ticket, now: float) -> None:
    bench.done(asked, now, PauseFacts(now - 0.1, now, 200), None)
    bench.close(asked, now)


# --- slots by registered domain ---------------------------------------------------------------


@pytest.mark.parametrize(("slots", "each"), [(1, 1), (3, 1), (4, 1), (8, 2), (64, 16), (100, 25), (1000, 250)])
def test_a_domain_alone_holds_a_quarter_of_the_slots(slots: int, each: int) -> None:
    shared = Shares(slots)
    assert sum(shared.acquire(ticket("a.test"), NOW) for _ in range(slots)) == each


@pytest.mark.parametrize("domains", [2, 4, 20, 63])
def test_domains_that_take_all_they_can_leave_slots_free(domains: int) -> None:
    shared, held = Shares(64), Counter[str]()
    for name in (*(f"{n}.test" for n in range(domains)), "new.test"):
        for _ in range(4):
            shared.learn(name, 0.1, NOW)
    for _ in range(64):
        held.update(name for n in range(domains) if shared.acquire(ticket(name := f"{n}.test"), NOW))
    assert len(held) == domains
    assert max(held.values()) - min(held.values()) <= 1
    assert 64 - held.total() >= 64 * 3 // (domains + 3) - 1
    assert shared.acquire(ticket("new.test"), NOW)


def test_a_request_whose_body_waits_for_memory_leaves_its_slot_to_others() -> None:
    bench = Bench(PolitenessSettings(per_address=1), 1)
    first, reply = bench.asked("a.test", OTHER)
    assert reply == Go()
    second, reply = bench.asked("b.test")
    assert reply == Wait()
    third, _ = bench.asked("c.test", OTHER)
    bench.body_waits("a.test", NOW)
    assert bench.woken(NOW) == [second]
    assert bench.ask(second, NOW, "") == Go()
    answered(bench, first, NOW)
    assert bench.woken(NOW) == [], "its slot was given up already"
    answered(bench, second, NOW)
    assert bench.woken(NOW) == [third], "the place at its address was not"


def test_answers_that_are_being_read_count_as_slots() -> None:
    shared = Shares(8)
    for _ in range(2):
        shared.begin_reading("a.test", NOW)
    first = ticket("a.test")
    assert not shared.acquire(first, NOW), "it has its quarter in work"
    assert shared.acquire(ticket("b.test"), NOW)
    shared.join(first, NOW)
    assert shared.granted == []
    shared.end_reading("a.test", NOW)
    assert shared.granted == [first]


def test_domains_that_wait_take_turns_and_one_that_leaves_takes_nothing() -> None:
    shared, served = Shares(1), list[str]()
    busy = ticket("busy.test")
    assert shared.acquire(busy, NOW)
    many, one = [ticket("many.test") for _ in range(3)], ticket("one.test")
    for waiting in (*many, one):
        shared.join(waiting, NOW)
    shared.leave(many[1], NOW)
    holder: Ticket | None = busy
    while holder is not None:
        shared.release(holder, NOW)
        holder = shared.granted.pop() if shared.granted else None
        served += [] if holder is None else [holder.domain]
    assert served == ["many.test", "one.test", "many.test"]
    assert shared.acquire(ticket("busy.test"), NOW), "every slot was given back"


def test_a_domain_that_always_holds_its_share_leaves_nothing_behind() -> None:
    shared, flying = Shares(64), list[Ticket]()
    for _ in range(500):
        while shared._waiting < 4:
            if shared.acquire(late := ticket("big.test"), NOW):
                flying.append(late)
            else:
                shared.join(late, NOW)
        shared.release(flying.pop(0), NOW)
        flying += shared.granted
        shared.granted.clear()
    assert sum(map(len, shared._ready.values())) <= 100


def test_kinds_of_domains_share_the_slots() -> None:
    shared, held = Shares(8), dict[str, Ticket]()

    def takes(name: str, now: float = NOW) -> bool:
        held[name] = ticket(name)
        return shared.acquire(held[name], now)

    for _ in range(4):
        shared.learn("quick.test", 0.1, NOW)
    for name in "abcdefgh":
        shared.learn(f"{name}.test", 30.0, NOW)
    assert sum(takes(f"{name}.test") for name in "abcdefgh") == 4, "slow ones hold half of them"
    assert sum(takes(f"new{n}.test") for n in range(8)) == 2, "with new ones three quarters"
    shared.learn("h.test", 0.1, NOW)
    assert not takes("h.test"), "one answer in time makes no quick domain of a slow one"
    assert takes("quick.test")
    later = NOW + 20 * 30.0
    assert takes("h.test", later), "but some time does"
    assert not takes("quick2.test", later), "no slot is left"
    shared.learn("a.test", 0.1, later)
    shared.release(held["b.test"], later)
    assert takes("new7.test", later), "the slot of a domain counts as one of its kind"


def test_a_domain_that_is_quick_by_now_waits_no_longer_among_the_new_ones() -> None:
    shared = Shares(4)
    for name in "abc":
        shared.learn(f"{name}.test", 30.0, NOW)
    slow, new, other = (ticket(f"{name}.test") for name in ("a", "new", "other"))
    assert shared.acquire(slow, NOW)
    assert shared.acquire(ticket("b.test"), NOW)
    assert shared.acquire(new, NOW)
    shared.join(other, NOW)
    assert shared.granted == [], "the last slot is not for new ones"
    shared.learn("other.test", 0.1, NOW)
    assert shared.granted == [other]


def test_a_domain_goes_on_when_others_give_slots_back() -> None:
    """It holds slots itself, so it may take a further one only while enough are free."""
    shared = Shares(16)
    mine = [ticket("a.test") for _ in range(4)]
    others = [ticket(f"{n}.test") for n in range(8)]
    for _ in range(4):
        for name in ("a.test", *(f"{n}.test" for n in range(8))):
            shared.learn(name, 0.1, NOW)
    assert all(shared.acquire(each, NOW) for each in (*mine[:3], *others))
    shared.join(mine[3], NOW)
    released = 0
    while not shared.granted:
        shared.release(others[released], NOW)
        released += 1
    assert released == 7, "three are held: twelve must be free"


# --- addresses --------------------------------------------------------------------------------


def address_of(bench: Workbench, text: str, *groups: str) -> Address:
    found = [bench.address(text, group, NOW) for group in groups][-1]
    assert found is not None
    return found


def test_an_address_has_few_requests_in_flight_and_a_pause_if_many_groups_share_it() -> None:
    bench = Bench(PolitenessSettings(delay_s=1.0, per_address=2), 64)
    asked = [bench.asked(f"n{n}.d{n}.test", SHARED) for n in range(4)]
    assert [type(reply) for _, reply in asked] == [Go, Go, Wait, Wait], "four groups have no common pause"
    answered(bench, asked[0][0], NOW)
    assert bench.woken(NOW) == [asked[2][0]]
    fifth, reply = bench.asked("n4.d4.test", SHARED)
    assert isinstance(reply, GiveBack | Wait)
    answered(bench, asked[1][0], NOW)
    assert bench.woken(NOW) == [asked[3][0]], "the pause begins with the start that follows"
    answered(bench, asked[2][0], NOW)
    assert bench.woken(NOW) == []
    assert bench.next_at() == NOW + 1.0
    if isinstance(reply, Wait):
        assert bench.woken(NOW + 1.0) == [fifth]


def test_groups_behind_a_long_queue_are_given_back_a_pause_apart() -> None:
    """Each comes back when the address can serve it: none of them is held in memory meanwhile."""
    bench = Bench(PolitenessSettings(delay_s=1.0), 64)
    replies = [bench.asked(f"n{n}.d{n}.test", SHARED)[1] for n in range(80)]
    until = [reply.until - NOW for reply in replies if isinstance(reply, GiveBack)]
    assert len(until) >= 74
    assert {reply.why for reply in replies if isinstance(reply, GiveBack)} == {WaitReason(WaitCode.ADDRESS, SHARED)}
    apart = [after - before for before, after in pairwise(until)]
    assert min(apart) >= 0.99
    assert max(apart) <= 1.01


def test_while_no_slot_is_free_one_request_waits_for_each_address() -> None:
    """So names of many addresses wait, and not many names of the addresses that came first."""
    bench = Bench(PolitenessSettings(delay_s=1.0), 1)
    busy, reply = bench.asked("busy.test", "203.0.113.9")
    assert reply == Go()
    first, reply = bench.asked("a.test", SHARED)
    assert reply == Wait()
    assert bench.asked("b.test", SHARED)[1] == GiveBack(NOW + 2, WaitReason(WaitCode.ADDRESS, SHARED))
    other, reply = bench.asked("c.test", OTHER)
    assert reply == Wait()
    answered(bench, busy, NOW)
    assert bench.woken(NOW) == [first]
    bench.close(first, NOW)
    assert bench.woken(NOW) == [other]


def test_a_turn_at_an_address_holds_in_another_process() -> None:
    """Workers that share a store claim each other's groups: the reason for the wait says that a group had to wait."""
    one, other = (Bench(PolitenessSettings(delay_s=1.0), 64) for _ in range(2))
    for bench in (one, other):
        for n in range(20):
            bench.asked(f"n{n}.d{n}.test", SHARED)
    _, reply = one.asked("late.test", SHARED)
    assert isinstance(reply, GiveBack)
    pace = one.leave("late.test")
    assert isinstance(other.asked("new.test", SHARED, reply.until)[1], GiveBack), "others have booked before"
    other.enter("late.test", pace)
    asked = other.open("late.test", "late.test")
    assert other.ask(asked, reply.until, None) == LookUp()
    late = other.looked_up(asked, reply.until, in_time=False)
    assert late == GiveBack(reply.until + 2, WaitReason(WaitCode.LOOK_UP, "late.test"))
    assert other.pace("late.test").waits_for == WaitReason(WaitCode.ADDRESS, SHARED), "it keeps the turn"
    assert other.ask(asked, late.until, SHARED) in (Go(), Wait())


def test_bookings_of_one_domain_leave_every_second_turn_to_another() -> None:
    bench = Bench(PolitenessSettings(delay_s=1.0), 64)
    for name in ("x.test", "y.test"):
        assert bench.asked(name, SHARED)[1] == Go()
    for n in range(200):
        bench.asked(f"n{n}.wild.test", SHARED)
    _, reply = bench.asked("good.test", SHARED)
    assert isinstance(reply, GiveBack)
    assert reply.until - NOW < 6


def test_bookings_by_turns_that_were_measured_stay_within_a_minute() -> None:
    """They may get shorter: a domain whose silent hosts have been given up goes on soon."""
    shared = Shares(4)
    assert shared.acquire(ticket("a.test"), NOW)
    for _ in range(16):
        shared.join(ticket("a.test"), NOW)
    full = shared.full(ticket("a.test"), NOW + 30)
    assert full is not None
    far = [full.book("a.test", NOW + 30) for _ in range(1000)]
    assert all(NOW + 30 <= at <= NOW + 90 for at in far)
    assert len(set(far)) > 50, "but they do not come back together"
    assert shared.full(ticket("b.test"), NOW) is None


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
    ],
)
def test_of_ipv6_the_first_64_bits_are_one_server(text: str, network: str) -> None:
    assert network_of(text) == network


def test_addresses_that_have_no_limit() -> None:
    bench = Workbench(PolitenessSettings(large_hosts=("192.0.2.7", "2001:db8::/32", "2001:db9::1")), 64)
    exempt = ("", "127.0.0.1", "127.1.2.3", "::1", "192.0.2.7", "2001:db8:7::1", "2001:db9::1")
    assert [bench.address(text, "a.test", NOW) for text in exempt] == [None] * len(exempt)
    assert address_of(bench, "2001:dba::1", "a.test") is address_of(bench, "2001:dba::2", "a.test")


def test_a_pause_that_ends_while_a_request_joins_is_not_missed() -> None:
    shares, address = Shares(4, 1.0), Address(SHARED, 1.0, limit=2, groups={*"abcde"})
    first, second = ticket("a.test", address), ticket("b.test", address)
    assert shares.acquire(first, NOW)
    shares.release(first, NOW)
    assert not shares.acquire(second, NOW + 0.9999)
    shares.join(second, NOW + 1.0001)
    assert shares.granted == [second], "nothing is in flight, so nothing else would serve it"


def test_a_timer_that_comes_early_is_set_again() -> None:
    shares, address = Shares(4, 1.0), Address(SHARED, 1.0, limit=2, groups={*"abcde"})
    first, second = ticket("a.test", address), ticket("b.test", address)
    assert shares.acquire(first, NOW)
    shares.release(first, NOW)
    shares.join(second, NOW + 0.5)
    assert shares.next_at == NOW + 1.0
    shares.serve(NOW + 0.9999)
    assert (shares.granted, shares.next_at) == ([], NOW + 1.0)
    shares.serve(NOW + 1.0)
    assert (shares.granted, shares.next_at) == ([second], math.inf)


# --- what comes before a slot -----------------------------------------------------------------


def test_a_body_that_turns_out_broken_slows_its_site_as_a_failed_answer_does() -> None:
    settings = PolitenessSettings(delay_s=1.0)
    broken, failed = Bench(settings, 8), Bench(settings, 8)
    for bench, kind in ((broken, None), (failed, ErrorKind.TRUNCATED.value)):
        for now in (NOW, NOW + 1000, NOW + 2000):
            first, reply = bench.asked("a.test", now=now)
            assert reply == Go()
            bench.done(first, now, PauseFacts(now - 0.1, now, 200, kind), None)
            if kind is None:
                bench.unreadable("a.test", ErrorKind.TRUNCATED.value)
            bench.close(first, now)
    assert broken.pace("a.test") == failed.pace("a.test")
    assert broken.pace("a.test").backoff_s > 0


def test_a_slot_that_is_granted_during_a_hold_goes_to_nobody() -> None:
    bench = Bench(PolitenessSettings(), 1)
    first, _ = bench.asked("a.test")
    second, _ = bench.asked("b.test")
    bench.hold(True)
    answered(bench, first, NOW)
    assert bench.woken(NOW) == [second]
    assert bench.ask(second, NOW, "") == Wait()
    bench.hold(False, Hold.DISK)
    assert bench.woken(NOW) == [], "the operator still holds the crawl"
    bench.hold(False)
    assert bench.woken(NOW) == [second]
    assert bench.ask(second, NOW, "") == Go()


def test_a_request_without_room_for_its_answer_holds_no_slot_and_goes_when_there_is_room() -> None:
    room = {"b.test"}
    bench = Bench(PolitenessSettings(), 1, room.__contains__)
    asked, reply = bench.asked("a.test")
    other, replied = bench.asked("b.test")
    assert (reply, replied) == (Wait(), Go())
    room.add("a.test")
    answered(bench, other, NOW)
    assert bench.woken(NOW) == []
    assert bench.next_at() == NOW + 0.02
    assert bench.woken(NOW + 0.02) == [asked]
    assert bench.ask(asked, NOW + 0.02, "") == Go()
    assert bench.next_at() == math.inf


def test_a_request_does_not_overtake_those_of_its_domain_that_wait_for_room() -> None:
    room = set[str]()
    bench = Bench(PolitenessSettings(), 64, room.__contains__)
    first, _ = bench.asked("a.big.test")
    room.add("big.test")
    second, reply = bench.asked("b.big.test")
    assert reply == Wait()
    assert bench.woken(bench.next_at()) == [first, second]


def test_a_request_does_not_overtake_those_that_waited_while_its_domain_was_slow() -> None:
    bench = Bench(PolitenessSettings(), 4)
    asked = [bench.asked(f"{n}.test") for n in range(2)]
    for each, _ in asked:
        bench._slots.learn(each.domain, 10.0, NOW)
    bench._slots.learn("big.test", 6.0, NOW)
    first, reply = bench.asked("a.big.test")
    assert reply == Wait(), "slow domains hold half of the slots"
    _, reply = bench.asked("b.big.test", now=NOW + 130)
    assert reply == Wait()
    assert bench.woken(NOW + 130) == [first]


def test_an_answer_that_has_been_read_makes_room_for_few_domains_those_first_that_have_waited_longest() -> None:
    room = {"read.test"}
    bench = Bench(PolitenessSettings(), 64, room.__contains__)
    reading, _ = bench.asked("read.test")
    bench.begin_reading("read.test", NOW)
    answered(bench, reading, NOW)
    waiting = [bench.asked(f"waits{n}.test")[0] for n in range(20)]
    assert bench.woken(NOW) == []
    room |= {each.domain for each in waiting}
    bench.end_reading("read.test", NOW)
    assert bench.woken(NOW) == waiting[:4]
    assert bench.woken(NOW + 0.02) == waiting[4:8], "others are looked at without an answer"


def test_few_requests_of_a_domain_wait_for_room_and_the_other_groups_are_given_back() -> None:
    """Else a domain whose pages are read slowly would hold all claims."""
    bench = Bench(PolitenessSettings(), 64, "good.test".__eq__)
    asked = [bench.asked(f"n{n}.slow.test") for n in range(40)]
    assert [reply for _, reply in asked[:16]] == [Wait()] * 16
    assert all(isinstance(reply, GiveBack) and reply.until >= NOW + 2 for _, reply in asked[16:])
    assert bench.asked("good.test")[1] == Go()
    bench.close(asked[0][0], NOW)
    assert bench.asked("late.slow.test")[1] == Wait(), "one has gone"


def test_a_domain_waits_for_the_loop_time_that_its_answers_took() -> None:
    bench = Bench(PolitenessSettings(), 1)
    first, _ = bench.asked("a.d.test")
    queued, reply = bench.asked("b.d.test")
    assert reply == Wait()
    assert bench.charge("d.test", FREE_LOOP_S, NOW) == 0, "an ordinary page"
    assert bench.charge("d.test", FREE_LOOP_S + 0.05, NOW) == pytest.approx(1.0)
    _, short = bench.asked("c.d.test")
    assert short == Wait(NOW + 1), "soon enough to wait here"
    assert bench.charge("d.test", FREE_LOOP_S + 0.1, NOW) == pytest.approx(3.0), "beside the time before"
    given_back = GiveBack(NOW + 3, WaitReason(WaitCode.LOOP, "d.test"))
    _, long = bench.asked("d.d.test")
    assert long == given_back
    answered(bench, first, NOW)
    assert bench.woken(NOW) == [queued]
    assert bench.ask(queued, NOW, "") == given_back, "also if it was waiting for a slot"
    other, reply = bench.asked("a.other.test")
    assert reply == Go(), "the slot is free for others"
    answered(bench, other, NOW)
    assert bench.asked("e.d.test", now=NOW + 3)[1] == Go()


def test_look_ups_have_slots_of_their_own_and_a_slow_one_gives_the_group_back() -> None:
    bench = Bench(PolitenessSettings(), 1)
    first, reply = bench.asked("a.test", None)
    assert reply == LookUp()
    second, reply = bench.asked("b.test")
    assert reply == Go(), "a look-up takes no slot of requests"
    late = bench.looked_up(first, NOW + 2, in_time=False)
    assert late == GiveBack(NOW + 4, WaitReason(WaitCode.LOOK_UP, "a.test"))
    assert bench.pace("a.test").next_at == NOW + 4
    bench.close(first, NOW + 2)
    answered(bench, second, NOW)


def test_look_ups_of_one_domain_leave_some_to_others() -> None:
    bench = Bench(PolitenessSettings(), 64)
    replies = Counter(type(bench.asked(f"n{n}.slow.test", None)[1]) for n in range(300))
    assert replies == {LookUp: 64, Wait: 16, GiveBack: 220}
    assert bench.asked("good.test", None)[1] == LookUp()


def test_a_slot_for_a_look_up_goes_back_if_the_address_is_known_by_then() -> None:
    bench = Bench(PolitenessSettings(), 64)
    under_way = [bench.asked(f"n{n}.slow.test", None)[0] for n in range(64)]
    waiting, reply = bench.asked("late.slow.test", None)
    assert reply == Wait()
    bench.looked_up(under_way[0], NOW, in_time=True)
    assert bench.woken(NOW) == [waiting]
    assert bench.ask(waiting, NOW, "") == Go()
    assert bench.asked("next.slow.test", None)[1] == LookUp()


def test_a_cancelled_request_leaves_nothing_behind() -> None:
    bench = Bench(PolitenessSettings(), 1)
    holder, _ = bench.asked("a.test")
    waiting, _ = bench.asked("b.test")
    bench.close(waiting, NOW)
    answered(bench, holder, NOW)
    assert bench.woken(NOW) == []
    granted, _ = bench.asked("c.test")
    bench.close(granted, NOW)
    assert bench.asked("d.test")[1] == Go(), "the slot was given back"


def test_groups_that_are_given_back_are_forgotten() -> None:
    bench = Bench(PolitenessSettings(), 4)
    for n in range(40):
        asked, reply = bench.asked(f"h{n}.a.test")
        if isinstance(reply, GiveBack):
            bench.close(asked, NOW)
            bench.leave(f"h{n}.a.test")
    assert [f"h{n}.a.test" in bench._groups for n in (0, 16, 17, 39)] == [True, True, False, False]
    assert len(bench._groups) == 17


def test_a_request_goes_to_the_address_with_which_it_began_to_wait() -> None:
    bench = Bench(PolitenessSettings(), 1)
    first, _ = bench.asked("a.test", OTHER)
    second, reply = bench.asked("b.test", SHARED)
    assert reply == Wait()
    answered(bench, first, NOW)
    assert bench.ask(second, NOW, None) == Go(), "although its answer has expired meanwhile"
    assert second.target == SHARED


def test_a_look_up_waits_for_no_place_at_the_address_known_before() -> None:
    bench = Bench(PolitenessSettings(delay_s=0.0, per_address=1), slots=8)
    held, reply = bench.asked("a.test", SHARED)
    assert reply == Go()
    waiting, reply = bench.asked("b.test", SHARED)
    assert reply == Wait()
    bench.hold(True)
    answered(bench, held, NOW)
    assert bench.woken(NOW) == [waiting]
    assert bench.ask(waiting, NOW, SHARED) == Wait(), "the crawl is held"
    bench.hold(False)
    assert bench.woken(NOW) == [waiting]
    assert bench.asked("c.test", SHARED)[1] == Go()
    assert bench.ask(waiting, NOW + 100.0, None) == LookUp(), "the answer for its name has run out"


# --- claims -----------------------------------------------------------------------------------


def with_groups(most: int, slots: int, held: int) -> Workbench:
    bench = Workbench(PolitenessSettings(delay_s=1.0), slots, most_groups=most)
    for n in range(held):
        bench.enter(f"n{n}.test", Pace())
    return bench


def test_half_of_the_groups_that_may_be_claimed_or_as_many_as_slots_are_awake() -> None:
    assert with_groups(2_000, 64, 0).may_claim() == 1_000
    assert with_groups(2_000, 1_500, 0).may_claim() == 1_500
    bench = with_groups(20, 4, 8)
    assert bench.may_claim() == 2
    for _ in range(6):
        bench.fall_asleep()
    assert bench.may_claim() == 8, "six wait for their pauses"
    bench = with_groups(20, 4, 18)
    for _ in range(18):
        bench.fall_asleep()
    assert bench.may_claim() == 2, "no more than may be claimed"
    bench.wake_up()
    bench.leave("n0.test")
    assert bench.may_claim() == 3


def test_a_process_with_more_groups_than_its_share_releases_them() -> None:
    bench = with_groups(2_000, 64, 3)
    assert not bench.should_release("n0.test", NOW), "no other process takes part"
    bench.note_claims(0, 0, 2, NOW)
    assert bench.should_release("n0.test", NOW)
    bench.leave("n1.test")
    assert not bench.should_release("n0.test", NOW)


def test_during_a_backlog_groups_are_held_for_a_moment() -> None:
    bench = with_groups(3, 3, 3)
    bench.enter("paused.test", Pace(next_at=NOW + 5.0))
    bench.note_claims(3, 4, None, NOW)
    assert not bench.others_wait
    assert (bench.urls_per_group(NOW), bench.horizon_s(NOW)) == (10, 1.0)
    assert not bench.should_release("paused.test", NOW)
    bench.note_claims(3, 3, None, NOW)
    assert bench.others_wait
    assert (bench.urls_per_group(NOW), bench.horizon_s(NOW)) == (2, 0.1)
    assert bench.should_release("paused.test", NOW)
    assert not bench.should_release("n0.test", NOW)
    assert not bench.pauses_long("paused.test", NOW)
    assert not bench.should_release("paused.test", NOW + 60), "nothing was said of a backlog for a minute"
    bench.note_claims(1, 1, None, NOW + 60)
    assert bench.urls_per_group(NOW + 60) == 2, "all that may be held are held"


def test_claims_that_bring_neither_a_request_nor_an_address_are_counted() -> None:
    bench = Bench(PolitenessSettings(delay_s=1.0), 64)
    for n in range(9):
        asked, reply = bench.asked(f"n{n}.d{n}.test", None)
        assert reply == LookUp()
        bench.looked_up(asked, NOW, in_time=True)
        if isinstance(bench.ask(asked, NOW, SHARED), GiveBack):
            bench.close(asked, NOW)
            bench.leave(asked.group)
    assert bench.vain_claims == 0, "each has learned its address"
    again, reply = bench.asked("n8.d8.test", SHARED)
    assert isinstance(reply, GiveBack)
    assert bench.vain_claims == 1
    bench.close(again, NOW)
    bench.leave("n8.d8.test")
    answered(bench, bench.asked("own.test", OTHER)[0], NOW)
    assert bench.vain_claims == 1
