"""Fields that the server adds to what is applied as a whole: defaults in the items of atomic lists and in atomic maps.

`managedFields` names atomic content by its root alone. A field in it that is not desired was either added by the
server, or applied by us and is no longer desired; only an apply removes the second. What an answer to an apply still
has was added by the server: it is remembered, and not asked about again. So a removal is never missed, and the price is
an apply that changes nothing, once for every such default and start of the operator.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

MOST = 10_000
"""Additions that are remembered; then it begins again."""
_index = re.compile(r"\[[^]]*\]")


_KNOWN: dict[str, tuple[Any, ...]] = {
    ".spec.volumeClaimTemplates[].apiVersion": ("v1",),
    ".spec.volumeClaimTemplates[].kind": ("PersistentVolumeClaim",),
    ".spec.volumeClaimTemplates[].status": ({"phase": "Pending"},),
    ".spec.volumeClaimTemplates[].status.phase": ("Pending",),
    ".spec.volumeClaimTemplates[].spec.volumeMode": ("Filesystem",),
    ".spec.volumeClaimTemplates[].metadata.creationTimestamp": (None,),
}
"""The usual ones, by every server of Kubernetes: a start of the operator need not ask about them."""


class ServerAdditions:
    """What the server has added to applied objects of a kind, by place and value."""

    def __init__(self) -> None:
        self._known: set[tuple[object, str, bytes]] = set()

    def add(self, kind: object, path: str, value: Any) -> None:
        if len(self._known) >= MOST:
            self._known.clear()
        self._known.add(_key(kind, path, value))

    def has(self, kind: object, path: str, value: Any) -> bool:
        key = _key(kind, path, value)
        return key in self._known or value in _KNOWN.get(key[1], ())


def _key(kind: object, path: str, value: Any) -> tuple[object, str, bytes]:
    """The same for every item of a list: they have the same defaults."""
    return kind, _index.sub("[]", path), msgspec.json.encode(value, order="sorted")
