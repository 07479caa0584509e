"""What one connection leaves to the next: half lines, restarts, silence, failures and the delay after them."""

from __future__ import annotations

import asyncio
import json

import pytest

from konverge.cache.reflector import (
    FIRST_DELAY,
    GRACE,
    HEALTHY_AFTER,
    JITTER,
    MIN_AGE,
    NEAR_WATCH_SECONDS,
    WATCH_SECONDS,
    Restart,
)
from konverge.client.errors import BadRequest, ClientError, Expired, NotFound, TooManyRequests
from tests.cache.scripted import FOREVER, Answer, Script, end, informed, line, names, page, refused
from tests.cache.test_reflector_recovery import STREAMED

pytestmark = pytest.mark.virtual

HALF_LINE = b'{"type": "ADDED", "object'


@pytest.mark.spec("R-07")
async def test_half_a_line_after_the_initial_events_does_not_spoil_the_watch() -> None:
    script = Script(line("ADDED", "a", 3) + end(7) + HALF_LINE, line("ADDED", "b", 9))
    async with informed(script) as informer:
        await asyncio.sleep(1)
        assert (names(informer), informer.error) == ({"a", "b"}, "")
        assert informer.reflectors[0].health.restarts[Restart.ERROR] == 0
    assert len(script.calls) == 2


@pytest.mark.spec("R-07")
async def test_a_watch_that_broke_in_the_middle_of_a_line_is_resumed() -> None:
    script = Script(end(7), (line("ADDED", "a", 8) + HALF_LINE, 130.0), line("ADDED", "b", 9))
    async with informed(script) as informer:
        await asyncio.sleep(140)
        assert (names(informer), informer.error) == ({"a", "b"}, "")
    assert script.queries()[2] == {"resourceVersion": "8"}


@pytest.mark.spec("R-07")
async def test_after_pages_the_changes_are_watched() -> None:
    script = Script(refused(BadRequest), page(5, "a"), line("ADDED", "b", 9))
    async with informed(script) as informer:
        await asyncio.sleep(1)
        assert names(informer) == {"a", "b"}
    assert [call.verb for call in script.calls] == ["watch", "list", "watch"]
    assert script.queries()[2] == {"resourceVersion": "5"}


@pytest.mark.spec("R-07")
async def test_pages_without_items_are_empty() -> None:
    nothing = json.dumps({"metadata": {"resourceVersion": "5"}, "items": None}).encode()
    async with informed(Script(nothing), streaming=False) as informer:
        await asyncio.wait_for(informer.synced.wait(), 1)
        assert (informer.count, informer.error) == (0, "")


@pytest.mark.spec("R-07")
async def test_a_watch_that_ended_as_usual_counts_as_healthy_again() -> None:
    """One restart, then the server's own end: the next restart resumes, and does not list."""
    script = Script(end(7), b"", (b"", 50.0), b"")
    async with informed(script) as informer:
        await asyncio.sleep(2 * MIN_AGE)
        informer.restart_watch("")
        await asyncio.sleep(60)
        assert len(script.calls) == 4, "restarted, and then ended by the server"
        informer.restart_watch("")
        await asyncio.sleep(1)
        assert informer.reflectors[0].health.lists == 1
    assert script.queries()[1:] == [{"resourceVersion": "7"}] * 4


@pytest.mark.spec("R-09")
async def test_a_list_that_stops_in_the_middle_is_requested_again() -> None:
    script = Script([(30.0, line("ADDED", "a", 3)), (30.0, line("ADDED", "b", 4))], end(7))
    async with informed(script, list_timeout=40.0) as informer:
        await asyncio.sleep(99)
        assert len(script.calls) == 1, "every part of it comes in time"
        await asyncio.sleep(1.1)
        assert "raise LIST_TIMEOUT" in informer.error
        await asyncio.sleep(5)
        assert informer.synced.is_set()


@pytest.mark.spec("R-09")
async def test_a_server_without_bookmarks_may_be_silent_until_the_end_of_the_watch() -> None:
    script = Script(page(3), [(10.0, line("ADDED", "a", 5))], b"")
    async with informed(script, streaming=False) as informer:
        await asyncio.sleep(299)
        assert (len(script.calls), informer.reflectors[0].health.restarts[Restart.SILENT]) == (2, 0)


