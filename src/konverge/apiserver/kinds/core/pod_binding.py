"""/binding: how a scheduler gives a pod to a node.

errors = check_binding(binding)         # 422 of kind Binding
refusal = bind(pod, binding)            # 409 on pods/binding, or "" when the pod has been changed
"""

from __future__ import annotations

from konverge.apiserver.fielderrors import FieldError
from konverge.apiserver.kinds.declare import Report
from konverge.apiserver.kinds.rules.names import dns_subdomain
from konverge.apiserver.kinds.rules.times import timestamp
from konverge.apiserver.strategy import Obj


def check_binding(binding: Obj) -> list[FieldError]:
    """The target is a node."""
    report, target = Report(), binding.get("target") or {}
    kind, name = target.get("kind") or "", target.get("name") or ""
    if kind not in ("", "Node"):
        report.not_supported("target.kind", kind, ("Node", "<empty>"))
    if not name:
        report.required("target.name")
    elif kind in ("", "Node"):
        dns_subdomain(name, "target.name", report)
    return report.errors


def bind(pod: Obj, binding: Obj) -> str:
    """Put the pod on its node, in place; or say why it cannot be."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    if metadata.get("deletionTimestamp"):
        return f"pod {metadata['name']} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {metadata["name"]} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {metadata['name']} has non-empty .spec.schedulingGates"
    spec["nodeName"] = binding["target"]["name"]
    status.pop("nominatedNodeName", None)
    given = binding.get("metadata") or {}
    for name in ("annotations", "labels"):
        if given.get(name):
            metadata[name] = {**(metadata.get(name) or {}), **given[name]}
    _scheduled(status)
    return ""


def _scheduled(status: Obj) -> None:
    conditions = status.setdefault("conditions", [])
    for condition in conditions:
        if condition.get("type") == "PodScheduled":
            if condition.get("status") != "True":
                condition["lastTransitionTime"] = timestamp()
            condition["status"] = "True"
            condition.pop("reason", None)
            condition.pop("message", None)
            return
    conditions.append(
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": timestamp()}
    )
