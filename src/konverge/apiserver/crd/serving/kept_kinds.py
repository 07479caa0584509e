"""Compiled versions of custom kinds, kept for the process by the text that they were compiled from.

A test suite installs the same definitions in one server after the other, and a server compiles all versions of a
definition again when one of them changes. What is compiled never changes, so whoever has the same text can share it.
"""

from __future__ import annotations

from hashlib import sha256
from threading import Lock
from weakref import WeakValueDictionary

import msgspec

from konverge.apiserver.crd.serving.strategy import CustomKind
from konverge.apiserver.strategy import Obj

LONGEST = 128 * 1024
"""Of a text that is kept: what a longer one is compiled to takes long to free, and is freed aside (`release.py`). It is
shared only while a server serves it: another address of its webhook does not change what it is compiled to."""
MOST = 512 * 1024
"""Of all texts together; what was not used for longest goes first. Compiled, a text takes 20 to 45 times its length."""

_USED = ("name", "schema", "subresources", "selectableFields")
"""Of a version: the rest of it (columns, whether it is served) is not compiled here."""

_kept: dict[bytes, tuple[int, CustomKind]] = {}
_served: WeakValueDictionary[bytes, CustomKind] = WeakValueDictionary()
"""Of the longer ones, those that are in use."""
_keeping = Lock()


def kind_of(definition: Obj, version: Obj) -> CustomKind:
    """What one version of a definition is compiled to."""
    spec = definition["spec"]
    parts = [version.get(part) for part in _USED]
    text = msgspec.json.encode([spec["group"], spec["names"]["kind"], bool(spec.get("preserveUnknownFields")), *parts])
    key = sha256(text).digest()
    if len(text) > LONGEST:
        kind = _served.get(key)
        if kind is None:
            kind = _served[key] = CustomKind(definition, version)
        return kind
    with _keeping:  # large definitions are compiled on a thread
        known = _kept.pop(key, None)
        if known is not None:
            _kept[key] = known
            return known[1]
    made = CustomKind(definition, version)
    with _keeping:
        _kept[key] = (len(text), made)
        while sum(length for length, _ in _kept.values()) > MOST:
            del _kept[next(iter(_kept))]
    return made
