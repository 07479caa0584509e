"""What a write would change, before it does: the place of a request that has not reached the API server yet.

A place names a write by its effect. A perturbation that comes before the effect (an error instead of it) asks for it
by a dry run; creations and deletions need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from konverge.apiserver.crd.serving.strategy import STORED_VERSION
from konverge.check.differences import changed_paths, differences
from konverge.check.folding import folded
from konverge.check.model import Exchange, Place
from konverge.wire.message import Headers, Request

if TYPE_CHECKING:
    from konverge.apiserver.storage import Record
    from konverge.check.gate.core import Gate

_OBJECT = msgspec.json.Decoder(dict)
_SHOWN_APART = ("apiVersion", "kind", STORED_VERSION)
"""Members of an answer that the store keeps elsewhere, and one of the store's own."""


def is_alike(exchange: Exchange, place: Place) -> bool:
    """Whether a request is of the kind that a place names, whatever it changes."""
    same = (exchange.verb, exchange.resource, exchange.namespace) == (place.verb, place.resource, place.namespace)
    return same and folded(exchange.name) == place.name


async def is_next(gate: Gate, exchange: Exchange, request: Request, place: Place) -> bool:
    """Whether a write that is on its way is the one of a place."""
    if not is_alike(exchange, place) or not _can_be(gate, exchange, place):
        return False
    change = await _change(gate, exchange, request)
    if change is None:
        return False
    wanted = place.change if exchange.verb in ("create", "delete", "deletecollection") else change
    return gate.recorder.upcoming(_base(place, wanted)) == place


def _can_be(gate: Gate, exchange: Exchange, place: Place) -> bool:
    """What is known without a dry run, which takes a uid: a run would be another by looking."""
    if gate.recorder.upcoming(_base(place, place.change)) != place:
        return False
    if exchange.verb not in ("patch", "update"):
        return True
    record = _record(gate, exchange)
    comes_or_goes = record is None or _is_being_deleted(record.decode())
    return comes_or_goes if place.change == "" else record is not None


def _is_being_deleted(obj: dict[str, Any]) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def _record(gate: Gate, exchange: Exchange) -> Record | None:
    group, plural, *_ = exchange.resource.split("/")
    return gate.recorder.record(f"{group}/{plural}", exchange.namespace, exchange.name)


def _base(place: Place, change: str) -> Place:
    return Place(place.verb, place.resource, place.namespace, place.name, change)


async def _change(gate: Gate, exchange: Exchange, request: Request) -> str | None:
    """The paths that the write would change; None when it would change nothing."""
    subresource = exchange.resource.split("/")[2:]
    record = _record(gate, exchange)
    if exchange.verb == "create" and not subresource:
        return "" if record is None else None
    if exchange.verb in ("create", "deletecollection"):
        return ""
    if exchange.verb == "delete":
        return None if record is None else ""
    answer = await gate.inner(_dry(request))
    if answer.status >= 400:
        return None
    if record is None:  # created by a patch (server-side apply)
        return ""
    try:
        after = _OBJECT.decode(answer.body)
    except msgspec.DecodeError:
        return None
    before = record.decode()
    if _is_being_deleted(before) and not after["metadata"].get("finalizers"):
        return ""  # with its last finalizer, the object goes
    for name in _SHOWN_APART:
        before.pop(name, None)
        after.pop(name, None)
    return changed_paths(differences(before, after)) or None


def _dry(request: Request) -> Request:
    mark = "&" if "?" in request.target else "?"
    kept = [(name, value) for name, value in request.headers.raw if name.lower() not in (b"accept", b"accept-encoding")]
    headers = Headers([*kept, (b"accept", b"application/json")])
    return Request(request.method, f"{request.target}{mark}dryRun=All", headers, request.body, peer=request.peer)
