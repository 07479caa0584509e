"""Dynamic resource allocation."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import AGED, age, at, name, since, status_of


def _claim_state(claim: Obj) -> str:
    status, deleted = status_of(claim), bool(claim["metadata"].get("deletionTimestamp"))
    words = ["deleted"] if deleted else []
    if status.get("allocation") is not None:
        words += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not deleted:
        words.append("pending")
    return ",".join(words)


KINDS: dict[str, dict[str, Any]] = {
    "DeviceClass": AGED,
    "ResourceClaim": {"Name": name, "State": _claim_state, "Age": age},
    "ResourceClaimTemplate": AGED,
    "ResourceSlice": {
        "Name": name,
        "Node": at("spec.nodeName"),
        "Driver": at("spec.driver"),
        "Pool": at("spec.pool.name"),
        "Age": age,
    },
    "DeviceTaintRule": {
        "Name": name,
        "Key": at("spec.taint.key"),
        "Value": at("spec.taint.value"),
        "Effect": at("spec.taint.effect"),
        "TimeAdded": lambda rule: since(at("spec.taint.timeAdded")(rule), ""),
        "Age": age,
    },
}
