"""The nouns of an explanation: which object (`Ref`), how it is (`Health`), why (`Verdict`), what it needs (`Link`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from konverge.explain.reading import Obj, text
from konverge.explain.sentences import NOTHING, Sentence, say


class Health(StrEnum):
    """How an object is. As kstatus has it, but what is on its way and what waits in vain are two things."""

    READY = "ready"
    PROGRESSING = "progressing"
    """Its controller is at work; it needs time."""
    WAITING = "waiting"
    """Something must happen first, which may be never."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    """It could not be read, or says nothing."""

    @property
    def severity(self) -> int:
        """0 is healthy; the sickest is the highest."""
        return _SEVERITY[self]


_SEVERITY = {Health.READY: 0, Health.UNKNOWN: 1, Health.PROGRESSING: 2, Health.WAITING: 3, Health.FAILED: 4}
_NOUNS = {
    "Pod": say("pod"),
    "PersistentVolumeClaim": say("claim"),
    "PersistentVolume": say("volume"),
    "StorageClass": say("storage class"),
    "Node": say("node"),
    "Namespace": say("namespace"),
    "ServiceAccount": say("service account"),
}


class Ref(NamedTuple):
    """Which object: a kind in its group (the version does not matter), a name, and a namespace if it has one."""

    kind: str
    name: str
    namespace: str = ""
    group: str = ""

    @property
    def noun(self) -> str:
        """The kind as people say it: `claim`, `storage class`, `Deployment`."""
        return _NOUNS.get(self.kind, self.kind)

    @property
    def named(self) -> Sentence:
        """The object as a part of a sentence: `claim data-0`."""
        return say("{noun} {name}", noun=self.noun, name=self.name)

    def __str__(self) -> str:
        return f"{self.noun} {self.name}"

    @classmethod
    def of(cls, obj: Obj) -> Ref:
        """That of an object; what it does not say is empty."""
        meta = obj.get("metadata")
        return cls(text(obj, "kind"), text(meta, "name"), text(meta, "namespace"), group_of(text(obj, "apiVersion")))


def group_of(api_version: str) -> str:
    """
    >>> group_of("apps/v1"), group_of("v1")
    ('apps', '')
    """
    return api_version.rpartition("/")[0]


class Link(NamedTuple):
    """An object owns, uses or selects another."""

    relation: str
    ref: Ref
    required: bool = True
    """It cannot work without: if the other does not exist, that is an answer to why."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an object is, by what it says of itself and what was said about it."""

    health: Health
    says: Sentence = NOTHING
    """What follows its name: `has 1 of 3 replicas ready`."""
    whose: Sentence = NOTHING
    """In place of `says`, what follows `whose`: `ResourceQuota small would be exceeded`."""
    cause: str = ""
    """The sort of the cause, where this object is one: `crash-loop`, `missing-key`."""
    waits_for: tuple[Ref, ...] = ()
    """What it may be waiting for: those of them that are not ready are the next step to the cause."""
    advice: Sentence = NOTHING
    """What to do about the cause."""
    container: str = ""
    """The container whose last log lines say more."""
    at_rest: bool = False
    """Ready, and doing nothing, because its user wants it so: hibernated, stopped, scaled to zero."""
    like_children: bool = False
    """It says nothing of itself: it is as those are that it waits for."""

    @property
    def sentence(self) -> Sentence:
        return self.says or (say("waits: its {whose}", whose=self.whose) if self.whose else _STATES[self.health])


_STATES = {
    Health.READY: say("is ready"),
    Health.PROGRESSING: say("is progressing"),
    Health.WAITING: say("is waiting"),
    Health.FAILED: say("is failed"),
    Health.UNKNOWN: say("is unknown"),
}
READY = Verdict(Health.READY, say("is ready"))
