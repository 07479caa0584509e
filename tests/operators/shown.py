"""A cluster that is a dict: what the caches of a reconcile show is given, and what the operator sends is noted.

The context and the client are the real ones. A write is answered as if it had been done, and the caches go on to show
what they showed: a reconcile is looked at alone.

    shown = Shown("webapp-operator", app, deployment)
    await WebAppReconciler().reconcile(shown.context(app))
    assert [sent.verb for sent in shown.sent] == ["patch"]
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

import msgspec

from konverge.cache import CacheSpec, Informer
from konverge.cache.lister import Lister
from konverge.cache.quarantine import Quarantine
from konverge.cache.record import Key, Meta, Record, receiver
from konverge.client import Call, Client
from konverge.client.errors import ApiStatusError, NotFound, error_for
from konverge.objects import Object, from_dict, to_dict, to_json
from konverge.objects.codec import decoder
from konverge.objects.meta import Status, StatusDetails
from konverge.runtime import Context, Request
from konverge.runtime.server_additions import ServerAdditions
from konverge.wire.message import Response, Stream

K = TypeVar("K", bound=Object)
Index = Callable[[Record, Meta], Iterable[str]]

OLD = "2020-01-01T00:00:00Z"


def made(kind: type[K], name: str, namespace: str, *, owners: Iterable[dict[str, Any]] = (), **more: Any) -> K:
    """An object as the cache has it. `meta` is more metadata."""
    resource = kind.resource
    metadata = {
        "name": name,
        "namespace": namespace if resource.namespaced else "",
        "uid": f"uid-of-{name}",
        "resourceVersion": "7",
        "creationTimestamp": OLD,
        "ownerReferences": [*owners],
        **more.pop("meta", {}),
    }
    return from_dict(kind, {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **more})


def controlled_by(kind: str, name: str, uid: str = "") -> dict[str, Any]:
    """A reference to a controller."""
    return {"apiVersion": "x/v1", "kind": kind, "name": name, "uid": uid or f"uid-of-{name}", "controller": True}


def refused(error: type[ApiStatusError], *, kind: str = "Thing", **details: Any) -> ApiStatusError:
    """An answer of the API server, as an exception."""
    status = Status(reason=error.default_reason, message="no", details=StatusDetails(kind=kind, **details))
    return error_for(status)


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


class Shown:
    """`manager` is the operator's name, `without` the kinds that the cluster does not have."""

    near = True

    def __init__(
        self,
        manager: str,
        *objects: Object,
        without: Iterable[type[Object]] = (),
        indexes: dict[str, Index] | None = None,
    ) -> None:
        self.manager = manager
        self.receive = receiver(manager)
        self.indexes = indexes or {}
        self.additions = ServerAdditions()
        self.objects = {
            (type(item).resource.kind, item.metadata.namespace, item.metadata.name): item for item in objects
        }
        self.without = {kind.resource.kind for kind in without}
        self.errors: dict[tuple[str, str], Exception] = {}
        """Verb (or subresource) and kind -> what the API server answers."""
        self.answers: dict[tuple[str, str], Object] = {}
        """Verb and kind -> the object that is answered, where it is not what was sent."""
        self.unseen: list[Object] = []
        """What the API server has, and the caches do not show yet."""
        self.calls: list[Call] = []
        self.events: list[tuple[str, str]] = []
        self.messages: list[str] = []
        self.client = Client.__new__(Client)
        self.client._use_caller(self, SimpleNamespace())  # type: ignore[arg-type]

    def context(self, obj: K) -> Context[K]:
        """For a reconcile of one of the objects."""
        return Context(
            Request(obj.metadata.namespace, obj.metadata.name),
            type(obj),
            self.receive(to_json(to_dict(obj)))[1],
            client=self.client,
            caches=self,
            recorder=self,
            manager=self.manager,
            reasons=(),
            log=logging.getLogger("shown"),
        )

    # -------------------------------------------------------------- what was sent

    @property
    def sent(self) -> list[Sent]:
        """Everything but the status."""
        return [_sent(call) for call in self.calls if call.writes and call.subresource != "status"]

    def applied(self, kind: str) -> list[str]:
        return [sent.name for sent in self.sent if sent.verb == "apply" and sent.kind == kind]

    def deleted(self) -> list[tuple[str, str]]:
        return [(sent.kind, sent.name) for sent in self.sent if sent.verb == "delete"]

    # -------------------------------------------------------------- a recorder, caches, a caller

    def event(self, reason: str, message: str, *, about: Object, type: str = "Normal") -> None:
        self.events.append((type, reason))
        self.messages.append(message)

    def lister(self, kind: type[K]) -> Lister[K]:
        return Lister(_Informer(self, kind), decoder(kind).decode)  # type: ignore[arg-type]

    def covering(self, kind: type[K], key: Key) -> Lister[K]:
        return self.lister(kind)

    def covering_list(self, kind: type[K], namespace: str, selector: Any) -> Lister[K]:
        return self.lister(kind)

    def presence(self, kind: type[Object], key: Key) -> Informer:
        return self.lister(kind).informer

    def serves(self, kind: type[Object]) -> bool:
        return self.lister(kind).informer.served

    def undeclared(self, kind: Any, verbs: tuple[str, ...], namespace: str, use: str = "") -> str:
        return ""

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
        answer = self.answers.get((call.verb, kind))
        return Response(200, body=msgspec.json.encode(self._done(call, kind) if answer is None else to_dict(answer)))

    def _done(self, call: Call, kind: str) -> dict[str, Any]:
        if call.verb == "list":
            there = [item for item in (*self.objects.values(), *self.unseen) if item.kind == kind]
            return {"metadata": {}, "items": [to_dict(item) for item in there]}
        live = self.objects.get((kind, call.namespace, call.name))
        if call.verb == "get" and live is None:
            raise refused(NotFound, kind=kind)
        if call.verb == "delete":
            return {"apiVersion": "v1", "kind": "Status", "status": "Success"}
        body: dict[str, Any] = {} if live is None else to_dict(live)
        if call.verb in ("create", "patch"):
            body = _merged(body, msgspec.json.decode(call.body))
            version = int(body["metadata"].get("resourceVersion") or 0)
            body["metadata"]["resourceVersion"] = f"{version + 1}"
        return body


