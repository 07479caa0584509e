"""One reconcile at a time: controllers that are held, the reconciles they are allowed, and what they asked for in each.

`Observed` is a client that records the calls of the controller being stepped; a `Step` is one reconcile with the
calls that it made. `stateful_set_pods` stands in for a StatefulSet controller that is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from konverge.client import Call, Client, MergePatch, NotFound, Wrapper
from konverge.client.call import Caller
from konverge.objects.codec import to_dict
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import Pod
from konverge.runtime import Request
from konverge.sim.kubelet.behaviour import ADDRESS, ANNOTATION

_noted: ContextVar[list[Call] | None] = ContextVar("noted_calls", default=None)


class ObservedCalls(Wrapper):
    """Passes calls on, and records those of a reconcile."""

    def adjust(self, call: Call) -> None:
        calls = _noted.get()
        if calls is not None:
            calls.append(call)


class Observed(Client):
    """A client whose calls can be noted."""

    def __init__(self, client: Client) -> None:
        caller: Caller = ObservedCalls(client.caller)
        self._use_caller(caller, client.mapper)


@contextmanager
def noting() -> Iterator[list[Call]]:
    """The calls that are made inside, by this task and those that it starts."""
    calls: list[Call] = []
    token = _noted.set(calls)
    try:
        yield calls
    finally:
        _noted.reset(token)


@dataclass(frozen=True, slots=True)
class Step:
    """One reconcile that was let through."""

    request: Request
    reasons: tuple[object, ...]
    calls: list[Call]

    @property
    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.writes]

    def __str__(self) -> str:
        writes = ", ".join(f"{call.verb} {call.target().partition('?')[0]}" for call in self.writes)
        return f"{self.request}: {writes or 'no writes'}"


# ------------------------------------------------------------------ pods on demand


async def stateful_set_pods(
    client: Client, name: str, namespace: str, *, count: int | None, ready: int | None, ip: str
) -> list[Pod]:
    """The pods that a StatefulSet should have: missing ones are made, surplus ones deleted, the first so many ready."""
    owner = await client.get(StatefulSet, name, namespace)
    wanted = (owner.spec.replicas if owner.spec.replicas is not None else 1) if count is None else count
    shining = wanted if ready is None else ready
    pods = [await _ensure(client, owner, ordinal, ready=ordinal < shining, ip=ip) for ordinal in range(wanted)]
    await _drop_surplus(client, owner, wanted)
    return pods


async def _ensure(client: Client, owner: StatefulSet, ordinal: int, *, ready: bool, ip: str) -> Pod:
    name, space = f"{owner.metadata.name}-{ordinal}", owner.metadata.namespace
    notes: dict[str, Any] = {ANNOTATION: None if ready else "never-ready"}
    if ip:
        notes[ADDRESS] = ip
    try:
        await client.get(Pod, name, space)
    except NotFound:
        made = _pod(owner, ordinal)
        made["metadata"]["annotations"] |= {key: value for key, value in notes.items() if value}
        await client.create(made, resource=Pod.resource)
    return await client.patch(Pod, name, MergePatch({"metadata": {"annotations": notes}}), space)


async def _drop_surplus(client: Client, owner: StatefulSet, wanted: int) -> None:
    for pod in await client.list(Pod, owner.metadata.namespace):
        mine = any(reference.uid == owner.metadata.uid for reference in pod.metadata.owner_references)
        ordinal = pod.metadata.name.rpartition("-")[2]
        if mine and ordinal.isdigit() and int(ordinal) >= wanted:
            await client.delete(Pod, pod.metadata.name, pod.metadata.namespace)


def _pod(owner: StatefulSet, ordinal: int) -> dict[str, Any]:
    name = f"{owner.metadata.name}-{ordinal}"
    template = to_dict(owner.spec.template)
    meta = template.get("metadata") or {}
    labels = {
        **(meta.get("labels") or {}),
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
    }
    reference = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    spec = {**template["spec"], "hostname": name}
    if owner.spec.service_name:
        spec["subdomain"] = owner.spec.service_name
    metadata = {
        "name": name,
        "namespace": owner.metadata.namespace,
        "labels": labels,
        "annotations": dict(meta.get("annotations") or {}),
        "ownerReferences": [reference],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
