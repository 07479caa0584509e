"""Requests to a server of which some find no seat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.config import AuthSettings, Config
from konverge.apiserver.flow_control import control
from konverge.apiserver.request.call import Call
from konverge.wire.message import Response
from tests.apiserver.api import Api

pytestmark = pytest.mark.spec("S-50")

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
EVERYTHING = {
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    ],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}
QUEUE = {"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 1}}
UIDS = ("x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid")
USER = "jane"


class Held:
    """Holds requests about ConfigMaps until they are let go."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.at: list[asyncio.Event] = []
        self.tasks: list[asyncio.Task[Response]] = []
        api.server.extensions.before["", "configmaps"] = self._hold

    async def _hold(self, call: Call) -> None:
        event = asyncio.Event()
        self.at.append(event)
        await event.wait()

    async def ask(self, user: str = USER, path: str = MAPS) -> asyncio.Task[Response]:
        """A request that has come as far as it can."""
        task = asyncio.create_task(self._api.send("GET", path, impersonate_user=user))
        self.tasks.append(task)
        for _ in range(20):
            await asyncio.sleep(0)
        return task

    async def let_go(self) -> None:
        for event in self.at:
            event.set()
        await asyncio.sleep(0)

    async def end(self) -> None:
        while not all(task.done() for task in self.tasks):
            await self.let_go()


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    auth = AuthSettings(always_allow=True)
    async with ApiServer(config=Config(auth=auth, seats=100)) as server:
        yield Api(server)


async def level(api: Api, response: dict[str, Any], shares: int = 1, **limited: Any) -> control.Level:
    """One for jane alone; one share is one seat."""
    whole = {"nominalConcurrencyShares": shares, "borrowingLimitPercent": 0, "limitResponse": response, **limited}
    spec: dict[str, Any] = {"type": "Limited", "limited": whole}
    await api.call("POST", f"{FLOW}/prioritylevelconfigurations", {"metadata": {"name": "own"}, "spec": spec})
    spec = {
        "priorityLevelConfiguration": {"name": "own"},
        "matchingPrecedence": 50,
        "rules": [{"subjects": [{"kind": "User", "user": {"name": USER}}], **EVERYTHING}],
    }
    await api.call("POST", f"{FLOW}/flowschemas", {"metadata": {"name": "own"}, "spec": spec})
    assert (await api.send("GET", "/version", impersonate_user=USER)).status == 200
    return api.server.flows.levels["own"]


async def uid(api: Api, plural: str, name: str) -> str:
    return str((await api.call("GET", f"{FLOW}/{plural}/{name}"))["metadata"]["uid"])


@pytest.mark.parametrize(
    ("path", "user", "schema", "name"),
    [
        ("/api/v1/pods", "", "exempt", "exempt"),
        ("/api/v1/pods", "someone", "global-default", "global-default"),
        ("/readyz", "someone", "probes", "exempt"),
        ("/readyz/ping", "someone", "probes", "exempt"),
        ("/readyzx", "someone", "global-default", "global-default"),
        ("/api/v1/nodes", "system:kube-scheduler", "kube-scheduler", "workload-high"),
        ("/api/v1/pods", "system:serviceaccount:kube-system:a", "kube-system-service-accounts", "workload-high"),
        ("/api/v1/pods", "system:serviceaccount:kube-systemx:a", "service-accounts", "workload-low"),
        (
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/a",
            "system:kube-scheduler",
            "system-leader-election",
            "leader-election",
        ),
    ],
)
async def test_an_answer_names_schema_and_level(api: Api, path: str, user: str, schema: str, name: str) -> None:
    more = {"impersonate_user": user} if user else {}
    for _ in range(2):  # found, and remembered
        headers = (await api.send("GET", path, **more)).headers
        expected = [await uid(api, "flowschemas", schema), await uid(api, "prioritylevelconfigurations", name)]
        assert [headers.get(field) for field in UIDS] == expected


async def test_what_lasts_as_long_as_the_client_likes_is_not_counted(api: Api) -> None:
    headers = (await api.send("GET", "/api/v1/namespaces/default/pods/a/log", impersonate_user="someone")).headers
    assert not headers.get(UIDS[0])


