"""CronJob.

Upstream: pkg/registry/batch/cronjob/strategy.go, pkg/apis/batch/validation, pkg/apis/batch/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.kinds.batch.jobs import default_failure_policy, job_body, prepare_job_spec, spec_warnings
from konverge.apiserver.kinds.batch.schedule import schedule_error, time_zone
from konverge.apiserver.kinds.core.pod.defaults import default_pod_template
from konverge.apiserver.kinds.core.pod.template import generation_changed, name_warnings, shown_selector
from konverge.apiserver.kinds.framework.declare import Report, creation, field, one_of, required, section, text, update
from konverge.apiserver.kinds.framework.lifecycle import prepared
from konverge.apiserver.kinds.rules.defaults import fill, section_of
from konverge.apiserver.kinds.rules.numbers import not_negative
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

_SPEC_DEFAULTS = {
    "concurrencyPolicy": "Allow",
    "suspend": False,
    "successfulJobsHistoryLimit": 3,
    "failedJobsHistoryLimit": 1,
}
_LONGEST_NAME = 52
"""Jobs are named after their CronJob, with a time of 11 characters."""


def _defaults(obj: Obj) -> None:  # upstream: SetDefaults_CronJob
    spec = section_of(obj, "spec")
    fill(spec, _SPEC_DEFAULTS)
    template = section_of(spec, "jobTemplate")
    section_of(template, "metadata")
    job = section_of(template, "spec")
    default_failure_policy(job)
    default_pod_template(section_of(job, "template"))


def _prepare_job_template(obj: Obj) -> None:  # upstream: cronJobStrategy.PrepareForCreate, PrepareForUpdate
    prepare_job_spec(obj["spec"]["jobTemplate"]["spec"])


def _schedule(spec: Obj, zone_allowed: bool, report: Report) -> bool:  # upstream: validateScheduleFormat
    schedule = spec.get("schedule") or ""
    if not schedule:
        return True
    error = schedule_error(schedule)
    if error:
        report.invalid("spec.schedule", schedule, error)
    if "TZ" not in schedule:
        return True
    if not zone_allowed:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        return report.invalid("spec.schedule", schedule, detail)
    detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
    return spec.get("timeZone") is None or report.invalid("spec.schedule", schedule, detail)


def _new_schedule(obj: Any, path: str, report: Report) -> bool:
    return _schedule(obj["spec"], False, report)


def _kept_schedule(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateCronJobUpdate
    return _schedule(new["spec"], "TZ" in (old["spec"].get("schedule") or ""), report)


def _zone(spec: Obj, report: Report) -> bool:  # upstream: validateTimeZone
    zone = spec.get("timeZone")
    if zone == "":
        return report.invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")
    return zone is None or time_zone(zone, "spec.timeZone", report)


def _new_zone(obj: Any, path: str, report: Report) -> bool:
    return _zone(obj["spec"], report)


def _changed_zone(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateCronJobUpdate
    return new["spec"].get("timeZone") == old["spec"].get("timeZone") or _zone(new["spec"], report)


def _no_selector(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateJobTemplateSpec
    """The selectors of the Jobs are made when the Jobs are."""
    if value.get("selector") is not None:
        shown = shown_selector(value["selector"])
        report.invalid(f"{path}.selector", shown, "`selector` will be auto-generated")
    manual = value.get("manualSelector")
    return not manual or report.not_supported(f"{path}.manualSelector", manual, ("nil", "false"))


def _short_name(obj: Any, path: str, report: Report) -> bool:  # upstream: ValidateCronJobCreate
    name = obj["metadata"].get("name") or ""
    return len(name) <= _LONGEST_NAME or report.invalid("metadata.name", name, "must be no more than 52 characters")


_DEADLINE = section("spec", field("startingDeadlineSeconds", not_negative))
_REST = section(  # upstream: validateCronJobSpec
    "spec",
    field("concurrencyPolicy", one_of("Allow", "Forbid", "Replace")),
    section("jobTemplate", section("spec", job_body, _no_selector)),
    field("successfulJobsHistoryLimit", not_negative),
    field("failedJobsHistoryLimit", not_negative),
)
_SCHEDULE_GIVEN = section("spec", text("schedule", required))


# upstream: cronJobStrategy.WarningsOnCreate
def _warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    path = "spec.jobTemplate.spec"
    spec = obj["spec"]
    warnings = spec_warnings(spec["jobTemplate"]["spec"], path) if generation_changed(obj, old) else []
    if old is None:
        return [*name_warnings(obj), *warnings]
    if "TZ" in (spec.get("schedule") or ""):
        where = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
        detail = f"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {where} for more details"
        return [*warnings, detail]
    return warnings


CRON_JOB = Strategy(  # upstream: cronJobStrategy
    defaults=_defaults,
    **prepared(_prepare_job_template, status=("batch", "v1", "CronJob")),
    validate_create=creation(_new_schedule, _DEADLINE, _new_zone, _REST, _short_name, _SCHEDULE_GIVEN),
    validate_update=update(_kept_schedule, _DEADLINE, _changed_zone, _REST, _SCHEDULE_GIVEN),
    warnings=_warnings,
    status=StatusRules(),
    generation=True,
)
