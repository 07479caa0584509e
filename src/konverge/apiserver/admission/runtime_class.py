"""RuntimeClass: pods get the overhead and the scheduling of their class."""

from __future__ import annotations

from konverge.apiserver.admission.plugin import Kind, Step, refusal, spec_of
from konverge.apiserver.field_errors import quote
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj
from konverge.objects.amounts import amounts

_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_WITHOUT_CLASS = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass:
    def admit(self, kind: Kind) -> Step | None:
        return _admit if kind.writes("", "pods", "CREATE") else None

    def validate(self, kind: Kind) -> Step | None:
        return _validate if kind.writes("", "pods", "CREATE") else None


def _class(request: AdmissionRequest, spec: Obj) -> Obj | None:
    name = spec.get("runtimeClassName")
    if name is None:
        return None
    found = request.call.lookup("node.k8s.io", "runtimeclasses", "", name)
    if found is None:
        raise refusal(request, f"pod rejected: RuntimeClass {quote(name)} not found")
    return found


def _admit(request: AdmissionRequest) -> None:
    assert request.obj is not None
    spec = spec_of(request.obj)
    found = _class(request, spec)
    if found is None:
        return
    overhead = (found.get("overhead") or {}).get("podFixed")
    if overhead is not None:
        if spec.get("overhead") and amounts(spec["overhead"]) != amounts(overhead):
            raise refusal(request, _MISMATCH)
        spec["overhead"] = overhead
    if found.get("scheduling"):
        _schedule(request, spec, found["scheduling"])


def _schedule(request: AdmissionRequest, spec: Obj, scheduling: Obj) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            words = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
            raise refusal(request, f"{words}pod.spec.nodeSelector[{key}] = {selector[key]}")
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    given = list(spec.get("tolerations") or ())
    spec["tolerations"] = given + [new for new in scheduling.get("tolerations") or () if new not in given]
    if not spec["tolerations"]:
        del spec["tolerations"]


def _validate(request: AdmissionRequest) -> None:
    assert request.obj is not None
    spec = spec_of(request.obj)
    found = _class(request, spec)
    overhead = ((found or {}).get("overhead") or {}).get("podFixed")
    if overhead is None:
        if spec.get("overhead") is not None:
            raise refusal(request, _WITHOUT_CLASS)
    elif amounts(spec.get("overhead")) != amounts(overhead):
        raise refusal(request, _MISMATCH)
