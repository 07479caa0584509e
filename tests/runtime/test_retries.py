"""The retry policy: what counts, at which pace a key comes again, what ends a row of failures."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest

from konverge.cache.record import receive
from konverge.client import Client, MergePatch, NotConnected, NotFound
from konverge.client.errors import ConnectionLost, CredentialError, TimedOut, error_for
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.objects.meta import OwnerReference, Status, StatusCause, StatusDetails
from konverge.runtime import (
    BlockedError,
    Context,
    Controller,
    Manager,
    Reconciler,
    Request,
    Result,
    Settings,
    Source,
    TerminalError,
    TransientError,
)
from konverge.runtime.retries import is_other_work, is_transient
from konverge.wire.errors import ConnectFailed
from tests.runtime.objects import SPACE, config_map, secret

pytestmark = pytest.mark.virtual


def now() -> float:
    return asyncio.get_running_loop().time()


def refused(code: int, reason: str = "", *, cause: str = "") -> Exception:
    details = StatusDetails(causes=[StatusCause(reason=cause)] if cause else [])
    return error_for(Status(code=code, reason=reason, message="not now", details=details))


class Attempts:
    """A reconciler that records when it ran, and fails with what it is given, one after the other."""

    def __init__(self, *errors: BaseException | Result | None, ever: BaseException | None = None) -> None:
        self.times: list[float] = []
        self._outcomes = list(errors)
        self._ever = ever

    async def __call__(self, ctx: Context[Any]) -> Result | None:
        self.times.append(now())
        outcome = self._outcomes.pop(0) if self._outcomes else self._ever
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    @property
    def gaps(self) -> list[float]:
        return [round(after - before, 3) for before, after in itertools.pairwise(self.times)]


class Recorded:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def event(self, reason: str, message: str, *, about: Any, type: str = "Normal") -> None:
        assert type == "Warning"
        self.events.append((about.metadata.name, reason, message))

    @property
    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.events]


def budget(name: str) -> PodDisruptionBudget:
    """An object of a kind with generations."""
    return from_dict(
        PodDisruptionBudget,
        {
            "metadata": {"name": name, "namespace": SPACE},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}},
        },
    )


# ------------------------------------------------------------------ what counts

PASSING = [
    TransientError("later"),
    NotConnected("refused"),
    ConnectionLost("cut"),
    TimedOut("no answer"),
    CredentialError("the plugin did not answer"),
    refused(429, "TooManyRequests"),
    refused(401, "Unauthorized"),
    refused(410, "Expired"),
    refused(500, "InternalError"),
    refused(502),
    refused(503, "ServiceUnavailable"),
    refused(504, "Timeout"),
    refused(409, "Conflict"),
    refused(403, "Forbidden", cause="NamespaceTerminating"),
    ConnectionRefusedError("a database"),
    TimeoutError(),
    ConnectFailed("another service"),
    ExceptionGroup("tasks", [NotConnected("refused"), ExceptionGroup("more", [TransientError("later")])]),
]
STAYING = [
    RuntimeError("a defect"),
    asyncio.CancelledError(),
    refused(400, "BadRequest"),
    refused(403, "Forbidden"),
    refused(404, "NotFound"),
    refused(409, "AlreadyExists"),
    refused(409, "Conflict", cause="FieldManagerConflict"),
    refused(422, "Invalid"),
    OSError("no space left"),
    ExceptionGroup("tasks", [NotConnected("refused"), RuntimeError("a defect")]),
]


async def test_a_reconcile_that_asks_for_another_one_is_told_how_many_it_asked_for(client: Client) -> None:
    attempts = Attempts(Result(requeue=True), Result(requeue=True), Result(requeue_after=5))
    await client.create(secret("a"))
    async with Manager(client).add(Controller(Secret, attempts)).running() as manager:
        await asyncio.sleep(10)
        reasons = [[cause.text for cause in one.reasons] for one in manager.story.reconciles(name="a")]
    assert reasons[::-1] == [
        ["Secret default/a listed"],
        ["retry 1"],
        ["retry 2"],
        ["asked to come back after 5 s"],
    ]


@pytest.mark.parametrize("error", PASSING, ids=repr)
@pytest.mark.spec("R-18", "R-20")
async def test_transient_errors_never_count_and_are_retried_for_as_long_as_they_last(
    client: Client, error: Exception
) -> None:
    recorder = Recorded()
    attempts = Attempts(*[error] * 12)
    settings = Settings(base_delay=1, max_delay=1000, max_retries=2)
    manager = Manager(client, settings=settings, recorder=recorder).add(Controller(Secret, attempts))
    await client.create(secret("a"))
    async with manager.running():
        await asyncio.sleep(3600)
        numbers = manager.engines["secret"].numbers
    assert is_transient(error)
    assert attempts.gaps == [1, 2, 4, 8, 16, 32, *[60] * 6]  # and not 64, 128 …: work goes on soon after an outage
    assert recorder.events == []
    assert (numbers.given_up, numbers.panics, numbers.errors, numbers.results["success"]) == (0, 0, 12, 1)


@pytest.mark.parametrize("error", STAYING, ids=repr)
@pytest.mark.spec("R-18", "R-20")
async def test_other_errors_count_and_past_the_limit_the_key_comes_at_the_slowest_pace(
    client: Client, error: BaseException
) -> None:
    recorder = Recorded()
    attempts = Attempts(*[error] * 6)
    settings = Settings(base_delay=1, max_delay=100, max_retries=3)
    manager = Manager(client, settings=settings, recorder=recorder).add(Controller(Secret, attempts))
    await client.create(secret("a"))
    async with manager.running():
        await asyncio.sleep(3600)
        numbers = manager.engines["secret"].numbers
    assert not is_transient(error)
    assert attempts.gaps == [1, 2, 4, 100, 100, 100]
    ((name, reason, text),) = recorder.events  # once, not at every attempt
    assert (name, reason) == ("a", "ReconcileGivenUp")
    assert "failed 4 times in a row" in text
    assert "every 100 s" in text
    assert (numbers.given_up, numbers.results["success"]) == (1, 1)


@pytest.mark.spec("R-18")
async def test_with_a_limit_of_0_the_back_off_grows_to_its_maximum_and_no_event_is_recorded(client: Client) -> None:
    recorder = Recorded()
    attempts = Attempts(ever=RuntimeError("no luck"))
    settings = Settings(base_delay=1, max_delay=8, max_retries=0)
    await client.create(secret("a"))
    async with Manager(client, settings=settings, recorder=recorder).add(Controller(Secret, attempts)).running():
        await asyncio.sleep(35)
    assert attempts.gaps == [1, 2, 4, 8, 8, 8]
    assert recorder.events == []


@pytest.mark.spec("R-18")
async def test_transient_errors_between_others_neither_count_nor_end_the_row(client: Client) -> None:
    recorder = Recorded()
    no, later = RuntimeError("no"), TransientError("later")
    attempts = Attempts(no, later, later, no, later, no)
    settings = Settings(base_delay=1, max_delay=500, max_retries=2)
    await client.create(secret("a"))
    async with Manager(client, settings=settings, recorder=recorder).add(Controller(Secret, attempts)).running():
        await asyncio.sleep(1000)
    assert attempts.gaps == [1, 2, 4, 8, 16, 500]
    assert recorder.reasons == ["ReconcileGivenUp"]


@pytest.mark.parametrize("good", [None, Result(requeue_after=50), Result(requeue=True)], ids=repr)
@pytest.mark.spec("R-18", "R-19")
async def test_a_reconcile_without_an_error_ends_the_row(client: Client, good: Result | None) -> None:
    recorder = Recorded()
    no = RuntimeError("no")
    attempts = Attempts(no, no, good, no, no, no)
    settings = Settings(base_delay=1, max_delay=500, max_retries=2)
    await client.create(secret("a"))
    async with Manager(client, settings=settings, recorder=recorder).add(Controller(Secret, attempts)).running():
        await asyncio.sleep(100)
        if good is None:
            await client.patch(Secret, "a", MergePatch({"metadata": {"labels": {"a": "b"}}}), SPACE)
        await asyncio.sleep(100)
        assert len(attempts.times) == 6
        assert recorder.reasons == ["ReconcileGivenUp"]  # after the third of the second row, not before
    assert attempts.gaps[3:] == ([8, 16] if good == Result(requeue=True) else [1, 2])  # only that keeps the back-off


@pytest.mark.spec("R-18", "R-20")
async def test_work_goes_on_within_a_minute_after_the_api_server_was_away_for_an_hour(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        if now() < 3600:
            raise NotConnected("connection refused")
        done.append(now())

    done: list[float] = []
    recorder = Recorded()
    for number in range(5):
        await client.create(secret(f"s{number}"))
    async with Manager(client, recorder=recorder).add(Controller(Secret, reconcile)).running():
        await asyncio.sleep(3661)
    assert len(done) == 5
    assert recorder.events == []


# ------------------------------------------------------------------ what ends the back-off


@pytest.mark.spec("R-15", "R-18")
async def test_events_of_a_child_lead_to_an_attempt_each_and_not_to_a_new_back_off(client: Client) -> None:
    attempts = Attempts(ever=RuntimeError("no luck"))
    settings = Settings(max_retries=0)  # the usual back-off: 5 ms, doubled at each failure
    await client.create(secret("a"))
    owner = await client.get(Secret, "a", SPACE)
    child = config_map("child")
    child.metadata.owner_references = [owner_reference(owner)]
    await client.create(child)
    controller = Controller(Secret, attempts, owns=[ConfigMap], settings=settings)
    async with Manager(client).add(controller).running():
        for second in range(120):
            await asyncio.sleep(1)
            await client.patch(ConfigMap, "child", MergePatch({"data": {"n": str(second)}}), SPACE)
        await asyncio.sleep(0.5)
    # The first one, 120 for the events, and the retries of the back-off: after 5, 10, 20 … ms, counting every failure.
    assert len(attempts.times) == 1 + 120 + 10


@pytest.mark.spec("R-15", "R-23")
async def test_neither_a_source_nor_a_status_ends_the_back_off_and_a_spec_does(client: Client) -> None:
    async def ticks() -> Any:
        while True:
            await asyncio.sleep(100)
            yield Request(SPACE, "a")

    attempts = Attempts(ever=RuntimeError("no luck"))
    settings = Settings(base_delay=1, max_delay=10_000, max_retries=0)
    source = Source(name="ticks", requests=ticks)
    controller = Controller(PodDisruptionBudget, attempts, sources=[source], settings=settings)
    await client.create(budget("a"))
    async with Manager(client).add(controller).running() as manager:
        queue = manager.engines["poddisruptionbudget"].queue
        await asyncio.sleep(250.5)  # 0, 1, 3, 7, 15, 31, 63, 100 (source), 127, 200 (source)
        assert queue.num_requeues(Request(SPACE, "a")) == len(attempts.times) == 10
        status = MergePatch({"status": {"currentHealthy": 3}})
        await client.patch(PodDisruptionBudget, "a", status, SPACE, subresource="status")
        await client.patch(PodDisruptionBudget, "a", MergePatch({"metadata": {"labels": {"x": "y"}}}), SPACE)
        await asyncio.sleep(1)
        failures = len(attempts.times)
        assert failures > 10  # both lead to an attempt at once
        assert queue.num_requeues(Request(SPACE, "a")) == failures
        await client.patch(PodDisruptionBudget, "a", MergePatch({"spec": {"maxUnavailable": 2}}), SPACE)
        await asyncio.sleep(8)
    assert attempts.gaps[failures:] == [1, 2, 4]


@pytest.mark.spec("R-18")
async def test_another_spec_ends_the_slow_pace_and_the_next_row_is_reported_again(client: Client) -> None:
    recorder = Recorded()
    attempts = Attempts(ever=RuntimeError("no luck"))
    settings = Settings(base_delay=1, max_delay=1000, max_retries=2)
    controller = Controller(PodDisruptionBudget, attempts, settings=settings, when=lambda old, new: False)
    await client.create(budget("a"))

    async with Manager(client, recorder=recorder).add(controller).running() as manager:
        queue = manager.engines["poddisruptionbudget"].queue
        queue.add(Request(SPACE, "a"))
        await asyncio.sleep(50)
        assert attempts.gaps == [1, 2]
        # Even where the predicate says that the change does not matter, the next failure is the first of its row.
        await client.patch(PodDisruptionBudget, "a", MergePatch({"spec": {"maxUnavailable": 2}}), SPACE)
        await asyncio.sleep(0)
        assert queue.num_requeues(Request(SPACE, "a")) == 0
        queue.add(Request(SPACE, "a"))
        await asyncio.sleep(50)
    assert attempts.gaps[3:] == [1, 2]
    assert recorder.reasons == ["ReconcileGivenUp", "ReconcileGivenUp"]


def _of(generation: int = 0, uid: str = "u", deleted: str = "", **content: Any) -> Any:
    meta = {"name": "a", "uid": uid, "generation": generation, "deletionTimestamp": deleted}
    return receive(json.dumps({"metadata": meta, **content}).encode())[1]


@pytest.mark.parametrize(
    ("old", "new", "other"),
    [
        (None, _of(), True),
        (_of(), None, True),
        (_of(3), _of(4), True),
        (_of(3), _of(3, uid="v"), True),
        (_of(3), _of(3, deleted="2026-01-01T00:00:00Z"), True),
        (_of(), _of(deleted="2026-01-01T00:00:00Z"), True),
        (_of(data={"a": 1}), _of(data={"a": 2}), True),
        (_of(data={"a": 1}), _of(data={"a": 1}), False),
        (_of(status={"a": 1}), _of(status={"a": 2}), False),
        (_of(3, spec={"a": 1}), _of(3, spec={"a": 2}), False),  # the server says that it is the same
        (_of(3, status={"a": 1}), _of(3, status={"a": 2}), False),
    ],
)
@pytest.mark.spec("R-15")
def test_which_changes_make_it_another_task(old: Any, new: Any, other: bool) -> None:
    assert is_other_work(old, new) is other


# ------------------------------------------------------------------ terminal and blocked


@pytest.mark.spec("R-20")
async def test_a_terminal_error_waits_for_a_change_and_is_reported_once(client: Client) -> None:
    recorder = Recorded()
    attempts = Attempts(ever=TerminalError("the spec makes no sense"))
    async with Manager(client, recorder=recorder).add(Controller(PodDisruptionBudget, attempts)).running() as manager:
        await client.create(budget("a"))
        await asyncio.sleep(3600)
        assert len(attempts.times) == 1
        await client.patch(PodDisruptionBudget, "a", MergePatch({"metadata": {"labels": {"x": "y"}}}), SPACE)
        await asyncio.sleep(3600)
        assert len(attempts.times) == 2
        assert len(recorder.events) == 1  # the same problem of the same spec
        await client.patch(PodDisruptionBudget, "a", MergePatch({"spec": {"maxUnavailable": 2}}), SPACE)
        await asyncio.sleep(3600)
        numbers = manager.engines["poddisruptionbudget"].numbers
    assert len(attempts.times) == 3
    ((name, reason, text), again) = recorder.events
    assert (name, reason) == ("a", "ReconcileFailed")
    assert text == again[2]
    assert text.startswith("the spec makes no sense (not tried again until")
    assert (numbers.terminal_errors, numbers.given_up, numbers.queue.retries) == (3, 0, 0)


@pytest.mark.spec("R-20")
async def test_a_blocked_key_is_reported_once_and_heals_when_the_obstacle_is_gone(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        attempts.append(now())
        if now() < 600:
            raise BlockedError("Service web belongs to another owner")

    attempts: list[float] = []
    recorder = Recorded()
    await client.create(secret("a"))
    async with Manager(client, recorder=recorder).add(Controller(Secret, reconcile)).running() as manager:
        await asyncio.sleep(1000)
        numbers = manager.engines["secret"].numbers
    gaps = [after - before for before, after in itertools.pairwise(attempts)]
    assert all(54 <= gap <= 66 for gap in gaps)
    assert attempts[-2] < 600 < attempts[-1]
    ((name, reason, text),) = recorder.events
    assert (name, reason) == ("a", "ReconcileFailed")
    assert "belongs to another owner (tried again every 60 s)" in text
    assert (numbers.terminal_errors, numbers.results["success"]) == (0, 1)


@pytest.mark.spec("R-20")
async def test_another_message_is_another_event(client: Client) -> None:
    recorder = Recorded()
    attempts = Attempts(BlockedError("first"), BlockedError("first"), BlockedError("second"), BlockedError("second"))
    await client.create(secret("a"))
    async with Manager(client, recorder=recorder).add(Controller(Secret, attempts)).running():
        await asyncio.sleep(1000)
    assert [text.split()[0] for _, _, text in recorder.events] == ["first", "second"]


# ------------------------------------------------------------------ clean-ups


@pytest.mark.parametrize(
    ("error", "times", "reason"),
    [
        (RuntimeError("no"), [0, 1, 3, 103, 203], "ReconcileGivenUp"),
        (TerminalError("no"), [0, 100, 200, 300, 400], "ReconcileFailed"),
    ],
    ids=repr,
)
@pytest.mark.spec("R-18", "R-21")
async def test_a_clean_up_is_never_given_up(client: Client, error: Exception, times: list[float], reason: str) -> None:
    class Careful(Reconciler[Secret]):
        async def cleanup(self, ctx: Context[Secret]) -> None:
            began.append(now())
            if len(began) < 5:
                raise error

        async def reconcile(self, ctx: Context[Secret]) -> None:
            """Nothing to do."""

    began: list[float] = []
    recorder = Recorded()
    settings = Settings(base_delay=1, max_delay=100, max_retries=2)
    async with Manager(client, settings=settings, recorder=recorder).add(Controller(Secret, Careful())).running():
        await client.create(secret("a"))
        await asyncio.sleep(10)
        await client.delete(Secret, "a", SPACE)
        await asyncio.sleep(350)
        assert len(began) < 5 or reason == "ReconcileGivenUp"
        await asyncio.sleep(350)
        with pytest.raises(NotFound):
            await client.get(Secret, "a", SPACE)
    assert [round(at - began[0]) for at in began] == times
    assert recorder.reasons == [reason]


@pytest.mark.spec("R-18", "R-21")
async def test_a_deletion_starts_a_new_row(client: Client) -> None:
    class Failing(Reconciler[Secret]):
        async def reconcile(self, ctx: Context[Secret]) -> None:
            raise RuntimeError("no")

        async def cleanup(self, ctx: Context[Secret]) -> None:
            began.append(now())
            raise RuntimeError("not yet either")

    began: list[float] = []
    settings = Settings(base_delay=1, max_delay=1000, max_retries=2)
    async with Manager(client, settings=settings, recorder=Recorded()).add(Controller(Secret, Failing())).running():
        await client.create(secret("a"))
        await asyncio.sleep(100)
        await client.delete(Secret, "a", SPACE)
        await asyncio.sleep(100)
    assert [round(at - began[0]) for at in began] == [0, 1, 3]


def owner_reference(owner: Any) -> Any:
    meta = owner.metadata
    return OwnerReference(api_version="v1", kind="Secret", name=meta.name, uid=meta.uid, controller=True)
