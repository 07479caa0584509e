"""resource.k8s.io: DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceTaintRule."""

from __future__ import annotations

from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import (
    Report,
    at_most,
    creation,
    dig,
    field,
    given,
    section,
    struct,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import (
    first_generation,
    generation_of_spec,
    metadata_kept,
    status_cleared,
    status_kept,
)
from konverge.apiserver.kinds.resource.claims import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from konverge.apiserver.kinds.resource.devices import (
    MOST_CONFIGURATIONS,
    SELECTORS,
    TAINT,
    configuration,
    driver_name,
    pool_name,
    up_to,
)
from konverge.apiserver.kinds.resource.slices import RESOURCE_SLICE
from konverge.apiserver.kinds.rules.conditions import conditions
from konverge.apiserver.kinds.rules.defaults import fill_unset, section_of
from konverge.apiserver.kinds.rules.names import dns_label
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

MOST_CONDITIONS = 8


def _defaults(obj: Obj) -> None:
    taint = section_of(section_of(obj, "spec"), "taint")
    fill_unset(taint, {"timeAdded": timestamp})


def _prepare_rule_update(obj: Obj, old: Obj, context: Context) -> None:
    """The time is that of the effect: it moves when the effect changes, unless the caller moves it."""
    status_kept(obj, old, context)
    taint, before = obj["spec"]["taint"], old["spec"]["taint"]
    if taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get("timeAdded"):
        taint["timeAdded"] = timestamp()


_SPEC = section(
    "spec",
    field(
        "deviceSelector",
        struct(given("driver", driver_name), given("pool", pool_name), given("device", dns_label)),
    ),
    section("taint", TAINT),
)
_STATUS = section("status", field("conditions", conditions), field("conditions", at_most(MOST_CONDITIONS)))
_DECLARED_RULE = Declared("resource/v1.DeviceTaintRule")

DEVICE_TAINT_RULE = Strategy(
    defaults=_defaults,
    prepare_create=status_cleared("resource.k8s.io", "v1", "DeviceTaintRule"),
    prepare_update=_prepare_rule_update,
    validate_create=creation(_SPEC, _DECLARED_RULE.created),
    validate_update=update(_SPEC, _DECLARED_RULE.updated),
    status=StatusRules(prepare=metadata_kept, validate=update(_STATUS, _DECLARED_RULE.updated)),
    generation=True,
    unconditional_update=False,
    returns_deleted=True,
)


_CONFIGURATIONS = field("config", up_to(MOST_CONFIGURATIONS, configuration))
_DECLARED = Declared("resource/v1.DeviceClass")


def _changed(new: Obj, old: Obj, path: str, report: Report) -> bool:
    """Stored selectors and configurations stay valid. Upstream: validateDeviceClassSpec."""
    parts = [
        part for part in (SELECTORS, _CONFIGURATIONS) if dig(new, ("spec", part.name)) != dig(old, ("spec", part.name))
    ]
    return struct(section("spec", *parts))(new, path, report)


DEVICE_CLASS = Strategy(
    prepare_create=first_generation,
    prepare_update=generation_of_spec,
    validate_create=creation(section("spec", SELECTORS, _CONFIGURATIONS), _DECLARED.created),
    validate_update=update(_changed, _DECLARED.updated),
    name_check=lambda name, is_prefix: [],  # declared
    returns_deleted=True,
)

STRATEGIES = {
    "DeviceClass": DEVICE_CLASS,
    "ResourceClaim": RESOURCE_CLAIM,
    "ResourceClaimTemplate": RESOURCE_CLAIM_TEMPLATE,
    "ResourceSlice": RESOURCE_SLICE,
    "DeviceTaintRule": DEVICE_TAINT_RULE,
}
