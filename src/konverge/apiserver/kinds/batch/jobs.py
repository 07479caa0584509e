"""Job.

A Job owns its pods by a selector that the server makes from the Job's uid, unless `manualSelector` leaves the
selector to the caller.

Upstream: pkg/registry/batch/job/strategy.go, pkg/apis/batch/validation, pkg/apis/batch/v1/defaults.go.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.batch.policies import FAILURE_POLICY, success_policy
from konverge.apiserver.kinds.batch.status import job_status, job_status_change
from konverge.apiserver.kinds.core.pod.defaults import default_pod_template
from konverge.apiserver.kinds.core.pod.template import (
    generation_changed,
    good_selector,
    matching_labels,
    name_warnings,
    pod_template,
    shown_selector,
    template_labels,
)
from konverge.apiserver.kinds.core.pod.warnings import template_warnings
from konverge.apiserver.kinds.framework.declare import (
    IMMUTABLE,
    Report,
    as_created,
    creation,
    field,
    given,
    one_of,
    pointers_unchanged,
    required,
    same_rule,
    section,
    struct,
    unchanged,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import empty_is_null, kept, status_cleared, status_kept
from konverge.apiserver.kinds.rules.defaults import each, fill, fill_unset, section_of, take
from konverge.apiserver.kinds.rules.names import domain_path
from konverge.apiserver.kinds.rules.numbers import MAX_INT32, not_negative
from konverge.apiserver.kinds.rules.selectors import selects
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy
from konverge.objects.names import dns_label_errors, label_value_errors

UID_LABEL, NAME_LABEL = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
OLD_UID_LABEL, OLD_NAME_LABEL = "controller-uid", "job-name"
_HIGH = 100_000
_HIGH_PARALLELISM = 10_000


def default_failure_policy(spec: Obj) -> None:  # upstream: SetDefaults_PodFailurePolicyOnPodConditionsPattern
    for rule in each(spec.get("podFailurePolicy") or {}, "rules"):
        for pattern in each(rule, "onPodConditions"):
            fill(pattern, {"status": "True"})


def _default_labels(obj: Obj) -> None:  # upstream: SetDefaults_Job
    """A Job without labels has those of its pods: the very same ones, so that it gets the generated ones too."""
    labels = (obj["spec"]["template"].get("metadata") or {}).get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = labels


def _defaults(obj: Obj) -> None:  # upstream: SetDefaults_Job
    section_of(obj, "metadata")
    spec = section_of(obj, "spec")
    if spec.get("parallelism") is None and spec.get("completions") is None:
        spec["completions"] = 1
    limit = MAX_INT32 if spec.get("backoffLimitPerIndex") is not None else 6
    replacement = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    fill_unset(spec, {"parallelism": 1, "backoffLimit": limit, "completionMode": "NonIndexed", "suspend": False})
    fill_unset(spec, {"podReplacementPolicy": replacement, "manualSelector": False})
    default_failure_policy(spec)
    default_pod_template(section_of(spec, "template"))
    _default_labels(obj)


_clear_status = status_cleared("batch", "v1", "Job")


def prepare_job_spec(spec: Obj) -> None:
    """Without what belongs to a gate that is off; a failure policy without rules has none."""
    spec.pop("scheduling", None)
    policy = spec.get("podFailurePolicy")
    if policy is not None:
        empty_is_null(policy, "rules")


def _prepare_create(obj: Obj, context: Context) -> None:  # upstream: jobStrategy.PrepareForCreate
    spec, metadata = obj["spec"], obj["metadata"]
    prepare_job_spec(spec)
    if not spec.get("manualSelector"):
        _generate_selector(spec, metadata.get("name") or "", metadata.get("uid") or "")
    _own_labels(obj)
    _clear_status(obj, context)


def _prepare_update(obj: Obj, old: Obj, context: Context) -> None:  # upstream: jobStrategy.PrepareForUpdate
    obj["spec"].pop("scheduling", None)
    status_kept(obj, old, context)


def _own_labels(obj: Obj) -> None:
    """The labels of the Job, now that all are known; a name that is no label value is reported in the template only."""
    metadata, labels = obj["metadata"], obj["spec"]["template"]["metadata"].get("labels")
    shared = not metadata.get("labels") or metadata["labels"] is labels
    if labels and shared and not label_value_errors(metadata.get("name") or ""):
        metadata["labels"] = dict(labels)


def _generate_selector(spec: Obj, name: str, uid: str) -> None:  # upstream: generateSelector
    labels = section_of(section_of(section_of(spec, "template"), "metadata"), "labels")
    for label, value in ((OLD_NAME_LABEL, name), (NAME_LABEL, name), (OLD_UID_LABEL, uid), (UID_LABEL, uid)):
        labels.setdefault(label, value)
    section_of(section_of(spec, "selector"), "matchLabels").setdefault(UID_LABEL, uid)


@dataclass(frozen=True, slots=True)
class JobScope:
    """What the policies of a Job need to know of it."""

    indexed: bool
    per_index: bool
    completions: int
    containers: frozenset[str]


def _scope(spec: Obj) -> JobScope:
    inside = (spec.get("template") or {}).get("spec") or {}
    containers = [*(inside.get("containers") or ()), *(inside.get("initContainers") or ())]
    return JobScope(
        indexed=spec.get("completionMode") == "Indexed",
        per_index=spec.get("backoffLimitPerIndex") is not None,
        completions=spec.get("completions") or 0,
        containers=frozenset(container.get("name") or "" for container in containers),
    )


def _failed_indexes_need_limit(spec: Any, path: str, report: Report) -> bool:  # upstream: validateJobSpec
    missing = spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None
    return not missing or report.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")


def _managed_by(value: Any, path: str, report: Report) -> bool:  # upstream: validateJobSpec
    domain_path(value, path, report)
    return len(value) <= 63 or report.too_long(path, 63)


def _mode(spec: Any, path: str, report: Report) -> bool:  # upstream: validateJobSpec
    mode = spec.get("completionMode")
    if mode == "Indexed":
        return _indexed(spec, path, report)
    if mode not in (None, "NonIndexed"):
        return report.not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(name) is not None:
            report.invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")
    return True


def _indexed(spec: Any, path: str, report: Report) -> bool:  # upstream: validateJobSpec
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism") or 0
    if completions is None:
        report.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism > _HIGH:
        detail = f"must be less than or equal to {_HIGH} when completion mode is Indexed"
        report.invalid(f"{path}.parallelism", parallelism, detail)
    if completions is not None and failed is not None and failed > completions:
        report.invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _HIGH:
        report.invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_HIGH}")
    if (completions or 0) > _HIGH and spec.get("backoffLimitPerIndex") is not None:
        _many_indexes(failed, parallelism, path, report)
    return True


def _many_indexes(failed: int | None, parallelism: int, path: str, report: Report) -> None:  # upstream: validateJobSpec
    when = f"when completions are above {_HIGH} and used with backoff limit per index"
    detail = f"must be less than or equal to {_HIGH_PARALLELISM} {when}"
    if failed is None:
        report.required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {_HIGH}")
    if parallelism > _HIGH_PARALLELISM:
        report.invalid(f"{path}.parallelism", parallelism, detail)
    if failed is not None and failed > _HIGH_PARALLELISM:
        report.invalid(f"{path}.maxFailedIndexes", failed, detail)


def _replacement(spec: Any, path: str, report: Report) -> bool:  # upstream: validatePodReplacementPolicy
    policy = spec.get("podReplacementPolicy")
    known = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    return policy is None or one_of(*known)(policy, f"{path}.podReplacementPolicy", report)


def _restart_policy(spec: Any, path: str, report: Report) -> bool:  # upstream: validateJobSpec
    inside = (spec.get("template") or {}).get("spec") or {}
    policy, place = inside.get("restartPolicy") or "", f"{path}.template.spec.restartPolicy"
    if policy in ("", "Always"):
        return report.required(place, 'valid values: "OnFailure", "Never"')
    if policy not in ("OnFailure", "Never"):
        return report.not_supported(place, policy, ("OnFailure", "Never"))
    fine = policy == "Never" or spec.get("podFailurePolicy") is None
    return fine or report.invalid(place, policy, 'only "Never" is supported when podFailurePolicy is specified')


_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_BODY = struct(  # upstream: validateJobSpec
    same_rule(_COUNTS, not_negative),
    _failed_indexes_need_limit,
    given("managedBy", required, _managed_by),
    _mode,
    field("podFailurePolicy", FAILURE_POLICY),
    field("successPolicy", success_policy),
    _replacement,
    field("template", pod_template),
    _restart_policy,
)


def job_body(spec: Any, path: str, report: Report) -> bool:  # upstream: validateJobSpec
    """The spec of a Job or of the template of one, without its selector."""
    around, report.scope = report.scope, _scope(spec)
    _BODY(spec, path, report)
    report.scope = around
    return True


def _generated_selector(obj: Any, path: str, report: Report) -> bool:  # upstream: validateGeneratedSelector
    """Without `manualSelector`, the template has the generated labels and the selector selects by them."""
    spec, metadata = obj["spec"], obj["metadata"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return True
    name, uid = metadata.get("name") or "", metadata.get("uid") or ""
    labels = template_labels(spec.get("template") or {})
    expected = {OLD_UID_LABEL: uid, OLD_NAME_LABEL: name, UID_LABEL: uid, NAME_LABEL: name}
    for label, value in expected.items():
        if (labels or {}).get(label) != value:
            report.invalid(f"spec.template.metadata.labels[{label}]", labels, f"must be '{value}'")
    if not good_selector(spec["selector"], "", Report()) or selects(spec["selector"], expected):
        return True
    return report.invalid("spec.selector", shown_selector(spec["selector"]), "`selector` not auto-generated")


def _selector(spec: Any, path: str, report: Report) -> bool:  # upstream: ValidateJobSpec
    selector = spec.get("selector")
    if selector is None:
        report.required(f"{path}.selector")
    elif not good_selector(selector, f"{path}.selector", report):
        return False
    return matching_labels(selector, spec.get("template") or {}, f"{path}.template", report)


def _names_of_pods(obj: Any, path: str, report: Report) -> bool:  # upstream: validateNameAllowsCompletions
    """Pods of an indexed Job have hostnames with their index."""
    spec, name = obj["spec"], obj["metadata"].get("name") or ""
    if spec.get("completionMode") != "Indexed" or (spec.get("completions") or 0) <= 0:
        return True
    longest = f"{name}-{spec['completions'] - 1}"
    fits = not dns_label_errors(longest)
    return fits or report.invalid(
        "metadata.name", name, f"will not able to create pod with invalid DNS label: {longest}"
    )


def _completions_kept(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: validateCompletions
    """Only an elastic indexed Job, whose completions and parallelism move together, may change them."""
    spec, before = new["spec"], old["spec"]
    completions = spec.get("completions")
    if completions == before.get("completions"):
        return True
    if spec.get("completionMode") != "Indexed":
        return report.invalid("spec.completions", completions, IMMUTABLE)
    elastic = completions is None or completions == spec.get("parallelism")
    detail = "can only be modified in tandem with spec.parallelism"
    return elastic or report.invalid("spec.completions", completions, detail)


def _may_change_template(old: Obj) -> bool:  # upstream: shouldAllowMutablePodTemplate
    """A suspended Job without running pods may be given other nodes and other resources."""
    status = old.get("status") or {}
    conditions = status.get("conditions") or ()
    suspended = any(c.get("type") == "Suspended" and c.get("status") == "True" for c in conditions)
    waiting = status.get("startTime") is None or suspended
    return bool(old["spec"].get("suspend")) and waiting and not status.get("active")


def _template_kept(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: validatePodTemplateUpdate
    template, before = new["spec"].get("template") or {}, old["spec"].get("template") or {}
    if template == before:
        return True
    if _may_change_template(old):
        directed = _with_directives(before, template)
        if template.get("spec") == directed.get("spec"):
            return True
        shown = internal("core.PodSpec", template.get("spec"))
        return report.invalid("spec.template.spec", shown, IMMUTABLE)
    return report.invalid("spec.template", internal("core.PodTemplateSpec", template), IMMUTABLE)


# upstream: validatePodTemplateUpdate, validatePodResourceUpdatesOnly
def _with_directives(before: Obj, template: Obj) -> Obj:
    """The old template with what may change taken from the new one."""
    directed = copy.deepcopy(before)
    inside, wanted = section_of(directed, "spec"), template.get("spec") or {}
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        take(inside, wanted, name)
    affinity = dict(inside.get("affinity") or {})
    take(affinity, wanted.get("affinity") or {}, "nodeAffinity")
    take(inside, {"affinity": affinity} if affinity or wanted.get("affinity") is not None else {}, "affinity")
    for kind in ("containers", "initContainers"):
        for mine, theirs in zip(inside.get(kind) or (), wanted.get(kind) or (), strict=False):
            if mine.get("name") == theirs.get("name"):
                take(mine, theirs, "resources")
    return directed


_JOB = (section("spec", job_body, _selector), _names_of_pods)


def _warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:  # upstream: jobStrategy.WarningsOnCreate
    if not generation_changed(obj, old):
        return ()
    warnings = spec_warnings(obj["spec"], "spec")
    return warnings if old is not None else [*name_warnings(obj), *warnings]


def spec_warnings(spec: Obj, path: str) -> list[str]:  # upstream: WarningsForJobSpec (pkg/api/job)
    """Warnings about the spec of a Job or of a template of one."""
    many = (spec.get("completions") or 0) > _HIGH and (spec.get("parallelism") or 0) > _HIGH_PARALLELISM
    warnings = template_warnings(spec.get("template") or {}, f"{path}.template")
    if spec.get("completionMode") != "Indexed" or not many:
        return list(warnings)
    detail = (
        "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
        "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
    )
    return [f"{path}: {detail}", *warnings]


JOB = Strategy(  # upstream: jobStrategy
    defaults=_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_create=creation(_generated_selector, *_JOB),
    validate_update=update(
        _JOB[0],
        _completions_kept,
        kept("spec.selector", "*meta.LabelSelector"),
        _template_kept,
        unchanged("spec.completionMode"),
        kept("spec.podFailurePolicy", "*batch.PodFailurePolicy"),
        pointers_unchanged("spec.backoffLimitPerIndex", "spec.managedBy"),
        kept("spec.successPolicy", "*batch.SuccessPolicy"),
        as_created(_JOB[1]),
    ),
    warnings=_warnings,
    status=StatusRules(validate=update(job_status, job_status_change)),
    generation=True,
    default_propagation="Orphan",
    orphan_warning="child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to "
    "remove them or set propagationPolicy=Orphan to suppress this warning",
    field_selectors={"status.successful": lambda obj: str((obj.get("status") or {}).get("succeeded") or 0)},
    field_refusal='field label "{field}" not supported for Job',
)
