"""DeviceTaintRule: taints that somebody other than the driver puts on devices."""

from __future__ import annotations

from konverge.apiserver.kinds.core.volume.sources import csi_driver_name
from konverge.apiserver.kinds.framework.declare import (
    as_created,
    creation,
    field,
    one_of,
    required,
    section,
    struct,
    text,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import metadata_kept, status_cleared, status_kept
from konverge.apiserver.kinds.resource.devices import pool_name
from konverge.apiserver.kinds.rules.conditions import conditions
from konverge.apiserver.kinds.rules.defaults import section_of
from konverge.apiserver.kinds.rules.names import dns_label, label_value, qualified_name
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.strategy import Obj, StatusRules, Strategy


def _defaults(obj: Obj) -> None:
    taint = section_of(section_of(obj, "spec"), "taint")
    if taint.get("timeAdded") is None:
        taint["timeAdded"] = timestamp()


_SPEC = section(
    "spec",
    field(
        "deviceSelector",
        struct(field("driver", csi_driver_name), field("pool", pool_name), field("device", dns_label)),
    ),
    section(
        "taint",
        text("key", qualified_name),
        field("value", label_value),
        text("effect", required, one_of("NoExecute", "NoSchedule", "None")),
    ),
)
_STATUS = section("status", field("conditions", conditions))

DEVICE_TAINT_RULE = Strategy(
    defaults=_defaults,
    prepare_create=status_cleared("resource.k8s.io", "v1", "DeviceTaintRule"),
    prepare_update=status_kept,
    validate_create=creation(_SPEC),
    validate_update=update(as_created(_SPEC)),
    status=StatusRules(prepare=metadata_kept, validate=update(as_created(_STATUS))),
    generation=True,
    returns_deleted=True,
)
