"""Shard selectors that are asked of our server and of the real one."""

from __future__ import annotations

LOWER = "shardRange({field}, '0x0000000000000000', '0x8000000000000000')"
UPPER = "shardRange({field}, '0x8000000000000000', '0x10000000000000000')"
UID, NAMESPACE = "object.metadata.uid", "object.metadata.namespace"

REFUSED = [
    " ",
    "1",
    "object.metadata.uid",
    "[1]",
    "foo()",
    "shardRange(object.metadata.uid, '0x0000000000000000')",
    "shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')",
    "shardRange('a', '0x0000000000000000', '0x8000000000000000')",
    "shardRange(object.metadata.uid, '0x0', '0x8000000000000000')",
    "shardRange(object.metadata.uid, 'a', '0x8000000000000000')",
    "shardRange(object.metadata.uid, '0x', '0x8000000000000000')",
    "shardRange(object.metadata.uid, '0x00000000000000000000', '0x8000000000000000')",
    "shardRange(object.metadata.uid, '0x000000000000000G', '0x8000000000000000')",
    "shardRange(object.metadata.uid, '0x0000000000000000', '0x20000000000000000')",
    "shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')",
    "shardRange(object.metadata.uid, 0, 1)",
    "shardRange(object.metadata.uid, 1.5, b'a')",
    "shardRange(object.metadata.uid, a, b)",
    f"{LOWER.format(field=UID)} && {UPPER.format(field=UID)}",
    f"{LOWER.format(field=UID)} || {UPPER.format(field=NAMESPACE)}",
    "shardRange(",
]
ODD = [
    LOWER.format(field=NAMESPACE).replace("'", '"'),
    f"  {LOWER.format(field=NAMESPACE)}||{UPPER.format(field=NAMESPACE)} ",
    f"({LOWER.format(field=NAMESPACE)})",
]
"""Accepted, and shown in the usual spelling."""
