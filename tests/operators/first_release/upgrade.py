"""A cluster as the first release left it, with every object as it was stored, and this release's operator on it.

`recorded/` has what `tools/record_release.py` wrote with the operators of commit 2c8acf02, the first with all three of
them complete, in place of a first release. An `Upgrade` begins with
those objects in the store, as an API server begins with what is on its disk: uids, revisions, owners and status are
those of then, and pods go on where they were.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from konverge import clock
from konverge.apiserver.storage.records import encode, record_from
from konverge.client import Call, Client, Recording
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.kinds.authorization_v1 import SelfSubjectAccessReview
from konverge.objects.kinds.core_v1 import Event
from konverge.operators.catalog import Operator, find
from konverge.runtime import Controller, Manager
from konverge.sim.cluster import RESTLESS, Cluster
from konverge.sim.databases import Content, SimulatedDatabases
from konverge.sim.kubevirt.templates import firmware_uuid
from konverge.sim.loop import VirtualLoop

Obj = dict[str, Any]
Key = tuple[str, str]
"""Table, and namespace/name."""

RECORDED = Path(__file__).parent / "recorded"
SPACE = "default"
OLD, HELM, NEW = "old definitions", "definitions of helm upgrade", "new definitions"
"""Helm leaves definitions alone, but for those that it has as templates, because they name a conversion."""
DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions"
INSTANCES = "kubevirt.io/virtualmachineinstances"
"""KubeVirt has always made their board's uuid from the name, and writes it into machines now; the simulation of then
computed it in another way, so that it would differ."""
SIMULATED = b"simulated-kubevirt"
"""In the definitions of kinds that are not ours: who installed them."""
NO_WRITES = (Event.resource, SelfSubjectAccessReview.resource, CustomResourceDefinition.resource)
"""Events inform, and reviews ask. In a definition is where the conversion is served, for a test as long as it runs."""
SEED = 48
"""Not that of the recording: new objects would get the uids of those that are there."""
REST = 600.0
"""Virtual seconds after which nothing is left to do: several times the longest interval of a controller."""


@cache
def recorded(name: str) -> tuple[Obj, list[tuple[str, bytes]]]:
    """The head, and the objects by table as the store has them."""
    head, *lines = map(json.loads, (RECORDED / f"{name}.jsonl").read_text().splitlines())
    for line in lines:
        if line["table"] == INSTANCES:
            obj = line["object"]
            obj["spec"]["domain"]["firmware"]["uuid"] = firmware_uuid(obj["metadata"]["name"])
    return head, [(line["table"], encode(line["object"])) for line in lines]


def recorded_uids(name: str) -> dict[Key, str]:
    records = [(table, record_from(data)) for table, data in recorded(name)[1] if _counts(table)]
    return {(table, record.key): record.decode()["metadata"]["uid"] for table, record in records}


class Upgrade:
    """The cluster of one operator, between two of its versions."""

    def __init__(self, cluster: Cluster, operator: Operator, controllers: Callable[[], list[Controller[Any]]]) -> None:
        self.cluster = cluster
        self.client = cluster.client
        self.operator = operator
        self.databases = SimulatedDatabases()
        self.recording: Recording
        self.converts = False
        self._controllers = controllers

    @asynccontextmanager
    async def operating(self, client: Client | None = None) -> AsyncIterator[None]:
        """This release's operator runs; its requests are in `recording`."""
        self.recording = Recording(client or self.client)
        manager = Manager(
            self.recording, name=self.operator.identity, shutdown_timeout=1.0, check_permissions=client is None
        )
        for controller in self._controllers():
            manager.add(controller)
        if manager.webhooks is not None:
            place = self.cluster.webhook_place()
            manager.webhooks = replace(manager.webhooks, place=place) if self.converts else None
        async with manager.running():
            yield

    async def install_definitions(self, which: str = NEW) -> None:
        """Those of this release, over those that are there."""
        for definition in self.operator.definitions():
            if which == NEW or len(definition["spec"]["versions"]) > 1:
                await self.client.apply(definition, field_manager="helm", force=True)
        self.converts = True
        await self.rest(5.0)

    async def put_back_definitions(self) -> None:
        """Those of the first release, as `kubectl replace` does it."""
        for table, data in recorded(self.operator.name)[1]:
            if table == DEFINITIONS and SIMULATED not in data:
                old = json.loads(data)
                live = await self.client.get(CustomResourceDefinition.resource, old["metadata"]["name"])
                await self.client.replace({**live, "spec": old["spec"]})
        self.converts = False
        await self.rest(5.0)

    async def rest(self, seconds: float = REST) -> None:
        await self.cluster.clock.advance(seconds)

    # -------------------------------------------------------------- looking

    def writes(self) -> list[str]:
        """What the operator sent since this was last asked, as `patch nacos/status embedded`. Events only inform."""
        calls = [call for call in self.recording.writes if call.resource not in NO_WRITES]
        self.recording.calls.clear()
        return list(map(_told, calls))

    def objects(self) -> dict[Key, Obj]:
        """Everything in the store, as it is; without Events, Leases and definitions."""
        return {
            (name, key): record.decode()
            for name, table in self.cluster.server.store.tables.items()
            if _counts(name)
            for key, record in table.records.items()
        }

    @property
    def revision(self) -> int:
        return self.cluster.server.store.revision

    def stored(self, since: int) -> Counter[Key]:
        """How often each object was stored after a revision, whoever wrote it."""
        changes = self.cluster.server.store.changes(since)
        return Counter((table.name, event.key) for table, event in changes if _counts(table.name))

    async def events(self) -> list[str]:
        """What the operator said about its objects, as `Warning Failed embedded`, as often as it said it."""
        kinds = {kind.resource.kind for kind in self.operator.kinds}
        events = [e for e in await self.client.list(Event, SPACE) if e.involved_object.kind in kinds]
        return [f"{e.type} {e.reason} {e.involved_object.name}" for e in events for _ in range(e.count or 1)]

    def uids(self) -> dict[Key, str]:
        return {key: obj["metadata"]["uid"] for key, obj in self.objects().items()}

    def own(self) -> dict[Key, Obj]:
        """The custom resources of the operator."""
        tables = {kind.resource.group_resource for kind in self.operator.kinds}
        return {key: obj for key, obj in self.objects().items() if _dotted(key[0]) in tables}


