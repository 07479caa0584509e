"""Which failure is worth another try, and after how long."""

from __future__ import annotations

import asyncio

import pytest

from konverge import clock
from konverge.client import ConnectionLost, NotConnected, RetryPolicy, TimedOut
from konverge.client.errors import ApiStatusError, ClientError, MalformedAnswer, error_from_answer


class Dice:
    """Randomness that is the same each time."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number


def fixed(patch: pytest.MonkeyPatch, number: float) -> None:
    patch.setattr(clock, "rng", lambda: Dice(number))


def refusal(code: int, retry_after: float | None = None) -> ApiStatusError:
    return error_from_answer(code, b"", retry_after=retry_after)


@pytest.mark.parametrize(("dice", "share"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_waits_double_up_to_the_cap_and_are_spread(monkeypatch: pytest.MonkeyPatch, dice: float, share: float) -> None:
    fixed(monkeypatch, dice)
    attempts = RetryPolicy(retries=6, base=0.1, cap=1.0, budget=100).begin(reads=True)
    waits = [attempts.delay(refusal(503)) for _ in range(7)]
    assert waits == [*(pytest.approx(full * share) for full in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0)), None]


def test_the_usual_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, 1.0)
    attempts = RetryPolicy().begin(reads=True)
    waits = [attempts.delay(refusal(500)) for _ in range(6)]
    assert waits == [*(pytest.approx(wait) for wait in (0.1, 0.2, 0.4, 0.8, 1.6)), None]


@pytest.mark.parametrize(("dice", "factor"), [(0.0, 1.0), (1.0, 1.1)])
@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_the_server_is_never_asked_earlier_than_it_said(
    monkeypatch: pytest.MonkeyPatch, dice: float, factor: float, code: int
) -> None:
    fixed(monkeypatch, dice)
    for reads in (True, False):
        assert RetryPolicy().begin(reads=reads).delay(refusal(code, 4.0)) == pytest.approx(4 * factor)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 410, 413, 422, 501, 505])
def test_what_another_try_would_not_change(code: int) -> None:
    assert RetryPolicy().begin(reads=True).delay(refusal(code, 1.0)) is None


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ConnectionLost("gone"), True),
        (TimedOut("slow"), False),
        (MalformedAnswer("<html>"), False),
        (NotConnected("refused"), False),
        (refusal(429), True),
        (refusal(502), True),
        (refusal(504), True),
    ],
)
def test_only_a_read_is_repeated_without_being_asked_to(error: ClientError, again: bool) -> None:
    assert (RetryPolicy().begin(reads=True).delay(error) is not None) is again
    assert RetryPolicy().begin(reads=False).delay(error) is None


def test_the_budget_may_be_used_up_and_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, 0.0)
    attempts = RetryPolicy(budget=10).begin(reads=False)
    assert attempts.delay(refusal(429, 6.0)) == 6
    assert attempts.delay(refusal(429, 4.5)) is None
    assert attempts.delay(refusal(429, 4.0)) == 4  # what was not waited for has not been spent
    assert attempts.delay(refusal(429, 0.5)) is None
    assert (attempts.count, attempts.waited) == (2, 10)


@pytest.mark.virtual
async def test_a_server_that_is_about_to_start_is_waited_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch, 1.0)
    attempts = RetryPolicy(retries=0, refused_for=5, base=1, cap=1).begin(reads=False)
    start = clock.monotonic()
    while (wait := attempts.delay(NotConnected("refused"))) is not None:
        await asyncio.sleep(wait)
    assert clock.monotonic() - start == pytest.approx(5)
    assert attempts.count == 5
