"""/resize: changing the cpu and memory of a pod that runs.

Upstream: pkg/registry/core/pod/strategy.go, pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.core.pod.annotations import MIRROR
from konverge.apiserver.kinds.core.pod.resources import default_pod_level, quality_of_service
from konverge.apiserver.kinds.core.pod.update import check_pod
from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.kinds.framework.lifecycle import generation_of_spec, metadata_kept
from konverge.apiserver.strategy import Context, Obj

Spec = dict[str, Any]

_RESIZED = ("resources", "resizePolicy")


# upstream: podResizeStrategy.PrepareForUpdate, dropNonResizeUpdates
def prepare_resize(pod: Obj, old: Obj, context: Context) -> None:
    """Only the sizes of the containers come from the request; the rest is the stored pod."""
    new, before = pod["spec"], old["spec"]
    if all(len(new.get(kind) or ()) == len(before.get(kind) or ()) for kind in ("containers", "initContainers")):
        spec = {**before}
        for kind in ("containers", "initContainers"):
            if new.get(kind):
                spec[kind] = _merged(new[kind], before[kind])
        resources = new.get("resources") or before.get("resources")
        if resources:
            spec["resources"] = resources
            default_pod_level(spec)
        pod["spec"] = spec
    pod["status"] = old["status"]
    metadata_kept(pod, old, context)
    generation_of_spec(pod, old, context)  # upstream: updatePodGeneration


def _merged(new: list[Spec], old: list[Spec]) -> list[Spec]:  # upstream: dropNonResizeUpdatesForContainers
    if any(container.get("name") != before.get("name") for container, before in zip(new, old, strict=True)):
        return new
    merged = []
    for container, before in zip(new, old, strict=True):
        kept = {name: value for name, value in before.items() if name not in _RESIZED}
        merged.append({**kept, **{name: container[name] for name in _RESIZED if name in container}})
    return merged


def check_pod_resize(new: Obj, old: Obj, report: Report) -> None:  # upstream: ValidatePodResize
    """Sizes change within the quality of service; nothing else does."""
    check_pod(new, report)
    refusal = _never(old)
    if refusal:
        report.errors.clear()
        report.forbidden("", refusal)
        return
    if quality_of_service(old["spec"]) != quality_of_service(new["spec"]):
        detail = "Pod QOS Class may not change as a result of resizing"
        report.invalid("spec", new["status"].get("qosClass", ""), detail)
    if not _node_can(old):
        report.forbidden("spec", "Pod running on node without support for resize")
    _pod_level(new["spec"], old["spec"], report)
    before = len(report.errors)
    for kind in ("containers", "initContainers"):
        _same_order(new["spec"], old["spec"], kind, report)
    if len(report.errors) == before:
        _containers(new["spec"], old["spec"], report)


def _never(pod: Obj) -> str:  # upstream: ValidatePodResize
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        return "static pods cannot be resized"
    return "windows pods cannot be resized" if (pod["spec"].get("os") or {}).get("name") == "windows" else ""


def _node_can(pod: Obj) -> bool:  # upstream: isPodResizeRequestSupported
    for status in pod["status"].get("containerStatuses") or ():
        if (status.get("state") or {}).get("running") is not None:
            return status.get("resources") is not None
    return True


def _lost(new: Spec, old: Spec, which: str) -> bool:  # upstream: resourcesRemoved
    return bool((old.get(which) or {}).keys() - (new.get(which) or {}).keys())


def _without_sizes(resources: Spec | None) -> Spec:  # upstream: dropCPUMemoryResourceRequirementsUpdates
    rest = {**(resources or {})}
    for which in ("requests", "limits"):
        kept = {name: value for name, value in (rest.pop(which, None) or {}).items() if name not in ("cpu", "memory")}
        if kept:
            rest[which] = kept
    return rest


def _pod_level(new: Spec, old: Spec, report: Report) -> None:  # upstream: validatePodLevelResourcesResize
    now, before = new.get("resources"), old.get("resources")
    if not now and not before:
        return
    if before and not now:
        report.forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    for which in ("requests", "limits"):
        if _lost(now or {}, before or {}, which):
            report.forbidden(f"spec.resources.{which}", f"pod-level resource {which} cannot be removed")
    if _without_sizes(now) != _without_sizes(before):
        report.forbidden("spec", "only cpu and memory resources are mutable at pod-level")


# upstream: validatePodResizeContainerOrdering
def _same_order(new: Spec, old: Spec, kind: str, report: Report) -> None:
    now, before = new.get(kind) or [], old.get(kind) or []
    if len(now) != len(before):
        report.forbidden(f"spec.{kind}", f"{kind} may not be added or removed on resize")
        return
    for index, container in enumerate(before):
        if now[index].get("name") != container.get("name"):
            detail = f"{kind} may not be renamed or reordered on resize"
            report.forbidden(f"spec.{kind}[{index}].name", detail)


def _containers(new: Spec, old: Spec, report: Report) -> None:  # upstream: ValidatePodResize
    for kind in ("initContainers", "containers"):
        for index, before in enumerate(old.get(kind) or ()):
            now = new[kind][index].get("resources") or {}
            for which in ("requests", "limits"):
                if _lost(now, before.get("resources") or {}, which):
                    place = f"spec.{kind}[{index}].resources.{which}"
                    report.forbidden(place, f"resource {which} cannot be removed")
    for index, before in enumerate(old.get("containers") or ()):
        if _fixed(new["containers"][index]) != _fixed(before):
            report.forbidden("spec", "only cpu and memory resources are mutable")
    for index, before in enumerate(old.get("initContainers") or ()):
        _init_container(new["initContainers"][index], before, f"spec.initContainers[{index}]", report)


def _fixed(container: Spec) -> Spec:  # upstream: dropCPUMemoryResourcesFromContainer
    return {**container, "resources": _without_sizes(container.get("resources"))}


def _init_container(new: Spec, old: Spec, path: str, report: Report) -> None:  # upstream: ValidatePodResize
    if _fixed(new) != _fixed(old):
        report.forbidden(path, "only cpu and memory resources for init or sidecar containers are mutable")
    if new == old or new.get("restartPolicy") == "Always":
        return
    for policy in new.get("resizePolicy") or ():
        if policy.get("restartPolicy") == "RestartContainer":
            detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            report.forbidden(path, detail)
