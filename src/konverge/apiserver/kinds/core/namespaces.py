"""Namespace: always labelled with its name, and held by its own finalizers until it is empty.

Upstream: pkg/registry/core/namespace, pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, creation, field, items, section, update
from konverge.apiserver.kinds.framework.lifecycle import selectable
from konverge.apiserver.kinds.rules.defaults import fill, section_of
from konverge.apiserver.kinds.rules.names import object_name, qualified_name
from konverge.apiserver.meta.validate import STANDARD_FINALIZERS
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy
from konverge.objects.names import dns_label_errors

NAME_LABEL = "kubernetes.io/metadata.name"
KUBERNETES = "kubernetes"


# upstream: validateFinalizerName, validateKubeFinalizerName
def finalizer_name(value: Any, path: str, report: Report) -> bool:
    """Qualified, or one of Kubernetes' own."""
    qualified_name(value, path, report)
    if "/" in value or value in STANDARD_FINALIZERS:
        return True
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return report.invalid(path, value, detail)


def _label(namespace: Obj) -> None:  # upstream: namespaceStrategy.Canonicalize
    metadata = namespace["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), NAME_LABEL: metadata["name"]}


def _defaults(namespace: Obj) -> None:  # upstream: SetDefaults_Namespace, SetDefaults_NamespaceStatus
    section_of(namespace, "metadata")
    section_of(namespace, "spec")
    _label(namespace)
    fill(section_of(namespace, "status"), {"phase": "Active"})


def _prepare_create(namespace: Obj, context: Context) -> None:  # upstream: namespaceStrategy.PrepareForCreate
    _label(namespace)
    namespace["status"] = {"phase": "Active"}
    spec = namespace["spec"]
    if KUBERNETES not in (spec.get("finalizers") or ()):
        spec["finalizers"] = [*(spec.get("finalizers") or ()), KUBERNETES]


def _prepare_update(namespace: Obj, old: Obj, context: Context) -> None:  # upstream: namespaceStrategy.PrepareForUpdate
    _label(namespace)
    namespace["spec"] = old["spec"]
    namespace["status"] = old["status"]


# upstream: namespaceFinalizeStrategy.PrepareForUpdate
def _prepare_finalize(namespace: Obj, old: Obj, context: Context) -> None:
    _label(namespace)
    namespace["status"] = old["status"]


def _all_finalizers(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateNamespace
    for name in value:
        finalizer_name(name, path, report)
    return True


_SPEC = section("spec", field("finalizers", _all_finalizers))


def _phase(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateNamespaceStatusUpdate
    phase = new["status"].get("phase", "")
    if new["metadata"].get("deletionTimestamp"):
        detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        return phase == "Terminating" or report.invalid("status.Phase", phase, detail)
    detail = "may only be 'Active' if `deletionTimestamp` is empty"
    return phase == "Active" or report.invalid("status.Phase", phase, detail)


def _mark(namespace: Obj, context: Context) -> None:  # upstream: REST.Delete (namespace storage)
    """Namespaces have no grace period at all, not even one of zero."""
    namespace["metadata"].pop("deletionGracePeriodSeconds", None)
    namespace["status"]["phase"] = "Terminating"


NAMESPACE = Strategy(  # upstream: namespaceStrategy
    defaults=_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_create=creation(_SPEC),
    validate_update=update(_SPEC),
    status=StatusRules(validate=update(_phase)),
    subresources={
        "finalize": StatusRules(
            prepare=_prepare_finalize,
            validate=update(section("spec", field("finalizers", items(finalizer_name)))),
        )
    },
    name_check=object_name(dns_label_errors),
    returns_deleted=True,
    field_selectors=selectable("status.phase"),
    held=lambda namespace: bool((namespace.get("spec") or {}).get("finalizers")),
    on_marked=_mark,
)
