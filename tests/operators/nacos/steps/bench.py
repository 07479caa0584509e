"""A reconcile on objects in memory: one step runs in less than a millisecond, and what it sends is recorded.

It stands in for the caches and the API server where a step's decision is the question. The stories with a cluster are
in the folder above.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal, TypeVar

from konverge import clock
from konverge.cache.record import Key
from konverge.client import AlreadyExists, MergePatch, NotFound
from konverge.objects import Condition, Object, Quantity, Status, from_dict, times, to_dict
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import Container, Pod, PodCondition, PodStatus, Secret, VolumeResourceRequirements
from konverge.objects.meta import ManagedFieldsEntry, ObjectList, ObjectMeta
from konverge.operators.nacos import names
from konverge.operators.nacos.children.stateful_set import claim_template, stateful_set
from konverge.operators.nacos.database import Databases
from konverge.operators.nacos.desired import Desired, read_desired
from konverge.operators.nacos.resource import AnyNacos, NacosStatus
from konverge.operators.nacos.server import HttpNacosServers
from konverge.operators.nacos.steps import Options, ReconcileState, Tools
from konverge.operators.nacos.steps.pods import REVISION, Workload, pods_of
from konverge.runtime import Request, find_condition, set_controller_reference
from konverge.runtime.owners import is_controlled_by, require_ownership
from konverge.sim.databases import SimulatedDatabases

K = TypeVar("K", bound=Object)
SPACE, NAME = "default", "nacos"
NEW, OLD = "nacos-new", "nacos-old"
"""Revisions of the template."""


def merged(base: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(base, dict) or not isinstance(patch, dict):
        return patch
    result = {key: value for key, value in base.items() if patch.get(key, key) is not None}
    return result | {key: merged(base.get(key, {}), value) for key, value in patch.items() if value is not None}


class Objects:
    """The API server, and the caches of it. `sent` has every write: verb, kind and name."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], Object] = {}
        self.applied: dict[tuple[str, str], dict[str, Any]] = {}
        """What was applied last: a field that is left out next time is given up."""
        self.sent: list[str] = []
        self.options: list[dict[str, Any]] = []
        """Of each write: uid, propagation, body."""
        self.refused: dict[str, Exception] = {}
        """Writes that fail: `delete Pod`."""

    def put(self, *objects: Object) -> None:
        for item in objects:
            item.kind = type(item).resource.kind
            item.metadata.namespace = SPACE
            item.metadata.uid = item.metadata.uid or f"uid-{item.kind}-{item.metadata.name}"
            self.stored[item.kind, item.metadata.name] = item

    def find(self, kind: type[K], name: str) -> K | None:
        return copy.deepcopy(self.stored.get((kind.resource.kind, name)))  # type: ignore[return-value]

    def need(self, kind: type[K], name: str) -> K:
        item = self.find(kind, name)
        if item is None:
            raise NotFound(Status(message=f"{kind.resource.kind} {name} not found"))
        return item

    def all(self, kind: type[K]) -> list[K]:
        return [copy.deepcopy(item) for (of, _), item in self.stored.items() if of == kind.resource.kind]  # type: ignore[misc]

    def record(self, verb: str, kind: type[Object], name: str, **options: Any) -> None:
        if error := self.refused.get(f"{verb} {kind.resource.kind}"):
            raise error
        self.sent.append(f"{verb} {kind.resource.kind} {name}")
        self.options.append(options)

    # ------------------------------------------------------------------ the client

    async def get(self, kind: type[K], name: str, namespace: str) -> K:
        assert namespace == SPACE
        return self.need(kind, name)

    async def list(self, kind: type[K], namespace: str) -> ObjectList[K]:
        assert namespace == SPACE
        if error := self.refused.get(f"list {kind.resource.kind}"):
            raise error
        return ObjectList(items=self.all(kind))

    async def create(self, item: Object) -> None:
        if (type(item).resource.kind, item.metadata.name) in self.stored:
            raise AlreadyExists(Status(message="it exists"))
        self.record("create", type(item), item.metadata.name)
        self.put(item)

    async def delete(self, kind: type[K], name: str, namespace: str, *, uid: str, propagation: str = "") -> None:
        assert namespace == SPACE
        self.record("delete", kind, name, uid=uid, propagation=propagation)
        assert uid == self.need(kind, name).metadata.uid, "what is deleted is what was read"
        del self.stored[kind.resource.kind, name]

    async def patch(self, kind: type[K], name: str, patch: MergePatch, namespace: str) -> None:
        assert namespace == SPACE
        body: Any = patch.body
        assert body["metadata"]["uid"] == self.need(kind, name).metadata.uid, "what is changed is what was read"
        self.record("patch", kind, name, body=body)
        self.put(from_dict(kind, merged(to_dict(self.need(kind, name)), body)))


