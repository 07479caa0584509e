"""The four ways to say what should change.

    JsonPatch([{"op": "replace", "path": "/spec/replicas", "value": 3}])   exact operations, in order
    MergePatch({"spec": {"replicas": 3}})        members to set; None removes one; lists are replaced as a whole
    StrategicPatch({"spec": {"template": …}})    like a merge patch, with lists merged by their keys; built-ins only
    ApplyPatch(deployment)                       what one field manager wants (see `client.apply`)

`merge_between(before, after)` makes the merge patch that turns one object into the other: the way to write a typed
object without dropping what its class does not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import msgspec

from konverge.client.call import APPLY
from konverge.objects.codec import to_dict, to_json


class Patch(Protocol):
    """A body and its media type."""

    content_type: ClassVar[str]

    def encode(self) -> bytes: ...


class JsonPatch(msgspec.Struct, frozen=True):
    """RFC 6902: a list of operations; with a `test` operation also a precondition."""

    content_type: ClassVar[str] = "application/json-patch+json"
    operations: Sequence[Mapping[str, Any]]

    def encode(self) -> bytes:
        return to_json(self.operations)


class MergePatch(msgspec.Struct, frozen=True):
    """RFC 7386. Give `metadata.resourceVersion` in it to have it refused when the object changed meanwhile."""

    content_type: ClassVar[str] = "application/merge-patch+json"
    body: Mapping[str, Any]

    def encode(self) -> bytes:
        return to_json(self.body)

    def __bool__(self) -> bool:
        """False when there is nothing to change, so that no request need be made."""
        return bool(self.body)


class StrategicPatch(msgspec.Struct, frozen=True):
    """Kubernetes' own merge patch, which merges lists by key. Custom resources do not take it."""

    content_type: ClassVar[str] = "application/strategic-merge-patch+json"
    body: Mapping[str, Any]

    def encode(self) -> bytes:
        return to_json(self.body)


class ApplyPatch(msgspec.Struct, frozen=True):
    """Server-side apply: everything that one manager wants, as a typed object or a dict. JSON is YAML, so the media
    type is honoured."""

    content_type: ClassVar[str] = APPLY
    desired: Any

    def encode(self) -> bytes:
        return to_json(self.desired)


def merge_between(before: Any, after: Any, *, lock: bool = False) -> MergePatch:
    """The merge patch from `before` to `after` (typed objects or dicts), empty when they are alike.

    With `lock` it also holds the resourceVersion of `before`, so that a change by another writer is a Conflict.

        wanted = msgspec.structs.replace(deployment, spec=…)
        if patch := merge_between(deployment, wanted):
            await client.patch(Deployment, "web", patch, namespace="shop")
    """
    old, new = to_dict(before), to_dict(after)
    changes = difference(old, new)
    if changes and lock:
        changes.setdefault("metadata", {})["resourceVersion"] = old["metadata"]["resourceVersion"]
    return MergePatch(changes)


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The body of the merge patch that turns one JSON object into the other."""
    changes: dict[str, Any] = {key: None for key in old if key not in new}
    for key, wanted in new.items():
        held = old.get(key)
        if isinstance(wanted, dict) and isinstance(held, dict):
            if inner := difference(held, wanted):
                changes[key] = inner
        elif key not in old or held != wanted or type(held) is not type(wanted):
            changes[key] = wanted
    return changes
