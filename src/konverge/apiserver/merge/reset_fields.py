"""Fields that an endpoint does not take from clients, and that no manager owns through it.

The main resource of a kind with /status ignores `status`; /status ignores `spec`, and `metadata` as well for the kinds
whose strategy says so. The table has what differs from that. Upstream: GetResetFields of the strategies in
pkg/registry.
"""

from __future__ import annotations

from functools import cache

from konverge.apiserver.merge import field_set
from konverge.apiserver.merge.field_set import FieldSet
from konverge.apiserver.merge.owner import Filter

_STATUS = field_set.of(("f:status",))
_SPEC = field_set.of(("f:spec",))
_SPEC_AND_METADATA = field_set.of(("f:spec",), ("f:metadata",))

# /status of these keeps the client's metadata; all others, custom resources among them, reset it.
_METADATA_THROUGH_STATUS = frozenset(
    {
        ("", "namespaces"),
        ("", "nodes"),
        ("", "persistentvolumeclaims"),
        ("", "persistentvolumes"),
        ("", "replicationcontrollers"),
        ("", "resourcequotas"),
        ("", "services"),
        ("apps", "daemonsets"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("autoscaling", "horizontalpodautoscalers"),
        ("batch", "cronjobs"),
        ("batch", "jobs"),
        ("networking.k8s.io", "ingresses"),
        ("policy", "poddisruptionbudgets"),
    }
)
_SPECIAL: dict[tuple[str, str, str], FieldSet] = {
    ("", "namespaces", "finalize"): _STATUS,
    ("", "pods", "status"): field_set.of(
        ("f:spec",), ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")
    ),
    ("apps", "deployments", "status"): field_set.of(("f:spec",), ("f:metadata", "f:labels")),
    ("certificates.k8s.io", "certificatesigningrequests", ""): field_set.of(("f:spec",), ("f:status",)),
    ("certificates.k8s.io", "certificatesigningrequests", "status"): field_set.of(
        ("f:spec",), ("f:status", "f:conditions")
    ),
    ("certificates.k8s.io", "certificatesigningrequests", "approval"): field_set.of(
        ("f:spec",), ("f:status", "f:certificate")
    ),
    ("storage.k8s.io", "csinodes", ""): _STATUS,
}
# These take nothing but what lies under the given paths (`*` is any list item).
_ONLY: dict[tuple[str, str, str], tuple[tuple[str, ...], ...]] = {
    ("", "pods", "ephemeralcontainers"): (("f:spec", "f:ephemeralContainers"),),
    ("", "pods", "resize"): tuple(
        ("f:spec", containers, "*", field)
        for containers in ("f:containers", "f:initContainers")
        for field in ("f:resources", "f:resizePolicy")
    ),
}


@cache
def may_own(group: str, plural: str, subresource: str = "", *, has_status: bool = True) -> Filter:
    """Takes out of a set what this endpoint resets. `has_status`: the resource has /status."""
    only = _ONLY.get((group, plural, subresource))
    if only is not None:
        return lambda fields: _under(fields, only)
    reset = _SPECIAL.get((group, plural, subresource))
    if reset is None:
        reset = _usual(group, plural, subresource, has_status)
    return lambda fields: field_set.difference(fields, reset, recursive=True)


def _usual(group: str, plural: str, subresource: str, has_status: bool) -> FieldSet:
    if subresource == "status":
        return _SPEC if (group, plural) in _METADATA_THROUGH_STATUS else _SPEC_AND_METADATA
    return _STATUS if has_status and not subresource else {}


def _under(fields: FieldSet, patterns: tuple[tuple[str, ...], ...]) -> FieldSet:
    """The part of a set that matches one of the patterns, with everything below."""
    out: FieldSet = {}
    for element, below in fields.items():
        rests = [pattern[1:] for pattern in patterns if pattern[0] in (element, "*")]
        if element == field_set.SELF or not rests:
            continue
        if not all(rests):
            out[element] = below
            continue
        selected = _under(below, tuple(rests))
        if field_set.is_member(below):
            selected = {field_set.SELF: {}, **selected} if selected else {}
            out[element] = selected
        elif selected:
            out[element] = selected
    return out
