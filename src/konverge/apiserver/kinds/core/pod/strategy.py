"""The Pod: what happens to it at creation, update, status update and deletion.

Upstream: pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from konverge.apiserver.field_errors import FieldError
from konverge.apiserver.kinds.core.pod.annotations import APP_ARMOR, annotations_match_fields, drop_init_annotations
from konverge.apiserver.kinds.core.pod.defaults import default_pod
from konverge.apiserver.kinds.core.pod.resize import check_pod_resize, prepare_resize
from konverge.apiserver.kinds.core.pod.resources import default_pod_level, quality_of_service
from konverge.apiserver.kinds.core.pod.scope import containers_of
from konverge.apiserver.kinds.core.pod.status import check_pod_status, prepare_status, status_warnings
from konverge.apiserver.kinds.core.pod.update import check_ephemeral_update, check_pod, check_pod_update
from konverge.apiserver.kinds.core.pod.warnings import pod_warnings
from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.kinds.framework.lifecycle import generation_of_spec, metadata_kept, selectable
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy
from konverge.objects.names import dns_label_errors

_AFFINITIES = ("podAffinity", "podAntiAffinity")


# upstream: podStrategy.PrepareForCreate, applySchedulingGatedCondition
def _prepare_create(pod: Obj, context: Context) -> None:
    spec = pod["spec"]
    drop_init_annotations(pod["metadata"])
    pod["status"] = {"phase": "Pending"}
    if spec.get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": timestamp(),
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    _extend_selectors(spec, pod["metadata"].get("labels") or {})
    if any(key.startswith(APP_ARMOR) for key in pod["metadata"].get("annotations") or ()):
        _app_armor_fields(pod, context)
    default_pod_level(spec)
    pod["status"]["qosClass"] = quality_of_service(spec)


# upstream: mutatePodAffinity, mutateTopologySpreadConstraints
def _extend_selectors(spec: dict[str, Any], labels: dict[str, str]) -> None:
    """matchLabelKeys become expressions of the selector, once: at creation."""
    for kind in _AFFINITIES:
        affinity = (spec.get("affinity") or {}).get(kind) or {}
        for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            _extend_selector(term.get("podAffinityTerm") or {}, labels)
        for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            _extend_selector(term, labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _extend_selector(constraint, labels)


# upstream: applyMatchLabelKeysAndMismatchLabelKeys
def _extend_selector(term: dict[str, Any], labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(name) or ():
            if key in labels:
                requirement = {"key": key, "operator": operator, "values": [labels[key]]}
                selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), requirement]


def _app_armor_fields(pod: Obj, context: Context) -> None:  # upstream: applyAppArmorVersionSkew
    """AppArmor annotations become fields."""
    spec, annotations = pod["spec"], pod["metadata"]["annotations"]
    if (spec.get("os") or {}).get("name") == "windows":
        return
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container, _ in containers_of(spec, ""):
        key = APP_ARMOR + (container.get("name") or "")
        if key not in annotations or (container.get("securityContext") or {}).get("appArmorProfile") is not None:
            continue
        profile = _app_armor_profile(annotations[key])
        if profile is not None and profile == of_pod:
            continue
        if profile is not None:
            container.setdefault("securityContext", {})["appArmorProfile"] = profile
        detail = 'deprecated since v1.30; use the "appArmorProfile" field instead'
        context.warn(f"metadata.annotations[{key}]: {detail}")


def _app_armor_profile(annotation: str) -> dict[str, str] | None:  # upstream: ApparmorFieldForAnnotation (pkg/api/pod)
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    name = annotation.removeprefix("localhost/")
    return {"type": "Localhost", "localhostProfile": name} if name and name != annotation else None


def _prepare_update(pod: Obj, old: Obj, context: Context) -> None:  # upstream: podStrategy.PrepareForUpdate
    drop_init_annotations(pod["metadata"])
    pod["status"] = old["status"]
    if not pod["spec"].get("resources") and old["spec"].get("resources"):
        pod["spec"]["resources"] = old["spec"]["resources"]


# upstream: podEphemeralContainersStrategy.PrepareForUpdate
def _prepare_ephemeral(pod: Obj, old: Obj, context: Context) -> None:
    debuggers = pod["spec"].get("ephemeralContainers")
    pod["spec"] = {name: value for name, value in old["spec"].items() if name != "ephemeralContainers"}
    if debuggers:
        pod["spec"]["ephemeralContainers"] = debuggers
    pod["status"] = old["status"]
    metadata_kept(pod, old, context)
    generation_of_spec(pod, old, context)  # upstream: updatePodGeneration


def _validate_create(pod: Obj, context: Context) -> list[FieldError]:  # upstream: ValidatePodCreate
    report, spec = Report(context), pod["spec"]
    check_pod(pod, report)
    if spec.get("ephemeralContainers"):
        report.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        report.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    annotations_match_fields(pod["metadata"], spec, "spec", report)
    return report.errors


def _checking(check: Callable[[Obj, Obj, Report], None]) -> Callable[[Obj, Obj, Context], list[FieldError]]:
    def validate(pod: Obj, old: Obj, context: Context) -> list[FieldError]:
        report = Report(context)
        check(pod, old, report)
        return report.errors

    return validate


# upstream: podStatusStrategy.ValidateUpdate
def _validate_status(pod: Obj, old: Obj, context: Context) -> list[FieldError]:
    report = Report(context)
    check_pod_status(pod, old, report)
    context.warn_all(() if report.errors else status_warnings(pod))
    return report.errors


def _warnings(pod: Obj, old: Obj | None, context: Context) -> Iterable[str]:  # upstream: podStrategy.WarningsOnCreate
    """Warnings are for creators only: a running pod can no longer be changed."""
    if old is not None:
        return
    errors = dns_label_errors(pod["metadata"]["name"])
    if errors:
        hint = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
        yield f"metadata.name: {hint}: [{' '.join(errors)}]"
    yield from pod_warnings(pod["metadata"], pod["spec"], "")


def _grace_period(pod: Obj, asked: int | None) -> int:  # upstream: podStrategy.CheckGracefulDelete
    """A pod that no kubelet runs, or that has ended, is deleted at once."""
    spec = pod["spec"]
    period = asked if asked is not None else spec.get("terminationGracePeriodSeconds") or 0
    if not spec.get("nodeName") or pod["status"].get("phase") in ("Failed", "Succeeded"):
        return 0
    return 1 if period < 0 else period


_NODE = selectable("spec.nodeName")
POD = Strategy(  # upstream: podStrategy
    defaults=default_pod,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_create=_validate_create,
    validate_update=_checking(check_pod_update),
    warnings=_warnings,
    status=StatusRules(prepare=prepare_status, validate=_validate_status),
    subresources={
        "ephemeralcontainers": StatusRules(prepare=_prepare_ephemeral, validate=_checking(check_ephemeral_update)),
        "resize": StatusRules(prepare=prepare_resize, validate=_checking(check_pod_resize)),
    },
    generation=True,
    returns_deleted=True,
    grace_period=_grace_period,
    indexed_fields=("spec.nodeName",),
    field_selectors={
        **_NODE,
        "spec.host": _NODE["spec.nodeName"],
        **selectable("spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
        "spec.hostNetwork": lambda pod: "true" if pod["spec"].get("hostNetwork") else "false",
        **selectable("status.phase", "status.podIP", "status.nominatedNodeName"),
        "status.podIPs": lambda pod: "",  # accepted by the real server, and never filled
    },
)
