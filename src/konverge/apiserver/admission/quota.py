"""ResourceQuota, the last of the plugins: a write that would exceed a quota is refused, any other is booked.

A quota counts from when its controller has filled its status, and that status is believed. A write is booked when it is
stored (`Call.reserve`): it is checked once more, stored and booked in one go, without letting others run. So no two
writes use the same remainder, and one that begins again after a conflict, or is not stored at all, is not booked for
that. The arithmetic is `konverge.objects.quota`. Upstream: apiserver/pkg/admission/plugin/resourcequota,
pkg/quota/v1/evaluator/core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from konverge.apiserver.admission.plugin import Kind, Step, Validating, refusal
from konverge.apiserver.http.managed_fields import track_own_status
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj
from konverge.objects.amounts import Amounts, amounts, texts
from konverge.objects.quantity import Quantity, QuantityError
from konverge.objects.quota import usage
from konverge.objects.quota.scopes import Scope, claim_in_scope, is_terminating, no_scope, pod_in_scope, scopes_of

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
)  # upstream: ignoredResources (pkg/quota/v1/install/registry.go)
_UPDATES = frozenset({("services", ""), ("persistentvolumeclaims", ""), ("pods", ""), ("pods", "resize")})
"""Core resources whose usage may change with an update."""
_MUST_BE_GIVEN = frozenset(prefix + name for name in ("cpu", "memory") for prefix in ("", "requests.", "limits."))


class ResourceQuota(Validating):
    def validate(self, kind: Kind) -> Step | None:
        if not kind.namespaced or (kind.group, kind.plural) in _IGNORED:
            return None
        updates = kind.operation == "UPDATE" and not kind.group and (kind.plural, kind.subresource) in _UPDATES
        if not updates and (kind.operation != "CREATE" or kind.subresource):
            return None
        evaluator = _evaluator(kind.group, kind.plural)

        def check(request: AdmissionRequest) -> None:
            quotas = request.call.server.store.tables.get("/resourcequotas")
            request.call.reserve = None
            if quotas is not None and quotas.records and quotas.keys(f"{request.namespace}/"):
                booked = _check(request, evaluator)
                if booked and not request.dry_run:
                    request.call.reserve = _Reservation(request, evaluator, booked)

        return check


Booked = list[tuple[Obj, Amounts]]
"""Quotas, each with what is used of it after the write."""


class _Reservation:
    """A write that was admitted and is not stored yet."""

    def __init__(self, request: AdmissionRequest, evaluator: Evaluator, booked: Booked) -> None:
        self._request, self._evaluator, self._booked = request, evaluator, booked
        self._store = request.call.server.store
        self._revision = self._store.revision

    def check(self) -> None:
        """Look at the quotas again if anything was written meanwhile. Raises ApiError."""
        if self._store.revision != self._revision:
            self._booked = _check(self._request, self._evaluator)

    def book(self) -> None:
        for quota, new_used in self._booked:
            _book(self._request, quota, new_used)


def _check(request: AdmissionRequest, evaluator: Evaluator) -> Booked:
    """Upstream: CheckRequest (controller.go)."""
    if not evaluator.concerns(request):
        return []
    quotas = request.call.scan("", "resourcequotas", request.namespace)
    matching = [quota for quota in quotas if _matches(quota, evaluator, request.new)]
    for quota in matching:
        _check_known(request, quota, evaluator)
    used = evaluator.usage(request.new)
    negative = sorted(name for name, value in used.items() if value < _ZERO)
    if negative:
        raise refusal(request, f"quota usage is negative for resource(s): {','.join(negative)}")
    return [(quota, _booked(request, quota, _delta(request, quota, evaluator, used))) for quota in matching]


def _hard(quota: Obj) -> Amounts:
    return amounts((quota.get("status") or {}).get("hard"))


def _used(quota: Obj) -> Amounts:
    return amounts((quota.get("status") or {}).get("used"))


def _matches(quota: Obj, evaluator: Evaluator, obj: Obj) -> bool:
    if not any(map(evaluator.counts, _hard(quota))):
        return False
    return all(evaluator.in_scope(scope, obj) for scope in scopes_of(quota))


def _check_known(request: AdmissionRequest, quota: Obj, evaluator: Evaluator) -> None:
    """The object must say what it uses, and the quota what is used already."""
    name = quota["metadata"]["name"]
    restricted = [resource for resource in _hard(quota) if evaluator.counts(resource)]
    problem = evaluator.missing(restricted, request.new)
    if problem:
        raise refusal(request, f"failed quota: {name}: {problem}")
    if not set(restricted) <= _used(quota).keys():
        raise refusal(request, f"status unknown for quota: {name}, resources: {','.join(sorted(restricted))}")


def _delta(request: AdmissionRequest, quota: Obj, evaluator: Evaluator, used: Amounts) -> Amounts:
    """What the write adds to a quota."""
    old = request.old
    if old is not None and _matches(quota, evaluator, old):
        before = evaluator.usage(old)
        used = {name: _growth(value, before.get(name, _ZERO)) for name, value in used.items()}
    return {name: value for name, value in used.items() if value > _ZERO}


def _growth(value: Quantity, before: Quantity) -> Quantity:
    try:
        return value - before
    except QuantityError:  # thousands of decimal places apart
        return value if value > before else _ZERO


def _booked(request: AdmissionRequest, quota: Obj, delta: Amounts) -> Amounts:
    """The new state of a quota; refused if it would be exceeded."""
    hard, used = _hard(quota), _used(quota)
    requested = {name: value for name, value in delta.items() if name in hard}
    total = {name: _within(hard[name], used.get(name, _ZERO), value) for name, value in requested.items()}
    exceeded = [name for name, amount in total.items() if amount is None]
    if exceeded:
        parts = (("requested", requested), ("used", used), ("limited", hard))
        listing = ", ".join(f"{label}: {_listed(part, exceeded)}" for label, part in parts)
        raise refusal(request, f"exceeded quota: {quota['metadata']['name']}, {listing}")
    return {**used, **{name: amount for name, amount in total.items() if amount is not None}}


def _within(hard: Quantity, used: Quantity, value: Quantity) -> Quantity | None:
    """What is used after the write; nothing if that is too much, or more digits than a quantity has."""
    try:
        total = used + value
    except QuantityError:
        return None
    return total if total <= hard else None


def _listed(values: Amounts, names: Iterable[str]) -> str:
    """Upstream: prettyPrint."""
    return ",".join(f"{name}={values[name]}" for name in sorted(names) if name in values)


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


# --- how writes of a kind are measured


class Evaluator(msgspec.Struct, frozen=True):
    """What the objects of a kind use, and when a write must be looked at. Upstream: quota.Evaluator."""

    usage: Callable[[Obj], Amounts]
    counts: Callable[[str], bool]
    """Whether a name in a quota is about this kind."""
    in_scope: Callable[[Scope, Obj], bool] = no_scope
    missing: Callable[[Iterable[str], Obj], str] = lambda names, obj: ""
    """What an object fails to say that the quota needs to know."""
    concerns: Callable[[AdmissionRequest], bool] = lambda request: True


def _evaluator(group: str, plural: str) -> Evaluator:
    special = _SPECIAL.get(plural) if not group else None
    if special is not None:
        return special
    names = [f"count/{plural}.{group}" if group else f"count/{plural}"]
    names += [plural] if not group and plural in usage.PLAIN else []
    return Evaluator(lambda obj: dict.fromkeys(names, usage.ONE), names.__contains__)


def _missing_in_pod(names: Iterable[str], pod: Obj) -> str:
    """Upstream: podEvaluator.Constraints."""
    spec = pod.get("spec") or {}
    if any((spec.get("resources") or {}).get(part) for part in ("requests", "limits")):
        return ""
    needed = _MUST_BE_GIVEN.intersection(names)
    lacking: dict[str, set[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        given = usage.of_resources(amounts(resources.get("requests")), amounts(resources.get("limits")))
        for name in needed - given.keys():
            lacking.setdefault(name, set()).add(container.get("name", ""))
    parts = [f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking)]
    return f"must specify {'; '.join(parts)}" if parts else ""


def _pod_concerns(request: AdmissionRequest) -> bool:
    if request.subresource == "resize" or request.operation == "CREATE":
        return True
    return is_terminating(request.obj or {}) is not is_terminating(request.old or {})


_SPECIAL = {
    "pods": Evaluator(usage.of_pod, usage.is_pod_name, pod_in_scope, _missing_in_pod, _pod_concerns),
    "services": Evaluator(usage.of_service, usage.is_service_name),
    "persistentvolumeclaims": Evaluator(usage.of_claim, usage.is_claim_name, claim_in_scope),
}