class NoCaches:
    """All is read from `Objects`."""

    def covering(self, kind: type[Object], key: Key) -> None: ...

    def lister(self, kind: type[Object]) -> None: ...


class BenchContext:
    """What the steps use of `konverge.runtime.Context`."""

    def __init__(self, obj: AnyNacos, objects: Objects) -> None:
        self.obj = obj
        self.request = Request(SPACE, obj.metadata.name)
        self.client = objects
        self.caches = NoCaches()
        self.events: list[tuple[str, str, str]] = []

    @property
    def deleting(self) -> bool:
        return self.obj.metadata.deletion_timestamp is not None

    async def get(self, kind: type[K], name: str) -> K | None:
        return self.client.find(kind, name)

    async def owned(self, kind: type[K]) -> list[K]:
        return [item for item in self.client.all(kind) if is_controlled_by(item, self.obj)]

    def indexed(self, kind: type[K], index: str, value: str) -> list[K]:
        assert index == "app"
        return [item for item in self.client.all(kind) if f"{SPACE}/{item.metadata.labels.get('app')}" == value]

    async def apply(self, child: Object) -> bool:
        set_controller_reference(self.obj, child)
        kind, name = type(child), child.metadata.name
        child.kind = kind.resource.kind
        live = self.client.find(kind, name)
        if live is not None:
            require_ownership(self.obj, child, to_dict(live)["metadata"])
            before = self.client.applied.get((child.kind, name), to_dict(child))
            if before == to_dict(child) and contains(to_dict(live), to_dict(child)):
                return False
        self.client.record("apply", kind, name)
        self.client.applied[child.kind, name] = to_dict(child)
        written = copy.deepcopy(child)
        written.metadata.managed_fields = [ManagedFieldsEntry(manager="nacos-operator", operation="Apply")]
        self.client.put(written)
        return True

    async def save_status(self) -> bool:
        self.client.record("status", AnyNacos, self.obj.metadata.name)
        return True

    async def save_metadata(self) -> bool:
        self.client.record("annotate", AnyNacos, self.obj.metadata.name, body=dict(self.obj.metadata.annotations))
        return True

    def event(self, reason: str, message: str, *, type: str = "Normal") -> None:
        self.events.append((type, reason, message))

    def warning(self, reason: str, message: str) -> None:
        self.event(reason, message, type="Warning")


def contains(live: Any, desired: Any) -> bool:
    if isinstance(desired, dict) and isinstance(live, dict):
        return all(key in live and contains(live[key], value) for key, value in desired.items())
    return bool(live == desired)


