"""The metadata that belongs to the server: identity, times, generated names, and what an update may not change.

Upstream: apiserver/pkg/registry/rest (meta.go, create.go, update.go).
"""

from __future__ import annotations

from operator import eq
from typing import Any

import msgspec

from konverge import clock
from konverge.apiserver import status
from konverge.apiserver.equality import equal
from konverge.apiserver.strategy import Context, Obj

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # upstream: rand.String; no vowels and no look-alikes
_SUFFIX = 5  # upstream: randomLength (storage/names)
_LONGEST_BASE = 63 - _SUFFIX  # upstream: MaxGeneratedNameLength

_WIPED = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


_second = (0, "")


def timestamp() -> str:
    """Now, as metadata and conditions have it: whole seconds in UTC. Formatted once a second: every write asks."""
    global _second
    now = int(clock.now())
    if _second[0] != now:
        _second = (now, clock.utc_now().strftime("%Y-%m-%dT%H:%M:%SZ"))
    return _second[1]


def wipe(metadata: Obj) -> None:
    """Drop what a client may not choose. Upstream: WipeObjectMetaSystemFields."""
    for name in _WIPED:
        metadata.pop(name, None)


def fill(metadata: Obj, now: str) -> None:
    """Give a new object its identity. Upstream: FillObjectMetaSystemFields."""
    metadata["uid"] = clock.new_uid()
    metadata["creationTimestamp"] = now


def generate_name(base: str) -> str:
    """Upstream: simpleNameGenerator.GenerateName."""
    return base[:_LONGEST_BASE] + "".join(clock.rng().choices(_ALPHABET, k=_SUFFIX))


def match_namespace(metadata: Obj, namespace: str) -> None:
    """The namespace of a body must be that of the path, or absent.

    Upstream: EnsureObjectNamespaceMatchesRequestNamespace.
    """
    given = metadata.get("namespace") or ""
    if given == namespace:
        return
    if not given:
        metadata["namespace"] = namespace
    elif not namespace:
        del metadata["namespace"]
    else:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def match_name(metadata: Obj, name: str) -> None:
    """The name of a body must be that of the path."""
    given = metadata.get("name") or ""
    if not given:
        raise status.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if given != name:
        raise status.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def keep(metadata: Obj, old: Obj) -> None:
    """What an update takes over from the stored object, whatever its body contains. Upstream: BeforeUpdate."""
    if not metadata.get("uid") and "uid" in old:
        metadata["uid"] = old["uid"]
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in old:
            metadata[name] = old[name]
    if "deletionGracePeriodSeconds" in old and metadata.get("deletionGracePeriodSeconds") is None:
        metadata["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]


def set_generation(metadata: Obj, generation: int) -> None:
    if generation:
        metadata["generation"] = generation
    else:
        metadata.pop("generation", None)


def changed_beyond_metadata(obj: Obj, old: Obj, *, status_too: bool, custom: bool) -> bool:
    """Whether anything changed that `generation` counts. Fields of a built-in kind do not change their types."""
    skipped = ("metadata", "kind", "apiVersion") if status_too else ("metadata", "kind", "apiVersion", "status")
    same = equal if custom else eq
    return any(not same(obj.get(key), old.get(key)) for key in obj.keys() | old.keys() if key not in skipped)


_DUPLICATES = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)


def drop_duplicate_owners(metadata: Obj, context: Context, *, after_admission: bool) -> None:
    """Equal owner references are kept once, with a warning. Upstream: dedupOwnerReferences (endpoints/handlers)."""
    owners: list[Any] = metadata.get("ownerReferences") or []
    if len(owners) < 2:
        return
    kept: dict[bytes, Any] = {}
    duplicates = [
        str(owner.get("uid", ""))
        for owner in owners
        if kept.setdefault(msgspec.json.encode(owner, order="sorted"), owner) is not owner
    ]
    if duplicates:
        when = " after mutating admission happens" if after_admission else ""
        context.warn(_DUPLICATES.format(when=when, uids=", ".join(duplicates)))
        metadata["ownerReferences"] = list(kept.values())