@pytest.mark.spec("R-09")
async def test_the_bookmark_that_ended_the_state_says_nothing_about_the_watch() -> None:
    script = Script(end(3), [(10.0, line("ADDED", "a", 5))], b"")
    async with informed(script):
        await asyncio.sleep(299)
        assert len(script.calls) == 2


@pytest.mark.spec("R-09")
async def test_a_short_watch_that_ended_as_usual_ends_the_row_of_failures() -> None:
    script = Script(*[ClientError("refused")] * 6, end(3), (b"", 10.0), ClientError("again"))
    async with informed(script) as informer:
        await asyncio.wait_for(informer.synced.wait(), 1000)
        await asyncio.sleep(30)
    failed, retried = script.times[8:10]
    assert FIRST_DELAY <= retried - failed <= FIRST_DELAY * (1 + JITTER)


@pytest.mark.spec("R-09")
async def test_a_long_watch_that_failed_in_the_end_ends_the_row_of_failures() -> None:
    broken = json.dumps({"type": "ERROR", "object": {"code": 500}}).encode() + b"\n"
    for lasted, first in ((HEALTHY_AFTER + 1, True), (HEALTHY_AFTER - 10, False)):
        script = Script(*[ClientError("refused")] * 6, end(3), [(lasted, broken)], b"")
        async with informed(script) as informer:
            await asyncio.wait_for(informer.synced.wait(), 1000)
            await asyncio.sleep(lasted + 60)
            assert informer.reflectors[0].health.failures == (1 if first else 7)
        delay = script.times[8] - script.times[7] - lasted
        assert (delay <= FIRST_DELAY * (1 + JITTER)) is first


@pytest.mark.spec("R-09")
async def test_a_watch_that_lasted_a_little_is_resumed_without_a_delay() -> None:
    script = Script(end(3), *[(b"", 1.5)] * 5)
    async with informed(script):
        await asyncio.sleep(7)
    pauses = [later - earlier for earlier, later in zip(script.times[1:], script.times[2:], strict=False)]
    assert pauses == pytest.approx([1.5] * 4)


@pytest.mark.spec("R-07")
async def test_a_state_that_ended_before_its_end_is_requested_again() -> None:
    script = Script((line("ADDED", "a", 3), 2.0), line("ADDED", "b", 4) + end(7))
    async with informed(script) as informer:
        await asyncio.sleep(1)
        assert not informer.synced.is_set()
        await asyncio.sleep(10)
        assert names(informer) == {"b"}
    assert script.queries() == [STREAMED, STREAMED, {"resourceVersion": "7"}]


@pytest.mark.spec("R-09")
async def test_the_server_may_end_a_watch_by_its_own_limit() -> None:
    script = Script(page(3), b"", b"")
    async with informed(script, streaming=False):
        await asyncio.sleep(WATCH_SECONDS[1] + 2 * GRACE)
    limit = int(script.calls[1].query["timeoutSeconds"])
    assert limit < script.times[2] - script.times[1] <= limit + 2 * GRACE, "it is given up only after that"


@pytest.mark.spec("R-07")
async def test_in_one_process_the_state_is_listed_and_a_watch_needs_no_bookmarks_and_no_renewal() -> None:
    script = Script(page(3, "a"), b"")
    script.near = True
    async with informed(script) as informer:
        await asyncio.sleep(2 * WATCH_SECONDS[1])
        assert names(informer) == {"a"}
    state, changes = script.calls
    assert (state.verb, changes.verb, changes.query["resourceVersion"]) == ("list", "watch", "3")
    assert (changes.query["allowWatchBookmarks"], changes.timeout) == ("false", None)
    assert int(changes.query["timeoutSeconds"]) >= NEAR_WATCH_SECONDS[0]


@pytest.mark.spec("R-09")
async def test_a_failure_is_over_when_the_history_turns_out_to_be_gone() -> None:
    """The server answers again: the list that follows may take long."""
    script = Script(end(7), (b"", 10.0), ClientError("refused"), refused(Expired), b"")
    async with informed(script) as informer:
        await asyncio.sleep(10.1)
        assert informer.error == "refused"
        await asyncio.sleep(5)
        assert informer.error == ""


