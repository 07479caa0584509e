"""coordination.k8s.io: Lease, LeaseCandidate. Upstream: pkg/apis/coordination/validation."""

from __future__ import annotations

import re
from typing import Any

from konverge.apiserver.kinds.framework.declare import (
    Report,
    creation,
    field,
    required,
    section,
    text,
    unchanged,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import selectable
from konverge.apiserver.kinds.rules.names import qualified_name
from konverge.apiserver.kinds.rules.numbers import at_least, not_negative
from konverge.apiserver.strategy import Context, Obj, Strategy
from konverge.objects.names import config_key_errors

_OLDEST = "OldestEmulationVersion"
_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


def _strategy_name(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateCoordinatedLeaseStrategy
    """The known strategy, or a qualified name; the path has `strategy` twice on the real server."""
    if "/" in value:
        return qualified_name(value, f"{path}.strategy", report)
    return value == _OLDEST or report.not_supported(f"{path}.strategy", value, [_OLDEST])


def _preferred_holder(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateLeaseSpec
    fine = not value.get("preferredHolder") or bool(value.get("strategy"))
    return fine or report.forbidden(f"{path}.preferredHolder", "may only be specified if `strategy` is defined")


def _without_election(obj: Obj, context: Context) -> None:  # upstream: leaseStrategy.PrepareForCreate
    """Coordinated leader election is an alpha feature, and off: what belongs to it is not stored."""
    for name in ("strategy", "preferredHolder"):
        (obj.get("spec") or {}).pop(name, None)


def _keep_election(obj: Obj, old: Obj, context: Context) -> None:  # upstream: leaseStrategy.PrepareForUpdate
    if not any((old.get("spec") or {}).get(name) for name in ("strategy", "preferredHolder")):
        _without_election(obj, context)


_LEASE = section(  # upstream: ValidateLeaseSpec
    "spec",
    field("leaseDurationSeconds", at_least(1, "must be greater than 0")),
    field("leaseTransitions", not_negative),
    field("strategy", _strategy_name),
    _preferred_holder,
)


def _version(text_of: str) -> tuple[int, ...] | None:
    match = _SEMVER.fullmatch(text_of)
    return tuple(int(part) for part in match.groups()[:3]) if match else None


def _semantic(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateLeaseCandidateSpec
    return _version(value) is not None or report.invalid(path, value, "must be a valid semantic version")


def _versions(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateLeaseCandidateSpec
    binary, emulated = value.get("binaryVersion") or "", value.get("emulationVersion") or ""
    older = (_version(binary) or (0,)) < (_version(emulated) or (0,))
    if binary and emulated and older:
        report.invalid(f"{path}.binaryVersion", binary, "must be greater than or equal to `emulationVersion`")
    return True


def _emulation_needed(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateLeaseCandidateSpec
    if value.get("strategy") != _OLDEST or any(_version(value.get("emulationVersion") or "") or ()):
        return True
    return report.required(f"{path}.emulationVersion", f"must be specified when `strategy` is '{_OLDEST}'")


_CANDIDATE = section(  # upstream: ValidateLeaseCandidateSpec
    "spec",
    text("leaseName", required),
    field("emulationVersion", _semantic),
    text("binaryVersion", required, _semantic),
    _versions,
    _emulation_needed,
    text("strategy", required, _strategy_name),
)

STRATEGIES = {  # upstream: leaseStrategy, LeaseCandidateStrategy
    "Lease": Strategy(
        prepare_create=_without_election,
        prepare_update=_keep_election,
        validate_create=creation(_LEASE),
        validate_update=update(_LEASE),
        create_on_update=True,
        unconditional_update=False,
    ),
    "LeaseCandidate": Strategy(
        validate_create=creation(_CANDIDATE),
        validate_update=update(_CANDIDATE, unchanged("spec.leaseName")),
        name_check=lambda name, is_prefix: config_key_errors(name),
        create_on_update=True,
        unconditional_update=False,
        field_selectors=selectable("spec.leaseName"),
    ),
}
