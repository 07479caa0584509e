"""Small operators for tests of the checker, written as old Go operators are: informers that list what the API server
has cached (resourceVersion=0), watch from there, and call one function after every event."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from konverge.check.gate.core import Gate
from konverge.check.model import Apply, Delete, Plan, Run, Setup, Step, Subject, Task, decode_task, encode
from konverge.check.operator import Incarnation, Link
from konverge.check.reference import Reference, reference_of
from konverge.check.run import Rest, VirtualRest, perform
from konverge.sim import Cluster, VirtualLoop
from konverge.wire.in_process import Direct
from konverge.wire.message import Headers, Request

Obj = dict[str, Any]

THINGS = "/apis/demo.dev/v1/namespaces/default/things"
CONFIGS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
SETS = "/apis/apps/v1/namespaces/default/statefulsets"
SERVICES = "/api/v1/namespaces/default/services"

DEFINITION: Obj = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.demo.dev"},
    "spec": {
        "group": "demo.dev",
        "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
                "subresources": {"status": {}},
            }
        ],
    },
}


CONVERTED: Obj = {
    **DEFINITION,
    "spec": {
        **DEFINITION["spec"],
        "versions": [
            *DEFINITION["spec"]["versions"],
            {**DEFINITION["spec"]["versions"][0], "name": "v2", "served": False, "storage": False},
        ],
        "conversion": {
            "strategy": "Webhook",
            "webhook": {"clientConfig": {"url": "https://127.0.0.1:1"}, "conversionReviewVersions": ["v1"]},
        },
    },
}
"""With a second version, which is not served."""


def thing(name: str = "a", **spec: Any) -> Obj:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "demo.dev/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


def create(name: str, **spec: Any) -> Step:
    return Step(name, (Apply(thing(**spec)),))


def delete(name: str = "delete") -> Step:
    return Step(name, (Delete("demo.dev/v1", "Thing", "default", "a"),))


class Refused(Exception):
    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status}: {body[:200].decode(errors='replace')}")
        self.status = status


class Api:
    """Plain requests."""

    def __init__(self, link: Link, token: str) -> None:
        self._link = link
        self._token = token

    def request(self, method: str, target: str, body: Obj | None = None, media: str = "application/json") -> Request:
        headers = Headers.of({"authorization": f"Bearer {self._token}", "content-type": media})
        return Request(method, target, headers, b"" if body is None else json.dumps(body).encode())

    async def call(self, method: str, target: str, body: Obj | None = None, media: str = "application/json") -> Obj:
        response = await self._link.send(self.request(method, target, body, media))
        if response.status >= 400:
            raise Refused(response.status, response.body)
        answer: Obj = json.loads(response.body)
        return answer

    async def get(self, path: str, name: str) -> Obj | None:
        try:
            return await self.call("GET", f"{path}/{name}")
        except Refused as error:
            if error.status == 404:
                return None
            raise

    async def create(self, path: str, obj: Obj) -> Obj:
        return await self.call("POST", path, obj)

    async def update(self, path: str, obj: Obj) -> Obj:
        return await self.call("PUT", f"{path}/{obj['metadata']['name']}", obj)

    async def patch(self, path: str, name: str, patch: Obj) -> Obj:
        return await self.call("PATCH", f"{path}/{name}", patch, "application/merge-patch+json")

    async def delete(self, path: str, name: str, uid: str = "") -> None:
        options = {"preconditions": {"uid": uid}} if uid else None
        with suppress(Refused):
            await self.call("DELETE", f"{path}/{name}", options)

    async def lines(self, target: str) -> Any:
        stream = await self._link.stream(self.request("GET", target))
        rest = b""
        try:
            async for chunk in stream:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield json.loads(line)
        finally:
            await stream.aclose()


Caches = dict[str, dict[str, Obj]]
Reconcile = Callable[[Api, Caches], Awaitable[None]]


class Small:
    """An operator of one function; `first` is the resourceVersion of the first lists ("0", or "" for fresh ones)."""

    name = "small"

    def __init__(
        self,
        reconcile: Reconcile,
        watches: Sequence[str] = (THINGS,),
        first: str = "0",
        life: Callable[[Small, Link, str], Life] | None = None,
    ) -> None:
        self.reconcile, self.watches, self.first = reconcile, watches, first
        self.life = life or Life
        self.seen: list[tuple[str, str, str]] = []
        """Type, name and resourceVersion of every event, of all incarnations; LISTED with the list's."""

    async def start(self, cluster: Cluster, gate: Gate) -> Incarnation:
        return self.life(self, Link(Direct(gate.handle)), cluster.server.token)

    async def aclose(self) -> None:
        pass


