"""Priority: a pod's priority is that of its class, and there is one default class at most."""

from __future__ import annotations

from konverge.apiserver.admission.plugin import Kind, Step, refusal, spec_of
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Context, Obj

_GROUP = "scheduling.k8s.io"


class Priority:
    def admit(self, kind: Kind) -> Step | None:
        if kind.writes("", "pods", "CREATE"):
            return _set
        return _keep if kind.writes("", "pods", "UPDATE") else None

    def validate(self, kind: Kind) -> Step | None:
        return _one_default if kind.writes(_GROUP, "priorityclasses", "CREATE", "UPDATE") else None


def _keep(request: AdmissionRequest) -> None:
    """A client that does not know the fields may leave them out of an update."""
    assert request.obj is not None
    assert request.old is not None
    for field in ("priority", "preemptionPolicy"):
        if request.obj["spec"].get(field) is None and request.old["spec"].get(field) is not None:
            request.obj["spec"][field] = request.old["spec"][field]


def _set(request: AdmissionRequest) -> None:
    assert request.obj is not None
    spec = spec_of(request.obj)
    name, found = spec.get("priorityClassName"), None
    if name:
        found = request.call.lookup(_GROUP, "priorityclasses", "", name)
        if found is None:
            raise refusal(request, f"no PriorityClass with name {name} was found")
    else:
        found = _default(request.call)
    value, policy = (found.get("value", 0), found.get("preemptionPolicy")) if found else (0, "PreemptLowerPriority")
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    computed = "priority admission controller computed {} from the given PriorityClass name"
    if spec.get("priority") is not None and spec["priority"] != value:
        words = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
        raise refusal(request, words + computed.format(value))
    spec["priority"] = value
    if policy is None:
        return
    if spec.get("preemptionPolicy") is not None and spec["preemptionPolicy"] != policy:
        words = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
        raise refusal(request, words + computed.format(policy))
    spec["preemptionPolicy"] = policy


def _default(context: Context) -> Obj | None:
    """The default class; if several say so, the lowest of them."""
    found = [c for c in context.scan(_GROUP, "priorityclasses") if c.get("globalDefault")]
    return min(found, key=lambda c: int(c.get("value", 0)), default=None)


def _one_default(request: AdmissionRequest) -> None:
    assert request.obj is not None
    if not request.obj.get("globalDefault"):
        return
    present = _default(request.call)
    if present is None:
        return
    name = present["metadata"]["name"]
    if request.operation == "CREATE" or name != request.obj["metadata"]["name"]:
        words = f"PriorityClass {name} is already marked as default. Only one default can exist"
        raise refusal(request, words)
