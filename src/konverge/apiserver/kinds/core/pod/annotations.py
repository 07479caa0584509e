"""Annotations that mean something to pods: mirror pods, deletion cost, and what seccomp and AppArmor once were.

Upstream: pkg/apis/core/validation, pkg/apis/core/annotation_key_constants.go.
"""

from __future__ import annotations

import json
from typing import Any

from konverge.apiserver.go.json import unmarshal_structs_error
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.kinds.core.pod.scheduling import TOLERATIONS
from konverge.apiserver.kinds.core.pod.scope import containers_of
from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.kinds.rules.names import descending

MIRROR = "kubernetes.io/config.mirror"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
TOLERATIONS_KEY = "scheduler.alpha.kubernetes.io/tolerations"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"

Annotations = dict[str, str]


_OF_OLD_INIT_CONTAINERS = tuple(
    f"pod.{stage}.kubernetes.io/init-container{what}" for stage in ("alpha", "beta") for what in ("s", "-statuses")
)


def drop_init_annotations(metadata: dict[str, Any]) -> None:  # upstream: DropInitContainerAnnotations (pkg/api/pod)
    """Init containers once lived in annotations; what is still sent of them is not kept."""
    annotations = metadata.get("annotations")
    if annotations and any(key in annotations for key in _OF_OLD_INIT_CONTAINERS):
        kept = {key: value for key, value in annotations.items() if key not in _OF_OLD_INIT_CONTAINERS}
        metadata.pop("annotations")
        metadata.update({"annotations": kept} if kept else {})


# upstream: ValidatePodSpecificAnnotations
def pod_annotations(annotations: Annotations, spec: dict[str, Any], path: str, report: Report) -> bool:
    """The annotations of a pod or template."""
    if not annotations:
        return True
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        report.invalid(f"{path}[{MIRROR}]", annotations[MIRROR], detail)
    if annotations.get(TOLERATIONS_KEY):
        _tolerations(annotations[TOLERATIONS_KEY], path, report)
    if DELETION_COST in annotations and not _is_int32(annotations[DELETION_COST]):
        report.invalid(f"{path}[{DELETION_COST}]", annotations[DELETION_COST], "must be a 32bit integer")
    for key in sorted(annotations):
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            _seccomp(annotations[key], f"{path}.{key}", report)
    for key in sorted(annotations):
        if key.startswith(APP_ARMOR):
            _app_armor(key, annotations[key], spec, f"{path}[{key}]", report)
    return True


def _tolerations(text: str, path: str, report: Report) -> None:  # upstream: ValidateTolerationsInPodAnnotations
    problem = unmarshal_structs_error(text.encode(), "core.Toleration", ("key", "operator", "value", "effect"))
    if problem:
        report.invalid(path, TOLERATIONS_KEY, problem)
    else:
        TOLERATIONS(json.loads(text), f"{path}.{TOLERATIONS_KEY}", report)


def _is_int32(text: str) -> bool:  # upstream: GetDeletionCostFromPodAnnotations
    """Canonical decimal: no plus sign, no leading zeros."""
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")
    return plain and -(2**31) <= int(text) < 2**31


def _seccomp(profile: str, path: str, report: Report) -> None:  # upstream: ValidateSeccompProfile
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return
    if profile.startswith("localhost/"):
        descending(profile.removeprefix("localhost/"), path, report)
    else:
        report.invalid(path, profile, "must be a valid seccomp profile")


# upstream: ValidateAppArmorPodAnnotations
def _app_armor(key: str, profile: str, spec: dict[str, Any], path: str, report: Report) -> None:
    name = key.removeprefix(APP_ARMOR)
    if all(container.get("name") != name for container, _ in containers_of(spec, "")):
        report.invalid(path, name, "container not found")
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith("localhost/"):
        report.invalid(path, profile, f"invalid AppArmor profile name: {quote(profile)}")


# upstream: validateSeccompAnnotationsAndFields, validateAppArmorAnnotationsAndFieldsMatchOnCreate
def annotations_match_fields(metadata: dict[str, Any], spec: dict[str, Any], path: str, report: Report) -> bool:
    """An old annotation and the field that replaced it must agree where both are set."""
    annotations = metadata.get("annotations")
    if not annotations:
        return True
    context = spec.get("securityContext") or {}
    if context.get("seccompProfile") and SECCOMP_POD in annotations:
        place = f"{path}.securityContext.seccompProfile"
        _matches(annotations[SECCOMP_POD], context["seccompProfile"], place, "seccomp", report)
    for container, place in containers_of(spec, path):
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        key = SECCOMP_CONTAINER + (container.get("name") or "")
        if profile and key in annotations:
            _matches(annotations[key], profile, f"{place}.securityContext.seccompProfile", "seccomp", report)
    if (spec.get("os") or {}).get("name") == "windows":
        return True
    for container, place in containers_of(spec, path):
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        profile = own or context.get("appArmorProfile")
        key = APP_ARMOR + (container.get("name") or "")
        if profile and key in annotations:
            _matches(annotations[key], profile, f"{place}.securityContext.appArmorProfile", "apparmor", report)
    return True


# upstream: validateSeccompAnnotationsAndFieldsMatch
def _matches(annotation: str, profile: dict[str, Any], path: str, noun: str, report: Report) -> bool:
    kind = profile.get("type")
    expected = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}
    if kind == "Localhost":
        if not annotation.startswith("localhost/"):
            return report.forbidden(f"{path}.type", f"{noun} type in annotation and field must match")
        same = annotation.removeprefix("localhost/") == profile.get("localhostProfile")
        detail = f"{noun} profile in annotation and field must match"
        return same or report.forbidden(f"{path}.localhostProfile", detail)
    fine = annotation in expected.get(str(kind), (annotation,))
    return fine or report.forbidden(f"{path}.type", f"{noun} type in annotation and field must match")


# upstream: ValidatePodSpecificAnnotationUpdates
def annotation_changes(new: Annotations, old: Annotations, path: str, report: Report) -> bool:
    """Mirror and AppArmor annotations stay as they were at creation."""
    for key in sorted(old):
        if new.get(key) != old[key]:
            _frozen(key, f"{path}[{key}]", "remove or update", report)
    for key in sorted(new.keys() - old.keys()):
        _frozen(key, f"{path}[{key}]", "add", report)
    return True


def _frozen(key: str, path: str, verb: str, report: Report) -> None:  # upstream: ValidatePodSpecificAnnotationUpdates
    if key.startswith(APP_ARMOR):
        report.forbidden(path, f"may not {verb} AppArmor annotations")
    if key == MIRROR:
        report.forbidden(path, f"may not {verb} mirror pod annotation")
