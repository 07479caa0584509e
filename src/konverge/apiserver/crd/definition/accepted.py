"""Schemas that were found valid before: by digest, so that they are not looked at again.

Whether a schema is valid depends on nothing but the schema and on how strict its check is. A process that starts many
servers, as a suite of tests does, creates the same definitions in all of them, and the check of a large one takes
longer than all the rest of its creation. Refused schemas are checked each time: their errors name their place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

MOST = 1000

_accepted: set[bytes] = set()


def key(schema: Mapping[str, Any], *strictness: bool) -> bytes | None:
    """What `schema` is remembered by; None for one that no JSON says."""
    try:
        return hashlib.sha256(msgspec.json.encode((schema, strictness))).digest()
    except (TypeError, ValueError, RecursionError):  # half of a surrogate pair; nested too deeply
        return None


def was_accepted(key: bytes | None) -> bool:
    return key in _accepted


def remember(key: bytes | None) -> None:
    if key is None:
        return
    if len(_accepted) >= MOST:
        forget()
    _accepted.add(key)


def forget() -> None:
    _accepted.clear()
