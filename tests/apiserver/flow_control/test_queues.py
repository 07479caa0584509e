"""The fair queues of a level, with a clock that the tests turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.flow_control.queues import Limits, Queues, Rejected, Ticket, dealt

pytestmark = pytest.mark.spec("S-51")


class Level:
    """A level, and what has happened in it."""

    def __init__(self, limits: Limits) -> None:
        self.time = 0.0
        self.queues = Queues(limits, lambda: self.time)
        self.begun: list[str] = []
        self.open: dict[str, Ticket] = {}

    def enter(self, name: str, flow: int = 0, seats: int = 1) -> Ticket:
        ticket = self.queues.enter(flow, seats, lambda: self.begun.append(name))
        self.open[name] = ticket
        return ticket

    def end(self, name: str) -> None:
        self.queues.leave(self.open.pop(name))

    def executing(self) -> list[str]:
        return [name for name, ticket in self.open.items() if ticket.started is not None]


def test_who_finds_no_seat_is_refused_where_nobody_may_wait() -> None:
    level = Level(Limits(2))
    level.enter("a")
    level.enter("b")
    with pytest.raises(Rejected) as error:
        level.enter("c")
    assert error.value.reason == "concurrency-limit"
    assert level.queues.free == 0
    level.end("a")
    assert level.queues.free == 1
    assert level.enter("c").started is not None


def test_a_queue_holds_so_many_and_lets_them_in_in_order() -> None:
    level = Level(Limits(1, queues=1, hand=1, length=2))
    assert level.enter("a").started == 0.0
    assert [level.enter(name).started for name in "bc"] == [None, None]
    with pytest.raises(Rejected) as error:
        level.enter("d")
    assert error.value.reason == "queue-full"
    level.end("a")
    level.end("b")
    assert level.begun == ["a", "b", "c"]


def test_who_waits_no_longer_leaves_its_place() -> None:
    level = Level(Limits(1, queues=1, hand=1, length=2))
    for name in "abc":
        level.enter(name)
    level.end("b")
    assert (level.queues.waiting, level.queues.seats_waiting) == (1, 1)
    level.end("a")
    assert level.begun == ["a", "c"]


def test_what_is_wider_than_the_level_begins_alone() -> None:
    level = Level(Limits(2, queues=1, hand=1, length=9))
    level.enter("a")
    assert level.enter("wide", seats=3).started is None
    assert level.enter("b").started is None, "who comes later does not overtake it"
    level.end("a")
    assert level.executing() == ["wide"]
    level.end("wide")
    assert level.executing() == ["b"]


def test_more_seats_let_in_more() -> None:
    level = Level(Limits(1, queues=1, hand=1, length=9))
    for name in "abc":
        level.enter(name)
    level.queues.configure(Limits(2, queues=4, hand=2, length=9))
    assert level.executing() == ["a", "b"]
    level.queues.configure(Limits(0))
    level.end("a")
    level.end("b")
    assert level.executing() == [], "there are no seats"
    level.queues.configure(Limits(1))
    assert level.executing() == ["c"], "who waited still waits when nobody else may"


def test_a_request_that_has_begun_counts() -> None:
    level = Level(Limits(2, queues=2, hand=1, length=9))
    ticket = level.queues.occupy(0, 2)
    assert level.enter("a").started is None
    level.queues.leave(ticket)
    assert level.executing() == ["a"]


def test_a_flow_that_has_had_much_waits_for_one_that_has_had_little() -> None:
    """Also where it had its seats before anybody waited."""
    level = Level(Limits(2, queues=2, hand=1, length=9))
    held = [level.queues.occupy(0, 1) for _ in range(2)]
    level.time = 5.0
    for name in ("a1", "a2"):
        level.enter(name, flow=0)
    for name in ("b1", "b2"):
        level.enter(name, flow=1)
    for ticket in held:
        level.queues.leave(ticket)
    assert level.begun == ["b1", "b2"]


def in_turn(level: Level) -> str:
    """The flows of the requests that begin from now on; each request lasts a second."""
    begun = len(level.begun)
    while level.open:
        level.time += 1.0
        level.end(level.executing()[0])
    return "".join(name[0] for name in level.begun[begun:])


def test_a_flow_that_comes_late_has_no_claim_on_the_past() -> None:
    """What it did not ask for then is gone: from now on both have their turns."""
    level = Level(Limits(1, queues=2, hand=1, length=99))
    for _ in range(5):  # queues that are used no more
        level.enter("early", flow=1)
        level.end("early")
    for number in range(24):
        level.enter(f"a{number}", flow=0)
    for number in range(20):
        level.time += 1.0
        level.end(f"a{number}")
    for number in range(4):
        level.enter(f"b-{number}", flow=1)
    order = level.begun[-1][0] + in_turn(level)
    assert order.startswith(("abab", "abba")), order


def test_also_where_the_other_flow_never_has_more_than_one_waiting() -> None:
    """Its queue is in use all the time, so what it was granted is no less than the time that has passed."""
    level = Level(Limits(1, queues=2, hand=1, length=99))
    level.enter("a0", flow=0)
    for number in range(20):
        level.enter(f"a{number + 1}", flow=0)
        level.time += 1.0
        level.end(f"a{number}")
    for number in range(4):
        level.enter(f"b{number}", flow=1)
        level.enter(f"a{number + 21}", flow=0)
    order = level.begun[-1][0] + in_turn(level)
    assert order.startswith(("abab", "abba")), order


def test_who_has_waited_is_owed_its_share() -> None:
    """Of ten seconds in which another had the only seat, half were due to it, however many of its requests waited."""
    level = Level(Limits(1, queues=3, hand=1, length=99))
    level.enter("a", flow=0)
    for number in range(10):
        level.enter(f"b{number}", flow=1)
    level.time = 10.0
    level.end("a")
    for number in range(10):
        level.enter(f"c{number}", flow=2)
    order = in_turn(level)
    assert order[:4] == "bbbb", order
    assert order[4:8] in ("bcbc", "cbcb", "bccb", "cbbc"), order


def test_who_was_gone_is_owed_nothing_and_owes_nothing() -> None:
    """It had ten seconds where five were due to it; then it came again, as any other flow would."""
    level = Level(Limits(1, queues=2, hand=1, length=99))
    level.enter("a", flow=0)
    for number in range(12):
        level.enter(f"b{number}", flow=1)
    level.time = 10.0
    level.end("a")
    for number in range(12):
        level.enter(f"a{number}", flow=0)
    order = in_turn(level)
    assert 3 <= order.index("a") <= 6, order


@given(st.integers(0, 2**64 - 1), st.integers(1, 128), st.data())
def test_a_hand_has_different_cards(value: int, deck: int, data: st.DataObject) -> None:
    hand = data.draw(st.integers(1, min(deck, 8)))
    cards = dealt(value, deck, hand)
    assert len({*cards}) == hand
    assert all(0 <= card < deck for card in cards)


@given(st.integers(2, 6), st.integers(1, 3))
def test_every_hand_is_dealt_equally_often(deck: int, hand: int) -> None:
    hand = min(hand, deck)
    ways = 1
    for number in range(hand):
        ways *= deck - number
    assert len({tuple(dealt(value, deck, hand)) for value in range(ways)}) == ways


limits = st.builds(
    Limits,
    seats=st.integers(0, 6),
    queues=st.sampled_from([0, 1, 3, 8]),
    hand=st.just(1),
    length=st.integers(1, 4),
)
steps = st.lists(
    st.tuples(st.sampled_from(["enter", "occupy", "leave", "wait", "configure"]), st.integers(0, 2**40), limits),
    max_size=60,
)


@given(limits, steps)
def test_bounds_hold_whatever_happens(first: Limits, moves: list[tuple[str, int, Limits]]) -> None:
    """Seats, lengths and counts; nothing is lost, and no seat stays free that the next one could have."""
    level = Level(first)
    queues = level.queues
    for number, (move, value, other) in enumerate(moves):
        before = queues.in_use
        name = str(number)
        if move == "wait":
            level.time += value % 100 / 100
        elif move == "configure":
            queues.configure(other)
        elif move == "leave" and level.open:
            level.end(list(level.open)[value % len(level.open)])
        elif move == "occupy" and queues.free:
            level.open[name] = queues.occupy(value, 1 + value % queues.free)
        elif move == "enter":
            seats = 1 + value % 3
            try:
                level.enter(name, value, seats)
            except Rejected as error:
                refused = error.reason
            else:
                refused = ""
            expected = "queue-full" if queues.limits.queues else "concurrency-limit"
            assert refused in ("", expected)
            assert not refused or queues.in_use + seats > queues.limits.seats
        check(level, before, grew=move in ("enter", "occupy"))
    for name in list(level.open):
        level.end(name)
    assert (queues.in_use, queues.executing, queues.waiting, queues.seats_waiting) == (0, 0, 0, 0)


def check(level: Level, before: int, *, grew: bool) -> None:
    queues = level.queues
    executing = [level.open[name] for name in level.executing()]
    waiting = [ticket for ticket in level.open.values() if ticket.started is None]
    assert queues.in_use == sum(ticket.seats for ticket in executing)
    assert (queues.executing, queues.waiting) == (len(executing), len(waiting))
    assert queues.seats_waiting == sum(ticket.seats for ticket in waiting)
    if grew and queues.in_use > before:
        assert queues.in_use <= queues.limits.seats or len(executing) == 1
    if waiting and queues.in_use < queues.limits.seats:
        widest = max(ticket.seats for ticket in waiting)
        assert queues.in_use + widest > queues.limits.seats, "the next one does not fit"
    assert queues.free == (0 if waiting else max(0, queues.limits.seats - queues.in_use))


@given(st.lists(st.integers(1, 40), min_size=2, max_size=4), st.integers(1, 4))
def test_flows_that_always_want_more_get_the_same_time(lasts: list[int], seats: int) -> None:
    """However long the requests of each last: each flow has a queue of its own, and always something that waits."""
    level = Level(Limits(seats, queues=len(lasts), hand=1, length=1000))
    had = dict.fromkeys(range(len(lasts)), 0.0)
    ends: dict[str, float] = {}
    for flow in had:
        for number in range(2 * seats):
            level.enter(f"{flow}.{number}", flow)
    rounds = 400
    for number in range(rounds):
        for name in level.executing():
            flow = int(name.partition(".")[0])
            ends.setdefault(name, level.time + lasts[flow] / 100)
        name = min(ends, key=lambda one: (ends[one], one))
        level.time = max(level.time, ends.pop(name))
        flow = int(name.partition(".")[0])
        had[flow] += lasts[flow] / 100
        level.enter(f"{flow}.again{number}", flow)
        level.end(name)
    longest = max(lasts) / 100
    assert max(had.values()) - min(had.values()) <= (2 * seats + 2) * longest
