"""Node. Upstream: pkg/registry/core/node/strategy.go, pkg/apis/core/validation, pkg/api/node/util.go."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from konverge.apiserver.field_errors import ErrorType, FieldError
from konverge.apiserver.go.json import unmarshal_structs_error
from konverge.apiserver.go.netip import parse_cidr_sloppy
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.core.pod.scheduling import TAINT_EFFECTS
from konverge.apiserver.kinds.core.resource_names import resource_amount
from konverge.apiserver.kinds.framework.declare import Report, as_created, creation, one_of_required, update
from konverge.apiserver.kinds.framework.lifecycle import status_kept
from konverge.apiserver.kinds.rules.defaults import section_of
from konverge.apiserver.kinds.rules.names import qualified_name
from konverge.apiserver.kinds.rules.network import cidr_legacy, cidr_warnings
from konverge.apiserver.kinds.rules.numbers import positive
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy
from konverge.objects.names import label_value_errors

_TAINTS_KEY = "scheduler.alpha.kubernetes.io/taints"
_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_CIDR_FIXED = 'node updates may not change podCIDR except from "" to valid'


def _defaults(node: Obj) -> None:  # upstream: SetDefaults_NodeStatus, Convert_v1_NodeSpec_To_core_NodeSpec
    """podCIDR and podCIDRs say the same, podCIDR wins; what is not reserved can be allocated."""
    spec, status = section_of(node, "spec"), section_of(node, "status")
    first, listed = spec.get("podCIDR"), spec.get("podCIDRs")
    if first and (not listed or listed[0] != first):
        spec["podCIDRs"] = [first]
    elif listed:
        spec["podCIDR"] = listed[0]
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _prepare_create(node: Obj, context: Context) -> None:  # upstream: nodeStrategy.PrepareForCreate
    node["spec"].pop("configSource", None)
    node["spec"].pop("podPreemptionPolicy", None)
    node["status"].pop("config", None)


def _prepare_update(node: Obj, old: Obj, context: Context) -> None:  # upstream: nodeStrategy.PrepareForUpdate
    status_kept(node, old, context)
    node["spec"].pop("podPreemptionPolicy", None)
    if old["spec"].get("configSource") is None:
        node["spec"].pop("configSource", None)


def _prepare_status(node: Obj, old: Obj, context: Context) -> None:  # upstream: nodeStatusStrategy.PrepareForUpdate
    if (old.get("status") or {}).get("config") is None:
        node["status"].pop("config", None)


def _taints(value: Any, path: str, report: Report) -> None:  # upstream: validateNodeTaints
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(value):
        place, key, effect = f"{path}[{index}]", taint.get("key") or "", taint.get("effect") or ""
        qualified_name(key, f"{place}.key", report)
        errors = label_value_errors(taint.get("value") or "")
        if errors:
            report.invalid(f"{place}.value", taint["value"], ";".join(errors))
        one_of_required(*TAINT_EFFECTS)(effect, f"{place}.effect", report)
        if (key, effect) in seen:
            shown = internal("core.Taint", taint)
            detail = "taints must be unique by key and effect pair"
            report.add(FieldError(ErrorType.DUPLICATE, place, shown, detail))
        seen.add((key, effect))


def _annotations(node: Obj, report: Report) -> None:  # upstream: ValidateTaintsInNodeAnnotations
    text = (node["metadata"].get("annotations") or {}).get(_TAINTS_KEY)
    if not text:
        return
    problem = unmarshal_structs_error(text.encode(), "core.Taint", ("key", "value", "effect"))
    if problem:
        report.invalid("metadata.annotations", _TAINTS_KEY, problem)
    else:
        _taints(json.loads(text) or (), f"metadata.annotations.{_TAINTS_KEY}", report)


def _resources(node: Obj, report: Report) -> None:  # upstream: ValidateNodeResources
    for which in ("capacity", "allocatable"):
        amounts = node["status"].get(which) or {}
        for name in sorted(amounts):
            resource_amount(name, amounts[name], f"status.{which}.{name}", report)


def _features(node: Obj, report: Report) -> None:  # upstream: validateNodeDeclaredFeatures
    listed, path = node["status"].get("declaredFeatures") or [], "status.declaredFeatures"
    for index, name in enumerate(listed):
        if index and listed[index - 1] == name:
            report.duplicate(f"{path}[{index}]", name)
        elif index and listed[index - 1] > name:
            report.invalid(f"{path}[{index}]", name, "list must be sorted alphabetically")
        error = _feature_error(name)
        if error:
            report.invalid(f"{path}[{index}]", name, f"invalid feature name {quote(name)}: {error}")


def _feature_error(name: str) -> str:  # upstream: validateNodeDeclaredFeatureName
    if len(name) > 253:
        return "must be no more than 253 characters"
    if _FEATURE.fullmatch(name):
        return ""
    return (
        "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
        "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
    )


def _pod_networks(node: Obj, report: Report) -> None:  # upstream: ValidateNode
    listed, path = node["spec"].get("podCIDRs") or [], "spec.podCIDRs"
    for index, value in enumerate(listed):
        cidr_legacy(value, f"{path}[{index}]", report)
    if len(listed) < 2:
        return
    wrong = next((index for index, value in enumerate(listed) if parse_cidr_sloppy(value) is None), None)
    if wrong is not None:
        problem = f"invalid CIDR[{wrong}]: <nil> (invalid CIDR address: {listed[wrong]})"
        detail = f"invalid PodCIDRs. failed to check with dual stack with error:{problem}"
        report.add(FieldError(ErrorType.INTERNAL, path, None, detail))
    families = {parsed[1].version for parsed in map(parse_cidr_sloppy, listed) if parsed}
    if len(listed) > 2 or len(families) < 2:
        report.invalid(path, listed, "may specify no more than one CIDR for each IP family")


def _node(node: Any, path: str, report: Report) -> bool:  # upstream: ValidateNode
    """A node as it is created. The API reports taints at metadata.taints."""
    _annotations(node, report)
    _taints(node["spec"].get("taints") or (), "metadata.taints", report)
    _resources(node, report)
    swap = ((node["status"].get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    if swap is not None:
        positive(swap, "metadata.nodeSwapStatus.capacity", report)
    _features(node, report)
    _pod_networks(node, report)
    return True


def _changed(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateNodeUpdate
    _annotations(new, report)
    _resources(new, report)
    _features(new, report)
    _addresses(new, report)
    spec, before = new["spec"], old["spec"]
    _networks_kept(spec.get("podCIDRs") or [], before.get("podCIDRs") or [], report)
    provider = before.get("providerID")
    if provider and spec.get("providerID") != provider:
        verb = "modified" if spec.get("providerID") else "cleared"
        report.invalid("spec.providerID", None, f"field cannot be {verb} once set")
    _taints(spec.get("taints") or (), "metadata.taints", report)
    if (spec.get("externalID") or "") != (before.get("externalID") or ""):
        report.forbidden("spec.externalID", "may not be updated")
    return True


def _addresses(node: Obj, report: Report) -> None:  # upstream: ValidateNodeUpdate
    seen: list[Any] = []
    for index, address in enumerate(node["status"].get("addresses") or ()):
        if address in seen:
            report.duplicate(f"status.addresses[{index}]", internal("core.NodeAddress", address))
        seen.append(address)


def _networks_kept(new: list[str], old: list[str], report: Report) -> None:  # upstream: ValidateNodeUpdate
    if old and len(new) != len(old):
        report.forbidden("spec.podCIDRs", _CIDR_FIXED)
    elif old:
        for value, before in zip(new, old, strict=True):
            if value != before:
                report.forbidden("spec.podCIDRs", _CIDR_FIXED)


def _warnings(node: Obj, old: Obj | None, context: Context) -> Iterable[str]:  # upstream: nodeWarnings
    spec = node["spec"]
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for index, value in enumerate(spec.get("podCIDRs") or ()):
        yield from cidr_warnings(f"spec.podCIDRs[{index}]", value)


NODE = Strategy(  # upstream: nodeStrategy
    defaults=_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_create=creation(_node),
    validate_update=update(as_created(_node), _changed),
    warnings=_warnings,
    status=StatusRules(prepare=_prepare_status, validate=update(_changed)),
    field_selectors={
        "spec.unschedulable": lambda node: "true" if (node.get("spec") or {}).get("unschedulable") else "false"
    },
)


_DEPRECATED = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": ('deprecated since v1.17; use "topology.kubernetes.io/region" instead'),
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": ("deprecated since v1.22; use Taints and Tolerations instead"),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def deprecated_label(key: str) -> str:  # upstream: GetNodeLabelDeprecatedMessage
    """What to use instead, or "" for a label that is fine."""
    return _DEPRECATED.get(key, "")


# upstream: GetWarningsForNodeSelectorTerm
def term_warnings(term: dict[str, Any], path: str, *, check_values: bool) -> Iterable[str]:
    """About one NodeSelectorTerm; values are only warned about where they are not refused."""
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key") or ""
        if deprecated_label(key):
            yield f"{path}.matchExpressions[{index}].key: {key} is {deprecated_label(key)}"
        for at, value in enumerate(expression.get("values") or () if check_values else ()):
            for detail in label_value_errors(value):
                yield f"{path}.matchExpressions[{index}].values[{at}]: {value} is invalid, {detail}"