@pytest.mark.spec("R-09")
async def test_a_failure_is_over_when_the_state_begins_to_come() -> None:
    script = Script(ClientError("refused"), [(1.0, line("ADDED", "a", 3)), (30.0, end(7))])
    async with informed(script) as informer:
        await asyncio.sleep(0.1)
        assert informer.error == "refused"
        await asyncio.sleep(5)
        assert (informer.synced.is_set(), informer.error) == (False, "")


@pytest.mark.spec("R-09")
@pytest.mark.parametrize("failure", [ClientError("no"), refused(TooManyRequests), b"<html>busy</html>\n"])
async def test_first_delays_differ_and_are_as_short_as_they_may_be(failure: Answer) -> None:
    script = Script(*[failure] * 20)
    async with informed(script, namespaces=tuple(f"n{number}" for number in range(20))):
        await asyncio.sleep(FIRST_DELAY * (1 + JITTER))
    again = script.times[20:]
    assert len(again) == 20
    assert min(again) < 1 < max(again)
    assert all(FIRST_DELAY <= time <= FIRST_DELAY * (1 + JITTER) for time in again)


@pytest.mark.spec("R-07")
async def test_after_a_watch_that_cannot_be_read_the_state_is_listed() -> None:
    """Nothing of it can be trusted, the position included."""
    nameless = json.dumps({"type": "ADDED", "object": {"metadata": {}}}).encode() + b"\n"
    script = Script(end(7), nameless, line("ADDED", "b", 8) + end(9))
    async with informed(script) as informer:
        await asyncio.sleep(10)
        assert (names(informer), informer.version) == ({"b"}, 9)
    assert script.queries()[1:3] == [{"resourceVersion": "7"}, STREAMED]


@pytest.mark.spec("R-09")
async def test_an_error_without_a_message_is_still_an_error() -> None:
    broken = json.dumps({"type": "ERROR", "object": {"code": 503}}).encode() + b"\n"
    async with informed(Script(end(7), (broken, 0.0))) as informer:
        await asyncio.sleep(0.1)
        assert "503" in informer.error


@pytest.mark.spec("R-09")
async def test_the_last_sign_of_life_is_the_start_and_then_every_event() -> None:
    await asyncio.sleep(5)
    script = Script(ClientError("no"), end(7), [(10.0, line("ADDED", "a", 8))])
    async with informed(script) as informer:
        await asyncio.sleep(0.1)
        health = informer.reflectors[0].health
        assert health.last_event == 5
        await asyncio.sleep(30)
        assert health.last_event == pytest.approx(script.times[2] + 10)


@pytest.mark.spec("R-09")
async def test_of_several_namespaces_each_one_counts() -> None:
    """One namespace fails, the other works: the cache is not current."""

    class Halves(Script):
        def _next(self, call):  # type: ignore[no-untyped-def]
            if call.namespace == "bank" and len(self.calls) > 3:
                self.calls.append(call)
                raise failure
            return super()._next(call)

    for failure in (ClientError("the bank is closed"), refused(NotFound, "the bank is closed")):
        script = Halves(end(3), end(3), (b"", 130.0), (b"", 130.0), (b"", FOREVER), (b"", FOREVER))
        async with informed(script, namespaces=("shop", "bank")) as informer:
            await asyncio.wait_for(informer.synced.wait(), 1)
            assert (informer.error, informer.served) == ("", True)
            await asyncio.sleep(150)
            assert "the bank is closed" in informer.error
            assert informer.served is not isinstance(failure, NotFound)


@pytest.mark.spec("R-07")
async def test_every_failure_is_told_and_its_end_once() -> None:
    script = Script(refused(TooManyRequests, "busy"), refused(NotFound, "no such kind"), end(7), (b"", 20.0), b"")
    told: list[tuple[str, str]] = []
    async with informed(script) as informer:
        informer.health_listeners.append(lambda space, error: told.append((space, str(error or "well"))))
        await asyncio.sleep(60)
    assert [(space, text.partition(".")[0]) for space, text in told] == [
        ("", "busy"),
        ("", "no such kind"),
        ("", "well"),
    ]
