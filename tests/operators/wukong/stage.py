"""One step of a reconcile without a cluster: what the caches show is given, and what the operator sends is noted.

The context and the client are the real ones; behind them is a dict in place of caches and API server.

    stage = Stage(net(), vm(), vmi("Running"))
    await networks(stage.state)
    assert stage.applied("NetworkAttachmentDefinition") == ["web-lan-nad"]
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

import msgspec

from konverge.cache.lister import Lister
from konverge.cache.quarantine import Quarantine
from konverge.cache.record import Key, Meta, Record, receiver
from konverge.client import Call, Client
from konverge.client.errors import NotFound, error_for
from konverge.objects import Object, from_dict, to_dict, to_json
from konverge.objects.codec import decoder
from konverge.objects.meta import Status, StatusDetails
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.names import LABEL
from konverge.operators.wukong.operator import REFERS, refers_to
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import FINALIZER, AnyWukong, Wukong
from konverge.operators.wukong.steps.nodes import BRIDGES, bridges_of
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.runtime import Context, Request
from konverge.wire.message import Response, Stream
from tests.operators.wukong.specs import SMALL, Spec

K = TypeVar("K", bound=Object)

SPACE, NAME, UID = "team-a", "web", "4711"
MANAGER = "wukong-operator"
OWNER = {
    "apiVersion": "vm.novasphere.dev/v1alpha1",
    "kind": "Wukong",
    "name": NAME,
    "uid": UID,
    "controller": True,
    "blockOwnerDeletion": True,
}
"""A reference to the Wukong that the stage is about, as its children have it."""
OLD = "2020-01-01T00:00:00Z"
_receive = receiver(MANAGER)
INDEXES: dict[str, Callable[[Record, Meta], Iterable[str]]] = {REFERS: refers_to, BRIDGES: bridges_of}


def made(kind: type[K], name: str, *, owners: Iterable[dict[str, Any]] = (OWNER,), **more: Any) -> K:
    """An object as the cache has it: by default a child of the Wukong. `meta` is more metadata."""
    metadata = {
        "name": name,
        "namespace": SPACE if kind.resource.namespaced else "",
        "uid": f"uid-of-{name}",
        "resourceVersion": "7",
        "creationTimestamp": OLD,
        "ownerReferences": [*owners],
        **more.pop("meta", {}),
    }
    return from_dict(kind, {**_head(kind), "metadata": metadata, **more})


def _head(kind: type[Object]) -> dict[str, Any]:
    resource = kind.resource
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def controlled_by(kind: str, name: str, uid: str = "") -> dict[str, Any]:
    return {"apiVersion": "x/v1", "kind": kind, "name": name, "uid": uid or f"uid-of-{name}", "controller": True}


def vm(
    strategy: str = "Always",
    *,
    volumes: Iterable[str] = ("system",),
    networks: Iterable[dict[str, Any]] = (),
    meta: dict[str, Any] | None = None,
    owners: Iterable[dict[str, Any]] = (OWNER,),
    **status: Any,
) -> VirtualMachine:
    inside = {"domain": {"devices": {}}, "volumes": [{"name": name} for name in volumes], "networks": [*networks]}
    spec = {"runStrategy": strategy, "template": {"spec": inside}}
    return made(VirtualMachine, "web-vm", owners=owners, meta=meta or {}, spec=spec, status=status)


def vmi(phase: str = "Running", *, meta: dict[str, Any] | None = None, **status: Any) -> VirtualMachineInstance:
    metadata = {"uid": "uid-of-instance", "labels": {LABEL: NAME}, **(meta or {})}
    owners = (controlled_by("VirtualMachine", "web-vm"),)
    status = {"phase": phase, **status}
    return made(VirtualMachineInstance, "web-vm", owners=owners, meta=metadata, status=status)


def condition(
    type: str, status: str = "True", reason: str = "R", message: str = "", since: str = OLD
) -> dict[str, Any]:
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


@dataclass(frozen=True)
class Sent:
    """One request that changes something."""

    verb: str
    kind: str
    name: str
    body: Any
    force: bool = False
    subresource: str = ""
    namespace: str = ""


class Stage:
    """`without`: kinds that the cluster does not have. `status`: of the Wukong. `meta`: more of its metadata."""

    def __init__(
        self,
        given: Spec | None = None,
        *objects: Object,
        status: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
        without: Iterable[type[Object]] = (),
        options: Options | None = None,
    ) -> None:
        metadata = {
            "name": NAME, "namespace": SPACE, "uid": UID, "resourceVersion": "3", "generation": 2,
            "finalizers": [FINALIZER], **(meta or {}),
        }  # fmt: skip
        spec = SMALL if given is None else given
        data = {**_head(AnyWukong), "metadata": metadata, "spec": spec, "status": status or {}}
        self.obj = from_dict(AnyWukong, data)
        self.objects: dict[tuple[str, str, str], Object] = {}
        for item in (self.obj, *objects):
            self.objects[_place(item)] = item
        self.without = {kind.resource.kind for kind in without}
        self.errors: dict[tuple[str, str], Exception] = {}
        """Verb and kind -> what the API server answers."""
        self.calls: list[Call] = []
        self.events: list[tuple[str, str]] = []
        self.client = Client.__new__(Client)
        self.client._use_caller(self, SimpleNamespace())  # type: ignore[arg-type]
        self.ctx = self.context(self.obj)
        self.state = ReconcileState(self.ctx, options or Options())
        try:
            self.state.wukong = from_dict(Wukong, data)
        except msgspec.ValidationError:
            self.state.wukong = None

    def context(self, obj: K) -> Context[K]:
        """For a reconcile of an object of the stage."""
        return Context(
            Request(obj.metadata.namespace, obj.metadata.name),
            type(obj),
            _receive(to_json(to_dict(obj)))[1],
            client=self.client,
            caches=self,
            recorder=self,
            manager=MANAGER,
            reasons=(),
            log=logging.getLogger("stage"),
        )

    # -------------------------------------------------------------- what was sent

    @property
    def sent(self) -> list[Sent]:
        return [_sent(call) for call in self.calls if call.writes and call.subresource != "status"]

    def applied(self, kind: str) -> list[str]:
        return [sent.name for sent in self.sent if sent.verb == "apply" and sent.kind == kind]

    def deleted(self) -> list[tuple[str, str]]:
        return [(sent.kind, sent.name) for sent in self.sent if sent.verb == "delete"]

    def reasons(self) -> list[str]:
        return [trouble.reason for trouble in self.state.trouble]

    def said(self, type: str) -> tuple[str, str] | None:
        for entry in self.state.status.conditions:
            if entry.type == type:
                return entry.status, entry.reason
        return None

    # -------------------------------------------------------------- a recorder, caches, a caller

    near = True

    def event(self, about: Object, type: str, reason: str, message: str) -> None:
        self.events.append((type, reason))

    def lister(self, kind: type[K]) -> Lister[K]:
        return Lister(_Shown(self, kind), decoder(kind).decode)  # type: ignore[arg-type]

    def covering(self, kind: type[K], key: Key) -> Lister[K]:
        return self.lister(kind)

    def covering_list(self, kind: type[K], namespace: str, selector: Any) -> Lister[K]:
        return self.lister(kind)

    def require_namespace(self, kind: type[Object], namespace: str) -> None:
        raise AssertionError("everything is cached")

    async def stream(self, call: Call) -> Stream:
        raise AssertionError("nothing is watched")

    async def call(self, call: Call) -> Response:
        self.calls.append(call)
        assert call.resource is not None
        kind = call.resource.kind
        error = self.errors.get((call.subresource or call.verb, kind))
        if error is not None:
            raise error
        live = self.objects.get((kind, call.namespace, call.name))
        if call.verb == "get" and live is None:
            raise refused(NotFound, kind=kind)
        body = {} if live is None else to_dict(live)
        if call.verb == "patch":
            body = _merged(body, msgspec.json.decode(call.body))
            version = int(body["metadata"].get("resourceVersion") or 0)
            body["metadata"]["resourceVersion"] = f"{version + 1}"
        elif call.verb == "delete":
            body = {"apiVersion": "v1", "kind": "Status", "status": "Success"}
        return Response(200, body=msgspec.json.encode(body))


class _Shown:
    """An informer: what it shows of one kind."""

    def __init__(self, stage: Stage, kind: type[Object]) -> None:
        self.quarantine = Quarantine()
        self.served = kind.resource.kind not in stage.without
        objects = [item for item in stage.objects.values() if item.kind == kind.resource.kind]
        self._records = {key: record for key, record, _ in (_receive(to_json(to_dict(item))) for item in objects)}

    def get(self, key: Key) -> Record | None:
        return self._records.get(key)

    def items(self, namespace: str | None) -> list[tuple[Key, Record]]:
        return [(key, record) for key, record in self._records.items() if namespace in (None, key.namespace)]

    def keys_by_index(self, index: str, value: str) -> list[Key]:
        return [key for key, record in self._records.items() if value in _values(index, record)]


def _values(index: str, record: Record) -> Iterable[str]:
    if index == "owner":
        return [owner.uid for owner in record.meta.owner_references if owner.controller]
    return INDEXES[index](record, record.meta)


def _place(item: Object) -> tuple[str, str, str]:
    return type(item).resource.kind, item.metadata.namespace, item.metadata.name


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    both = {key: _merged(old.get(key), value) for key, value in new.items() if value is not None}
    return {key: value for key, value in old.items() if key not in new} | both


def _sent(call: Call) -> Sent:
    verb = "apply" if "apply" in call.content_type else call.verb
    body = msgspec.json.decode(call.body) if call.body else {}
    kind = call.resource.kind if call.resource is not None else ""
    forced = call.query.get("force") == "true"
    return Sent(verb, kind, call.name, body, forced, call.subresource, call.namespace)


def refused(error: type[Exception], *, kind: str = "Thing", **status: Any) -> Exception:
    """An answer of the API server, as an exception."""
    reason = error.default_reason  # type: ignore[attr-defined]
    return error_for(Status(reason=reason, message="no", details=StatusDetails(kind=kind), **status))
