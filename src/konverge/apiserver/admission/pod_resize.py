"""PodResizeValidator: a pod that runs can only grow as far as its node."""

from __future__ import annotations

from konverge.apiserver import status
from konverge.apiserver.admission.plugin import Kind, Step, Validating, refusal
from konverge.apiserver.field_errors import quote
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj
from konverge.objects.amounts import amounts, asked_by_pod
from konverge.objects.quantity import Quantity

_ZERO = Quantity("0")


class PodResizeValidator(Validating):
    def validate(self, kind: Kind) -> Step | None:
        resize = (kind.group, kind.plural, kind.subresource, kind.operation) == ("", "pods", "resize", "UPDATE")
        return _check if resize else None


def _check(request: AdmissionRequest) -> None:
    assert request.obj is not None
    assert request.old is not None
    name = request.obj["spec"].get("nodeName")
    if not name or request.obj["metadata"].get("generation") == request.old["metadata"].get("generation"):
        return
    node = request.call.lookup("", "nodes", "", name)
    if node is None:
        raise refusal(request, f"node {quote(name)} not found")
    system = (node["metadata"].get("labels") or {}).get("kubernetes.io/os", "linux")
    if system != "linux":
        words = f"pod resize is only supported on linux nodes, node {quote(name)} is {quote(system)}"
        raise _refused(request, words, "UnsupportedPlatform")
    problems = _over(request.obj["spec"], (node.get("status") or {}).get("allocatable") or {})
    if problems:
        words = f"node didn't have enough allocatable resources: {'; '.join(problems)}"
        raise _refused(request, words, "NodeCapacity")


def _over(spec: Obj, allocatable: Obj) -> list[str]:
    wanted, there = asked_by_pod(spec, "requests"), amounts(allocatable)
    problems = []
    for name, scale in (("cpu", -3), ("memory", 0)):
        asked, free = wanted.get(name, _ZERO), there.get(name, _ZERO)
        if asked > free:
            problems.append(f"{name}, requested: {asked.scaled(scale)}, allocatable: {free.scaled(scale)}")
    return problems


def _refused(request: AdmissionRequest, words: str, reason: str) -> status.ApiError:
    error = refusal(request, words)
    error.details = {**(error.details or {}), "causes": [{"reason": reason}]}
    return error