def _counts(table: str) -> bool:
    return table not in RESTLESS and table != DEFINITIONS


def _dotted(table: str) -> str:
    group, _, plural = table.partition("/")
    return f"{plural}.{group}"


def _told(call: Call) -> str:
    resource = call.resource.plural if call.resource is not None else ""
    return f"{call.verb} {'/'.join(filter(None, (resource, call.subresource)))} {call.name}"


@asynccontextmanager
async def an_upgrade(name: str, definitions: str = OLD) -> AsyncIterator[Upgrade]:
    """The cluster of the first release at rest, without an operator, and with these definitions."""
    head, rows = recorded(name)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.jump_wall_clock(head["time"] - clock.now())
    cluster = Cluster(seed=SEED)
    store = cluster.server.store
    for table, data in rows:
        store.table(table).restore(record_from(data))
    store.open(head["revision"], head["revision"])
    async with cluster, _outside(cluster, head) as upgrade:
        await upgrade.rest()
        assert recorded_uids(name).items() <= upgrade.uids().items(), "the cluster goes on with what was recorded"
        if definitions != OLD:
            await upgrade.install_definitions(definitions)
        yield upgrade


@asynccontextmanager
async def _outside(cluster: Cluster, head: Obj) -> AsyncIterator[Upgrade]:
    """What the operator talks to, in the state in which the first release left it."""
    operator = find(head["operator"])
    if operator.name == "nacos":
        from konverge.operators.nacos.operator import controllers
        from konverge.operators.nacos.server import HttpNacosServers
        from konverge.sim.nacos import QUICK, SimulatedNacos

        databases = _databases(head["databases"])
        async with SimulatedNacos(cluster, databases=databases, timings=QUICK) as servers:
            upgrade = Upgrade(cluster, operator, lambda: controllers(databases, HttpNacosServers(servers.connect)))
            upgrade.databases = databases
            yield upgrade
    elif operator.name == "wukong":
        from konverge.sim.kubevirt import QUICK as FAST
        from konverge.sim.kubevirt import SimulatedKubeVirt

        async with SimulatedKubeVirt(cluster, timings=FAST):
            yield Upgrade(cluster, operator, operator.controllers)
    else:
        yield Upgrade(cluster, operator, operator.controllers)


def _databases(contents: list[Obj]) -> SimulatedDatabases:
    databases = SimulatedDatabases()
    for item in contents:
        server = databases.add_server(item["host"], item["port"], item["engine"])
        server.add("nacos", "nacos", "change-me").content = Content(
            tables={table: frozenset(columns) for table, columns in item["tables"].items()},
            version=item["version"],
            users={user: (hashed, enabled) for user, (hashed, enabled) in item["users"].items()},
            admins=set(item["admins"]),
        )
    return databases