class Life:
    exit_code: int | None = None

    def __init__(self, small: Small, link: Link, token: str) -> None:
        self._small, self._link = small, link
        self._api = Api(link, token)
        self._caches: Caches = {}
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for path in self._small.watches:
                group.create_task(self._informer(path))
            while True:
                await self._news.wait()
                self._news.clear()
                await asyncio.sleep(0.01)
                if len(self._caches) == len(self._small.watches):
                    await self._reconcile()

    async def _reconcile(self) -> None:
        try:
            await self._small.reconcile(self._api, self._caches)
        except Refused:
            await asyncio.sleep(1.0)
            self._news.set()

    async def _informer(self, path: str) -> None:
        version = self._small.first
        while True:
            try:
                version = await self._list_and_watch(path, version)
            except Refused:
                version = ""
            await asyncio.sleep(1.0)

    async def _list_and_watch(self, path: str, version: str) -> str:
        """Returns the version to list at next: none after a 410, so that the list is fresh."""
        seen = self._small.seen
        target = f"{path}?resourceVersion={version}" if version else path
        listed = await self._api.call("GET", target)
        position = listed["metadata"]["resourceVersion"]
        seen.append(("LISTED", path.rpartition("/")[2], position))
        self._caches[path] = {item["metadata"]["name"]: item for item in listed["items"]}
        self._news.set()
        while True:
            watch = f"{path}?watch=true&allowWatchBookmarks=true&resourceVersion={position}&timeoutSeconds=100000"
            async for event in self._api.lines(watch):
                if event["type"] == "ERROR":
                    seen.append(("ERROR", path.rpartition("/")[2], str(event["object"]["code"])))
                    return ""
                metadata = event["object"]["metadata"]
                position = metadata["resourceVersion"]
                if event["type"] == "BOOKMARK":
                    continue
                seen.append((event["type"], metadata["name"], position))
                if event["type"] == "DELETED":
                    self._caches[path].pop(metadata["name"], None)
                else:
                    self._caches[path][metadata["name"]] = event["object"]
                self._news.set()
            await asyncio.sleep(1.0)

    async def ended(self) -> str:
        await asyncio.wait([self._task])
        return "it ended"

    async def kill(self) -> None:
        self._link.cut()
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._link.aclose()
        with suppress(BaseException):
            self._task.result()

    def log(self) -> list[str]:
        return []


def run(
    make: Callable[[], Small],
    steps: Sequence[Step],
    plan: Plan | None = None,
    *,
    seed: int = 0,
    nodes: int = 0,
    patience: float = 0.0,
    definition: Obj = DEFINITION,
    rest: Rest | None = None,
) -> Run:
    """One run of a small operator."""
    task = Task(
        subject=Subject(target="small"),
        setup=Setup(objects=(definition,), nodes=nodes),
        steps=tuple(steps),
        plan=plan or Plan("reference"),
        seed=seed,
        patience=patience,
    )
    factory: Any = functools.partial(VirtualLoop, seed)
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_performed(decode_task(encode(task)), make(), rest or VirtualRest()))


async def _performed(task: Task, operator: Small, rest: Rest) -> Run:
    async with Cluster(seed=task.seed, nodes=task.setup.nodes) as cluster:
        for obj in task.setup.objects:
            await cluster.client.create(obj)
        await cluster.settle()
        return await perform(task, operator, rest, cluster)


def reference(make: Callable[[], Small], steps: Sequence[Step]) -> Reference:
    return reference_of(run(make, steps), run(make, steps, seed=1))
