"""What a program of a Job says when it fails: a reason for the condition, and what to do.

It is the termination message of the pod, as JSON; the scripts of databases end with plain text instead.
"""

from __future__ import annotations

import msgspec

_LONGEST = 1000
"""Characters of a message: a termination message has 4096 bytes."""


class Failure(Exception):
    """For people, and for the condition of the resource."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message

    def encode(self) -> str:
        return msgspec.json.encode({"reason": self.reason, "message": self.message[:_LONGEST]}).decode()


class _Said(msgspec.Struct):
    reason: str
    message: str


def read_failure(text: str) -> Failure | None:
    """
    >>> read_failure(Failure("BucketNotFound", "create it").encode()).reason
    'BucketNotFound'
    >>> read_failure("pg_dump: error") is None
    True
    """
    try:
        said = msgspec.json.decode(text, type=_Said)
    except msgspec.MsgspecError:
        return None
    return Failure(said.reason, said.message) if said.reason.isalnum() else None
