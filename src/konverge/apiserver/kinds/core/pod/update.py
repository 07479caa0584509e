"""What may change in a pod: its images and little else; debuggers and sizes through subresources of their own.

Upstream: pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.structs import difference, internal
from konverge.apiserver.kinds.core.pod.annotations import MIRROR, annotation_changes, pod_annotations
from konverge.apiserver.kinds.core.pod.containers import trimmed_image
from konverge.apiserver.kinds.core.pod.scheduling import TOLERATIONS
from konverge.apiserver.kinds.core.pod.spec import check_pod_spec
from konverge.apiserver.kinds.framework.declare import Report, same
from konverge.apiserver.kinds.rules.defaults import take
from konverge.apiserver.kinds.rules.numbers import MAX_INT32, inclusive, not_negative
from konverge.apiserver.strategy import Obj

Spec = dict[str, Any]

_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod(pod: Obj, report: Report) -> None:  # upstream: validatePodMetadataAndSpec
    """What holds of every pod, new or changed."""
    metadata, spec = pod["metadata"], pod["spec"]
    pod_annotations(metadata.get("annotations") or {}, spec, "metadata.annotations", report)
    check_pod_spec(spec, "spec", report, metadata, is_pod=True)
    if not spec.get("serviceAccountName"):
        _no_tokens(spec, report)
    if spec.get("terminationGracePeriodSeconds") is not None:
        not_negative(spec["terminationGracePeriodSeconds"], "spec.terminationGracePeriodSeconds", report)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            trimmed_image(container, f"spec.{kind}[{index}]", report)


def _no_tokens(spec: Spec, report: Report) -> None:  # upstream: validatePodMetadataAndSpec
    for index, volume in enumerate(spec.get("volumes") or ()):
        for at, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                place = f"spec.volumes[{index}].projected.sources[{at}].serviceAccountToken"
                report.forbidden(place, "must not be specified when serviceAccountName is not set")


def _changed_annotations(new: Obj, old: Obj, report: Report) -> None:  # upstream: ValidatePodSpecificAnnotationUpdates
    now, before = new["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    annotation_changes(now, before, "metadata.annotations", report)
    pod_annotations(now, new["spec"], "metadata.annotations", report)


def check_pod_update(new: Obj, old: Obj, report: Report) -> None:  # upstream: ValidatePodUpdate
    """An update of the pod itself."""
    check_pod(new, report)
    _changed_annotations(new, old, report)
    spec, before = new["spec"], old["spec"]
    if not (_same_containers(spec, before, "containers", report)):
        return
    if not (_same_containers(spec, before, "initContainers", report) and _deadline(spec, before, report)):
        return
    _added_tolerations(spec.get("tolerations") or [], before.get("tolerations") or [], report)
    _removed_gates(spec.get("schedulingGates") or [], before.get("schedulingGates") or [], report)
    if spec != before:
        _immutable_rest(spec, before, report)


def _same_containers(new: Spec, old: Spec, kind: str, report: Report) -> bool:  # upstream: ValidateContainerUpdates
    now, before = new.get(kind) or [], old.get(kind) or []
    if len(now) != len(before):
        return report.forbidden(f"spec.{kind}", "pod updates may not add or remove containers")
    for index, container in enumerate(now):
        if not container.get("image"):
            report.required(f"spec.{kind}[{index}].image")
        trimmed_image(container, f"spec.{kind}[{index}]", report)
    return True


def _deadline(new: Spec, old: Spec, report: Report) -> bool:  # upstream: ValidatePodUpdate
    now, before, path = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"), "spec.activeDeadlineSeconds"
    if now is None:
        if before is not None:
            report.invalid(path, None, "must not update from a positive integer to nil value")
        return True
    if not 0 <= now <= MAX_INT32:
        return report.invalid(path, now, inclusive(0, MAX_INT32))
    if before is not None and before < now:
        return report.invalid(path, now, "must be less than or equal to previous value")
    return True


# upstream: validateOnlyAddedTolerations
def _added_tolerations(new: list[Any], old: list[Any], report: Report) -> None:
    def kept(toleration: Any) -> dict[str, Any]:
        return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}

    present = [kept(toleration) for toleration in new]
    if any(kept(toleration) not in present for toleration in old):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        report.forbidden("spec.tolerations", detail)
        return
    TOLERATIONS(new, "spec.tolerations", report)


# upstream: validateOnlyDeletedSchedulingGates
def _removed_gates(new: list[Any], old: list[Any], report: Report) -> None:
    known = {gate.get("name") for gate in old}
    for index, gate in enumerate(new):
        if gate.get("name") not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            report.forbidden(f"spec.schedulingGates[{index}].name", detail)


def _immutable_rest(new: Spec, old: Spec, report: Report) -> None:  # upstream: ValidatePodUpdate
    munged = {**new}
    for kind in ("containers", "initContainers"):
        if new.get(kind):
            pairs = zip(new[kind], old[kind], strict=True)
            munged[kind] = [{**container, "image": before.get("image")} for container, before in pairs]
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        take(munged, old, name)
    before = old.get("terminationGracePeriodSeconds")
    if before is not None and before < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = before
    if old.get("schedulingGates"):
        _gated(munged, old, report)
    if munged != old:
        shown = difference(internal("core.PodSpec", old), internal("core.PodSpec", munged))
        report.forbidden("spec", f"pod updates may not change fields other than {_UPDATABLE}\n{shown}")


def _gated(munged: Spec, old: Spec, report: Report) -> None:  # upstream: validateNodeSelectorMutation
    """A pod with scheduling gates may still narrow down its nodes."""
    before, now = old.get("nodeSelector") or {}, munged.get("nodeSelector") or {}
    if any(now.get(key) != value for key, value in before.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        report.invalid("spec.nodeSelector", munged.get("nodeSelector"), detail)
    take(munged, old, "nodeSelector")
    was = (old.get("affinity") or {}).get("nodeAffinity")
    becomes = (munged.get("affinity") or {}).get("nodeAffinity")
    if same(was, becomes):
        return
    _narrowed(becomes, was, report)
    affinity = {name: value for name, value in (munged.get("affinity") or {}).items() if name != "nodeAffinity"}
    if was is not None:
        affinity["nodeAffinity"] = was
    if affinity or "affinity" in old:
        munged["affinity"] = affinity
    else:
        munged.pop("affinity", None)


def _narrowed(new: Any, old: Any, report: Report) -> None:  # upstream: validateNodeAffinityMutation
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    path = f"spec.affinity.nodeAffinity.{name}.nodeSelectorTerms"
    before = ((old or {}).get(name) or {}).get("nodeSelectorTerms") or []
    now = ((new or {}).get(name) or {}).get("nodeSelectorTerms") or []
    if before and len(before) != len(now):
        shown = internal("[]core.NodeSelectorTerm", now or None)
        report.invalid(path, shown, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, term in enumerate(before):
        if not _only_more(now[index], term):
            shown = internal("core.NodeSelectorTerm", now[index])
            report.invalid(f"{path}[{index}]", shown, "only additions are allowed (no mutations or deletions)")


def _only_more(new: Any, old: Any) -> bool:  # upstream: validateNodeSelectorTermHasOnlyAdditions
    if same(old, {}):
        return same(new, {})
    return all(
        (new.get(name) or [])[: len(old.get(name) or [])] == (old.get(name) or [])
        for name in ("matchExpressions", "matchFields")
    )


# upstream: ValidatePodEphemeralContainersUpdate
def check_ephemeral_update(new: Obj, old: Obj, report: Report) -> None:
    """/ephemeralcontainers: debuggers are added, never changed."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        report.forbidden("", "static pods do not support ephemeral containers")
        return
    check_pod(new, report)
    _changed_annotations(new, old, report)
    now = {container.get("name"): container for container in new["spec"].get("ephemeralContainers") or ()}
    for container in old["spec"].get("ephemeralContainers") or ():
        name, path = container.get("name"), "spec.ephemeralContainers"
        if name not in now:
            report.forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n')
        elif now[name] != container:
            shown = difference(*(internal("core.EphemeralContainer", each) for each in (container, now[name])))
            report.forbidden(path, f'existing ephemeral containers "{name}" may not be changed\n{shown}')
