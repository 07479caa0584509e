"""What an operator says at its start, and about what it lacks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.cache.spec import CacheSpec
from konverge.client import Client, MalformedAnswer, NotConnected, Static, TimedOut, Unauthorized
from konverge.objects import CustomResource, Model, crd
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime import Context, Controller, Manager, Use
from konverge.runtime.caches import CacheNotSynced
from konverge.runtime.config import CacheSettings, Configuration
from konverge.runtime.manager import LeaderElection, MissingPermissions
from konverge.runtime.problems import Problems
from konverge.wire.errors import ConnectionLost, NotSent
from konverge.wire.message import Request, Response, Stream, Transport

pytestmark = [pytest.mark.virtual, pytest.mark.spec("O-62")]

TOKEN = "s3cr3t-t0ken"


class LampSpec(Model):
    colour: str = ""


class LampStatus(Model):
    pass


class Lamp(CustomResource[LampSpec, LampStatus], group="tests.konverge.dev", version="v1"):
    """A kind of the operator's own."""


class Switch:
    """A way to a server that can be interrupted."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.error: Exception | None = None
        self.silent = False
        self.asked = 0

    async def send(self, request: Request) -> Response:
        await self._pass()
        return await self._inner.send(request)

    async def stream(self, request: Request) -> Stream:
        await self._pass()
        return await self._inner.stream(request)

    async def _pass(self) -> None:
        self.asked += 1
        if self.silent:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error


async def nothing(ctx: Context[Any]) -> None: ...


@pytest.fixture
def switch(server: ApiServer) -> Switch:
    return Switch(server.transport)


@pytest.fixture
async def remote(server: ApiServer, switch: Switch) -> AsyncIterator[Client]:
    credentials = Static.bearer(server.token)
    async with Client(switch, credentials=credentials, server="https://shop.example (context 'shop')") as client:
        yield client


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    caplog.set_level(logging.INFO, "konverge")
    return Lines(caplog)


class Lines:
    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def __call__(self, text: str, level: int | None = None) -> list[str]:
        return [
            record.getMessage()
            for record in self._caplog.records
            if text in record.getMessage() and level in (None, record.levelno)
        ]


async def watched(manager: Manager) -> None:
    """Let every watch be opened again, as after the end of its connection."""
    await asyncio.sleep(10)
    for informer in manager.caches.informers.values():
        for reflector in informer.reflectors:
            reflector.restart_watch()


# ------------------------------------------------------------------ the first lines


@pytest.mark.spec("O-61")
async def test_the_first_lines_say_where_and_as_whom_and_what(remote: Client, lines: Lines) -> None:
    controller = Controller(Secret, nothing, owns=[ConfigMap], namespaces=("default", "shop"), workers=3)
    election = LeaderElection(name="shop", namespace="default")
    manager = Manager(remote, leader_election=election).add(controller)
    async with manager.running():
        assert lines("connected to https://shop.example (context 'shop') as admin: Kubernetes v1.")
        (watches,) = lines("secret watches secrets in namespaces default, shop")
        assert "owns configmaps" in watches
        assert "3 workers" in watches
        assert lines("Lease default/shop")


@pytest.mark.spec("O-61")
async def test_a_server_in_this_process_is_not_asked_who_it_is(client: Client, lines: Lines) -> None:
    async with Manager(client).add(Controller(Secret, nothing)).running():
        assert lines("connected to an API server in this process")
        assert lines("leader election: none")


# ------------------------------------------------------------------ the server


async def test_a_server_that_is_down_is_a_line_at_once_and_is_waited_for(
    remote: Client, switch: Switch, lines: Lines
) -> None:
    switch.error = NotSent("connection refused; check that it runs")
    running = asyncio.create_task(Manager(remote).add(Controller(Secret, nothing)).serve(stop := asyncio.Event()))
    await asyncio.sleep(0.01)
    (line,) = lines("trying again", logging.WARNING)
    assert "https://shop.example" in line
    assert "check that it runs" in line
    await asyncio.sleep(60)
    assert len(lines("trying again", logging.WARNING)) == 3  # after 10 and 30 s
    switch.error = None
    await asyncio.sleep(10)
    assert lines("connected to https://shop.example")
    stop.set()
    await running


async def test_a_server_that_stays_down_ends_the_start_with_the_reason(remote: Client, switch: Switch) -> None:
    switch.error = NotSent("connection refused")
    config = Configuration(cache=CacheSettings(sync_timeout=30))
    began = asyncio.get_running_loop().time()
    with pytest.raises(NotConnected, match="connection refused"):
        await Manager(remote, config=config).add(Controller(Secret, nothing)).serve(asyncio.Event())
    assert asyncio.get_running_loop().time() - began == pytest.approx(30)


@pytest.mark.spec("R-04")
async def test_a_start_that_waits_for_its_server_can_be_stopped(remote: Client, switch: Switch) -> None:
    switch.error = NotSent("connection refused")
    running = asyncio.create_task(Manager(remote).add(Controller(Secret, nothing)).serve(stop := asyncio.Event()))
    await asyncio.sleep(1)
    stop.set()
    async with asyncio.timeout(0.1):
        await running


async def test_a_server_that_says_nothing_is_a_line_after_two_seconds(
    remote: Client, switch: Switch, lines: Lines
) -> None:
    switch.silent = True
    config = Configuration(cache=CacheSettings(sync_timeout=30))
    running = asyncio.create_task(
        Manager(remote, config=config).add(Controller(Secret, nothing)).serve(asyncio.Event())
    )
    await asyncio.sleep(1.9)
    assert lines("no answer") == []
    await asyncio.sleep(0.2)
    (line,) = lines("no answer", logging.WARNING)
    assert "https://shop.example" in line
    with pytest.raises(TimedOut, match=r"https://shop.example .* has not answered within 30 s"):
        await running


async def test_a_list_that_does_not_come_is_a_line_after_two_seconds(
    remote: Client, switch: Switch, lines: Lines
) -> None:
    manager = Manager(remote, check_permissions=False).add(Controller(Secret, nothing))
    running = asyncio.create_task(manager.serve(stop := asyncio.Event()))
    while not lines("connected"):
        await asyncio.sleep(0)
    switch.silent = True
    await asyncio.sleep(2.1)
    assert lines("no complete list yet of secrets", logging.WARNING)
    stop.set()
    await running


async def test_a_server_that_goes_away_is_one_line_for_all_caches_and_one_when_it_is_back(
    remote: Client, switch: Switch, lines: Lines
) -> None:
    manager = Manager(remote).add(Controller(Secret, nothing, owns=[ConfigMap]))
    async with manager.running():
        switch.error = NotSent("connection refused")
        await watched(manager)
        await asyncio.sleep(5)
        assert len(lines("trying again", logging.WARNING)) == 1
        await asyncio.sleep(3600)
        assert 5 < len(lines("trying again", logging.WARNING)) < 15
        assert lines("answers again") == []
        switch.error = None
        await asyncio.sleep(60)
        assert lines("answers again", logging.INFO) == ["https://shop.example (context 'shop') answers again"]


async def test_a_connection_that_breaks_and_comes_back_is_no_line(remote: Client, switch: Switch, lines: Lines) -> None:
    manager = Manager(remote).add(Controller(Secret, nothing, owns=[ConfigMap]))
    async with manager.running():
        switch.error = ConnectionLost("reset by peer")
        await watched(manager)
        await asyncio.sleep(0)
        asked = switch.asked
        while switch.asked < asked + 2:
            await asyncio.sleep(0)
        switch.error = None
        await asyncio.sleep(60)
        assert lines("", logging.WARNING) == []
        assert lines("answers again") == []


async def test_credentials_that_are_refused_end_the_start_at_once(server: ApiServer, lines: Lines) -> None:
    began = asyncio.get_running_loop().time()
    async with Client(Switch(server.transport), credentials=Static.bearer(TOKEN)) as client:
        with pytest.raises(Unauthorized, match="log in again"):
            await Manager(client).add(Controller(Secret, nothing)).serve(asyncio.Event())
    assert asyncio.get_running_loop().time() - began < 1


# ------------------------------------------------------------------ kinds


@pytest.mark.parametrize(
    ("program", "command"), [("", "`konverge crd lamps.py | kubectl apply -f -`"), ("lamps", "`lamps crd | kubectl")]
)
async def test_a_kind_that_is_missing_is_a_line_at_once_with_the_command_to_install_it(
    client: Client, lines: Lines, program: str, command: str
) -> None:
    manager = Manager(client).add(Controller(Lamp, nothing))
    manager.source, manager.program = "lamps.py", program
    running = asyncio.create_task(manager.serve(stop := asyncio.Event()))
    await asyncio.sleep(0.1)
    (line,) = lines("lamps.tests.konverge.dev (tests.konverge.dev/v1) is not served", logging.WARNING)
    assert command in line
    await asyncio.sleep(60)
    assert len(lines("is not served", logging.WARNING)) in (2, 3)
    await client.create(crd(Lamp))
    await asyncio.sleep(59)
    assert lines("is served now", logging.INFO) == ["lamps.tests.konverge.dev is served now"]
    stop.set()
    await running


async def test_a_kind_that_stays_away_ends_the_start_as_before(client: Client, lines: Lines) -> None:
    with pytest.raises(CacheNotSynced, match=r"lamps\.tests\.konverge\.dev"):
        await Manager(client).add(Controller(Lamp, nothing)).serve(asyncio.Event())


async def test_a_definition_that_is_deleted_and_installed_again(client: Client, lines: Lines) -> None:
    await client.create(crd(Lamp))
    await asyncio.sleep(1)
    manager = Manager(client).add(Controller(Lamp, nothing))
    async with manager.running():
        for times in (1, 2):
            assert len(lines("is not served")) == times - 1
            await client.delete(CustomResourceDefinition, "lamps.tests.konverge.dev")
            await watched(manager)
            await asyncio.sleep(1)
            assert len(lines("is not served", logging.WARNING)) == times  # at once, also the second time
            await client.create(crd(Lamp))
            await asyncio.sleep(60)
            assert len(lines("is served now")) == times


async def test_a_kind_of_others_is_not_installed_by_us_and_an_optional_one_is_no_warning(
    client: Client, lines: Lines
) -> None:
    optional = Controller(Secret, nothing, uses=[Use(Lamp, cached=True, optional=True)])
    async with Manager(client).add(optional).running():
        assert len(lines("going on without it", logging.INFO)) == 1
        assert lines("", logging.WARNING) == []
    manager = Manager(client).add(Controller(Secret, nothing, uses=[Use(Lamp, cached=True)]))
    running = asyncio.create_task(manager.serve(stop := asyncio.Event()))
    await asyncio.sleep(1)
    (line,) = lines("is not served", logging.WARNING)
    assert "kubectl get crd lamps.tests.konverge.dev" in line
    assert "konverge crd" not in line
    stop.set()
    await running


# ------------------------------------------------------------------ permissions


async def test_a_permission_that_is_missing_says_how_to_grant_it(server: ApiServer, client: Client) -> None:
    async with poor_client(server, client) as poor:
        manager = Manager(poor).add(Controller(Secret, nothing))
        manager.source = "lamps.py"
        with pytest.raises(MissingPermissions, match=r"list secrets in all namespaces.*`konverge rbac lamps\.py`"):
            await manager.serve(asyncio.Event())


async def test_a_list_that_is_refused_is_a_line_with_the_rule_and_another_when_it_is_allowed(
    server: ApiServer, client: Client, lines: Lines
) -> None:
    async with poor_client(server, client) as poor:
        manager = Manager(poor, check_permissions=False).add(Controller(Secret, nothing))
        running = asyncio.create_task(manager.serve(stop := asyncio.Event()))
        await asyncio.sleep(1)
        (line,) = lines("forbidden", logging.WARNING)
        assert 'resources: ["secrets"]' in line
        await client.create(ADMIN)
        await asyncio.sleep(60)
        assert lines("secrets can be read now", logging.INFO)
        stop.set()
        await running


ADMIN = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "poor"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "name": "poor", "namespace": "default"}],
}


@contextlib.asynccontextmanager
async def poor_client(server: ApiServer, client: Client) -> AsyncIterator[Client]:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "poor", "namespace": "default"}}
    await client.create(account)
    token = await client.request_token("poor", "default")
    async with Client(server.transport, credentials=Static.bearer(token.token)) as poor:
        yield poor


# ------------------------------------------------------------------ secrets


@pytest.mark.spec("O-64")
@pytest.mark.parametrize("error", [NotSent("refused"), ConnectionLost("reset"), None])
async def test_no_token_is_ever_logged(
    server: ApiServer, error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    switch = Switch(server.transport)
    switch.error = error
    credentials = Static.bearer(server.token if error else TOKEN)
    config = Configuration(cache=CacheSettings(sync_timeout=5))
    async with Client(switch, credentials=credentials) as client:
        with pytest.raises(Exception, match=r".+") as caught:
            await Manager(client, config=config).add(Controller(Secret, nothing)).serve(asyncio.Event())
    everything = caplog.text + repr(caught.value) + str(caught.value)
    assert TOKEN not in everything
    assert server.token not in everything


def test_a_problem_of_one_cache_is_not_taken_for_one_of_the_server() -> None:
    problems = Problems("https://k", optional=frozenset())
    secrets, maps = (CacheSpec(resource=kind.resource) for kind in (Secret, ConfigMap))
    texts = {problems._describe(spec, MalformedAnswer("no JSON")).text for spec in (secrets, maps)}
    assert texts == {f"{name} cannot be read: no JSON; trying again" for name in ("secrets", "configmaps")}
    causes = [problems._describe(spec, NotConnected("refused")).cause for spec in (secrets, maps)]
    assert causes == ["server", "server"], "of which there is one line"
