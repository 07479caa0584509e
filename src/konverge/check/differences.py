"""How two objects differ, field by field, and which fields are not compared.

Some fields differ in any two runs: identities, versions, times, addresses. A `Masks` also has what two reference runs
showed to vary and what the user names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

Difference = tuple[str, Any, Any]
"""Path, one value, the other value; `ABSENT` where there is none."""

ABSENT = "<absent>"

ALWAYS = (
    r"metadata\.(uid|resourceVersion|creationTimestamp|generation|managedFields.*|selfLink|generateName|deletionTimestamp"
    r"|deletionGracePeriodSeconds)",
    r"metadata\.annotations\.(kubectl|pv|volume|deployment|endpoints|control-plane\.alpha)\.kubernetes\.io/.*",
    r".*(Time|Timestamp|timestamp|resourceVersion|ResourceVersion|observedGeneration|ObservedGeneration)",
    r"(spec|status)\.(clusterIP|clusterIPs|podIP|podIPs|hostIP|hostIPs|nodeName|volumeName)(\[.*)?",
    r"spec\.ports\[.*\]\.nodePort",
    r"status\.(containerStatuses|initContainerStatuses|ephemeralContainerStatuses)\[.*",
    r"status\.(.*\.)?(message|lastProbeTime)",
    r"status\.(collisionCount|currentRevision|updateRevision)",
    r"endpoints\[.*|addressType|ports\[.*",
)
"""Never compared: what no two runs share, or what the cluster and not the operator decides."""


_DIGEST = re.compile(r"(annotations|labels)\..*(digest|checksum|hash|last-applied)", re.IGNORECASE)


def is_digest(path: str, *sides: Any) -> bool:
    """An annotation or label that sums up something else, or repeats it, as notes of what was last applied do: when
    what it is made from differs too, that is the finding. Where one side has no annotations at all, those of the other
    are asked.

    >>> is_digest("spec.template.metadata.annotations.nacos.io/secrets-digest"), is_digest("data.hash")
    (True, False)
    >>> is_digest("metadata.annotations.deploy.razee.io/last-applied-configuration")
    True
    >>> is_digest("metadata.labels", {"checksum/config": "5"}, ABSENT), is_digest("metadata.labels", {"a": "5"})
    (True, False)
    """
    whole = next((side for side in sides if isinstance(side, dict) and side), None)
    if whole is not None:
        return all(is_digest(f"{path}.{key}", value) for key, value in whole.items())
    return _DIGEST.search(path) is not None


class Masks(msgspec.Struct, frozen=True):
    """Which paths are not compared: regular expressions over `resource:path`, and exact ones.

    The resource is as in `str(Ref)`: "configmaps", "apps/statefulsets". A pattern may also name one of the core group
    with the slash of its empty name: "/configmaps".
    """

    patterns: tuple[str, ...] = ()
    exact: frozenset[str] = frozenset()

    def hides(self, resource: str, path: str) -> bool:
        return f"{resource}:{path}" in self.exact or _always(path) or self.names(resource, path)

    def names(self, resource: str, path: str) -> bool:
        """Whether one of the patterns hides it, which somebody wrote: that it varies by itself is no reason."""
        spellings = (f"{resource}:{path}",) if "/" in resource else (f"{resource}:{path}", f"/{resource}:{path}")
        return any(re.fullmatch(pattern, spelling) for pattern in self.patterns for spelling in spellings)


_fixed = re.compile("|".join(f"(?:{pattern})" for pattern in ALWAYS))


def _always(path: str) -> bool:
    return _fixed.fullmatch(path) is not None


def differences(one: Any, other: Any, path: str = "") -> Iterator[Difference]:
    """All leaves that differ. Items of lists are matched by their name, type, ip, uid or port; else by position."""
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            yield from differences(one.get(key, ABSENT), other.get(key, ABSENT), f"{path}.{key}" if path else key)
    elif isinstance(one, list) and isinstance(other, list):
        if path.endswith("finalizers") and sorted(one) == sorted(other):
            return  # a set
        ours, theirs = _keyed(one), _keyed(other)
        for key in [*ours, *(key for key in theirs if key not in ours)]:
            yield from differences(ours.get(key, ABSENT), theirs.get(key, ABSENT), f"{path}[{key}]")
    elif isinstance(one, dict | list) and other == ABSENT:
        yield from _whole(one, path, gone=False)
    elif isinstance(other, dict | list) and one == ABSENT:
        yield from _whole(other, path, gone=True)
    else:
        yield path, one, other


def _whole(value: Any, path: str, *, gone: bool) -> Iterator[Difference]:
    """A whole subtree that only one side has: named by its root, so that a missing list is one difference."""
    yield (path, ABSENT, value) if gone else (path, value, ABSENT)


def _keyed(items: list[Any]) -> dict[str, Any]:
    keyed: dict[str, Any] = {}
    for position, item in enumerate(items):
        key = str(position)
        if isinstance(item, dict):
            key = next((str(item[name]) for name in _KEYS if name in item), key)
        while key in keyed:
            key += "'"
        keyed[key] = item
    return keyed


_KEYS = ("name", "type", "containerPort", "mountPath", "key", "ip", "port")


def changed_paths(found: Iterable[Difference]) -> str:
    """The paths of a change as one text, short enough to read and the same in every run.

    >>> changed_paths([("spec.replicas", 1, 2), ("metadata.resourceVersion", "5", "6")])
    'spec.replicas'
    """
    paths = sorted({path for path, _, _ in found if path == _DELETION or not _always(path)})
    return ",".join(paths[:MOST_PATHS]) + (f",+{len(paths) - MOST_PATHS}" if len(paths) > MOST_PATHS else "")


MOST_PATHS = 8
_DELETION = "metadata.deletionTimestamp"
"""Its value is not compared; that it was set is what makes the change."""
