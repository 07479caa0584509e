"""Why a pod finds no node, from the scheduler's message. Pure. Upstream: FitError.Error (pkg/scheduler/framework)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from konverge.explain.sentences import Sentence, say, several
from konverge.explain.texts import shorten

_HEAD = re.compile(r"0/(\d+) nodes are available: (.*)", re.S)
_COUNTED = re.compile(r"(\d+) (.+)", re.S)

# A taint ends with its last brace, an amount of resources has a name: `(?P<what>…)` is the value of the sentence.
_TEXTS: tuple[tuple[re.Pattern[str], Callable[..., Sentence]], ...] = (
    (re.compile(r"Insufficient (?P<what>\S+)"), partial(say, "not enough {what}")),
    (re.compile(r"Too many pods"), partial(say, "no room for another pod")),
    (
        re.compile(r"node\(s\) had untolerated taint (?P<what>\{.*\})"),
        partial(say, "the taint {what}, which it does not tolerate"),
    ),
    (re.compile(r"node\(s\) had untolerated taint\(s\)"), partial(say, "a taint that it does not tolerate")),
    (
        re.compile(r"node\(s\) had taint (?P<what>\{.*\}), that the pod didn't tolerate"),
        partial(say, "the taint {what}, which it does not tolerate"),
    ),
    (re.compile(r"node\(s\) were unschedulable"), partial(say, "been cordoned")),
    (
        re.compile(r"node\(s\) didn't match Pod's node affinity/selector"),
        partial(say, "labels other than it asks for"),
    ),
    (re.compile(r"node\(s\) didn't match pod affinity rules"), partial(say, "no pod beside which it must run")),
    (re.compile(r"node\(s\) didn't match pod anti-affinity rules"), partial(say, "a pod beside which it must not run")),
    (
        re.compile(r"node\(s\) didn't match pod topology spread constraints.*"),
        partial(say, "more such pods than its spread allows"),
    ),
    (re.compile(r"node\(s\) didn't have free ports.*"), partial(say, "its port in use")),
    (
        re.compile(r"node\(s\) (?:had volume node affinity conflict|didn't match PersistentVolume's node affinity)"),
        partial(say, "no access to its volume"),
    ),
    (re.compile(r"node\(s\) exceed max volume count"), partial(say, "no room for another volume")),
)
CLAIMS = re.compile(
    r"(?i)unbound immediate persistentvolumeclaims|persistentvolumeclaim \"|storageclass.* not found"
    r"|did not find available persistent volumes"
)
"""The scheduler's ways of saying that the reason is a claim."""


def condense(message: str) -> Sentence:
    """What follows the name of the pod.

    >>> condense("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: 0/3 nodes …")
    'fits on none of 3 nodes: 1 has not enough cpu, 2 have been cordoned'
    """
    if "no nodes available" in message or message.startswith("0/0 nodes"):
        return say("finds no node: the cluster has none")
    head = _HEAD.match(message)
    if head is None:
        return say("cannot be scheduled: {detail}", detail=shorten(message))
    reasons = head[2].partition(". preemption:")[0].partition(". no new claims")[0].rstrip(". ")
    parts = several([_reason(part) for part in _split(reasons)])
    total = int(head[1])
    if total == 1:
        return say("does not fit on the only node: {reasons}", reasons=parts)
    return say("fits on none of {total} nodes: {reasons}", total=total, reasons=parts)


def _split(reasons: str) -> list[str]:
    """The reasons are separated by commas, which taints may have as well."""
    return re.split(r", (?=\d+ )", reasons)


def _reason(part: str) -> str:
    counted = _COUNTED.fullmatch(part.strip())
    if counted is None:
        return shorten(part)
    for pattern, sentence in _TEXTS:
        match = pattern.fullmatch(counted[2])
        if match is not None:
            what = sentence(**match.groupdict())
            return (
                say("1 has {what}", what=what)
                if counted[1] == "1"
                else say("{count} have {what}", count=counted[1], what=what)
            )
    return shorten(part)


def cause_of(message: str) -> str:
    """The sort of the cause."""
    for sign, cause in _CAUSES:
        if sign in message:
            return cause
    return "unschedulable"


_CAUSES = (
    ("no nodes available", "no-nodes"),
    ("0/0 nodes", "no-nodes"),
    ("Insufficient ", "no-room"),
    ("Too many pods", "no-room"),
    ("untolerated taint", "taint"),
    ("affinity", "affinity"),
    ("spread constraints", "affinity"),
    ("were unschedulable", "cordoned"),
)
