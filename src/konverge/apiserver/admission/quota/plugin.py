"""ResourceQuota, the last of the plugins: a write that would exceed a quota is refused, any other is booked.

A quota counts from when its status has been filled (by its controller); what it says there is believed. Checking and
booking happen in one go, without letting others run, so no two writes use the same rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from konverge.apiserver.admission.plugin import Kind, Step, Validating, refusal
from konverge.apiserver.admission.quota.usage import Meter, meter
from konverge.apiserver.http.managed_fields import track_own_status
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj
from konverge.objects.amounts import Amounts, amounts, texts
from konverge.objects.quantity import Quantity
from konverge.objects.quota.scopes import scopes_of

_ZERO = Quantity("0")
_IGNORED = frozenset(
    {
        ("", "bindings"),
        ("", "componentstatuses"),
        ("", "events"),
        ("events.k8s.io", "events"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
    }
)
_UPDATES = frozenset({("services", ""), ("persistentvolumeclaims", ""), ("pods", ""), ("pods", "resize")})
"""Core resources whose use may change with an update."""


class ResourceQuota(Validating):
    def validate(self, kind: Kind) -> Step | None:
        if not kind.namespaced or (kind.group, kind.plural) in _IGNORED:
            return None
        updates = kind.operation == "UPDATE" and not kind.group and (kind.plural, kind.subresource) in _UPDATES
        if not updates and (kind.operation != "CREATE" or kind.subresource):
            return None
        measured = meter(kind.group, kind.plural)

        def check(request: AdmissionRequest) -> None:
            quotas = request.call.server.store.tables.get("/resourcequotas")
            if quotas is not None and quotas.records and quotas.keys(f"{request.namespace}/"):
                _check(request, measured)

        return check


def _check(request: AdmissionRequest, measured: Meter) -> None:
    assert request.obj is not None
    if not measured.concerns(request):
        return
    present = request.call.scan("", "resourcequotas", request.namespace)
    matching = [quota for quota in present if _matches(quota, measured, request.obj)]
    for quota in matching:
        _check_known(request, quota, measured)
    usage = measured.usage(request.obj)
    negative = sorted(name for name, value in usage.items() if value < _ZERO)
    if negative:
        raise refusal(request, f"quota usage is negative for resource(s): {','.join(negative)}")
    booked = [(quota, _booked(request, quota, _delta(request, quota, measured, usage))) for quota in matching]
    if not request.dry_run:
        for quota, used in booked:
            _book(request, quota, used)


def _hard(quota: Obj) -> Amounts:
    return amounts((quota.get("status") or {}).get("hard"))


def _used(quota: Obj) -> Amounts:
    return amounts((quota.get("status") or {}).get("used"))


def _matches(quota: Obj, measured: Meter, obj: Obj) -> bool:
    if not any(map(measured.counts, _hard(quota))):
        return False
    return all(measured.in_scope(scope, obj) for scope in scopes_of(quota))


def _check_known(request: AdmissionRequest, quota: Obj, measured: Meter) -> None:
    """The object must say what it uses, and the quota what is used already."""
    assert request.obj is not None
    name = quota["metadata"]["name"]
    restricted = [resource for resource in _hard(quota) if measured.counts(resource)]
    problem = measured.missing(restricted, request.obj)
    if problem:
        raise refusal(request, f"failed quota: {name}: {problem}")
    if not set(restricted) <= _used(quota).keys():
        raise refusal(request, f"status unknown for quota: {name}, resources: {','.join(sorted(restricted))}")


def _delta(request: AdmissionRequest, quota: Obj, measured: Meter, usage: Amounts) -> Amounts:
    """What the write adds to a quota."""
    old = request.old
    if old is not None and _matches(quota, measured, old):
        before = measured.usage(old)
        usage = {name: value - before.get(name, _ZERO) for name, value in usage.items()}
    return {name: value for name, value in usage.items() if value > _ZERO}


def _booked(request: AdmissionRequest, quota: Obj, delta: Amounts) -> Amounts:
    """The new state of a quota; refused if it would be exceeded."""
    hard, used = _hard(quota), _used(quota)
    requested = {name: value for name, value in delta.items() if name in hard}
    total = {name: used.get(name, _ZERO) + value for name, value in requested.items()}
    exceeded = [name for name in requested if total[name] > hard[name]]
    if exceeded:
        parts = (("requested", requested), ("used", used), ("limited", hard))
        words = ", ".join(f"{label}: {_listed(found, exceeded)}" for label, found in parts)
        raise refusal(request, f"exceeded quota: {quota['metadata']['name']}, {words}")
    return {**used, **total}


def _listed(found: Amounts, names: Iterable[str]) -> str:
    return ",".join(f"{name}={found[name]}" for name in sorted(names) if name in found)


def _book(request: AdmissionRequest, quota: Obj, used: Amounts) -> None:
    if used == _used(quota):
        return
    server = request.call.server
    metadata = quota["metadata"]

    def change(obj: Obj) -> Obj:
        new = {**obj, "metadata": dict(obj["metadata"]), "status": {**(obj.get("status") or {}), "used": texts(used)}}
        track_own_status(server.registry.find("", "v1", "resourcequotas"), obj, new)
        return new

    server.objects.update("", "resourcequotas", metadata["namespace"], metadata["name"], change)
