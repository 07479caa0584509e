"""Pod templates: what Deployments, Jobs and all other workloads make pods from, and the selectors that select them.

Defaults are in `defaults.default_pod_template`, warnings in `warnings.template_warnings`.

Upstream: pkg/apis/core/validation, pkg/apis/apps/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.core.pod.annotations import annotations_match_fields, pod_annotations
from konverge.apiserver.kinds.core.pod.spec import check_pod_spec
from konverge.apiserver.kinds.framework.declare import Report, Rule
from konverge.apiserver.kinds.rules.names import annotation_errors, labels
from konverge.apiserver.kinds.rules.selectors import is_empty, label_selector, selects
from konverge.apiserver.strategy import Obj
from konverge.objects.names import dns_label_errors


def pod_template(value: Any, path: str, report: Report) -> bool:  # upstream: ValidatePodTemplateSpec
    """A PodTemplateSpec. Labels and annotations are reported beside `spec`, without `metadata`, as the API does."""
    metadata, spec = value.get("metadata") or {}, value.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    labels(metadata.get("labels"), f"{path}.labels", report)
    if annotations:
        report.errors += annotation_errors(annotations, f"{path}.annotations")
        pod_annotations(annotations, spec, f"{path}.annotations", report)
    check_pod_spec(spec, f"{path}.spec", report, {})
    annotations_match_fields(metadata, spec, f"{path}.spec", report)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        report.forbidden(f"{path}.spec.ephemeralContainers", detail)
    return True


SURPRISING_NAME = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
    "a DNS label is recommended: "
)


def name_warnings(obj: Obj) -> list[str]:  # upstream: deploymentStrategy.WarningsOnCreate (and others)
    """Pods are named after the object: a name that is no DNS label is no hostname."""
    errors = dns_label_errors(obj["metadata"].get("name") or "")
    return [f"{SURPRISING_NAME}[{' '.join(errors)}]"] if errors else []


def shown_selector(selector: Any) -> Any:
    """A selector as messages print it."""
    return internal("*meta.LabelSelector", selector)


def template_labels(template: Obj) -> Any:
    """The labels of a template as messages print them; None when there are none."""
    labels = (template.get("metadata") or {}).get("labels")
    return dict(sorted(labels.items())) if labels else None


def good_selector(selector: Any, path: str, report: Report) -> bool:
    """The rules of a selector; False if it cannot be used to select."""
    before = len(report.errors)
    label_selector(selector, path, report)
    return len(report.errors) == before


# upstream: ValidatePodTemplateSpecForReplicaSet
def matching_labels(selector: Any, template: Obj, path: str, report: Report) -> bool:
    """No selector at all selects nothing, an empty one everything."""
    labels = template_labels(template)
    if selector is not None and (is_empty(selector) or selects(selector, labels or {})):
        return True
    return report.invalid(f"{path}.metadata.labels", labels, "`selector` does not match template `labels`")


# upstream: ValidateDeploymentSpec, ValidateReplicaSetSpec, ValidateStatefulSetSpec
def required_selector(noun: str, *, bad: str) -> Rule:
    """`spec.selector` of a workload, then its template if the selector can be used.

    `noun` is what the message about an empty selector names, `bad` the detail for one that cannot be used.
    """

    def check(spec: Any, path: str, report: Report) -> bool:
        selector, place = spec.get("selector"), f"{path}.selector"
        if selector is None:
            return report.required(place) or True
        usable = good_selector(selector, place, report)
        if is_empty(selector):
            report.invalid(place, {}, f"empty selector is invalid for {noun}")
        return usable or report.invalid(place, shown_selector(selector), bad)

    return check


# upstream: ValidatePodTemplateSpecForReplicaSet, ValidateDaemonSetSpec, ValidateStatefulSetSpec
def always_restarting(noun: str) -> Rule:
    """A template whose pods run for ever: `noun` is named in the message about deadlines."""

    def check(template: Any, path: str, report: Report) -> bool:
        spec = template.get("spec") or {}
        if spec.get("restartPolicy") != "Always":
            report.not_supported(f"{path}.spec.restartPolicy", spec.get("restartPolicy") or "", ["Always"])
        if spec.get("activeDeadlineSeconds") is not None:
            detail = f"activeDeadlineSeconds in {noun} is not Supported"
            report.forbidden(f"{path}.spec.activeDeadlineSeconds", detail)
        return True

    return check


def selected_template(selector_rule: Rule, after: Rule) -> Rule:  # upstream: ValidatePodTemplateSpecForReplicaSet
    """The selector, and if it can be used the template: its labels, its own rules, and `after`."""

    def check(spec: Any, path: str, report: Report) -> bool:
        if not selector_rule(spec, path, report):
            return True
        template, place = spec.get("template") or {}, f"{path}.template"
        matching_labels(spec.get("selector"), template, place, report)
        pod_template(template, place, report)
        return after(template, place, report)

    return check


def generation_changed(obj: Obj, old: Obj | None) -> bool:
    """Whether warnings about the template are due again."""
    return old is None or obj["metadata"].get("generation") != old["metadata"].get("generation")
