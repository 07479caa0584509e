"""rbac.authorization.k8s.io: the shape of roles and bindings. Whether the caller may grant them is for `auth`.

Upstream: pkg/apis/rbac/validation, pkg/apis/rbac/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import (
    Part,
    Report,
    Rule,
    Step,
    creation,
    field,
    items,
    one_of,
    required,
    required_saying,
    section,
    struct,
    text,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import empty_is_null, kept, prepared
from konverge.apiserver.kinds.rules.defaults import fill
from konverge.apiserver.kinds.rules.names import dns_subdomain, path_segment, path_segment_name
from konverge.apiserver.kinds.rules.selectors import label_selector
from konverge.apiserver.strategy import Obj, Strategy

GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def _rule(namespaced: bool) -> Rule:  # upstream: ValidatePolicyRule
    """A PolicyRule: about resources, or (in a ClusterRole) about URLs, never about both."""

    def check(value: Any, path: str, report: Report) -> bool:
        urls = value.get("nonResourceURLs")
        if not urls:
            if not value.get("apiGroups"):
                report.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
            return bool(value.get("resources")) or report.required(
                f"{path}.resources", "resource rules must supply at least one resource"
            )
        if namespaced:
            report.invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        if value.get("apiGroups") or value.get("resources") or value.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            report.invalid(f"{path}.nonResourceURLs", urls, detail)
        return True

    return check


def _aggregation_selector(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateClusterRole
    before = len(report.errors)
    label_selector(value, path, report)
    return len(report.errors) == before or report.invalid(path, None, "invalid label selector.")


_AGGREGATION = struct(  # upstream: ValidateClusterRole
    field(
        "clusterRoleSelectors",
        required_saying("at least one clusterRoleSelector required if aggregationRule is non-nil"),
        items(_aggregation_selector),
    )
)


def _subject(namespaced: bool) -> Rule:  # upstream: ValidateRoleBindingSubject
    def check(value: Any, path: str, report: Report) -> bool:
        kind, group = value.get("kind", ""), value.get("apiGroup", "")
        if kind not in _SUBJECTS:
            return report.not_supported(f"{path}.kind", kind, _SUBJECTS)
        if kind != "ServiceAccount":
            return group == GROUP or report.not_supported(f"{path}.apiGroup", group, [GROUP])
        if value.get("name"):
            dns_subdomain(value["name"], f"{path}.name", report)
        if group:
            report.not_supported(f"{path}.apiGroup", group, [""])
        return namespaced or bool(value.get("namespace")) or report.required(f"{path}.namespace")

    return check


# upstream: ValidateRoleBinding, ValidateClusterRoleBinding
def _binding(namespaced: bool, *kinds: str) -> tuple[Part, ...]:
    return (
        section(
            "roleRef",
            text("apiGroup", one_of(GROUP)),
            text("kind", one_of(*kinds)),
            field("name", path_segment),
        ),
        field("subjects", items(_subject(namespaced))),
    )


# upstream: SetDefaults_RoleBinding, SetDefaults_ClusterRoleBinding, SetDefaults_Subject
def _default_binding(obj: Obj) -> None:
    fill(obj["roleRef"], {"apiGroup": GROUP})
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            fill(subject, {"apiGroup": GROUP})


def _defaults_of(kind: str) -> Callable[[Obj], None]:
    return _default_binding if kind.endswith("Binding") else lambda obj: None


def _no_empty_rules(obj: Obj) -> None:  # upstream: strategy.PrepareForCreate
    if "rules" in obj:
        empty_is_null(obj, "rules")


def _strategy(kind: str, parts: tuple[Part, ...], *transitions: Step) -> Strategy:
    declared = Declared(f"rbac/v1.{kind}")
    return Strategy(
        defaults=_defaults_of(kind),
        **prepared(_no_empty_rules),
        validate_create=creation(*parts, declared.created),
        validate_update=update(parts, *transitions, declared.updated),
        name_check=path_segment_name,
        create_on_update=True,
    )


_ROLE = (field("rules", items(_rule(True))),)
_CLUSTER_ROLE = (field("rules", items(_rule(False))), field("aggregationRule", _AGGREGATION))

# upstream: ValidateRoleBindingUpdate, ValidateClusterRoleBindingUpdate
_ROLE_REF = (section("roleRef", text("name", required)), kept("roleRef", "rbac.RoleRef"))

STRATEGIES = {
    "Role": _strategy("Role", _ROLE),
    "ClusterRole": _strategy("ClusterRole", _CLUSTER_ROLE),
    "RoleBinding": _strategy("RoleBinding", _binding(True, "Role", "ClusterRole"), *_ROLE_REF),
    "ClusterRoleBinding": _strategy("ClusterRoleBinding", _binding(False, "ClusterRole"), *_ROLE_REF),
}
