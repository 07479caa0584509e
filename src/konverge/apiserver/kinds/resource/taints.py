"""DeviceTaintRule: taints that others than the driver put on devices."""

from __future__ import annotations

from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import at_most, creation, field, given, section, struct, update
from konverge.apiserver.kinds.framework.lifecycle import metadata_kept, status_cleared, status_kept
from konverge.apiserver.kinds.resource.devices import TAINT, driver_name, pool_name
from konverge.apiserver.kinds.rules.conditions import conditions
from konverge.apiserver.kinds.rules.defaults import section_of
from konverge.apiserver.kinds.rules.names import dns_label
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

MOST_CONDITIONS = 8


def _defaults(obj: Obj) -> None:
    taint = section_of(section_of(obj, "spec"), "taint")
    if taint.get("timeAdded") is None:
        taint["timeAdded"] = timestamp()


def _prepare_update(obj: Obj, old: Obj, context: Context) -> None:
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
_DECLARED = Declared("resource/v1.DeviceTaintRule")

DEVICE_TAINT_RULE = Strategy(
    defaults=_defaults,
    prepare_create=status_cleared("resource.k8s.io", "v1", "DeviceTaintRule"),
    prepare_update=_prepare_update,
    validate_create=creation(_SPEC, _DECLARED.created),
    validate_update=update(_SPEC, _DECLARED.updated),
    status=StatusRules(prepare=metadata_kept, validate=update(_STATUS, _DECLARED.updated)),
    generation=True,
    unconditional_update=False,
    returns_deleted=True,
)