class Bench:
    """One Nacos, and the state of one reconcile of it."""

    def __init__(
        self,
        spec: dict[str, Any],
        *,
        annotations: dict[str, str] | None = None,
        status: NacosStatus | None = None,
        options: Options | None = None,
        servers: HttpNacosServers | None = None,
        databases: Databases | None = None,
    ) -> None:
        self.objects = Objects()
        meta = ObjectMeta(
            name=NAME,
            namespace=SPACE,
            uid="uid-nacos",
            generation=7,
            annotations=annotations or {},
            resource_version="1",
        )
        nacos = AnyNacos(api_version="nacos.io/v1alpha1", kind="Nacos", metadata=meta, spec=spec)
        nacos.status = status if status is not None else NacosStatus(phase="Running", version="2.4.3")
        self.context = BenchContext(nacos, self.objects)
        self.databases = SimulatedDatabases()
        tools = Tools(
            databases=databases if databases is not None else self.databases,
            servers=servers if servers is not None else HttpNacosServers(),
            options=options or Options(),
        )
        self.state = ReconcileState(self.context, tools)  # type: ignore[arg-type]
        self.state.desired = self.state.now = self.read()

    def read(self) -> Desired:
        return read_desired(self.context.obj)

    @property
    def sent(self) -> list[str]:
        return self.objects.sent

    @property
    def status(self) -> NacosStatus:
        return self.state.status

    @property
    def reasons(self) -> list[str]:
        """Of the events: `Warning Healing`."""
        return [f"{type} {reason}" for type, reason, _ in self.context.events]

    def condition(self, type: str) -> str:
        entry = find_condition(self.status.kube_conditions, type)
        return f"{entry.status} {entry.reason}" if entry is not None else ""

    def message(self, type: str) -> str:
        entry = find_condition(self.status.kube_conditions, type)
        return entry.message if entry is not None else ""

    def since(self, type: str, status: Literal["True", "False"], seconds: float, reason: str = "Before") -> None:
        """A condition that was set some time ago, for the present generation."""
        when = ago(seconds)
        entry = Condition(type=type, status=status, reason=reason, last_transition_time=when, observed_generation=7)
        self.status.kube_conditions = [*self.status.kube_conditions, entry]

    def owned(self, item: K) -> K:
        """Put an object that this Nacos controls."""
        set_controller_reference(self.context.obj, item)
        self.objects.put(item)
        return item

    def stateful_set(self, spec: dict[str, Any] | None = None, **changes: Any) -> StatefulSet:
        """The StatefulSet that an earlier reconcile applied, with a spec of that time."""
        desired = self.state.desired
        if spec is not None:
            desired = read_desired(AnyNacos(metadata=self.context.obj.metadata, spec=spec))
        live = stateful_set(desired)
        for name, value in changes.items():
            setattr(live.spec, name, value)
        live.metadata.managed_fields = [ManagedFieldsEntry(manager="nacos-operator", operation="Apply")]
        live.metadata.generation = live.status.observed_generation = 3
        live.status.update_revision = NEW
        return self.owned(live)

    def pods(self, count: int, *, ready: Sequence[int] | None = None, outdated: Sequence[int] = ()) -> list[Pod]:
        pods = [
            server_pod(number, ready=ready is None or number in ready, revision=OLD if number in outdated else NEW)
            for number in range(count)
        ]
        self.objects.put(*pods)
        return pods

    def claims(self, count: int, *, size: str = "10Gi", storage_class: str | None = None) -> None:
        """Those that the StatefulSet made for so many servers."""
        for number in range(count):
            claim = claim_template(self.state.desired)
            claim.metadata.name = names.claim(NAME, number)
            claim.metadata.labels = names.selector(NAME)
            claim.spec.storage_class_name = storage_class
            claim.spec.resources = VolumeResourceRequirements(requests={"storage": Quantity(size)})
            self.objects.put(claim)

    def secret(self, name: str, **values: str) -> Secret:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        secret = Secret(metadata=ObjectMeta(name=name, resource_version="5"), data=data)
        self.objects.put(secret)
        return secret

    def workload(self) -> Workload:
        return Workload(self.objects.find(StatefulSet, NAME), pods_of(self.state))


def ago(seconds: float) -> str:
    return times.format_time(clock.utc_now() - timedelta(seconds=seconds))


def server_pod(
    number: int, *, ready: bool = True, since: float = 600.0, revision: str = NEW, image: str = "n:v2.4.3"
) -> Pod:
    """A pod of the StatefulSet, in this state for so many seconds."""
    labels = names.selector(NAME) | {REVISION: revision}
    meta = ObjectMeta(name=names.pod(NAME, number), labels=labels, creation_timestamp=ago(since + 1))
    pod = Pod(metadata=meta)
    pod.spec.containers = [Container(name=NAME, image=image)]
    condition = PodCondition(type="Ready", status="True" if ready else "False", last_transition_time=ago(since))
    pod.status = PodStatus(phase="Running", conditions=[condition], pod_ip=f"10.0.0.{number}", host_ip="10.1.0.1")
    return pod
