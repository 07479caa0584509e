"""What an explanation is, in a form that can be sent as JSON: to the console, into a test's report, to `-o json`."""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.explain.model import Health, Ref


class Step(msgspec.Struct, kw_only=True):
    """One object of the chain to the cause."""

    ref: Ref
    health: Health
    says: str


class Branch(msgspec.Struct, kw_only=True):
    """One object of a tree."""

    ref: Ref
    relation: str
    """How the object above stands to it: `owns`, `mounts`, `selects`."""
    health: Health
    says: str
    children: list[Branch] = []
    cut: int = 0
    """How many more are below that are not shown."""


class Answer(msgspec.Struct, kw_only=True):
    """Why an object is as it is.

    answer.sentence   # "Nacos mq waits for pod mq-1, which waits for claim db-mq-1, whose storage class `fast` …"
    answer.chain      # the same, object by object
    """

    ref: Ref
    health: Health
    sentence: str
    chain: list[Step]
    cause: str = ""
    """The sort of the cause: `crash-loop`, `missing-secret`, `quota`. Empty when it is ready."""
    at_rest: bool = False
    """It is ready and does nothing, because its user wants it so: hibernated, stopped, scaled to zero."""
    advice: str = ""
    container: str = ""
    """The container of the last object of the chain whose log says more."""
    log: list[str] = []
    """The last lines of that log."""
    unread: list[str] = []
    """What could not be asked for, and why: the answer may be other than with it."""
    tree: Branch | None = None

    @property
    def worst(self) -> Health:
        """That of the sickest object of the chain; one that was cut off may not show it."""
        return max((self.health, *(step.health for step in self.chain)), key=lambda health: health.severity)


def as_json(value: Answer | Branch) -> dict[str, Any]:
    """The plain form. References are objects, not lists.

    {"ref": {"kind": "Pod", "name": "web-0", "namespace": "shop", "group": ""}, "health": "failed", …}
    """
    plain: dict[str, Any] = msgspec.to_builtins(value, enc_hook=str)  # sentences are a kind of str
    return _named(plain)


def _named(plain: dict[str, Any]) -> dict[str, Any]:
    waiting = [plain]
    for current in waiting:
        current["ref"] = dict(zip(Ref._fields, current["ref"], strict=True))
        waiting += current.get("chain") or []
        waiting += current.get("children") or []
        if current.get("tree"):
            waiting.append(current["tree"])
    return plain