async def test_who_finds_no_seat_is_refused(api: Api) -> None:
    own = await level(api, {"type": "Reject"}, shares=0)
    held = Held(api)
    first = await held.ask()
    refused = await (await held.ask())
    assert (refused.status, refused.body) == (429, b"Too many requests, please try again later.\n")
    assert refused.headers.get("retry-after") == "1"
    assert refused.headers.get("content-type") == "text/plain; charset=utf-8"
    assert refused.headers.get(UIDS[0]) == await uid(api, "flowschemas", "own")
    assert (await api.send("GET", "/api/v1/pods")).status == 200, "others are not concerned"
    assert (await api.send("GET", "/version", impersonate_user=USER)).status == 429
    await held.end()
    assert (await first).status == 200
    assert (own.queues.executing, own.queues.in_use) == (0, 0)
    page = (await api.send("GET", "/metrics")).body.decode()
    sample = 'apiserver_flowcontrol_rejected_requests_total{flow_schema="own",priority_level="own",reason='
    assert f'{sample}"concurrency-limit"}} 2\n' in page
    assert 'apiserver_flowcontrol_dispatched_requests_total{flow_schema="own",priority_level="own"} 2\n' in page
    assert 'apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"} 41\n' in page


async def test_who_waits_has_its_turn(api: Api) -> None:
    own = await level(api, QUEUE)
    held = Held(api)
    first, second = await held.ask(), await held.ask()
    assert (own.queues.in_use, own.queues.waiting, own.free) == (1, 1, 0)
    assert (await (await held.ask())).status == 429, "the queue is full"
    await held.let_go()
    assert (await first).status == 200
    assert not second.done(), "it is held now"
    await held.end()
    assert (await second).status == 200
    assert (own.queues.in_use, own.queues.waiting, own.free) == (0, 0, 1)


async def test_who_goes_away_leaves_its_place(api: Api) -> None:
    own = await level(api, QUEUE)
    held = Held(api)
    first, second = await held.ask(), await held.ask()
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert (own.queues.waiting, own.queues.in_use) == (0, 1)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert (own.queues.waiting, own.queues.in_use, own.free) == (0, 0, 1)


async def test_who_waits_for_long_is_refused(api: Api) -> None:
    own = await level(api, QUEUE)
    held = Held(api)
    await held.ask()
    late = await api.send("GET", MAPS, query={"timeout": "40ms"}, impersonate_user=USER)
    assert late.status == 429
    (schema,) = [schema for schema in api.server.flows.counted() if schema.name == "own"]
    assert schema.rejected == {"time-out": 1}
    assert own.queues.waiting == 0
    await held.end()


async def test_a_level_borrows_what_others_do_not_need(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    own = await level(api, QUEUE, borrowingLimitPercent=None)
    nominal = own.share.nominal
    held = Held(api)
    for _ in range(nominal + 1):
        await held.ask()
    assert (own.queues.in_use, own.queues.waiting) == (nominal, 1)
    monkeypatch.setattr(control, "ADJUST_EVERY", 0.0)
    api.server.flows.stop()  # the timer of before
    api.server.flows._timer = None
    api.server.flows._adjust_soon()
    while own.queues.waiting:
        await asyncio.sleep(0)
    assert own.queues.limits.seats > nominal
    assert own.queues.in_use == nominal + 1
    assert sum(one.queues.limits.seats for one in api.server.flows.levels.values()) <= 100 + len(
        api.server.flows.levels
    )
    await held.end()


async def test_what_is_answered_without_waiting_needs_no_seat(api: Api) -> None:
    own = await level(api, {"type": "Reject"}, shares=0)
    for _ in range(3):
        assert (await api.send("GET", MAPS, impersonate_user=USER)).status == 200
    watch = api.request("GET", MAPS, query={"watch": "true"}, impersonate_user=USER)
    stream = await api.server.transport.stream(watch)
    assert (stream.status, own.queues.in_use) == (200, 0), "a watch has its seat until it has begun"
    assert (await api.send("GET", MAPS, impersonate_user=USER)).status == 200
    await stream.aclose()


async def test_the_configuration_is_followed(api: Api) -> None:
    own = await level(api, QUEUE)
    before = own.queues.limits
    path = f"{FLOW}/prioritylevelconfigurations/own"
    changed = {"spec": {"limited": {"nominalConcurrencyShares": 245}}}
    await api.call("PATCH", path, changed, content_type="application/merge-patch+json")
    await api.send("GET", "/version", impersonate_user=USER)
    assert api.server.flows.levels["own"].queues.limits.seats == 50 > before.seats
    await api.call("DELETE", path)
    headers = (await api.send("GET", "/version", impersonate_user=USER)).headers
    assert headers.get(UIDS[0]) == await uid(api, "flowschemas", "global-default"), (
        "a schema without a level is not used"
    )
    assert "own" not in api.server.flows.levels


async def test_a_long_list_takes_several_seats(api: Api) -> None:
    own = await level(api, QUEUE, shares=245)
    for number in range(201):
        api.server.objects.create("", "configmaps", {"metadata": {"name": f"m{number}", "namespace": "default"}})
    held = Held(api)
    await held.ask()
    assert own.queues.in_use == 3
    await held.ask(path=f"{MAPS}/m1")
    assert own.queues.in_use == 4
    await held.end()
    assert own.queues.in_use == 0
