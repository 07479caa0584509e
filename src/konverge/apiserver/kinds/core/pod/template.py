"""Pod templates: what Deployments, Jobs and all other workloads make pods from.

defaults:    pod_defaults.default_pod_template(template)
validation:  field("template", pod_template)      # errors at spec.template.…
warnings:    pod_warnings.template_warnings(template, "spec.template")
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.core.pod.annotations import annotations_match_fields, pod_annotations
from konverge.apiserver.kinds.core.pod.spec import check_pod_spec
from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.kinds.rules.metadata import annotation_map
from konverge.apiserver.kinds.rules.names import labels


def pod_template(value: Any, path: str, report: Report) -> bool:
    """A PodTemplateSpec. Labels and annotations are reported beside `spec`, without `metadata`, as the API does."""
    metadata, spec = value.get("metadata") or {}, value.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    labels(metadata.get("labels"), f"{path}.labels", report)
    if annotations:
        annotation_map(annotations, f"{path}.annotations", report)
        pod_annotations(annotations, spec, f"{path}.annotations", report)
    check_pod_spec(spec, f"{path}.spec", report, {})
    annotations_match_fields(metadata, spec, f"{path}.spec", report)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        report.forbidden(f"{path}.spec.ephemeralContainers", detail)
    return True
