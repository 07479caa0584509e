"""A small operator with one mistake at a time: a Shop is a Deployment, a Service, and ConfigMaps."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

from konverge.check.model import Alarm, Plan, Run, Setup, Subject, Task
from konverge.check.oracles import judge as judge_all
from konverge.check.reference import Reference, reference_of
from konverge.check.run import VirtualRest, perform
from konverge.check.workload import basic
from konverge.sim import Cluster, VirtualLoop
from tests.check.small import CONFIGS, SERVICES, Api, Caches, Small

Obj = dict[str, Any]

SHOPS = "/apis/example.com/v1/namespaces/default/shops"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
TEXTS: Obj = {"type": "object", "additionalProperties": {"type": "string"}}
SPEC: Obj = {
    "type": "object",
    "required": ["replicas"],
    "properties": {
        "replicas": {"type": "integer", "minimum": 0, "maximum": 9},
        "image": {"type": "string", "default": "shop:1"},
        "labels": TEXTS,
        "greeting": {"type": "string"},
        "color": {"type": "string", "default": "red"},
        "metrics": {
            "type": "object",
            "properties": {"enabled": {"type": "boolean"}, "path": {"type": "string"}},
        },
    },
}
DEFINITION: Obj = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "shops.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Shop", "plural": "shops", "singular": "shop"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": SPEC,
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}
SAMPLE: Obj = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner", "namespace": "default"},
    "spec": {"replicas": 1, "image": "shop:1", "greeting": "hello"},
}


def shop(mistake: str = "") -> Small:
    """`mistake` is one of MISTAKES, or none."""
    return Small(functools.partial(_reconcile, mistake), (SHOPS, DEPLOYMENTS, SERVICES, CONFIGS))


MISTAKES = (
    "keeps labels",
    "ignores the second change",
    "remembers members",
    "waits for health",
    "waits for its first pod",
    "keeps a part that is off",
    "ignores the color",
    "labels what is new",
)


async def _reconcile(mistake: str, api: Api, caches: Caches) -> None:
    for name, obj in caches[SHOPS].items():
        if not obj["metadata"].get("deletionTimestamp"):
            await _Shop(mistake, api, caches, name, obj).serve()


class _Shop:
    def __init__(self, mistake: str, api: Api, caches: Caches, name: str, obj: Obj) -> None:
        self.mistake, self.api, self.caches, self.name, self.obj = mistake, api, caches, name, obj
        self.spec: Obj = obj["spec"]

    def meta(self, name: str, labels: Obj | None = None) -> Obj:
        owner = {key: self.obj[key] for key in ("apiVersion", "kind")}
        owner |= {"name": self.name, "uid": self.obj["metadata"]["uid"], "controller": True}
        return {"name": name, "ownerReferences": [owner], **({"labels": labels} if labels else {})}

    async def serve(self) -> None:
        if self.mistake == "waits for health" and not self.is_healthy():
            return
        if self.mistake == "waits for its first pod" and self.is_starting():
            return
        await self.deployment()
        await self.service()
        await self.config()
        await self.metrics()
        await self.members()
        await self.status()

    def is_starting(self) -> bool:
        present = self.caches[DEPLOYMENTS].get(self.name)
        return present is not None and not (present.get("status") or {}).get("availableReplicas")

    def is_healthy(self) -> bool:
        present = self.caches[DEPLOYMENTS].get(self.name)
        if present is None:
            return True
        status, wanted = present.get("status") or {}, present["spec"]["replicas"]
        return all(status.get(name, 0) == wanted for name in ("replicas", "updatedReplicas", "readyReplicas"))

    async def ensure(self, path: str, wanted: Obj, same: Callable[[Obj, Obj], bool]) -> None:
        name = wanted["metadata"]["name"]
        present = self.caches[path].get(name)
        if present is None:
            self.caches[path][name] = await self.api.create(path, wanted)
        elif not same(present, wanted):
            metadata = {**present["metadata"], **wanted["metadata"]}
            if "labels" not in wanted["metadata"] and self.mistake != "keeps labels":
                metadata.pop("labels", None)
            self.caches[path][name] = await self.api.update(path, {**present, **wanted, "metadata": metadata})

    async def deployment(self) -> None:
        labels = {"shop": self.name}
        pod = {"containers": [{"name": "shop", "image": self.spec["image"]}]}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"replicas": self.spec["replicas"], "selector": {"matchLabels": labels}, "template": template}
        wanted = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": self.meta(self.name), "spec": spec}

        def same(present: Obj, wanted: Obj) -> bool:
            one, other = present["spec"], wanted["spec"]
            images = [item["template"]["spec"]["containers"][0]["image"] for item in (one, other)]
            return bool(one["replicas"] == other["replicas"] and images[0] == images[1])

        await self.ensure(DEPLOYMENTS, wanted, same)

    async def service(self) -> None:
        labels = dict(self.spec.get("labels") or {})
        present = self.caches[SERVICES].get(self.name)
        if self.mistake == "keeps labels" and present is not None:
            labels = {**(present["metadata"].get("labels") or {}), **labels}
        if self.mistake == "labels what is new" and present is not None:
            labels = present["metadata"].get("labels") or {}
        wanted = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self.meta(self.name, labels),
            "spec": {"selector": {"shop": self.name}, "ports": [{"port": 80}]},
        }

        def same(present: Obj, wanted: Obj) -> bool:
            return bool((present["metadata"].get("labels") or {}) == labels)

        if present is not None:
            wanted["spec"] = present["spec"]
        await self.ensure(SERVICES, wanted, same)

    async def config(self) -> None:
        data = {"greeting": self.spec.get("greeting", "")}
        if self.mistake != "ignores the color":
            data["color"] = self.spec["color"]
        present = self.caches[CONFIGS].get(self.name)
        if self.mistake == "ignores the second change" and present is not None:
            if present["data"].get("changed"):
                return
            if present["data"]["greeting"] != data["greeting"]:
                data["changed"] = "yes"
        await self.data_of(self.name, data)

    async def data_of(self, name: str, data: Obj) -> None:
        wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": self.meta(name), "data": data}
        await self.ensure(CONFIGS, wanted, lambda present, wanted: bool(present["data"] == wanted["data"]))

    async def metrics(self) -> None:
        name = f"{self.name}-metrics"
        metrics = self.spec.get("metrics") or {}
        if metrics.get("enabled"):
            await self.data_of(name, {"path": metrics.get("path", "/")})
        elif name in self.caches[CONFIGS] and self.mistake != "keeps a part that is off":
            await self.api.delete(CONFIGS, name)

    async def members(self) -> None:
        for member in range(self.spec["replicas"]):
            await self.data_of(f"{self.name}-member-{member}", {"member": str(member)})
        for name in list(self.caches[CONFIGS]):
            _, infix, number = name.rpartition("-member-")
            if infix and int(number) >= self.spec["replicas"] and self.mistake != "remembers members":
                await self.api.delete(CONFIGS, name)

    async def status(self) -> None:
        wanted = {"replicas": self.spec["replicas"], "ready": self.is_healthy()}
        if self.obj.get("status") != wanted:
            await self.api.patch(SHOPS, f"{self.name}/status", {"status": wanted})


def run(mistake: str, plan: Plan, seed: int = 0) -> Run:
    task = Task(
        subject=Subject(target="shop"),
        setup=Setup(objects=(DEFINITION,), nodes=1),
        steps=basic([SAMPLE]),
        plan=plan,
        seed=seed,
    )
    factory: Any = functools.partial(VirtualLoop, seed)
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_performed(task, shop(mistake)))


async def _performed(task: Task, operator: Small) -> Run:
    async with Cluster(seed=task.seed, nodes=task.setup.nodes) as cluster:
        for obj in task.setup.objects:
            await cluster.client.create(obj)
        await cluster.settle()
        return await perform(task, operator, VirtualRest(), cluster)


ABOUT_INPUT = frozenset(("state", "effect", "path-dependence", "recovery", "misoperation"))


def judge(run: Run, reference: Reference) -> list[Alarm]:
    """What the oracles about input say."""
    return [alarm for alarm in judge_all(run, reference) if alarm.oracle in ABOUT_INPUT]


@functools.cache
def reference(mistake: str) -> Reference:
    """Of one run only: nothing varies on virtual time but what is never compared."""
    first = run(mistake, Plan("reference"))
    return reference_of(first, first)
