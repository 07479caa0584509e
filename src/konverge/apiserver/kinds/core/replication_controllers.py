"""PodTemplate and ReplicationController.

Upstream: pkg/apis/core/validation, pkg/registry/core/podtemplate, pkg/registry/core/replicationcontroller.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.kinds.core.pod.defaults import default_pod_template
from konverge.apiserver.kinds.core.pod.template import always_restarting, matching_labels, name_warnings, pod_template
from konverge.apiserver.kinds.core.pod.warnings import template_warnings
from konverge.apiserver.kinds.framework.declare import (
    Report,
    creation,
    field,
    not_above,
    present,
    required,
    same_rule,
    section,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import prepared
from konverge.apiserver.kinds.rules.defaults import fill_unset, section_of
from konverge.apiserver.kinds.rules.names import object_name
from konverge.apiserver.kinds.rules.numbers import not_negative
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy
from konverge.objects.names import counted_in_bytes, dns_subdomain_errors


def _default_template(obj: Obj) -> None:
    default_pod_template(section_of(obj, "template"))


# upstream: podTemplateStrategy.WarningsOnUpdate
def _template_warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    if old is None or obj["template"] != old.get("template"):
        yield from template_warnings(obj["template"], "template")


_TEMPLATE = section("template", pod_template)  # upstream: ValidatePodTemplate

POD_TEMPLATE = Strategy(  # upstream: podTemplateStrategy
    defaults=_default_template,
    validate_create=creation(_TEMPLATE),
    validate_update=update(_TEMPLATE),
    warnings=_template_warnings,
    generation=True,
    returns_deleted=True,
)


def _default_controller(controller: Obj) -> None:  # upstream: SetDefaults_ReplicationController
    spec = section_of(controller, "spec")
    fill_unset(spec, {"replicas": 1})
    if spec.get("template") is not None:
        labels = (spec["template"].get("metadata") or {}).get("labels")
        if labels:
            spec["selector"] = spec.get("selector") or dict(labels)
            metadata = controller["metadata"]
            metadata["labels"] = metadata.get("labels") or dict(labels)
        default_pod_template(spec["template"])


def _selected_template(spec: Any, path: str, report: Report) -> bool:  # upstream: ValidatePodTemplateSpecForRC
    template, place = spec.get("template"), f"{path}.template"
    if template is None:
        return report.required(place)
    matching_labels({"matchLabels": spec.get("selector")}, template, place, report)
    pod_template(template, place, report)
    return _RESTARTING(template, place, report)


_RESTARTING = always_restarting("ReplicationController")
_SPEC = section(  # upstream: ValidateReplicationControllerSpec
    "spec",
    field("selector", required),
    _selected_template,
    # Declared rules of the API report after the written ones.
    field("replicas", present, not_negative),
    field("minReadySeconds", not_negative),
)
_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
_STATUS = section(  # upstream: ValidateReplicationControllerStatus
    "status",
    same_rule(_COUNTS, not_negative),
    *(not_above(name, "replicas", "cannot be greater than status.replicas") for name in _COUNTS[1:4]),
    not_above("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
)


# upstream: rcStrategy.WarningsOnCreate
def _controller_warnings(controller: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    if old is None:
        yield from name_warnings(controller)
    if old is None or controller["spec"] != old["spec"]:
        yield from template_warnings(controller["spec"].get("template") or {}, "spec.template")


REPLICATION_CONTROLLER = Strategy(  # upstream: rcStrategy
    defaults=_default_controller,
    **prepared(status=("", "v1", "ReplicationController")),  # upstream: rcStrategy.PrepareForCreate
    validate_create=creation(_SPEC),
    validate_update=update(_SPEC),
    warnings=_controller_warnings,
    status=StatusRules(validate=update(_STATUS)),
    generation=True,
    name_check=object_name(counted_in_bytes(dns_subdomain_errors)),
    default_propagation="Orphan",
    field_selectors={"status.replicas": lambda rc: str((rc.get("status") or {}).get("replicas") or 0)},
)
