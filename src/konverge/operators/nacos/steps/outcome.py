"""What a step returns: whether the reconcile goes on, is done, waits, or failed with one of the document's codes."""

from __future__ import annotations

from typing import Literal

import msgspec

Code = Literal[200, 301, 401, 404, -1]
NORMAL: Code = 200
"""Nothing is wrong: the reconcile did its part, and the next one goes on from there."""
PARAMETER: Code = 301
"""The user has to change the resource, or something that it refers to."""
CLUSTER: Code = 401
"""The servers do not agree, or are not all up."""
SYSTEM: Code = 404
"""Something outside is wrong: a Secret, a database, a refusal of the API server."""
UNKNOWN: Code = -1
"""Not there yet, for an unknown reason: pods are missing or not ready."""


class Outcome(msgspec.Struct, frozen=True):
    """`reason` is a word for conditions and events, `message` is for people."""

    kind: Literal["continue", "done", "wait", "failed", "held", "hibernated"]
    code: Code = NORMAL
    reason: str = ""
    message: str = ""
    progress: bool = False
    """The operator itself changed something: earlier failures no longer count."""

    @property
    def ends(self) -> bool:
        """Whether the reconcile ends with this step."""
        return self.kind != "continue"

    @property
    def settled(self) -> bool:
        """Everything is as declared: the operator has nothing to do until something changes."""
        return self.kind in ("done", "hibernated")


CONTINUE = Outcome("continue")
DONE = Outcome("done")
ASLEEP = Outcome("hibernated", NORMAL, "Hibernated", "no server runs; spec.hibernate: false wakes them")


def wait(reason: str, message: str, *, progress: bool = False) -> Outcome:
    """Nothing is wrong, and the next reconcile goes on from here."""
    return Outcome("wait", NORMAL, reason, message, progress)


def failed(code: Code, reason: str, message: str) -> Outcome:
    return Outcome("failed", code, reason, message)


def held(reason: str, message: str) -> Outcome:
    """The servers are well, but not as desired: the user has to take the edit back or to allow it."""
    return Outcome("held", PARAMETER, reason, message)


class StepError(Exception):
    """Something that a step needs is missing or malformed: the step fails with this outcome."""

    def __init__(self, code: Code, reason: str, message: str) -> None:
        super().__init__(message)
        self.outcome = failed(code, reason, message)
