"""The objects of a group in the cluster: a Lease for each member, one for the assignment, one for the election.

Members and the assignment carry the label of the group, so one watch shows all of them in the order of their writes.
The Lease of the election has the group's name, as any operator's.
"""

from __future__ import annotations

from hashlib import blake2b
from math import ceil
from typing import Any

from konverge import clock
from konverge.objects.times import format_micro_time
from konverge.runtime.elector import default_identity
from konverge.runtime.lease_watch import LEASES
from konverge.runtime.sharding.assignment import Assignment, Member
from konverge.runtime.sharding.declare import Sharding
from konverge.runtime.sharding.sharder import MemberLease

GROUP_LABEL = "sharding.konverge.dev/group"
EPOCH = "sharding.konverge.dev/epoch"
LEAVING = "sharding.konverge.dev/leaving"


class GroupLeases:
    """Names and contents of the Leases of one group."""

    def __init__(self, sharding: Sharding) -> None:
        identity = sharding.identity or default_identity()
        self.identity = f"{identity}_{clock.new_uid()}" if sharding.identity else identity
        """Of this process: an earlier one of the same name is another holder."""
        self.namespace = sharding.namespace
        self.selector = f"{GROUP_LABEL}={sharding.name}"
        self.assignment = f"{sharding.name}-shards"
        self.own = f"{sharding.name}-{blake2b(identity.encode(), digest_size=6).hexdigest()}"
        self._labels = {GROUP_LABEL: sharding.name}
        self._duration = ceil(sharding.timing.lease_duration)

    def member_body(self, before: dict[str, Any] | None, *, epoch: int, leaving: bool, holder: str) -> dict[str, Any]:
        """Our Lease as it is to be written, over what was read."""
        wall = format_micro_time(clock.utc_now())
        spec = (before or {}).get("spec") or {"acquireTime": wall}
        annotations = {EPOCH: str(epoch)} | ({LEAVING: "true"} if leaving else {})
        return self._body(
            self.own,
            before,
            annotations,
            {**spec, "holderIdentity": holder, "leaseDurationSeconds": self._duration, "renewTime": wall},
        )

    def assignment_body(self, before: dict[str, Any] | None, assignment: Assignment) -> dict[str, Any]:
        wall = format_micro_time(clock.utc_now())
        spec = {"holderIdentity": self.identity, "renewTime": wall, "leaseTransitions": assignment.epoch}
        return self._body(self.assignment, before, assignment.annotation(), spec)

    def _body(
        self, name: str, before: dict[str, Any] | None, annotations: dict[str, str], spec: dict[str, Any]
    ) -> dict[str, Any]:
        metadata: dict[str, Any] = dict(before["metadata"]) if before else {"name": name, "namespace": self.namespace}
        metadata["labels"] = (metadata.get("labels") or {}) | self._labels
        metadata["annotations"] = (metadata.get("annotations") or {}) | annotations
        return {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": spec}


def member_of(lease: dict[str, Any]) -> Member:
    return Member(lease["metadata"]["name"], lease["metadata"].get("uid") or "")


def read_member(lease: dict[str, Any]) -> MemberLease:
    metadata, spec = lease["metadata"], lease.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    epoch = annotations.get(EPOCH) or ""
    return MemberLease(
        member_of(lease),
        metadata.get("resourceVersion") or "",
        spec.get("holderIdentity") or "",
        float(spec.get("leaseDurationSeconds") or 0),
        spec.get("renewTime") or "",
        int(epoch) if epoch.isdecimal() else 0,
        LEAVING in annotations,
    )