class _Informer:
    """What is shown of one kind."""

    readable = True

    def __init__(self, shown: Shown, kind: type[Object]) -> None:
        self.spec = CacheSpec(resource=kind.resource)
        self.quarantine = Quarantine()
        self.served = kind.resource.kind not in shown.without
        self._indexes = shown.indexes
        objects = [item for item in shown.objects.values() if item.kind == kind.resource.kind]
        self._records = {key: record for key, record, _ in (shown.receive(to_json(to_dict(item))) for item in objects)}

    def get(self, key: Key) -> Record | None:
        return self._records.get(key)

    def items(self, namespace: str | None) -> list[tuple[Key, Record]]:
        return [(key, record) for key, record in self._records.items() if namespace in (None, key.namespace)]

    def keys_by_index(self, index: str, value: str) -> list[Key]:
        return [key for key, record in self._records.items() if value in self._values(index, record)]

    def _values(self, index: str, record: Record) -> Iterable[str]:
        if index == "owner":
            return [owner.uid for owner in record.meta.owner_references]
        return self._indexes[index](record, record.meta)


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    both = {key: _merged(old.get(key), value) for key, value in new.items() if value is not None}
    return {key: value for key, value in old.items() if key not in new} | both


def _sent(call: Call) -> Sent:
    verb = "apply" if "apply" in call.content_type else call.verb
    body = msgspec.json.decode(call.body) if call.body else {}
    kind = call.resource.kind if call.resource is not None else ""
    name = call.name or body["metadata"]["name"]
    return Sent(verb, kind, name, body, call.query.get("force") == "true", call.subresource, call.namespace)
