"""The checker itself: histories that are known to be good or bad, and the plain definition on small ones."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver.robustness.linearizability import NEVER, Operation, TooManyOrders, check
from tests.apiserver.robustness.model import (
    CONFLICT,
    DELETED,
    EXISTS,
    MISSING,
    NOT_STORED,
    Create,
    Delete,
    Get,
    List,
    Listed,
    Object,
    State,
    Update,
    Written,
    step,
    values_seen,
    with_what_was_seen,
)


def register(state: int, request: tuple[Any, ...], answer: Any) -> int | None:
    if request[0] == "write":
        return int(request[1])
    return state if answer is None or answer == state else None


HISTORIES: dict[str, tuple[bool, list[Operation]]] = {
    "nothing": (True, []),
    "one after the other": (True, [Operation(0, 1, ("write", 1), "ok"), Operation(2, 3, ("read",), 1)]),
    "a stale read": (False, [Operation(0, 1, ("write", 1), "ok"), Operation(2, 3, ("read",), 0)]),
    "a read beside the write, before it": (True, [Operation(0, 3, ("write", 1), "ok"), Operation(1, 2, ("read",), 0)]),
    "a read beside the write, after it": (True, [Operation(0, 3, ("write", 1), "ok"), Operation(1, 2, ("read",), 1)]),
    "seen and then not": (
        False,
        [Operation(0, 9, ("write", 1), "ok"), Operation(1, 2, ("read",), 1), Operation(3, 4, ("read",), 0)],
    ),
    "not seen and then seen": (
        True,
        [Operation(0, 9, ("write", 1), "ok"), Operation(1, 2, ("read",), 0), Operation(3, 4, ("read",), 1)],
    ),
    "a write without an answer is seen late": (
        True,
        [
            Operation(0, NEVER, ("write", 1), None),
            Operation(1, 2, ("read",), 0),
            Operation(3, 4, ("write", 2), "ok"),
            Operation(5, 6, ("read",), 1),
        ],
    ),
    "a write without an answer never happens": (
        True,
        [Operation(0, NEVER, ("write", 1), None), Operation(1, 2, ("read",), 0), Operation(3, 4, ("read",), 0)],
    ),
    "a write without an answer happens once": (
        False,
        [
            Operation(0, NEVER, ("write", 1), None),
            Operation(1, 2, ("read",), 1),
            Operation(3, 4, ("write", 2), "ok"),
            Operation(5, 6, ("read",), 1),
        ],
    ),
    "not before its call": (False, [Operation(0, 1, ("read",), 1), Operation(2, NEVER, ("write", 1), None)]),
}


@pytest.mark.spec("T-10")
@pytest.mark.parametrize("name", HISTORIES)
def test_known_histories(name: str) -> None:
    good, history = HISTORIES[name]
    assert check(history, 0, register).linearizable == good


def by_definition(history: list[Operation]) -> bool:
    """Some order of the answered operations, and of some of the others, respects real time and the model."""
    answered = [operation for operation in history if operation.returned != NEVER]
    open_ones = [operation for operation in history if operation.returned == NEVER]
    for chosen in range(1 << len(open_ones)):
        kept = answered + [operation for index, operation in enumerate(open_ones) if chosen >> index & 1]
        for order in permutations(kept):
            respected = all(
                not later.returned < earlier.called for at, earlier in enumerate(order) for later in order[at + 1 :]
            )
            state: int | None = 0
            for operation in order:
                state = None if state is None else register(state, operation.request, operation.answer)
            if respected and state is not None:
                return True
    return False


requests = st.one_of(
    st.tuples(st.tuples(st.just("write"), st.integers(1, 3)), st.just("ok")),
    st.tuples(st.just(("read",)), st.integers(0, 3)),
)


@given(st.lists(st.tuples(requests, st.integers(0, 8), st.one_of(st.integers(1, 6), st.just(NEVER))), max_size=5))
@pytest.mark.spec("T-10")
def test_the_search_is_the_definition(drawn: list[tuple[tuple[Any, Any], int, float]]) -> None:
    history = [
        Operation(called, called + length, request, None if length == NEVER else answer)
        for (request, answer), called, length in drawn
    ]
    assert check(history, 0, register).linearizable == by_definition(history)


def run(*answers: tuple[Any, Any]) -> bool:
    """One after the other."""
    history = [
        Operation(2 * at, NEVER if answer is None else 2 * at + 1, request, answer)
        for at, (request, answer) in enumerate(answers)
    ]
    return check(with_what_was_seen(history, values_seen(history)), State(), step).linearizable


MADE = (Create("a", "1"), Written(5))


@pytest.mark.spec("T-10")
@pytest.mark.parametrize(
    ("good", "answers"),
    [
        (True, [MADE, (Get("a"), Object(5, "1")), (List(), Listed(5, {"a": Object(5, "1")}))]),
        (False, [MADE, (Get("a"), MISSING)]),
        (False, [MADE, (Get("a"), Object(4, "1"))]),
        (False, [MADE, (List(), Listed(5, {}))]),
        (False, [MADE, (List(), Listed(4, {"a": Object(5, "1")}))]),
        (True, [MADE, (Create("a", "2"), EXISTS)]),
        (False, [MADE, (Create("a", "2"), Written(6))]),
        (False, [(Create("a", "2"), EXISTS)]),
        (True, [MADE, (Update("a", "2", 5), Written(6)), (Update("a", "3", 5), CONFLICT)]),
        (False, [MADE, (Update("a", "2", 5), CONFLICT)]),
        (False, [MADE, (Update("a", "2", 4), Written(6))]),
        (False, [MADE, (Update("a", "2", 5), Written(5))]),
        (False, [MADE, (List(), Listed(9, {"a": Object(5, "1")})), (Update("a", "2", 5), Written(8))]),
        (True, [MADE, (Delete("a", 5), DELETED), (Get("a"), MISSING), (Update("a", "2", 0), MISSING)]),
        (False, [MADE, (Delete("a", 5), DELETED), (Get("a"), Object(5, "1"))]),
        (False, [(Delete("a", 0), DELETED)]),
        (True, [(Create("a", "1"), None), (Get("a"), MISSING), (Get("a"), Object(7, "1"))]),
        (False, [(Create("a", "1"), None), (Get("a"), Object(7, "1")), (Create("b", "2"), Written(7))]),
        (True, [(Create("a", "1"), None), (Create("a", "2"), EXISTS)]),
        (True, [MADE, (Delete("a", 0), None), (Get("a"), MISSING)]),
        (True, [MADE, (Delete("a", 0), None), (Get("a"), Object(5, "1"))]),
        (False, [MADE, (Delete("a", 4), None), (Get("a"), MISSING)]),
    ],
)
def test_what_the_model_allows(good: bool, answers: list[tuple[Any, Any]]) -> None:
    assert run(*answers) == good


@pytest.mark.spec("T-10")
def test_what_the_server_says_is_not_stored_must_not_be_seen() -> None:
    assert run((Create("a", "1"), NOT_STORED), (Get("a"), MISSING))
    assert not run(MADE, (Delete("a", 0), NOT_STORED), (Get("a"), MISSING))
    with pytest.raises(AssertionError, match="was seen at 5"):
        run((Create("a", "1"), NOT_STORED), (Get("a"), Object(5, "1")))


@pytest.mark.spec("T-10")
def test_where_everything_was_seen_a_write_without_an_answer_had_no_effect() -> None:
    history = [Operation(0, NEVER, Create("a", "1"), None), Operation(1, 2, Create("a", "2"), EXISTS)]
    assert check(with_what_was_seen(history, {}), State(), step).linearizable
    assert not check(with_what_was_seen(history, {}, everything=True), State(), step).linearizable


@pytest.mark.spec("T-10")
def test_a_search_without_end_is_given_up() -> None:
    history = [Operation(0, NEVER, ("write", number), None) for number in range(12)]
    with pytest.raises(TooManyOrders):
        check([*history, Operation(1, 2, ("read",), 99)], 0, register, most=1000)


@pytest.mark.spec("T-10")
def test_a_value_has_one_revision() -> None:
    with pytest.raises(AssertionError, match="shown at 5 and at 6"):
        run(MADE, (Get("a"), Object(5, "1")), (Get("a"), Object(6, "1")))


@pytest.mark.spec("T-10")
def test_the_longest_order_shows_where_to_look() -> None:
    stale = Operation(4, 5, ("read",), 0)
    first = [Operation(0, 1, ("write", 1), "ok"), Operation(2, 3, ("read",), 1)]
    assert check([*first, stale], 0, register).longest == tuple(first)
